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
        let parts = line.split(at: "\"", omittingEmptySubsequences: false)
        guard parts.count == 3, let expiry = try? Self.fileDates.parse(String(parts[1])) else { return nil }
        let words = parts[0].split(at: " ")
        guard words.count == 6, ["h1", "h2", "h3"].contains(words[0]), words[3] == "h3" else { return nil }
        let host = HostName(String(words[1]))
        guard Self.isStorable(host), host == HostName(String(words[4])), let port = UInt16(words[2]), port > 0,
            let alternativePort = UInt16(words[5]), alternativePort > 0
        else { return nil }
        self.init(
            host: host.zonedText, port: Int(port), alternativePort: Int(alternativePort), expiry: expiry,
            persists: parts[2].split(at: " ").first == "1")
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

/// The value of an `Alt-Svc` field (RFC 7838 §3).
package enum AlternativeServiceField: Hashable {
    /// The origin has no alternatives any more.
    case clear
    /// The alternatives in the order of the server's preference, which replace all earlier ones; at most
    /// ``maximumCount``.
    case alternatives([Alternative])

    /// An alternative.
    package struct Alternative: Hashable {
        /// The protocol (ALPN, RFC 7301), such as `h3`.
        package let protocolID: String
        /// The host name, without brackets around an IPv6 address; empty for the host of the origin.
        package let host: String
        /// The port, from 1 to 65535.
        package let port: Int
        /// The number of seconds for which the alternative is known, at most `Int64.max`; 86,400 by default.
        package let maximumAge: Int64
        /// Whether the alternative remains valid when the network changes.
        package let persists: Bool
    }

    /// The maximum length in bytes of a value; a longer one is ignored.
    package static let maximumLength = 8_192
    /// The number of alternatives after which the rest of a value is ignored.
    package static let maximumCount = 16

    /// Parses the values of all `Alt-Svc` fields of a response, joined by commas; `nil` if they are malformed or too
    /// long.
    ///
    /// Unknown parameters are ignored. An alternative whose protocol has a malformed percent-encoding, or whose port or
    /// `ma` is not a number, is left out.
    package init?(_ value: String) {
        guard value.utf8.count <= Self.maximumLength else { return nil }
        if value.trimmingBlanks == "clear" {
            self = .clear
            return
        }
        var scanner = HeaderScanner(value)
        var alternatives: [Alternative] = []
        var count = 0
        repeat {
            scanner.skipBlanks()
            // An empty element of a list is allowed (RFC 9110 §5.6.1).
            guard let next = scanner.next, next != UInt8(ascii: ",") else { continue }
            count += 1
            guard let element = Self.element(&scanner) else { return nil }
            if let alternative = element.alternative { alternatives.append(alternative) }
        } while scanner.take(UInt8(ascii: ",")) && count < Self.maximumCount
        guard count > 0, count == Self.maximumCount || scanner.next == nil else { return nil }
        self = .alternatives(alternatives)
    }

    /// The parts of an alternative, and its parameters.
    private struct Element {
        let name: String
        let authority: String
        var parameters: [String: String] = [:]

        /// The alternative; `nil` if it cannot be used.
        var alternative: Alternative? {
            guard let name = Element.decoded(name), let colon = authority.unicodeScalars.lastIndex(of: ":"),
                let port = Int(digits: authority[authority.unicodeScalars.index(after: colon)...]), 1...65_535 ~= port,
                let age = parameters["ma"].map({ Int64(digits: $0[...]) }) ?? 86_400
            else { return nil }
            var host = authority[..<colon]
            if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
            return Alternative(
                protocolID: name, host: String(host), port: Int(port), maximumAge: age,
                persists: parameters["persist"] == "1")
        }

        /// Decodes the percent-encoding of a protocol's name; `nil` if it is malformed, or not UTF-8.
        private static func decoded(_ text: String) -> String? {
            var bytes: [UInt8] = []
            var rest = text.utf8[...]
            while let byte = rest.popFirst() {
                guard byte == UInt8(ascii: "%") else {
                    bytes.append(byte)
                    continue
                }
                guard rest.count >= 2, let value = UInt8(hexDigits: rest.prefix(2)) else { return nil }
                bytes.append(value)
                rest = rest.dropFirst(2)
            }
            return String(validating: bytes, as: UTF8.self)
        }
    }

    /// Parses one element of the list; `nil` if it is malformed.
    private static func element(_ scanner: inout HeaderScanner) -> Element? {
        let name = scanner.takeToken()
        guard !name.isEmpty, scanner.take(UInt8(ascii: "=")), let authority = scanner.takeQuotedString() else {
            return nil
        }
        var element = Element(name: name, authority: authority)
        scanner.skipBlanks()
        while scanner.take(UInt8(ascii: ";")) {
            scanner.skipBlanks()
            let parameter = scanner.takeToken().lowercased()
            guard !parameter.isEmpty, scanner.take(UInt8(ascii: "=")) else { return nil }
            element.parameters[parameter] = scanner.takeQuotedString() ?? scanner.takeToken()
            scanner.skipBlanks()
        }
        guard scanner.next == nil || scanner.next == UInt8(ascii: ",") else { return nil }
        return element
    }
}

extension FixedWidthInteger {
    /// Parses decimal digits, saturating; `nil` for any other text.
    fileprivate init?(digits: Substring) {
        guard !digits.isEmpty, digits.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else {
            return nil
        }
        self = Self(digits) ?? .max
    }
}

extension UInt8 {
    /// Parses two hexadecimal digits; `nil` for any other text.
    fileprivate init?(hexDigits: Substring.UTF8View) {
        guard hexDigits.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }) else { return nil }
        self.init(Substring(hexDigits), radix: 16)
    }
}
