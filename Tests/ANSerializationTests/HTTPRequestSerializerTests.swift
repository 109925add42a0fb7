// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct HTTPRequestSerializerTests {
    private let serializer = HTTPRequestSerializer(headers: [.accept: "a/b", .acceptLanguage: "en"])

    @Test(arguments: ["GET", "HEAD", "DELETE", "get"])
    func `parameters are encoded into the query for GET, HEAD and DELETE`(method: String) throws {
        let request = try serializer.serialize(makeRequest(method), parameters: ["a": [1, 2]])
        #expect(request.url.absoluteString == "http://example.com/v1?a%5B%5D=1&a%5B%5D=2")
        #expect(request.bytes == nil)
        #expect(request.headers[.contentType] == nil)
        #expect(request.method.rawValue == method)
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "REPORT"])
    func `parameters are encoded into a form for other methods`(method: String) throws {
        let request = try serializer.serialize(makeRequest(method), parameters: ["a": "b c"])
        #expect(request.url.absoluteString == "http://example.com/v1")
        #expect(request.bytes == "a=b%20c")
        #expect(request.headers[.contentType] == "application/x-www-form-urlencoded")
    }

    @Test(arguments: [nil, [:]] as [Parameters?])
    func `a POST without parameters has an empty form`(parameters: Parameters?) throws {
        let request = try serializer.serialize(makeRequest("POST"), parameters: parameters)
        #expect(request.bytes == "")
        #expect(request.headers[.contentType] == "application/x-www-form-urlencoded")
    }

    @Test(arguments: [nil, [:]] as [Parameters?])
    func `a GET without parameters is unchanged`(parameters: Parameters?) throws {
        let request = try serializer.serialize(makeRequest("GET"), parameters: parameters)
        #expect(request.url.absoluteString == "http://example.com/v1")
        #expect(request.bytes == nil)
    }

    @Test func `default fields are added with all values unless the name exists`() throws {
        var serializer = HTTPRequestSerializer()
        serializer.headers.append(HTTPField(name: .accept, value: "a/1"))
        serializer.headers.append(HTTPField(name: .accept, value: "a/2"))
        serializer.headers.append(HTTPField(name: .acceptLanguage, value: "en"))
        serializer.headers.append(HTTPField(name: .contentType, value: "x/y"))
        var request = try makeRequest("POST")
        request.headers[.acceptLanguage] = "de"
        let result = try serializer.serialize(request, parameters: ["a": 1])
        #expect(
            result.headers.map { "\($0.name): \($0.value)" } == [
                "Accept-Language: de", "Accept: a/1", "Accept: a/2", "Content-Type: x/y",
            ])
    }

    @Test func `a request with a body is kept and cannot have parameters`() throws {
        var request = try makeRequest("POST")
        request.body = .string("own")
        let result = try serializer.serialize(request, parameters: nil)
        #expect(result.bytes == "own")
        #expect(result.headers[.contentType] == nil)
        expectFailure {
            try serializer.serialize(request, parameters: [:])
        } where: { error in
            if case .parameters(.bodyPresent) = error { true } else { false }
        }
        expectFailure {
            try JSONRequestSerializer().serialize(request, parameters: [:])
        } where: { error in
            if case .parameters(.bodyPresent) = error { true } else { false }
        }
    }

    @Test func `the methods with queries are configurable`() throws {
        let serializer = HTTPRequestSerializer(queryMethods: [.get])
        let request = try serializer.serialize(makeRequest("DELETE"), parameters: ["a": 1])
        #expect(request.bytes == "a=1")
    }

    @Test(arguments: ["a#b", "a b", "ä", "a\n"])
    func `a raw query that is invalid in a URL is rejected`(text: String) throws {
        expectFailure {
            try serializer.serialize(makeRequest("GET"), parameters: .raw(text))
        } where: { error in
            if case .parameters(.rawQuery(text)) = error { true } else { false }
        }
        #expect(try serializer.serialize(makeRequest("POST"), parameters: .raw(text)).bytes == text)
    }

    @Test(arguments: [("password=a^b", "password=…"), ("se^cret", "…"), ("a=b&&se cret&c=d#e", "a=…&&…&c=…")])
    func `the error of an invalid query hides the values`(query: String, text: String) {
        expectFailure {
            try serializer.serialize(makeRequest("GET"), parameters: .raw(query))
        } where: { error in
            "\(error)".hasPrefix("“\(text)” cannot be the query")
        }
    }
}

func makeRequest(_ method: String) throws -> Request {
    Request(
        method: try #require(HTTPRequest.Method(method)), url: try #require(URL(string: "http://example.com/v1")))
}

extension Request {
    /// The body as text; `nil` without a body or for a streamed one.
    var bytes: String? {
        if case .bytes(let data) = body.content { String(decoding: data, as: UTF8.self) } else { nil }
    }
}

extension RequestSerializer {
    /// Returns a request as a session would send it, with its body encoded.
    func encode(_ request: Request, parameters: Parameters?) throws -> Request {
        var request = try serialize(request, parameters: parameters)
        try request.encodeBody(with: JSONCoding.standard.encoder)
        return request
    }
}
