// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

/// A parser for UTF-8 encoded JSON, strictly by RFC 8259, in a single pass and with limited depth.
///
/// `JSONDecoder` cannot create a ``JSONValue`` efficiently, because it tries one type after the other and throws for
/// each mismatch; it also does not report the byte offset of a coding path.
struct JSONParser {
    /// The maximum nesting depth of arrays and objects, equal to that of `JSONDecoder`.
    static let maximumDepth = 512

    let bytes: [UInt8]
    var position = 0
    private var depth = 0

    init(_ data: Data) {
        bytes = Array(data)
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    /// Returns the value of a complete document.
    ///
    /// A document that is not JSON by RFC 8259 is parsed as JSON5 if the options allow it.
    static func parse(_ data: Data, options: JSONResponseSerializer.Options) throws(SerializationError) -> JSONValue {
        var parser = JSONParser(data)
        let value: JSONValue
        do throws(SerializationError) {
            value = try parser.parseDocument()
        } catch {
            // A limit that JSON exceeds is no question of syntax.
            guard options.contains(.allowsJSON5), case .json(let failure) = error,
                case .json(let reason) = failure.reason, !reason.isLimit
            else { throw error }
            value = try JSON5Document.parse(data)
        }
        switch value {
        case .array, .object: return value
        case .null, .bool, .integer, .unsigned, .double, .string:
            guard options.contains(.allowsFragments) else { throw parser.failure(.fragment, at: 0) }
            return value
        }
    }

    private mutating func parseDocument() throws(SerializationError) -> JSONValue {
        let value = try parseValue()
        try skipWhitespace()
        guard position == bytes.count else { throw failure(.trailingBytes) }
        return value
    }

    /// Returns the problem with a document; `nil` if it is valid.
    static func failure(in data: Data, options: JSONResponseSerializer.Options) -> SerializationError.Failure? {
        do {
            _ = try parse(data, options: options)
            return nil
        } catch {
            if case .json(let failure) = error { return failure }
            return nil
        }
    }

    /// Returns whether a document may be one that `JSONDecoder` accepts although it is not JSON: in UTF-16 or UTF-32,
    /// or with a comma before a bracket, possibly in a string.
    static func mayBeExtended(_ data: Data) -> Bool {
        if JSONNumbers.isWide(data) { return true }
        let span = data.span
        var isAfterComma = false
        for index in span.indices {
            switch span[index] {
            case UInt8(ascii: ","): isAfterComma = true
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): break
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                if isAfterComma { return true }
            default: isAfterComma = false
            }
        }
        return false
    }

    // MARK: Values

    mutating func parseValue() throws(SerializationError) -> JSONValue {
        try skipWhitespace()
        switch try currentByte() {
        case UInt8(ascii: "{"): return .object(try parseObject())
        case UInt8(ascii: "["): return .array(try parseArray())
        case UInt8(ascii: "\""): return .string(try parseString())
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try parseNumber()
        case UInt8(ascii: "t"): return try parse(literal: "true", as: .bool(true))
        case UInt8(ascii: "f"): return try parse(literal: "false", as: .bool(false))
        case UInt8(ascii: "n"): return try parse(literal: "null", as: .null)
        case let byte: throw failure(.unexpectedByte(byte))
        }
    }

    private mutating func parseObject() throws(SerializationError) -> [String: JSONValue] {
        var object: [String: JSONValue] = [:]
        try descend()
        guard try !take(UInt8(ascii: "}")) else { return ascend(with: object) }
        repeat {
            let name = try parseName()
            let value = try parseValue()
            // As in `JSONDecoder`, the first member with a name counts.
            if object[name] == nil { object[name] = value }
        } while try takeComma(before: UInt8(ascii: "}"))
        return ascend(with: object)
    }

    private mutating func parseArray() throws(SerializationError) -> [JSONValue] {
        var array: [JSONValue] = []
        try descend()
        guard try !take(UInt8(ascii: "]")) else { return ascend(with: array) }
        repeat {
            array.append(try parseValue())
        } while try takeComma(before: UInt8(ascii: "]"))
        return ascend(with: array)
    }

