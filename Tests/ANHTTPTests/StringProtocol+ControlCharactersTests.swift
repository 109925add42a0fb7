// SPDX-License-Identifier: MIT

import ANHTTP
import Testing

@Suite struct ControlCharactersTests {
    @Test(arguments: [
        ("", false), (" ", false), ("~", false), ("é\u{80}", false), ("\0", true), ("a\tb", true), ("a\r\nb", true),
        ("\u{1F}", true), ("\u{7F}", true),
    ])
    func `control characters are those of ASCII`(text: String, expected: Bool) {
        #expect(text.hasControlCharacters == expected)
    }

    @Test(arguments: [
        ("", ""), ("plain ~", "plain ~"), ("é€👍", "é€👍"), ("a\tb\r\nc\0", "a b  c "), ("\u{1B}[2J\u{7}", " [2J "),
        ("\u{9B}2J\u{80}\u{7F}", " 2J  "), ("\u{202E}a\u{2066}b\u{200F}\u{FEFF}", " a b  "),
        ("\u{2028}\u{2029}", "  "),
    ])
    func `text on one line controls no terminal`(text: String, expected: String) {
        #expect(text.printable == expected)
    }
}
