// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import Dispatch
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

/// Connections as the engine sees them; see WebSocketTests for sessions.
@Suite(.timeLimit(.minutes(5))) struct CurlTransportWebSocketsTests {
    /// Opens a WebSocket connection and runs a closure with it.
    private func withLink<Value: Sendable>(
        to server: StubServer, on transport: CurlTransport, options: TransferOptions? = nil,
        _ webSocketOptions: WebSocketOptions = WebSocketOptions(), _ body: (any WebSocketLink) async throws -> Value
    ) async throws -> Value {
        var request = server.request(options: options)
        request.webSocketOptions = webSocketOptions
        return try await transport.stream(request) { head, _ in
            try await body(#require(head.webSocket))
        }
    }

    /// Calls `receive` with a connection that the server has closed by a close frame and reset, which the engine does not
    /// know yet. `prepare` is called before, while the engine's thread is blocked.
    private func withReset(
        after closure: WebSocketClosure, prepare: (any WebSocketLink) async throws -> Void = { _ in },
        receive: (any WebSocketLink) async throws -> Void
    ) async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            let close = WebSocketFrame(.close, closure.payload)
            server.route(
                "/", Script([.acceptWebSocket(), .wait(gate), .send(Data(close.encoded(mask: nil))), .end(.reset)]))
            server.route("/other", .text("ok"))
            var limits = ConnectionLimits()
            limits.eventLoops = 1
            let transport = try CurlTransport(limits: limits)
            try await withLink(to: server, on: transport) { link in
                let barrier = Barrier()
                async let other = transport.collect(server.request("/other"), reporting: barrier)
                try await eventually { barrier.isReached.isRaised }
                gate.open()
                try await server.connections(open: 1)
                try await prepare(link)
                barrier.mayPass.signal()
                _ = try await other
                try await receive(link)
            }
        }
    }

    @Test func `the server's reason is known although sending fails first`() async throws {
        let closure = WebSocketClosure(code: 1011, reason: "oops")
        let error = await #expect(throws: TransportError.self) {
            // The engine sends, which fails, before it receives.
            try await withReset(after: closure, prepare: { try await $0.send { WebSocketFrame(.text) } }) { link in
                _ = try await link.receive()
            }
        }
        #expect(error?.reason == .webSocketClosed(closure))
    }

    @Test func `closing a connection that was reset is no error if all messages were sent`() async throws {
        let frames = (0..<8).flatMap {
            WebSocketFrame(.binary, [UInt8](repeating: $0, count: 2_000)).encoded(mask: nil)
        }
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/", Script([.acceptWebSocket(), .send(Data(frames)), .wait(gate), .end(.reset)]))
            let options = TransferOptions.with { $0.streamBufferSize = 1_000 }
            try await withLink(to: server, on: CurlTransport(), options: options) { link in
                _ = try await link.receive()
                gate.open()
                try await server.connections(open: 0)
                try await link.close(WebSocketClosure(code: 1000))
            }
        }
    }

    @Test func `what arrived before a reset is received although sending fails while the reader is slow`() async throws
    {
        let closure = WebSocketClosure(code: 1011, reason: "oops")
        let messages = (0..<8).map { WebSocketFrame(.binary, [UInt8](repeating: $0, count: 2_000)) }
        let frames = (messages + [WebSocketFrame(.close, closure.payload)]).flatMap { $0.encoded(mask: nil) }
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/", Script([.acceptWebSocket(), .send(Data(frames)), .wait(gate), .end(.reset)]))
            let options = TransferOptions.with { $0.streamBufferSize = 1_000 }
            try await withLink(to: server, on: CurlTransport(), options: options) { link in
                var received = try #require(try await link.receive())
                gate.open()
                try await server.connections(open: 0)
                await #expect(throws: TransportError.self) {
                    while true { try await link.send { WebSocketFrame(.text) } }
                }
                let error = await #expect(throws: TransportError.self) {
                    while let more = try await link.receive() { received += more }
                }
                #expect(received == messages)
                #expect(error?.reason == .webSocketClosed(closure))
                #expect(link.closure == closure)
            }
        }
    }

    @Test(arguments: [Script.Ending.close, .reset])
    func `what arrived before the end is received although the reader resumes in the middle of a turn`(
        ending: Script.Ending
    ) async throws {
        let messages = (0..<10_000).map { WebSocketFrame(.binary, [UInt8(truncatingIfNeeded: $0)]) }
        let close = WebSocketFrame(.close, WebSocketClosure(code: 1000).payload)
        let frames = (messages + [close]).flatMap { $0.encoded(mask: nil) }
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/", Script([.acceptWebSocket(), .send(Data(frames)), .wait(gate), .end(ending)]))
            let options = TransferOptions.with { $0.streamBufferSize = 1 }
            try await withLink(to: server, on: CurlTransport(), options: options) { link in
                var received = try #require(try await link.receive())
                gate.open()
                try await server.connections(open: 0)
                while let more = try await link.receive() {
                    received += more
                    // So that the next frame is taken at any moment of the loop's turn.
                    var count = received.count % 1000
                    while count > 0 { count -= 1 }
                }
                #expect(received == messages)
            }
        }
    }

    @Test func `a flood of pings delays no message, and its last ping is answered`() async throws {
        let flood = [[UInt8]](repeating: WebSocketFrame(.ping).encoded(mask: nil), count: 100_000).flatMap(\.self)
        let last = WebSocketFrame(.ping, [1]).encoded(mask: nil) + WebSocketFrame(.text, [2]).encoded(mask: nil)
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket(), .send(Data(flood + last)), .echoMessages()]))
            try await withLink(to: server, on: CurlTransport()) { link in
                #expect(try await link.receive() == [WebSocketFrame(.text, [2])])
                try await link.close(WebSocketClosure(code: 1000))
            }
            let pongs = server.activity.webSocketControlFrames.filter { $0.opcode == .pong }
            #expect(pongs.last?.payload == [1])
        }
    }

    /// RFC 6455 §5.5.1.
    @Test(
        arguments: [
            [0xFF, 0xFF], WebSocketFrame(.text, Array("more".utf8)).encoded(mask: 7),
            [0x82, 0x7F, 0, 0, 0, 1, 0, 0, 0, 0],
        ] as [[UInt8]])
    func `what follows a close frame is discarded`(bytes: [UInt8]) async throws {
        try await StubServer.with { server in
            let close = WebSocketFrame(.close, WebSocketClosure(code: 1000).payload).encoded(mask: nil)
            server.route("/", Script([.acceptWebSocket(), .send(Data(close + bytes)), .hang]))
            let transport = try CurlTransport()
            // Which has no effect on a WebSocket connection.
            let options = TransferOptions.with { $0.httpVersion = .http2PriorKnowledge }
            try await withLink(to: server, on: transport, options: options) { link in
                #expect(await transport.features.snapshot().connections.first?.version == .http1_1)
                let frames = try await link.receive()
                #expect(frames == nil)
            }
        }
    }

    @Test(arguments: [1000, 1011])
    func `a server's close frame counts although the answer cannot be sent`(code: UInt16) async throws {
        let closure = WebSocketClosure(code: code)
        try await withReset(after: closure) { link in
            if code == 1000 {
                #expect(try await link.receive() == nil)
            } else {
                let error = await #expect(throws: TransportError.self) { try await link.receive() }
                #expect(error?.reason == .webSocketClosed(closure))
            }
            try await link.close(WebSocketClosure(code: 1000))
        }
    }

    @Test(arguments: [101, 403], ["/", "/x", "/x/y"])
    func `a handshake over plain TCP does not overlay a secure cookie`(status: Int, path: String) async throws {
        try await StubServer.with { server in
            let fields: HeaderPairs = ["Set-Cookie": "id=evil; Path=\(path)", "Set-Cookie": "other=1; Path=/"]
            server.route(
                "/x",
                status == 101
                    ? Script([.acceptWebSocket(headers: fields), .echoMessages()]) : .status(status, headers: fields))
            let transport = try CurlTransport()
            let secure = Cookie(name: "id", value: "good", domain: "a.example", path: "/x", isSecure: true)
            await transport.features.cookies?.set([secure])
            let options = TransferOptions.with {
                $0.connection.hostOverrides = [
                    .init(host: "a.example", port: 80, address: "127.0.0.1", addressPort: server.endpoint.port)
                ]
            }
            var request = Request(url: try #require(URL(string: "http://a.example/x")), options: options)
            request.webSocketOptions = WebSocketOptions()
            try await transport.stream(request) { head, _ in #expect(head.status.code == status) }
            let expected =
                [secure, Cookie(name: "other", value: "1", domain: "a.example")]
                + (path == "/" ? [Cookie(name: "id", value: "evil", domain: "a.example")] : [])
            #expect(Set(await (transport.features.cookies?.cookies() ?? [])) == Set(expected))
        }
    }

    @Test func `a message that arrives with a close frame is received before the end of the TCP connection`()
        async throws
    {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            let message = WebSocketFrame(.text, [1]).encoded(mask: nil)
            let close = WebSocketFrame(.close, WebSocketClosure(code: 1000).payload).encoded(mask: nil)
            server.route(
                "/",
                Script([
                    .acceptWebSocket(), .delay(.milliseconds(50)), .send(Data(message + close)), .wait(gate),
                    .end(.close),
                ]))
            try await withLink(to: server, on: try CurlTransport()) { link in
                let received = try await link.receive()
                #expect(received == [WebSocketFrame(.text, [1])])
                gate.open()
                let last = try await link.receive()
                #expect(last == nil)
            }
        }
    }

    /// RFC 6455 §7.1.1: the end that closes the TCP connection first keeps the state TIME_WAIT.
    @Test(arguments: [true, false])
    func `the server closes the TCP connection, whoever closes the WebSocket`(isServers: Bool) async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            let close = WebSocketFrame(.close, WebSocketClosure(code: 1000).payload).encoded(mask: nil)
            server.route("/", Script([.acceptWebSocket(), .send(Data(close)), .wait(gate), .end(.close)]))
            let isOver = Flag()
            let transport = try CurlTransport()
            async let closing: Void = withLink(
                to: server, on: transport
            ) { link in
                if isServers { _ = try await link.receive() }
                try await link.close(WebSocketClosure(code: 1000))
                isOver.raise()
            }
            try await server.activity { $0.requests.count == 1 }
            #expect(server.activity.openConnections == 1)
            gate.open()
            try await closing
            #expect(isOver.isRaised)
        }
    }

    @Test func `closing ends with the server's answer, not by its limit`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket(), .echoMessages()]))
            var options = WebSocketOptions()
            options.closeTimeout = .seconds(3600)
            try await withLink(to: server, on: CurlTransport(), options) { link in
                let isClosed = Flag()
                async let closing: Void = {
                    try await link.close(WebSocketClosure(code: 1000))
                    isClosed.raise()
                }()
                try await eventually(within: .seconds(30)) { isClosed.isRaised }
                try await closing
            }
        }
    }

    // MARK: Handshakes

    /// The head of a response that accepts the connection.
    private static func acceptance(of request: RecordedRequest) -> String {
        let key = request.headers["Sec-WebSocket-Key"] ?? ""
        let accept = MessageDigest.webSocketAccept(for: key).map { Data($0).base64EncodedString() } ?? ""
        return
            "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: \(accept)\r\n\r\n"
    }

    @Test(arguments: [1, 7, 1000])
    func `a head is read wherever it is split, with the frames behind it`(size: Int) async throws {
        try await StubServer.with { server in
            let frames = [WebSocketFrame(.text, [1]), WebSocketFrame(.binary, [2, 3])]
            server.fallback { request in
                let bytes = Array(Self.acceptance(of: request).utf8) + frames.flatMap { $0.encoded(mask: nil) }
                return Script([.pace(Script.Pace(bytes: size, every: .zero)), .send(Data(bytes)), .hang])
            }
            let received = try await withLink(to: server, on: CurlTransport()) { link in
                var received: [WebSocketFrame] = []
                while received.count < 2, let frames = try await link.receive() { received += frames }
                return received
            }
            #expect(received == frames)
        }
    }

    @Test(arguments: ["X: ", "X: y\r\n"])
    func `a head above the limit is refused`(text: String) async throws {
        try await StubServer.with { server in
            let head = "HTTP/1.1 101 Switching\r\n" + String(repeating: text, count: 1000)
            server.fallback { _ in Script([.send(Data(head.utf8)), .hang]) }
            let error = try await #require(throws: TransportError.self) {
                try await withLink(to: server, on: CurlTransport(), options: .with { $0.maximumHeadSize = 1000 }) { _ in
                }
            }
            #expect(error.reason == .responseTooLarge(.head(limit: 1000)))
        }
    }

    @Test(
        arguments: [
            ("Content-Length: 5\r\n\r\nhello", "hello"), ("Content-Length: 5\r\n\r\nhello and more", "hello"),
            ("Content-Length: 0\r\n\r\n", ""), ("Content-Length: 9\r\n\r\ncut", "cut"),
            ("\r\nto the end", "to the end"),
            ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello"),
            ("Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nX: trailer\r\n\r\n", "hello"),
            ("Transfer-Encoding: chunked\r\n\r\n5\r\nhel", "hel"),
        ])
    func `the body of a refusal is received as far as it comes`(rest: String, body: String) async throws {
        try await StubServer.with { server in
            // A connection that stays open must not delay a body that is complete.
            let isCut = body == "cut" || body == "hel" || body == "to the end"
            server.fallback { _ in
                Script([.send(Data("HTTP/1.1 403 No\r\n\(rest)".utf8)), isCut ? .end(.close) : .hang])
            }
            let received = try await refusal(by: server)
            #expect(received == Data(body.utf8))
        }
    }

    @Test(arguments: [Script.Ending.reset, .closeWithoutNotify], [false, true])
    func `a refusal whose connection is lost has what has arrived of its body`(
        ending: Script.Ending, isSecure: Bool
    ) async throws {
        let authority = try TestCertificateAuthority()
        var options = StubServer.Options()
        if isSecure { options.tls = .init(try authority.issue()) }
        try await StubServer.with(options) { server in
            let gate = try ScriptGate()
            server.fallback { _ in
                Script([
                    .send(Data("HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\ncut".utf8)), .wait(gate), .end(ending),
                ])
            }
            let body = try await refusal(by: server, .with { $0.tls.trustRoots = .pem(authority.pemData) }) {
                gate.open()
            }
            #expect(body == Data("cut".utf8))
        }
    }

    @Test func `a refusal whose body does not go on has what has arrived of it`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in
                Script([.send(Data("HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\ncut".utf8)), .hang])
            }
            let body = try await refusal(by: server, .with { $0.timeouts.idle = .milliseconds(500) })
            #expect(body == Data("cut".utf8))
        }
    }

    @Test(arguments: ["Content-Length: 200000\r\n\r\n", "\r\n", "Transfer-Encoding: chunked\r\n\r\n30000\r\n"])
    func `a long refusal is cut`(head: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in
                Script([.send(Data("HTTP/1.1 403 No\r\n\(head)".utf8)), .generate(150_000), .hang])
            }
            let body = try await refusal(by: server)
            #expect((65_000...150_000).contains(body.count))
            #expect(body == StubServer.generatedBytes(body.count))
        }
    }

    /// Returns the body of a response that refuses the connection.
    private func refusal(
        by server: StubServer, _ options: TransferOptions = .with { $0.timeouts.idle = nil },
        receivingHead: () -> Void = {}
    ) async throws -> Data {
        var request = server.request(options: options)
        request.webSocketOptions = WebSocketOptions()
        return try await CurlTransport().stream(request) { head, body in
            #expect(head.status.code == 403)
            receivingHead()
            return try await body.collect(upTo: 1 << 20)
        }
    }
}
