// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The alternative services that servers have offered to a ``SessionManager``: HTTP/3 on the same host (RFC 7838).
///
/// ```swift
/// for service in api.alternativeServices.services { print(service.host, service.expiry) }
/// api.alternativeServices.removeAll()
/// ```
///
/// Servers add, replace and remove theirs by the field `Alt-Svc` of a response over https, if their certificate and
/// host name were verified. Each origin has at most one. If there are 5,000, a new one takes the place of the one that
/// expires first. Until a response was received over an alternative, one request at a time tries it, for at most 60 s,
/// and the others use the origin's own connection. An alternative that fails is not used for 5 minutes, then for twice
/// as long after each further failure, up to a day. The alternative services last as long as their manager unless they
/// are saved. Any thread may use the store.
public final class AlternativeServiceStore: Sendable {
    private let table = Lock(AlternativeServiceTable())
    private let now: @Sendable () -> Date

    init(now: @escaping @Sendable () -> Date) {
        self.now = now
    }

    /// The alternative services that have not expired, sorted by the host and port of their origins, including those
    /// that have failed and are not used at present.
    public var services: [AlternativeService] {
        table.withLock { $0.current(at: now()) }
    }

    /// Removes the alternative services of all origins with a host, regardless of their ports. A name that is not
    /// stored is ignored.
    ///
    /// - Parameter host: The name of the host, in any case, or an address; an IPv6 address may be in brackets.
    public func remove(_ host: String) {
        table.withLock { $0.remove(host: HostName(host).zonedText) }
    }

    /// Removes all alternative services. Files are not changed. Open connections are still used by requests with
    /// ``ANHTTP/HTTPVersionPolicy/http3``.
    public func removeAll() {
        table.withLock { $0 = AlternativeServiceTable() }
    }

    // MARK: Files

    /// Writes the alternative services that have not expired to a file in the format of curl's option `--alt-svc`.
    ///
    /// The file is replaced atomically and gets mode 0600, because it tells which hosts were visited.
    ///
    /// - Parameter path: The path of the file, whose directory must exist.
    /// - Throws: ``SessionError/file(_:)`` if the file cannot be written.
    public func save(to path: String) throws(SessionError) {
        try PrivateTextFile.write("# Alt-Svc cache", services.map(\.fileLine), to: path)
    }

    /// Adds the alternative services from a file in the format of curl's option `--alt-svc`, each replacing that of the
    /// same origin. Expired ones, those that are not HTTP/3 on the same host, and lines that cannot be parsed are
    /// skipped. If there are 5,000, each further one takes the place of the one that expires first.
    ///
    /// - Parameter path: The path of the file.
    /// - Returns: The number of alternative services that were not skipped; 0 if the file does not exist. If the file
    ///   has several for one origin, each counts, and the last one is used.
    /// - Throws: ``SessionError/file(_:)`` if the file exists and cannot be read.
    @discardableResult
    public func load(from path: String) throws(SessionError) -> Int {
        let now = now()
        let services = try PrivateTextFile.values(in: path, AlternativeService.init).filter { $0.expiry > now }
        table.withLock { table in services.forEach { table.set($0) } }
        return services.count
    }

    // MARK: Requests and responses

    /// Applies the `Alt-Svc` fields of a response over https. A malformed field is ignored. A server that answers 421
    /// over an alternative service has none (§6), and the field of such a response is ignored.
    func note(_ head: ResponseHead, to url: URL) {
        guard head.status.code != 421 else {
            if head.version == .http3 { table.withLock { $0.remove(.init(url)) } }
            return
        }
        let values = head.headers[values: .altSvc]
        guard !values.isEmpty, let field = AlternativeServiceField(values.joined(separator: ",")) else { return }
        guard AlternativeService.isStorable(HostName(url)) else { return }
        let key = AlternativeServiceTable.Key(url)
        let age = head.headers.first(.age).flatMap { Int64($0) } ?? 0
        table.withLock { $0.note(field, from: key, age: max(0, age), at: now()) }
    }

