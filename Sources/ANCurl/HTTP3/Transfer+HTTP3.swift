// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
package import CCurl
import COpenSSL
import FoundationEssentials
import Glibc
import HTTPTypes

// The use of an alternative service, and the return to the origin's own connection if it fails.
//
// libcurl's cache of alternative services belongs to an easy handle, and would have it use QUIC only. With
// CURL_HTTP_VERSION_3 libcurl attempts QUIC and TCP at the same time, but prefers an open TCP connection, which the
// exchange that learned of the alternative has left behind: therefore the first exchange makes a new connection, and
// those after it allow HTTP/3 only.

/// A failure before the first byte of a response, of an exchange with an alternative service.
package struct AlternativeFailure {
    package let cause: Cause
    /// Whether the exchange attempts QUIC and TCP at the same time.
    package let isRacing: Bool
    /// Whether the latest connection spoke HTTP/3.
    package let isOnHTTP3: Bool
    /// The number of times that a connection was ready for the request.
    package let attempts: Int

    package init(cause: Cause, isRacing: Bool, isOnHTTP3: Bool, attempts: Int) {
        (self.cause, self.isRacing, self.isOnHTTP3, self.attempts) = (cause, isRacing, isOnHTTP3, attempts)
    }

    /// The end of the attempt.
    package enum Cause {
        /// libcurl's error, other than one of this side.
        case error(CURLcode)
        /// This process has no room for another socket.
        case noSocket
        /// The time limit for connecting to an alternative service.
        case connectLimit
        /// Another time limit, which ends the exchange.
        case limit
    }

    /// The consequence of a failure.
    package enum Verdict: Hashable, Sendable {
        /// It says nothing about the alternative service.
        case none
        /// The alternative service has failed, and so has the exchange.
        case failed
        /// The request is sent again without the alternative service, which may work: a server may close a connection that
        /// was idle when the request was sent.
        case left
        /// The alternative service has failed, and the request is sent again without it.
        case failedAndLeft

        var isReported: Bool { self == .failed || self == .failedAndLeft }
        var isLeft: Bool { self == .left || self == .failedAndLeft }
    }

    /// Returns what follows from the failure.
    ///
    /// | cause | attempt | verdict |
    /// |---|---|---|
    /// | no room for a socket | any: the origin may have a connection | left |
    /// | the connection limit | not a race, the only kind that has the limit | failed and left |
    /// | another limit | a race that QUIC has not won | none |
    /// | | any other | failed |
    /// | an error that the origin's own connection would have met, too | any | none |
    /// | any other error | a race in which both ways failed, or a connection without HTTP/3 | none |
    /// | | no connection | failed and left |
    /// | | the first connection, which was made for the request | failed and left |
    /// | | the first connection, which was reused | left |
    /// | | a later connection | failed if it was made for the request |
    package func verdict(isNewConnection: () -> Bool) -> Verdict {
        let isAlternative = isOnHTTP3 || !isRacing
        switch cause {
        case .noSocket: return .left
        case .connectLimit: return isAlternative ? .failedAndLeft : .left
        case .limit: return isAlternative ? .failed : .none
        case .error(CURLE_COULDNT_RESOLVE_HOST), .error(CURLE_OPERATION_TIMEDOUT), .error(CURLE_ABORTED_BY_CALLBACK),
            .error(CURLE_OUT_OF_MEMORY), .error(CURLE_INTERFACE_FAILED):
            return .none
        case .error:
            guard attempts > 0 else { return isRacing ? .none : .failedAndLeft }
            guard isOnHTTP3 else { return .none }
            switch (isNewConnection(), attempts == 1) {
            case (true, true): return .failedAndLeft
            case (false, true): return .left
            case (true, false): return .failed
            case (false, false): return .none
            }
        }
    }
}

