// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

@Suite struct PropertyListResponseSerializerTests {
    private struct User: Codable, Equatable, Sendable {
        var name: String
        var born: Date
        var tags: [String]
    }

    private static let type = "application/x-plist"
    private static let user = User(name: "Ada & é", born: Date(timeIntervalSince1970: 86_400), tags: ["a", "b"])

    private static func encode(_ value: some Encodable, _ format: PropertyListDecoder.PropertyListFormat) throws -> Data
    {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = format
        return try encoder.encode(value)
    }

    @Test(arguments: [PropertyListDecoder.PropertyListFormat.xml, .binary])
    func `both formats are decoded as values and types`(format: PropertyListDecoder.PropertyListFormat) throws {
        let body = try Array(Self.encode([Self.user], format))
        #expect(try value(of: .propertyList([User].self), type: Self.type, body) == [Self.user])
        #expect(
            try value(of: .propertyList, type: Self.type, body)
                == .array([
                    .dictionary([
                        "name": .string("Ada & é"), "born": .date(Self.user.born),
                        "tags": .array([.string("a"), .string("b")]),
                    ])
                ]))
    }

    @Test func `a part of another type or outside the bounds is absent`() {
        let list = PropertyListValue.dictionary(["a": .array([.string("b"), .integer(7), .unsigned(.max)])])
        #expect(list["a"]?[0]?.string == "b")
        #expect(list["a"]?[1]?.int == 7)
        for part in [list["b"], list["a"]?["a"], list[0], list["a"]?[-1], list["a"]?[3]] { #expect(part == nil) }
        #expect(list["a"]?[0]?.int == nil)
        #expect(list["a"]?[1]?.string == nil)
        #expect(list["a"]?[2]?.int == nil)
    }

    @Test func `all types of values are distinguished`() throws {
        let xml = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0"><array><true/><integer>1</integer><integer>18446744073709551615</integer><real>1.5</real>
            <string>1</string><date>1970-01-02T00:00:00Z</date><data>AQI=</data><dict/></array></plist>
            """
        #expect(
            try value(of: .propertyList, type: Self.type, Array(xml.utf8))
                == .array([
                    .bool(true), .integer(1), .unsigned(.max), .real(1.5), .string("1"),
                    .date(Date(timeIntervalSince1970: 86_400)), .data(Data([1, 2])), .dictionary([:]),
                ]))
    }

    @Test(arguments: ["iso-8859-1", "utf-16", "windows-1251"])
    func `XML in other encodings is decoded`(encoding: String) throws {
        let letter: [UInt8] =
            switch encoding {
            case "utf-16": [0x04, 0x3C]
            case "iso-8859-1": [0xEC]
            default: [0xEC]
            }
        let text: (String) -> [UInt8] = { text in
            encoding == "utf-16" ? text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } : Array(text.utf8)
        }
        let body =
            text("<?xml version='1.0' encoding='\(encoding)'?><plist><string>") + letter + text("</string></plist>")
        #expect(try value(of: .propertyList, type: Self.type, body).string == (encoding == "iso-8859-1" ? "ì" : "м"))
    }

    @Test func `an empty body is nil or an empty dictionary`() throws {
        #expect(try value(of: .propertyList, status: 204, type: nil, []) == .dictionary([:]))
        #expect(try value(of: .optional(.propertyList), status: 204, type: nil, []) == nil)
        #expect(try value(of: .propertyList(User?.self), status: 204, type: nil, []) == nil)
        expectFailure {
            try value(of: .propertyList(User.self), status: 204, type: nil, [])
        } where: { error in
            if case .emptyBody(204, "User", nil) = error { true } else { false }
        }
    }

    @Test func `other media types are rejected`() {
        expectFailure {
            try value(of: .propertyList, type: "application/xml", Array("<plist/>".utf8))
        } where: {
            $0.rejection?.rejectsMediaType == true
        }
    }

    @Test func `a type mismatch is reported with its path and text`() {
        let xml = "<plist><array><dict><key>name</key><string>A</string></dict></array></plist>"
        expectFailure {
            try value(of: .propertyList([User].self), type: Self.type, Array(xml.utf8))
        } where: { error in
            guard case .decoding(let failure) = error else { return false }
            return failure.path == "[0]" && failure.description.contains("there is no value for “born”.")
                && failure.excerpt?.hasPrefix("<plist><array><dict><key>name") == true
        }
        let wrong = "<plist><dict><key>a</key><dict><key>b</key><string>x</string></dict></dict></plist>"
        expectFailure {
            try value(of: .propertyList([String: [String: Int]].self), type: Self.type, Array(wrong.utf8))
        } where: { error in
            guard case .decoding(let failure) = error else { return false }
            return failure.path == "a.b" && failure.excerpt?.contains("<string>x</string>") == true
        }
    }

    @Test(arguments: [" ", "{", "bplist00", "<plist><array><string>a", "{ a = b; }"])
    func `malformed property lists are reported as such`(text: String) {
        expectFailure {
            try value(of: .propertyList, type: Self.type, Array(text.utf8))
        } where: { error in
            if case .propertyList(let failure) = error { failure.reason == .propertyList(.malformed) } else { false }
        }
    }

    @Test func `invalid UTF-8 is rejected`() {
        let body = Array("<plist><string>".utf8) + [0xFF, 0xFE] + Array("</string></plist>".utf8)
        #expect(throws: SerializationError.self) { try value(of: .propertyList, type: Self.type, body) }
    }

    @Test(arguments: [PropertyListDecoder.PropertyListFormat.xml, .binary])
    func `randomly damaged property lists fail or decode`(format: PropertyListDecoder.PropertyListFormat) throws {
        let intact = try Self.encode(["a": ["x", "y"], "b": [String(repeating: "z", count: 30)]], format)
        var random = SplitMix64(seed: 2)
        for _ in 0..<3_000 {
            var body = Array(intact)
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let index = Int.random(in: body.indices, using: &random)
                body[index] = UInt8.random(in: 0...255, using: &random)
            }
            do {
                _ = try value(of: .propertyList, type: Self.type, body)
            } catch {
                #expect(error is SerializationError)
            }
        }
    }
}
