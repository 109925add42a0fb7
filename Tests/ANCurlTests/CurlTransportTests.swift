// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct CurlTransportTests {
    @Test func `a collected response arrives with its head`() async throws {
        try await StubServer.with { server in
            server.route("/", .json(#"{"a": 1}"#))
            let (head, body) = try await CurlTransport().collect(server.request())
            #expect(head.status.code == 200)
            #expect(head.mediaType == "application/json")
            #expect(head.url == server.url("/"))
            #expect(String(decoding: body, as: UTF8.self) == #"{"a": 1}"#)
        }
    }

    @Test func `a streamed response arrives whole`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(3_000_000))
            let received = try await CurlTransport().stream(server.request()) { _, body in
                var received = Data()
                for try await chunk in body { received.append(chunk) }
                return received
            }
            #expect(received == StubServer.generatedBytes(3_000_000))
        }
    }

    @Test(
        arguments: [
            ("/a/../b", "/b"), ("/a/%2e%2E/b", "/b"), ("/a/b/.%2e/?q=/../", "/a/?q=/../"),
            ("/.well-known/%2Ea", "/.well-known/%2Ea"),
        ] as [(target: String, sent: String)])
    func `dot segments are neither sent nor signed, whether their dots are encoded or not`(
        target: String, sent: String
    ) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("") }
            let transport = try CurlTransport()
            func send(_ target: String, by signature: AWSSignature? = nil) async throws -> RecordedRequest {
                let url = try #require(URL(string: "http://127.0.0.1:\(server.endpoint.port)\(target)"))
                var request = Request(method: .get, url: url)
                request.headers[try #require(HTTPField.Name("x-amz-date"))] = "20150830T123600Z"
                request.transportAuthentication = signature.map(TransportAuthentication.init)
                _ = try await transport.collect(request)
                return try #require(server.activity.requests.last)
            }
            #expect(try await send(target).target == sent)
            let signature = AWSSignature(accessKeyID: "id", secretAccessKey: "key", region: "r", service: "s3")
            let (signed, expected) = try await (send(target, by: signature), send(sent, by: signature))
            #expect(signed.target == expected.target)
            #expect(signed.headers["Authorization"] == expected.headers["Authorization"])
        }
    }

    static let methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "x-own"]

    @Test func `a body is sent by any method`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("done") }
            let transport = try CurlTransport()
            for name in Self.methods {
                let method = try #require(HTTPRequest.Method(name))
                #expect(try await transport.text(server.request(method: method, body: .string("hello"))) == "done")
            }
            let requests = try await server.requests(count: Self.methods.count)
            #expect(requests.map(\.method) == Self.methods)
            #expect(requests.map { $0.headers.values("Content-Length") } == Self.methods.map { _ in ["5"] })
            #expect(requests.allSatisfy { $0.text == "hello" && $0.connection == 0 })
        }
    }

    @Test func `without a body any method is sent, and only those defined to have one say that its length is 0`()
        async throws
    {
        try await StubServer.with { server in
            server.fallback { _ in .text("done") }
            let transport = try CurlTransport()
            for name in Self.methods {
                let method = try #require(HTTPRequest.Method(name))
                #expect(try await transport.text(server.request(method: method)) == "done")
            }
            let requests = try await server.requests(count: Self.methods.count)
            #expect(requests.map(\.method) == Self.methods)
            for request in requests {
                let expected = ["POST", "PUT", "PATCH"].contains(request.method) ? ["0"] : []
                #expect(request.headers.values("Content-Length") == expected)
                #expect(request.headers["Transfer-Encoding"] == nil)
                #expect(request.headers["Expect"] == nil)
                #expect(request.bodyLength == 0)
            }
        }
    }

    @Test func `a response to HEAD has no body, whatever its length says`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .generated(1000) }
            let transport = try CurlTransport()
            let (head, body) = try await transport.collect(server.request(method: .head))
            #expect(head.headers[.contentLength] == "1000")
            #expect(body.isEmpty)
            _ = try await transport.collect(server.request())
            let requests = try await server.requests(count: 2)
            #expect(requests.map(\.connection) == [0, 0])
        }
    }

    @Test(arguments: [RequestBody.string("hello"), .stream(Generated(count: 5), isReplayable: true)])
    func `HEAD with a body neither hangs nor loses the body`(body: RequestBody) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .generated(1000) }
            let transport = try CurlTransport()
            let (head, received) = try await transport.collect(server.request(method: .head, body: body))
            #expect(head.headers[.contentLength] == "1000")
            #expect(received.isEmpty)
            let request = try await server.requests(count: 1)[0]
            #expect(request.method == "HEAD")
            #expect(request.bodyLength == 5)
            #expect(try await transport.collect(server.request()).body.count == 1000)
        }
    }

    @Test func `the content that a server sends after the head of a HEAD with a body is not received`() async throws {
        try await StubServer.with { server in
            let head = Data("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n".utf8)
            server.fallback { _ in Script([.send(head), .generate(100_000)]) }
            let transport = try CurlTransport()
            for _ in 0..<20 {
                let (head, body) = try await transport.collect(server.request(method: .head, body: .string("x")))
                #expect(head.headers[.contentLength] == "100000")
                #expect(body.isEmpty)
            }
        }
    }

    @Test(arguments: [204, 304])
    func `a status without content ends at its head, whatever its length says`(status: Int) async throws {
        try await StubServer.with { server in
            server.enqueue(.reply(status: status, headers: ["Content-Length": "1000"], framing: .asGiven))
            server.fallback { _ in .text("next") }
            let transport = try CurlTransport()
            let (head, body) = try await transport.collect(server.request())
            #expect(head.status.code == status)
            #expect(head.headers[.contentLength] == "1000")
            #expect(body.isEmpty)
            #expect(try await transport.text(server.request()) == "next")
            #expect(try await server.requests(count: 2).map(\.connection) == [0, 0])
        }
    }

    @Test(arguments: [200, 206, 226, 299, 400, 404, 499, 500, 599, 600, 999])
    func `any final status is a response`(status: Int) async throws {
        try await StubServer.with { server in
            server.enqueue(.reply(status: status, reason: "So It Is", body: .string("body")))
            let (head, body) = try await CurlTransport().collect(server.request())
            #expect(head.status == HTTPResponse.Status(code: status, reasonPhrase: "So It Is"))
            #expect(body == Data("body".utf8))
        }
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `a redirect is a response like any other`(status: Int) async throws {
        try await StubServer.with { server in
            server.route("/", .redirect(status, to: "/elsewhere"))
            let (head, _) = try await CurlTransport().collect(server.request())
            #expect(head.status.code == status)
            #expect(head.headers[.location] == "/elsewhere")
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test func `a refused authentication is a response like any other`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .status(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""]) }
            let (head, _) = try await CurlTransport().collect(server.request())
            #expect(head.status.code == 401)
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test func `a status line needs no reason phrase`() async throws {
        try await StubServer.with { server in
            server.enqueue(.raw("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok"))
            let (head, body) = try await CurlTransport().collect(server.request())
            #expect(head.status == HTTPResponse.Status(code: 200, reasonPhrase: ""))
            #expect(body == Data("ok".utf8))
        }
    }

    @Test func `a response without a length ends with its connection`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .reply(body: .generated(100_000), framing: .untilClose) }
            let (head, body) = try await CurlTransport().collect(server.request())
            #expect(head.headers[.contentLength] == nil)
            #expect(body == StubServer.generatedBytes(100_000))
        }
    }

    @Test func `HTTP 1.0 is understood, and does not spoil the next request`() async throws {
        try await StubServer.with { server in
            server.enqueue(.raw("HTTP/1.0 200 OK\r\n\r\nold"), .echo)
            let transport = try CurlTransport()
            let (head, body) = try await transport.collect(server.request())
            #expect(head.version == .http1_0)
            #expect(body == Data("old".utf8))
            _ = try await transport.collect(
                server.request(method: .post, body: .stream(Generated(count: 10), isReplayable: true)))
            let request = try await server.requests(count: 2)[1]
            #expect(request.version == "HTTP/1.1")
            #expect(request.headers["Transfer-Encoding"] == "chunked")
        }
    }

    @Test func `a fragment and user information do not reach the server's target`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("") }
            _ = try await CurlTransport().collect(Request(url: server.url("/a%20b?q=1#frag")))
            #expect(try await server.requests(count: 1)[0].target == "/a%20b?q=1")
        }
    }
}
