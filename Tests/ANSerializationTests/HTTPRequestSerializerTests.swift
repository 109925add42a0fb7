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

    @Test(
        arguments: [
            (.query, "POST", ["a": 1], "http://example.com/v1?a=1", nil),
            (.query, "POST", nil, "http://example.com/v1", ""),
            (.query, "GET", ["a": 1], "http://example.com/v1?a=1", nil),
            (.body, "GET", ["a": 1], "http://example.com/v1", "a=1"),
            (.body, "GET", nil, "http://example.com/v1", nil),
            (.body, "POST", nil, "http://example.com/v1", ""),
        ] as [(HTTPRequestSerializer.Destination, String, Parameters?, String, String?)])
    func `the destination of parameters is configurable`(
        destination: HTTPRequestSerializer.Destination, method: String, parameters: Parameters?, url: String,
        body: String?
    ) throws {
        var serializer = HTTPRequestSerializer()
        serializer.destination = destination
        let request = try serializer.serialize(makeRequest(method), parameters: parameters)
        #expect(request.url.absoluteString == url)
        #expect(request.bytes == body)
        #expect(request.headers[.contentType] == (body == nil ? nil : "application/x-www-form-urlencoded"))
    }

    @Test func `the destination also applies to JSON`() throws {
        var serializer = JSONRequestSerializer()
        serializer.base.destination = .body
        #expect(try serializer.serialize(makeRequest("DELETE"), parameters: ["a": 1]).bytes == #"{"a":1}"#)
        serializer.base.destination = .query
        let request = try serializer.serialize(makeRequest("POST"), parameters: ["a": 1])
        #expect(request.url.absoluteString == "http://example.com/v1?a=1")
        #expect(request.bytes == nil)
        #expect(try serializer.serialize(makeRequest("POST"), parameters: nil).headers.isEmpty)
    }

    @Test func `the text of a custom query is sent unchanged, also for empty parameters`() throws {
        var serializer = HTTPRequestSerializer()
        serializer.customQuery = { request, parameters in
            let isEmpty = parameters == [:]
            return "m=\(request.method.rawValue)" + (isEmpty ? "" : "&%5b=+")
        }
        let get = try serializer.serialize(makeRequest("GET"), parameters: ["a": 1])
        #expect(get.url.absoluteString == "http://example.com/v1?m=GET&%5b=+")
        #expect(try serializer.serialize(makeRequest("POST"), parameters: [:]).bytes == "m=POST")
        #expect(try serializer.serialize(makeRequest("POST"), parameters: nil).bytes == "")
        #expect(try serializer.serialize(makeRequest("GET"), parameters: nil).url.query() == nil)
    }

    @Test func `an error of the custom query is kept`() {
        struct Refusal: Error {}
        var serializer = HTTPRequestSerializer()
        serializer.customQuery = { _, _ in throw Refusal() }
        for method in ["GET", "POST"] {
            expectFailure {
                try serializer.serialize(makeRequest(method), parameters: [:])
            } where: { error in
                if case .parameters(let failure) = error { failure.underlying is Refusal } else { false }
            }
        }
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

    @Test func `forms use the configured text encoding`() throws {
        var serializer = HTTPRequestSerializer()
        serializer.stringEncoding = .isoLatin1
        let request = try serializer.serialize(makeRequest("POST"), parameters: .raw("ä"))
        guard case .bytes(let data) = request.body.content else {
            Issue.record("no bytes")
            return
        }
        #expect(data == Data([0xE4]))
        #expect(try serializer.serialize(makeRequest("POST"), parameters: ["ä": "ö"]).bytes == "%C3%A4=%C3%B6")
        expectFailure {
            try serializer.serialize(makeRequest("POST"), parameters: .raw("€"))
        } where: { error in
            if case .parameters(.textEncoding(path: nil)) = error { true } else { false }
        }
    }

    private enum Purpose: RequestAttribute {
        static let defaultValue = "browsing"
    }

    @Test func `options and attributes apply to requests that do not set them`() throws {
        var serializer = HTTPRequestSerializer()
        serializer.changeOptions { $0.timeouts.idle = .seconds(5) }
        serializer[Purpose.self] = "prefetching"
        let session = try Request(
            url: makeRequest("GET").url,
            options: TransferOptions().with {
                $0.timeouts.idle = .seconds(9)
                $0.timeouts.total = .seconds(90)
            })
        for method in ["GET", "POST"] {
            for each in [serializer, JSONRequestSerializer(base: serializer)] as [any RequestSerializer] {
                var request = try each.serialize(makeRequest(method), parameters: ["a": 1])
                #expect(request.options == nil)
                #expect(request[Purpose.self] == "prefetching")
                request.inheritOptions(from: session)
                #expect(request.options?.timeouts.idle == .seconds(5))
                #expect(request.options?.timeouts.total == .seconds(90))
            }
        }
        var own = try makeRequest("GET")
        own.options = TransferOptions()
        own[Purpose.self] = "own"
        own = try serializer.serialize(own, parameters: nil)
        #expect(own.options == TransferOptions())
        #expect(own[Purpose.self] == "own")
    }

    @Test func `options that are not changed come from the session`() throws {
        let session = Request(url: try makeRequest("GET").url, options: TransferOptions())
        var request = try HTTPRequestSerializer().serialize(makeRequest("GET"), parameters: nil)
        #expect(request.headers.isEmpty)
        #expect(request[Purpose.self] == "browsing")
        request.inheritOptions(from: session)
        #expect(request.sharedOptions === session.sharedOptions)
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
