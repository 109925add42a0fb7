// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import COpenSSL
import Glibc

// The mapping from libcurl's error codes to ``TransportError``. See libcurl-errors(3).

extension Transfer {
    func transportError(_ code: CURLcode) -> TransportError {
        var context = context(code: code)
        let reason = reason(code, &context)
        return TransportError(reason, context: context)
    }

    /// Returns the reason for an error code, and changes the context where a code says more than the transfer's state.
    private func reason(_ code: CURLcode, _ context: inout FailureContext) -> TransportError.Reason {
        if let refusal = state.connection.refusal {
            context.serverTrust = refusal.trust
            if state.connection.lacksIdentity, refusal.failure == .clientCertificateRefused {
                context.message = Self.noIdentity
            }
            return .tls(refusal.failure)
        }
        if isIdentityMissing(code) {
            context.message = Self.noIdentity
            return .tls(.clientCertificateRefused)
        }
        if isTunnelLost(code) {
            if let proxy { context.host = proxy.host }
            return .proxy(.handshake)
        }
        if isMalformed(code) { return .invalidResponse(.framing) }
        switch code {
        case CURLE_ABORTED_BY_CALLBACK where state.connection.isSpoilt:
            return .connectionLost(.beforeResponse)
        case CURLE_WRITE_ERROR where state.receiving.refusedPart != nil:
            return .invalidResponse(.noFinalResponse)
        case CURLE_URL_MALFORMAT:
            return .invalidURL(context.message ?? context.url)
        case CURLE_UNSUPPORTED_PROTOCOL:
            return .invalidResponse(.notHTTP)
        case CURLE_WEIRD_SERVER_REPLY:
            return .invalidResponse(headFailure(context.message ?? ""))
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            if code == CURLE_COULDNT_RESOLVE_PROXY { context.host = proxy?.host }
            // libcurl does not say that its resolver could open no socket.
            if let error = SocketEndpoint.shortage {
                context.errno = error
                return .cannotConnect(connectFailure(error))
            }
            return .cannotResolve
        case CURLE_COULDNT_CONNECT:
            // libcurl 8.21 reports a refused tunnel with this code, earlier versions as CURLE_RECV_ERROR.
            if let refusal = tunnelRefusal(&context) { return refusal }
            // Not for an exception from the proxy, nor for a Unix-domain socket.
            if let proxy, proxy.port == state.connection.triedAddress?.port { context.host = proxy.host }
            return .cannotConnect(connectFailure(context.errno))
        case CURLE_INTERFACE_FAILED:
            return .cannotConnect(.localAddress)
        case CURLE_PROXY:
            if let proxy { context.host = proxy.host }
            return .proxy(proxyFailure)
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_INVALIDCERTSTATUS:
            return tlsReason(code, &context)
        case CURLE_QUIC_CONNECT_ERROR where state.repeating.attempts == 0:
            return .cannotConnect(connectFailure(context.errno))
        case CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_HTTP2_STREAM, CURLE_HTTP3, CURLE_QUIC_CONNECT_ERROR:
            return earlyEnd
        case CURLE_SEND_ERROR:
            // After an interim response, the body may still be being sent.
            return state.parser.isInHead || state.parser.isComplete ? earlyEnd : .connectionLost(.whileSending)
        case CURLE_RECV_ERROR:
            return receiveReason(&context)
        case CURLE_HTTP2:
            // After the server has closed an HTTP/2 session, its error says nothing about a request that was sent
            // later.
            return state.parser.hasBegun ? .invalidResponse(.framing) : .connectionLost(.beforeResponse)
        case CURLE_BAD_CONTENT_ENCODING:
            // libcurl decodes transfer codings only.
            return .invalidResponse(.framing)
        case CURLE_BAD_FUNCTION_ARGUMENT where state.parser.hasBegun:
            // libcurl rejects such a line before it calls back: one without a colon, or a folded line that continues
            // nothing. After the head, it is a trailer, or what follows an invalid chunk size.
            return .invalidResponse(
                state.parser.isComplete ? .framing : .headerLine("one without a colon, or continuing nothing"))
        case CURLE_SEND_FAIL_REWIND:
            return .requestBody(.notReplayable)
        case CURLE_OUT_OF_MEMORY, .tooLarge:
            return exceededLimit ?? .internalInconsistency("Out of memory.")
        case CURLE_OPERATION_TIMEDOUT:
            // Its limits are those of the loop, and later, unless the loop was late.
            let passed = nextLimit.flatMap { $0.deadline <= loop.now ? $0.duration : nil }
            context.timeLimit = passed ?? passedConnectLimit ?? exchange.options.timeouts.total
            return context.timeLimit == nil ? .cannotConnect(.systemTimeout) : .timedOut(timeoutPhase)
        default:
            return .internalInconsistency(unsafe String(cString: curl_easy_strerror(code)))
        }
    }

