// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

@Suite struct TextEncodingTests {
    @Test(
        arguments: [
            (.utf8, [0x61, 0xC3, 0xA9], "aé"),
            (.utf8, [0xEF, 0xBB, 0xBF, 0x61], "a"),
            (.utf8, [0xC3], nil),
            (.utf8, [0xED, 0xA0, 0x80], nil),
            (.utf16, [0xFE, 0xFF, 0x00, 0x61], "a"),
            (.utf16, [0xFF, 0xFE, 0x61, 0x00], "a"),
            (.utf16, [0x00, 0x61], "a"),
            (.utf16LittleEndian, [0x34, 0xD8, 0x1E, 0xDD], "𝄞"),
            (.utf16BigEndian, [0xD8, 0x34, 0xDD, 0x1E], "𝄞"),
            (.utf16BigEndian, [0xD8, 0x34], nil),
            (.utf16BigEndian, [0x00], nil),
            (.utf32, [0xFF, 0xFE, 0, 0, 0x1E, 0xD1, 0x01, 0], "𝄞"),
            (.utf32LittleEndian, [0x1E, 0xD1, 0x01, 0], "𝄞"),
            (.utf32BigEndian, [0, 0x01, 0xD1, 0x1E], "𝄞"),
            (.utf32BigEndian, [0, 0x11, 0, 0], nil),
            (.utf32BigEndian, [0, 0, 0xD8, 0], nil),
            (.utf32BigEndian, [0, 0, 0], nil),
            (.ascii, [0x61, 0x7F], "a\u{7F}"),
            (.ascii, [0x80], nil),
            (.latin1, [0x61, 0x80, 0xE9, 0xFF], "a\u{80}éÿ"),
            (.windows1252, [0x80, 0x81, 0x93, 0x9F, 0xE9], "€\u{81}“Ÿé"),
        ] as [(TextEncoding, [UInt8], String?)])
    func `bytes are decoded, and invalid ones give nil`(encoding: TextEncoding, bytes: [UInt8], text: String?) {
        #expect(encoding.decode(Data(bytes)) == text)
    }

    @Test(arguments: [
        TextEncoding.utf8, .utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .utf32LittleEndian, .utf32BigEndian,
        .ascii, .latin1, .windows1252,
    ])
    func `empty data gives an empty text, and every encoding is found by its name`(encoding: TextEncoding) {
        #expect(encoding.decode(Data()) == "")
        #expect(TextEncoding(charset: encoding.name.uppercased()) == encoding)
    }

    /// The bytes are taken from the tables of the WHATWG Encoding Standard.
    @Test(
        arguments: [
            ("ibm866", [0x8C, 0xA8, 0xE0], "Мир"),
            ("iso-8859-2", [0xB1, 0xE6], "ąć"),
            ("iso-8859-3", [0xB1], "ħ"),
            ("iso-8859-4", [0xBF], "ŋ"),
            ("iso-8859-5", [0xBC, 0xD8, 0xE0], "Мир"),
            ("iso-8859-6", [0xC8], "ب"),
            ("iso-8859-7", [0xE1, 0xE2], "αβ"),
            ("iso-8859-8", [0xE0], "א"),
            ("iso-8859-8-i", [0xE0], "א"),
            ("iso-8859-9", [0xFE], "ş"),
            ("iso-8859-10", [0xBF], "ŋ"),
            ("iso-8859-13", [0xE0], "ą"),
            ("iso-8859-14", [0xA1], "Ḃ"),
            ("iso-8859-15", [0xA4], "€"),
            ("iso-8859-16", [0xAA], "Ș"),
            ("KOI8-R", [0xED, 0xC9, 0xD2], "Мир"),
            ("koi8-u", [0xA4], "є"),
            ("macintosh", [0x8E], "é"),
            ("tis-620", [0xA1], "ก"),
            ("cp1250", [0xB9], "ą"),
            ("windows-1251", [0xCC, 0xE8, 0xF0], "Мир"),
            ("windows-1253", [0xE1], "α"),
            ("windows-1254", [0xFE], "ş"),
            ("windows-1255", [0xE0], "א"),
            ("windows-1256", [0xC8], "ب"),
            ("windows-1257", [0xE0], "ą"),
            ("windows-1258", [0xF0], "đ"),
            ("x-mac-cyrillic", [0x8C, 0xE8, 0xF0], "Мир"),
            ("GB2312", [0xC4, 0xE3, 0xBA, 0xC3], "你好"),
            ("gb18030", [0x94, 0x39, 0xDA, 0x33], "💩"),
            ("big5", [0xA7, 0x41, 0xA6, 0x6E], "你好"),
            ("euc-jp", [0xC6, 0xFC, 0xCB, 0xDC], "日本"),
            ("iso-2022-jp", [0x1B, 0x24, 0x42, 0x46, 0x7C, 0x4B, 0x5C, 0x1B, 0x28, 0x42], "日本"),
            ("sjis", [0x93, 0xFA, 0x96, 0x7B], "日本"),
            ("ks_c_5601-1987", [0xC7, 0xD1], "한"),
        ] as [(String, [UInt8], String)])
    func `pre-Unicode charsets are decoded`(charset: String, bytes: [UInt8], text: String) throws {
        #expect(try #require(TextEncoding(charset: charset)).decode(Data(bytes)) == text)
    }

    @Test func `any charset of the system can be created explicitly`() throws {
        #expect(try #require(TextEncoding(systemCharset: "IBM1047")).decode(Data([0xC1, 0x4A])) == "A¢")
        #expect(TextEncoding(systemCharset: "no such charset") == nil)
    }

    @Test(arguments: ["utf-7", "IBM1047", "UTF-8//IGNORE", "shift_jis//TRANSLIT", "../utf-8", "", "x\0y"])
    func `a server cannot select other charsets`(charset: String) {
        #expect(TextEncoding(charset: charset) == nil)
    }

    @Test func `a long text is decoded completely`() throws {
        let encoding = try #require(TextEncoding(charset: "shift_jis"))
        let bytes = Data((0..<300_000).flatMap { _ in [0x93, 0xFA, 0x61] as [UInt8] })
        #expect(encoding.decode(bytes) == String(repeating: "日a", count: 300_000))
        #expect(encoding.decode(bytes + [0x93]) == nil)
    }

    @Test(
        arguments: [
            ("UTF8", .utf8), ("Unicode", .utf16LittleEndian), ("csISOLatin1", .latin1), ("ASCII", .ascii),
            ("latin1", .latin1), ("cp1252", .windows1252), ("x", nil),
        ] as [(String, TextEncoding?)])
    func `aliases are known`(name: String, encoding: TextEncoding?) {
        #expect(TextEncoding(charset: name) == encoding)
    }

    @Test func `a slice of data is decoded from its own start`() {
        #expect(TextEncoding.utf16.decode(Data([9, 9, 0xFF, 0xFE, 0x61, 0]).dropFirst(2)) == "a")
    }
}
