// SPDX-License-Identifier: MIT

import AsyncNetworkingTesting
import FoundationEssentials
import Testing

@Suite struct StubServerTests {
    @Test func `a route responds with its scripts in turn and repeats the last one`() async throws {
        try await StubServer.with { server in
            server.route("/x", .status(503), .json("{}"))
            let client = try RawClient(server)
            try client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
            let unavailable = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
            #expect(try await client.receive(upTo: "\r\n\r\n") == unavailable)
            let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
            for _ in 1...2 {
                try client.send("GET /x?q=1 HTTP/1.1\r\n\r\n")
                #expect(try await client.receive(upTo: "{}") == json)
            }
            let requests = try await server.requests(count: 3)
            #expect(requests.map(\.target) == ["/x", "/x?q=1", "/x?q=1"])
            #expect(requests.map(\.positionOnConnection) == [0, 1, 2])
            #expect(server.activity.connectionsAccepted == 1)
        }
    }

    @Test func `a request is recorded as it was sent`() async throws {
        try await StubServer.with { server in
            server.route("/a", method: "PUT", .status(204))
            let client = try RawClient(server)
            try client.send(
                "PUT /a?b=c HTTP/1.1\r\nX-One: 1\r\nx-one:  2 \r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nSum: 5\r\n\r\n")
            #expect(try await client.receive(upTo: "\r\n\r\n") == "HTTP/1.1 204 No Content\r\n\r\n")
            let request = try #require(try await server.requests(count: 1).first)
            #expect(request.method == "PUT")
            #expect(request.path == "/a")
            #expect(request.query == "b=c")
            #expect(request.headers == ["X-One": "1", "x-one": "2", "Transfer-Encoding": "chunked"])
            #expect(request.text == "abcde")
            #expect(request.bodyLength == 5)
            #expect(request.trailers == ["Sum": "5"])
            #expect(request.isComplete)
            // printf abcde | sha256sum
            #expect(request.bodySHA256 == "36bbe50ed96841d10443bcb670d6554f0a34b761be67ec9c4a8ad2c0c44ca42c")
        }
    }

    @Test(arguments: [0, 1, 17, 40, 100, 70_000])
    func `a reset occurs after exactly the given number of bytes`(count: Int64) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .resetAfter(bytes: count) }
            let client = try RawClient(server)
            try client.send("GET / HTTP/1.1\r\n\r\n")
            let (bytes, error) = try await client.receiveToEnd()
            #expect(bytes.count == count)
            #expect(error == .connectionReset)
        }
    }

    @Test func `a truncated response declares more bytes than it sends`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .truncated(declared: 100, sent: 10) }
            let client = try RawClient(server)
            try client.send("GET / HTTP/1.1\r\n\r\n")
            let (bytes, error) = try await client.receiveToEnd()
            #expect(bytes == Array("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n".utf8) + (0..<10))
            #expect(error == nil)
        }
    }

    @Test func `a hanging script ends when the client closes, and the request is marked as abandoned`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .hang }
            do {
                let client = try RawClient(server)
                try client.send("GET / HTTP/1.1\r\n\r\n")
                try await server.requests(count: 1)
                #expect(server.activity.openConnections == 1)
            }
            let activity = try await server.activity { $0.openConnections == 0 }
            #expect(activity.requests.map(\.isAbandoned) == [true])
        }
    }

    @Test func `a small receive buffer limits the bytes that a client can send`() async throws {
        var options = StubServer.Options()
        options.receiveBufferSize = 4096
        try await StubServer.with(options) { server in
            server.route("/", Script([.hang], readsBodyFirst: false))
            let client = try RawClient(server)
            try client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000\r\n\r\n")
            try await server.requests(count: 1)
            #expect(client.fillBuffers() < 32768)
        }
    }

    @Test func `stopping ends hanging scripts and closes all connections`() async throws {
        let server = try StubServer()
        server.fallback { _ in .hang }
        let clients = try (0..<20).map { _ in try RawClient(server) }
        for client in clients { try client.send("GET / HTTP/1.1\r\n\r\n") }
        try await server.requests(count: 20)
        await server.stop()
        #expect(server.activity.openConnections == 0)
        #expect(server.activity.requests.allSatisfy { !$0.isAbandoned })
        for client in clients { #expect(try await client.receiveToEnd().bytes.isEmpty) }
        await server.stop()
    }

    @Test func `URLs keep path and query and can have another host`() async throws {
        try await StubServer.with { server in
            let port = server.endpoint.port
            #expect(server.url("/a?b=c").absoluteString == "http://127.0.0.1:\(port)/a?b=c")
            #expect(server.url("/a?b=c", host: "localhost").absoluteString == "http://localhost:\(port)/a?b=c")
        }
        try await StubServer.with(.init(.ipv6)) { server in
            #expect(server.url().absoluteString == "http://[::1]:\(server.endpoint.port)/")
        }
    }

    @Test func `a cancelled wait throws CancellationError`() async throws {
        try await StubServer.with { server in
            let task = Task { try await server.requests(count: 1) }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }
}
