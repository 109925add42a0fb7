// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import Testing

@Suite struct LineSplitterTests {
    private static let cases: [(text: String, lines: [String])] = [
        ("", []),
        ("a", ["a"]),
        ("\n", [""]),
        ("\r", [""]),
        ("\r\n", [""]),
        ("\n\r", ["", ""]),
        ("\r\r\n\n", ["", "", ""]),
        ("\n\n", ["", ""]),
        ("a\nb", ["a", "b"]),
        ("a\rb", ["a", "b"]),
        ("a\r\nb", ["a", "b"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\r\n\r\nb\n\nc\r\rd", ["a", "", "b", "", "c", "", "d"]),
        ("a\n\r\n\rb", ["a", "", "", "b"]),
        ("data: {\"x\": \"ä€😀\"}\r\n\r\nid: 1\n", ["data: {\"x\": \"ä€😀\"}", "", "id: 1"]),
        // Only CR and LF end lines; VT, FF, NEL, LS and PS do not.
        ("a\u{0B}b\u{0C}c\u{85}d\u{2028}e\u{2029}f\0g", ["a\u{0B}b\u{0C}c\u{85}d\u{2028}e\u{2029}f\0g"]),
    ]

    @Test(arguments: cases)
    func `lines do not depend on two cuts between chunks`(text: String, lines: [String]) throws {
        let bytes = Data(text.utf8)
        for first in 0...bytes.count {
            for second in first...bytes.count {
                let found = try Self.split([bytes[..<first], bytes[first..<second], bytes[second...]])
                #expect(found == lines, "cut at \(first) and \(second)")
            }
        }
    }

    @Test(arguments: cases)
    func `lines do not depend on chunks of single bytes`(text: String, lines: [String]) throws {
        #expect(try Self.split(text.utf8.map { Data([$0]) }) == lines)
    }

    @Test(
        arguments: [
            ([0xFF], "\u{FFFD}"),
            ([0x61, 0x80, 0x62], "a\u{FFFD}b"),
            ([0xC3], "\u{FFFD}"),
            ([0xE2, 0x82], "\u{FFFD}"),
            ([0xC0, 0xAF], "\u{FFFD}\u{FFFD}"),
            ([0xED, 0xA0, 0x80], "\u{FFFD}\u{FFFD}\u{FFFD}"),
        ] as [([UInt8], String)])
    func `invalid UTF-8 becomes U+FFFD without affecting the line ending`(bytes: [UInt8], text: String) throws {
        for end: [UInt8] in [[0x0A], [0x0D], [0x0D, 0x0A]] {
            #expect(try Self.split([Data(bytes + end + [0x7A])]) == [text, "z"])
        }
        #expect(try Self.split([Data(bytes)]) == [text])
    }

    @Test func `a character split between two chunks is decoded`() throws {
        #expect(try Self.split([Data([0x61, 0xE2, 0x82]), Data([0xAC, 0x0A])]) == ["a€"])
    }

    @Test func `a line may have the maximum length, but no more bytes`() throws {
        for end in ["\n", "\r", "\r\n", ""] {
            #expect(try Self.split([Data(("12345" + end).utf8)], limit: 5) == ["12345"])
            #expect(try Self.split([Data("123".utf8), Data(("45" + end).utf8)], limit: 5) == ["12345"])
            for cut in 0...6 {
                let bytes = Data(("123456" + end).utf8)
                #expect(throws: TransportError.self) { try Self.split([bytes[..<cut], bytes[cut...]], limit: 5) }
            }
        }
        #expect(try Self.split([Data("\n\n".utf8)], limit: 0) == ["", ""])
        #expect(throws: TransportError.self) { try Self.split([Data("a".utf8)], limit: 0) }
        #expect(throws: TransportError.self) { try Self.split([Data("\n".utf8)], limit: -1) }
        #expect(throws: TransportError.self) { try Self.split([Data("a\n".utf8)], limit: .min) }
    }

    @Test(arguments: [0, 1, 5])
    func `a byte order mark at the beginning does not count`(limit: Int) throws {
        let text = "\u{FEFF}" + String(repeating: "x", count: limit)
        for end in ["\n", "\r", "\r\n", ""] {
            #expect(try Self.split((text + end).utf8.map { Data([$0]) }, limit: limit) == [text])
            #expect(throws: TransportError.self) { try Self.split([Data((text + "x" + end).utf8)], limit: limit) }
            #expect(throws: TransportError.self) {
                try Self.split([Data(("\n" + text + end).utf8)], limit: limit)
            }
        }
        // A part of a mark is not one.
        for part in [[0xEF], [0xEF, 0xBB]] as [[UInt8]] {
            #expect(throws: TransportError.self) { try Self.split([Data(part + "xxxxx\n".utf8)], limit: limit) }
        }
    }

    @Test func `a line that is too long fails before its end arrives`() throws {
        var splitter = LineSplitter(maximumLength: 10)
        splitter.append(Data("ok\n12345678901".utf8))
        #expect(try splitter.next() == "ok")
        let error = #expect(throws: TransportError.self) { try splitter.next() }
        #expect(error?.reason == .responseTooLarge(.body(limit: 10)))
        #expect(throws: TransportError.self) { try splitter.next() }
    }

    @Test func `a line is returned as soon as its end arrives`() throws {
        var splitter = LineSplitter(maximumLength: 100)
        splitter.append(Data("a\r".utf8))
        #expect(try splitter.next() == "a")
        #expect(try splitter.next() == nil)
        splitter.append(Data("\nb".utf8))
        #expect(try splitter.next() == nil)
        splitter.append(Data("\n".utf8))
        #expect(try splitter.next() == "b")
        #expect(splitter.finish() == nil)
    }

    @Test func `many lines take linear time with small and large chunks`() throws {
        let text = String(repeating: "0123456789\r\n", count: 50_000)
        let bytes = Data(text.utf8)
        #expect(try Self.split([bytes]).count == 50_000)
        let pieces = stride(from: 0, to: bytes.count, by: 7).map { bytes[$0..<min($0 + 7, bytes.count)] }
        #expect(try Self.split(pieces).allSatisfy { $0 == "0123456789" })
    }

    private static func split(_ chunks: [Data], limit: Int = 1000) throws -> [String] {
        var splitter = LineSplitter(maximumLength: limit)
        var lines: [String] = []
        for chunk in chunks {
            splitter.append(chunk)
            while let line = try splitter.next() { lines.append(line) }
        }
        if let last = splitter.finish() { lines.append(last) }
        return lines
    }
}
