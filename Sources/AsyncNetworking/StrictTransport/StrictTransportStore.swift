// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
package import FoundationEssentials

/// The hosts to which a ``SessionManager`` sends requests over https only (RFC 6797, HTTP Strict Transport Security).
///
/// ```swift
/// api.strictTransport.set(host)
/// try api.strictTransport.save(to: "hosts.txt")
/// ```
///
/// Servers add themselves by the field `Strict-Transport-Security` of a response over https, if their certificate and
/// host name were verified, or remove themselves. The program can do so for any host. A request to one of the hosts is
/// sent with `https` in place of `http`, and to port 443 in place of 80; other ports are kept (§8.3). If there are
/// 5,000 hosts, a server that adds itself takes the place of the one that expires first. The hosts last as long as
/// their manager unless they are saved. Any thread may use the store.
public final class StrictTransportStore: Sendable {
    private let table = Lock(StrictTransportTable())
    private let now: @Sendable () -> Date

    init(now: @escaping @Sendable () -> Date) {
        self.now = now
    }

    /// The hosts that have not expired, sorted by name.
    public var hosts: [StrictTransportHost] {
        table.withLock { $0 }.current(at: now())
    }

    /// Returns whether https is required for a URL, regardless of its scheme and of
    /// ``SessionConfiguration/usesStrictTransport`` (RFC 6797 §8.2): whether its host is known, or a host above it that
    /// includes its subdomains. `false` for an IP address.
    package func requiresTLS(for url: URL) -> Bool {
        table.withLock { table in !table.isEmpty && table.requiresTLS(HostName(url), at: now()) }
    }

    /// Adds a host, replacing one with the same name. It applies to every request that is sent from then on, including
    /// retries of running calls, until it expires, unless ``SessionConfiguration/usesStrictTransport`` is `false`. The
    /// limit of 5,000 does not apply.
    public func set(_ host: StrictTransportHost) {
        table.withLock { $0.set(host) }
    }

    /// Removes a host. A name that is not stored is ignored; a host above it that includes its subdomains still
    /// applies.
    ///
    /// - Parameter host: The name of the host, in any case, with or without a trailing dot.
    public func remove(_ host: String) {
        table.withLock { $0.remove(HostName(host).text) }
    }

    /// Removes all hosts. Servers can add themselves again. Files are not changed.
    public func removeAll() {
        table.withLock { $0 = StrictTransportTable() }
    }

    // MARK: Files

    /// Writes the hosts that have not expired to a file in the format of curl's option `--hsts`.
    ///
    /// The file is replaced atomically and gets mode 0600, because it tells which hosts were visited.
    ///
    /// - Parameter path: The path of the file, whose directory must exist.
    /// - Throws: ``SessionError/file(_:)`` if the file cannot be written.
    public func save(to path: String) throws(SessionError) {
        try PrivateTextFile.write("# HSTS cache", hosts.map(\.fileLine), to: path)
    }

    /// Adds the hosts from a file in the format of curl's option `--hsts`, each replacing one with the same name.
    /// Expired hosts and lines that cannot be parsed are skipped. The limit of 5,000 does not apply.
    ///
    /// - Parameter path: The path of the file.
    /// - Returns: The number of hosts that were not skipped; 0 if the file does not exist. If the file names a host
    ///   several times, each counts, and the last one is used.
    /// - Throws: ``SessionError/file(_:)`` if the file exists and cannot be read.
    @discardableResult
    public func load(from path: String) throws(SessionError) -> Int {
        let now = now()
        let hosts = try PrivateTextFile.values(in: path, StrictTransportHost.init).filter { $0.expiry > now }
        table.withLock { table in hosts.forEach { table.set($0) } }
        return hosts.count
    }

    // MARK: Responses

    /// Adds or removes the host of a response by its first `Strict-Transport-Security` field (§8.1). A malformed field
    /// is ignored, as is that of an address.
    func note(_ head: ResponseHead, to url: URL) {
        guard let value = head.headers.first(.strictTransportSecurity), let field = StrictTransportField(value) else {
            return
        }
        table.withLock { $0.note(field, from: HostName(url), at: now()) }
    }
}

extension SessionManager {
    /// The hosts to which the manager's requests are sent over https only (RFC 6797); empty at first. If
    /// ``SessionConfiguration/usesStrictTransport`` is `false`, servers add none, and the hosts have no effect on
    /// requests.
    public nonisolated var strictTransport: StrictTransportStore { pipeline.strictTransport }
}

/// The hosts that are known to require https, with the rules of RFC 6797.
package struct StrictTransportTable: Sendable {
    /// The number of hosts that servers can add. Every server adds its own, and one server may have many names.
    package static let maximumCount = 5_000

    private var hosts: [String: StrictTransportHost] = [:]

    /// Creates a table without hosts.
    package init() {}

    /// Whether there are no hosts, not even expired ones.
    package var isEmpty: Bool { hosts.isEmpty }

    /// Returns the hosts that have not expired, sorted by name.
    package func current(at now: Date) -> [StrictTransportHost] {
        hosts.values.filter { $0.expiry > now }.sorted { $0.host < $1.host }
    }

    /// Adds a host, replacing one with the same name.
    package mutating func set(_ host: StrictTransportHost) {
        hosts[host.host] = host
    }

    /// Removes a host.
    ///
    /// - Parameter host: The name in lower case, without a trailing dot.
    package mutating func remove(_ host: String) {
        hosts[host] = nil
    }

    /// Adds, renews or removes the host of a response with the field (§8.1). If there is no room, the host that would
    /// be the first to expire is removed.
    package mutating func note(_ field: StrictTransportField, from host: HostName, at now: Date) {
        guard field.maximumAge > 0 else {
            // An address has no entry.
            return remove(host.text)
        }
        let expiry = now.addingTimeInterval(Double(field.maximumAge))
        guard
            let entry = StrictTransportHost(
                host: host.text, expiry: expiry, includesSubdomains: field.includesSubdomains)
        else { return }
        if hosts.count >= Self.maximumCount, hosts[entry.host] == nil,
            let first = hosts.values.min(by: { $0.expiry < $1.expiry })
        {
            remove(first.host)
        }
        set(entry)
    }

    /// Whether https is required for a host (§8.2): it is known, or a host above it is known with its subdomains.
    package func requiresTLS(_ host: HostName, at now: Date) -> Bool {
        guard !hosts.isEmpty, !host.isAddress else { return false }
        if let known = hosts[host.text], known.expiry > now { return true }
        var labels = host.text[...]
        while let dot = labels.unicodeScalars.firstIndex(of: ".") {
            labels = labels[labels.unicodeScalars.index(after: dot)...]
            if let known = hosts[String(labels)], known.includesSubdomains, known.expiry > now { return true }
        }
        return false
    }
}

extension URL {
    /// The URL with `https` in place of `http`, and without port 80 (RFC 6797 §8.3). Other ports are kept.
    var withTLS: URL {
        guard var components = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return self }
        components.scheme = "https"
        if components.port == 80 { components.port = nil }
        return components.url ?? self
    }
}

extension Pipeline {
    /// Returns the URL to send a request to: with `https` if its host is known to require it.
    func strictURL(_ url: URL) -> URL {
        usesStrictTransport && url.isPlainHTTP && strictTransport.requiresTLS(for: url) ? url.withTLS : url
    }
}
