// SPDX-License-Identifier: MIT

/// A scanner for the common elements of header fields: tokens, quoted strings and whitespace (RFC 9110 §5.6).
///
/// It never fails: a parser decides what to do about text that is not where it belongs.
package struct HeaderScanner {
    private let bytes: [UInt8]
    private var position = 0

    /// Creates a scanner at the start of a field's value.
    package init(_ value: String) {
        bytes = Array(value.utf8)
    }

    /// The next byte; `nil` at the end.
    package var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Whether the next byte is a space or a tab.
    package var isAtBlank: Bool { next.map(Self.isBlank) ?? false }

    /// Skips the next byte if it is the given one, and returns whether it is.
    package mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    /// Skips bytes as long as they match.
    package mutating func skip(while matches: (UInt8) -> Bool) {
        while let byte = next, matches(byte) { position += 1 }
    }

    /// Skips spaces and tabs.
    package mutating func skipBlanks() {
        skip(while: Self.isBlank)
    }

    /// Returns the text up to the first byte that does not match.
    package mutating func take(while matches: (UInt8) -> Bool) -> String {
        let start = position
        skip(while: matches)
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// Returns the token at this position, possibly empty.
    package mutating func takeToken() -> String {
        take(while: Self.isTokenByte)
    }

    /// Returns the content of the quoted string at this position, without escapes; `nil` for other text. If the closing
    /// quote is missing, the string ends with the field.
    ///
    /// Escapes stay where combining characters that they separate would otherwise be a run that is too long, which
    /// transports look for in fields.
    package mutating func takeQuotedString() -> String? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        let start = position
        var content: [UInt8] = []
        while let byte = next, byte != UInt8(ascii: "\"") {
            position += 1
            if byte == UInt8(ascii: "\\"), let escaped = next {
                content.append(escaped)
                position += 1
            } else {
                content.append(byte)
            }
        }
        let isShort = !content.hasLongCombiningRun
        let text = isShort ? content[...] : bytes[start..<position]
        position = min(position + 1, bytes.count)
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the parameter at this position: its name in lower case, possibly empty, and its argument, a token or the
    /// content of a quoted string; `nil` without `=`.
    ///
    /// - Parameter allowsBlanks: Whether blanks may stand around the name and the argument.
    package mutating func takeParameter(allowingBlanks allowsBlanks: Bool = false) -> (name: String, argument: String?)
    {
        if allowsBlanks { skipBlanks() }
        let name = takeToken().lowercased()
        if allowsBlanks { skipBlanks() }
        guard take(UInt8(ascii: "=")) else { return (name, nil) }
        if allowsBlanks { skipBlanks() }
        let argument = takeQuotedString() ?? takeToken()
        if allowsBlanks { skipBlanks() }
        return (name, argument)
    }

    /// Returns the text up to one of the given bytes outside of quoted strings, without surrounding whitespace.
    package mutating func takeText(before ends: UInt8...) -> String {
        skipBlanks()
        let start = position
        while let byte = next, !ends.contains(byte) {
            if takeQuotedString() == nil { position += 1 }
        }
        var text = bytes[start..<position]
        while let last = text.last, Self.isBlank(last) { text.removeLast() }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the members of comma-separated lists without surrounding whitespace. Empty ones are ignored (RFC 9110
    /// §5.6.1.2), and commas within quoted strings do not separate.
    package static func members(of fields: [String]) -> [String] {
        fields.flatMap { field in
            var scanner = HeaderScanner(field)
            var members: [String] = []
            repeat { members.append(scanner.takeText(before: UInt8(ascii: ","))) } while scanner.take(UInt8(ascii: ","))
            return members.filter { !$0.isEmpty }
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }

    /// Returns whether a byte may occur in a token (RFC 9110 §5.6.2).
    package static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}

/// The value and parameters of a header field such as `multipart/mixed; boundary="a;b"` (RFC 9110 §5.6.6).
package struct HeaderParameters {
    /// The text before the first semicolon, without surrounding whitespace.
    package let value: String
    /// The parameters, with names in lower case and values without quotes; the first parameter with a name wins.
    private let parameters: [(name: String, value: String)]

    package init(_ field: String) {
        let semicolon = UInt8(ascii: ";")
        let sign = UInt8(ascii: "=")
        var scanner = HeaderScanner(field)
        value = scanner.takeText(before: semicolon)
        var parameters: [(name: String, value: String)] = []
        while scanner.take(semicolon) {
            let name = scanner.takeText(before: sign, semicolon).lowercased()
            guard scanner.take(sign) else { continue }
            scanner.skipBlanks()
            if let value = scanner.takeQuotedString() {
                parameters.append((name, value))
                _ = scanner.takeText(before: semicolon)
            } else {
                parameters.append((name, scanner.takeText(before: semicolon)))
            }
        }
        self.parameters = parameters
    }

    package subscript(name: String) -> String? {
        parameters.first { $0.name == name }?.value
    }
}
