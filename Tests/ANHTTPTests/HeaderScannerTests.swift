// SPDX-License-Identifier: MIT

import ANHTTP
import Testing

@Suite struct HeaderScannerTests {
    @Test(
        arguments: [
            ([], []), ([""], []), ([" , ,\t"], []), (["a"], ["a"]),
            ([", a ,, b;c=1 ,", "", "d"], ["a", "b;c=1", "d"]),
            (["a=\"x, y\" , \"\\\",\",b"], ["a=\"x, y\"", "\"\\\",\"", "b"]), (["\"a, b"], ["\"a, b"]),
        ] as [([String], [String])])
    func `empty members of a list are ignored`(fields: [String], members: [String]) {
        #expect(HeaderScanner.members(of: fields) == members)
    }

    @Test(arguments: [
        ("abc;", "abc"), ("a.b-c_d~1 x", "a.b-c_d~1"), ("!#$%&'*+-.^_`|~,", "!#$%&'*+-.^_`|~"), ("", ""), (" a", ""),
        ("é", ""), ("(a)", ""),
    ])
    func `a token ends at the first other byte`(text: String, expected: String) {
        var scanner = HeaderScanner(text)
        #expect(scanner.takeToken() == expected)
    }

    @Test(arguments: [
        (#""a, b" x"#, "a, b", UInt8(ascii: " ")), (#""a\"b\\";"#, #"a"b\"#, UInt8(ascii: ";")), (#""""#, "", nil),
        (#""no end"#, "no end", nil), (#""end\"#, #"end\"#, nil), (#"""#, "", nil), (#"a"b""#, nil, UInt8(ascii: "a")),
        ("", nil, nil), ("\"é\"", "é", nil),
    ])
    func `a quoted string is unescaped`(text: String, expected: String?, next: UInt8?) {
        var scanner = HeaderScanner(text)
        #expect(scanner.takeQuotedString() == expected)
        #expect(scanner.next == next)
    }

    @Test func `no escapes are removed that separate many combining characters`() {
        for (count, isUnescaped) in [(256, true), (257, false)] {
            let escaped = String(repeating: "\\\u{301}", count: count)
            let parameters = HeaderParameters("a;b=\"x\(escaped)\";c=\"\\d\"")
            let expected = "x" + (isUnescaped ? String(repeating: "\u{301}", count: count) : escaped)
            #expect(parameters["b"]?.utf8.elementsEqual(expected.utf8) == true)
            #expect(parameters["c"] == "d")
            #expect(parameters["b"]?.utf8.hasLongCombiningRun == false)
        }
    }

    @Test(arguments: [
        ("  a b \t; c", "a b"), (#"a="x;y" ;c"#, #"a="x;y""#), ("a", "a"), (";", ""), ("", ""), (" \t", ""),
        (#""a;b"#, #""a;b"#),
    ])
    func `a text ends outside of quoted strings and is trimmed`(text: String, expected: String) {
        var scanner = HeaderScanner(text)
        #expect(scanner.takeText(before: UInt8(ascii: ";")) == expected)
        #expect(scanner.next == nil || scanner.next == UInt8(ascii: ";"))
    }

    @Test func `a byte is taken only if it is next`() {
        var scanner = HeaderScanner(" \t=x")
        let isTakenEarly = scanner.take(UInt8(ascii: "="))
        scanner.skipBlanks()
        let isTaken = scanner.take(UInt8(ascii: "="))
        #expect(!isTakenEarly && isTaken)
        #expect(scanner.next == UInt8(ascii: "x"))
    }
}
