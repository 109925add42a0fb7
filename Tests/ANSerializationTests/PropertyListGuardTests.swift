// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import AsyncNetworkingTesting
import FoundationEssentials
import TestSupport
import Testing

/// Property lists that would crash the decoder, or take excessive memory or stack.
@Suite struct PropertyListGuardTests {
    private typealias Maker = BinaryPropertyListMaker

    private let type = "application/x-plist"

    private func expectRefusal(
        _ body: [UInt8], _ reason: Reason, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        expectFailure(
            { try value(of: .propertyList, type: type, body) },
            where: { error in
                if case .propertyList(let failure) = error { failure.reason == .propertyList(reason) } else { false }
            }, sourceLocation: sourceLocation)
    }

    // MARK: Text

    @Test(arguments: [
        ("\u{301}\u{316}", true), ("&#x301;&#x316;", true), ("&#769;\u{316}", true), ("&#x0301;", true),
        ("&#x6f22;&#x5b57;", false), ("é", false), ("a&#x301;", false), ("&amp;&#x301;", false), ("&#;", false),
        ("<![CDATA[\u{301}]]>", true), ("<![CDATA[\u{301}]]>&#x316;", true), ("<![CDATA[e\u{301}]]>", false),
    ])
    func `XML with text that takes too long to compare is rejected`(unit: String, isRejected: Bool) {
        let key = String(repeating: unit, count: 500)
        let list = Data("<plist><dict><key>e\(key)</key><true/></dict></plist>".utf8)
        #expect(isRejected == ((try? PropertyListGuard.checked(list)) == nil))
    }

    @Test(arguments: [
        ("\u{301}\u{316}", true), ("\u{1D165}", true), ("é", false), ("漢字", false), ("👍", false),
    ])
    func `binary lists with text that takes too long to compare are rejected`(unit: String, isRejected: Bool) {
        let units = Array("e\(String(repeating: unit, count: 500))".utf16)
        let text = Maker.head(6, length: units.count) + units.flatMap { Maker.bytes(Int($0), count: 2) }
        for objects in [[text], [Maker.array(of: [2]), [0x40], text]] {
            #expect(isRejected == ((try? PropertyListGuard.checked(Data(Maker.list(objects)))) == nil))
        }
    }

    @Test func `the marks of sections that appear when others are removed are refused without searching again`() {
        let count = 20_000
        let text = String(repeating: "<![CDA", count: count) + "<![CDATA[é" + String(repeating: "TA[", count: count)
        expectRefusal(Array(text.utf8), .malformed)
    }

    // MARK: Dates

    @Test(arguments: [
        Double.nan, .signalingNaN, .infinity, -.infinity, .greatestFiniteMagnitude, -.greatestFiniteMagnitude, 1e18,
        -3.2e13,
    ])
    func `binary dates that cannot be printed are rejected`(seconds: Double) {
        let date = [0x33] + Maker.bytes(Int(bitPattern: UInt(seconds.bitPattern)), count: 8)
        expectRefusal(Maker.list([date]), .malformed)
        expectRefusal(Maker.list([Maker.array(of: [1]), date]), .malformed)
    }

    @Test(arguments: [0, -0.0, 1.5, 3.1e13, -3.1e13, .leastNonzeroMagnitude])
    func `other binary dates can be printed`(seconds: Double) throws {
        let date = [0x33] + Maker.bytes(Int(bitPattern: UInt(seconds.bitPattern)), count: 8)
        let value = try value(of: .propertyList, type: type, Maker.list([date]))
        #expect(value == .date(Date(timeIntervalSinceReferenceDate: seconds)))
        #expect("\(value)" != "")
    }

    // MARK: XML

