// SPDX-License-Identifier: MIT

import ANHTTP

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
            guard let name = Element.decoded(name), let colon = authority.lastIndex(of: ":"),
                let port = Int(digits: authority[authority.index(after: colon)...]), 1...65_535 ~= port,
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
