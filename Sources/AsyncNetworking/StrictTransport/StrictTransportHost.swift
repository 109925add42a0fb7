// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

/// A host to which a session sends requests over https only (RFC 6797), once ``StrictTransportStore/set(_:)`` has added
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
        guard !name.isAddress, !name.text.isEmpty, name.text.utf8.allSatisfy({ 0x21..<0x7F ~= $0 && $0 != 0x22 })
        else { return nil }
        self.host = name.text
        self.expiry = min(expiry, .distantFuture)
        self.includesSubdomains = includesSubdomains
    }

    // MARK: Files

    /// Parses a line of curl's HSTS cache, such as `.example.com "20301231 23:59:59"`; `nil` for comments and malformed
    /// lines.
    ///
    /// A leading dot includes the hosts below. The time is in UTC, or `unlimited`.
    package init?(fileLine line: Substring) {
        let words = line.split(at: "\"", omittingEmptySubsequences: false)
        guard words.count == 3, !line.hasPrefix("#") else { return nil }
        let name = words[0].trimmingBlanks
        guard let expiry = words[1] == "unlimited" ? .distantFuture : try? Self.fileDates.parse(String(words[1])) else {
            return nil
        }
        let isSuffix = name.hasPrefix(".")
        self.init(host: String(isSuffix ? name.dropFirst() : name[...]), expiry: expiry, includesSubdomains: isSuffix)
    }

    /// The line of this host in curl's HSTS cache.
    package var fileLine: String {
        let time = expiry >= .distantFuture ? "unlimited" : Self.fileDates.format(expiry)
        return "\(includesSubdomains ? "." : "")\(host) \"\(time)\""
    }

    private static let fileDates = Date.ISO8601FormatStyle(dateSeparator: .omitted, dateTimeSeparator: .space)
        .year().month().day().time(includingFractionalSeconds: false)
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
            scanner.skipBlanks()
            let name = scanner.takeToken().lowercased()
            scanner.skipBlanks()
            var argument: String?
            if scanner.take(UInt8(ascii: "=")) {
                scanner.skipBlanks()
                argument = scanner.takeQuotedString() ?? scanner.takeToken()
                scanner.skipBlanks()
            }
            // An empty directive is allowed, such as the one after a final semicolon.
            if name.isEmpty, argument == nil { continue }
            guard !name.isEmpty, directives.updateValue(argument, forKey: name) == nil else { return nil }
        } while scanner.take(UInt8(ascii: ";"))
        guard scanner.next == nil, let age = directives["max-age"] ?? nil, !age.isEmpty,
            age.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 })
        else { return nil }
        maximumAge = Int64(age) ?? .max
        switch directives["includesubdomains"] {
        case nil: includesSubdomains = false
        case .some(nil): includesSubdomains = true
        case .some(.some): return nil
        }
    }
}
