// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct PropertyListRequestSerializerTests {
    private static let parameters: Parameters = [
        "text": "ü & <b>", "list": [1, 2.5, true, -3], "set": Parameters.set(["x"]),
        "date": Parameters.date(Date(timeIntervalSince1970: 0)),
        "data": Parameters.data(Data([0, 1, 254, 255])), "large": Parameters.unsigned(.max),
        "nested": ["empty": [:], "none": []],
    ]

    private struct Content: Codable, Equatable {
        var text = "ü & <b>"
        var list = [1, 2.5, 1, -3]
        var set = ["x"]
        var date = Date(timeIntervalSince1970: 0)
        var data = Data([0, 1, 254, 255])
        var large = UInt64.max
        var nested = Nested()

        struct Nested: Codable, Equatable {
            var empty: [String: String] = [:]
            var none: [Int] = []
        }
    }

    private struct List: Decodable {
        var list: [Element]

        /// A number or a Boolean value.
        enum Element: Decodable, Equatable {
            case number(Double)
            case bool(Bool)

            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                if let bool = try? container.decode(Bool.self) {
                    self = .bool(bool)
                } else {
                    self = .number(try container.decode(Double.self))
                }
            }
        }
    }

    private func serialize(
        _ method: String, _ parameters: Parameters?, with serializer: PropertyListRequestSerializer = .propertyList
    ) throws -> Request {
        try serializer.serialize(makeRequest(method), parameters: parameters)
    }

    private func data(_ request: Request) throws -> Data {
        guard case .bytes(let data) = request.body.content else { throw CancellationError() }
        return data
    }

    @Test(arguments: [PropertyListRequestSerializer.Format.xml, .binary])
    func `parameters are encoded as a property list`(format: PropertyListRequestSerializer.Format) throws {
        let request = try serialize("POST", Self.parameters, with: PropertyListRequestSerializer(format: format))
        #expect(request.headers[.contentType] == "application/x-plist")
        let data = try data(request)
        #expect(data.starts(with: Data((format == .xml ? "<?xml version=\"1.0\"" : "bplist00").utf8)))
        let list = try PropertyListDecoder().decode(List.self, from: data).list
        #expect(list == [.number(1), .number(2.5), .bool(true), .number(-3)])
        var parameters = Self.parameters
        parameters["list"] = [1, 2.5, 1, -3]
        let numbers = try self.data(
            serialize("POST", parameters, with: PropertyListRequestSerializer(format: format)))
        #expect(try PropertyListDecoder().decode(Content.self, from: numbers) == Content())
    }

    private struct Person: Codable, Equatable {
        var age = 36
        var manager: String?
    }

    @Test(arguments: [PropertyListRequestSerializer.Format.xml, .binary])
    func `an optional property that is nil is omitted`(format: PropertyListRequestSerializer.Format) throws {
        let serializer = PropertyListRequestSerializer(format: format)
        let data = try data(serialize("POST", Parameters(encoding: Person()), with: serializer))
        #expect(try PropertyListDecoder().decode(Person.self, from: data) == Person())
    }

    @Test(arguments: [["CF$UID": 3], ["a": ["CF$UID": "x", "b": nil] as Parameters], ["CF$UID": [:]]] as [Parameters])
    func `a dictionary that readers of XML take for a reference is refused`(parameters: Parameters) throws {
        #expect(throws: SerializationError.self) { try serialize("POST", parameters) }
        let other = try data(serialize("POST", ["CF$UID": 3, "b": 1]))
        #expect(try PropertyListDecoder().decode([String: Int].self, from: other) == ["CF$UID": 3, "b": 1])
    }

    @Test func `a GET has a query as with the HTTP serializer`() throws {
        let request = try serialize("GET", ["a": 1])
        #expect(request.url.absoluteString == "http://example.com/v1?a=1")
        #expect(request.bytes == nil)
        #expect(request.headers[.contentType] == nil)
    }

    @Test func `nil parameters have no body and no media type, empty ones a dictionary`() throws {
        let none = try serialize("POST", nil)
        #expect(none.bytes == nil)
        #expect(none.headers.isEmpty)
        let empty = try data(serialize("POST", [:]))
        #expect(try PropertyListDecoder().decode([String: Int].self, from: empty) == [:])
    }

    @Test func `an existing media type is kept`() throws {
        let base = HTTPRequestSerializer(headers: [.contentType: "application/x-apple-plist"])
        let request = try serialize("PUT", [:], with: PropertyListRequestSerializer(base: base))
        #expect(request.headers[values: .contentType] == ["application/x-apple-plist"])
    }

    @Test(
        arguments: [
            ("text", ""), (1, ""), (["a": [1, nil]], "a[1]"), (.dictionary([.init("b", 1), .init("b", 2)]), "b"),
            (["a": "\u{1}"], "a"), (["x": ["\u{B}": 1]], "x.\u{B}"),
            (["a": "\u{FFFE}"], "a"), (["a": "\u{FFFF}"], "a"),
        ] as [(Parameters, String)])
    func `unsupported values are rejected with their path`(parameters: Parameters, path: String) {
        expectFailure {
            try serialize("POST", parameters)
        } where: { error in
            if case .parameters(let failure) = error { failure.path == path } else { false }
        }
    }

    @Test(
        arguments: [-62_135_596_801, 253_402_300_800, .nan, .infinity, -.infinity, 1e300] as [Double],
        [PropertyListRequestSerializer.Format.xml, .binary])
    func `dates that would be changed are rejected`(seconds: Double, format: PropertyListRequestSerializer.Format)
        throws
    {
        let date = Date(timeIntervalSince1970: seconds)
        let serializer = PropertyListRequestSerializer(format: format)
        guard format == .xml || !seconds.isFinite else {
            let request = try serialize("POST", ["a": [Parameters.date(date)]], with: serializer)
            #expect(try PropertyListDecoder().decode([String: [Date]].self, from: data(request)) == ["a": [date]])
            return
        }
        expectFailure {
            try serialize("POST", ["a": [Parameters.date(date)]], with: serializer)
        } where: { error in
            if case .parameters(.dateOutOfRange(path: "a[0]")) = error { true } else { false }
        }
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (253_402_300_799.5, "9999-12-31T23:59:59Z"),
            (-12_219_292_800, "1582-10-15T00:00:00Z"), (-12_219_292_801, "1582-10-04T23:59:59Z"),
            (-62_135_596_800, "0001-01-03T00:00:00Z"),
        ] as [(Double, String)])
    func `dates of the years 1 to 9999 are written in XML, before 1582 in the Julian calendar`(
        seconds: Double, text: String
    ) throws {
        let request = try serialize("POST", ["a": Parameters.date(Date(timeIntervalSince1970: seconds))])
        #expect(String(decoding: try data(request), as: UTF8.self).contains("<date>\(text)</date>"))
    }

    @Test func `carriage returns are written as references, which parsers keep`() throws {
        let request = try serialize("POST", ["a\r": "x\r\ny"])
        let text = String(decoding: try data(request), as: UTF8.self)
        #expect(text.contains("<key>a&#13;</key>"))
        #expect(text.contains("<string>x&#13;\ny</string>"))
        #expect(!text.utf8.contains(0x0D))
    }

    @Test(arguments: ["\t\n\r", "\u{7F}\u{80}", "\u{FFFD}\u{10000}\u{10FFFF}"])
    func `all other characters are written in XML`(text: String) throws {
        let request = try serialize("POST", ["a": Parameters.string(text)])
        #expect(try PropertyListDecoder().decode([String: String].self, from: data(request)) == ["a": text])
    }

    @Test func `control characters are supported by the binary format`() throws {
        let request = try serialize("POST", ["a": "\u{1}"], with: PropertyListRequestSerializer(format: .binary))
        #expect(try PropertyListDecoder().decode([String: String].self, from: data(request)) == ["a": "\u{1}"])
    }

    @Test func `raw text and deep nesting are rejected`() {
        expectFailure {
            try serialize("POST", ["a": Parameters.raw("b")])
        } where: { error in
            if case .parameters(.rawText(path: "a")) = error { true } else { false }
        }
        expectFailure {
            try serialize("POST", nested(levels: 5_000))
        } where: { error in
            if case .parameters(.tooDeep(limit: 512)) = error { true } else { false }
        }
    }

    @Test func `nesting up to the limit is supported`() throws {
        #expect(try data(serialize("POST", nested(levels: 512))).count > 512)
    }

    @Test func `a request with a body cannot have parameters`() throws {
        var request = try makeRequest("POST")
        request.body = .string("own")
        #expect(try PropertyListRequestSerializer().serialize(request, parameters: nil).bytes == "own")
        expectFailure {
            try PropertyListRequestSerializer().serialize(request, parameters: [:])
        } where: { error in
            if case .parameters(.bodyPresent) = error { true } else { false }
        }
    }
}
