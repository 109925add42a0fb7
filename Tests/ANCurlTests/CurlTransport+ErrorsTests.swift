// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct ErrorsTests {
    @Test func `a closed port refuses`() async throws {
        let port = try DeafPort(.closed)
        let url = try #require(URL(string: "http://127.0.0.1:\(port.number)/"))
        let error = try await CurlTransport().failure(Request(url: url))
        guard case .cannotConnect(.refused) = error.reason else { throw error }
        let context = error.context
        #expect(context.host == "127.0.0.1")
        #expect(context.address == SocketAddress(host: "127.0.0.1", port: port.number))
        #expect(context.errno == ECONNREFUSED)
        #expect(context.curlCode == 7)
        #expect(context.url == url.absoluteString)
    }

    @Test func `a name without an address cannot be resolved`() async throws {
        let url = try #require(URL(string: "http://nonexistent.invalid/"))
        let error = try await CurlTransport().failure(Request(url: url))
        guard error.reason == .cannotResolve, error.context.host == "nonexistent.invalid" else { throw error }
        #expect(error.context.curlCode == 6)
    }

    @Test(arguments: ["ftp://127.0.0.1/", "file:///etc/passwd", "HTTPX://127.0.0.1/", "//127.0.0.1/", "relative"])
    func `other schemes are refused`(text: String) async throws {
        let url = try #require(URL(string: text))
        let error = try await CurlTransport().failure(Request(url: url))
        guard case .unsupportedScheme = error.reason else { throw error }
    }

    @Test(arguments: ["http:///path", "http:", "https://:443/"])
    func `a URL without a host is refused`(text: String) async throws {
        let url = try #require(URL(string: text))
        let error = try await CurlTransport().failure(Request(url: url))
        guard case .invalidURL = error.reason else { throw error }
    }

    @Test func `the scheme may be written in capitals`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let url = try #require(URL(string: "HTTP://127.0.0.1:\(server.endpoint.port)/"))
            #expect(try await CurlTransport().text(Request(url: url)) == "ok")
        }
    }

    @Test(arguments: [
        ("SSH-2.0-OpenSSH_9.2\r\n", TransportError.ResponseFailure.notHTTP),
        ("\r\n\r\n", .notHTTP),
        ("Http/1.1 200 OK\r\n\r\n", .notHTTP),
        ("ICY 200 OK\r\n\r\n", .notHTTP),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", .contentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", .contentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n", .contentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n", .contentLength),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", .contentLength),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", .framing),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", .framing),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nbytes", .noFinalResponse),
        ("HTTP/1.1 103 Early Hints\r\n\r\n", .noFinalResponse),
    ])
    func `what is not HTTP is an invalid response`(bytes: String, problem: TransportError.ResponseFailure) async throws
    {
        try await StubServer.with { server in
            server.fallback { _ in .raw(bytes) }
            let transport = try CurlTransport()
            for delivery: BodyDelivery in [.collected(upTo: 1000), .streamed] {
                let error = try await transport.failure(server.request(), delivery: delivery)
                guard error.reason == .invalidResponse(problem) else { throw error }
                let context = error.context
                #expect(context.address?.port == server.endpoint.port)
            }
        }
    }

    @Test(arguments: ["HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 099 Low", "HTTP/1.1 abc", "HTTP/1.1"])
    func `a status line that cannot be understood is an invalid response`(line: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .raw(line + "\r\nContent-Length: 0\r\n\r\n") }
            let error = try await CurlTransport().failure(server.request())
            switch error.reason {
            case .invalidResponse(.statusLine), .invalidResponse(.notHTTP): break
            default: throw error
            }
        }
    }

    @Test(arguments: ["no colon", ": no name", "bad name: x", "tab\t: x"])
    func `a header line that cannot be understood is an invalid response`(line: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .raw("HTTP/1.1 200 OK\r\n\(line)\r\nContent-Length: 0\r\n\r\n") }
            let error = try await CurlTransport().failure(server.request())
            guard case .invalidResponse(.headerLine) = error.reason else { throw error }
        }
    }

    private static func head(of lines: Int, _ line: String) -> Script {
        .raw("HTTP/1.1 200 OK\r\n" + String(repeating: line + "\r\n", count: lines) + "Content-Length: 0\r\n\r\n")
    }

    @Test(arguments: [
        (70_000, "a: b"), (70_000, "a:"), (1, "a: " + String(repeating: "b", count: 400_000)),
        (1, "a: " + String(repeating: "b", count: 150_000)), (40, "a: " + String(repeating: "b", count: 8000)),
    ])
    func `heads over the limit are refused`(lines: Int, line: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in Self.head(of: lines, line) }
            let transport = try CurlTransport()
            let error = try await transport.failure(server.request())
            guard case .responseTooLarge(.head(limit: 307_200)) = error.reason else { throw error }
            let wider = server.request(options: .with { $0.maximumHeadSize = 1 << 24 })
            let other = try await transport.failure(wider)
            guard case .responseTooLarge(.head) = other.reason else { throw other }
        }
    }

    @Test func `a head under the limit is taken, and the limit can be lower`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in Self.head(of: 3000, "a: b") }
            let transport = try CurlTransport()
            #expect(try await transport.collect(server.request()).head.headers.count == 3001)
            let error = try await transport.failure(server.request(options: .with { $0.maximumHeadSize = 1000 }))
            guard case .responseTooLarge(.head(limit: 1000)) = error.reason else { throw error }
        }
    }

    @Test func `interim heads without end are refused`() async throws {
        try await StubServer.with { server in
            let interim = String(repeating: "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", count: 20_000)
            server.fallback { _ in .raw(interim) }
            let error = try await CurlTransport().failure(server.request())
            guard case .responseTooLarge(.head) = error.reason else { throw error }
        }
    }

    @Test(arguments: [BodyDelivery.collected(upTo: 1 << 20), .streamed])
    func `a truncated body is a lost connection`(delivery: BodyDelivery) async throws {
        try await StubServer.with { server in
            server.enqueue(
                .truncated(declared: 1000, sent: 400),
                .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"),
                .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc"))
            let transport = try CurlTransport()
            let expected: [TransportError.ConnectionLossPhase] = [
                .inBody(received: 400, expected: 1000), .inBody(received: 5, expected: nil),
                .inBody(received: 3, expected: nil),
            ]
            for loss in expected {
                let error = try await transport.failure(server.request(), delivery: delivery)
                guard case .connectionLost(loss) = error.reason else { throw error }
            }
        }
    }

    @Test(arguments: [
        (0, TransportError.ConnectionLossPhase.beforeResponse), (30, .inHead),
        (44, .inBody(received: 0, expected: 1_000_000)),
        (1044, .inBody(received: 1000, expected: 1_000_000)),
    ])
    func `a reset tells how far the response had come`(bytes: Int, loss: TransportError.ConnectionLossPhase)
        async throws
    {
        try await StubServer.with { server in
            server.fallback { _ in .resetAfter(bytes: Int64(bytes)) }
            let error = try await CurlTransport().failure(server.request())
            guard case .connectionLost(loss) = error.reason else { throw error }
            #expect(error.context.errno == ECONNRESET)
        }
    }

    @Test func `a server that closes in the head leaves a lost connection`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .raw("HTTP/1.1 200 OK\r\nContent-Le") }
            let error = try await CurlTransport().failure(server.request())
            guard case .connectionLost(.inHead) = error.reason else { throw error }
        }
    }

    @Test func `a server that accepts and closes leaves a lost connection, once`() async throws {
        try await StubServer.with { server in
            server.greet(.end(.close), .end(.reset))
            server.fallback { _ in .close }
            let transport = try CurlTransport()
            for attempt in 1...3 {
                let error = try await transport.failure(server.request())
                switch error.reason {
                case .connectionLost(.beforeResponse), .connectionLost(.whileSending):
                    #expect(error.context.sendCount == 1)
                case .cannotConnect(.other):
                    // The reset may arrive before this side has noticed that it is connected.
                    #expect(error.context.errno == ECONNRESET)
                default: throw error
                }
                try await server.activity { $0.connectionsAccepted == attempt }
            }
        }
    }

    @Test func `names and values that would break the head are refused`() {
        let bad = [
            ("X", "a\r\nB: c"), ("X", "a\nb"), ("X", "a\0b"), ("X Y", "a"), ("", "a"), ("X:", "a"), ("X\r\nY", "a"),
        ]
        for pair in bad {
            #expect(throws: TransportError.self) { try HTTPFields(validating: [pair]) }
        }
    }

    @Test func `a value that the library replaced cannot split the head`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("") }
            let own = try #require(HTTPField.Name("X-Own"))
            var headers = HTTPFields()
            headers.append(HTTPField(name: own, value: "a\r\nInjected: yes"))
            _ = try await CurlTransport().collect(server.request(headers: headers))
            let received = try await server.requests(count: 1)[0].headers
            #expect(received["Injected"] == nil)
            #expect(received["X-Own"] == "a  Injected: yes")
        }
    }

    @Test func `what the linked library lacks is named`() async throws {
        let library = try CurlLibrary.current.get()
        guard !library.hasHTTP3 else { return }
        let url = try #require(URL(string: "https://localhost/"))
        for policy in [HTTPVersionPolicy.http3, .http3Only] {
            let error = try await CurlTransport().failure(Request(url: url, options: .with { $0.httpVersion = policy }))
            guard error.reason == .unsupported(.http3) else { throw error }
        }
    }

    @Test func `an error does not carry over to the next exchange`() async throws {
        let port = try DeafPort(.closed)
        let refused = Request(url: try #require(URL(string: "http://127.0.0.1:\(port.number)/")))
        try await StubServer.with { server in
            server.enqueue(.truncated(declared: 10, sent: 5), .text("ok"))
            let transport = try CurlTransport()
            _ = try await transport.failure(refused)
            let error = try await transport.failure(server.request())
            guard case .connectionLost = error.reason else { throw error }
            let context = error.context
            #expect(context.errno == nil)
            #expect(try await transport.text(server.request()) == "ok")
        }
    }
}
