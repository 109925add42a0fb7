// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// The host of a URL in a normalized form that treats equal spellings as libcurl does.
package struct HostName: Hashable, Sendable {
    /// The name in lower case without a trailing dot, or the canonical form of an address, without brackets and zone.
    package let text: String
    /// Whether the host is an IP address.
    package let isAddress: Bool
    /// The zone of an IPv6 address (RFC 6874); `nil` if absent.
    package let zone: String?

    /// Whether the host is an internationalized name with non-ASCII characters, which libcurl converts.
    package var isInternational: Bool { !text.utf8.allSatisfy { $0 < 0x80 } }

    /// Whether the host is a well-formed address.
    package var isUsualAddress: Bool {
        // Only an IPv6 address has a zone, even one whose colon is in the zone, such as `1%a:b`.
        isAddress && (zone == nil && !text.contains(":") || IPv6Text.groups(of: text[...]) != nil)
    }

    /// The text with the zone, if any; equal only for the same host.
    package var zonedText: String { zone.map { "\(text)%\($0)" } ?? text }

    /// Creates the host name of a URL; ``text`` is empty for a URL without a host.
    package init(_ url: URL) {
        self.init(url.host(percentEncoded: false) ?? "")
    }

    /// Creates a host name from any spelling that libcurl accepts.
    package init(_ host: String) {
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? host.dropFirst().dropLast() : host[...]
        if bare.contains(":") {
            let address = Substring(bare.unicodeScalars.prefix { $0 != "%" })
            text = IPv6Text.groups(of: address).map(IPv6Text.text) ?? address.lowercased()
            zone = address.endIndex < bare.endIndex ? Self.zone(bare[address.endIndex...]) : nil
            isAddress = true
        } else {
            var name = bare.lowercased()
            if name.hasSuffix(".") { name.removeLast() }
            let address = Self.usualIPv4(name)
            text = address ?? name
            zone = nil
            isAddress = address != nil
        }
    }

    /// Creates the host name of an address of 4 or 16 bytes in network order; `nil` for any other number of bytes.
    package init?(addressBytes bytes: [UInt8]) {
        switch bytes.count {
        case 4: text = bytes.map(String.init).joined(separator: ".")
        case 16:
            text = IPv6Text.text(
                stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) })
        default: return nil
        }
        zone = nil
        isAddress = true
    }

    /// Returns the zone after a percent sign, which URLs encode as `%25`.
    private static func zone(_ text: Substring) -> String {
        String(text.hasPrefix("%25") && text.count > 3 ? text.dropFirst(3) : text.dropFirst())
    }

    /// Returns the dotted-decimal form of an IPv4 address, or `nil` for any other text.
    ///
    /// libcurl accepts all forms of inet_aton(3), such as `127.1`: up to four numbers, decimal, octal or hexadecimal,
    /// of which the last fills the remaining bytes.
    private static func usualIPv4(_ text: String) -> String? {
        guard let first = text.utf8.first, UInt8(ascii: "0")...UInt8(ascii: "9") ~= first else { return nil }
        // Mostly the address is in that form already.
        if isDottedDecimal(text) { return text }
        let parts = text.split(at: ".", omittingEmptySubsequences: false)
        let numbers = parts.compactMap(number)
        guard numbers.count == parts.count, numbers.count <= 4, let last = numbers.last else { return nil }
        var address = last
        guard last >> UInt64(8 * (5 - numbers.count)) == 0 else { return nil }
        for (index, number) in numbers.dropLast().enumerated() {
            guard number < 256 else { return nil }
            address |= number << UInt64(24 - 8 * index)
        }
        return [24, 16, 8, 0].map { String(address >> $0 & 0xFF) }.joined(separator: ".")
    }

    /// Returns whether a text consists of four numbers up to 255, without leading zeros.
    private static func isDottedDecimal(_ text: String) -> Bool {
        var (groups, digits, value) = (1, 0, 0)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: ".") where digits > 0: (groups, digits, value) = (groups + 1, 0, 0)
            case UInt8(ascii: "0")...UInt8(ascii: "9") where digits == 0 || value > 0:
                (digits, value) = (digits + 1, value * 10 + Int(byte - UInt8(ascii: "0")))
                if value > 255 { return false }
            default: return false
            }
        }
        return groups == 4 && digits > 0
    }

    private static func number(_ text: Substring) -> UInt64? {
        guard let first = text.utf8.first, UInt8(ascii: "0")...UInt8(ascii: "9") ~= first else { return nil }
        if text.hasPrefix("0x") {
            let digits = text.dropFirst(2)
            return digits.first.map { $0 != "+" && $0 != "-" } == true ? UInt64(digits, radix: 16) : nil
        }
        return UInt64(text, radix: text.hasPrefix("0") ? 8 : 10)
    }
}

/// The text form of IPv6 addresses (RFC 4291 §2.2).
private enum IPv6Text {
    /// Returns the eight groups of an address; `nil` if the text is not one.
    static func groups(of text: Substring) -> [UInt16]? {
        guard let gap = text.unicodeScalars.firstRange(of: "::".unicodeScalars) else {
            return read(text, isEnd: true).flatMap { $0.count == 8 ? $0 : nil }
        }
        guard let head = read(text[..<gap.lowerBound], isEnd: false),
            let tail = read(text[gap.upperBound...], isEnd: true),
            head.count + tail.count <= 7
        else { return nil }
        return head + [UInt16](repeating: 0, count: 8 - head.count - tail.count) + tail
    }

    /// Returns the groups of a colon-separated text; `nil` if it is malformed. At the end of an address, the last two may
    /// be written as an IPv4 address.
    private static func read(_ text: Substring, isEnd: Bool) -> [UInt16]? {
        guard !text.isEmpty else { return [] }
        var groups: [UInt16] = []
        let parts = text.split(at: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if isEnd, index == parts.count - 1, part.contains(".") {
                let numbers = part.split(at: ".", omittingEmptySubsequences: false)
                // Without signs and leading zeros, which inet_pton(3) refuses.
                let bytes = numbers.compactMap { number in UInt8(number).flatMap { "\($0)" == number ? $0 : nil } }
                guard numbers.count == 4, bytes.count == 4 else { return nil }
                groups += [UInt16(bytes[0]) << 8 | UInt16(bytes[1]), UInt16(bytes[2]) << 8 | UInt16(bytes[3])]
            } else {
                guard 1...4 ~= part.utf8.count, part.allSatisfy(\.isHexDigit), let group = UInt16(part, radix: 16)
                else { return nil }
                groups.append(group)
            }
        }
        return groups
    }

    /// Returns the canonical text of eight groups (RFC 5952): the first of the longest runs of zeros is compressed. An
    /// embedded IPv4 address is written in dotted decimal, as by inet_ntop(3).
    static func text(_ groups: [UInt16]) -> String {
        var gap = 0..<0
        var start = 0
        for (index, group) in groups.enumerated() {
            if group != 0 { start = index + 1 }
            if index + 1 - start > max(gap.count, 1) { gap = start..<index + 1 }
        }
        let hasIPv4 = gap == 0..<6 || gap == 0..<5 && groups[5] == 0xFFFF
        var words = groups.prefix(hasIPv4 ? 6 : 8).map { String($0, radix: 16) }
        if hasIPv4 {
            words.append(groups[6...].flatMap { [String($0 >> 8), String($0 & 0xFF)] }.joined(separator: "."))
        }
        guard !gap.isEmpty else { return words.joined(separator: ":") }
        return words[..<gap.lowerBound].joined(separator: ":") + "::"
            + words[gap.upperBound...].joined(separator: ":")
    }
}
