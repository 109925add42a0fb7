// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct HTTPRequestSerializerTests {
    private let serializer = HTTPRequestSerializer(headers: [.accept: "a/b", .acceptLanguage: "en"])

    @Test(arguments: ["GET", "HEAD", "DELETE", "get"])
    func `parameters go to the query for GET, HEAD and DELETE`(method: String) throws {
        let request = try serializer.serialize(makeRequest(method), parameters: ["a": [1, 2]])
        #expect(request.url.absoluteString == "http://example.com/v1?a%5B%5D=1&a%5B%5D=2")
        #expect(request.bytes == nil)
        #expect(request.headers[.contentType] == nil)
        #expect(request.method.rawValue == method)
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "REPORT"])
    func `parameters become a form for other methods`(method: String) throws {
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
    func `a GET without parameters stays as it is`(parameters: Parameters?) throws {
        let request = try serializer.serialize(makeRequest("GET"), parameters: parameters)
        #expect(request.url.absoluteString == "http://example.com/v1")
        #expect(request.bytes == nil)
    }

    @Test func `default fields fill gaps only, with all their values`() throws {
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

    @Test func `a body of the request's own stays, and excludes parameters`() throws {
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

    @Test func `the methods can be chosen`() throws {
        let serializer = HTTPRequestSerializer(queryMethods: [.get])
        let request = try serializer.serialize(makeRequest("DELETE"), parameters: ["a": 1])
        #expect(request.bytes == "a=1")
    }
}

func makeRequest(_ method: String) throws -> Request {
    Request(
        method: try #require(HTTPRequest.Method(method)), url: try #require(URL(string: "http://example.com/v1")))
}

extension Request {
    /// The body as text; nil for no body and for streams.
    var bytes: String? {
        if case .bytes(let data) = body.content { String(decoding: data, as: UTF8.self) } else { nil }
    }
}