    mutating func parse(literal: String, as value: JSONValue) throws(SerializationError) -> JSONValue {
        for byte in literal.utf8 { try expect(byte) }
        return value
    }

    private mutating func parseNumber() throws(SerializationError) -> JSONValue {
        let start = position
        var isInteger = true
        if bytes[position] == UInt8(ascii: "-") { position += 1 }
        if try currentByte() == UInt8(ascii: "0") { position += 1 } else { try skipDigits() }
        if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
            isInteger = false
            position += 1
            try skipDigits()
        }
        if position < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
            isInteger = false
            position += 1
            let sign = try currentByte()
            if sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { position += 1 }
            try skipDigits()
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger, let integer = Int64(text) { return .integer(integer) }
        if isInteger, let integer = UInt64(text) { return .unsigned(integer) }
        guard let double = Double(text), double.isFinite, double != 0 || Self.isZero(text) else {
            throw failure(.numberOutOfRange, at: start)
        }
        return .double(double)
    }

    /// Whether a number that was rounded to zero is zero: its digits before an exponent are.
    private static func isZero(_ number: String) -> Bool {
        number.utf8.prefix { $0 | 0x20 != UInt8(ascii: "e") }.allSatisfy { !(0x31...0x39).contains($0) }
    }

    // MARK: Strings

    private mutating func parseString() throws(SerializationError) -> String {
        let opening = position
        position += 1
        var start = position
        var unescaped: [UInt8] = []
        while true {
            switch try currentByte() {
            case UInt8(ascii: "\""):
                let rest = start..<position
                position += 1
                guard !unescaped.isEmpty else { return try text(of: bytes.span.extracting(rest), at: opening) }
                unescaped += bytes[rest]
                return try text(of: unescaped.span, at: opening)
            case UInt8(ascii: "\\"):
                unescaped += bytes[start..<position]
                position += 1
                unescaped += try parseEscape()
                start = position
            case let byte where byte < 0x20:
                throw failure(.unexpectedByte(byte))
            default:
                position += 1
            }
        }
    }

    func text(of bytes: Span<UInt8>, at opening: Int) throws(SerializationError) -> String {
        guard let text = try? UTF8Span(validating: bytes) else { throw failure(.invalidUTF8, at: opening) }
        return String(copying: text)
    }

    /// Parses an escape and returns the UTF-8 encoding of its character.
    mutating func parseEscape() throws(SerializationError) -> [UInt8] {
        let byte = try currentByte()
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
        case UInt8(ascii: "b"): return [8]
        case UInt8(ascii: "f"): return [12]
        case UInt8(ascii: "n"): return [10]
        case UInt8(ascii: "r"): return [13]
        case UInt8(ascii: "t"): return [9]
        case UInt8(ascii: "u"): return try parseUnicodeEscape()
        default: throw failure(.invalidEscape, at: position - 1)
        }
    }

    private mutating func parseUnicodeEscape() throws(SerializationError) -> [UInt8] {
        let start = position
        var units = [try parseHex()]
        if UTF16.isLeadSurrogate(units[0]) {
            try expect(UInt8(ascii: "\\"), reason: .invalidEscape)
            try expect(UInt8(ascii: "u"), reason: .invalidEscape)
            units.append(try parseHex())
        }
        guard let text = String(validating: units, as: UTF16.self) else { throw failure(.invalidEscape, at: start) }
        return Array(text.utf8)
    }

    private mutating func parseHex() throws(SerializationError) -> UInt16 {
        var value: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = Character(UnicodeScalar(try currentByte())).hexDigitValue, bytes[position] < 0x80 else {
                throw failure(.invalidEscape)
            }
            value = value << 4 | UInt16(digit)
            position += 1
        }
        return value
    }

    // MARK: Bytes

    mutating func parseName() throws(SerializationError) -> String {
        try skipWhitespace()
        let byte = try currentByte()
        guard byte == UInt8(ascii: "\"") else { throw failure(.unexpectedByte(byte)) }
        let start = position
        let name = try parseString()
        // The name would be compared with others.
        if name.utf8.hasLongCombiningRun { throw failure(.combiningRun, at: start) }
        try skipWhitespace()
        try expect(UInt8(ascii: ":"))
        return name
    }

    private mutating func descend() throws(SerializationError) {
        guard depth < Self.maximumDepth else { throw failure(.tooDeep(limit: Self.maximumDepth)) }
        depth += 1
        position += 1
    }

    private mutating func ascend<Value>(with value: Value) -> Value {
        depth -= 1
        return value
    }

    /// Consumes a comma and returns `true`, or the end of the array or object and returns `false`.
    mutating func takeComma(before end: UInt8) throws(SerializationError) -> Bool {
        if try take(end) { return false }
        try expect(UInt8(ascii: ","))
        return true
    }

    /// Skips whitespace, and consumes `byte` if it follows; returns whether it did.
    mutating func take(_ byte: UInt8) throws(SerializationError) -> Bool {
        try skipWhitespace()
        guard try currentByte() == byte else { return false }
        position += 1
        return true
    }

    mutating func expect(
        _ byte: UInt8, reason: SerializationError.Failure.JSONReason? = nil
    ) throws(SerializationError) {
        let current = try currentByte()
        guard current == byte else { throw failure(reason ?? .unexpectedByte(current)) }
        position += 1
    }

    private mutating func skipDigits() throws(SerializationError) {
        let start = position
        while position < bytes.count, UInt8(ascii: "0")...UInt8(ascii: "9") ~= bytes[position] { position += 1 }
        guard position > start else { throw failure(.unexpectedByte(try currentByte())) }
    }

    mutating func skipWhitespace() throws(SerializationError) {
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): position += 1
            default: return
            }
        }
    }

    func currentByte() throws(SerializationError) -> UInt8 {
        guard position < bytes.count else { throw failure(.unexpectedEnd) }
        return bytes[position]
    }

    func failure(
        _ reason: SerializationError.Failure.JSONReason, at offset: Int? = nil
    ) -> SerializationError {
        let offset = offset ?? position
        return .json(.init(.json(reason), offset: offset, excerpt: Excerpt.around(offset, in: bytes)))
    }
}

