// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

@Suite struct StubServerScriptTests {
    /// Returns everything that the server sends in response to a text, and the error that ends the connection.
    private func exchange(
        _ script: Script, _ text: String = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
    ) async throws -> (text: String, error: RawClient.Failure?) {
        try await StubServer.with { server in
            server.fallback { _ in script }
            let client = try RawClient(server)
            try client.send(text)
            let (bytes, error) = try await client.receiveToEnd()
            return (String(decoding: bytes, as: UTF8.self), error)
        }
    }

    @Test func `replies are framed as configured`() async throws {
        let cases: [(Script, String)] = [
            (.reply(body: .string("ab")), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"),
            (.reply(status: 299, reason: "", body: .string("")), "HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n"),
            (.reply(reason: "Fine thanks"), "HTTP/1.1 200 Fine thanks\r\nContent-Length: 0\r\n\r\n"),
            (
                .reply(body: .string("abcde"), framing: .chunked(size: 2), trailers: ["T": "1", "t": "2"]),
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n1\r\ne\r\n0\r\nT: 1\r\nt: 2\r\n\r\n"
            ),
            (.reply(framing: .chunked), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            (.reply(body: .string("ab"), framing: .untilClose), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nab"),
            (
                .reply(
                    headers: ["Content-Length": "1", "Content-Length": "2"], body: .string("ab"), framing: .asGiven),
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"
            ),
            (.status(204), "HTTP/1.1 204 No Content\r\n\r\n"),
            (.redirect(303, to: "/y"), "HTTP/1.1 303 See Other\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n"),
            (.raw("nonsense\n"), "nonsense\n"),
            (
                Script([.informational(103, headers: ["Link": "<x>"]), .reply(Reply())]),
                "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
            ),
            (
                .drip(bytes: 2, every: .milliseconds(1), body: .string("abcde")),
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde"
            ),
            (.close, ""),
        ]
        for (script, expected) in cases {
            let (text, error) = try await exchange(script)
            #expect(text == expected)
            #expect(error == nil)
        }
    }

    @Test func `a pace delays the body`() async throws {
        let clock = ContinuousClock()
        let time = try await clock.measure {
            _ = try await exchange(.drip(bytes: 1, every: .milliseconds(20), body: .string("abc")))
        }
        #expect(time >= .milliseconds(40))
    }

    @Test func `a response to HEAD has no body`() async throws {
        let (text, _) = try await exchange(.text("abc"), "HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n")
        #expect(text.hasSuffix("Content-Length: 3\r\n\r\n"))
        let declared = Reply(framing: .contentLength(declared: 7))
        let (large, _) = try await exchange(.reply(declared), "HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n")
        #expect(large.hasSuffix("Content-Length: 7\r\n\r\n"))
    }

    @Test func `an echo describes the received request`() async throws {
        let (text, _) = try await exchange(
            .echo, "PUT /a?b HTTP/1.1\r\nA: 1\r\nConnection: close\r\nContent-Length: 2\r\n\r\nxy")
        let body = try #require(text.firstRange(of: "\r\n\r\n").map { Data(text[$0.upperBound...].utf8) })
        let echo = try JSONDecoder().decode(RequestEcho.self, from: body)
        #expect(echo.method == "PUT")
        #expect(echo.target == "/a?b")
        #expect(echo.headers == [["A", "1"], ["Connection", "close"], ["Content-Length", "2"]])
        #expect(echo.body == "xy")
    }

    @Test func `a malformed request is answered with status 400`() async throws {
        let (text, error) = try await exchange(.status(200), "nonsense\r\nand more")
        #expect(text.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
        #expect(error == nil)
    }

    @Test func `an error of a handler causes status 500`() async throws {
        struct Mishap: Error {}
        try await StubServer.with { server in
            server.route("/") { _ in throw Mishap() }
            let client = try RawClient(server)
            try client.send("GET / HTTP/1.1\r\n\r\n")
            #expect(try await client.receive(upTo: "\n\r\n").hasPrefix("HTTP/1.1 500 "))
        }
    }

    // MARK: Request bodies

    private static let expectant = "PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"

    @Test func `an expectation is met at once`() async throws {
        try await StubServer.with { server in
            server.route("/", .status(204))
            let client = try RawClient(server)
            try client.send(Self.expectant)
            #expect(try await client.receive(upTo: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
            try client.send("abc")
            #expect(try await client.receive(upTo: "\r\n\r\n") == "HTTP/1.1 204 No Content\r\n\r\n")
            #expect(try await server.requests(count: 1).first?.text == "abc")
        }
    }

    @Test func `a body that arrives with the head needs no status 100`() async throws {
        try await StubServer.with { server in
            server.route("/", .status(204).expecting(.withhold))
            let client = try RawClient(server)
            try client.send(Self.expectant + "abc")
            #expect(try await client.receive(upTo: "\r\n\r\n") == "HTTP/1.1 204 No Content\r\n\r\n")
        }
    }

    @Test func `a body can be rejected unread`() async throws {
        try await StubServer.with { server in
            server.route("/", .refusingBody(413))
            let client = try RawClient(server)
            try client.send(Self.expectant)
            #expect(try await client.receive(upTo: "\r\n\r\n").hasPrefix("HTTP/1.1 413 Content Too Large\r\n"))
            client.finishSending()
            #expect(try await client.receiveToEnd().error == nil)
            let request = try #require(try await server.requests(count: 1).first)
            #expect(!request.isComplete)
            #expect(request.bodyLength == 0)
        }
    }

    @Test func `a response can precede the body on a persistent connection`() async throws {
        try await StubServer.with { server in
            server.enqueue(Script([.reply(Reply(status: 202))], readsBodyFirst: false), .status(204))
            let client = try RawClient(server)
            try client.send("PUT /1 HTTP/1.1\r\nContent-Length: 3\r\n\r\na")
            #expect(try await client.receive(upTo: "\r\n\r\n").hasPrefix("HTTP/1.1 202 Accepted\r\n"))
            try client.send("bcGET /2 HTTP/1.1\r\n\r\n")
            #expect(try await client.receive(upTo: "\r\n\r\n") == "HTTP/1.1 204 No Content\r\n\r\n")
            let requests = try await server.requests(count: 2)
            #expect(requests.map(\.text) == ["abc", ""])
            #expect(requests.map(\.connection) == [0, 0])
        }
    }

    @Test func `a large body is counted and hashed but recorded only partly`() async throws {
        var options = StubServer.Options()
        options.maximumRecordedBody = 100
        try await StubServer.with(options) { server in
            server.route("/", .status(204))
            let client = try RawClient(server)
            try client.send("PUT / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n")
            try client.send([UInt8](repeating: 0x61, count: 1_000_000))
            let request = try #require(try await server.requests(count: 1).first)
            #expect(request.body == Data(repeating: 0x61, count: 100))
            #expect(request.bodyLength == 1_000_000)
            // head -c 1000000 /dev/zero | tr '\0' a | sha256sum
            #expect(request.bodySHA256 == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
        }
    }

    @Test func `a connection can be reset during an upload`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.readBody(upTo: 10), .end(.reset)], readsBodyFirst: false))
            let client = try RawClient(server)
            try client.send("PUT / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n0123456789")
            #expect(try await client.receiveToEnd().error == .connectionReset)
            #expect(try await server.requests(count: 1).first?.bodyLength == 10)
        }
    }

    @Test func `a gate blocks a script until it is opened`() async throws {
        let gate = try ScriptGate()
        try await StubServer.with { server in
            server.route("/", Script([.informational(103), .wait(gate), .reply(Reply(status: 204))]))
            let client = try RawClient(server)
            try client.send("GET / HTTP/1.1\r\n\r\n")
            #expect(try await client.receive(upTo: "\r\n\r\n") == "HTTP/1.1 103 Early Hints\r\n\r\n")
            #expect(!client.hasBytes)
            gate.open()
            #expect(try await client.receive(upTo: "\r\n\r\n") == "HTTP/1.1 204 No Content\r\n\r\n")
        }
    }

    @Test(arguments: [
        ("bytes=2-", "cde"), ("bytes=-5-", "abcde"), ("bytes=-", "abcde"), ("bytes=99999999999999999999-", ""),
        ("bytes=5-", ""), ("bytes=1-2", "bc"), ("bytes=3-9", "de"), ("bytes=2-1", "abcde"), ("bytes=+2-", "abcde"),
        ("bytes=1-2,4-", "abcde"),
    ])
    func `a served file responds to any range`(range: String, body: String) async throws {
        let file = ServedFile(Data("abcde".utf8))
        try await StubServer.with { server in
            server.route("/") { file.script(for: $0) }
            let client = try RawClient(server)
            try client.send("GET / HTTP/1.1\r\nRange: \(range)\r\nConnection: close\r\n\r\n")
            let (bytes, _) = try await client.receiveToEnd()
            #expect(String(decoding: bytes, as: UTF8.self).hasSuffix("\r\n\r\n" + body))
        }
    }

    @Test(.timeLimit(.minutes(5))) func `an empty file is sent without an interruption`() async throws {
        let file = ServedFile(Data(), interruption: .hang(after: -1))
        try await StubServer.with { server in
            server.route("/") { file.script(for: $0) }
            let client = try RawClient(server)
            try client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
            #expect(String(decoding: try await client.receiveToEnd().bytes, as: UTF8.self).hasSuffix("\r\n\r\n"))
        }
    }

    @Test(arguments: [Duration.seconds(Int64.max), .seconds(Int64.min), .zero])
    func `any reconnection time can be sent`(retry: Duration) async throws {
        let (text, _) = try await exchange(.events([], retry: retry))
        let number = retry == .zero ? "0" : retry > .zero ? "\(Int64.max)" : "\(Int64.min)"
        #expect(text.hasSuffix("retry: \(number)\n\n"))
    }

    @Test func `the data of an event keep line breaks of other standards`() async throws {
        let data = "a\u{2028}b\u{85}c\u{B}d\r\ne\rf\ng"
        let (text, _) = try await exchange(.events([ServerSentEvent(data: data)]))
        #expect(text.hasSuffix("data: a\u{2028}b\u{85}c\u{B}d\ndata: e\ndata: f\ndata: g\n\n"))
    }

    @Test func `the pace of a script does not apply to the next request`() async throws {
        try await StubServer.with { server in
            let slow = Script([.reply(Reply()), .pace(.init(bytes: 1, every: .seconds(3_600)))])
            server.enqueue(slow, .text("second"))
            let client = try RawClient(server)
            try client.send("GET / HTTP/1.1\r\n\r\n")
            _ = try await client.receive(upTo: "\r\n\r\n")
            try client.send("PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
            #expect(try await client.receive(upTo: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
        }
    }

    @Test func `an interruption before the first byte sends none`() async throws {
        let file = ServedFile(Data("abcde".utf8), interruption: .close(after: -1))
        try await StubServer.with { server in
            server.route("/") { file.script(for: $0) }
            let client = try RawClient(server)
            try client.send("GET / HTTP/1.1\r\n\r\n")
            #expect(String(decoding: try await client.receiveToEnd().0, as: UTF8.self).hasSuffix("\r\n\r\n"))
        }
    }
}
