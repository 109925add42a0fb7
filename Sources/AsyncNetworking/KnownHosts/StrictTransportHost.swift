// SPDX-License-Identifier: MIT

package import ANHTTP
public import FoundationEssentials

/// A host to which a session sends requests over https only (RFC 6797), once ``HostStore/set(_:)`` has added
/// it: `https` replaces `http`, and port 443 replaces 80.
public struct StrictTransportHost: Hashable, Sendable {
    /// The host name in lower case, without a trailing dot.
    public let host: String
    /// The time at which the entry expires, and from which it has no effect; `Date.distantFuture`, the default, for
    /// never.
    public var expiry: Date
    /// Whether the hosts below ``host`` are included; `false` by default.
    public var includesSubdomains: Bool

    /// Creates an entry for a host; `nil` if the name is empty, an IP address, or contains whitespace, quotation marks,
    /// control characters or characters outside of ASCII.
    ///
    /// - Parameters:
    ///   - host: The host name, in any case, with or without a trailing dot; internationalized names in their ASCII
    ///     form (`xn--…`).
    ///   - expiry: The time at which the entry expires; `Date.distantFuture`, the default, for never. A later time
    ///     counts as that, and an entry whose time has passed has no effect.
    ///   - includesSubdomains: Whether the hosts below `host` are included; `false` by default.
    public init?(host: String, expiry: Date = .distantFuture, includesSubdomains: Bool = false) {
        let name = HostName(host)
        guard !name.isAddress, name.isStorable else { return nil }
        self.host = name.text
        self.expiry = min(expiry, .distantFuture)
        self.includesSubdomains = includesSubdomains
    }
}

extension StrictTransportHost: HostEntry {
    package var key: String { host }
    package static var noExperience: Void { () }
    package func isSameService(as other: StrictTransportHost) -> Bool { true }
    package static var fileTitle: String { "# HSTS cache" }
    package static var limitsFiles: Bool { false }

    /// Parses a line of curl's HSTS cache, such as `.example.com "20301231 23:59:59"`; `nil` for comments and malformed
    /// lines.
    ///
    /// A leading dot includes the hosts below. The time is in UTC, or `unlimited`.
    package init?(fileLine line: Substring) {
        let words = line.split(at: "\"", omittingEmptySubsequences: false)
        guard words.count == 3, !line.hasPrefix("#") else { return nil }
        let name = words[0].trimmingBlanks
        let time =
            words[1] == "unlimited" ? Date.distantFuture : try? Date.ISO8601FormatStyle.curlFile.parse(String(words[1]))
        guard let time else { return nil }
        let isSuffix = name.hasPrefix(".")
        self.init(host: String(isSuffix ? name.dropFirst() : name[...]), expiry: time, includesSubdomains: isSuffix)
    }

    /// The line of this host in curl's HSTS cache.
    package var fileLine: String {
        let time = expiry >= .distantFuture ? "unlimited" : Date.ISO8601FormatStyle.curlFile.format(expiry)
        return "\(includesSubdomains ? "." : "")\(host) \"\(time)\""
    }
}

/// The value of a `Strict-Transport-Security` field (RFC 6797 §6.1).
package struct StrictTransportField: Hashable {
    /// The number of seconds for which the host is known, at most `Int64.max`; 0 to forget it.
    package let maximumAge: Int64
    package let includesSubdomains: Bool

    /// Parses a field; `nil` if it is malformed: without `max-age`, with a directive that occurs twice, or with an
    /// argument of the wrong form. Unknown directives are ignored.
    package init?(_ value: String) {
        var scanner = HeaderScanner(value)
        var directives: [String: String?] = [:]
        repeat {
            let (name, argument) = scanner.takeParameter(allowingBlanks: true)
            // An empty directive is allowed, such as the one after a final semicolon.
            if name.isEmpty, argument == nil { continue }
            guard !name.isEmpty, directives.updateValue(argument, forKey: name) == nil else { return nil }
        } while scanner.take(UInt8(ascii: ";"))
        guard scanner.next == nil, let age = directives["max-age"] ?? nil,
            let maximumAge = Int64(clampingDigits: age)
        else { return nil }
        self.maximumAge = maximumAge
        switch directives["includesubdomains"] {
        case nil: includesSubdomains = false
        case .some(nil): includesSubdomains = true
        case .some(.some): return nil
        }
    }
}

extension HostTable where Entry == StrictTransportHost {
    /// Adds, renews or removes the host of a response with the field (RFC 6797 §8.1).
    package mutating func note(_ field: StrictTransportField, from host: HostName, at now: Date) {
        // An address has no entry.
        guard field.maximumAge > 0 else { return remove(host.text) }
        let entry = StrictTransportHost(
            host: host.text, expiry: now.addingTimeInterval(Double(field.maximumAge)),
            includesSubdomains: field.includesSubdomains)
        if let entry { setWithinLimit(entry) }
    }

    /// Whether https is required for a host (RFC 6797 §8.2): it is known, or a host above it is known with its
    /// subdomains.
    package func requiresTLS(_ host: HostName, at now: Date) -> Bool {
        // A name in DNS has at most 253 characters (RFC 1035 §2.3.4): a server could name a host with many more labels.
        guard !isEmpty, !host.isAddress, host.text.utf8.count <= 254 else { return false }
        if let known = self[host.text]?.entry, known.expiry > now { return true }
        var labels = host.text[...]
        while let dot = labels.unicodeScalars.firstIndex(of: ".") {
            labels = labels[labels.unicodeScalars.index(after: dot)...]
            if let known = self[String(labels)]?.entry, known.includesSubdomains, known.expiry > now { return true }
        }
        return false
    }
}