    /// The limit on connecting, if libcurl's has passed.
    private var passedConnectLimit: Duration? {
        guard connectLimit != nil, state.clock.connected == nil, let start = state.clock.leftQueue else { return nil }
        // libcurl has it in milliseconds, without the time that has passed before.
        let now = MonotonicInstant.now.advanced(by: .milliseconds(10))
        return exchange.options.timeouts.connect.flatMap { start.advanced(by: $0) <= now ? $0 : nil }
    }

    private static let noIdentity = "The server asked for a client certificate, and none was given."

    /// Whether a connection that has served no request failed after its server had requested a certificate and received
    /// none. With TLS 1.2 the server ends the handshake; with TLS 1.3 the request may already be under way, and the
    /// connection may be reset before the server's alert is read. Servers for which the certificate is optional, or that
    /// close without an alert, as those on Python's asyncio do, end the connection after the handshake; libcurl reports
    /// this as an empty reply, or as a partial file with HTTP/2.
    private func isIdentityMissing(_ code: CURLcode) -> Bool {
        guard state.connection.lacksIdentity, !state.parser.hasBegun else { return false }
        switch code {
        case CURLE_SSL_CONNECT_ERROR, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE,
            CURLE_HTTP2:
            return true
        default: return false
        }
    }

    /// The reason for a connection that ended too early, depending on how much of the response was received.
    var earlyEnd: TransportError.Reason {
        let parser = state.parser
        if parser.isComplete {
            return .connectionLost(
                .inBody(received: downloadProgress.completedBytes, expected: parser.framing.contentLength))
        }
        guard parser.hasBegun else { return .connectionLost(.beforeResponse) }
        if parser.isInHead { return .connectionLost(.inHead) }
        // A connection closed after an interim response means that no final response follows; a reset means that it was
        // lost.
        let isReset = handle.long(CURLINFO_OS_ERRNO) != 0
        return isReset ? .connectionLost(.beforeResponse) : .invalidResponse(.noFinalResponse)
    }

    /// The reason for exceeding one of libcurl's own limits, 300 KiB for all heads and 100 KiB for a line; `nil` after
    /// the head.
    private var exceededLimit: TransportError.Reason? {
        guard !state.parser.isComplete else { return nil }
        return .responseTooLarge(.head(limit: min(exchange.options.maximumHeadSize, 300 << 10)))
    }

    /// Returns the failure for a line of the head that libcurl rejected before passing it on.
    private func headFailure(_ message: String) -> TransportError.ResponseFailure {
        guard state.parser.hasBegun else { return .notHTTP }
        if state.parser.isComplete { return .framing }
        return message.hasPrefix("Invalid Content-Length") ? .contentLength : .headerLine(message)
    }

