// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import Testing

@Suite struct StringResponseSerializerTests {
    @Test(
        arguments: [
            ("text/plain; charset=utf-8", [0xC3, 0xA9], "é"),
            ("text/plain;CHARSET=\"ISO-8859-1\"", [0xE9], "é"),
            ("text/plain; x=y; charset = windows-1252 ", [0x80], "€"),
            ("text/plain; charset=utf-16le", [0x61, 0], "a"),
            ("text/plain; charset=", [0xE9], "é"),
            ("text/plain", [0xC3, 0xA9], "é"),
            ("text/plain", [0xE9], "é"),
            ("text/plain", [0xFF, 0xFE, 0x61, 0], "a"),
            (nil, [0x61], "a"),
            (nil, [], ""),
        ] as [(String?, [UInt8], String)])
    func `the charset is claimed, marked, UTF-8 or Latin-1`(type: String?, bytes: [UInt8], text: String) throws {
        #expect(try value(of: .string, type: type, bytes) == text)
    }

    @Test func `an encoding of one's own wins`() throws {
        #expect(try value(of: .string(.latin1), type: "text/plain; charset=utf-8", [0xC3, 0xA9]) == "Ã©")
    }

    @Test func `an unknown charset fails`() {
        expectFailure {
            try value(of: .string, type: "text/plain; charset=Shift_JIS", [0x61])
        } where: { error in
            if case .text(.unknownCharset("shift_jis")) = error { true } else { false }
        }
    }

    @Test func `bytes that are invalid in the claimed charset fail`() {
        expectFailure {
            try value(of: .string, type: "text/plain; charset=utf-8", [0xE9])
        } where: { error in
            if case .text(.invalidBytes("utf-8")) = error { true } else { false }
        }
    }
}
