// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

/// Decisions that RFC 8259 leaves open are those of Foundation's `JSONDecoder`, so that `.json` and `.decodable` agree.
@Suite struct JSONFoundationTests {
    private static func parsed(_ document: String) -> JSONValue? {
        try? JSONResponseSerializer(options: .allowsFragments).serialize(makeHead(), Data(document.utf8))
    }

    @Test(arguments: [
        "1e-400", "-1e-400", "1e-323", "4.9e-324", "2e-324", "2.5e-324", "1e-999999999999999999999", "0e400",
        "0e999999999999999999999", "-0.0", "0.0e-400", "1e308", "1.7976931348623157e308", "1.7976931348623159e308",
        "1e309", "-1e309", "1e400", "1e999999999999999999999", "123456789012345678901234567890e-10",
        "0." + String(repeating: "0", count: 400) + "1", "1" + String(repeating: "0", count: 400),
        "1" + String(repeating: "0", count: 400) + "e-400", "18446744073709551616", "-9223372036854775809",
    ])
    func `numbers that underflow or overflow have the value of JSONDecoder`(number: String) throws {
        let expected = try? JSONDecoder().decode([Double].self, from: Data("[\(number)]".utf8)).first
        let found: Double? =
            switch Self.parsed("[\(number)]") {
            case .array(let elements): elements.first?.double
            default: nil
            }
        #expect(found?.bitPattern == expected?.bitPattern)
    }

    /// Numbers of which `Decimal` can hold none, and which integers and doubles can.
    private static let longNumbers = [
        "0." + String(repeating: "0", count: 128) + "1e145", "-0." + String(repeating: "0", count: 300) + "1e317",
        "1" + String(repeating: "0", count: 170) + "e-154", String(repeating: "3", count: 170) + "e-140",
    ]

    private static func integers(in document: Data) -> [(any ResponseDecoder) throws -> any Sendable] {
        func decoding<Value: Decodable & Sendable>(
            _ type: Value.Type
        ) -> (any ResponseDecoder) throws -> any Sendable {
            { try DecodableResponseSerializer([Value].self, decoder: $0).serialize(makeHead(), document) }
        }
        return [
            decoding(Int.self), decoding(Int8.self), decoding(Int16.self), decoding(Int32.self), decoding(Int64.self),
            decoding(Int128.self), decoding(UInt.self), decoding(UInt8.self), decoding(UInt16.self),
            decoding(UInt32.self), decoding(UInt64.self), decoding(UInt128.self),
        ]
    }

    @Test(arguments: longNumbers, [("[", "]", false), ("[", ",]", true), ("[+", "] // end", true)])
    func `an integer of too many characters is an error`(number: String, text: (String, String, Bool)) {
        let (start, end, isJSON5) = text
        let document = Data((start + number.drop { $0 == "-" && isJSON5 } + end).utf8)
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = isJSON5
        for decode in Self.integers(in: document) { #expect(throws: SerializationError.self) { try decode(decoder) } }
    }

    @Test(arguments: longNumbers)
    func `a number of many characters is a double`(number: String) {
        #expect(Self.parsed(number) == Double(number).map { .double($0) })
    }

    @Test(arguments: [
        #"{"\u00e9": 1, "e\u0301": 2}"#, #"{"e\u0301": 1, "\u00e9": 2}"#, #"{"\u212b": 1, "\u00c5": 2, "A\u030a": 3}"#,
        #"{"a": 1, "\u0061": 2}"#, #"{"": 1, "": 2}"#, #"{"ff": 1, "\ufb00": 2}"#, #"{"\uac00": 1, "\u1100\u1161": 2}"#,
    ])
    func `of names that are equal as strings, the member of JSONDecoder counts`(document: String) throws {
        let expected = try JSONDecoder().decode([String: Int].self, from: Data(document.utf8))
        guard case .object(let members)? = Self.parsed(document) else { throw CancellationError() }
        let names = members.map { Array($0.key.utf8) }
        #expect(Set(names) == Set(expected.keys.map { Array($0.utf8) }))
        for (name, value) in members { #expect(value == .integer(Int64(expected[name] ?? -1))) }
    }
}
