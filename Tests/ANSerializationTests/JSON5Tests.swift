// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

@Suite struct JSON5Tests {
    private func parse(_ json: String) throws -> JSONValue {
        try value(of: .json([.allowsFragments, .allowsJSON5]), type: "application/json", Array(json.utf8))
    }

    @Test(
        arguments: [
            ("// one\n[1, /* two */ 2,]", [1, 2]),
            ("{a: 1, $b_2: 2, 'c d': 3, \"e\": 4, é: 5,}", ["a": 1, "$b_2": 2, "c d": 3, "e": 4, "é": 5]),
            (#"'it\'s "so"'"#, #"it's "so""#),
            ("'a\\\nb\\\r\nc'", "abc"),
            (#"'\x41\v\0\u00e9\n'"#, "A\u{B}\u{0}é\n"),
            (#""\x41\'""#, "A'"),
            ("[0x1F, -0XfF, +5, .5, 5., 5.e1, -1.5E+2]", [31, -255, 5, 0.5, 5.0, 50.0, -150.0]),
            ("[18446744073709551615, 0xFFFFFFFFFFFFFFFF]", [.unsigned(.max), .unsigned(.max)]),
            ("[Infinity, -Infinity]", [.double(.infinity), .double(-.infinity)]),
            ("\u{FEFF}\u{A0}\u{B}\u{C}[\u{2028}true, null]// end", [true, .null]),
            ("0", 0), ("-0", 0),
        ] as [(String, JSONValue)])
    func `the extensions of JSON5 are parsed if allowed`(json: String, expected: JSONValue) throws {
        #expect(try parse(json) == expected)
    }

    @Test func `NaN is parsed if allowed`() throws {
        #expect(try parse("NaN").double?.isNaN == true)
    }

    @Test(arguments: [
        "[1,,2]", "{,}", "{1a: 1}", "01", "0x", "1e", "1.2.3", "+", "++1", ".", "'a", "'a\n'", "/* no end", "/",
        #"'\x4'"#,
        #"'\x+1'"#, "1e999", "[Infinit]", "<html>", "e5", "0xFFFFFFFFFFFFFFFFF", "{a b: 1}", "[1 2]", "  ",
    ])
    func `malformed JSON5 fails`(json: String) {
        expectFailure {
            try parse(json)
        } where: { error in
            if case .json = error { true } else { false }
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
