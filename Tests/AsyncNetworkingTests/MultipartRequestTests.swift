// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// Requests with forms and compressed bodies, as received by a server.
@Suite struct MultipartRequestTests {
    @Test(arguments: ["POST", "PUT", "GET"])
    func `a form is received with its length and type`(method: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let manager = SessionManager(baseURL: server.url("/v1/"))
            var form = try MultipartFormData(boundary: "B")
            try form.append(["a": 1])
            try form.append(Data("x".utf8), name: "f", fileName: "f.txt")
            let request = try manager.request(
                #require(HTTPRequest.Method(method)), "up", body: .form(form), headers: [.accept: "a/b"])
            _ = try await manager.data(for: request)
            let received = try #require(server.activity.requests.first)
            let expected =
                "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B\r\n"
                + "Content-Disposition: form-data; name=\"f\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\nx\r\n--B--\r\n"
            #expect(received.text == expected)
            #expect(received.method == method)
            #expect(received.headers["Content-Length"] == "\(expected.utf8.count)")
            #expect(received.headers["Content-Type"] == "multipart/form-data; boundary=B")
            #expect(received.headers["Accept"] == "a/b")
        }
    }

    @Test func `a call cannot replace the Content-Type, which contains the boundary`() throws {
        let manager = SessionManager(baseURL: URL(string: "http://a.example/"))
        var form = MultipartFormData()
        form.append("x", name: "a")
        do {
            _ = try manager.request(.post, "p", body: .form(form), headers: [.contentType: "text/plain"])
            Issue.record("nothing was thrown")
        } catch SessionError.serialization(.multipart(.contentTypeReplaced)) {}
    }

    @Test func `a sequence that is not replayable fails a redirect that requires it`() async throws {
        try await StubServer.with { server in
            server.route("/old", .status(307, headers: ["Location": "/new"]))
            server.route("/new", .text("ok"))
            let manager = SessionManager(baseURL: server.url("/"))
            for isReplayable in [true, false] {
                var form = try MultipartFormData(boundary: "B")
                try form.append(
                    .stream(Once(), length: 1, isReplayable: isReplayable), name: "f", fileName: nil)
                let request = try manager.request(.post, "old", body: .form(form))
                do {
                    _ = try await manager.data(for: request)
                    #expect(isReplayable)
                } catch {
                    #expect(!isReplayable, "\(error)")
                }
            }
            #expect(server.activity.requests.filter { $0.path == "/new" }.map(\.text.utf8.count) == [59])
        }
    }

    @Test func `an error of a sequence is the cause of the failure`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let manager = SessionManager(baseURL: server.url("/"))
            var form = MultipartFormData()
            try form.append(.stream(Once(), length: 2), name: "f", fileName: nil)
            let request = try manager.request(.post, "p", body: .form(form))
            do {
                _ = try await manager.data(for: request)
                Issue.record("nothing was thrown")
            } catch let error as SessionError {
                guard case .requestBody(.source(let cause)) = error.reason else { throw error }
                guard case SerializationError.multipart(.partLength(part: "f", declared: 2, produced: 1)) = cause else {
                    Issue.record("another cause: \(cause)")
                    return
                }
            }
        }
    }

    @Test func `a compressed body is received in its content coding`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            var request = Request(method: .put, url: server.url("/"), body: .bytes(Data(count: 3_000_000)))
            request.compressBody()
            let manager = SessionManager()
            _ = try await manager.data(for: request)
            let received = try #require(server.activity.requests.first)
            #expect(received.headers["Content-Encoding"] == "gzip")
            #expect(received.headers["Transfer-Encoding"] == "chunked")
            #expect(received.body.starts(with: [0x1F, 0x8B]))
            #expect(received.body.count < 10_000)
        }
    }
}

/// A sequence of one byte that can be iterated only once.
private struct Once: AsyncSequence, Sendable {
    struct AsyncIterator: AsyncIteratorProtocol {
        var isOver = false

        mutating func next() async -> Data? {
            defer { isOver = true }
            return isOver ? nil : Data("x".utf8)
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator() }
}
