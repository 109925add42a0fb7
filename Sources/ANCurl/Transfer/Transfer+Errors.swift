// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import COpenSSL
import Glibc

// The mapping from libcurl's error codes to ``TransportError``. See libcurl-errors(3).

extension Transfer {
    func transportError(_ code: CURLcode) -> TransportError {
        var facts = facts(code: code)
        if let refusal = state.refusal {
            facts.serverTrust = refusal.trust
            if state.lacksIdentity, refusal.failure == .clientCertificateRefused { facts.message = Self.noIdentity }
            return .tls(refusal.failure, facts)
        }
        if isIdentityMissing(code) {
            facts.message = Self.noIdentity
            return .tls(.clientCertificateRefused, facts)
        }
        switch code {
        case CURLE_ABORTED_BY_CALLBACK where state.isConnectionSpoilt:
            return .connectionLost(.beforeResponse, facts)
        case CURLE_WRITE_ERROR where state.isProbeRefused:
            return .invalidResponse(.noFinalResponse, facts)
        case CURLE_URL_MALFORMAT:
            return .invalidRequest(.url(facts.message ?? facts.url))
        case CURLE_UNSUPPORTED_PROTOCOL:
            return .invalidResponse(.notHTTP, facts)
        case CURLE_WEIRD_SERVER_REPLY:
            return .invalidResponse(headProblem(facts.message ?? ""), facts)
        case CURLE_COULDNT_RESOLVE_HOST:
            return .cannotResolve(host: facts.host ?? "", facts)
        case CURLE_COULDNT_RESOLVE_PROXY:
            facts.host = proxy?.host
            return .cannotResolve(host: proxy?.host ?? "the proxy", facts)
        case CURLE_COULDNT_CONNECT:
            // libcurl 8.21 reports a refused tunnel with this code, earlier versions as CURLE_RECV_ERROR.
            if let tunnelError = tunnelError(facts) { return tunnelError }
            if let proxy { facts.host = proxy.host }
            return .cannotConnect(connectFailure(facts), facts)
        case CURLE_INTERFACE_FAILED:
            return .cannotConnect(.localAddress, facts)
        case CURLE_PROXY:
            if let proxy { facts.host = proxy.host }
            return .proxy(proxyFailure, facts)
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_INVALIDCERTSTATUS:
            return tlsError(code, facts)
        case CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_HTTP2_STREAM, CURLE_HTTP3, CURLE_QUIC_CONNECT_ERROR:
            return connectionLost(facts)
        case CURLE_SEND_ERROR:
            return state.parser.hasBegun ? connectionLost(facts) : .connectionLost(.whileSending, facts)
        case CURLE_RECV_ERROR:
            return receiveError(facts)
        case CURLE_HTTP2:
            // After the server has closed an HTTP/2 session, its error says nothing about a request that was sent
            // later.
            return state.parser.hasBegun ? .invalidResponse(.framing, facts) : .connectionLost(.beforeResponse, facts)
        case CURLE_BAD_CONTENT_ENCODING:
            return .invalidResponse(.contentEncoding, facts)
        case CURLE_BAD_FUNCTION_ARGUMENT where state.parser.hasBegun:
            // libcurl rejects such a line before it calls back: one without a colon, or a folded line that continues
            // nothing. After the head, it is a trailer, or what follows an invalid chunk size.
            return .invalidResponse(
                state.parser.isComplete ? .framing : .headerLine("one without a colon, or continuing nothing"), facts)
        case CURLE_SEND_FAIL_REWIND:
            return .requestBody(.notReplayable, facts)
        case CURLE_OUT_OF_MEMORY, .tooLarge:
            return limitError ?? .internalInconsistency("Out of memory.", facts)
        case CURLE_OPERATION_TIMEDOUT:
            guard let total = exchange.options.timeouts.total else { return .cannotConnect(.systemTimeout, facts) }
            return .timedOut(timeoutPhase, limit: total, facts)
        default:
            return .internalInconsistency(unsafe String(cString: curl_easy_strerror(code)), facts)
        }
    }

    private static let noIdentity = "The server asked for a client certificate, and none was given."

    /// Whether a connection that has served no request failed after its server had requested a certificate and received
    /// none. With TLS 1.2 the server ends the handshake; with TLS 1.3 the request may already be under way, and the
    /// connection may be reset before the server's alert is read.
    private func isIdentityMissing(_ code: CURLcode) -> Bool {
        guard state.lacksIdentity, !state.parser.hasBegun else { return false }
        switch code {
        case CURLE_SSL_CONNECT_ERROR, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_HTTP2: return true
        default: return false
        }
    }

    var proxy: Proxy? {
        if case .proxy(let proxy) = exchange.options.proxy { proxy } else { nil }
    }

