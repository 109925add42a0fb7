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
    func `bytes become text, or nothing when they are invalid`(encoding: TextEncoding, bytes: [UInt8], text: String?) {
        #expect(encoding.decode(Data(bytes)) == text)
    }

    @Test(arguments: TextEncoding.allCases)
    func `no bytes are an empty text, and every encoding has its own name`(encoding: TextEncoding) {
        #expect(encoding.decode(Data()) == "")
        #expect(TextEncoding(charset: encoding.rawValue.uppercased()) == encoding)
    }

    @Test(
        arguments: [
            ("UTF8", .utf8), ("ASCII", .ascii), ("latin1", .latin1), ("cp1252", .windows1252), ("x", nil),
        ] as [(String, TextEncoding?)])
    func `aliases are known`(name: String, encoding: TextEncoding?) {
        #expect(TextEncoding(charset: name) == encoding)
    }

    @Test func `a slice of data is decoded from its own start`() {
        #expect(TextEncoding.utf16.decode(Data([9, 9, 0xFF, 0xFE, 0x61, 0]).dropFirst(2)) == "a")
    }
}
