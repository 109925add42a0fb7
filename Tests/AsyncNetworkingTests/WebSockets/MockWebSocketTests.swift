// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import TestSupport
import Testing

/// WebSocket connections of a mock transport.
@Suite(.timeLimit(.minutes(5))) struct MockWebSocketTests {
    private func withSocket<Value: Sendable>(
        _ transport: MockTransport, _ options: WebSocketOptions = WebSocketOptions(),
        _ body: (WebSocket) async throws -> Value
    ) async throws -> Value {
        try await SessionManager(on: transport).withWebSocket(
            Request(url: url("wss://a.example/chat")), options: options, body)
    }

    /// Runs a closure with a connection of a mock transport, and with one of a server, whose script may wait for a gate.
    private func withSockets(
        _ actions: (ScriptGate) -> [Script.Action], _ body: (WebSocket, ScriptGate) async throws -> Void
    ) async throws {
        let gate = try ScriptGate()
        try await withSocket(MockTransport(script: Script([.acceptWebSocket()] + actions(gate)))) {
            try await body($0, gate)
        }
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/", Script([.acceptWebSocket()] + actions(gate)))
            try await SessionManager(for: server).withWebSocket("/") { try await body($0, gate) }
        }
    }

    @Test(arguments: ["around the call", "around the exchange", "by a redirect policy"])
    func `a connection is opened by a request that is created anew`(place: String) async throws {
        let creating = Intercepting { request, next in try await next(Request(url: request.url)) }
        // The refusal of the last request ends the call.
        let transport = MockTransport(.redirect(.found, to: "/chat"), .status(.forbidden))
        let session = SessionManager(on: transport) {
            switch place {
            case "around the call": $0.interceptors = [creating]
            case "around the exchange": $0.attemptInterceptors = [creating]
            default: $0.redirectPolicy.decision = { Request(url: $0.proposed.url) }
            }
        }
        let error = try await sessionError {
            try await session.withWebSocket(Request(url: url("wss://a.example/"))) { _ in }
        }
        #expect(error.statusCode == 403)
        #expect(transport.requests.map { $0.request.webSocketOptions != nil } == [true, true])
    }

    @Test(arguments: ["around the call", "around the exchange"])
    func `other requests of an interceptor open no connection`(place: String) async throws {
        let asking = Intercepting { request, next in
            let ticket = try url("http://a.example/ticket")
            #expect(try await next(Request(method: .post, url: ticket, body: .string("ada"))).head.status == .created)
            #expect(try await next(Request(url: ticket)).head.status == .ok)
            return try await next(request)
        }
        let transport = MockTransport(.status(.created), .text("7"), .status(.forbidden))
        let session = SessionManager(on: transport) {
            if place == "around the call" {
                $0.interceptors = [asking]
            } else {
                $0.attemptInterceptors = [asking]
            }
        }
        let error = try await sessionError {
            try await session.withWebSocket(Request(url: url("wss://a.example/chat"))) { _ in }
        }
        #expect(error.statusCode == 403)
        #expect(transport.requests.map { $0.request.webSocketOptions != nil } == [false, false, true])
    }

    @Test(arguments: ["around the call", "around the exchange", "by a redirect policy"])
    func `the program may name another server with the scheme of WebSockets`(place: String) async throws {
        let other = try url("wss://b.example/")
        let leading = Intercepting { request, next in
            var request = request
            request.url = other
            return try await next(request)
        }
        let transport = MockTransport(.redirect(.found, to: "/"), .status(.forbidden))
        let session = SessionManager(on: transport) {
            switch place {
            case "around the call": $0.interceptors = [leading]
            case "around the exchange": $0.attemptInterceptors = [leading]
            default: $0.redirectPolicy.decision = { _ in Request(url: other) }
            }
        }
        let error = try await sessionError {
            try await session.withWebSocket(Request(url: url("wss://a.example/"))) { _ in }
        }
        #expect(error.statusCode == 403)
        #expect(transport.requests.last?.request.url.absoluteString == "https://b.example/")
    }

    @Test func `a request that an interceptor passes to a function of a session opens no connection`() async throws {
        let other = MockTransport(.text("token"))
        let session = SessionManager(on: MockTransport(script: Script([.acceptWebSocket(), .closeWebSocket()]))) {
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    _ = try await SessionManager(on: other).data(for: request)
                    return try await next(request)
                }
            ]
        }
        try await session.withWebSocket(Request(url: url("wss://a.example/chat"))) { socket in
            for try await _ in socket {}
        }
        #expect(try other.onlyRequest.request.webSocketOptions == nil)
    }

    // MARK: As with a server

    /// A script, and what the client sends before it reads.
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let actions: [Script.Action]
        var headers: HeaderPairs = [:]
        var sent: [WebSocketMessage] = []
        let expected: Outcome

        var testDescription: String { name }
    }

    /// The observable course of a connection.
    struct Outcome: Equatable, Sendable {
        var messages: [WebSocketMessage] = []
        var closure: WebSocketClosure?
        var subprotocol: String?
        var failure: Failure?

        enum Failure: Equatable, Sendable {
            case closed
            case invalid
            case lost
            case tooLarge
            case other(TransportError.Reason)
        }
    }

    private static let text = WebSocketMessage.text("hello €")
    private static let long = WebSocketMessage.text(String(repeating: "x", count: 1001))

    private static let rows: [Row] = [
        Row(
            name: "messages and a close frame",
            actions: [.message(text), .message(.binary(Data([1]))), .closeWebSocket(code: 1000, reason: "bye")],
            expected: Outcome(
                messages: [text, .binary(Data([1]))], closure: WebSocketClosure(code: 1000, reason: "bye"))),
        Row(
            name: "an echo", actions: [.echoMessages(2), .message(.text("end")), .closeWebSocket(code: 1001)],
            sent: [text, .binary(Data(count: 70_000))],
            expected: Outcome(
                messages: [text, .binary(Data(count: 70_000)), .text("end")], closure: WebSocketClosure(code: 1001))),
        Row(
            name: "a close frame without a code", actions: [.closeWebSocket()],
            expected: Outcome(closure: WebSocketClosure(code: nil))),
        Row(
            name: "an error code", actions: [.message(text), .closeWebSocket(code: 4001, reason: "why")],
            expected: Outcome(
                messages: [text], closure: WebSocketClosure(code: 4001, reason: "why"), failure: .closed)),
        Row(
            name: "a closed connection", actions: [.message(text), .end(.close)],
            expected: Outcome(messages: [text], failure: .lost)),
        Row(
            name: "a reset connection", actions: [.message(text), .echoMessages(1), .end(.reset)], sent: [.text("x")],
            expected: Outcome(messages: [text, .text("x")], failure: .lost)),
        Row(
            name: "the end of the script", actions: [.message(text)],
            expected: Outcome(messages: [text], failure: .lost)),
        Row(
            name: "a cut message", actions: [.disconnect(afterBytes: 10, by: .close), .message(text), .message(text)],
            expected: Outcome(failure: .lost)),
        Row(
            name: "a cut after a message",
            actions: [.disconnect(afterBytes: 11, by: .close), .message(text), .message(text)],
            expected: Outcome(messages: [text], failure: .lost)),
        Row(
            name: "a slow message",
            actions: [
                .pace(Script.Pace(bytes: 1, every: .zero)), .delay(.milliseconds(1)), .message(text),
                .closeWebSocket(code: 1000),
            ], expected: Outcome(messages: [text], closure: WebSocketClosure(code: 1000))),
        Row(
            name: "fragments and pings",
            actions: [
                .send(Data([UInt8].frame(0x01, "a") + .frame(0x89, "p") + .frame(0x80, "b"))),
                .closeWebSocket(code: 1000),
            ], expected: Outcome(messages: [.text("ab")], closure: WebSocketClosure(code: 1000))),
        Row(
            name: "a reserved opcode", actions: [.message(text), .send(Data([0x83, 0x00])), .echoMessages()],
            expected: Outcome(messages: [text], failure: .invalid)),
        Row(
            name: "generated bytes", actions: [.generate(10), .echoMessages()], expected: Outcome(failure: .invalid)),
        Row(
            name: "invalid text", actions: [.send(Data([UInt8].frame(0x81, [0xFF]))), .echoMessages()],
            expected: Outcome(failure: .invalid)),
        Row(
            name: "a message above the limit", actions: [.message(long), .echoMessages()],
            expected: Outcome(failure: .tooLarge)),
        Row(
            name: "a subprotocol", actions: [.closeWebSocket(code: 1000)], headers: ["Sec-WebSocket-Protocol": "b"],
            expected: Outcome(closure: WebSocketClosure(code: 1000), subprotocol: "b")),
        Row(
            name: "compression", actions: [.echoMessages(2), .closeWebSocket(code: 1000)],
            headers: ["Sec-WebSocket-Extensions": "permessage-deflate"], sent: [text, text],
            expected: Outcome(messages: [text, text], closure: WebSocketClosure(code: 1000))),
        Row(
            name: "an unknown subprotocol", actions: [.closeWebSocket(code: 1000)],
            headers: ["Sec-WebSocket-Protocol": "c"],
            expected: Outcome(failure: .invalid)),
        Row(
            name: "an unknown extension", actions: [.closeWebSocket(code: 1000)],
            headers: ["Sec-WebSocket-Extensions": "x"],
            expected: Outcome(failure: .invalid)),
        Row(
            name: "a wrong answer to the key", actions: [.closeWebSocket(code: 1000)],
            headers: ["Sec-WebSocket-Accept": "x"],
            expected: Outcome(failure: .invalid)),
        Row(
            name: "another protocol", actions: [.closeWebSocket(code: 1000)], headers: ["Upgrade": "h2c"],
            expected: Outcome(failure: .invalid)),
    ]

    @Test(arguments: rows)
    func `a connection behaves as with a server`(row: Row) async throws {
        let script = Script([.acceptWebSocket(headers: row.headers)] + row.actions)
        let mocked = try await outcome(of: row, on: SessionManager(on: MockTransport(script: script)))
        #expect(mocked == row.expected)
        try await StubServer.with { server in
            server.route("/chat", script)
            let served = try await outcome(of: row, on: SessionManager(for: server))
            #expect(served == row.expected)
        }
    }

    private func outcome(of row: Row, on session: SessionManager) async throws -> Outcome {
        var outcome = Outcome()
        var options = WebSocketOptions()
        options.subprotocols = ["a", "b"]
        options.offersCompression = true
        options.maximumMessageSize = row.name.contains("limit") ? 1000 : 100_000
        do {
            try await session.withWebSocket(session.request(.get, "/chat"), options: options) { socket in
                outcome.subprotocol = socket.subprotocol
                for message in row.sent { try await socket.send(message) }
                defer { outcome.closure = socket.closure }
                for try await message in socket { outcome.messages.append(message) }
            }
        } catch let error as SessionError {
            let reason = try #require(error.reason)
            outcome.failure =
                switch reason {
                case .webSocketClosed: .closed
                case .invalidResponse: .invalid
                case .connectionLost: .lost
                case .responseTooLarge: .tooLarge
                default: .other(reason)
                }
        }
        return outcome
    }

    // MARK: Closing

    @Test func `the client closes the connection, and a script that echoes answers`() async throws {
        let transport = MockTransport(script: .webSocketEcho)
        try await withSocket(transport) { socket in
            try await socket.send(.text("a"))
            #expect(try await socket.first { _ in true } == .text("a"))
            try await socket.close(code: 4000, reason: "enough")
            #expect(socket.closure == WebSocketClosure(code: 4000))
            var iterator = socket.makeAsyncIterator()
            #expect(try await iterator.next() == nil)
            let error = await #expect(throws: TransportError.self) { try await socket.send(.text("late")) }
            guard case .webSocketClosed = error?.reason else { throw Planned() }
        }
        #expect(transport.requests.map(\.request.url.absoluteString) == ["https://a.example/chat"])
    }

    @Test func `a script that does not answer a close frame delays the end for 5 s of its clock`() async throws {
        let clock = ManualClock()
        let transport = MockTransport(script: Script([.acceptWebSocket(), .hang]), clock: clock)
        async let done: Void = withSocket(transport) { _ in }
        #expect(try await clock.sleepers(count: 1) == [.seconds(5)])
        clock.advance(by: .seconds(5))
        try await done
    }

    @Test func `the wait for the answer to a close frame is measured by the session's clock`() async throws {
        let clock = ManualClock()
        let session = SessionManager(on: MockTransport(script: Script([.acceptWebSocket(), .hang]))) {
            $0.clock = clock
        }
        async let done: Void = session.withWebSocket(Request(url: url("wss://a.example/chat"))) { _ in }
        #expect(try await clock.sleepers(count: 1) == [.seconds(5)])
        clock.advance(by: .seconds(5))
        try await done
    }

    static let endings: [Script.Action] = [.send(Data([0x83, 0x00])), .end(.reset), .closeWebSocket(code: 1011)]

    @Test(arguments: endings.indices)
    func `the iteration ends when the client closes, however the server ends`(index: Int) async throws {
        try await withSockets({ [.wait($0), Self.endings[index]] }) { socket, gate in
            let closing = Task.immediate { try? await socket.close() }
            gate.open()
            for try await _ in socket {}
            await closing.value
        }
    }

    @Test func `a cancelled task that closes waits for the answer`() async throws {
        try await withSockets({ [.wait($0), .echoMessages()] }) { socket, gate in
            let closing = Task.immediate {
                cancelCurrentTask()
                try await socket.close(code: 4000)
            }
            gate.open()
            try await closing.value
            #expect(socket.closure == WebSocketClosure(code: 4000))
        }
    }

    @Test func `an error of the closure ends the connection at once`() async throws {
        await #expect(throws: Planned.self) {
            try await withSocket(MockTransport(script: Script([.acceptWebSocket(), .hang]))) { _ in throw Planned() }
        }
    }

    @Test func `a socket that leaves its scope is closed`() async throws {
        let socket = try await withSocket(MockTransport(script: .webSocketEcho)) { $0 }
        await #expect(throws: TransportError.self) { try await socket.send(.text("late")) }
    }

    // MARK: Waiting

    @Test func `delays pass on the clock, while the client receives and sends`() async throws {
        let clock = ManualClock()
        let transport = MockTransport(
            script: Script([
                .acceptWebSocket(), .message(.text("a")), .delay(.seconds(60)), .echoMessages(1), .closeWebSocket(),
            ]), clock: clock)
        let messages = try await withSocket(transport) { socket in
            var messages: [WebSocketMessage] = []
            for try await message in socket {
                messages.append(message)
                guard messages.count == 1 else { continue }
                try await socket.send(.text("b"))
                try await clock.sleepers(count: 1)
                clock.advance(by: .seconds(60))
            }
            return messages
        }
        #expect(messages == [.text("a"), .text("b")])
    }

    @Test(arguments: [true, false])
    func `the total time limit includes the time that the connection is open`(isOfRequest: Bool) async throws {
        let clock = ManualClock()
        let transport = MockTransport(script: Script([.acceptWebSocket(), .message(.text("a")), .hang]), clock: clock)
        let session = SessionManager(on: transport) {
            $0.clock = clock
            if !isOfRequest { $0.timeouts.total = .seconds(10) }
        }
        var request = try Request(url: url("wss://a.example/chat"))
        if isOfRequest { request.timeout = .seconds(10) }
        let received = EventList<WebSocketMessage>()
        let task = Task { [request] in
            try await session.withWebSocket(request) { socket in
                for try await message in socket { await received.append(message) }
            }
        }
        #expect(try await clock.sleepers(count: 1) == [.seconds(10)])
        clock.advance(by: .seconds(10))
        let error = await #expect(throws: SessionError.self) { try await task.value }
        #expect(error?.reason == .timedOut(.responseBody))
        #expect(await received.values == [.text("a")])
    }

    @Test func `there is one reader at a time`() async throws {
        try await withSockets({ _ in [.echoMessages()] }) { socket, _ in
            let first = Task.immediate { try await socket.first { _ in true } }
            let error = await #expect(throws: TransportError.self) { try await socket.first { _ in true } }
            guard case .internalInconsistency = error?.reason else { throw Planned() }
            try await socket.send(Self.text)
            #expect(try await first.value == Self.text)
        }
    }

    @Test func `a gate holds the script back`() async throws {
        let gate = try ScriptGate()
        let script = Script([.acceptWebSocket(), .wait(gate), .closeWebSocket(code: 1000)])
        try await withSocket(MockTransport(script: script)) { socket in
            #expect(socket.closure == nil)
            gate.open()
            for try await _ in socket {}
            #expect(socket.closure?.code == 1000)
        }
    }

    @Test(arguments: [[.hang], [.echoMessages()]] as [[Script.Action]])
    func `shutting the transport down ends the connection`(actions: [Script.Action]) async throws {
        let transport = MockTransport(script: Script([.acceptWebSocket()] + actions))
        let error = try await sessionError {
            try await withSocket(transport) { socket in
                await transport.shutdown()
                for try await _ in socket {}
            }
        }
        #expect(error.reason == .shutDown)
    }

    @Test func `the end of a session by cancelling is a cancellation to the closure of a connection`() async throws {
        let session = SessionManager(on: MockTransport(script: Script([.acceptWebSocket(), .hang])))
        let request = Request(url: try url("wss://a.example/chat"))
        let failures = EventList<String>()
        func note(_ body: () async throws -> Void) async {
            do { try await body() } catch { await failures.append("\(type(of: error))") }
        }
        await note {
            try await session.withWebSocket(request) { socket in
                await session.invalidate(cancellingTasks: true)
                await note { for try await _ in socket {} }
                await note { try await socket.send(Self.text) }
                for try await _ in socket {}
            }
        }
        #expect(await failures.values == ["CancellationError", "CancellationError", "CancellationError"])
    }

    @Test func `cancelling ends the connection`() async throws {
        let transport = MockTransport(script: .webSocketEcho)
        let task = Task { try await withSocket(transport) { for try await _ in $0 {} } }
        try await transport.requests(count: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `cancelling the call ends the reading of other tasks with the same error`() async throws {
        let (readers, continuation) = AsyncStream.makeStream(of: Task<Void, any Error>.self)
        let task = Task {
            try await withSocket(MockTransport(script: .webSocketEcho)) { socket in
                let reader = Task { for try await _ in socket {} }
                continuation.yield(reader)
                try await reader.value
            }
        }
        let reader = try #require(await readers.first { _ in true })
        task.cancel()
        await #expect(throws: CancellationError.self) { try await reader.value }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `a task that stops reading does not end the connection`() async throws {
        try await withSocket(MockTransport(script: .webSocketEcho)) { socket in
            let reader = Task.immediate { try await socket.first { _ in true } }
            reader.cancel()
            await #expect(throws: CancellationError.self) { try await reader.value }
            try await socket.send(.text("x"))
            #expect(try await socket.first { _ in true } == .text("x"))
        }
    }

    // MARK: Interceptors

    /// Sends a request for each path at the same time, and returns the last path's response when all are answered.
    private static func opening(_ paths: [String]) -> Intercepting {
        Intercepting { request, next in
            try await withThrowingTaskGroup(of: OpenResponse.self) { group in
                for path in paths {
                    group.addTask {
                        var request = request
                        request.url = try url("https://a.example/\(path)")
                        return try await next(request)
                    }
                }
                var chosen: OpenResponse?
                for try await response in group where response.head.url.lastPathComponent == paths.last {
                    chosen = response
                }
                return try #require(chosen)
            }
        }
    }

    @Test(arguments: [["a", "b"], ["b", "a"]])
    func `the connection is that of the response which an interceptor returns`(paths: [String]) async throws {
        let gates = [try ScriptGate(), try ScriptGate()]
        // The connection that is returned is the first or the last one that opens.
        let transport = MockTransport { request in
            let path = request.url.lastPathComponent
            return MockResponse(
                Script([
                    .wait(gates[path == "a" ? 0 : 1]), .acceptWebSocket(), .message(.text(path)),
                    .closeWebSocket(code: 1000),
                ]))
        }
        let session = SessionManager(on: transport) {
            $0.interceptors = [Self.opening(paths)]
        }
        async let message = session.withWebSocket(Request(url: url("wss://a.example/chat"))) { socket in
            try await socket.first { _ in true }
        }
        try await transport.requests(count: 2)
        gates[0].open()
        await Task.yield()
        gates[1].open()
        #expect(try await message == .text(paths[1]))
    }

    @Test func `the connection stays when an interceptor changes the body`() async throws {
        struct Copied: ResponseBodySource {
            let base: ResponseBody

            func next() async throws -> Data? {
                var iterator = base.makeAsyncIterator()
                return try await iterator.next()
            }
            var ending: ResponseEnding? { base.ending }
            func close() async {}
        }
        let transforming = Intercepting { request, next in
            var response = try await next(request)
            response.body = response.body.transforming { $0 }
            return response
        }
        let copying = Intercepting { request, next in
            let response = try await next(request)
            return OpenResponse(head: response.head, body: ResponseBody(source: Copied(base: response.body)))
        }
        for interceptors in [[transforming], [copying], [copying, transforming], [copying, copying]] {
            let session = SessionManager(on: MockTransport(script: .webSocketEcho)) {
                $0.interceptors = interceptors
                $0.attemptInterceptors = interceptors
            }
            try await session.withWebSocket(Request(url: url("wss://a.example/chat"))) { socket in
                try await socket.send(Self.text)
                #expect(try await socket.first { _ in true } == Self.text)
            }
        }
    }

    // MARK: Other responses

    @Test func `a script that refuses the connection is an error with its body`() async throws {
        let transport = MockTransport(script: .text("members only", status: 403))
        let error = try await sessionError { try await withSocket(transport) { _ in } }
        #expect(error.statusCode == 403)
        #expect(error.responseBody == Data("members only".utf8))
    }

    @Test func `an ordinary request is not answered by a WebSocket connection`() async throws {
        let session = SessionManager(on: MockTransport(script: .webSocketEcho))
        let error = try await sessionError { _ = try await session.data(for: session.request(.get, "/")) }
        #expect(error.reason == .invalidResponse(.notHTTP))
    }

    @Test func `a reply on an open connection is an error`() async throws {
        let transport = MockTransport(script: Script([.acceptWebSocket(), .reply(Reply())]))
        let error = try await sessionError { try await withSocket(transport) { for try await _ in $0 {} } }
        #expect(error.reason == .invalidResponse(.notHTTP))
    }
}
