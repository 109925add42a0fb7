// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import TestSupport
import Testing

@Suite struct JSONParserTests {
    private func parse(_ bytes: some Sequence<UInt8>) throws -> JSONValue {
        try JSONResponseSerializer(options: .allowsFragments).serialize(makeHead(), Data(bytes))
    }

    @Test(
        arguments: [
            ("0", .integer(0)), ("-0", .integer(0)), ("-12", .integer(-12)),
            ("9223372036854775807", .integer(9_223_372_036_854_775_807)),
            ("-9223372036854775808", .integer(-9_223_372_036_854_775_808)),
            ("9223372036854775808", .unsigned(9_223_372_036_854_775_808)),
            ("18446744073709551615", .unsigned(18_446_744_073_709_551_615)),
            ("18446744073709551616", .double(18_446_744_073_709_551_616)),
            ("1.0", .double(1)), ("0.1", .double(0.1)), ("-2.5e-3", .double(-0.0025)), ("1E+2", .double(100)),
            ("4.9e-324", .double(.leastNonzeroMagnitude)), ("0e-400", .double(0)),
            ("9007199254740993", .integer(9_007_199_254_740_993)),
        ] as [(String, JSONValue)])
    func `integers are exact and other numbers are doubles`(json: String, value: JSONValue) throws {
        #expect(try parse(json.utf8) == value)
    }