/// Whether a connection runs over QUIC, as far as that follows from the options.
package enum QUICUse: Sendable {
    /// It runs over TCP.
    case none
    /// It runs over QUIC or TCP, whichever was faster.
    case possible
    /// It runs over QUIC.
    case certain

    /// Returns the version of HTTP that a connection to an https URL speaks, as far as it matters: over HTTP/2 bytes may
    /// arrive at any time, and HTTP/3 has no TCP socket.
    ///
    /// libcurl gives access to the sessions of QUIC only from 8.16 on.
    ///
    /// - Parameters:
    ///   - protocolID: The protocol that was selected by ALPN, empty for none; `nil` without access to a TLS session.
    ///   - usesOpenSSL: Whether libcurl gives access to all sessions over TCP. Otherwise their protocol is unknown.
    package func version(protocolID: String?, usesOpenSSL: Bool) -> HTTPVersion {
        switch (self, protocolID) {
        case (.certain, _), (_, "h3"): .http3
        case (.possible, nil) where usesOpenSSL: .http3
        case (_, nil), (_, "h2"): .http2
        case (_, _?): .http1_1
        }
    }
}

extension Transfer {
    /// Whether the connection runs over QUIC.
    private var quicUse: QUICUse {
        if let route = state.alternative { return exchange.isRacing(route) ? .possible : .certain }
        return switch exchange.version {
        case .http3Only: .certain
        case .http3: .possible
        case .automatic, .http1, .http2, .http2PriorKnowledge: .none
        }
    }

    /// The version that the connection speaks, as far as it matters.
    var negotiatedVersion: HTTPVersion {
        guard exchange.isSecure else {
            return exchange.version == .http2PriorKnowledge ? .http2 : .http1_1
        }
        let protocolID = unsafe tlsSession.map { session in
            var name: UnsafePointer<UInt8>?
            var length: UInt32 = 0
            unsafe SSL_get0_alpn_selected(session, &name, &length)
            return unsafe String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
        }
        return quicUse.version(protocolID: protocolID, usesOpenSSL: CurlLibrary.usesOpenSSL)
    }

    /// Notes the version that the connection speaks, and that an attempt at an alternative service is over.
    func noteVersion() {
        let version = negotiatedVersion
        state.connection.version = version
        // That of the other attempt, over QUIC or TCP, or of a resolver.
        state.connection.refusal = nil
        guard !state.connection.isHTTP3, isRacing || exchange.version == .http3 else { return }
        state.alternative?.report(false)
    }

    /// Notes that the alternative service has answered.
    func noteAlternativeAnswered() {
        if let route = state.alternative, state.connection.isHTTP3 { route.report(true) }
    }

    /// Decides what a failure says about the alternative service, and reports it if it has failed. Returns whether the
    /// request must be sent again without it. Only requests that may be repeated have one.
    func leavesAlternative(after failure: AlternativeFailure.Cause) -> Bool {
        // While the request waited, nothing was tried.
        guard let route = state.alternative, !state.parser.hasBegun, state.clock.leftQueue != nil else { return false }
        var failure = failure
        if case .error = failure {
            if state.failure != nil || uploadError != nil { return false }
            if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(state.connection.socketError) { failure = .noSocket }
        }
        let verdict = AlternativeFailure(
            cause: failure, isRacing: exchange.isRacing(route), isOnHTTP3: state.connection.isHTTP3,
            attempts: state.repeating.attempts
        ).verdict { handle.long(CURLINFO_NUM_CONNECTS) > 0 }
        if verdict.isReported { route.report(false) }
        return verdict.isLeft
    }

    /// Whether the exchange attempts QUIC and TCP at the same time.
    var isRacing: Bool { state.alternative.map(exchange.isRacing) ?? false }

    /// The time limit for connecting to an alternative service, after which the request is sent without it: 2 s, or a
    /// quarter of the connection or total limit. `nil` if no such connection is being made.
    var alternativeLimit: TransferClock.Limit? {
        guard state.alternative != nil, !isRacing, let start = state.clock.leftQueue, state.clock.connected == nil
        else {
            return nil
        }
        let timeouts = exchange.options.timeouts
        let least = [timeouts.connect, timeouts.total].compactMap(\.self).min().map { $0 / 4 }
        return state.clock.limit(.connect, min(least ?? .seconds(2), .seconds(2)), since: start)
    }
}

extension EasyHandle {
    /// Sets the version of HTTP for an exchange with an alternative service.
    func apply(_ route: AlternativeRoute, isRacing: Bool) throws(CurlFailure) {
        guard isRacing else { return try set(CURLOPT_HTTP_VERSION, CCURL_HTTP_VERSION_3ONLY) }
        try set(CURLOPT_HTTP_VERSION, CCURL_HTTP_VERSION_3)
        try set(CURLOPT_FRESH_CONNECT, true)
    }
}

