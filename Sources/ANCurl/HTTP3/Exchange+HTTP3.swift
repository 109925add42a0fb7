// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import Glibc
import HTTPTypes

extension Exchange {
    /// Checks the conditions under which libcurl can use HTTP/3, if the options require it.
    ///
    /// - Throws: ``TransportError/Reason/unsupported(_:)``
    func checkHTTP3() throws(TransportError) {
        let policy = options.httpVersion
        guard policy == .http3 || policy == .http3Only else { return }
        guard try CurlLibrary.current.get().hasHTTP3 else { throw TransportError(.unsupported(.http3)) }
        guard policy == .http3Only, webSocket == nil else { return }
        guard isSecure else { throw TransportError(.unsupported("HTTP/3 without TLS")) }
        guard !bypassesQUIC else {
            throw TransportError(.unsupported("HTTP/3 through a proxy or a Unix-domain socket"))
        }
    }

    /// The HTTP versions that the exchange may use. libcurl fails a request for an http URL that prefers HTTP/3, and
    /// without negotiation it would use HTTP/2 on an open connection.
    var version: HTTPVersionPolicy {
        switch options.httpVersion {
        case .automatic where !options.tls.negotiatesProtocol, .http2 where !options.tls.negotiatesProtocol: .http1
        case .http3 where !isSecure || bypassesQUIC: .automatic
        case let policy: policy
        }
    }

    /// The alternative service that the request should use; `nil` without one, or if libcurl cannot use it with the
    /// request's options.
    ///
    /// Requests through a proxy do not use it: QUIC would bypass the proxy. Nor do requests that may not be repeated:
    /// if the server closes its idle connection at the moment when the request is sent, the frames of HTTP/2 say that
    /// it was not processed, and those of HTTP/3 cannot be read.
    var usableAlternative: AlternativeRoute? {
        guard let route = request[AlternativeRoute.self], isSecure, options.httpVersion == .automatic,
            (try? CurlLibrary.current.get().usesNGTCP2) == true, mayBeRepeated, request.trailers == nil,
            webSocket == nil, authentication == nil, !bypassesQUIC,
            options.tls.negotiatesProtocol, options.tls.maximumVersion ?? .v1_3 >= .v1_3,
            options.connection.hostOverrides.isEmpty || route.port == port
        else { return nil }
        return route
    }

    /// Whether the exchange attempts QUIC and TCP at the same time: on the origin's port, as long as HTTP/3 has not
    /// worked there.
    func isRacing(_ route: AlternativeRoute) -> Bool { !route.isProven && route.port == port }

    /// Returns the header fields and host overrides that are passed to libcurl.
    ///
    /// - Parameter withoutExpectation: Whether `Expect` is left out, because a server refused it.
    func headerList(
        by route: AlternativeRoute?, withoutExpectation: Bool = false
    ) throws(TransportError) -> HeaderList {
        guard route != nil || withoutExpectation else { return try headerList(request, sharedOptions) }
        var (request, options) = (request, options)
        if withoutExpectation {
            request.headers[.expect] = nil
            options.expectContinueTimeout = nil
        }
        guard let route else { return try headerList(request, SharedTransferOptions(options)) }
        // The field names the alternative (RFC 7838 §5). A race may end at the origin.
        if !isRacing(route), let name = HTTPField.Name("Alt-Used") {
            request.headers[name] = "\(request.url.host() ?? ""):\(route.port)"
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
            request, options, upload, sendsBody: sendsBody, leavesOutCookies: handlesCookies,
            isSigned: authentication?.signature != nil)
    }

    /// The port of the URL.
    var port: Int { request.url.port ?? (isSecure ? 443 : 80) }

    /// Whether the request may be sent through a proxy, or is sent through a Unix-domain socket. Exceptions from the
    /// proxy are ignored.
    private var bypassesQUIC: Bool {
        if options.connection.unixSocketPath != nil { return true }
        return options.proxy.mayBeUsed(isSecure: isSecure) { name in
            unsafe getenv(name).map { unsafe String(cString: $0) }
        }
    }
}
