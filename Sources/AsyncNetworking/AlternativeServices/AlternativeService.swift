// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

/// An alternative service of an origin: HTTP/3 on the same host (RFC 7838). ``AlternativeServiceStore/services`` lists
/// those of a session.
public struct AlternativeService: Hashable, Sendable {
    /// The host of the origin in lower case, without a trailing dot and without brackets around an IPv6 address.
    public let host: String
    /// The port of the origin; 443 if its URLs name none.
    public let port: Int
    /// The UDP port of the alternative, the same as ``port`` on most servers.
    public let alternativePort: Int
    /// The time at which the alternative ceases to be used: set by the parameter `ma` of `Alt-Svc`, 24 hours after the
    /// response without it (RFC 7838 §3.1), and at most `Date.distantFuture`.
    public let expiry: Date
    /// Whether the server states that the alternative remains valid when the network changes.
    package let persists: Bool

    /// Creates the alternative service of an origin.
    package init(host: String, port: Int, alternativePort: Int, expiry: Date, persists: Bool) {
        self.host = host
        self.port = port
        self.alternativePort = alternativePort
        self.expiry = min(expiry, .distantFuture)
        self.persists = persists
    }

    // MARK: Files

    /// Parses a line of curl's cache of alternative services, such as
    /// `h2 example.com 443 h3 example.com 443 "20301231 23:59:59" 0 0`; `nil` for comments, malformed lines, and
    /// alternatives that are not HTTP/3 on the host of the origin.
    package init?(fileLine line: Substring) {
        let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
        guard parts.count == 3, let expiry = try? Self.fileDates.parse(String(parts[1])) else { return nil }
        let words = parts[0].split(separator: " ")
        guard words.count == 6, ["h1", "h2", "h3"].contains(words[0]), words[3] == "h3" else { return nil }
        let host = HostName(String(words[1]))
        guard Self.isStorable(host), host == HostName(String(words[4])), let port = UInt16(words[2]), port > 0,
            let alternativePort = UInt16(words[5]), alternativePort > 0
        else { return nil }
        self.init(
            host: host.zonedText, port: Int(port), alternativePort: Int(alternativePort), expiry: expiry,
            persists: parts[2].split(separator: " ").first == "1")
    }

    /// The line of this alternative in curl's cache.
    package var fileLine: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return "h2 \(name) \(port) h3 \(name) \(alternativePort) \"\(Self.fileDates.format(expiry))\" "
            + "\(persists ? 1 : 0) 0"
    }

    /// Whether a host name can be written to a file.
    static func isStorable(_ host: HostName) -> Bool {
        !host.text.isEmpty && host.zonedText.utf8.allSatisfy { 0x21..<0x7F ~= $0 && $0 != 0x22 }
    }

    private static let fileDates = Date.ISO8601FormatStyle(dateSeparator: .omitted, dateTimeSeparator: .space)
        .year().month().day().time(includingFractionalSeconds: false)
}