extension Exchange {
    /// Checks the conditions under which libcurl can use HTTP/3, if the options require it.
    ///
    /// - Throws: ``TransportError/Reason/unsupported(_:)``
    func checkHTTP3() throws(TransportError) {
        let policy = version
        guard policy == .http3 || policy == .http3Only else { return }
        guard try CurlLibrary.current.get().hasHTTP3 else { throw TransportError(.unsupported(.http3)) }
        guard policy == .http3Only else { return }
        guard isSecure else { throw TransportError(.unsupported("HTTP/3 without TLS")) }
        guard !bypassesQUIC else {
            throw TransportError(.unsupported("HTTP/3 through a proxy or a Unix-domain socket"))
        }
    }

    /// The HTTP versions that the exchange may use. libcurl fails a request for an http URL that prefers HTTP/3, and speaks
    /// HTTP/1.1 with a proxy that forwards one, whatever is known of the server. It receives up to 10 MB of a stream that
    /// is paused, so that a budget requires HTTP/1.1, unless the program chooses a version. So do WebSockets.
    var version: HTTPVersionPolicy {
        switch options.httpVersion {
        case _ where webSocket != nil: .http1
        case .automatic where memory != nil: .http1
        case .http3 where !isSecure || bypassesQUIC: .automatic
        case .http2PriorKnowledge where isForwarded: .http1
        case let policy: policy
        }
    }

    /// The alternative service that the request should use; `nil` without one, or if libcurl cannot use it with the
    /// request's options.
    ///
    /// Requests through a proxy do not use it: QUIC would bypass the proxy.
    var usableAlternative: AlternativeRoute? {
        guard let route = request[AlternativeRoute.self], isSecure, options.httpVersion == .automatic,
            CurlLibrary.usesAlternativeRoutes, request.mayUseAlternativeRoute, !bypassesQUIC, memory == nil,
            options.tls.maximumVersion ?? .v1_3 >= .v1_3,
            options.connection.hostOverrides.isEmpty || route.port == port
        else { return nil }
        return route
    }

    /// Whether the exchange attempts QUIC and TCP at the same time: on the origin's port, as long as HTTP/3 has not
    /// worked there.
    func isRacing(_ route: AlternativeRoute) -> Bool { !route.isProven && route.port == port }

    /// Returns the header fields and host overrides that are passed to libcurl, with the signature of this time.
    ///
    /// - Parameter withoutExpectation: Whether `Expect` is left out, because a server refused it.
    func headerList(
        by route: AlternativeRoute?, withoutExpectation: Bool = false
    ) throws(TransportError) -> HeaderList {
        let signature = authentication?.signature
        guard route != nil || withoutExpectation || signature != nil else {
            return try headerList(request, sharedOptions)
        }
        var (request, options) = (request, options)
        if let signature { request = try request.signed(by: signature, handlingCookies: cookies != .none) }
        if withoutExpectation {
            request.headers[.expect] = nil
            options.expectContinueTimeout = nil
        }
        guard let route else { return try headerList(request, SharedTransferOptions(options)) }
        // The field names the alternative (RFC 7838 §5). A race may end at the origin.
        if !isRacing(route) {
            request.headers[HTTPField.Name(constant: "Alt-Used")] = "\(request.url.hostOfAuthority):\(route.port)"
        }
        if route.port != port {
            // Empty names stand for the host of the URL. See CURLOPT_CONNECT_TO(3).
            options.connection.hostOverrides = [.init(host: "", port: port, address: "", addressPort: route.port)]
        }
        return try headerList(request, SharedTransferOptions(options))
    }

    private func headerList(
        _ request: borrowing Request, _ options: SharedTransferOptions
    ) throws(TransportError) -> HeaderList {
        try HeaderList(
            request, options, upload, sendsBody: sendsBody, declaresEmptyBody: declaresEmptyBody,
            leavesOutCookies: cookies != .none)
    }

    /// The port of the URL.
    var port: Int { request.url.port ?? (isSecure ? 443 : 80) }

    /// Whether the request may be sent through a proxy, or is sent through a Unix-domain socket.
    private var bypassesQUIC: Bool {
        options.connection.unixSocketPath != nil || mayUseProxy
    }
}
