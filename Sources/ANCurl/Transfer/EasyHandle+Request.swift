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
    /// - Parameter uploadBufferSize: The minimum size of the buffer for the request; libcurl requires at least 16 KiB, and
    ///   uses 64 KiB by default.
    func apply(
        _ exchange: Exchange, url: String, headers: borrowing HeaderList, uploadBufferSize: Int
    ) throws(CurlFailure) {
        let request = exchange.request
        try set(CURLOPT_URL, url)
        if let list = unsafe headers.first { unsafe try set(CURLOPT_HTTPHEADER, list: list) }
        // Not sent to servers (RFC 9110 §11.7.2); see CURLOPT_PROXYHEADER(3).
        if let list = unsafe headers.firstForProxy { unsafe try set(CURLOPT_PROXYHEADER, list: list) }
        if let list = unsafe headers.firstOverride { unsafe try set(CURLOPT_CONNECT_TO, list: list) }
        try applyMethod(request.method, exchange, uploadBufferSize)
        // No redirects. Responses to challenges count as such, too.
        try set(CURLOPT_MAXREDIRS, exchange.answersChallenges ? 8 : 0)
        if exchange.needsOwnConnection || !exchange.probes.isEmpty, exchange.isSecure,
            exchange.options.httpVersion != .http3Only
        {
            // Over HTTP/1.1 no other request shares the connection. libcurl 7.88 records on it, and later versions on the
            // request, that no body is sent, and applies that to other requests on it: ``Transfer`` has it closed after a
            // probe.
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
            // See ``ChunkedBody``.
            try set(CURLOPT_HTTP_TRANSFER_DECODING, false)
            // libcurl allocates it for each request.
            let largest: Int64 = exchange.context.memory == nil ? 256 << 10 : 0
            let size = max(min(exchange.upload.length ?? .max, largest), Int64(uploadBufferSize))
            try set(CURLOPT_UPLOAD_BUFFERSIZE, Int(size))
            try set(CURLOPT_INFILESIZE_LARGE, offset: exchange.upload.length ?? -1)
            if method != .put { try set(CURLOPT_CUSTOMREQUEST, method.rawValue) }
            return
        }
        if uploadBufferSize > 64 << 10 { try set(CURLOPT_UPLOAD_BUFFERSIZE, uploadBufferSize) }
        if method == .head {
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

    /// Whether the request may be sent a second time after a connection was lost before any byte of the response.
    var mayBeRepeated: Bool { request.mayBeRepeated && upload.isReplayable }
}

extension EasyHandle {
    /// Sets the options for authentication by the transport. See CURLOPT_HTTPAUTH(3).
    ///
    /// With exactly one scheme, libcurl sends a request without a body to obtain the server's challenge.
    func apply(_ authentication: TransportAuthentication, of exchange: Exchange) throws(TransportError) {
        try authentication.server?.credential.check(for: "Authorization")
        try authentication.proxy?.credential.check(for: "Proxy-Authorization")
        do throws(CurlFailure) {
            if let answer = authentication.server {
                try set(CURLOPT_HTTPAUTH, answer.scheme.curlBit)
                try set(CURLOPT_USERNAME, answer.credential.user)
                try set(CURLOPT_PASSWORD, answer.credential.password)
            }
            if let answer = authentication.proxy {
                try set(CURLOPT_PROXYAUTH, answer.scheme.curlBit)
                try setProxyCredential(answer.credential, by: [answer.scheme], of: exchange)
            }
        } catch {
            throw error.transportError
        }
    }

    /// Sets the user name and password for a proxy. See CURLOPT_PROXYUSERNAME(3).
    ///
    /// With ``CurlDefects/decodedProxyCredentials``, libcurl decodes them for each request, and answers a challenge with the
    /// second one, except within the one that opens a tunnel.
    func setProxyCredential(
        _ credential: Credential, by schemes: Set<AuthenticationScheme>, of exchange: Exchange
    ) throws(CurlFailure) {
        let isDecoded = CurlDefects.current.contains(.decodedProxyCredentials)
        let isForwarded = exchange.options.proxyUse(for: exchange.request)?.isTunnel == false
        let count = !isDecoded ? 0 : isForwarded && schemes != [.basic] ? 2 : 1
        for (option, text) in [
            (CURLOPT_PROXYUSERNAME, credential.user), (CURLOPT_PROXYPASSWORD, credential.password),
        ] {
            try set(option, (0..<count).reduce(text) { text, _ in text.replacing(each: "%", with: "%25") })
        }
    }

    /// Removes the credentials for parties that require none. Without the change of the scheme, libcurl would send an
    /// empty user name.
    func removeCredentials(of parties: Probes) throws(TransportError) {
        do throws(CurlFailure) {
            if parties.contains(.server) {
                try set(CURLOPT_HTTPAUTH, CCURL_AUTH_BASIC)
                try set(CURLOPT_USERNAME, nil)
                try set(CURLOPT_PASSWORD, nil)
            }
            if parties.contains(.proxy) {
                try set(CURLOPT_PROXYAUTH, CCURL_AUTH_BASIC)
                try set(CURLOPT_PROXYUSERNAME, nil)
                try set(CURLOPT_PROXYPASSWORD, nil)
            }
        } catch {
            throw error.transportError
        }
    }

    /// The authentication schemes offered by a proxy. See CURLINFO_PROXYAUTH_AVAIL(3).
    var proxySchemes: Set<AuthenticationScheme> {
        let bits = long(CURLINFO_PROXYAUTH_AVAIL)
        return Set(AuthenticationScheme.allCases.filter { bits & $0.curlBit != 0 })
    }
}

extension TransportAuthentication {
    /// Checks that the linked libcurl supports the authentication.
    func checkCapabilities() throws(TransportError) {
        let library = try CurlLibrary.current.get()
        for scheme in [server?.scheme, proxy?.scheme].compactMap(\.self)
        where !library.authenticationSchemes.contains(scheme) {
            throw TransportError(.unsupported(scheme == .negotiate ? .negotiate : .ntlm))
        }
    }

    /// Whether responses may be challenges to which libcurl responds, instead of the final response.
    var answersChallenges: Bool { server != nil || proxy != nil }

    /// Whether the authentication applies to a connection, which must then not be shared. libcurl ensures this for
    /// NTLM, but not for Negotiate.
    var needsOwnConnection: Bool { server?.scheme == .negotiate || proxy?.scheme == .negotiate }
}

extension AuthenticationScheme {
    /// Whether libcurl obtains a challenge before it sends a body.
    var isProbed: Bool { self != .basic && self != .negotiate }
}

extension Credential {
    /// Checks that libcurl sends the credential unchanged: it would write a line break of a user name into the field of
    /// Digest, where another field would begin, and end each text at a NUL.
    ///
    /// - Parameter field: The name of the field, for the error.
    func check(for field: String) throws(TransportError) {
        guard !user.hasControlCharacters, !password.utf8.contains(0) else {
            throw TransportError(.invalidRequest(.headerValue(name: field)))
        }
    }

    /// The bit mask of the schemes that libcurl may use for a proxy.
    var curlProxyBits: Int { (schemes ?? [.basic]).reduce(0) { $0 | $1.curlBit } }
}

extension TransferOptions {
    /// Whether responses may be challenges of the proxy to which libcurl responds.
    var answersProxyChallenges: Bool {
        guard case .proxy(let proxy) = proxy, let schemes = proxy.credential?.schemes else { return false }
        return schemes != [.basic]
    }
}

extension AuthenticationScheme {
    fileprivate var curlBit: Int {
        switch self {
        case .basic: CCURL_AUTH_BASIC
        case .digest: CCURL_AUTH_DIGEST
        case .ntlm: CCURL_AUTH_NTLM
        case .negotiate: CCURL_AUTH_NEGOTIATE
        }
    }
}

/// The maximum number of bytes that libcurl reads from a connection at once. See CURLOPT_BUFFERSIZE(3).
enum ReceiveBuffer: Int {
    /// 4 KiB, for bodies that are received slowly, so that limits are shared fairly within a short time.
    case smallest = 4096
    /// 16 KiB, for collected bodies, of which thousands may be in progress.
    case small = 16384
    /// 128 KiB, for streamed bodies.
    case large = 131072

    init(for delivery: BodyDelivery, _ limits: [SpeedLimit] = []) {
        guard limits.isEmpty else {
            let rate = limits.compactMap { $0.bytesReceivedPerSecond }.min()
            self = rate.map { $0 < 1 << 20 } ?? false ? .smallest : .small
            return
        }
        self =
            switch delivery {
            case .collected: .small
            case .streamed: .large
            }
    }
}