    @Test func `10 MB of nested XML arrays are rejected`() {
        let scale = rounds(10, few: 1)
        for text in [
            String(repeating: "<array>", count: 150_000 * scale),
            "<plist>" + String(repeating: "<dict><key>a</key>", count: 60_000 * scale),
            "<plist>" + String(repeating: "<array x='/'>", count: 60_000 * scale),
            "<?x \(Self.closed)?><plist>\(Self.deep)",
        ] {
            expectFailure {
                try value(of: .propertyList, type: type, Array(text.utf8))
            } where: { error in
                if case .propertyList(let failure) = error {
                    failure.reason == .propertyList(.tooDeep(limit: 64))
                } else {
                    false
                }
            }
        }
        #expect(throws: SerializationError.self) {
            try value(of: .propertyList, type: type, [UInt8](repeating: UInt8(ascii: "("), count: 1_000_000 * scale))
        }
    }

    private static let closed = String(repeating: "</a>", count: 100_000)
    private static let deep = String(repeating: "<array>", count: 100_000)

    private static let hiding = [
        "<plist><?x \(closed)?>\(deep)",
        "<!DOCTYPE a \(String(repeating: "</a ", count: 100_000))><plist>\(deep)",
        "<?xml version='1.0'?><?x \(closed)?><plist>\(deep)", "\(closed)<plist>\(deep)", "<plist></plist></plist>",
        "<!DOCTYPE plist [<!ENTITY x 'y'>]><plist><string>a</string></plist>", "<!ELEMENT a ANY><plist/>",
    ]

    @Test(arguments: hiding.indices)
    func `markup that property lists do not need cannot hide nesting`(index: Int) {
        expectRefusal(Array(Self.hiding[index].utf8), .malformed)
    }

    @Test func `an XML declaration, a document type and comments are skipped`() throws {
        let text = """
            <?xml version="1.0" encoding="UTF-8"?><!-- </a> <?x?> -->
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist><!-- </a> --><string><![CDATA[</a><?x?>]]></string></plist>
            """
        #expect(try value(of: .propertyList, type: type, Array(text.utf8)).string == "</a><?x?>")
    }

    @Test(arguments: ["integer", "real", "date", "data", "string", "key"])
    func `bytes that are not UTF-8 are rejected`(element: String) {
        let body = Array("<plist><\(element)>".utf8) + [UInt8](repeating: 0xFF, count: 8)
        expectRefusal(body + Array("</\(element)></plist>".utf8), .malformed)
    }

    @Test(arguments: [
        "-9223372036854775807-01-01T00:00:00Z", "9223372036854775807-01-01T00:00:00Z", "1000000-01-01T00:00:00Z",
        "2001-01-01", "2001-1-1T00:00:00Z", "--1-01-01T00:00:00Z", "", "-", "yesterday",
    ])
    func `dates in other formats are rejected`(text: String) {
        expectRefusal(Array("<plist><date>\(text)</date></plist>".utf8), .malformed)
        expectRefusal(Array("<plist><array><datex y='z'>\(text)</date></array></plist>".utf8), .malformed)
    }

    @Test func `any date in the right format is decoded`() throws {
        var random = SplitMix64(seed: 5)
        for year in ["0", "0000", "-1", "-999999", "999999"] {
            for _ in 0..<100 {
                let two = { Int.random(in: 100...199, using: &random).description.dropFirst() }
                let date = "\(year)-\(two())-\(two())T\(two()):\(two()):\(two())Z"
                let list = try value(
                    of: .propertyList, type: type, Array("<plist><date>\(date)</date></plist>".utf8))
                guard case .date = list else {
                    Issue.record("\(date): \(list)")
                    return
                }
            }
        }
    }

    // MARK: The binary format

    private typealias Reason = SerializationError.Failure.PropertyListReason

    /// An array of 130 references to one object.
    private static func wide(_ object: Int) -> [UInt8] {
        Maker.head(0xA, length: 130) + (0..<130).flatMap { _ in Maker.bytes(object, count: 2) }
    }

    private static let hostile: [(name: String, body: [UInt8], reason: Reason)] =
        [
            ("an array in itself", Maker.list([Maker.array(of: [0])]), .cycle),
            ("two arrays in each other", Maker.list([Maker.array(of: [1]), Maker.array(of: [0])]), .cycle),
            (
                "shared values in nested arrays",
                Maker.list((0..<58).map { Maker.array(of: [$0 + 1]) } + [wide(59), wide(60), [0x40]]), .expansion
            ),
            ("arrays that double", Maker.list((0..<40).map { Maker.array(of: [$0 + 1, $0 + 1]) }), .expansion),
            ("deep arrays", Maker.list((0..<2_000).map { Maker.array(of: [$0 + 1]) }), .tooDeep(limit: 64)),
            ("a reference to nothing", Maker.list([Maker.array(of: [7])]), .malformed),
            ("a huge count", Maker.list([[0xAF, 0x13, 0x7F, 255, 255, 255, 255, 255, 255, 255]]), .malformed),
        ]

    @Test(arguments: hostile.indices)
    func `hostile binary property lists are rejected`(index: Int) {
        let (name, body, reason) = Self.hostile[index]
        expectFailure {
            try value(of: .propertyList, type: type, body)
        } where: { error in
            if case .propertyList(let failure) = error { failure.reason == .propertyList(reason) } else { false }
        }
        // The decoder alone is protected, too.
        #expect(throws: SerializationError.self, "\(name)") {
            try value(
                of: .decodable(PropertyListValue.self, decoder: PropertyListDecoder(), mediaTypes: nil), type: nil, body
            )
        }
    }

    @Test(arguments: [1, 12, 1 << 40, .max])
    func `an object count beyond the offset table is rejected`(excess: Int) {
        // The first of four objects refers to the last object by the count of the trailer.
        let last = 3 + min(excess, 12)
        var body = Maker.list([Maker.array(of: [last]), [0x51, 0x61], [0x51, 0x61]])
        let count = body.count - 24..<body.count - 16
        #expect(Array(body[count]) == Maker.bytes(4, count: 8))
        body.replaceSubrange(count, with: Maker.bytes(excess == .max ? excess : 4 + excess, count: 8))
        expectRefusal(body, .malformed)
        #expect(throws: SerializationError.self) { try PropertyListGuard.checked(Data(body)) }
    }

    @Test func `objects may be shared`() throws {
        #expect(
            try value(of: .propertyList, type: type, Maker.list([Maker.array(of: [1, 1, 1])]))
                == .array([.string("a"), .string("a"), .string("a")]))
    }

    @Test(arguments: [4, 5, 6] as [UInt8])
    func `strings and data that extend past the objects are rejected`(kind: UInt8) {
        // A hundred UTF-16 units take 200 bytes, of which only half exist.
        let length = kind == 6 ? 100 : 200
        let leaf = Maker.head(kind, length: length) + [UInt8](repeating: 0x61, count: 100)
        expectRefusal(Maker.list([leaf]), .malformed)
        expectRefusal(Maker.list([Maker.array(of: [1]), leaf]), .malformed)
        expectRefusal(Maker.list([Maker.head(kind, length: 0x7FFF_FFFF)]), .malformed)
    }

    @Test(arguments: [4, 5, 6] as [UInt8])
    func `strings and data up to the end of the objects are decoded`(kind: UInt8) throws {
        let length = kind == 6 ? 50 : 100
        let leaf = Maker.head(kind, length: length) + [UInt8](repeating: 0x61, count: 100)
        let list = try value(of: .propertyList, type: type, Maker.list([leaf]))
        switch kind {
        case 4: #expect(list == .data(Data(repeating: 0x61, count: 100)))
        case 5: #expect(list.string == String(repeating: "a", count: 100))
        default: #expect(list.string == String(repeating: "\u{6161}", count: 50))
        }
    }

    @Test(arguments: [4, 5, 6] as [UInt8])
    func `long strings and data with very many references are rejected`(kind: UInt8) {
        let leaf = Maker.head(kind, length: 100_000) + [UInt8](repeating: 0x61, count: 200_000)
        let references = (0..<2_000).flatMap { _ in Maker.bytes(1, count: 2) }
        expectRefusal(Maker.list([Maker.head(0xA, length: 2_000) + references, leaf]), .expansion)
    }

    @Test(arguments: [PropertyListDecoder.PropertyListFormat.xml, .binary])
    func `the string that Foundation takes for null is a string`(format: PropertyListDecoder.PropertyListFormat) throws
    {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = format
        let body = try encoder.encode(["$null", "b"])
        #expect(try value(of: .propertyList, type: type, Array(body)) == .array([.string("$null"), .string("b")]))
    }

    @Test(arguments: [PropertyListDecoder.PropertyListFormat.xml, .binary])
    func `the string that Foundation takes for null may be a key`(format: PropertyListDecoder.PropertyListFormat) throws
    {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = format
        let body = try encoder.encode([
            "$null": ["$null", "$nula", "x$null"], "b": [Data("$null".utf8).base64EncodedString()],
        ])
        #expect(
            try value(of: .propertyList, type: type, Array(body))
                == .dictionary([
                    "$null": .array([.string("$null"), .string("$nula"), .string("x$null")]),
                    "b": .array([.string("JG51bGw=")]),
                ]))
        #expect(throws: SerializationError.self) { try value(of: .propertyList, type: type, Array("$null".utf8)) }
    }

    @Test(arguments: [PropertyListDecoder.PropertyListFormat.xml, .binary])
    func `data and numbers are not changed beside the key that Foundation takes for null`(
        format: PropertyListDecoder.PropertyListFormat
    ) throws {
        struct Document: Codable {
            var null = ["$null": "$null"]
            var data = ["$null", "$nula", "$nulb"].map { Data($0.utf8) }
            // The bytes of "$null" and "$nula" in the binary format.
            var numbers = [0x24_6E75_6C6C, 0x24_6E75_6C61]
        }
        let encoder = PropertyListEncoder()
        encoder.outputFormat = format
        let document = Document()
        let list = try value(of: .propertyList, type: type, Array(encoder.encode(document)))
        #expect(list["null"] == .dictionary(["$null": .string("$null")]))
        #expect(list["data"] == .array(document.data.map { .data($0) }))
        #expect(list["numbers"] == .array(document.numbers.map { .integer(Int64($0)) }))
    }

    @Test func `the key that Foundation takes for null may be in UTF-16, and the text for it may be references`() throws
    {
        let text = """
            <?xml version="1.0" encoding="UTF-16"?><plist version="1.0"><dict><key>$null</key>\
            <array><string>&#36;nula</string><string>$nulb</string></array></dict></plist>
            """
        let units = [0xFEFF] + Array(text.utf16)
        let body = units.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] as [UInt8] }
        let expected = PropertyListValue.dictionary(["$null": .array([.string("$nula"), .string("$nulb")])])
        #expect(try value(of: .propertyList, type: type, body) == expected)
        #expect(
            try value(of: .propertyList, type: type, Array(text.replacing(each: "UTF-16", with: "UTF-8").utf8))
                == expected)
    }

    @Test func `the key that Foundation takes for null may be a wide string of the binary format`() throws {
        let wide = "$null".utf8.flatMap { [0, $0] as [UInt8] }
        let list = Maker.list([[0xD1, 0, 1, 0, 2], [0x65] + wide, [0x55] + Array("$nula".utf8)])
        #expect(try value(of: .propertyList, type: type, list) == .dictionary(["$null": .string("$nula")]))
    }

    @Test func `short strings may be shared as in a table`() throws {
        let rows = (0..<2_000).map { ["identifier": "\($0)", "kind": "one of a few kinds, in words"] }
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        let body = try encoder.encode(rows)
        #expect(body.count < 100_000)
        #expect(try value(of: .propertyList([[String: String]].self), type: type, Array(body)) == rows)
    }

    @Test func `one string may have 20,000 references`() throws {
        let text = [0x5F, 0x10, 60] + [UInt8](repeating: 0x61, count: 60)
        let references = (0..<20_000).flatMap { _ in Maker.bytes(1, count: 2) }
        let list = try value(
            of: .propertyList, type: type, Maker.list([Maker.head(0xA, length: 20_000) + references, text]))
        #expect(list == .array(Array(repeating: .string(String(repeating: "a", count: 60)), count: 20_000)))
    }

    @Test func `objects to which nothing refers are limited`() throws {
        let starts = { Array(repeating: 0, count: $0) + [1] }
        #expect(
            try value(of: .propertyList, type: type, Maker.list([[0xA0]], starts: starts(60_000))) == .array([]))
        expectRefusal(Maker.list([[0xA0]], starts: starts((1 << 16) + 1)), .expansion)
    }

    @Test func `many offsets of one object take memory only if they are used`() throws {
        let count = 4 << 20
        let table = 9
        var list = Data("bplist00".utf8) + [0xA0] + Data(repeating: 8, count: count) + [0, 0, 0, 0, 0, 0, 1, 2]
        for number in [count, 0, table] { list += Maker.bytes(number, count: 8) }
        // Sets the peak to the present size. See proc_pid_clear_refs(5).
        try Data("5".utf8).write(to: URL(filePath: "/proc/self/clear_refs"))
        let before = try Self.peak()
        #expect(throws: SerializationError.self) { try PropertyListGuard.checked(list) }
        // 128 MiB, if each offset had a state. Other tests run at the same time.
        #expect(try Self.peak() - before < 100_000)
    }

    /// Returns the maximum size of the process in memory in KiB.
    private static func peak() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
        return try #require(Int(line.filter(\.isNumber)))
    }

    @Test func `overlapping arrays are rejected`() {
        // The references of each array begin with one to the next array, whose bytes are the other references.
        let count = 500
        let arrays = (0..<count).map { Maker.head(0xA, length: 100_000) + Maker.bytes($0 + 1, count: 2) }
        let starts = (0...count).map { $0 * 8 }
        expectRefusal(
            Maker.list(arrays + [[UInt8](repeating: 0, count: 200_000)], starts: starts), .expansion)
    }
}