    private func connectFailure(_ errno: Int32?) -> TransportError.ConnectFailure {
        switch errno {
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

    /// Returns the reason for a proxy that refused a tunnel; `nil` if none did.
    private func tunnelRefusal(_ context: inout FailureContext) -> TransportError.Reason? {
        let status = handle.long(CURLINFO_HTTP_CONNECTCODE)
        guard !state.parser.hasBegun, state.clock.connected == nil, status != 0, status / 100 != 2 else { return nil }
        if let proxy { context.host = proxy.host }
        guard status == 407 else { return .proxy(.tunnelRefused(status: status)) }
        context.proxySchemes = handle.proxySchemes
        return .proxy(.authenticationRequired)
    }

    /// Whether nghttp2 has reset the stream, because the response is malformed (RFC 9113 §8.1.1).
    func isMalformed(_ code: CURLcode) -> Bool {
        guard [CURLE_HTTP2_STREAM, CURLE_PARTIAL_FILE].contains(code), let stream = state.connection.stream,
            let monitor = state.connection.monitor
        else { return false }
        // nghttp2 also resets a stream that ends too early.
        let isShort = state.parser.isComplete && state.parser.framing.contentLength.map { $0 > stream.bodySize } == true
        return !stream.isReset && stream.rejection == nil && !monitor.isOver && !isShort
    }

    /// Whether a proxy has ended the connection instead of opening a tunnel, so that nothing was sent to the server.
    private func isTunnelLost(_ code: CURLcode) -> Bool {
        [CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR].contains(code) && exchange.mayUseProxy
            && state.clock.connected == nil && !state.parser.hasBegun
            && handle.long(CURLINFO_HTTP_CONNECTCODE) == 0 && state.connection.triedAddress != nil
    }

    /// Returns the reason for CURLE_RECV_ERROR, which libcurl uses for a lost connection, a refused tunnel and malformed
    /// chunked coding.
    private func receiveReason(_ context: inout FailureContext) -> TransportError.Reason {
        if let refusal = tunnelRefusal(&context) { return refusal }
        // The second is the failure of libcurl's callback for fields, which takes no more of them.
        let isTooLarge =
            context.message.map {
                $0.hasPrefix("Too large response headers") || isExclusive && $0.contains("returned -902")
            } == true
        if isTooLarge, let exceededLimit { return exceededLimit }
        if context.errno == nil, context.message?.contains("chunk") == true { return .invalidResponse(.framing) }
        return earlyEnd
    }

    /// Returns the TLS failure for a failed handshake. An "unspecified" verification result is libcurl's initial value:
    /// either the certificate was not checked yet, or it is valid but for another name.
    private func handshakeFailure(_ code: CURLcode, _ verifyResult: Int) -> TransportError.TLSFailure {
        guard verifyResult == Int(X509_V_OK) || verifyResult == Int(X509_V_ERR_UNSPECIFIED) else {
            return TransportError.TLSFailure(verifyResult: Int32(truncatingIfNeeded: verifyResult))
        }
        return code == CURLE_PEER_FAILED_VERIFICATION ? .wrongHost : .handshake
    }

    private func tlsReason(_ code: CURLcode, _ context: inout FailureContext) -> TransportError.Reason {
        if code == CURLE_SSL_CACERT_BADFILE { return .tls(.badTrustRoots) }
        let proxyResult = handle.long(CURLINFO_PROXY_SSL_VERIFYRESULT)
        if let proxy, proxy.kind == .https, handle.long(CURLINFO_HTTP_CONNECTCODE) == 0, proxyResult != 0 {
            context.host = proxy.host
            return .proxy(.tls(handshakeFailure(code, proxyResult)))
        }
        switch code {
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR:
            return .tls(handshakeFailure(code, handle.long(CURLINFO_SSL_VERIFYRESULT)))
        default:
            return .tls(.handshake)
        }
    }
}

extension CURLcode {
    /// CURLE_TOO_LARGE, introduced in libcurl 8.6.
    fileprivate static let tooLarge = CURLcode(rawValue: 100)
}
