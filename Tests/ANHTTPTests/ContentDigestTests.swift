// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct ContentDigestTests {
    /// The SHA-256 of `abc`, FIPS 180-2 appendix B.1.
    private static let hexadecimal = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    private static let base64 = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="

    @Test(arguments: [
        "sha256:\(hexadecimal)", "SHA-256:\(hexadecimal.uppercased())", "sha-256=\(base64)", "sha256:\(base64)",
    ])
    func `a digest is parsed from hexadecimal and Base64`(text: String) throws {
        let digest = try #require(ContentDigest(text))
        #expect(digest.description == "sha-256:\(Self.hexadecimal)")
    }

    @Test(arguments: [
        "", ":", "sha256", "sha256:", "sha256:ba78", "md5:\(hexadecimal)", "sha512:\(hexadecimal)",
        "sha256:\(hexadecimal)0", "sha256:g\(hexadecimal.dropFirst())", hexadecimal, "sha256:é",
    ])
    func `any other text is not a digest`(text: String) {
        #expect(ContentDigest(text) == nil)
    }

    private static func head(_ value: String) throws -> ResponseHead {
        let name = try #require(HTTPField.Name("Repr-Digest"))
        return ResponseHead(status: .ok, headers: [name: value], url: try #require(URL(string: "http://a.example/")))
    }

    @Test(arguments: [
        "sha-256=:\(base64):", " unixsum=:AAA=:,sha-256=:\(base64):", "sha-256=:AAAA:, sha-256=:\(base64):",
        "sha-256=:\(base64.prefix { $0 != "=" }):", "sha-256=:\(base64):;q=1", "x=\"a,b\", sha-256=:\(base64):",
        "md5=:AAAA:, sha-256=:\(base64):", "list=(1 2), flag, sha-256=:\(base64):",
    ])
    func `the SHA-256 of a field with other digests is found`(value: String) throws {
        #expect(
            try Self.head(value).headers.representationDigests.map(\.description) == ["sha-256:\(Self.hexadecimal)"])
        #expect(try Self.head(value).headers.contentDigests.isEmpty)
    }

    @Test(arguments: [
        "", "sha-256", "sha-256=", "sha-256=\(base64)", "sha-256=::", "sha-256=:AAAA:", "sha-256=:", ",",
        // A structured field is ignored as a whole (RFC 9651 §4.2).
        ", ,sha-256=:\(base64):,", "sha-256 = :\(base64):", "sha-256=:\(base64):, md5=::x",
    ])
    func `a malformed field has no digests`(value: String) throws {
        #expect(try Self.head(value).headers.representationDigests.isEmpty)
    }
}

@Suite struct StructuredFieldsTests {
    private static let name = HTTPField.Name(constant: "Example")

    private static func fields(_ lines: String...) -> HTTPFields {
        var fields = HTTPFields()
        for line in lines { fields.append(HTTPField(name: name, value: line)) }
        return fields
    }

    @Test(arguments: [
        ("0", StructuredValue.integer(0)), ("-7", .integer(-7)), ("999999999999999", .integer(999_999_999_999_999)),
        ("?1", .boolean(true)), ("?0;q=1", .boolean(false)), (" 12 ", .integer(12)), (":AAE=:", .bytes(Data([0, 1]))),
        (":AAE:", .bytes(Data([0, 1]))), ("1.5", .other), ("token", .other), ("\"text\"", .other), ("@1", .other),
    ])
    func `an item has a type`(value: String, expected: StructuredValue) {
        #expect(Self.fields(value).structuredItem(Self.name) == expected)
    }

    @Test(arguments: ["", "1000000000000000", "1, 2", "?2", "+1", "1;", ":A*:", "é", "1 2"])
    func `a malformed item is ignored`(value: String) {
        #expect(Self.fields(value).structuredItem(Self.name) == nil)
    }

    @Test func `the lines of a field are one value`() {
        #expect(Self.fields("1", "2").structuredItem(Self.name) == nil)
        #expect(
            Self.fields("a=1, b", "c=(1 2);x, a=2").structuredDictionary(Self.name)
                == ["a": .integer(2), "b": .boolean(true), "c": .other])
        #expect(Self.fields("a=1", "b=").structuredDictionary(Self.name) == nil)
        #expect(HTTPFields().structuredDictionary(Self.name) == nil)
        let members = (0..<2_000).map { "a\($0)" }.joined(separator: ",")
        #expect(Self.fields(members).structuredDictionary(Self.name) == nil, "The field is too long.")
    }
}

@Suite struct ContentRangeTests {
    @Test func `ranges, sizes and unsatisfied ranges are parsed`() {
        #expect(ContentRange("bytes 0-499/1234")?.bytes == 0...499)
        #expect(ContentRange("bytes 0-499/1234")?.total == 1234)
        #expect(ContentRange("Bytes 5-5/*")?.bytes == 5...5)
        #expect(ContentRange("bytes 5-5/*")?.total == nil)
        #expect(ContentRange("bytes */1234")?.bytes == nil)
        #expect(ContentRange("bytes */1234")?.total == 1234)
    }

    @Test(arguments: [
        "", "bytes", "bytes ", "bytes 0-499", "bytes 500-499/1234", "bytes 0-1234/1234", "bytes */*", "bytes -1-2/5",
        "bytes a-b/c", "items 0-1/2", "bytes 0-1/2/3", "bytes 0-1-2/3", "bytes +0-1/2",
        "bytes 0-99999999999999999999/*",
    ])
    func `any other text is not a content range`(text: String) {
        #expect(ContentRange(text) == nil)
    }
}
