// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// An identifier from the wire, such as an entity tag, compared byte by byte.
///
/// `String` considers texts equal that differ only in Unicode normalization. A server that compares bytes does not.
package struct WireText: Hashable, Sendable, Codable, ExpressibleByStringLiteral {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    package init(stringLiteral text: String) {
        self.text = text
    }

    package init(from decoder: any Decoder) throws {
        text = try decoder.singleValueContainer().decode(String.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }

    package static func == (left: WireText, right: WireText) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    package func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
        hasher.combine(0xFF as UInt8)
    }
}

extension StringProtocol {
    /// The text without spaces and tabs at both ends (RFC 9110 §5.6.3).
    package var trimmingBlanks: String {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        let bytes = Substring(self).utf8
        guard let last = bytes.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(Substring(bytes[...last].drop(while: isBlank)))
    }
}

// Delimiters. A string compares characters, and a delimiter followed by a combining mark is another character to it: it
// would find neither the quotation mark of "'\u{301}" nor the sign of "\u{600}<", which what reads the bytes does.

extension StringProtocol {
    /// Returns the parts between delimiters, which are Unicode scalars.
    package func split(
        at delimiter: Unicode.Scalar, maxSplits: Int = .max, omittingEmptySubsequences: Bool = true
    ) -> [Substring] {
        Substring(self).unicodeScalars.split(
            separator: delimiter, maxSplits: maxSplits, omittingEmptySubsequences: omittingEmptySubsequences
        ).map { Substring($0) }
    }

    /// Returns the text with another one in place of each sequence of Unicode scalars, which in UTF-8 is found as bytes:
    /// a string copies what it has at each scalar that is added.
    package func replacing(each text: String, with other: String) -> String {
        guard !text.isEmpty else { return String(self) }
        return String(decoding: Array(utf8).replacing(Array(text.utf8), with: other.utf8), as: UTF8.self)
    }
}

extension StringProtocol {
    /// Whether the text consists of one or more decimal digits.
    package var isDigits: Bool { !isEmpty && utf8.allSatisfy { (0x30...0x39).contains($0) } }
}

extension FixedWidthInteger {
    /// Parses decimal digits; `nil` for any other text, such as one with a sign, and for a number that is too large.
    package init?(digits text: some StringProtocol) {
        guard text.isDigits else { return nil }
        self.init(text)
    }

    /// Parses decimal digits; `nil` for any other text, such as one with a sign. A number that is too large counts as
    /// the largest one.
    package init?(clampingDigits text: some StringProtocol) {
        guard text.isDigits else { return nil }
        self = Self(text) ?? .max
    }
}

extension Data {
    /// Decodes percent-encoded text (RFC 3986 §2.1); `nil` if an escape is malformed.
    package init?(percentEncoded text: some StringProtocol) {
        self.init()
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }),
                let escaped = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            else { return nil }
            append(escaped)
            rest = rest.dropFirst(2)
        }
    }
}

extension StringProtocol {
    /// Whether the text contains an ASCII control character, 0x00 to 0x1F or 0x7F. In a header field, a line break
    /// would begin another field, and in a C string, a NUL would end the text.
    package var hasControlCharacters: Bool { utf8.contains { $0 < 0x20 || $0 == 0x7F } }

    /// The text on one line, as a terminal or a log can print it: control characters, also those of the C1 range, format
    /// characters such as those that change the direction of text, and line separators are replaced by spaces.
    ///
    /// Whatever prints the text of a server uses it, because the text could otherwise control the terminal.
    package var printable: String {
        guard !utf8.allSatisfy({ 0x20..<0x7F ~= $0 }) else { return String(self) }
        var text = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: text.append(" ")
            default: text.append(scalar)
            }
        }
        return String(text)
    }
}

/// A run of combining characters, such as accents, in text that others send.
///
/// Swift compares and hashes text by its decomposition, and sorts each run by insertion: of 100 KB, this takes a second for
/// each comparison, and of 1 MB, minutes. Writing needs runs of a few characters; UAX #15 §13 permits 30.
package struct CombiningRun {
    private static let maximumLength = 256
    /// The size in UTF-8 above which text can have a run that is too long.
    static let minimumSize = 2 * maximumLength

    private var length = 0
    /// Whether one of the runs was too long.
    package private(set) var wasTooLong = false

    package init() {}

    package mutating func receive(_ scalar: Unicode.Scalar) {
        let isCombining = scalar.value >= 0x300 && scalar.properties.canonicalCombiningClass != .notReordered
        length = isCombining ? length + 1 : 0
        if length > Self.maximumLength { wasTooLong = true }
    }
}

extension Sequence<Unicode.Scalar> {
    /// Whether a run of combining characters is too long for the text to be compared.
    package var hasLongCombiningRun: Bool {
        var run = CombiningRun()
        return contains { scalar in
            run.receive(scalar)
            return run.wasTooLong
        }
    }
}

extension Collection<UInt8> {
    /// Whether a run of combining characters in text in UTF-8 is too long for the text to be compared.
    package var hasLongCombiningRun: Bool {
        count > CombiningRun.minimumSize && contains { $0 >= 0x80 }
            && String(decoding: self, as: UTF8.self).unicodeScalars.hasLongCombiningRun
    }
}

// Parts of sentences.

extension String {
    /// The text in quotation marks; words for an empty one, whose marks would look like a mistake.
    package var quoted: String { isEmpty ? "an empty text" : "“\(self)”" }
}

extension Duration {
    /// The duration in whole milliseconds, whose text is short.
    package var rounded: Duration {
        // Far beyond, whole milliseconds may not be representable.
        abs(self / .seconds(1)) < 1e12 ? .milliseconds((self / .milliseconds(1)).rounded()) : self
    }
}
