// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

/// WebSocket connections to a stub server.
@Suite(.timeLimit(.minutes(5))) struct WebSocketTests {
    private func request(_ server: StubServer, _ path: String = "/") throws -> Request {
        try Request(url: url("ws://127.0.0.1:\(server.endpoint.port)\(path)"))
    }

    /// Opens a connection to a server with a script, after the handshake.
    private func withSocket<Value: Sendable>(
        _ actions: [Script.Action], _ options: WebSocketOptions = WebSocketOptions(),
        streamBufferSize: Int = 256 << 10, _ body: (WebSocket) async throws -> Value
    ) async throws -> Value {
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket()] + actions))
            let session = SessionManager(for: server) {
                $0.streamBufferSize = streamBufferSize
                // Only the limits of the connection itself apply.
                $0.timeouts.idle = nil
            }
            return try await session.withWebSocket(request(server), options: options, body)
        }
    }

    /// Returns the messages until the end or an error.
    private func read(_ socket: WebSocket) async -> ([WebSocketMessage], TransportError.Reason?) {
        var messages: [WebSocketMessage] = []
        do {
            for try await message in socket { messages.append(message) }
            return (messages, nil)
        } catch {
            return (messages, (error as? TransportError)?.reason)
        }
    }

    // MARK: Messages

    @Test func `messages of all sizes return unchanged`() async throws {
        let messages: [WebSocketMessage] = [
            .text("hello €"), .text(""), .binary(Data()), .binary(Data([0xFF])),
            .text(String(repeating: "x", count: 125)), .text(String(repeating: "y", count: 126)),
            .binary(Data(repeating: 1, count: 65_535)), .binary(Data(repeating: 2, count: 65_536)),
            .binary(Data(repeating: 3, count: 3_000_000)), .text("bye"),
        ]
        let received = try await withSocket([.echoMessages()]) { socket in
            var received: [WebSocketMessage] = []
            var iterator = socket.makeAsyncIterator()
            for message in messages {
                try await socket.send(message)
                received.append(try #require(await iterator.next()))
            }
            return received
        }
        #expect(received == messages)
    }

    @Test func `closing discards messages that arrived together with the last one read`() async throws {
        let messages = Data("abc".utf8.flatMap { [0x81, 1, $0] })
        try await withSocket([.send(messages), .echoMessages()]) { socket in
            var received: [WebSocketMessage] = []
            for try await message in socket {
                received.append(message)
                try await socket.close()
            }
            #expect(received == [.text("a")])
        }
    }

    @Test func `messages are sent while others are received`() async throws {
        let count = 500
        let received = try await withSocket([.echoMessages()]) { socket in
            async let sending: Void = {
                for number in 0..<count { try await socket.send(.text("\(number)")) }
            }()
            var received: [WebSocketMessage] = []
            for try await message in socket {
                received.append(message)
                if received.count == count { break }
            }
            try await sending
            return received
        }
        #expect(received == (0..<count).map { .text("\($0)") })
    }

    @Test func `messages of several tasks are not mixed`() async throws {
        let sizes = [10, 1000, 20_000]
        let received = try await withSocket([.echoMessages(30)]) { socket in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<30 {
                    let size = sizes[index % 3]
                    group.addTask {
                        try await socket.send(.binary(Data(repeating: UInt8(index), count: size)))
                    }
                }
                try await group.waitForAll()
            }
            var received: Set<WebSocketMessage> = []
            for try await message in socket {
                received.insert(message)
                if received.count == 30 { break }
            }
            return received
        }
        #expect(
            received
                == Set((0..<30).map { .binary(Data(repeating: UInt8($0), count: sizes[$0 % 3])) }))
    }

    @Test func `a server that sends faster than the reader reads is slowed down, and nothing is lost`() async throws {
        let messages = (0..<60).map { WebSocketMessage.binary(Data(repeating: UInt8($0), count: 100_000)) }
        let received = try await withSocket(
            messages.map { .message($0) } + [.closeWebSocket(code: 1000)], streamBufferSize: 1000
        ) { socket in
            var received: [WebSocketMessage] = []
            for try await message in socket {
                await Task.yield()
                received.append(message)
            }
            return received
        }
        #expect(received == messages)
    }

    @Test func `sending to a server that does not read waits, and closing the connection then fails`() async throws {
        var options = WebSocketOptions()
        options.closeTimeout = .milliseconds(10)
        let error = try await sessionError {
            try await withSocket([.hang], options) { socket in
                // More than the system's buffers take.
                let message = WebSocketMessage.binary(Data(count: 32 << 20))
                let sender = Task.immediate { try await socket.send(message) }
                sender.cancel()
                await #expect(throws: CancellationError.self) { try await sender.value }
            }
        }
        guard case .connectionLost(.inBody) = error.reason else { throw error }
    }

    // MARK: Handshakes

    @Test func `the handshake has the fields of the session, of the request and of the RFC`() async throws {
        try await StubServer.with { server in
            server.route(
                "/chat",
                Script([.acceptWebSocket(headers: ["Sec-WebSocket-Protocol": "b"]), .closeWebSocket(code: 1000)]))
            var options = WebSocketOptions()
            options.subprotocols = ["a", "b"]
            var request = try request(server, "/chat?room=1")
            request.headers[.authorization] = "Bearer token"
            let session = SessionManager(for: server) { $0.headers[.userAgent] = "agent" }
            let subprotocol = try await session.withWebSocket(request, options: options) { $0.subprotocol }
            #expect(subprotocol == "b")
            let received = try await server.requests(count: 1)[0]
            #expect(received.method == "GET")
            #expect(received.target == "/chat?room=1")
            #expect(received.headers["Host"] == "127.0.0.1:\(server.endpoint.port)")
            #expect(received.headers["Authorization"] == "Bearer token")
            #expect(received.headers["User-Agent"] == "agent")
            #expect(received.headers["Sec-WebSocket-Protocol"] == "a, b")
            #expect(received.headers["Sec-WebSocket-Version"] == "13")
            #expect(received.headers["Sec-WebSocket-Key"]?.count == 24)
        }
    }

    @Test func `stored cookies are sent`() async throws {
        try await StubServer.with { server in
            server.route("/login", Script([.reply(Reply(headers: ["Set-Cookie": "id=7; Path=/"]))]))
            server.route("/", Script([.acceptWebSocket(), .closeWebSocket()]))
            let session = SessionManager(for: server)
            _ = try await session.data(for: Request(url: server.url("/login")))
            try await session.withWebSocket(request(server)) { _ in }
            #expect(try await server.requests(count: 2)[1].headers["Cookie"] == "id=7")
        }
    }

    @Test(
        arguments: [
            Reply(status: 403, headers: ["X-Why": "no"], body: .string("members only")),
            Reply(status: 403, headers: ["X-Why": "no"], body: .string("members only"), framing: .chunked(size: 5)),
            Reply(status: 403, headers: ["X-Why": "no"], body: .string("members only"), framing: .untilClose),
        ])
    func `a response that refuses is in the error, with its body`(reply: Reply) async throws {
        try await StubServer.with { server in
            server.route("/", Script([.reply(reply)]))
            let error = try await sessionError {
                try await SessionManager(for: server).withWebSocket(request(server)) { _ in }
            }
            #expect(error.statusCode == 403)
            #expect(error.responseBody == Data("members only".utf8))
            #expect(error.rejection?.head.headers.map(\.value).contains("no") == true)
        }
    }

    @Test func `a success without an upgrade is refused`() async throws {
        try await StubServer.with { server in
            server.route("/", .text("hello"))
            let error = try await sessionError {
                try await SessionManager(for: server).withWebSocket(request(server)) { _ in }
            }
            #expect(error.statusCode == 200)
        }
    }

    @Test func `a redirect is followed, and a challenge is answered`() async throws {
        try await StubServer.with { server in
            let target = "ws://127.0.0.1:\(server.endpoint.port)/b"
            server.route("/a", Script([.reply(Reply(status: 302, headers: ["Location": target]))]))
            server.route(
                "/b",
                Script([
                    .reply(Reply(status: 401, headers: ["WWW-Authenticate": "Digest realm=x, Basic realm=x"]))
                ]),
                Script([.acceptWebSocket(), .echoMessages()]))
            var request = try request(server, "/a")
            request.credential = Credential(user: "me", password: "secret")
            let answer = try await SessionManager(for: server).withWebSocket(request) { socket in
                try await socket.send(.text("x"))
                return try await socket.first { _ in true }
            }
            #expect(answer == .text("x"))
            let requests = try await server.requests(count: 3)
            #expect(requests.map { $0.headers["Authorization"] } == [nil, nil, "Basic bWU6c2VjcmV0"])
            #expect(requests[1].headers["Sec-WebSocket-Key"] != requests[2].headers["Sec-WebSocket-Key"])
        }
    }

    @Test func `a connection is opened without the answer to an earlier Digest challenge`() async throws {
        try await StubServer.with { server in
            let challenge = Reply(status: 401, headers: ["WWW-Authenticate": "Digest realm=x, nonce=y, qop=auth"])
            server.route(
                "/", Script([.reply(challenge)]), Script([.reply(challenge)]), .text("hello"),
                Script([.acceptWebSocket(), .echoMessages()]))
            let manager = SessionManager(for: server)
            var plain = Request(url: server.url("/"))
            plain.credential = Credential(user: "me", password: "secret")
            #expect(try await manager.data(for: plain).statusCode == 200)
            var request = try request(server)
            request.credential = plain.credential
            let answer = try await manager.withWebSocket(request) { socket in
                try await socket.send(.text("x"))
                return try await socket.first { _ in true }
            }
            #expect(answer == .text("x"))
            let fields = try await server.requests(count: 4).map { $0.headers["Authorization"]?.prefix(6) }
            #expect(fields == [nil, nil, "Digest", nil])
        }
    }

    @Test(
        arguments: [
            ["Sec-WebSocket-Accept": "x"], ["Upgrade": "h2c"], ["Connection": "close"],
            ["Sec-WebSocket-Protocol": "unasked"], ["Sec-WebSocket-Extensions": "permessage-deflate"],
        ] as [HeaderPairs])
    func `a handshake that does not fit is an error`(fields: HeaderPairs) async throws {
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket(headers: fields), .hang]))
            let error = try await sessionError {
                try await SessionManager(for: server).withWebSocket(request(server)) { _ in }
            }
            guard case .invalidResponse = error.reason else { throw error }
            try await server.connections(open: 0)
        }
    }

    @Test func `a refused connection is an error as for requests`() async throws {
        let error = try await sessionError {
            let session = SessionManager { $0.proxy = .none }
            try await session.withWebSocket(Request(url: url("ws://127.0.0.1:1/"))) { _ in }
        }
        #expect(error.reason == .cannotConnect(.refused))
    }

    @Test func `a transport without WebSockets is named`() async throws {
        let session = SessionManager(on: MockTransport(MockResponse.status(.init(code: 101))))
        let error = try await sessionError {
            try await session.withWebSocket(Request(url: url("wss://a.example/"))) { _ in }
        }
        guard case .invalidRequest = error.reason else { throw error }
    }

    // MARK: Closing

    @Test(arguments: [1000, 1001, nil] as [UInt16?])
    func `the sequence ends when the server closes the connection`(code: UInt16?) async throws {
        let (messages, closure) = try await withSocket([
            .message(.text("a")), .closeWebSocket(code: code, reason: code == nil ? "" : "done"),
        ]) { socket in
            var messages: [WebSocketMessage] = []
            for try await message in socket { messages.append(message) }
            await #expect(throws: TransportError.self) { try await socket.send(.text("late")) }
            var iterator = socket.makeAsyncIterator()
            #expect(try await iterator.next() == nil)
            return (messages, socket.closure)
        }
        #expect(messages == [.text("a")])
        #expect(closure?.code == code)
        #expect(closure?.reason == (code == nil ? "" : "done"))
    }

    @Test(arguments: [
        Data([0x81, 1, 0xFF]), Data([0x81, 0x81]), Data([0x82, 126, 0xFF, 0xFF]),
        Data([0x01, 10] + [UInt8](repeating: 0x61, count: 10) + [0x80, 90] + [UInt8](repeating: 0x61, count: 90)),
    ])
    func `a violation of the protocol ends every iteration with its error`(frames: Data) async throws {
        var options = WebSocketOptions()
        options.maximumMessageSize = 99
        let reasons = try await withSocket([.message(.text("a")), .send(frames), .echoMessages()], options) { socket in
            #expect(await read(socket).0 == [.text("a")])
            return [await read(socket), await read(socket)]
        }
        for (messages, reason) in reasons {
            #expect(messages.isEmpty)
            switch reason {
            case .invalidResponse, .responseTooLarge(.body(limit: 99)): break
            default: Issue.record("Unexpected: \(String(describing: reason))")
            }
        }
    }

    @Test func `another close code is an error after the messages`() async throws {
        let (messages, reason) = try await withSocket(
            [.message(.text("a")), .closeWebSocket(code: 1011, reason: "oops")]) { await read($0) }
        #expect(messages == [.text("a")])
        guard case .webSocketClosed(let closure?) = reason else { throw Planned() }
        #expect(closure.code == 1011)
        #expect(closure.reason == "oops")
    }

    @Test func `a server that closes the connection is answered with its code`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket(), .closeWebSocket(code: 4001, reason: "why")]))
            let error = try await sessionError {
                try await SessionManager(for: server).withWebSocket(request(server)) { for try await _ in $0 {} }
            }
            guard case .webSocketClosed(let closure?)? = error.reason, closure.code == 4001 else { throw error }
            let closures = try await server.activity { !$0.webSocketClosures.isEmpty }.webSocketClosures
            #expect(closures.map(\.code) == [4001])
        }
    }

    @Test func `closing waits for the server's answer, and ends the sequence`() async throws {
        try await withSocket([.message(.text("unread")), .echoMessages()]) { socket in
            try await socket.close(code: 4000, reason: "enough")
            #expect(socket.closure?.code == 4000)
            #expect(await read(socket) == ([], nil))
            let error = await #expect(throws: TransportError.self) { try await socket.send(.text("late")) }
            guard case .webSocketClosed = error?.reason else { throw Planned() }
            try await socket.close()
        }
    }

    @Test(arguments: [0, 999, 1005, 1006, 1015, 2999, 5000] as [UInt16])
    func `a code that must not be sent is refused`(code: UInt16) async throws {
        try await withSocket([.echoMessages()]) { socket in
            let error = await #expect(throws: TransportError.self) { try await socket.close(code: code) }
            guard case .invalidRequest = error?.reason else { throw Planned() }
        }
    }

    @Test func `a server that does not answer a close frame delays the end only for a while`() async throws {
        var options = WebSocketOptions()
        options.pingInterval = nil
        options.closeTimeout = .milliseconds(20)
        try await withSocket([.hang], options) { socket in
            try await socket.close()
            #expect(socket.closure == nil)
        }
    }

    // MARK: Failures

    @Test(arguments: [Script.Ending.close, .reset])
    func `a lost connection is an error after the messages`(ending: Script.Ending) async throws {
        let (messages, reason) = try await withSocket([.message(.text("a")), .echoMessages(1), .end(ending)]) {
            socket in
            try await socket.send(.text("b"))
            return await read(socket)
        }
        #expect(messages.first == .text("a"))
        guard case .connectionLost(.inBody) = reason else { throw Planned() }
    }

    @Test(
        arguments: [
            [0x83, 0x00], [0xC1, 0x00], [0x81, 0x80, 0, 0, 0, 0], [0x80, 0x00], [0x09, 0x00], [0x89, 0x7E, 0, 126],
            [0x81, 0x01, 0xFF], [0x88, 0x01, 0x03], [0x88, 0x02, 0x03, 0xED], [0x82, 0x7E, 0x00, 0x05],
        ] as [[UInt8]])
    func `a malformed frame is an error after the messages`(bytes: [UInt8]) async throws {
        let (messages, reason) = try await withSocket([.message(.text("a")), .send(Data(bytes)), .hang]) {
            await read($0)
        }
        #expect(messages == [.text("a")])
        guard case .invalidResponse = reason else { throw Planned() }
    }

    @Test(
        arguments: [
            [.message(.text(String(repeating: "x", count: 1001)))],
            [.send(Data([0x82, 0x7F, 0x7F, 0, 0, 0, 0, 0, 0, 0]))],
            [.send(Data([0x02, 0x7D] + [UInt8](repeating: 0, count: 125))), .send(Data([0x80, 0x7E, 0x03, 0xE7]))]
                + [.send(Data(count: 999))],
        ] as [[Script.Action]])
    func `a message above the limit is an error`(actions: [Script.Action]) async throws {
        var options = WebSocketOptions()
        options.maximumMessageSize = 1000
        let (messages, reason) = try await withSocket(actions + [.hang], options) { await read($0) }
        #expect(messages.isEmpty)
        #expect(reason == .responseTooLarge(.body(limit: 1000)))
    }

    @Test func `a server that answers no pings is lost`() async throws {
        var options = WebSocketOptions()
        options.pingInterval = .milliseconds(5)
        options.pingTimeout = .milliseconds(20)
        let (_, reason) = try await withSocket([.hang], options) { await read($0) }
        #expect(reason == .timedOut(.responseBody))
    }

    @Test func `the total limit of the request ends the connection`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket(), .message(.text("a")), .hang]))
            let session = SessionManager(for: server) { $0.timeouts.total = .seconds(2) }
            var options = WebSocketOptions()
            options.pingInterval = nil
            let error = try await sessionError {
                try await session.withWebSocket(request(server), options: options) { for try await _ in $0 {} }
            }
            #expect(error.reason == .timedOut(.responseBody))
        }
    }

    @Test func `a server that answers pings is not lost`() async throws {
        var options = WebSocketOptions()
        options.pingInterval = .milliseconds(1)
        options.pingTimeout = .seconds(30)
        try await StubServer.with { server in
            server.route("/", .webSocketEcho)
            try await SessionManager(for: server).withWebSocket(request(server), options: options) { socket in
                for number in 1...20 {
                    _ = try await server.activity { activity in
                        activity.webSocketControlFrames.count { $0.opcode == .ping } >= number
                    }
                    try await socket.send(.text("\(number)"))
                    #expect(try await socket.first { _ in true } == .text("\(number)"))
                }
            }
        }
    }

    @Test(
        arguments: [
            ([0x83, 0x00], 1002), ([0x81, 0x01, 0xFF], 1007), ([0x82, 0x7E, 0x03, 0xE9], 1009), ([], 1001),
        ] as [([UInt8], UInt16)])
    func `the server learns why the connection ends`(bytes: [UInt8], code: UInt16) async throws {
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket(), .send(Data(bytes)), .echoMessages()]))
            var options = WebSocketOptions()
            options.maximumMessageSize = 1000
            let error = await #expect(throws: (any Error).self) {
                try await SessionManager(for: server).withWebSocket(request(server), options: options) { socket in
                    guard !bytes.isEmpty else { throw Planned() }
                    for try await _ in socket {}
                }
            }
            #expect(bytes.isEmpty ? error is Planned : error is SessionError)
            let closures = try await server.activity { !$0.webSocketClosures.isEmpty }.webSocketClosures
            #expect(closures.map(\.code) == [code])
        }
    }

    @Test func `a cancelled iteration loses no message`() async throws {
        try await StubServer.with { server in
            let both = [WebSocketMessage.text("a"), .text("b")].map { $0.frame.encoded(mask: nil) }.joined()
            server.route("/", Script([.acceptWebSocket(), .send(Data(both)), .echoMessages()]))
            try await SessionManager(for: server).withWebSocket(request(server)) { socket in
                let first = try await socket.first { _ in true }
                let cancelled = Task {
                    while !Task.isCancelled { await Task.yield() }
                    return try await socket.first { _ in true }
                }
                cancelled.cancel()
                await #expect(throws: CancellationError.self) { try await cancelled.value }
                let second = try await socket.first { _ in true }
                #expect([first, second] == [.text("a"), .text("b")])
            }
        }
    }

    // MARK: Scopes

    @Test func `cancelling ends the connection`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket(), .message(.text("a")), .hang]))
            let session = SessionManager(for: server)
            let wish = try request(server)
            let received = EventList<WebSocketMessage>()
            let task = Task {
                try await session.withWebSocket(wish) { socket in
                    for try await message in socket { await received.append(message) }
                }
            }
            try await eventually { await !received.values.isEmpty }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            try await server.connections(open: 0)
        }
    }

    @Test func `a task that stops reading does not end the connection`() async throws {
        try await withSocket([.echoMessages()]) { socket in
            let reader = Task.immediate { try await socket.first { _ in true } }
            reader.cancel()
            await #expect(throws: CancellationError.self) { try await reader.value }
            try await socket.send(.text("x"))
            #expect(try await socket.first { _ in true } == .text("x"))
        }
    }

    @Test func `an error of the closure ends the connection`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket(), .hang]))
            let session = SessionManager(for: server)
            await #expect(throws: Planned.self) {
                try await session.withWebSocket(request(server)) { _ in throw Planned() }
            }
            try await server.connections(open: 0)
            #expect(server.activity.webSocketClosures.map(\.code) == [1001])
        }
    }

    @Test func `a socket that leaves its scope is closed`() async throws {
        let socket = try await withSocket([.echoMessages()]) { $0 }
        await #expect(throws: TransportError.self) { try await socket.send(.text("late")) }
        #expect(await read(socket) == ([], nil))
    }

    @Test func `shutting the session down ends the connection`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket(), .hang]))
            let session = SessionManager(for: server)
            let wish = try request(server)
            let task = Task { try await session.withWebSocket(wish) { for try await _ in $0 {} } }
            try await server.requests(count: 1)
            await session.shutdown(draining: .zero)
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    // MARK: Connections

    @Test func `a pinned server over TLS is accepted, and another one refused`() async throws {
        let root = try TestCertificateAuthority()
        let leaf = try root.issue()
        try await StubServer.with(.init(tls: .init(leaf))) { server in
            server.route("/", Script([.acceptWebSocket(), .echoMessages()]))
            let wish = try Request(url: url("wss://localhost:\(server.endpoint.port)/"))
            for pinned in [leaf, try TestCertificate.selfSigned()] {
                let pin = try PublicKeyPin("sha256/" + pinned.publicKeySHA256)
                let session = SessionManager {
                    $0.proxy = .none
                    $0.tls.trustRoots = .pem(root.pemData)
                    $0.tls.policy = .pinning([pin], backups: [])
                }
                func echo() async throws -> WebSocketMessage? {
                    try await session.withWebSocket(wish) { socket in
                        try await socket.send(.binary(Data(count: 100_000)))
                        return try await socket.first { _ in true }
                    }
                }
                if pinned.publicKeySHA256 == leaf.publicKeySHA256 {
                    #expect(try await echo() == .binary(Data(count: 100_000)))
                } else {
                    let error = try await sessionError { _ = try await echo() }
                    #expect(error.reason == .tls(.pinMismatch(expected: [pin])))
                }
            }
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test func `a client certificate is presented`() async throws {
        let root = try TestCertificateAuthority()
        let client = try root.issue(.client("device 7"))
        var tls = StubServer.TLS(try root.issue())
        tls.clientAuthority = root.pemData
        try await StubServer.with(.init(tls: tls)) { server in
            server.fallback { _ in Script([.acceptWebSocket(), .echoMessages()]) }
            let request = try Request(url: url("wss://localhost:\(server.endpoint.port)/"))
            let session = SessionManager {
                $0.proxy = .none
                $0.tls.trustRoots = .pem(root.pemData)
                $0.tls.identity = .pem(certificates: .data(client.chainPEM), key: .data(client.privateKeyPEM))
            }
            let answer = try await session.withWebSocket(request) { socket in
                try await socket.send(.text("x"))
                return try await socket.first { _ in true }
            }
            #expect(answer == .text("x"))
            #expect(server.activity.requests.map { $0.tls?.clientName } == ["device 7"])
            let other = SessionManager {
                $0.proxy = .none
                $0.tls.trustRoots = .pem(root.pemData)
            }
            let error = try await sessionError { try await other.withWebSocket(request) { _ in } }
            #expect(error.reason == .tls(.clientCertificateRefused))
        }
    }

    @Test func `a server that closes because it was given no client certificate is named as the one who refuses`()
        async throws
    {
        let root = try TestCertificateAuthority()
        var tls = StubServer.TLS(try root.issue())
        tls.clientAuthority = root.pemData
        tls.requiresClientCertificate = false
        try await StubServer.with(.init(tls: tls)) { server in
            server.fallback { _ in .close }
            let session = SessionManager {
                $0.proxy = .none
                $0.tls.trustRoots = .pem(root.pemData)
            }
            let request = try Request(url: url("wss://localhost:\(server.endpoint.port)/"))
            let error = try await sessionError { try await session.withWebSocket(request) { _ in } }
            #expect(error.reason == .tls(.clientCertificateRefused))
        }
    }

    @Test func `a connection over a Unix-domain socket serves messages`() async throws {
        let path = "/tmp/an-socket-\(UInt64.random(in: 0 ... .max))"
        try await StubServer.with(.init(.unix(path: path))) { server in
            server.fallback { _ in Script([.acceptWebSocket(), .echoMessages()]) }
            let session = SessionManager { $0.connection.unixSocketPath = path }
            let answer = try await session.withWebSocket("http://localhost/echo") { socket in
                try await socket.send(.text("x"))
                return try await socket.first { _ in true }
            }
            #expect(answer == .text("x"))
            #expect(server.activity.requests.map(\.target) == ["/echo"])
        }
    }

    @Test func `cookies of the handshake are sent and stored, also those of refusals and redirects`() async throws {
        try await StubServer.with { server in
            server.route(
                "/a", Script([.reply(Reply(status: 302, headers: ["Location": "/b/c", "Set-Cookie": "one=1"]))]))
            server.route(
                "/b/c",
                Script([
                    .acceptWebSocket(headers: ["Set-Cookie": "two=2", "Set-Cookie": "three=3; Path=/; Max-Age=60"]),
                    .echoMessages(),
                ]),
                Script([.reply(Reply(status: 403, headers: ["Set-Cookie": "two=; Max-Age=0"]))]))
            server.fallback { _ in .text("") }
            let session = SessionManager(for: server)
            try await session.withWebSocket(request(server, "/a")) { _ in }
            #expect(
                Set(await session.cookies.all().map { "\($0.name)=\($0.value)\($0.path)" })
                    == ["one=1/", "two=2/b", "three=3/"])
            _ = try await sessionError { try await session.withWebSocket(request(server, "/b/c")) { _ in } }
            _ = try await session.data(for: Request(url: server.url("/b/x")))
            let sent = server.activity.requests.map { ($0.headers["Cookie"] ?? "").split(separator: "; ").sorted() }
            #expect(sent == [[], ["one=1"], ["one=1", "three=3", "two=2"], ["one=1", "three=3"]])
        }
    }

    @Test func `a proxy is asked for a tunnel`() async throws {
        try await StubServer.with { proxy in
            proxy.enqueue(
                Script([.reply(Reply(framing: .asGiven))]), Script([.acceptWebSocket(), .echoMessages()]))
            let session = SessionManager {
                $0.proxy = .proxy(Proxy(.http, host: "127.0.0.1", port: proxy.endpoint.port))
            }
            let answer = try await session.withWebSocket(Request(url: url("ws://a.example/x"))) { socket in
                try await socket.send(.text("through"))
                return try await socket.first { _ in true }
            }
            #expect(answer == .text("through"))
            let requests = try await proxy.requests(count: 2)
            #expect(requests.map(\.method) == ["CONNECT", "GET"])
            #expect(requests.map(\.target) == ["a.example:80", "/x"])
            #expect(requests[1].headers["Host"] == "a.example")
        }
    }

    @Test func `a server behind a tunnel cannot ask for the credential of the proxy`() async throws {
        try await StubServer.with { proxy in
            let refusal = Reply(status: 407, headers: ["Proxy-Authenticate": "Basic realm=\"x\""])
            proxy.enqueue(Script([.reply(Reply(framing: .asGiven))]), Script([.reply(refusal)]))
            let asked = EventList<String?>()
            let session = SessionManager {
                $0.proxy = .proxy(Proxy(.http, host: "127.0.0.1", port: proxy.endpoint.port))
                $0.authentication.challengeHandler = { challenge in
                    await asked.append(challenge.protectionSpace.realm)
                    return .rejectProtectionSpace
                }
            }
            let error = try await sessionError {
                try await session.withWebSocket(Request(url: url("ws://a.example/x"))) { _ in }
            }
            #expect(error.statusCode == 407)
            #expect(await asked.values.isEmpty)
        }
    }

    @Test func `the address policy applies`() async throws {
        try await StubServer.with { server in
            let session = SessionManager(for: server) { $0.connection.addresses = .publicOnly() }
            let error = try await sessionError { try await session.withWebSocket(request(server)) { _ in } }
            #expect(error.reason == .cannotConnect(.addressForbidden))
        }
    }
}
