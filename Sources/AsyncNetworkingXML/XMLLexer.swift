// SPDX-License-Identifier: MIT

import AsyncNetworking
import Foundation

/// The bytes of a document, and a position among them that moves past pieces of markup.
struct XMLLexer: Sendable {
    let bytes: [UInt8]
    private(set) var position = 0

    /// Where libxml2 ends names and the literals of document types (`XML_MAX_NAME_LENGTH`), to go on in their middle.
    static let maximumName = 50_000
    /// Where libxml2 ends comments, instructions and attributes (`XML_MAX_TEXT_LENGTH`).
    static let maximumText = 10_000_000

    /// Why a document is not read on.
    enum Stop: Error {
        /// It ends within markup.
        case end
        /// It is refused, for what stands there.
        case refusal(SerializationError.XMLProblem.Reason, offset: Int)
    }

    /// libxml2's numbers for errors, `xmlParserErrors`.
    enum Code: Int {
        case invalidCharacter = 9
        case lessThanInAttribute = 38
        case attributeNotStarted = 39
        case spaceRequired = 65
        case nameRequired = 68
        case greaterThanRequired = 73
        case equalRequired = 75
        case invalidEncoding = 81
        case internalSubset = 85
        case nameTooLong = 110
    }

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    // MARK: Errors

    /// The error for a byte that cannot stand here, or the end.
    func unexpected(_ code: Code) -> Stop {
        position < bytes.count ? .refusal(.malformed(code: code.rawValue), offset: position) : .end
    }

    /// The error with its place.
    func problem(_ reason: SerializationError.XMLProblem.Reason, at offset: Int) -> SerializationError {
        let line = bytes[..<offset].count { $0 == UInt8(ascii: "\n") } + 1
        return .xml(.init(reason: reason, line: line, excerpt: Excerpt.around(offset, in: bytes)))
    }

    // MARK: Characters

    /// Checks that the bytes are UTF-8, and its characters those that XML has (XML 1.0 §2.2).
    func checkCharacters() throws(Stop) {
        do {
            _ = try UTF8Span(validating: bytes.span)
        } catch {
            let isCutOff = error.kind == .truncatedScalar && error.byteOffsets.upperBound == bytes.count
            throw .refusal(
                isCutOff ? .unexpectedEnd : .malformed(code: Code.invalidEncoding.rawValue),
                offset: error.byteOffsets.lowerBound)
        }
        for (offset, byte) in bytes.enumerated() where byte < 0x20 || byte == 0xEF {
            let isCharacter =
                switch byte {
                case 0x09, 0x0A, 0x0D: true
                // U+FFFE and U+FFFF.
                case 0xEF: !(bytes[offset + 1] == 0xBF && bytes[offset + 2] >= 0xBE)
                default: false
                }
            guard isCharacter else {
                throw .refusal(.malformed(code: Code.invalidCharacter.rawValue), offset: offset)
            }
        }
    }

    /// The byte at the position; `nil` at the end.
    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// The capital letters at the position, at most 20.
    var capitals: String {
        let letters = bytes[position...].prefix(20).prefix { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 }
        return String(decoding: letters, as: UTF8.self)
    }

    // MARK: Markup

    /// Goes to the next `<`; false when there is none.
    mutating func skipToMarkup() -> Bool {
        position = bytes[position...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
        return position < bytes.count
    }

    /// Goes past a text if it stands here.
    mutating func take(_ text: String) -> Bool {
        guard next == text.utf8.first, bytes[position...].starts(with: text.utf8) else { return false }
        position += text.utf8.count
        return true
    }

    /// Goes past a text, which must stand here.
    mutating func expect(_ text: String) throws(Stop) {
        guard !take(text) else { return }
        throw unexpected(.greaterThanRequired)
    }

    /// Goes past blanks, and returns whether there were any.
    @discardableResult
    mutating func skipBlanks() -> Bool {
        let start = position
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x09 || byte == 0x0D { position += 1 }
        return position > start
    }

    /// Goes past blanks, of which there must be some.
    mutating func expectBlanks() throws(Stop) {
        guard !skipBlanks() else { return }
        throw unexpected(.spaceRequired)
    }

    /// Goes past the next such mark.
    mutating func skip(
        past mark: String, upTo limit: Int = maximumText, while isAllowed: (UInt8) -> Bool = { _ in true }
    ) throws(Stop) {
        let start = position
        while !take(mark) {
            guard let byte = next, isAllowed(byte) else { throw unexpected(.greaterThanRequired) }
            position += 1
            guard position - start <= limit else { throw unexpected(.nameTooLong) }
        }
    }

    /// Goes past the quotes that begin here, and what stands between them.
    mutating func skipLiteral(
        upTo limit: Int = maximumText, while isAllowed: (UInt8) -> Bool
    ) throws(Stop) {
        guard let quote = next, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
            throw unexpected(.attributeNotStarted)
        }
        let start = position
        position += 1
        while let byte = next, byte != quote {
            guard isAllowed(byte) else { throw unexpected(.lessThanInAttribute) }
            position += 1
            guard position - start < limit else { throw unexpected(.nameTooLong) }
        }
        guard next != nil else { throw .end }
        position += 1
    }

    // MARK: Names

    /// Goes past a name, XML 1.0 §2.3.
    mutating func skipName() throws(Stop) {
        let start = position
        while let (scalar, length) = nextScalar,
            position == start ? Self.startsName(scalar) : Self.continuesName(scalar)
        {
            position += length
        }
        guard position > start else { throw unexpected(.nameRequired) }
        guard position - start < Self.maximumName else { throw unexpected(.nameTooLong) }
    }

    /// The scalar at the position, and how many bytes it has. The bytes are valid.
    private var nextScalar: (scalar: UInt32, length: Int)? {
        guard let first = next else { return nil }
        guard first >= 0x80 else { return (UInt32(first), 1) }
        let length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
        let start = UInt32(first) & (0x7F >> UInt32(length))
        let scalar = bytes[position...].prefix(length).dropFirst().reduce(start) { $0 << 6 | UInt32($1 & 0x3F) }
        return (scalar, length)
    }

    private static func startsName(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0x61...0x7A, 0x41...0x5A, 0x5F, 0x3A, 0xC0...0xD6, 0xD8...0xF6, 0xF8...0x2FF, 0x370...0x37D,
            0x37F...0x1FFF, 0x200C...0x200D, 0x2070...0x218F, 0x2C00...0x2FEF, 0x3001...0xD7FF, 0xF900...0xFDCF,
            0xFDF0...0xFFFD, 0x10000...0xEFFFF:
            true
        default: false
        }
    }

    private static func continuesName(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0x30...0x39, 0x2D...0x2E, 0xB7, 0x300...0x36F, 0x203F...0x2040: true
        default: startsName(scalar)
        }
    }

    /// Whether a byte may stand in a public identifier, XML 1.0 §2.3.
    static func isPublicIdentifier(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: " \r\n-'()+,./:=?;!*#@$_%".utf8.contains(byte)
        }
    }
}