    /// Returns the alternative service that a request should use; `nil` to use the origin's own connection.
    func trial(for url: URL) -> Trial? {
        table.withLock { table in
            guard !table.isEmpty else { return nil }
            let key = AlternativeServiceTable.Key(url)
            return table.take(for: key, at: now()).map { Trial(store: self, key: key, port: $0, isProven: $1) }
        }
    }

    /// The use of an alternative service by one request.
    struct Trial {
        fileprivate let store: AlternativeServiceStore
        fileprivate let key: AlternativeServiceTable.Key
        fileprivate let port: Int
        fileprivate let isProven: Bool

        /// The attribute of the request.
        var route: AlternativeRoute {
            AlternativeRoute(port: port, isProven: isProven) { [weak store, key, port] hasWorked in
                store?.table.withLock {
                    $0.noteUse(of: port, for: key, hasWorked: hasWorked, at: store?.now() ?? .distantPast)
                }
            }
        }

        /// Ends the use. If it had no result, another request may try.
        func end() {
            if !isProven { store.table.withLock { $0.endTrial(of: port, for: key) } }
        }
    }
}

extension AlternativeServiceTable.Key {
    /// Creates the key of a URL's origin.
    fileprivate init(_ url: URL) {
        self.init(host: HostName(url).zonedText, port: url.port ?? 443)
    }
}

extension HTTPField.Name {
    fileprivate static let altSvc = HTTPField.Name(constant: "Alt-Svc")
}

extension SessionManager {
    /// The alternative services that servers have offered to the manager (RFC 7838), empty at first.
    ///
    /// Requests over https with ``ANHTTP/HTTPVersionPolicy/automatic`` use them if the linked libcurl has HTTP/3 by
    /// ngtcp2, the method is idempotent (RFC 9110 §9.2.2), and the body is replayable. Requests through a proxy or a
    /// Unix-domain socket, with trailers, with another authentication than Basic and Bearer, and for a WebSocket
    /// connection do not, nor do those whose options disable ALPN or TLS 1.3. With
    /// ``ANHTTP/ConnectionOptions/hostOverrides``, only an alternative on the origin's port is used. If
    /// ``SessionConfiguration/usesAlternativeServices`` is `false`, servers add none, and none is used.
    public nonisolated var alternativeServices: AlternativeServiceStore { pipeline.alternativeServices }
}

extension Pipeline {
    /// Whether the response to a request may change what is known about its host: it comes from a server whose
    /// certificate and name were verified (RFC 6797 §8.1, RFC 7838 §2.1).
    func learns(from request: Request) -> Bool {
        guard usesStrictTransport || usesAlternativeServices, request.url.isHTTPS else { return false }
        let tls = request.options?.tls ?? TLSOptions()
        let policy =
            tls.hostPolicies.isEmpty ? tls.policy : tls.hostPolicies.value(for: HostName(request.url)) ?? tls.policy
        return !policy.allowsInvalidCertificates && policy.validatesDomainName
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
        if usesStrictTransport { strictTransport.note(response.head, to: request.url) }
        if usesAlternativeServices { alternativeServices.note(response.head, to: request.url) }
        return response
    }

    /// Not inlined: the frame of every request would include the changed one.
    @inline(never)
    private func send(
        _ request: Request, _ call: inout Call, _ next: Next, over trial: AlternativeServiceStore.Trial
    ) async throws -> OpenResponse {
        var request = request
        request[AlternativeRoute.self] = trial.route
        defer { trial.end() }
        return try await next(request, &call)
    }

    /// Returns the alternative service for a request; `nil` to use the origin's own connection.
    private func alternative(for request: Request) -> AlternativeServiceStore.Trial? {
        guard triesAlternativeServices, request.webSocketOptions == nil,
            request.options?.httpVersion ?? .automatic == .automatic
        else { return nil }
        return alternativeServices.trial(for: request.url)
    }
}
