// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

/// The charsets of the WHATWG Encoding Standard, byte by byte.
///
/// The expected checksums were computed by the decoders of the standard from its index files (`index-*.txt` of
/// github.com/whatwg/encoding), without this library and glibc: FNV-1a (64 bits) over the UTF-8 of what each sequence
/// of bytes is decoded as, and a byte 0xFF for each that is an error.
@Suite struct LegacyDecoderTests {
    private static func checksum(_ charset: String, _ sequences: some Sequence<[UInt8]>) throws -> UInt64 {
        let encoding = try #require(TextEncoding(charset: charset))
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for bytes in sequences {
            for byte in encoding.decode(Data(bytes)).map({ Array($0.utf8) }) ?? [0xFF] {
                hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
            }
        }
        return hash
    }

    private static let singleBytes: [[UInt8]] = (0...255).map { [$0] }

    private static func pairs(_ first: some Sequence<UInt8>, _ second: ClosedRange<UInt8>) -> [[UInt8]] {
        first.flatMap { (lead: UInt8) -> [[UInt8]] in second.map { [lead, $0] } }
    }

    @Test(
        arguments: [
            ("ibm866", 0x6B8F44234EFAE54A), ("iso-8859-2", 0x0891CDFF42687236), ("iso-8859-3", 0x5FF92C01CDE207E3),
            ("iso-8859-4", 0xEC5455CDCA7B918F), ("iso-8859-5", 0x4616B17A577DBFAF), ("iso-8859-6", 0xEA6F37448D3DAECA),
            ("iso-8859-7", 0x989BA5FE62001A1D), ("iso-8859-8", 0x554717070A199C55), ("iso-8859-10", 0xF0720492E19FD91B),
            ("iso-8859-13", 0x4CC282A8BA420A61), ("iso-8859-14", 0x27EF6FCEADA8F435),
            ("iso-8859-15", 0x461F37F7C64278C0), ("iso-8859-16", 0x5EB2ED1A24BEA882), ("koi8-r", 0x635471103B3E073D),
            ("koi8-u", 0xDD7FDB40AF8D1D41), ("macintosh", 0x2AC543A0FA54B935), ("windows-874", 0xEA5E30917843B4B3),
            ("windows-1250", 0x17BE4B5FAA6291B5), ("windows-1251", 0xB8FB9938A8961325),
            ("windows-1252", 0x9CD7DAFFBB28039A), ("windows-1253", 0x74EE0522B18B3390),
            ("windows-1254", 0xC9D2E7CF7C3CAF14), ("windows-1255", 0xA717E0DE7BA53707),
            ("windows-1256", 0x8D69C07530A8824B), ("windows-1257", 0x518648435C1764FE),
            ("windows-1258", 0x8052F975114C9E83), ("x-mac-cyrillic", 0x66C4C06C8E064185),
        ] as [(String, UInt64)])
    func `single bytes have the characters of the standard`(charset: String, checksum: UInt64) throws {
        #expect(try Self.checksum(charset, Self.singleBytes) == checksum)
    }

    @Test(
        arguments: [
            ("big5", 0x796C1EC353155E03), ("gbk", 0x076B9C1E3073F747), ("gb18030", 0x076B9C1E3073F747),
            ("euc-kr", 0xA5583C1AA36EE6B5), ("shift_jis", 0xEA4DD1C67B37B607), ("euc-jp", 0x2457C58F5C9DAB21),
        ] as [(String, UInt64)])
    func `one and two bytes have the characters of the standard`(charset: String, checksum: UInt64) throws {
        let leads = (UInt8(0x81)...0xFE).filter { charset != "shift_jis" || !(0xA0...0xDF ~= $0) && $0 <= 0xFC }
        let pairs = Self.pairs(leads, 0x40...0xFE)
        #expect(try Self.checksum(charset, Self.singleBytes + pairs) == checksum)
    }

    @Test func `three bytes of EUC-JP have the characters of the standard`() throws {
        let sequences = Self.pairs(0xA1...0xFE, 0xA1...0xFE).map { [0x8F] + $0 }
        #expect(try Self.checksum("euc-jp", sequences) == 0xD299_01DD_1AB1_969B)
    }

    @Test func `four bytes of GB 18030 have the characters of the standard`() throws {
        let sequences = (0..<39_500).map { (pointer: Int) -> [UInt8] in
            let (rest, last) = pointer.quotientAndRemainder(dividingBy: 10)
            return [
                UInt8(0x81 + rest / 1260), UInt8(0x30 + rest / 126 % 10), UInt8(0x81 + rest % 126), UInt8(0x30 + last),
            ]
        }
        #expect(try Self.checksum("gb18030", sequences) == 0xBE40_7CCB_9303_3CB2)
    }

    @Test func `two bytes of ISO-2022-JP have the characters of the standard`() throws {
        let sequences = Self.pairs(0x21...0x7E, 0x21...0x7E).map { [0x1B, 0x24, 0x42] + $0 }
        #expect(try Self.checksum("iso-2022-jp", sequences) == 0x8C97_874E_C142_24F2)
    }

    @Test(
        arguments: [
            ("\u{1B}(Ia\\~", nil), ("a\\~", "a\\~"), ("\u{1B}(Ja\\~\n\u{1B}(B\\", "a¥‾\n\\"),
            ("\u{1B}(I1_\u{1B}(Bz", "ｱﾟz"), ("\u{1B}$@-!\u{1B}$BF|\u{1B}(B", "①日"), ("\u{1B}$BF", nil),
            ("\u{1B}$B\n", nil),
            ("\u{1B}(B\u{1B}(Ba", nil), ("\u{1B}(", nil), ("\u{1B}$A!!", nil), ("\u{E}", nil), ("\u{1B}(J\u{F}", nil),
            ("", ""),
            ("\u{1B}(I\u{7F}", nil), ("\u{1B}(I`", nil), ("é", nil),
        ] as [(String, String?)])
    func `ISO-2022-JP selects character sets`(bytes: String, text: String?) throws {
        #expect(try #require(TextEncoding(charset: "iso-2022-jp")).decode(Data(bytes.utf8)) == text)
    }

    @Test(
        arguments: [
            ("gbk", [0x80, 0x81, 0x80, 0x41], "€亐A"),
            ("gb18030", [0xC4, 0xE3, 0x81, 0x30, 0x81, 0x30, 0x80], "你\u{80}€"),
            ("windows-1258", [0x61, 0xCC], "a\u{300}"), ("windows-1255", [0xE9, 0xC4], "\u{5D9}\u{5B4}"),
            ("big5", [0x41, 0xA2, 0x41, 0xA2, 0x42, 0x41], "A∕﹨A"), ("big5", [0xA7], nil),
            ("gbk", [0x81, 0x30, 0x81], nil),
            ("shift_jis", [0x80, 0x81, 0x80, 0xB1], "\u{80}÷ｱ"), ("euc-jp", [0x8F, 0xA2], nil), ("euc-jp", [0x8E], nil),
            ("euc-jp", [0x8F, 0xF3, 0xF3], nil), ("big5", [0x88, 0x62, 0x80], nil),
        ] as [(String, [UInt8], String?)])
    func `characters of several bytes follow each other`(charset: String, bytes: [UInt8], text: String?) throws {
        let decoded = try #require(TextEncoding(charset: charset)).decode(Data(bytes))
        #expect(decoded.map { Array($0.unicodeScalars) } == text.map { Array($0.unicodeScalars) })
    }
}
