// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import FoundationEssentials
import HTTPTypes

extension EasyHandle {
    /// Sets the options that differ between exchanges: the URL, the method, the header fields and whether a body is
    /// sent.
    ///
    /// The body is sent through the read callback for any method: `CURLOPT_UPLOAD` states that there is one,
    /// `CURLOPT_CUSTOMREQUEST` sets the method. See CURLOPT_UPLOAD(3) and CURLOPT_CUSTOMREQUEST(3).
    ///
    /// - Parameter uploadBufferSize: The minimum size of the buffer for the body; libcurl requires at least 16 KiB.
    func apply(
        _ exchange: Exchange, url: String, headers: borrowing HeaderList, uploadBufferSize: Int
    ) throws(CurlFailure) {
        let request = exchange.request
        try set(CURLOPT_URL, url)
        if let list = unsafe headers.first { unsafe try set(CURLOPT_HTTPHEADER, list: list) }
        if let list = unsafe headers.firstOverride { unsafe try set(CURLOPT_CONNECT_TO, list: list) }
        try applyMethod(request.method, exchange, uploadBufferSize)
        // No redirects. Responses to challenges count as such, too.
        try set(CURLOPT_MAXREDIRS, exchange.answersChallenges ? 8 : 0)
        if !exchange.probes.isEmpty, exchange.isSecure, exchange.options.httpVersion != .http3Only {
            // libcurl 7.88 records on the connection, and later versions on the request, that no body is sent, and
            // applies that to other requests on the connection. Over HTTP/1.1 no other request shares it, and
            // ``Transfer`` has it closed after a probe.
            try set(CURLOPT_HTTP_VERSION, CCURL_HTTP_VERSION_1_1)
            try set(CURLOPT_FRESH_CONNECT, true)
        }
        if exchange.needsOwnConnection { try set(CURLOPT_FRESH_CONNECT, true) }
        if exchange.webSocket != nil { try applyUpgrade() }
    }

    private func applyMethod(
        _ method: HTTPRequest.Method, _ exchange: Exchange, _ uploadBufferSize: Int
    ) throws(CurlFailure) {
        if exchange.sendsBody {
            try set(CURLOPT_UPLOAD, true)
            // libcurl allocates it for each request.
            let size = min(max(exchange.upload.length ?? .max, Int64(uploadBufferSize)), 256 << 10)
            try set(CURLOPT_UPLOAD_BUFFERSIZE, Int(size))
            try set(CURLOPT_INFILESIZE_LARGE, offset: exchange.upload.length ?? -1)
            if method != .put { try set(CURLOPT_CUSTOMREQUEST, method.rawValue) }
        } else if method == .head {
            try set(CURLOPT_NOBODY, true)
        } else if method != .get {
            try set(CURLOPT_CUSTOMREQUEST, method.rawValue)
        }
    }
}

extension Exchange {
    /// Whether the request asks for a 100 before its body is sent (RFC 9110 §10.1.1).
    var expectsContinue: Bool {
        guard sendsBody else { return false }
        if let expectation = request.headers[.expect] { return expectation.lowercased().contains("100-continue") }
        return options.expectContinueTimeout != nil && upload.length != 0
    }

    /// Whether the request may be sent a second time after a connection was lost before any byte of the response. See
    /// RFC 9110 §9.2.2.
    var mayBeRepeated: Bool {
        switch request.method {
        case .get, .head, .put, .delete, .options, .trace: upload.isReplayable
        default: false
        }
    }
}