    /// Returns the error for a connection that ended too early, depending on how much of the response was received.
    func connectionLost(_ facts: FailureContext) -> TransportError {
        let parser = state.parser
        if parser.isComplete {
            let received = downloadProgress.completedBytes
            return .connectionLost(.inBody(received: received, expected: parser.contentLength), facts)
        }
        guard parser.hasBegun else { return .connectionLost(.beforeResponse, facts) }
        if parser.isInHead { return .connectionLost(.inHead, facts) }
        // A connection closed after an interim response means that no final response follows; a reset means that it was
        // lost.
        return facts.errno == nil ? .invalidResponse(.noFinalResponse, facts) : .connectionLost(.beforeResponse, facts)
    }

    /// The error for exceeding one of libcurl's own limits, 300 KiB for all heads and 100 KiB for a line; `nil` after
    /// the head.
    private var limitError: TransportError? {
        guard !state.parser.isComplete else { return nil }
        return .responseTooLarge(.head(limit: min(exchange.options.maximumHeadSize, 300 << 10)), facts())
    }

    /// Returns the failure for a line of the head that libcurl rejected before passing it on.
    private func headProblem(_ message: String) -> TransportError.ResponseFailure {
        guard state.parser.hasBegun else { return .notHTTP }
        if state.parser.isComplete { return .framing }
        return message.hasPrefix("Invalid Content-Length") ? .contentLength : .headerLine(message)
    }

    private func connectFailure(_ facts: FailureContext) -> TransportError.ConnectFailure {
        switch facts.errno {
        case ECONNREFUSED, ENOENT: .refused
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN: .unreachable
        case ETIMEDOUT: .systemTimeout
        case EADDRNOTAVAIL, EADDRINUSE, EACCES, EPERM, EMFILE, ENFILE: .localAddress
        default: .other
        }
    }

    private var proxyFailure: TransportError.ProxyFailure {
        switch handle.long(CURLINFO_PROXY_ERROR) {
        case Int(CURLPX_USER_REJECTED.rawValue), Int(CURLPX_NO_AUTH.rawValue): .authenticationRequired
        default: .handshake
        }
    }

    /// Returns the error of a proxy that refused a tunnel; `nil` if none did.
    private func tunnelError(_ facts: FailureContext) -> TransportError? {
        let status = handle.long(CURLINFO_HTTP_CONNECTCODE)
        guard !state.parser.hasBegun, state.clock.connected == nil, status != 0, status / 100 != 2 else { return nil }
        var facts = facts
        facts.host = proxy?.host ?? facts.host
        if status == 407 { facts.proxySchemes = handle.proxySchemes }
        return .proxy(status == 407 ? .authenticationRequired : .tunnelRefused(status: status), facts)
    }

    /// Returns the error for CURLE_RECV_ERROR, which libcurl uses for a lost connection, a refused tunnel and malformed
    /// chunked coding.
    private func receiveError(_ facts: FailureContext) -> TransportError {
        if let tunnelError = tunnelError(facts) { return tunnelError }
        if facts.message?.hasPrefix("Too large response headers") == true, let limitError { return limitError }
        if facts.errno == nil, facts.message?.contains("chunk") == true {
            return .invalidResponse(.framing, facts)
        }
        return connectionLost(facts)
    }

    /// Returns the TLS failure for a failed handshake. An "unspecified" verification result is libcurl's initial value:
    /// either the certificate was not checked yet, or it is valid but for another name.
    private func handshakeFailure(_ code: CURLcode, _ verifyResult: Int) -> TransportError.TLSFailure {
        guard verifyResult == Int(X509_V_OK) || verifyResult == Int(X509_V_ERR_UNSPECIFIED) else {
            return TransportError.TLSFailure(verifyResult: Int32(truncatingIfNeeded: verifyResult))
        }
        return code == CURLE_PEER_FAILED_VERIFICATION ? .wrongHost : .handshake
    }

    private func tlsError(_ code: CURLcode, _ facts: FailureContext) -> TransportError {
        let proxyResult = handle.long(CURLINFO_PROXY_SSL_VERIFYRESULT)
        if let proxy, proxy.kind == .https, handle.long(CURLINFO_HTTP_CONNECTCODE) == 0, proxyResult != 0 {
            var facts = facts
            facts.host = proxy.host
            return .proxy(.tls(handshakeFailure(code, proxyResult)), facts)
        }
        switch code {
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR:
            return .tls(handshakeFailure(code, handle.long(CURLINFO_SSL_VERIFYRESULT)), facts)
        case CURLE_SSL_CACERT_BADFILE:
            return .tls(.badTrustRoots, facts)
        default:
            return .tls(.handshake, facts)
        }
    }
}

extension CURLcode {
    /// CURLE_TOO_LARGE, introduced in libcurl 8.6.
    fileprivate static let tooLarge = CURLcode(rawValue: 100)
}
