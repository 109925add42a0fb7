// SPDX-License-Identifier: MIT

import ANHTTP
import Foundation
import Testing

@Suite struct JSONNumbersTests {
    private static let zeros = String(repeating: "0", count: 128)
    /// Ten quadrillions, in many characters.
    private static let long = "0.\(zeros)1e145"

    @Test(arguments: [
        ("[1, -2.5e3, 1e400]", nil), ("1\(zeros)\(zeros)", nil), ("0.\(zeros)\(zeros)", nil), (long, 0),
        ("-\(long)", 0),
        ("[\(long)]", 1), (#"{"a": {"b": [1, 1\#(zeros)000e-115]}}"#, 16), ("[1\(zeros)E-112]", 1),
        // Below 2^53, and above the integers of 128 bits.
        ("0.\(zeros)1e144", nil), ("0.\(zeros)1e168", nil), ("0.\(zeros)1e400", nil),
        (#"["\#(long)", "\\", "\"\#(long)"]"#, nil), (#"["\\", \#(long)]"#, 7), ("'\(long)'", 1), ("/\(long)", 1),
        ("// \(long)", 3), (#""\#(long)"#, nil), ("[1e+, \(long)]", 6), ("[0x, \(long)]", 5),
        (String(repeating: "e", count: 200), nil), ("", nil),
    ])
    func `numbers that exceed the decoder's limits are found in JSON`(document: String, offset: Int?) {
        let failure = JSONNumbers.failure(in: Data(document.utf8), isJSON5: false)
        #expect(failure?.offset == offset)
        #expect(failure?.isMalformed != true)
    }

    @Test(arguments: [
        ("[+\(long)]", 1, false), ("['\(long)', .\(zeros)1e145]", 140, false), ("[0x1e+]", 1, true),
        ("[0x]", 1, true), ("{a: 1e+}", 4, true), ("0x1G", 0, true),
    ])
    func `numbers at which the decoder ends the process are found in JSON5`(
        document: String, offset: Int, isMalformed: Bool
    ) {
        let failure = JSONNumbers.failure(in: Data(document.utf8), isJSON5: true)
        #expect(failure?.offset == offset)
        #expect(failure?.isMalformed == isMalformed)
    }

    /// The decoder does not look at the digits of an escape, nor at what it does not decode, and ends comments elsewhere.
    @Test(arguments: [
        (#"{"z": "\uabc\", "id": 0.\#(zeros)1e145, "c": "x"}"#, false), (#"["\u\abc", "\#(long)"]"#, false),
        (#"["\#(zeros)\#(zeros)\u12"#, false), (#"["\xa\", 0x1e+, "x"]"#, true), (#"['\u12', 0x1e+]"#, true),
        ("[//\u{2028}\"\n0x1e+]", true), ("[// \u{2029}\n1]", true),
    ])
    func `what the decoder may read in another way is refused`(document: String, isJSON5: Bool) {
        #expect(JSONNumbers.failure(in: Data(document.utf8), isJSON5: isJSON5)?.isMalformed == true)
    }

    @Test(arguments: [#"["\u00e9\uD834\uDD65\"", "\x", "\#(zeros)\#(zeros)"]"#, #"["\", "\#(zeros)\#(zeros)\u1234"]"#])
    func `escapes hide no number`(document: String) {
        #expect(JSONNumbers.failure(in: Data(document.utf8), isJSON5: false) == nil)
    }

    @Test func `a long name of JSON5 is no number`() {
        let document = Data("{\(String(repeating: "e", count: 200)): 1, _\(Self.zeros)e1: 2}".utf8)
        #expect(JSONNumbers.failure(in: document, isJSON5: true) == nil)
    }

    @Test(arguments: 0..<300)
    func `a long number is found at any offset`(offset: Int) {
        let document = String(repeating: " ", count: offset) + "1\(Self.zeros)e-112,"
        #expect(JSONNumbers.failure(in: Data(document.utf8), isJSON5: false)?.offset == offset)
        #expect(
            JSONNumbers.failure(in: Data(document.utf8).dropFirst(offset / 2), isJSON5: false)?.offset == offset
                - offset / 2)
    }

    /// Text in which as many accents follow each other, alternately of two classes.
    private static func accents(_ count: Int, _ marks: [String]) -> String {
        (0..<count).map { marks[$0 % marks.count] }.joined()
    }

    @Test(arguments: [
        ["\u{301}", "\u{316}"], ["\\u0301", "\u{316}"], ["\\uD834\\uDD65"], ["\u{1D165}"], ["\u{302A}", "\\u0316"],
        ["\u{301}\\\n"], ["\u{301}\\\r\n"], ["\u{301}\\\u{2028}"],
    ])
    func `a string that takes too long to compare is found`(marks: [String]) {
        for (count, expected) in [(0, false), (256, false), (257, true), (1_000, true)] {
            let document = Data("{\"e\(Self.accents(count, marks))\": 1}".utf8)
            #expect(CombiningRun.isTooLong(inJSON: document) == expected, "\(count)")
        }
    }

    @Test(arguments: [
        "漢字かな", "é", "e\u{301}", "\\u00e9", "\\\\u0301", "a\\", "a\\u03", "\\uD834", "\\uDD65", "\u{301}\\t", "👍", "",
    ])
    func `other strings may have any length`(text: String) {
        let document = Data("[\"\(String(repeating: text, count: 1_000))\"]".utf8)
        #expect(!CombiningRun.isTooLong(inJSON: document))
        for cut in document.indices.prefix(20) {
            #expect(!CombiningRun.isTooLong(inJSON: document.prefix(cut)))
            #expect(!CombiningRun.isTooLong(inJSON: document.dropFirst(cut)))
        }
    }

    @Test(.timeLimit(.minutes(1))) func `an untrusted document that takes too long to compare is an error`() {
        let document = Data("{\"e\(Self.accents(400_000, ["\u{301}", "\u{316}"]))\": 1}".utf8)
        #expect(throws: DecodingError.self) { try JSONDecoder().decodeUntrusted([String: Int].self, from: document) }
    }

    @Test func `an untrusted document with a long number is an error`() throws {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decodeUntrusted([Int].self, from: Data("[\(Self.long)]".utf8))
        }
        #expect(try JSONDecoder().decodeUntrusted([Int].self, from: Data("[1e16]".utf8)) == [10_000_000_000_000_000])
    }

    @Test(arguments: [
        String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .utf32LittleEndian, .utf32BigEndian,
    ])
    func `an untrusted document that is not UTF-8 is an error, because its numbers are not inspected`(
        encoding: String.Encoding
    ) throws {
        let document = try #require("[\(Self.long)]".data(using: encoding))
        #expect(throws: DecodingError.self) { try JSONDecoder().decodeUntrusted([Int].self, from: document) }
    }
}