    @Test(arguments: [
        (#""""#, ""), (#""a/\/\"\\""#, #"a//"\"#), (#""\b\f\n\r\t""#, "\u{8}\u{C}\n\r\t"), (#""\u00e9\u20AC""#, "é€"),
        (#""\ud834\uDD1E!""#, "𝄞!"), ("\"é𝄞\u{7F}\"", "é𝄞\u{7F}"), (#""\u0000""#, "\0"),
    ])
    func `strings are unescaped`(json: String, text: String) throws {
        #expect(try parse(json.utf8) == .string(text))
    }

    @Test func `arrays and objects nest, with whitespace anywhere`() throws {
        let value = try parse(
            " \t{ \"a\" : [ 1 , { } , [ ] , null ] , \"b\" : { \"c\" : true },\r\n\"a2\":false } ".utf8)
        #expect(
            value
                == .object([
                    "a": .array([.integer(1), .object([:]), .array([]), .null]), "b": .object(["c": .bool(true)]),
                    "a2": .bool(false),
                ]))
    }

    @Test func `the first member with a name counts, and a byte order mark is skipped`() throws {
        #expect(try parse([0xEF, 0xBB, 0xBF] + Array(#"{"a":1,"a":2}"#.utf8)) == .object(["a": .integer(1)]))
    }

    @Test(
        arguments: [
            ("[", .unexpectedEnd, 1), ("[1", .unexpectedEnd, 2), ("[1,", .unexpectedEnd, 3),
            ("{\"a\"", .unexpectedEnd, 4),
            ("{\"a\":", .unexpectedEnd, 5), ("\"a", .unexpectedEnd, 2), ("\"\\", .unexpectedEnd, 2),
            ("\"\\u12", .unexpectedEnd, 5), ("tru", .unexpectedEnd, 3), ("-", .unexpectedEnd, 1),
            ("1.", .unexpectedEnd, 2), ("1e", .unexpectedEnd, 2), ("1e+", .unexpectedEnd, 3),
            ("[1,]", .unexpectedByte(0x5D), 3), ("[,1]", .unexpectedByte(0x2C), 1), ("[1 2]", .unexpectedByte(0x32), 3),
            ("{a:1}", .unexpectedByte(0x61), 1), ("{\"a\" 1}", .unexpectedByte(0x31), 5),
            ("{\"a\":1,}", .unexpectedByte(0x7D), 7), ("nul!", .unexpectedByte(0x21), 3),
            ("NaN", .unexpectedByte(0x4E), 0), ("-Infinity", .unexpectedByte(0x49), 1),
            ("+1", .unexpectedByte(0x2B), 0),
            (".5", .unexpectedByte(0x2E), 0), ("-x", .unexpectedByte(0x78), 1), ("1.e1", .unexpectedByte(0x65), 2),
            ("\"\n\"", .unexpectedByte(0x0A), 1), ("'a'", .unexpectedByte(0x27), 0),
            ("01", .trailingBytes, 1), ("1 2", .trailingBytes, 2), ("[]]", .trailingBytes, 2),
            ("{}x", .trailingBytes, 2),
            ("\"\\x\"", .invalidEscape, 2), ("\"\\u12g4\"", .invalidEscape, 5), ("\"\\ud834\"", .invalidEscape, 7),
            ("\"\\udd1e\"", .invalidEscape, 3), ("\"\\ud834\\u0041\"", .invalidEscape, 3),
            ("1e400", .numberOutOfRange, 0), ("-1e400", .numberOutOfRange, 0),
        ] as [(String, SerializationError.Failure.JSONReason, Int)])
    func `malformed JSON fails with the offset of the error`(
        json: String, reason: SerializationError.Failure.JSONReason, offset: Int
    ) {
        expectFailure {
            try parse(json.utf8)
        } where: { error in
            if case .json(let failure) = error {
                failure.reason == .json(reason) && failure.offset == offset
            } else {
                false
            }
        }
    }

    @Test(arguments: [
        [0x22, 0xFF, 0x22], [0x22, 0xC3, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0x5B, 0x22, 0xC0, 0x80, 0x22],
    ])
    func `invalid UTF-8 in a string fails`(bytes: [UInt8]) {
        expectFailure {
            try parse(bytes)
        } where: { error in
            if case .json(let failure) = error { failure.reason == .json(.invalidUTF8) } else { false }
        }
    }

    @Test(.timeLimit(.minutes(1))) func `a name that takes too long to compare is refused`() {
        let accents = String(repeating: "\u{301}", count: 200_000) + String(repeating: "\\u0316", count: 200_000)
        let document = Array("{\"e\(accents)\": 1}".utf8)
        for decode in [{ _ = try parse($0) }, { _ = try JSONDecoder().prepared(Data($0)) }]
            as [([UInt8]) throws -> Void]
        {
            expectFailure {
                try decode(document)
            } where: { error in
                if case .json(let failure) = error { failure.reason == .json(.combiningRun) } else { false }
            }
        }
    }

    @Test func `nesting is limited to 512 levels`() throws {
        func nested(_ levels: Int) -> String {
            String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
        }
        #expect(throws: Never.self) { try parse(nested(512).utf8) }
        expectFailure {
            try parse(nested(513).utf8)
        } where: { error in
            if case .json(let failure) = error { failure.reason == .json(.tooDeep(limit: 512)) } else { false }
        }
    }

    @Test(
        .timeLimit(.minutes(5)), arguments: ["[", "{\"a\":", "[1,", "\"", "-", "1", "{\"a\":1,", "\\", "[\"\\u0000\","])
    func `two megabytes of one unit fail in bounded time`(unit: String) {
        let body = Data(String(repeating: unit, count: 2_000_000 / unit.utf8.count).utf8)
        for work in [
            { try JSONResponseSerializer().serialize(makeHead(), body) as Any },
            { try DecodableResponseSerializer([Int].self).serialize(makeHead(), body) as Any },
        ] {
            expectFailure(work) { $0.description.utf8.count < 1_000 }
        }
    }

    @Test func `the text around an error is shown`() {
        let json =
            #"{"users":[{"name":"Ada","tags":["a","b"],"broken":nope,"more":"text and text and text and text"}]}"#
        expectFailure {
            try parse(json.utf8)
        } where: { error in
            "\(error)" == "The body is not JSON: unexpected “o” at byte 51, near “…"
                + #""name":"Ada","tags":["a","b"],"broken":nope,"more":"text and text and text and t"# + "…”."
        }
    }

    @Test func `the parser accepts damaged documents exactly if JSONDecoder does`() throws {
        let document = Array(
            #"{"a":[1,-2.5e3,true,null,"é\u00e9\ud834\udd1e\n"],"b":{"c":[[],{}]},"d":18446744073709551615}"#.utf8)
        var random = SeededGenerator(seed: 1)
        for round in 0..<5_000 {
            var bytes = document
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch round % 3 {
                case 0: bytes[index] = UInt8.random(in: .min ... .max, using: &random)
                case 1: bytes.remove(at: index)
                default: bytes.insert(#"{}[]",:\-0eE.ut"#.utf8.randomElement(using: &random) ?? 0, at: index)
                }
            }
            let isParsed = (try? parse(bytes)) != nil
            let isDecoded = (try? JSONDecoder().decode(Anything.self, from: Data(bytes))) != nil
            // The decoder accepts a trailing comma in an array, which is not JSON.
            let text = String(decoding: bytes, as: UTF8.self)
            if isParsed != isDecoded, !text.contains(",]") {
                Issue.record("parsed: \(isParsed), decoded: \(isDecoded), of \(text)")
            }
        }
    }

    /// A value of any type; decodes every nested value because the decoder validates strings and numbers lazily.
    private struct Anything: Decodable {
        init(from decoder: any Decoder) throws {
            if let object = try? decoder.container(keyedBy: AnyKey.self) {
                for key in object.allKeys { _ = try object.decode(Anything.self, forKey: key) }
            } else if var array = try? decoder.unkeyedContainer() {
                while !array.isAtEnd { _ = try array.decode(Anything.self) }
            } else {
                let value = try decoder.singleValueContainer()
                guard !value.decodeNil(), (try? value.decode(Bool.self)) == nil else { return }
                if (try? value.decode(Double.self)) == nil { _ = try value.decode(String.self) }
            }
        }
    }

    private struct AnyKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
