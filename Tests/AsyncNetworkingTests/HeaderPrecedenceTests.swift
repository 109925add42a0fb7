// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// The precedence of fields with the same name: the call's, the serializer's, the session's, the default ones.
@Suite struct HeaderPrecedenceTests {
    private let transport = MockTransport(.text("ok"))

    private func sent() throws -> HTTPFields { try transport.onlyRequest.request.headers }

    @Test func `a call's fields replace those of the serializer, the session and the defaults`() async throws {
        let manager = SessionManager(on: transport) { configuration in
            configuration.sendsDefaultHeaders = true
            configuration.headers = [.accept: "session", .userAgent: "session"]
            configuration.requestSerializer = HTTPRequestSerializer(headers: [
                .accept: "serializer", .from: "serializer",
            ])
        }
        _ = try await manager.post(
            "p", parameters: ["a": 1], headers: [.accept: "call", .contentType: "text/own", .userAgent: "call"])
        let headers = try sent()
        #expect(headers[values: .accept] == ["call"])
        #expect(headers[values: .contentType] == ["text/own"])
        #expect(headers[values: .userAgent] == ["call"])
        #expect(headers[values: .from] == ["serializer"])
    }

    @Test func `the serializer's fields precede the session's, which precede the defaults`() async throws {
        let manager = SessionManager(on: transport) { configuration in
            configuration.sendsDefaultHeaders = true
            configuration.headers = [.accept: "session", .from: "session", .userAgent: "session"]
            configuration.requestSerializer = HTTPRequestSerializer(headers: [.accept: "serializer"])
        }
        _ = try await manager.get("p")
        let headers = try sent()
        #expect(headers[values: .accept] == ["serializer"])
        #expect(headers[values: .from] == ["session"])
        #expect(headers[values: .userAgent] == ["session"])
    }

    @Test func `the serializer's Content-Type precedes the generated one, which precedes the session's`()
        async throws
    {
        let manager = SessionManager(on: MockTransport(.text("ok"))) { configuration in
            configuration.headers = [.contentType: "session"]
        }
        let generated = try manager.request(.post, "p", parameters: ["a": 1])
        #expect(generated.headers[values: .contentType] == ["application/x-www-form-urlencoded"])

        let own = SessionManager(on: transport) { configuration in
            configuration.requestSerializer = HTTPRequestSerializer(headers: [.contentType: "serializer"])
        }
        _ = try await own.post("p", parameters: ["a": 1])
        #expect(try sent()[values: .contentType] == ["serializer"])
        #expect(try own.request(.post, "p", body: .json([1])).headers[values: .contentType] == ["serializer"])
        #expect(try manager.request(.post, "p", body: .json([1])).headers[values: .contentType] == ["application/json"])
        // The type of a form names its boundary.
        var form = try MultipartFormData(boundary: "B")
        form.append("1", name: "a")
        let type = try own.request(.post, "p", body: .form(form)).headers[values: .contentType]
        #expect(type == ["multipart/form-data; boundary=B"])
    }

    @Test func `a request's fields precede the session's, regardless of case, and keep their position`() async throws {
        let manager = SessionManager(on: transport) { $0.headers = [.accept: "session", .from: "session"] }
        let lowerCase = try #require(HTTPField.Name("accept"))
        _ = try await manager.data(for: Request(url: url("http://a.example/"), headers: [lowerCase: "request"]))
        #expect(try sent().lines == ["accept: request", "From: session"])
    }

    @Test(arguments: [[:], [.accept: "x"]] as [HTTPFields])
    func `repeated fields of the session are all sent, in order`(own: HTTPFields) async throws {
        let name = try #require(HTTPField.Name("X-Tag"))
        let manager = SessionManager(on: transport) { configuration in
            configuration.headers = [name: "one", .from: "me", name: "two"]
        }
        _ = try await manager.data(for: Request(url: url("http://a.example/"), headers: own))
        #expect(try sent().lines == own.lines + ["X-Tag: one", "From: me", "X-Tag: two"])
    }

    @Test func `repeated fields of a call are all sent`() async throws {
        let name = try #require(HTTPField.Name("X-Tag"))
        let manager = SessionManager(on: transport) { $0.headers = [name: "session"] }
        _ = try await manager.get("p", headers: [name: "one", name: "two"])
        #expect(try sent()[values: name] == ["one", "two"])
    }

    @Test func `uploads and downloads have the serializer's and the session's fields too`() async throws {
        let manager = SessionManager(on: transport) { configuration in
            configuration.headers = [.from: "session"]
            configuration.requestSerializer = HTTPRequestSerializer(headers: [.authorization: "serializer"])
        }
        let directory = try TemporaryDirectory()
        _ = try await manager.upload("up", body: .string("x"), headers: [.from: "call"]).value
        _ = try await manager.download("down", to: "\(directory.path)/file").value
        let lines = transport.requests.map { $0.request.headers.lines.sorted() }
        #expect(
            lines == [["Authorization: serializer", "From: call"], ["Authorization: serializer", "From: session"]])
    }

    @Test func `the defaults are User-Agent and, if a language is known, Accept-Language`() async throws {
        let manager = SessionManager(on: transport) { $0.sendsDefaultHeaders = true }
        _ = try await manager.get("p")
        let headers = try sent()
        let expected = DefaultHeaders(process: .current(), libraryVersion: SessionManager.libraryVersion)
        #expect(headers[values: .userAgent] == [expected.userAgent])
        #expect(headers[.acceptLanguage] == expected.acceptLanguage)
        #expect(expected.userAgent.contains("AsyncNetworking/"))
        #expect(headers.allSatisfy { $0.name == .userAgent || $0.name == .acceptLanguage })
    }

    @Test func `if the defaults are disabled, no field is added`() async throws {
        let manager = SessionManager(on: transport)
        _ = try await manager.get("p")
        #expect(try sent().isEmpty)
    }

    @Test func `a request without options inherits the session's, and one with options keeps them`() async throws {
        let manager = SessionManager(on: transport) { $0.timeouts.total = .seconds(7) }
        var request = try Request(url: url("http://a.example/"))
        _ = try await manager.data(for: request)
        request.options = TransferOptions().with { $0.timeouts.total = .seconds(3) }
        _ = try await manager.data(for: request)
        #expect(transport.requests.map(\.request.options?.timeouts.total) == [.seconds(7), .seconds(3)])
    }
}
