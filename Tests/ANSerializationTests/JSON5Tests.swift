// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct JSON5Tests {
    private func parse(_ json: String) throws -> JSONValue {
        try value(of: .json(allowsFragments: true, allowsJSON5: true), type: "application/json", Array(json.utf8))
    }

    @Test(
        arguments: [
            ("// one\n[1, /* two */ 2,]", [1, 2]),
            ("{a: 1, $b_2: 2, 'c d': 3, \"e\": 4, é: 5,}", ["a": 1, "$b_2": 2, "c d": 3, "e": 4, "é": 5]),
            (#"'it\'s "so"'"#, #"it's "so""#),
            (#"'\x41\u00e9\n'"#, "Aé\n"),
            (#""\x41\'""#, "A'"),
            ("[0x1F, -0XfF, +5, .5, 5., 5.e1, -1.5E+2]", [31, -255, 5, 0.5, 5, 50, -150]),
            ("[18446744073709551615, 0xFFFFFFFFFFFFFFFF]", [.unsigned(.max), .unsigned(.max)]),
            (#"["0x1+\"", '0x1+', 0xA, /* 0x1+ */] // 0x0x1"#, [#"0x1+""#, "0x1+", 10]),
            ("[Infinity, -Infinity]", [.double(.infinity), .double(-.infinity)]),
            ("\u{FEFF}\u{B}\u{C}[true, null]// end", [true, .null]), ("[5.0]// end", [5]), ("[5.0]", [5.0]),
            ("{a: 1, a: 2}", ["a": 1]), ("{\"a\": 1, \"a\": 2}", ["a": 1]),
            ("0", 0), ("-0", 0), ("[9007199254740993,]", [.integer(9_007_199_254_740_993)]),
            ("[9007199254740993.7,]", [.double(9_007_199_254_740_993.7)]), ("[1e2,]", [100]),
            ("[+1e30]", [.double(1e30)]),
        ] as [(String, JSONValue)])
    func `the extensions of JSON5 are parsed if allowed`(json: String, expected: JSONValue) throws {
        #expect(try parse(json) == expected)
    }

    @Test(arguments: ["[1e-400]", "[1e-400,]", "[+1e-400]", "1e400", "[1e400,]"])
    func `numbers out of range fail also if JSON5 is allowed`(json: String) {
        #expect(throws: SerializationError.self) { try parse(json) }
    }

    @Test func `NaN is parsed if allowed`() throws {
        #expect(try parse("NaN").double?.isNaN == true)
    }

    /// The time that Foundation's decoder takes for a value grows with the square of its depth.
    @Test func `JSON5 may be nested 64 levels deep`() throws {
        let opening = String(repeating: "[", count: 64)
        #expect(throws: Never.self) { try parse("// [[[\n" + opening + "'[[['" + String(repeating: "]", count: 64)) }
        for deep in [
            "[" + opening + "1," + String(repeating: "]", count: 65), String(repeating: "{a: ", count: 1_000_000),
        ] {
            expectFailure {
                try parse(deep)
            } where: { error in
                if case .json(let failure) = error { failure.reason == .json(.tooDeep(limit: 64)) } else { false }
            }
        }
    }

    @Test(arguments: ["{a\u{FF}: 1}", "[\u{FF}", "'\u{FF}'", "// \u{FF}\n[]"])
    func `invalid UTF-8 fails in JSON5`(text: String) {
        // The byte 0xFF, which never occurs in UTF-8.
        let bytes = text.unicodeScalars.map { UInt8($0.value) }
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        for work in [
            { try value(of: .json(allowsFragments: true, allowsJSON5: true), type: "application/json", bytes) as Any },
            { try value(of: .decodable([String: Int].self, decoder: decoder), type: "text/json", bytes) as Any },
        ] {
            expectFailure(work) { error in
                if case .json(let failure) = error { failure.reason == .json(.invalidUTF8) } else { false }
            }
        }
    }

    /// Foundation's decoder also reads UTF-16 and UTF-32 without a byte order mark, in which no number is inspected.
    @Test(
        arguments: [
            "[0.\(String(repeating: "0", count: 128))1e145]", "/*∁*/[9223372036854775808581e+]",
            "\"a\": 0.\(String(repeating: "0", count: 128))1e145",
        ],
        [
            String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .utf32LittleEndian, .utf32BigEndian,
        ])
    func `text in UTF-16 and UTF-32 fails for every decoder`(text: String, encoding: String.Encoding) throws {
        let bytes = Array(try #require(text.data(using: encoding)))
        let (extended, bare) = (JSONDecoder(), JSONDecoder())
        extended.allowsJSON5 = true
        bare.assumesTopLevelDictionary = true
        for work in [
            { try value(of: .json(allowsFragments: true, allowsJSON5: true), type: "application/json", bytes) as Any },
            { try value(of: .decodable([Int].self, decoder: extended), type: "text/json", bytes) as Any },
            { try value(of: .decodable([String: Int].self, decoder: bare), type: "text/json", bytes) as Any },
        ] {
            expectFailure(work) { error in
                if case .json = error { true } else { false }
            }
        }
    }

    @Test func `damaged JSON5 never ends the process`() {
        let document = Array(
            #"{a: 1, $b: -0XfF, 'c d': [.5, 5., +1e3, NaN], é: '\x41\'', /* c */ f: null,} // end"#.utf8)
        var random = SplitMix64(seed: 1)
        for _ in 0..<5_000 {
            var damaged = document
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let index = Int.random(in: 0..<damaged.count, using: &random)
                damaged[index] = UInt8.random(in: 0...255, using: &random)
            }
            _ = try? value(of: .json(allowsJSON5: true), type: "application/json", damaged)
        }
    }

    @Test(arguments: [
        "[1,,2]", "{,}", "{1a: 1}", "01", "0x", "1e", "1.2.3", "+", "++1", ".", "'a", "'a\n'", "/* no end", "/",
        #"'\x4'"#,
        #"'\x+1'"#, "1e999", "[Infinit]", "<html>", "e5", "0xFFFFFFFFFFFFFFFFF", "{a b: 1}",
        // Foundation's decoder would end the process.
        "0x0x1F", "[0x1e+]", "-0x0x1", "{a: 0x1-2}", "{a: 9223372036854775808581e+}", "[1e-]", "[1 2]", "  ",
    ])
    func `malformed JSON5 fails`(json: String) {
        expectFailure {
            try parse(json)
        } where: { error in
            if case .json = error { true } else { false }
        }
    }

    /// Foundation's decoder would end the process at a byte that occurs in numbers.
    @Test(arguments: ["e", "1", "."]) func `the bytes after a document are not read`(next: String) {
        let number = "0x10000000000000000"
        var bytes = Array((number + next).utf8)
        unsafe bytes.withUnsafeMutableBytes { buffer in
            guard let start = buffer.baseAddress else { return }
            let document = unsafe Data(bytesNoCopy: start, count: number.utf8.count, deallocator: .none)
            expectFailure {
                try JSONResponseSerializer(options: [.allowsFragments, .allowsJSON5])
                    .serialize(ResponseHead(status: .ok, url: URL(filePath: "/")), document)
            } where: { error in
                if case .json = error { true } else { false }
            }
        }
    }

    /// Foundation's decoder would read the end of the number in them, and end the process at a digit.
    @Test(arguments: ["e", "1", "."])
    func `the bytes after a document without braces are not read`(next: String) throws {
        let text = "\"a\": 10000000000000000000000"
        let decoder = JSONDecoder()
        decoder.assumesTopLevelDictionary = true
        var bytes = Array((text + next).utf8)
        unsafe try bytes.withUnsafeMutableBytes { buffer in
            guard let start = buffer.baseAddress else { return }
            let document = unsafe Data(bytesNoCopy: start, count: text.utf8.count, deallocator: .none)
            let value = try DecodableResponseSerializer([String: Double].self, decoder: decoder)
                .serialize(ResponseHead(status: .ok, url: URL(filePath: "/")), document)
            #expect(value == ["a": 1e22])
        }
    }

    @Test func `errors of a JSON5 decoder are located in JSON5`() {
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        expectFailure {
            try value(of: .decodable([String: Int].self, decoder: decoder), type: "text/json", Array("{a: 'x'}".utf8))
        } where: { error in
            if case .decoding(let failure) = error { failure.path == "a" } else { false }
        }
    }
}
