// SPDX-License-Identifier: MIT

import AsyncNetworking
import Foundation

/// A lexer for the bytes of a document, with a position that moves past pieces of markup.
struct XMLLexer: Sendable {
    let bytes: [UInt8]
    /// The hash values of the names so far.
    private var names: Set<Int> = []
    /// The maximum number of different names, which libxml2 before 2.12 searches in a table of limited size.
    static let maximumNames = 50_000
    private(set) var position = 0

    /// The length in bytes at which libxml2 cuts names and the literals of document types (`XML_MAX_NAME_LENGTH`).
    static let maximumName = 50_000
    /// The maximum size of a document in bytes, at which libxml2 ends with an error (`XML_MAX_LOOKUP_LIMIT`). Texts,
    /// comments and attributes are cut only at the same length (`XML_MAX_TEXT_LENGTH`).
    static let maximumSize = 10_000_000

    /// The reason why inspection ends early.
    enum Stop: Error {
        /// The document ends within markup.
        case end
        /// The document is rejected, for a reason at an offset.
        case refusal(SerializationError.Failure.XMLReason, offset: Int)
    }

    /// The error codes of libxml2 (`xmlParserErrors`).
    enum Code: Int {
        case invalidCharacter = 9
        case reservedName = 64
        case lessThanInAttribute = 38
        case attributeNotStarted = 39
        case spaceRequired = 65
        case nameRequired = 68
        case greaterThanRequired = 73
        case equalRequired = 75
        case invalidEncoding = 81
        case hyphensInComment = 80
        case internalSubset = 85
        case nameTooLong = 110
    }

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    // MARK: Errors

    /// Returns the error for an unexpected byte at the position, or for the end of the document.
    func unexpected(_ code: Code) -> Stop {
        position < bytes.count ? .refusal(.malformed(code: code.rawValue), offset: position) : .end
    }

    /// Returns an error with its line and the text around an offset.
    func failure(_ reason: SerializationError.Failure.XMLReason, at offset: Int) -> SerializationError {
        let line = bytes[..<offset].count { $0 == UInt8(ascii: "\n") } + 1
        return .xml(.init(.xml(reason), line: line, excerpt: Excerpt.around(offset, in: bytes)))
    }

    // MARK: Characters

    /// Checks that the bytes are valid UTF-8 and that XML permits their characters (XML 1.0 §2.2).
    func checkCharacters() throws(Stop) {
        do {
            _ = try UTF8Span(validating: bytes.span)
        } catch {
            let isCutOff = error.kind == .truncatedScalar && error.byteOffsets.upperBound == bytes.count
            throw .refusal(
                isCutOff ? .unexpectedEnd : .malformed(code: Code.invalidEncoding.rawValue),
                offset: error.byteOffsets.lowerBound)
        }
        let span = bytes.span
        var offset = 0
        while offset < span.count {
            let isCharacter =
                switch span[offset] {
                case 0x09, 0x0A, 0x0D, 0x20..<0xEF, 0xF0...: true
                // U+FFFE and U+FFFF.
                case 0xEF: !(span[offset + 1] == 0xBF && span[offset + 2] >= 0xBE)
                default: false
                }
            guard isCharacter else {
                throw .refusal(.malformed(code: Code.invalidCharacter.rawValue), offset: offset)
            }
            offset += 1
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

    /// Moves to the next `<`, and returns whether there is one.
    mutating func skipToMarkup() -> Bool {
        position = bytes[position...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
        return position < bytes.count
    }

    /// Consumes a text if it is at the position, and returns whether it was.
    mutating func take(_ text: String) -> Bool {
        guard next == text.utf8.first, bytes[position...].starts(with: text.utf8) else { return false }
        position += text.utf8.count
        return true
    }

    /// Consumes a text; throws if it is not at the position.
    mutating func expect(_ text: String) throws(Stop) {
        guard !take(text) else { return }
        throw unexpected(.greaterThanRequired)
    }

    /// Skips whitespace, and returns whether there was any.
    @discardableResult
    mutating func skipBlanks() -> Bool {
        let start = position
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x09 || byte == 0x0D { position += 1 }
        return position > start
    }

    /// Skips whitespace, and throws unless there is some.
    mutating func expectBlanks() throws(Stop) {
        guard !skipBlanks() else { return }
        throw unexpected(.spaceRequired)
    }

    /// Skips all bytes up to and including a text.
    mutating func skip(past mark: String, while isAllowed: (UInt8) -> Bool = { _ in true }) throws(Stop) {
        while !take(mark) {
            guard let byte = next, isAllowed(byte) else { throw unexpected(.greaterThanRequired) }
            position += 1
        }
    }

    /// Skips the rest of a comment, which contains no two hyphens before its end (XML 1.0 §2.5). For each pair libxml2
    /// would format an error with the whole comment up to it, in quadratic time.
    mutating func skipComment() throws(Stop) {
        try skip(past: "--")
        guard take(">") else { throw unexpected(.hyphensInComment) }
    }

    /// Skips a literal including its quotes.
    mutating func skipLiteral(upTo limit: Int = maximumSize, while isAllowed: (UInt8) -> Bool) throws(Stop) {
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

    /// Skips a name (XML 1.0 §2.3).
    mutating func skipName() throws(Stop) {
        let start = position
        while let (scalar, length) = nextScalar,
            position == start ? Self.startsName(scalar) : Self.continuesName(scalar)
        {
            position += length
        }
        guard position > start else { throw unexpected(.nameRequired) }
        guard position - start < Self.maximumName, !bytes[start..<position].hasLongCombiningRun else {
            throw unexpected(.nameTooLong)
        }
        var hasher = Hasher()
        for byte in bytes[start..<position] { hasher.combine(byte) }
        names.insert(hasher.finalize())
        guard names.count <= Self.maximumNames else {
            throw .refusal(.tooManyNames(limit: Self.maximumNames), offset: start)
        }
    }

    /// The Unicode scalar at the position and its length in bytes. The bytes are valid UTF-8.
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

    /// Returns whether a byte is permitted in a public identifier (XML 1.0 §2.3).
    static func isPublicIdentifier(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: " \r\n-'()+,./:=?;!*#@$_%".utf8.contains(byte)
        }
    }
}
