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
