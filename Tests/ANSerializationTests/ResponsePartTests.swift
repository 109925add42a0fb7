// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct ResponsePartTests {
    private func part(_ header: String, content: String = "") async throws -> ResponsePart {
        let text = "--b\r\n\(header)\r\n\r\n\(content)\r\n--b--"
        var parts = try ResponseBody(Data(text.utf8)).parts(of: makeHead(type: "multipart/mixed; boundary=b"))
            .makeAsyncIterator()
        return try #require(try await parts.next())
    }

    @Test(
        arguments: [
            ("form-data; name=\"a\"; filename=\"b.txt\"", "a", "b.txt"),
            ("form-data; NAME=a; FileName=b", "a", "b"),
            (#"form-data; name="a \"b\" \\; c"; filename="x;y""#, #"a "b" \; c"#, "x;y"),
            ("form-data; name=\"ü\"; filename=\"ü.txt\"", "ü", "ü.txt"),
            ("attachment; filename=a.txt; filename*=UTF-8''na%C3%AFve.txt", nil, "naïve.txt"),
            ("attachment; filename*=iso-8859-1'en'%A3.txt", nil, "£.txt"),
            ("attachment; filename=a.txt; filename*=UTF-8''%ZZ", nil, "a.txt"),
            ("attachment; filename=a.txt; filename*=UTF-8''%", nil, "a.txt"),
            ("attachment; filename=\"../../etc/passwd\"", nil, "passwd"),
            (#"attachment; filename="C:\\a\\b.txt""#, nil, "b.txt"),
            ("attachment; filename*=UTF-8''..%2Fa%00%0Ab", nil, "ab"),
            ("attachment; filename=..", nil, nil),
            ("attachment; filename=\"a/\"", nil, "a"),
            ("attachment; filename=\"\"", nil, nil),
            ("attachment", nil, nil),
        ] as [(String, String?, String?)])
    func `names are decoded without directories`(value: String, name: String?, fileName: String?) async throws {
        let part = try await part("Content-Disposition: \(value)")
        #expect(part.name == name)
        #expect(part.fileName == fileName)
    }

    @Test(
        arguments: [
            ("bytes 0-99/1234", 0, 99, 1_234), ("Bytes  5-5/*", 5, 5, nil), ("bytes 0-9/10", 0, 9, 10),
        ] as [(String, Int64, Int64, Int64?)])
    func `ranges are parsed`(value: String, first: Int64, last: Int64, total: Int64?) async throws {
        let range = try #require(try await part("Content-Range: \(value)").range)
        #expect(range.bytes == first...last)
        #expect(range.total == total)
    }

    @Test(arguments: [
        "bytes */10", "bytes 5-4/10", "bytes 0-10/10", "bytes 0-/10", "items 0-1/2", "0-1/2",
        "bytes 0-99999999999999999999/*", "bytes -1-2/3", "bytes 0-9223372036854775807/*",
    ])
    func `invalid ranges are nil`(value: String) async throws {
        #expect(try await part("Content-Range: \(value)").range == nil)
    }

    @Test func `a part is serialized according to its own media type`() async throws {
        let json = try await part("Content-Type: application/json; charset=utf-8", content: #"{"a":1}"#)
        #expect(json.mediaType == "application/json")
        #expect(try await json.value(as: .json, upTo: 100)["a"]?.int == 1)
        let html = try await part("Content-Type: text/html", content: "<p>")
        await #expect(throws: SerializationError.self) { try await html.value(as: .json, upTo: 100) }
        let long = try await part("Content-Type: text/html", content: "<p>")
        await #expect(throws: TransportError.self) { try await long.value(as: .string, upTo: 2) }
    }

    @Test func `a part may itself be multipart`() async throws {
        let outer = try await part(
            "Content-Type: multipart/mixed; boundary=b2", content: "--b2\r\nA: 1\r\n\r\nx\r\n--b2--")
        var contents: [Data] = []
        for try await inner in try outer.parts() { contents.append(try await inner.body.collect(upTo: 10)) }
        #expect(contents == [Data("x".utf8)])
    }
}
