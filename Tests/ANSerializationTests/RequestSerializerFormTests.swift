// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import HTTPTypes
import Testing

/// Requests with multipart forms, created by each serializer.
@Suite struct RequestSerializerFormTests {
    private static let serializers: [any RequestSerializer] = [
        HTTPRequestSerializer(headers: [.contentType: "x/y", .accept: "a/b"]),
        JSONRequestSerializer(base: HTTPRequestSerializer(headers: [.contentType: "x/y", .accept: "a/b"])),
        PropertyListRequestSerializer(base: HTTPRequestSerializer(headers: [.contentType: "x/y", .accept: "a/b"])),
        Foreign(),
    ]

    /// A custom serializer without support for forms.
    private struct Foreign: RequestSerializer {
        func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request {
            var request = request
            request.headers[.accept] = "a/b"
            return request
        }
    }

    @Test(arguments: serializers.indices, ["POST", "PUT", "PATCH", "GET"])
    func `parameters precede the parts, and the form's content type is used`(index: Int, method: String) async throws {
        var form = try MultipartFormData(boundary: "B")
        form.append("x", name: "file")
        let request = try Self.serializers[index].serialize(
            makeRequest(method), parameters: ["b": [1], "a": true], form: form)
        #expect(
            try await text(of: request.body) == ["a", "b[]", "file"].enumerated().map { index, name in
                "\(index == 0 ? "" : "\r\n")--B\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n"
                    + (name == "file" ? "x" : "1")
            }.joined() + "\r\n--B--\r\n")
        #expect(request.headers[values: .contentType] == ["multipart/form-data; boundary=B"])
        #expect(request.headers[values: .accept] == ["a/b"])
        #expect(request.url.query() == nil)
        #expect(request.method.rawValue == method)
    }

    @Test func `parameters precede a file or a stream`() async throws {
        let serializer = HTTPRequestSerializer()
        let field = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n"
        try await withFile(named: "f.txt", Data("content".utf8)) { path in
            var form = try MultipartFormData(boundary: "B")
            try form.append(file: path, name: "file")
            let request = try serializer.serialize(makeRequest("POST"), parameters: ["a": 1], form: form)
            let expected =
                field + "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.txt\"\r\n"
                + "Content-Type: text/plain\r\n\r\ncontent\r\n--B--\r\n"
            #expect(try await text(of: request.body) == expected)
            #expect(request.body.length == Int64(expected.utf8.count))
        }
        var form = try MultipartFormData(boundary: "B")
        try form.append(.stream(Chunks(["x", "yz"])), headers: [])
        let request = try serializer.serialize(makeRequest("POST"), parameters: ["a": 1], form: form)
        #expect(try await text(of: request.body) == field + "--B\r\n\r\nxyz\r\n--B--\r\n")
        #expect(request.body.length == nil)
    }

    @Test func `names and text are encoded according to the serializer`() async throws {
        var serializer = JSONRequestSerializer()
        serializer.base.encoder.keys = .snakeCase
        serializer.base.encoder.arrays = .indexed
        let form = try MultipartFormData(boundary: "B")
        let request = try serializer.serialize(makeRequest("POST"), parameters: ["aB": [1]], form: form)
        #expect(try await text(of: request.body).contains("name=\"a_b[0]\"\r\n\r\n1\r\n"))
    }

    @Test(arguments: [nil, [:]] as [Parameters?])
    func `without parameters and parts the request has no form`(parameters: Parameters?) throws {
        let http = try HTTPRequestSerializer().serialize(makeRequest("POST"), parameters: parameters, form: .init())
        #expect(http.bytes == "")
        #expect(http.headers[.contentType] == "application/x-www-form-urlencoded")
        let json = try JSONRequestSerializer().serialize(makeRequest("POST"), parameters: parameters, form: .init())
        #expect(json.bytes == nil)
        #expect(json.headers.isEmpty)
    }

    @Test func `a request with a body cannot have a form`() throws {
        var form = MultipartFormData()
        form.append("x", name: "a")
        var request = try makeRequest("POST")
        request.body = .string("own")
        for serializer in Self.serializers {
            expectFailure {
                try serializer.serialize(request, parameters: nil, form: form)
            } where: { error in
                if case .parameters(.bodyPresent) = error { true } else { false }
            }
        }
    }
}
