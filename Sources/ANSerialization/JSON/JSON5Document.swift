// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A value that Foundation decodes from JSON5.
struct JSON5Document: Decodable {
    private let value: JSONValue

    /// Returns the value of a complete document.
    static func parse(_ data: Data) throws(SerializationError) -> JSONValue {
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        let data = try decoder.prepared(data)
        guard JSON5Numbers.depth(of: data) <= maximumDepth else {
            throw .json(.init(.json(.tooDeep(limit: maximumDepth)), offset: 0, excerpt: Excerpt.of(data)))
        }
        do {
            return try decoder.decode(Self.self, from: data).value
        } catch {
            throw .json(.init(.json(.malformedJSON5), offset: 0, excerpt: Excerpt.of(data)))
        }
    }

    /// The maximum number of arrays and objects around a value. Foundation's decoder throws an error for each type that
    /// a value does not have, and its cost grows with the depth of the value.
    static let maximumDepth = 64

    init(from decoder: any Decoder) throws {
        if let members = try? decoder.container(keyedBy: Name.self) {
            let pairs = try members.allKeys.map { ($0.stringValue, try members.decode(Self.self, forKey: $0).value) }
            value = .object(Dictionary(pairs) { first, _ in first })
        } else if var elements = try? decoder.unkeyedContainer() {
            var array: [JSONValue] = []
            while !elements.isAtEnd { array.append(try elements.decode(Self.self).value) }
            value = .array(array)
        } else {
            value = try Self.scalar(decoder.singleValueContainer())
        }
    }

    private static func scalar(_ container: any SingleValueDecodingContainer) throws -> JSONValue {
        if container.decodeNil() { return .null }
        if let string = try? container.decode(String.self) { return .string(string) }
        if let bool = try? container.decode(Bool.self) { return .bool(bool) }
        if let integer = try? container.decode(Int64.self) { return .integer(integer) }
        if let integer = try? container.decode(UInt64.self) { return .unsigned(integer) }
        return .double(try container.decode(Double.self))
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) {
            self.stringValue = stringValue
        }

        init?(intValue: Int) { nil }
    }
}

/// The numbers of a JSON5 document, at which Foundation's decoder can end the process if the digits of a hexadecimal one
/// are followed by other characters that occur in numbers, as in `0x1e+`, or if an exponent has no digits; and its
/// nesting.
struct JSON5Numbers {
    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0
    private var maximumDepth = 0

    /// Returns whether, outside of strings and comments, all hexadecimal numbers consist of digits, and no number ends
    /// with a sign.
    static func areWellFormed(in document: Data) -> Bool {
        var numbers = JSON5Numbers(bytes: Array(document))
        return numbers.inspect()
    }

    /// Returns the maximum number of arrays and objects around a value, as far as the numbers are well formed.
    static func depth(of document: Data) -> Int {
        var numbers = JSON5Numbers(bytes: Array(document))
        _ = numbers.inspect()
        return numbers.maximumDepth
    }

    /// Inspects the document up to the first malformed number; returns whether all numbers are well formed.
    private mutating func inspect() -> Bool {
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "'"): skipString(until: byte)
            case UInt8(ascii: "/"): skipComment()
            case _ where Self.isOfWord(byte): if !checkWord() { return false }
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                position += 1
                depth += 1
                maximumDepth = max(maximumDepth, depth)
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                position += 1
                depth -= 1
            default: position += 1
            }
        }
        return true
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipString(until quote: UInt8) {
        position += 1
        while let byte = next, byte != quote { position += byte == UInt8(ascii: "\\") ? 2 : 1 }
        position += 1
    }

    /// Skips a comment, or a slash that begins none.
    private mutating func skipComment() {
        position += 1
        switch next {
        case UInt8(ascii: "/"):
            while let byte = next, byte != UInt8(ascii: "\n"), byte != UInt8(ascii: "\r"),
                !bytes[position...].starts(with: [0xE2, 0x80, 0xA8]),
                !bytes[position...].starts(with: [0xE2, 0x80, 0xA9])
            {
                position += 1
            }
        case UInt8(ascii: "*"):
            position =
                bytes[(position + 1)...].firstRange(of: [UInt8(ascii: "*"), UInt8(ascii: "/")])?.upperBound
                ?? bytes.count
        default: break
        }
    }

    /// Skips a name or number. Returns `false` for a number that ends with a sign, and for a hexadecimal one without
    /// digits, or with other characters.
    private mutating func checkWord() -> Bool {
        let word = bytes[position...].prefix(while: Self.isOfWord)
        position = word.endIndex
        guard word.last != UInt8(ascii: "+"), word.last != UInt8(ascii: "-") else { return false }
        let number = word.drop { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") }
        guard number.first == UInt8(ascii: "0"), number.dropFirst().first.map({ $0 | 0x20 }) == UInt8(ascii: "x") else {
            return true
        }
        let digits = number.dropFirst(2)
        return !digits.isEmpty && digits.allSatisfy { Character(UnicodeScalar($0)).isHexDigit }
    }

    /// Returns whether a byte may be part of a name or number.
    static func isOfWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "$"):
            true
        default: false
        }
    }
}
