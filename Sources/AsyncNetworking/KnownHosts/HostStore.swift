// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// What a ``SessionManager`` knows about hosts: those to which it sends requests over https only
/// (``SessionManager/strictTransport``), or the alternative services that servers have offered
/// (``SessionManager/alternativeServices``).
///
/// ```swift
/// api.strictTransport.set(host)
/// try api.strictTransport.save(to: "hosts.txt")
/// for service in api.alternativeServices.entries { print(service.host, service.expiry) }
/// ```
///
/// Servers add, replace and remove their entries by a field of a response over https, if their certificate and host name
/// were verified. If they have added 5,000 entries, a new one takes the place of the one that expires first. The entries last
/// as long as their manager unless they are saved. Any thread may use the store.
public struct HostStore<Entry: Sendable>: Sendable {
    private let current: @Sendable () -> [Entry]
    private let change: @Sendable (Change) -> Void
    private let fileTitle: String
    private let fileLine: @Sendable (Entry) -> String
    /// Parses a line; `nil` for a malformed one, or an entry that has expired.
    private let parse: @Sendable (Substring) -> Entry?

    private enum Change {
        case set([Entry], isFromFile: Bool)
        case remove(HostName)
        case removeAll
    }

    /// Creates the store of one of a session's tables.
    init(
        _ state: Lock<SessionState>, _ table: any WritableKeyPath<SessionState, HostTable<Entry>> & Sendable,
        now: @escaping @Sendable () -> Date
    ) where Entry: HostEntry {
        current = { state.withLock { $0[keyPath: table] }.current(at: now()) }
        change = { change in
            state.withLock { state in
                switch change {
                case .set(let entries, isFromFile: true) where Entry.limitsFiles:
                    state[keyPath: table].setWithinLimit(entries)
                case .set(let entries, _): entries.forEach { state[keyPath: table].set($0) }
                case .remove(let host): state[keyPath: table].remove(host)
                case .removeAll: state[keyPath: table] = HostTable()
                }
            }
        }
        fileTitle = Entry.fileTitle
        fileLine = \.fileLine
        parse = { line in Entry(fileLine: line).flatMap { $0.expiry > now() ? $0 : nil } }
    }

    /// The entries that have not expired, sorted by host and port. It includes alternative services that have failed and
    /// are not used at present.
    public var entries: [Entry] { current() }

    /// Removes the entries of a host, regardless of ports. A name that is not stored is ignored; a host above it whose
    /// entry includes its subdomains still applies.
    ///
    /// - Parameter host: The name of the host, in any case, with or without a trailing dot, or an address; an IPv6
    ///   address may be in brackets.
    public func remove(_ host: String) {
        change(.remove(HostName(host)))
    }

    /// Removes all entries. Servers can add theirs again. Files are not changed. Open connections to alternative
    /// services are still used by requests with ``ANHTTP/HTTPVersionPolicy/http3``.
    public func removeAll() {
        change(.removeAll)
    }

    /// Writes the entries that have not expired to a file in the format of curl's option `--hsts` or `--alt-svc`.
    ///
    /// The file is replaced atomically and gets mode 0600, because it tells which hosts were visited.
    ///
    /// - Parameter path: The path of the file, whose directory must exist.
    /// - Throws: ``SessionError/file(_:)`` if the file cannot be written.
    public func save(to path: String) throws(SessionError) {
        try PrivateTextFile.write(fileTitle, entries.map(fileLine), to: path)
    }

    /// Adds the entries of a file in the format of curl's option `--hsts` or `--alt-svc`, each replacing that of the same
    /// host and port. Expired ones, alternatives other than HTTP/3 on the same host, and lines that cannot be parsed are
    /// skipped. The limit of 5,000 applies to alternative services only, each further one of which takes the place of
    /// the one that expires first.
    ///
    /// - Parameter path: The path of the file.
    /// - Returns: The number of entries that were not skipped; 0 if the file does not exist. If the file has several for
    ///   one host and port, each counts, and the last one is used.
    /// - Throws: ``SessionError/file(_:)`` if the file exists and cannot be read.
    @discardableResult
    public func load(from path: String) throws(SessionError) -> Int {
        let entries = try PrivateTextFile.values(in: path, parse)
        change(.set(entries, isFromFile: true))
        return entries.count
    }
}

extension HostStore where Entry == StrictTransportHost {
    /// Adds a host, replacing one with the same name. It applies to every request that is sent from then on, including
    /// retries of running calls, until it expires, unless ``SessionConfiguration/usesStrictTransport`` is `false`. The
    /// limit of 5,000 does not apply.
    public func set(_ host: StrictTransportHost) {
        change(.set([host], isFromFile: false))
    }
}

extension SessionManager {
    /// The hosts to which the manager's requests are sent over https only (RFC 6797, HTTP Strict Transport Security);
    /// empty at first.
    ///
    /// Servers add themselves by the field `Strict-Transport-Security`, or remove themselves, and the program can do so
    /// for any host. A request to one of the hosts is sent with `https` in place of `http`, and to port 443 in place of
    /// 80; other ports are kept (§8.3). If ``SessionConfiguration/usesStrictTransport`` is `false`, servers add none, and
    /// the hosts have no effect on requests.
    public nonisolated var strictTransport: HostStore<StrictTransportHost> {
        HostStore(pipeline.state, \.strictTransport, now: pipeline.now)
    }

    /// The alternative services that servers have offered to the manager: HTTP/3 on the same host (RFC 7838); empty at
    /// first.
    ///
    /// Servers add, replace and remove theirs by the field `Alt-Svc`. Each origin has at most one. Until a response was
    /// received over an alternative, one request at a time tries it, for at most 60 s, and the others use the origin's own
    /// connection. An alternative that fails is not used for 5 minutes, then for twice as long after each further failure,
    /// up to a day.
    ///
    /// Requests over https with ``ANHTTP/HTTPVersionPolicy/automatic`` use them if the linked libcurl has HTTP/3 by
    /// ngtcp2, the method is idempotent (RFC 9110 §9.2.2), and the body is replayable. Requests through a proxy or a
    /// Unix-domain socket, with trailers, with another authentication than Basic and Bearer, with a streamed response and
    /// ``ANHTTP/ConnectionLimits/memoryBudget``, and for a WebSocket connection do not, nor do those whose options disable ALPN or
    /// TLS 1.3. With
    /// ``ANHTTP/ConnectionOptions/hostOverrides``, only an alternative on the origin's port is used. If
    /// ``SessionConfiguration/usesAlternativeServices`` is `false`, servers add none, and none is used.
    public nonisolated var alternativeServices: HostStore<AlternativeService> {
        HostStore(pipeline.state, \.alternativeServices, now: pipeline.now)
    }
}
