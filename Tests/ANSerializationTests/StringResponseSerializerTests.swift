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
            ("text/html; charset=Shift_JIS", [0x93, 0xFA, 0x96, 0x7B], "日本"),
            ("text/html; charset=EUC-KR", [0xC7, 0xD1, 0xB1, 0xDB], "한글"),
            ("text/html; title=\"a;charset=x\"; charset=koi8-r", [0xCD, 0xC9, 0xD2], "мир"),
            ("text/html; charset='utf-8'", [0xC3, 0xA9], "é"),
            (nil, [0x61], "a"),
            (nil, [], ""),
        ] as [(String?, [UInt8], String)])
    func `the charset is declared, marked, UTF-8 or Latin-1`(type: String?, bytes: [UInt8], text: String) throws {
        #expect(try value(of: .string, type: type, bytes) == text)
    }

    @Test func `an explicit encoding takes precedence`() throws {
        #expect(try value(of: .string(.latin1), type: "text/plain; charset=utf-8", [0xC3, 0xA9]) == "Ã©")
    }

    @Test func `an unknown charset fails`() {
        expectFailure {
            try value(of: .string, type: "text/plain; charset=UTF-7", [0x61])
        } where: { error in
            if case .text(.unknownCharset("utf-7")) = error { true } else { false }
        }
    }

    @Test(.timeLimit(.minutes(1))) func `a charset that takes long to compare is unknown`() {
        let marks = String(repeating: "\u{301}\u{316}", count: 50_000)
        for charset in ["e\(marks)", "'\(marks)'"] {
            expectFailure {
                try value(of: .string, type: "text/plain; charset=\"\(charset)\"", [0xE9])
            } where: { error in
                if case .text = error { true } else { false }
            }
        }
    }

    @Test func `bytes that are invalid in the declared charset fail`() {
        expectFailure {
            try value(of: .string, type: "text/plain; charset=utf-8", [0xE9])
        } where: { error in
            if case .text(.invalidBytes(charset: "utf-8")) = error { true } else { false }
        }
    }

    @Test(arguments: ["shift_jis", "iso-2022-jp", "gbk", "big5", "euc-jp", "euc-kr", "utf-8", "utf-16le", "utf-32"])
    func `bytes that are invalid in any multi-byte charset fail`(charset: String) {
        expectFailure {
            try value(of: .string, type: "text/plain; charset=\(charset)", [0xFF, 0xFF, 0xFF, 0xFF, 0x81])
        } where: { error in
            if case .text(.invalidBytes(charset: charset)) = error { true } else { false }
        }
    }

    @Test func `the fallback is configurable`() throws {
        expectFailure {
            try value(of: StringResponseSerializer(fallback: nil), type: "text/plain", [0xE9])
        } where: { error in
            if case .text(.invalidBytes(charset: "utf-8")) = error { true } else { false }
        }
        #expect(try value(of: StringResponseSerializer(fallback: .windows1252), type: nil, [0x80]) == "€")
    }
}
