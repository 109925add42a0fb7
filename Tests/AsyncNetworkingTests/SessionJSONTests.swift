// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// The session's encoder and decoder in all places where JSON is written or read.
@Suite(.timeLimit(.minutes(5))) struct SessionJSONTests {
    private struct Note: Codable, Sendable, Equatable {
        var createdAt = Date(timeIntervalSince1970: 86_400)
    }

    /// A new transport that returns the body of each request.
    private static var echo: MockTransport {
        MockTransport { request in
            guard case .bytes(let body) = request.body.content else { return .status(.badRequest) }
            return MockResponse(headers: [.contentType: "application/json"], chunks: [body])
        }
    }

    /// A session whose JSON has names in snake case, and dates in seconds.
    private static func session(_ transport: any Transport) -> SessionManager {
        SessionManager(on: transport) {
            $0.requestSerializer = .json
            $0.json.encoder.keyEncodingStrategy = .convertToSnakeCase
            $0.json.encoder.dateEncodingStrategy = .secondsSince1970
            $0.json.decoder.keyDecodingStrategy = .convertFromSnakeCase
            $0.json.decoder.dateDecodingStrategy = .secondsSince1970
        }
    }

    @Test func `dates that a session sends as JSON are read by default`() async throws {
        let transport = Self.echo
        let api = SessionManager(on: transport) { $0.requestSerializer = .json }
        let note = Note()
        #expect(try await api.post("x", body: .json(note), as: .decodable(Note.self)).value == note)
        let sent = try await api.post("x", parameters: ["createdAt": note.createdAt], as: .decodable(Note.self))
        #expect(sent.value == note)
        #expect(
            transport.requests.map { String(decoding: $0.body, as: UTF8.self) }.suffix(2).allSatisfy {
                $0 == #"{"createdAt":"1970-01-02T00:00:00Z"}"#
            })
        let line = RequestBody.jsonLines([note])
        let lines = try api.request(.post, "x", body: line)
        let streamed = SessionManager(on: MockTransport(.json(#"{"createdAt": "1970-01-02T01:00:00.000+01:00"}"#)))
        try await streamed.withResponse(for: lines) { _, body in
            for try await value in body.jsonLines(of: Note.self) { #expect(value == note) }
        }
    }

    @Test func `bodies, parameters and values follow the session's strategies`() async throws {
        let transport = Self.echo
        let api = Self.session(transport)
        let note = Note()
        #expect(try await api.post("x", body: .json(note), as: .decodable(Note.self)).value == note)
        #expect(
            try await api.post("x", parameters: ["createdAt": note.createdAt], as: .decodable(Note.self)).value == note)
        let nested = try await api.post("x", body: .json(note), as: .optional(.decodable(Note.self)))
        #expect(nested.map { $0?.createdAt }.value == note.createdAt)
        for received in transport.requests.suffix(3) {
            #expect(String(decoding: received.body, as: UTF8.self) == #"{"created_at":86400}"#)
        }
    }

    @Test func `a body of a program's own request is encoded by the session when it is sent`() async throws {
        let transport = Self.echo
        let api = Self.session(transport)
        var request = Request(method: .post, url: try url("http://a.example/"), body: .json(Note()))
        #expect(request.body.kind == .stream)
        #expect(request.body.isReplayable)
        #expect(try await api.response(for: request, as: .decodable(Note.self)).value == Note())
        _ = try await api.upload(request).value
        request.body = .json(Note(), encoder: JSONCoding.standard.encoder)
        request.headers[.contentType] = "application/vnd.note+json"
        #expect(try await api.data(for: request).statusCode == 200)
        #expect(
            transport.requests.map { String(decoding: $0.body, as: UTF8.self) } == [
                #"{"created_at":86400}"#, #"{"created_at":86400}"#, #"{"createdAt":"1970-01-02T00:00:00Z"}"#,
            ])
        #expect(
            transport.requests.map { $0.request.headers[.contentType] } == [
                "application/json", "application/json", "application/vnd.note+json",
            ])
        request.body = .json(Double.infinity)
        await #expect(throws: SessionError.self) { try await api.data(for: request) }
        #expect(transport.requests.count == 3)
    }

    @Test func `a body that is compressed or throttled before it is encoded is encoded by the session`() async throws {
        let transport = MockTransport(.text("ok"))
        let api = Self.session(transport)
        let url = try url("http://a.example/")
        let notes = [Note](repeating: Note(), count: 100)
        var request = Request(method: .post, url: url, body: .json(notes))
        request.compressBody()
        _ = try await api.data(for: request)
        request = Request(method: .post, url: url, body: .json(Note()))
        request.compressBody()
        _ = try await api.data(for: request)
        request.body = try .json(Note()).throttled(.packets(delay: .zero))
        _ = try await api.data(for: request)
        try await api.post("x", body: .json(notes).compressed(), headers: [.contentEncoding: "gzip"])
        let sent = transport.requests
        #expect(sent.map { $0.request.headers[.contentType] } == Array(repeating: "application/json", count: 4))
        #expect(sent.map { $0.request.headers[.contentEncoding] } == ["gzip", nil, nil, "gzip"])
        let short = Data(#"{"created_at":86400}"#.utf8)
        #expect(sent[1].body == short)
        #expect(sent[2].body == short)
        #expect(sent[0].body.starts(with: [0x1F, 0x8B]) && sent[0].body == sent[3].body)
    }

    @Test func `JSON in a form is encoded by the session`() async throws {
        let transport = MockTransport(.text("ok"))
        let api = Self.session(transport)
        var inner = try MultipartFormData(subtype: .mixed, boundary: "I")
        try inner.append(.json(Note()), headers: [])
        var form = try MultipartFormData(boundary: "B")
        try form.append(.json(Note()), name: "a", fileName: nil)
        try form.append(.json(Note(), encoder: JSONCoding.standard.encoder), name: "b", fileName: nil)
        try form.append(.form(inner), headers: [])
        try await api.post("x", body: .form(form))
        try await api.post("x", body: .form(form).throttled(.packets(delay: .zero)))
        let text = #"{"created_at":86400}"#
        let field = "--B\r\nContent-Disposition: form-data; name="
        for received in transport.requests {
            #expect(
                String(decoding: received.body, as: UTF8.self)
                    == "\(field)\"a\"\r\n\r\n\(text)\r\n"
                    + "\(field)\"b\"\r\n\r\n{\"createdAt\":\"1970-01-02T00:00:00Z\"}\r\n"
                    + "--B\r\n\r\n--I\r\n\r\n\(text)\r\n--I--\r\n\r\n--B--\r\n")
        }
        #expect(transport.requests.count == 2)
        form = MultipartFormData()
        try form.append(.json(Double.nan), name: "a", fileName: nil)
        let error = await #expect(throws: SessionError.self) { try await api.post("x", body: .form(form)) }
        guard case .serialization(.parameters) = error else { throw try #require(error) }
    }

    @Test func `a body that an interceptor sets is encoded by the session`() async throws {
        struct Replacing: Interceptor {
            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                var request = request
                request.body = .json(Note())
                return try await next(request)
            }
        }
        for isAttempt in [false, true] {
            let transport = MockTransport(.text("ok"))
            let api = SessionManager(on: transport) {
                $0.json.encoder.dateEncodingStrategy = .secondsSince1970
                if isAttempt { $0.attemptInterceptors = [Replacing()] } else { $0.interceptors = [Replacing()] }
            }
            try await api.post("x", body: .none)
            #expect(try transport.onlyRequest.body == Data(#"{"createdAt":86400}"#.utf8))
        }
    }

    @Test func `without a session a body is encoded while it is sent`() async throws {
        let transport = MockTransport(.text("ok"))
        let request = Request(method: .post, url: try url("http://a.example/"), body: .json(Note()))
        try await transport.withResponse(for: request, delivery: .streamed, reporting: nil) { _, _ in }
        let sent = try transport.onlyRequest
        #expect(String(decoding: sent.body, as: UTF8.self) == #"{"createdAt":"1970-01-02T00:00:00Z"}"#)
        #expect(sent.request.headers[.contentType] == nil)
    }

    @Test func `streams, events and rejections follow the session's strategies`() async throws {
        let text = #"{"created_at":86400}"#
        let request = Request(url: try url("http://a.example/"))
        let lines = Self.session(MockTransport(.text(text + "\n" + text)))
        try await lines.withResponse(for: request) { _, body in
            var values: [Note] = []
            let observed = body.transforming { $0 }
            for try await value in observed.jsonLines(of: Note.self) { values.append(value) }
            #expect(values == [Note(), Note()])
        }
        let multipart = MockResponse(
            headers: [.contentType: "multipart/mixed; boundary=b"],
            chunks: [Data("--b\r\n\r\n\(text)\r\n--b--".utf8)])
        try await Self.session(MockTransport(multipart)).withResponse(for: request) { head, body in
            for try await part in try body.parts(of: head) {
                for try await value in part.body.jsonLines(of: Note.self) { #expect(value == Note()) }
            }
        }
        let events = MockResponse(
            headers: [.contentType: "text/event-stream"], chunks: [Data("data: \(text)\n\n".utf8)])
        try await Self.session(MockTransport(events)).withResponse(for: request) { _, body in
            for try await event in body.serverSentEvents { #expect(try event.decoded(as: Note.self) == Note()) }
        }
        let feed = Self.session(MockTransport(events, .status(.noContent)))
        for try await event in feed.events(for: request) {
            #expect(try event.decoded(as: Note.self) == Note())
            break
        }
        let error = try await sessionError {
            _ = try await Self.session(MockTransport(.json(text, status: .conflict))).get("x", as: .json)
        }
        #expect(try error.rejection?.decoded(as: Note.self) == Note())
    }

    @Test func `an encoder or decoder of a call or serializer takes precedence`() async throws {
        let transport = Self.echo
        let api = SessionManager(on: transport) {
            var serializer = JSONRequestSerializer()
            serializer.encoder = JSONEncoder()
            $0.requestSerializer = serializer
            $0.json.encoder.keyEncodingStrategy = .convertToSnakeCase
        }
        let note = Note(createdAt: Date(timeIntervalSinceReferenceDate: 5))
        let response = try await api.post(
            "x", parameters: ["createdAt": note.createdAt], as: .decodable(Note.self, decoder: JSONDecoder()))
        #expect(response.value == note)
        #expect(transport.requests.last.map { String(decoding: $0.body, as: UTF8.self) } == #"{"createdAt":5}"#)
    }

    @Test func `an error of reading a document contains the URL without secrets`() async throws {
        let api = SessionManager(on: MockTransport(.json(#"{"createdAt": false}"#)))
        for serializer in [.json, .decodable(Note.self)] as [any ResponseSerializer] {
            let manager = serializer is JSONResponseSerializer ? SessionManager(on: MockTransport(.json("{"))) : api
            let error = try await sessionError {
                _ = try await manager.erased("n", parameters: ["key": "s3"], serializer)
            }
            #expect(error.description.hasPrefix("The body of http://a.example/v1/n"))
            #expect(!error.description.contains("s3"))
        }
    }
}

extension SessionManager {
    /// Performs a request with a serializer whose type is not known.
    fileprivate func erased(
        _ path: String, parameters: Parameters, _ serializer: some ResponseSerializer
    ) async throws -> any Sendable {
        try await get(path, parameters: parameters, as: serializer).value
    }
}
