// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import AsyncNetworkingXML
import Foundation
import FuzzTargets
import Testing

/// Randomly modified documents, parsed with all features of Foundation's parser.
@Suite struct XMLFuzzTests {
    /// The number of documents; set `AN_XML_DOCUMENTS`, for example to 5000000, for a longer run.
    private static let count = ProcessInfo.processInfo.environment["AN_XML_DOCUMENTS"].flatMap { Int($0) } ?? 4_000
    private static let parts = 20

    /// Slow, because it parses 4,000 documents.
    @Test(arguments: 0..<parts)
    func `no document crashes the parser`(part: Int) {
        var generator = XMLMutator(seed: 0)
        var accepted = 0
        for number in stride(from: part, to: Self.count, by: Self.parts) {
            generator = XMLMutator(seed: UInt64(number))
            let (data, charset) = generator.document()
            guard let content = try? XMLContent(data, charset: charset) else { continue }
            accepted += 1
            let outcome = XMLExercise.run(content, options: number)
            #expect(!outcome.isWellFormed || outcome.hasRoot, "document \(number)")
        }
        // The test would be meaningless if all documents were rejected.
        #expect(accepted > Self.count / Self.parts / 8)
    }
}

/// A generator of nearly well-formed documents.
private struct XMLMutator {
    private var random: SplitMix64

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
    }

    /// Returns the bytes of a document, and the charset of its response.
    mutating func document() -> (Data, String?) {
        var bytes = pick(Self.seeds)
        if chance(20) {
            bytes = bytes.prefix(number(below: bytes.count + 1)) + pick(Self.seeds).suffix(number(below: 40))
        }
        for _ in 0..<pick([0, 1, 1, 2, 3, 5, 10]) { mutate(&bytes) }
        if chance(500), let position = bytes.indices.randomElement(using: &random) {
            // Foundation passes chunks of 128 KiB to libxml2.
            bytes.insert(contentsOf: repeatElement(pick(Self.padding), count: 131_000).joined(), at: position)
        }
        return (Data(chance(20) ? Self.wide(bytes, random.next()) : bytes), pick(Self.charsets))
    }

    private mutating func mutate(_ bytes: inout [UInt8]) {
        let position = number(below: bytes.count + 1)
        let end = min(bytes.count, position + number(below: 8))
        switch number(below: 9) {
        case 0 where position < bytes.count: bytes[position] ^= 1 << UInt8(number(below: 8))
        case 1 where position < bytes.count: bytes[position] = UInt8(truncatingIfNeeded: random.next())
        case 2: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: position)
        case 3: bytes.removeSubrange(position..<end)
        case 4: bytes.insert(contentsOf: Array(bytes[position..<end]), at: number(below: bytes.count + 1))
        case 5: bytes.replaceSubrange(position..<end, with: pick(Self.tokens))
        case 6 where chance(10): bytes.removeSubrange(position...)
        case 7 where chance(10): bytes.insert(contentsOf: bytes, at: position)
        default: bytes.insert(contentsOf: pick(Self.tokens), at: position)
        }
    }

    private mutating func number(below limit: Int) -> Int {
        Int.random(in: 0..<max(limit, 1), using: &random)
    }

    private mutating func chance(_ count: Int) -> Bool {
        number(below: count) == 0
    }

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[number(below: elements.count)]
    }

    /// Returns the bytes as UTF-16 in one of the byte orders.
    private static func wide(_ bytes: [UInt8], _ choice: UInt64) -> [UInt8] {
        bytes.flatMap { choice % 2 == 0 ? [$0, 0] : [0, $0] }
    }

    private static let charsets: [String?] = [
        nil, nil, nil, nil, nil, nil, "utf-8", "utf-8", "iso-8859-1", "utf-16", "utf-16le", "windows-1252", "shift_jis",
    ]
    private static let padding: [[UInt8]] = ["a", "é", "漢", "👴", " ", "<b/>", "&amp;", "<?a?>"].map { Array($0.utf8) }

    private static let seeds: [[UInt8]] = [
        "<a/>", "<?foo?><a/>", "<a><?php?></a>", "<a>text</a>",
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<a b=\"c\" d='e'>t<b/>u</a>\n",
        "<!-- c --><?pi data?><a><!-- d --><![CDATA[ <x> ]]>&lt;&#65;&#x1F474;</a><!---->",
        "<!DOCTYPE a><a>&undefined;</a>",
        "<!DOCTYPE a SYSTEM \"a.dtd\" [<!ELEMENT a (b|c)*><?x?><?y z?><!-- q -->]><a>&e;</a>",
        "<!DOCTYPE a PUBLIC '-//X//Y' 'z' [<!ELEMENT a EMPTY>]><a/>",
        "<!DOCTYPE a [<!ELEMENT a (#PCDATA|b)*><!ELEMENT b ANY>]><a>x<b>y</b></a>",
        "<x:a xmlns:x='urn:x' xmlns='urn:y' x:b='1'><c xmlns=''/><x:d xmlns:x='urn:z' x:e=''/></x:a>",
        "<é ü='漢'>👴<日本/></é>", "<a xml:space='preserve' xml:lang='de'> \t\r\n </a>",
        "<rss><channel><title>A &amp; B</title><item n='1'/><item n='2'/></channel></rss>",
        "\u{FEFF}<a>bom</a>", "<a><b><c><d><e><f/></e></d></c></b></a>",
        "<a xmlns:xi='http://www.w3.org/2001/XInclude'><xi:include href='file:///etc/hostname'/></a>",
    ].map { Array($0.utf8) }

    private static let tokens: [[UInt8]] =
        [
            "<", ">", "/", "</", "/>", "<?", "?>", "<?x?>", "<?x ?>", "<?xml?>", "<?XML?>", "<?é?>", "<??>", "<!",
            "<!--",
            "-->", "--", "<![CDATA[", "]]>", "<!DOCTYPE", "<!DOCTYPE a [", "]>", "<!ELEMENT ", "<!NOTATION ",
            "<!ENTITY ",
            "<!ATTLIST ", "&", "&amp;", "&#0;", "&#xFFFE;", "&#xD800;", "&#x110000;", "&x;", "%x;", ";", "=", "\"", "'",
            ":",
            "xmlns", "xmlns:", "xmlns:x=''", "xml:", "a:b", "a:b:c", "::", " ", "\t", "\r", "\n", "\u{0}", "\u{1}",
            "\u{7F}",
            "\u{85}", "\u{2028}", "\u{FEFF}", "\u{FFFD}", "\u{FFFE}", "\u{FFFF}", "é", "e\u{301}", "漢", "👴",
            "\u{10FFFF}",
            "encoding='utf-16'", "encoding=\"iso-8859-1\"", "standalone='no'", "version='1.1'", "<xi:include", "<a>",
            "</a>",
            "PUBLIC 'p'", "SYSTEM 's'", "EMPTY", "(#PCDATA)", "[", "]",
        ].map { Array($0.utf8) }
        + [
            [0x80], [0xBF], [0xC0, 0x80], [0xC3], [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xF0, 0x9F],
            [0xF4, 0x90, 0x80, 0x80],
            [0xF6, 0x01, 0xB0], [0xFE, 0xFF], [0xFF, 0xFE], [0xEF, 0xBB, 0xBF], [0xEF, 0xBF, 0xBE],
            [0x4C, 0x6F, 0xA7, 0x94],
            [0, 0, 0xFE, 0xFF], [0x3C, 0, 0x3F, 0],
        ]
}
