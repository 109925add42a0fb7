// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

extension Pipeline {
    /// Returns the URL to send a request to: its own or another one, with `https` if the host is known to require it (RFC
    /// 6797 §8.2).
    func strictURL(_ url: URL, for request: Request) -> URL {
        url.isPlainHTTP && requiresTLS(url, for: request) ? url.withTLS : url
    }

    /// Replaces the URL of a request by the one to send it to. A credential for the former is one for the latter.
    func requireTLS(of request: inout Request) {
        let url = strictURL(request.url, for: request)
        if url != request.url { request.upgrade(to: url) }
    }

    /// Returns the origin to which a request is sent.
    func origin(of request: Request) -> Origin { origin(of: request.url, for: request) }

    /// Returns the origin to which a request is sent if it has the given URL.
    func origin(of url: URL, for request: Request) -> Origin { Origin(strictURL(url, for: request)) }

    /// Whether a response is one of the server to which a request is sent. An interceptor may have sent the request to
    /// another one, without credentials.
    func isAnswer(_ head: ResponseHead, to request: Request) -> Bool {
        origin(of: head.url, for: request) == origin(of: request)
    }

    /// Returns the origins of which a request is one: its URL's, and those over http whose requests are sent there, too.
    func origins(of request: Request) -> [Origin] {
        let origin = Origin(request.url)
        return requiresTLS(request.url, for: request) ? [origin] + origin.overPlainHTTP : [origin]
    }

    private func requiresTLS(_ url: URL, for request: Request) -> Bool {
        usesStrictTransport
            && state.withLock { state in
                !state.strictTransport.isEmpty && state.strictTransport.requiresTLS(asciiName(of: url), at: now())
            } && !usesSocket(request)
    }

    /// Returns the host of a URL in the form in which hosts are known (RFC 6797 §10.1).
    private func asciiName(of url: URL) -> HostName {
        let name = HostName(url)
        return name.isInternational ? transport.features.asciiName(name) ?? name : name
    }

    /// Whether a request is sent over a Unix-domain socket, to another server than the one that is known by the name of
    /// its URL's host.
    private func usesSocket(_ request: Request) -> Bool {
        request.options(inheriting: options).value.connection.unixSocketPath != nil
    }

    /// Whether the response to a request may change what is known about its host: it comes from a server whose
    /// certificate and name were verified (RFC 6797 §8.1, RFC 7838 §2.1).
    func learns(from request: Request) -> Bool {
        guard usesStrictTransport || usesAlternativeServices, request.url.isHTTPS, !usesSocket(request) else {
            return false
        }
        let policy = Self.policy(for: request)
        return !policy.allowsInvalidCertificates && policy.validatesDomainName
    }

    private static func policy(for request: Request) -> SecurityPolicy {
        (request.options?.tls ?? TLSOptions()).policy(for: HostName(request.url))
    }

    /// Sends a request over https, over an alternative service if there is one, and notes what the response says about
    /// its host.
    func learn(_ request: Request, _ call: inout Call, _ next: Next) async throws -> OpenResponse {
        let response =
            if let trial = alternative(for: request) {
                try await send(request, &call, next, over: trial)
            } else {
                try await next(request, &call)
            }
        if response.head.status.code == 421 { leaveAlternative(after: response.head, to: request.url) }
        // An evaluator may have accepted the server in spite of a failure.
        guard Self.policy(for: request).evaluator == nil else { return response }
        if usesStrictTransport { noteStrictTransport(response.head, to: request.url) }
        if usesAlternativeServices { noteAlternatives(response.head, to: request.url) }
        return response
    }

    /// Not inlined: the frame of every request would include the changed one.
    @inline(never)
    private func send(
        _ request: Request, _ call: inout Call, _ next: Next, over trial: AlternativeTrial
    ) async throws -> OpenResponse {
        var request = request
        request[AlternativeRoute.self] = trial.route
        defer { trial.end() }
        return try await next(request, &call)
    }

    /// Returns the alternative service for a request; `nil` to use the origin's own connection.
    private func alternative(for request: Request) -> AlternativeTrial? {
        guard triesAlternativeServices, request.mayUseAlternativeRoute,
            request.options?.httpVersion ?? .automatic == .automatic
        else { return nil }
        let now = now()
        return state.withLock { state in
            guard !state.alternativeServices.isEmpty else { return nil }
            let key = AlternativeService.Key(request.url)
            return state.alternativeServices.take(for: key, at: now).map { [state = self.state] in
                AlternativeTrial(state: state, now: self.now, key: key, port: $0, use: $1)
            }
        }
    }

    /// Adds or removes the host of a response by its first `Strict-Transport-Security` field (RFC 6797 §8.1). A malformed
    /// field is ignored, as is that of an address.
    @inline(never)
    private func noteStrictTransport(_ head: ResponseHead, to url: URL) {
        guard let value = head.headers.first(.strictTransportSecurity), let field = StrictTransportField(value) else {
            return
        }
        let name = asciiName(of: url)
        state.withLock { $0.strictTransport.note(field, from: name, at: now()) }
    }

    /// Removes the alternative services of a server that answers 421 over one: it has none (RFC 7838 §6).
    @inline(never)
    private func leaveAlternative(after head: ResponseHead, to url: URL) {
        guard usesAlternativeServices, head.version == .http3 else { return }
        state.withLock { $0.alternativeServices.remove(AlternativeService.Key(url)) }
    }

    /// Applies the `Alt-Svc` fields of a response over https, except with status 421. A malformed field is ignored.
    @inline(never)
    private func noteAlternatives(_ head: ResponseHead, to url: URL) {
        guard head.status.code != 421 else { return }
        let values = head.headers[values: .altSvc]
        guard !values.isEmpty, let field = AlternativeServiceField(values.joined(separator: ",")) else { return }
        guard HostName(url).isStorable else { return }
        let age = max(0, head.headers.first(.age).flatMap { Int64($0) } ?? 0)
        state.withLock { $0.alternativeServices.note(field, from: AlternativeService.Key(url), age: age, at: now()) }
    }
}

/// The use of an alternative service by one request.
private struct AlternativeTrial {
    let state: Lock<SessionState>
    let now: @Sendable () -> Date
    let key: AlternativeService.Key
    let port: Int
    let use: AlternativeUse

    /// The attribute of the request.
    var route: AlternativeRoute {
        AlternativeRoute(port: port, isProven: use == .proven) { [state, now, key, port] hasWorked in
            state.withLock { $0.alternativeServices.noteUse(of: port, for: key, hasWorked: hasWorked, at: now()) }
        }
    }

    /// Ends the use. If it had no result, another request may try.
    func end() {
        if use != .proven { state.withLock { $0.alternativeServices.end(use, of: port, for: key) } }
    }
}

extension HTTPField.Name {
    fileprivate static let altSvc = HTTPField.Name(constant: "Alt-Svc")
}

extension URL {
    /// The URL with `https` in place of `http`, and without port 80 (RFC 6797 §8.3). Other ports are kept.
    fileprivate var withTLS: URL {
        guard var components = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return self }
        components.scheme = "https"
        if components.port == 80 { components.port = nil }
        return components.url ?? self
    }
}