extension JSONParser {
    /// Returns the offset of the value at a path, or of the last value on the path that exists.
    static func offset(of path: [PathStep], in data: Data) -> Int {
        var parser = JSONParser(data)
        var offset = parser.position
        for step in path {
            guard let next = try? parser.enter(step) else { return offset }
            offset = next
        }
        return offset
    }

    /// Moves to the value that a step leads to and returns its offset; `nil` if there is no such value.
    ///
    /// An index also leads to a member of an object: dictionaries may have integer keys, and the coding paths of
    /// `JSONDecoder` do not distinguish them from indices.
    private mutating func enter(_ step: PathStep) throws(SerializationError) -> Int? {
        try skipWhitespace()
        let opening = try currentByte()
        position += 1
        switch (step, opening) {
        case (.index(let index), UInt8(ascii: "[")): return try enterArray(index)
        case (.index(let index), UInt8(ascii: "{")): return try enterObject(String(index))
        case (.name(let name), UInt8(ascii: "{")): return try enterObject(name)
        default: return nil
        }
    }

    private mutating func enterArray(_ index: Int) throws(SerializationError) -> Int? {
        guard index >= 0, try !take(UInt8(ascii: "]")) else { return nil }
        for _ in 0..<index {
            _ = try parseValue()
            guard try takeComma(before: UInt8(ascii: "]")) else { return nil }
        }
        try skipWhitespace()
        return position
    }

    private mutating func enterObject(_ wanted: String) throws(SerializationError) -> Int? {
        guard try !take(UInt8(ascii: "}")) else { return nil }
        repeat {
            if try parseName() == wanted {
                try skipWhitespace()
                return position
            }
            _ = try parseValue()
        } while try takeComma(before: UInt8(ascii: "}"))
        return nil
    }
}
