// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

/// A value that Foundation decodes from JSON5.
struct JSON5Document: Decodable {
    private let value: JSONValue

    /// Returns the value of a complete document.
    static func parse(_ data: Data) throws(SerializationError) -> JSONValue {
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        let data = try decoder.prepared(data)
        guard JSONNumbers.depth(of: data) <= maximumDepth else {
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
        // Foundation reads integers also from numbers with a fraction.
        if let decimal = try? container.decode(Decimal.self) {
            if let integer = try? container.decode(Int64.self), Decimal(integer) == decimal { return .integer(integer) }
            if let integer = try? container.decode(UInt64.self), Decimal(integer) == decimal {
                return .unsigned(integer)
            }
        }
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
