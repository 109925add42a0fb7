// SPDX-License-Identifier: MIT

package import ANHTTP
package import FoundationEssentials

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
        while let dot = labels.firstIndex(of: ".") {
            labels = labels[labels.index(after: dot)...]
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
