// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct JSONRequestSerializerTests {
    private func serialize(_ method: String, _ parameters: Parameters?) throws -> Request {
        try serialize(method, parameters, with: .json)
    }

    private func serialize(
        _ method: String, _ parameters: Parameters?, with serializer: some RequestSerializer
    ) throws -> Request {
        try serializer.encode(makeRequest(method), parameters: parameters)
    }

    @Test func `parameters are encoded as JSON`() throws {
        let request = try serialize("POST", ["b": [1, 2.5, true, nil], "a": "x"])
        #expect(request.bytes == #"{"b":[1,2.5,true,null],"a":"x"}"#)
        #expect(request.headers[.contentType] == "application/json")
    }

    @Test func `a GET has a query as with the HTTP serializer`() throws {
        let request = try serialize("GET", ["a": 1])
        #expect(request.url.absoluteString == "http://example.com/v1?a=1")
        #expect(request.bytes == nil)
        #expect(request.headers[.contentType] == nil)
    }

    @Test func `nil parameters have no body and no media type, empty ones an object`() throws {
        let none = try serialize("POST", nil)
        #expect(none.bytes == nil)
        #expect(none.headers[.contentType] == nil)
        #expect(try serialize("POST", [:]).bytes == "{}")
    }

    @Test func `an existing media type is kept`() throws {
        let base = HTTPRequestSerializer(headers: [.contentType: "application/vnd.api+json"])
        let request = try serialize("PATCH", [:], with: JSONRequestSerializer(base: base))
        #expect(request.headers[values: .contentType] == ["application/vnd.api+json"])
    }

    private struct Person: Encodable {
        var age = 36
        var manager: String?
    }

    @Test func `an optional property that is nil is omitted, unlike null`() throws {
        #expect(try serialize("POST", Parameters(encoding: Person())).bytes == #"{"age":36}"#)
        #expect(
            try serialize(
                "POST", ["a": [Parameters.absent], "b": Parameters.null, "c": ["d": Parameters.absent], "e": nil]
            ).bytes
                == #"{"a":[null],"b":null,"c":{}}"#)
    }

    @Test(
        arguments: [
            (["s": "\"\\/\u{8}\u{F}\u{10}\n\r\t é"], "{\"s\":\"\\\"\\\\/\\u0008\\u000f\\u0010\\n\\r\\t é\"}"),
            (["s": "\u{0}\u{1F} \u{7F}"], "{\"s\":\"\\u0000\\u001f \u{7F}\"}"),
            ([1.0, -0.5, 1e21, 1e-7], "[1,-0.5,1e+21,1e-07]"),
            ([Parameters.integer(.min), Parameters.unsigned(.max)], "[-9223372036854775808,18446744073709551615]"),
            (.set([2, 1]), "[2,1]"),
            (.date(Date(timeIntervalSince1970: 0)), "\"1970-01-01T00:00:00Z\""),
            ("text", "\"text\""), (nil, "null"),
        ] as [(Parameters, String)])
    func `every type of value is encoded as JSON`(parameters: Parameters, json: String) throws {
        #expect(try serialize("POST", parameters).bytes == json)
    }

    @Test(
        arguments: [
            ([], #"{"b":{"d":1,"c":[]},"a":["x/y",{}]}"#),
            (.sortedKeys, #"{"a":["x/y",{}],"b":{"c":[],"d":1}}"#),
            (
                [.prettyPrinted, .sortedKeys],
                """
                {
                  "a": [
                    "x/y",
                    {}
                  ],
                  "b": {
                    "c": [],
                    "d": 1
                  }
                }
                """
            ),
        ] as [(JSONEncoder.OutputFormatting, String)])
    func `the layout is configurable`(formatting: JSONEncoder.OutputFormatting, json: String) throws {
        var serializer = JSONRequestSerializer()
        serializer.encoder = JSONEncoder()
        serializer.encoder?.outputFormatting = formatting
        let request = try serialize(
            "POST", ["b": ["d": 1, "c": []] as Parameters, "a": ["x/y", [:]]], with: serializer)
        #expect(request.bytes == json)
    }

    @Test func `the encodings of dates and bytes are configurable`() throws {
        var serializer = JSONRequestSerializer()
        let encoder = JSONEncoder()
        let parameters: Parameters = ["d": Date(timeIntervalSince1970: 1.5), "b": Data([0, 255])]
        #expect(
            try serialize("POST", parameters, with: serializer).bytes == #"{"d":"1970-01-01T00:00:01Z","b":"AP8="}"#)
        encoder.dateEncodingStrategy = .millisecondsSince1970
        encoder.dataEncodingStrategy = .deferredToData
        serializer.encoder = encoder
        #expect(try serialize("POST", parameters, with: serializer).bytes == #"{"d":1500,"b":[0,255]}"#)
        encoder.dateEncodingStrategy = .custom { date, encoder in
            try ["at": date.timeIntervalSince1970].encode(to: encoder)
        }
        #expect(try serialize("POST", parameters, with: serializer).bytes == #"{"d":{"at":1.5},"b":[0,255]}"#)
        encoder.dateEncodingStrategy = .custom { _, _ in throw Refusal() }
        expectFailure {
            try serialize("POST", ["a": [parameters]], with: serializer)
        } where: { error in
            if case .parameters(let failure) = error { failure.path == "a[0].d" } else { false }
        }
    }

    private struct Refusal: Error {}

    @Test(
        arguments: [
            (.convertToSnakeCase, #"{"created_at":1,"parse_http_body":[{"is_read":true}]}"#),
            (
                .custom { path in Key(path.map(\.stringValue).joined(separator: "/")) },
                #"{"createdAt":1,"parseHTTPBody":[{"parseHTTPBody/Index 0/isRead":true}]}"#
            ),
            (
                .custom { path in Key("x" + path.map(\.stringValue).joined(separator: "/")) },
                #"{"xcreatedAt":1,"xparseHTTPBody":[{"xparseHTTPBody/Index 0/isRead":true}]}"#
            ),
        ] as [(JSONEncoder.KeyEncodingStrategy, String)])
    func `names are changed by the strategy of the encoder`(
        strategy: JSONEncoder.KeyEncodingStrategy, json: String
    ) throws {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = strategy
        var serializer = JSONRequestSerializer()
        serializer.encoder = encoder
        let isRead = true
        let parameters: Parameters = ["createdAt": 1, "parseHTTPBody": [["isRead": isRead]]]
        #expect(try serialize("POST", parameters, with: serializer).bytes == json)
    }

    private struct Named: Encodable {
        var userName = "a"
        var dataByName = ["fooBar": 1, "foo_bar": 2]
        var list = [["aB": Inner()]]

        struct Inner: Encodable { var isRead = true }
    }

    @Test func `the keys of a dictionary that encodes itself are data`() throws {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = .sortedKeys
        var serializer = JSONRequestSerializer()
        serializer.encoder = encoder
        let body = try serialize("POST", Parameters(encoding: Named()), with: serializer).bytes
        #expect(body == String(decoding: try encoder.encode(Named()), as: UTF8.self))
        #expect(try Parameters(encoding: ["a": 1]) == ["a": 1])
    }

    @Test func `the last of several names counts for which the strategy makes the same`() throws {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        var serializer = JSONRequestSerializer()
        serializer.encoder = encoder
        let parameters: Parameters = ["aB": 1, "c": 2, "a_b": 3]
        #expect(try serialize("POST", parameters, with: serializer).bytes == #"{"a_b":3,"c":2}"#)
    }

    @Test func `closures for dates and data know where they are`() throws {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .custom { _, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(encoder.codingPath.map(\.stringValue).joined(separator: "/"))
        }
        encoder.dataEncodingStrategy = .custom { data, encoder in
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(encoder.codingPath.count + data.count, forKey: Key("n"))
        }
        var serializer = JSONRequestSerializer()
        serializer.encoder = encoder
        let parameters: Parameters = ["a": [["d": Date.now]], "b": Data([1, 2])]
        #expect(
            try serialize("POST", parameters, with: serializer).bytes == #"{"a":[{"d":"a/Index 0/d"}],"b":{"n":3}}"#)
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode([date])
        }
        expectFailure {
            try serialize("POST", parameters, with: serializer)
        } where: { error in
            if case .parameters(let failure) = error { failure == .tooDeep(limit: 512) } else { false }
        }
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(date)
        }
        #expect(throws: SerializationError.self) { try serialize("POST", parameters, with: serializer) }
    }

    @Test(
        arguments: [
            ("0001-01-01T00:00:00Z", -62_135_596_800), ("1582-10-04T00:00:00Z", -12_220_243_200),
            ("1582-10-10T12:00:00Z", -12_219_681_600), ("1600-02-29T23:59:59Z", -11_670_912_001),
            ("1970-01-01T00:00:00Z", 0), ("9999-12-31T23:59:59Z", 253_402_300_799),
            ("0400-02-29T00:00:00Z", -49_539_340_800),
        ] as [(String, Double)])
    func `dates have one calendar in both directions`(text: String, seconds: Double) throws {
        let date = Date(timeIntervalSince1970: seconds)
        #expect(try serialize("POST", [date]).bytes == "[\"\(text)\"]")
        #expect(try JSONCoding.standard.encoder.encode([date]) == Data("[\"\(text)\"]".utf8))
        #expect(try JSONCoding.standard.decoder.decode([Date].self, from: Data("[\"\(text)\"]".utf8)) == [date])
        let fraction = Data("[\"\(text.dropLast()).5+01:00\"]".utf8)
        #expect(try JSONCoding.standard.decoder.decode([Date].self, from: fraction) == [date + 0.5 - 3600])
    }

    @Test(
        arguments: [
            ("1970-01-02T00:00:00Z", 86_400), ("1970-01-02T00:00:00.25Z", 86_400.25), ("1970-1-2T3:4:5Z", 97_445),
            ("1970-01-02T00:00:00UTC", 86_400), ("1970-01-02T00:00:00GMT+1", 82_800),
            ("1970-01-02T00:00:00+01", 82_800), ("1970-01-02T00:00:00+0130", 81_000),
            ("1970-01-02T00:00:00-01:30", 91_800), ("1970-01-02T00:00:00+01:00:30", 82_770),
            ("1970-01-01T24:00:00Z", 86_400), ("1970-01-01T24:00:00.0Z", 86_400), ("1970-01-01T23:59:60Z", 86_400),
            ("1970-01-02T00:00:00.0000000000Z", 86_400), ("1970-01-02T00:00:00.2500000000009+01:00", 82_800.25),
            ("0400-02-29T00:00:00.5000000000Z", -49_539_340_799.5), ("1970-01-02T00:00:00.250000000Z", 86_400.25),
            ("2024-02-29T00:00:00Z", 1_709_164_800), ("12024-01-02T00:00:00Z", 317_273_673_600),
        ] as [(String, Double)])
    func `dates are read with fractions and offsets`(text: String, seconds: Double) throws {
        let date = try JSONCoding.standard.decoder.decode([Date].self, from: Data("[\"\(text)\"]".utf8))
        #expect(date == [Date(timeIntervalSince1970: seconds)])
    }

    @Test(arguments: [
        "", "1970", "1970-01-01", "01-01-01T00:00:00Z", "-001-01-01T00:00:00Z", "1500-13-01T00:00:00Z", "é",
        "2024-01-02T03:04:05", "2024-01-02 03:04:05Z", "2024-01-02T03:04:05Zx", "2024-01-02T03:04:05.5Z x",
        "2024-01-02T03:04:05Z ", "2024-01-02T03:04:05Z+01:00", "2024-01-02T03:04:05+01:00Z",
        "2024-01-02T03:04:05+01:", "2024-01-02T03:04:05+01:60", "2024-01-02T03:04:05+0160",
        "2024-01-02T03:04:05.Z", "2024-02-30T00:00:00Z", "2023-02-29T00:00:00Z", "1500-02-29T00:00:00Z",
        "2024-04-31T00:00:00Z", "2024-00-01T00:00:00Z", "2024-01-00T00:00:00Z", "2024-01-02T25:00:00Z",
        "2024-01-02T24:00:01Z", "2024-01-02T24:00:00.5Z", "2024-01-02T23:60:00Z", "2024-01-02T23:59:61Z",
    ])
    func `other texts are not dates`(text: String) {
        #expect(throws: DecodingError.self) {
            try JSONCoding.standard.decoder.decode([Date].self, from: Data("[\"\(text)\"]".utf8))
        }
        #expect(throws: SerializationError.self) { try JSONCoding.standard.encoder.encode([Date.distantFuture + 1e12]) }
    }

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(_ text: String) { stringValue = text }
        init?(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }

    @Test func `infinite numbers and the layout follow the encoder`() throws {
        let encoder = JSONEncoder()
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "+", negativeInfinity: "-", nan: "?")
        encoder.outputFormatting = .sortedKeys
        var serializer = JSONRequestSerializer()
        serializer.encoder = encoder
        let parameters: Parameters = ["b": Double.infinity, "a": Double.nan]
        #expect(try serialize("POST", parameters, with: serializer).bytes == #"{"a":"?","b":"+"}"#)
    }

    @Test func `a JSON document is encoded sorted by name`() throws {
        let document: JSONValue = .object([
            "b": .array([.integer(1), .unsigned(.max), .double(0.5), .bool(true), .null]), "a": .string("x"),
        ])
        let request = try serialize("POST", Parameters(document))
        #expect(request.bytes == #"{"a":"x","b":[1,18446744073709551615,0.5,true,null]}"#)
    }

    @Test func `raw text cannot be encoded as JSON`() {
        expectFailure {
            try serialize("POST", ["a": [Parameters.raw("b")]])
        } where: { error in
            if case .parameters(.rawText(path: "a[0]")) = error { true } else { false }
        }
    }

    @Test func `NaN and deep nesting fail with the path`() throws {
        expectFailure {
            try serialize("POST", ["a": ["b": [1, Parameters.double(.nan)]]])
        } where: { error in
            if case .parameters(.notFinite(path: "a.b[1]")) = error { true } else { false }
        }
        expectFailure {
            try serialize("POST", nested(levels: 5_000))
        } where: { error in
            if case .parameters(.tooDeep(limit: 512)) = error { true } else { false }
        }
        #expect(try serialize("POST", nested(levels: 512)).bytes?.hasPrefix("[[[") == true)
    }

    @Test func `what is written can be read, up to the maximum depth`() throws {
        func emptyArray(level: Int) -> Parameters {
            (1..<level).reduce(.array([])) { inner, _ in .array([inner]) }
        }
        let text = try #require(serialize("POST", emptyArray(level: 512)).bytes)
        _ = try JSONResponseSerializer().serialize(makeHead(), Data(text.utf8))
        expectFailure {
            try serialize("POST", emptyArray(level: 513))
        } where: { error in
            if case .parameters(.tooDeep(limit: 512)) = error { true } else { false }
        }
    }
}
