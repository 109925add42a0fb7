// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct SessionManagerVerbsTests {
    @Test(arguments: [
        ("foo", "http://a.example/v1/foo"),
        ("foo?bar=baz", "http://a.example/v1/foo?bar=baz"),
        ("/foo", "http://a.example/foo"),
        ("foo/", "http://a.example/v1/foo/"),
        ("http://b.example/", "http://b.example/"),
        ("../x", "http://a.example/x"),
        ("?a=b", "http://a.example/v1/?a=b"),
        ("", "http://a.example/v1/"),
    ])
    func `a path is resolved against the base URL`(path: String, expected: String) async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport, baseURL: "http://a.example/v1")
        _ = try await manager.get(path)
        #expect(try transport.onlyRequest.request.url.absoluteString == expected)
    }

    @Test func `in the appending mode, a path with a leading slash is below the base`() async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport) { $0.baseURLMode = .appendingPath }
        _ = try await manager.get("/foo")
        #expect(try transport.onlyRequest.request.url.absoluteString == "http://a.example/v1/foo")
    }

    @Test func `uploads and downloads resolve paths in the same way`() async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport)
        let directory = try TemporaryDirectory()
        _ = try await manager.upload("up", body: .string("x")).value
        _ = try await manager.download("/down", to: "\(directory.path)/file").value
        #expect(
            transport.requests.map(\.request.url.absoluteString)
                == ["http://a.example/v1/up", "http://a.example/down"])
    }

    @Test(arguments: ["users", "ftp://a.example/", "http://", "a\nb"])
    func `an invalid URL fails before anything is sent`(path: String) async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport, baseURL: nil)
        let errors = [
            try await sessionError { _ = try await manager.get(path) },
            try await sessionError { _ = try await manager.upload(path, body: .none).value },
            try await sessionError { _ = try await manager.download(path, to: "/nowhere").value },
        ]
        for error in errors {
            guard case .serialization(.url) = error else { throw error }
        }
        #expect(transport.requests.isEmpty)
        #expect(manager.tasks.isEmpty)
    }

    @Test func `each verb has its method, and places parameters in the query or the body`() async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport)
        let parameters: Parameters = ["a": 1, "b": "x y"]
        _ = try await manager.get("p", parameters: parameters)
        _ = try await manager.head("p", parameters: parameters)
        _ = try await manager.delete("p", parameters: parameters)
        _ = try await manager.post("p", parameters: parameters)
        _ = try await manager.put("p", parameters: parameters)
        _ = try await manager.patch("p", parameters: parameters)
        let received = transport.requests.map { received in
            [
                received.request.method.rawValue, received.request.url.absoluteString,
                String(decoding: received.body, as: UTF8.self), received.request.headers[.contentType] ?? "-",
            ]
        }
        let query = "http://a.example/v1/p?a=1&b=x%20y"
        let plain = "http://a.example/v1/p"
        let form = "application/x-www-form-urlencoded"
        #expect(
            received == [
                ["GET", query, "", "-"],
                ["HEAD", query, "", "-"],
                ["DELETE", query, "", "-"],
                ["POST", plain, "a=1&b=x%20y", form],
                ["PUT", plain, "a=1&b=x%20y", form],
                ["PATCH", plain, "a=1&b=x%20y", form],
            ])
    }

    @Test func `the session's serializer encodes the body`() async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport) { $0.requestSerializer = .json }
        _ = try await manager.post("p", parameters: ["b": 1, "a": [true, nil]])
        let received = try transport.onlyRequest
        #expect(String(decoding: received.body, as: UTF8.self) == #"{"b":1,"a":[true,null]}"#)
        #expect(received.request.headers[.contentType] == "application/json")
    }

    @Test func `a given body is sent unchanged, and cannot be combined with parameters`() async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport)
        _ = try await manager.data(for: manager.request(.put, "p", body: .string("own")))
        let received = try transport.onlyRequest
        #expect(received.body == Data("own".utf8))
        #expect(received.request.headers[.contentType] == nil)
        let error = try await sessionError {
            _ = try manager.request(.put, "p", parameters: ["a": 1], body: .string("own"))
        }
        guard case .serialization(.parameters(.bodyPresent)) = error else { throw error }
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "DELETE"])
    func `a JSON value, a form and any other body are sent by each verb`(method: String) async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport) { $0.json.encoder.keyEncodingStrategy = .convertToSnakeCase }
        var form = try MultipartFormData(boundary: "B")
        form.append("1", name: "a")
        let json = Note(isRead: true)
        switch method {
        case "POST":
            try await manager.post("p", body: .json(json))
            try await manager.post("p", body: .form(form))
            try await manager.post("p", body: .string("own"))
        case "PUT":
            try await manager.put("p", body: .json(json))
            try await manager.put("p", body: .form(form))
            try await manager.put("p", body: .string("own"))
        case "PATCH":
            try await manager.patch("p", body: .json(json))
            try await manager.patch("p", body: .form(form))
            try await manager.patch("p", body: .string("own"))
        default:
            try await manager.delete("p", body: .json(json))
            try await manager.delete("p", body: .form(form))
            try await manager.delete("p", body: .string("own"))
        }
        let received = transport.requests
        #expect(received.map(\.request.method.rawValue) == [method, method, method])
        #expect(
            received.map { String(decoding: $0.body, as: UTF8.self) } == [
                #"{"is_read":true}"#,
                "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B--\r\n", "own",
            ])
        #expect(
            received.map { $0.request.headers[.contentType] } == [
                "application/json", "multipart/form-data; boundary=B", nil,
            ])
    }

    private struct Note: Encodable {
        var isRead: Bool
    }

    @Test func `the type of a JSON body can be replaced`() async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport)
        try await manager.patch("p", body: .json([1]), headers: [.contentType: "application/merge-patch+json"])
        #expect(try transport.onlyRequest.request.headers[.contentType] == "application/merge-patch+json")
    }

    @Test func `a value that fails to encode itself is an error with its path`() async throws {
        let manager = SessionManager(on: MockTransport(.text("ok")))
        let error = try await sessionError { try await manager.post("p", body: .json(["a": [Double.nan]])) }
        guard case .serialization(.parameters(let failure)) = error, failure.path == "a[0]" else { throw error }
    }

    @Test func `two bodies for one request are an error`() async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport)
        var form = MultipartFormData()
        form.append("1", name: "a")
        let calls: [() async throws -> Void] = [
            { try await manager.post("p", parameters: ["a": 1], body: .json(1)) },
            { try await manager.post("p", parameters: ["a": 1], body: .string("x")) },
            { try await manager.post("p", parameters: ["a": 1], body: .form(form)) },
        ]
        for call in calls {
            let error = try await sessionError(call)
            guard case .serialization(.parameters(.bodyPresent)) = error else { throw error }
        }
        #expect(transport.requests.isEmpty)
    }

    // MARK: Targets

    @Test(arguments: [
        ("http://b.example/x?y=1#z", "http://b.example/x?y=1#z"), ("users/7", "http://a.example/v1/users/7"),
        ("/users", "http://a.example/users"), ("//b.example/", "http://b.example/"),
    ])
    func `a URL is a target, and a relative one is resolved`(text: String, expected: String) async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport)
        _ = try await manager.get(url(text))
        #expect(try transport.onlyRequest.request.url.absoluteString == expected)
    }

    @Test(arguments: ["ftp://a.example/", "http:///x", "mailto:a@b.example"])
    func `a URL without an HTTP scheme and a host is an error`(text: String) async throws {
        let manager = SessionManager(on: MockTransport(.text("ok")))
        let error = try await sessionError { _ = try await manager.get(url(text)) }
        guard case .serialization(.url) = error else { throw error }
    }

    @Test func `a program's own type can be a target`() async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport)
        _ = try await manager.get(Endpoint.user(7))
        #expect(try transport.onlyRequest.request.url.absoluteString == "http://a.example/v1/users/7")
    }

    private enum Endpoint: RequestTarget {
        case user(Int)

        func resolved(by resolver: URLResolver) throws(SerializationError) -> URL {
            switch self {
            case .user(let id): try resolver.resolve("users/\(id)")
            }
        }
    }

    // MARK: Options

    @Test func `the options of a call change the session's for this call only`() async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport) {
            $0.requestSerializer = SmallBodies()
            $0.timeouts.connect = .seconds(4)
        }
        _ = try await manager.get("p", options: { $0.timeouts.idle = .seconds(3) })
        _ = try await manager.get("p")
        let options = transport.requests.compactMap(\.request.options)
        #expect(options.map(\.timeouts.idle) == [.seconds(3), .seconds(60)])
        #expect(options.map(\.timeouts.connect) == [.seconds(4), .seconds(4)])
        #expect(options.map(\.maximumBodySize) == [5, 5])
    }

    /// A serializer of the program's own, which limits the responses to its requests.
    private struct SmallBodies: RequestSerializer {
        func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request {
            var request = request
            request.changeOptions { $0.maximumBodySize = 5 }
            return request
        }
    }

    @MainActor @Test func `a call from the main actor can use the actor's state for its options`() async throws {
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport)
        let settings = Settings()
        try await manager.post("p", body: .json(settings.note), options: { $0.maximumBodySize = settings.limit })
        #expect(try transport.onlyRequest.request.options?.maximumBodySize == 7)
    }

    @MainActor private final class Settings {
        let note = Note(isRead: false)
        var limit = 7
    }

    @Test func `a verb returns the value of its serializer`() async throws {
        struct User: Codable, Equatable {
            var name: String
        }
        let manager = SessionManager(on: MockTransport(.json(#"{"name": "Ada"}"#)))
        #expect(try await manager.get("u", as: .decodable(User.self)).value == User(name: "Ada"))
        #expect(try await manager.post("u", as: .json).value == .object(["name": .string("Ada")]))
        #expect(try await manager.put("u", as: .string).value == #"{"name": "Ada"}"#)
        #expect(try await manager.patch("u").value == Data(#"{"name": "Ada"}"#.utf8))
        #expect(try await manager.delete("u", as: .empty).statusCode == 200)
        #expect(try await manager.head("u").headers[.contentType] == "application/json")
    }

    @Test func `a rejected status is an error of every verb`() async throws {
        let manager = SessionManager(on: MockTransport(.json(#"{"reason": "gone"}"#, status: .gone)))
        let verbs: [() async throws -> Void] = [
            { _ = try await manager.get("x") }, { _ = try await manager.post("x") }, { _ = try await manager.put("x") },
            { _ = try await manager.patch("x") }, { _ = try await manager.delete("x") },
            { _ = try await manager.head("x") },
        ]
        for verb in verbs {
            #expect(try await sessionError(verb).statusCode == 410)
        }
    }
}
