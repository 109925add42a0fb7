// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

@Suite struct XMLTextTests {
    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    private func text(_ bytes: [UInt8], charset: String? = nil) throws -> String? {
        String(validating: try XMLText.utf8(Data(bytes), charset: charset), as: UTF8.self)
    }

    @Test(arguments: [
        "<a/>", "", "<?xml version='1.0'?><a/>", "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone='yes' ?><a/>",
        "<?xml-stylesheet encoding='utf-7'?><a/>", " <?xml version='1.0' encoding='koi8-r'?><a/>",
    ])
    func `UTF-8 is unchanged except for the byte order mark`(document: String) throws {
        #expect(try text(Array(document.utf8)) == document)
        #expect(try text(Self.mark + document.utf8) == document)
        #expect(try text(Self.mark + Self.mark + document.utf8) == document)
    }

    private static let far = String(repeating: " ", count: 5_000)

    @Test(arguments: [
        ("<?xml version='1.0' encoding='utf-7'?><a/>", "<?xml version='1.0'?><a/>"),
        ("<?xml version='1.0'\n encoding = \"koi8-r\" x='y'?><a/>", "<?xml version='1.0' x='y'?><a/>"),
        ("<?xml version='1.0'\(far)encoding='UTF-7'\(far)?><a/>", "<?xml version='1.0'\(far)?><a/>"),
        ("<?xml version='1.0' encoding='utf8'?><a/>", "<?xml version='1.0'?><a/>"),
    ])
    func `the declaration of another encoding is removed`(document: String, expected: String) throws {
        #expect(try text(Array(document.utf8), charset: "utf-8") == expected)
        #expect(try text(Self.mark + document.utf8) == expected)
        let wide = document.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        #expect(try text([0xFE, 0xFF] + wide) == expected)
        #expect(try text(wide) == expected)
    }

    @Test func `a declared encoding is found at any position`() throws {
        let head = "<?xml version='1.0'\(Self.far)encoding='iso-8859-1'?><a>"
        #expect(try text(Array(head.utf8) + [0xE9] + Array("</a>".utf8)) == "<?xml version='1.0'?><a>é</a>")
        expectFailure {
            try XMLText.utf8(Data("<?xml version='1.0'\(Self.far)encoding='utf-7'?><a>".utf8))
        } where: { error in
            if case .text(.unknownCharset("utf-7")) = error { true } else { false }
        }
    }

    private static let plain = "<?xml version=\"1.0\"?>"

    @Test(arguments: [
        "<?xml version='1.0' encoding='utf-7'><a/>", "<?xml version='1.0' encoding='utf-7' ", "<?xml version='1.0",
        "<?xml version=\"1.0 encoding='utf-7'\"?><a/>", "<?xml version='1.0'encoding='utf-7'?><a/>",
        "<?xml encoding='utf-8' encoding='utf-7'?><a/>", "<?xml version='1.0' x encoding='utf-7'?><a/>", "<?xml ?",
    ])
    func `a malformed declaration is preceded by a valid one`(document: String) throws {
        #expect(try text(Array(document.utf8)) == Self.plain + document)
        #expect(try text(Self.mark + document.utf8) == Self.plain + document)
    }

    @Test func `bytes that resemble another encoding are preceded by a declaration`() throws {
        // UTF-16 and EBCDIC, declared as another encoding.
        let wide: [UInt8] = "<?xml version='1.0'?><a/>".utf8.flatMap { [$0, 0] }
        #expect(try XMLText.utf8(Data(wide), charset: "utf-8") == Data(Array(Self.plain.utf8) + wide))
        #expect(try XMLText.utf8(Data(wide), charset: "iso-8859-1") == Data(Array(Self.plain.utf8) + wide))
        #expect(try XMLText.utf8(Data(Self.mark + wide)) == Data(Array(Self.plain.utf8) + wide))
        let ebcdic: [UInt8] = [0x4C, 0x6F, 0xA7, 0x94]
        #expect(try XMLText.utf8(Data(ebcdic)) == Data(Array(Self.plain.utf8) + ebcdic))
        let marked: [UInt8] = [0xFF, 0xFE, 0x3C, 0]
        #expect(try XMLText.utf8(Data(Self.mark + marked)) == Data(Array(Self.plain.utf8) + marked))
    }
}
