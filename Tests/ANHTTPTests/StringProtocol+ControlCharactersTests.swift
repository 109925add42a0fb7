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
}
