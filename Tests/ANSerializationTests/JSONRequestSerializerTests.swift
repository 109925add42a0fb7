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
        try serializer.serialize(makeRequest(method), parameters: parameters)
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
            try serialize("POST", ["a": [.absent], "b": nil, "c": ["d": .absent]]).bytes
                == #"{"a":[null],"b":null,"c":{}}"#)
    }

    @Test(
        arguments: [
            (["s": "\"\\/\u{8}\u{F}\u{10}\n\r\t é"], "{\"s\":\"\\\"\\\\/\\u0008\\u000f\\u0010\\n\\r\\t é\"}"),
            (["s": "\u{0}\u{1F} \u{7F}"], "{\"s\":\"\\u0000\\u001f \u{7F}\"}"),
            ([1.0, -0.5, 1e21, 1e-7], "[1,-0.5,1e+21,1e-07]"),
            ([.integer(.min), .unsigned(.max)], "[-9223372036854775808,18446744073709551615]"),
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
            (.escapesSlashes, #"{"b":{"d":1,"c":[]},"a":["x\/y",{}]}"#),
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
        ] as [(JSONRequestSerializer.WritingOptions, String)])
    func `the layout is configurable`(options: JSONRequestSerializer.WritingOptions, json: String) throws {
        let request = try serialize(
            "POST", ["b": ["d": 1, "c": []], "a": ["x/y", [:]]], with: JSONRequestSerializer(writingOptions: options))
        #expect(request.bytes == json)
    }

    @Test func `the encodings of dates and bytes are configurable`() throws {
        var serializer = JSONRequestSerializer()
        let parameters: Parameters = ["d": .date(Date(timeIntervalSince1970: 1.5)), "b": .data(Data([0, 255]))]
        #expect(
            try serialize("POST", parameters, with: serializer).bytes == #"{"d":"1970-01-01T00:00:01Z","b":"AP8="}"#)
        serializer.dates = .milliseconds
        serializer.data = .deferred
        #expect(try serialize("POST", parameters, with: serializer).bytes == #"{"d":1500,"b":[0,255]}"#)
        serializer.dates = .custom { date in ["at": .double(date.timeIntervalSince1970)] }
        #expect(try serialize("POST", parameters, with: serializer).bytes == #"{"d":{"at":1.5},"b":[0,255]}"#)
        serializer.dates = .custom { .date($0) }
        expectFailure {
            try serialize("POST", parameters, with: serializer)
        } where: { error in
            if case .parameters(.tooDeep(limit: 512)) = error { true } else { false }
        }
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
            try serialize("POST", ["a": [.raw("b")]])
        } where: { error in
            if case .parameters(.rawText(path: "a[0]")) = error { true } else { false }
        }
    }

    @Test func `NaN and deep nesting fail with the path`() throws {
        expectFailure {
            try serialize("POST", ["a": ["b": [1, .double(.nan)]]])
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
}
