// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
import Testing

@Suite struct CharsetConverterTests {
    private func convert(_ bytes: [UInt8], _ charset: String) throws(SystemError) -> String {
        var converter = try CharsetConverter(from: charset)
        return unsafe String(decoding: try converter.utf8(of: bytes.span.bytes), as: UTF8.self)
    }

    @Test func `text is converted to UTF-8`() throws {
        #expect(try convert([0xE9, 0x61], "ISO-8859-1") == "éa")
        #expect(try convert([], "ISO-8859-1") == "")
        // The last letter is held back because a point may follow it.
        #expect(try convert([0xF9, 0xE0], "CP1255") == "שא")
        #expect(try convert(Array(repeating: 0xE9, count: 200_000), "CP1252") == String(repeating: "é", count: 200_000))
    }

    @Test func `each conversion starts from the initial shift state`() throws {
        var converter = try CharsetConverter(from: "ISO-2022-JP")
        let shifted: [UInt8] = [0x1B, 0x24, 0x42, 0x46, 0x7C]
        let first = unsafe try converter.utf8(of: shifted.span.bytes)
        #expect(first == Array("日".utf8))
        let plain = [UInt8(ascii: "F")]
        let second = unsafe try converter.utf8(of: plain.span.bytes)
        #expect(second == plain)
    }

    @Test func `invalid and incomplete characters fail with different errors`() {
        #expect(throws: SystemError(call: "iconv", code: EILSEQ)) { try convert([0xFF, 0xFF], "EUC-JP") }
        #expect(throws: SystemError(call: "iconv", code: EINVAL)) { try convert([0xC6], "EUC-JP") }
    }

    @Test(arguments: [
        "", "no-such-charset", "UTF-8//IGNORE", "UTF-8/", "ISO-8859-1,", String(repeating: "A", count: 41),
    ])
    func `names with special characters are unknown`(charset: String) {
        #expect(throws: SystemError(call: "iconv_open", code: EINVAL)) { try convert([], charset) }
    }
}
