// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import TestSupport
import Testing

/// WebSocket connections that are made again.
@Suite(.timeLimit(.minutes(5))) struct WebSocketReconnectionTests {
    /// The end of a first connection, and whether there is a second one.
    static let endings: [(name: String, script: Script, isRepeated: Bool)] = [
        ("lost", Script([.acceptWebSocket(), .message(.text("a")), .end(.close)]), true),
        ("1001", Script([.acceptWebSocket(), .message(.text("a")), .closeWebSocket(code: 1001)]), true),
        ("1012", Script([.acceptWebSocket(), .message(.text("a")), .closeWebSocket(code: 1012)]), true),
        ("503", .status(503), true),
        ("refused", .close, true),
        ("1000", Script([.acceptWebSocket(), .message(.text("a")), .closeWebSocket(code: 1000)]), false),
        ("1008", Script([.acceptWebSocket(), .message(.text("a")), .closeWebSocket(code: 1008)]), false),
        ("404", .status(404), false),
    ]

    @Test(arguments: endings.indices)
    func `a connection is made again after a loss, and not after an end`(index: Int) async throws {
        let (name, script, isRepeated) = Self.endings[index]
        try await StubServer.with { server in
            server.route(
                "/", script, Script([.acceptWebSocket(), .message(.text("b")), .closeWebSocket(code: 1000)]))
            let clock = ManualClock()
            let session = SessionManager(for: server) {
                $0.clock = clock
                $0.randomUnit = { 1 }
            }
            let request = try session.request(.get, "/")
            let received = Received()
            async let result: Void = session.withWebSockets(for: request) { socket in
                for try await message in socket { await received.add(message) }
            }
            if isRepeated {
                // The reconnection time and the first wait of the backoff.
                #expect(try await clock.sleepers(count: 1) == [.seconds(1.5)], "\(name)")
                clock.advance(by: .seconds(1.5))
                try await result
                #expect(await received.messages.last == .text("b"), "\(name)")
            } else {
                do { try await result } catch { #expect(name != "1000", "\(error)") }
                #expect(server.activity.requests.count == 1, "\(name)")
            }
        }
    }

    @Test func `the deadline of a policy begins when a connection is lost`() async throws {
        try await StubServer.with { server in
            server.route(
                "/", Script([.acceptWebSocket(), .message(.text("a")), .end(.close)]),
                Script([.acceptWebSocket(), .closeWebSocket(code: 1000)]))
            let clock = ManualClock()
            let session = SessionManager(for: server) {
                $0.clock = clock
                $0.randomUnit = { 1 }
            }
            var request = try session.request(.get, "/")
            request.retryPolicy = RetryPolicy(limit: .max).with { $0.deadline = .seconds(300) }
            async let result: Void = session.withWebSockets(for: request) { socket in
                clock.advance(by: .seconds(3_600))
                for try await _ in socket {}
            }
            #expect(try await clock.sleepers(count: 1) == [.seconds(1.5)])
            clock.advance(by: .seconds(1.5))
            try await result
        }
    }

    /// What a closure does with its first connection, and whether it receives a second one.
    struct Course: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let actions: [Script.Action]
        let isRepeated: Bool
        var error: String?
        let body: @Sendable (WebSocket) async throws -> Void
    }

    private static func read(_ socket: WebSocket) async throws { for try await _ in socket {} }

    /// Fails as a request to another server does, with an error that a retry policy retries.
    private static func fail(_ response: MockResponse) async throws {
        _ = try await SessionManager(on: MockTransport(response)).get("state", as: .data)
    }

    private static let lost = MockResponse.failure(TransportError(.connectionLost(.inBody(received: 0, expected: nil))))

    static let courses: [Course] = [
        Course(
            testDescription: "the closure says that it goes away", actions: [.echoMessages()], isRepeated: false
        ) { try await $0.close(code: 1001) },
        Course(
            testDescription: "the closure closes the connection after the server",
            actions: [.closeWebSocket(code: 1001)],
            isRepeated: false
        ) { socket in
            try await read(socket)
            try await socket.close()
        },
        Course(
            testDescription: "the closure returns before it has read that the server goes away",
            actions: [.message(.text("a")), .closeWebSocket(code: 1001)], isRepeated: false
        ) { socket in
            for try await _ in socket { break }
            while socket.closure == nil { await Task.yield() }
        },
        Course(
            testDescription: "the closure closes the connection, and reads on", actions: [.echoMessages()],
            isRepeated: false, error: "websocket_closed"
        ) { socket in
            try await socket.close(code: 1012)
            try await socket.send(.text("late"))
        },
        Course(
            testDescription: "a request fails while the connection is open", actions: [.echoMessages()],
            isRepeated: false, error: "status_rejected"
        ) { _ in try await fail(.status(.serviceUnavailable)) },
        Course(
            testDescription: "a request fails after a normal closure", actions: [.closeWebSocket(code: 1000)],
            isRepeated: false, error: "status_rejected"
        ) { socket in
            try await read(socket)
            try await fail(.status(.serviceUnavailable))
        },
        Course(
            testDescription: "a request fails after the server went away", actions: [.closeWebSocket(code: 1001)],
            isRepeated: false, error: "connection_lost"
        ) { socket in
            try await read(socket)
            try await fail(lost)
        },
        Course(
            testDescription: "a request fails after the closure has closed the connection", actions: [.echoMessages()],
            isRepeated: false, error: "connection_lost"
        ) { socket in
            try await socket.close()
            try await fail(lost)
        },
        Course(
            testDescription: "a request fails after a loss", actions: [.end(.close)], isRepeated: false,
            error: "status_rejected"
        ) { socket in
            try? await read(socket)
            try await fail(.status(.serviceUnavailable))
        },
        Course(testDescription: "a loss", actions: [.end(.close)], isRepeated: true) { try await read($0) },
        Course(testDescription: "a loss that the closure handles", actions: [.end(.close)], isRepeated: false) {
            try? await read($0)
        },
        Course(testDescription: "a failure of the server", actions: [.closeWebSocket(code: 1011)], isRepeated: true) {
            try await read($0)
        },
        Course(
            testDescription: "a failure of the server that the closure handles",
            actions: [.closeWebSocket(code: 1011)], isRepeated: false
        ) { try? await read($0) },
        Course(
            testDescription: "a message for a server that went away", actions: [.closeWebSocket(code: 1001)],
            isRepeated: true
        ) { socket in
            try await read(socket)
            try await socket.send(.text("late"))
        },
    ]

    @Test(arguments: courses)
    func `the end of a connection is distinguished from that of the closure`(course: Course) async throws {
        func run(_ session: SessionManager) async throws -> Int {
            var request = try session.request(.get, "/")
            request.retryPolicy = RetryPolicy(limit: 3)
            request.retryPolicy?.backoff = Backoff(base: .zero)
            var count = 0
            do {
                try await session.withWebSockets(for: request, reconnectionTime: .zero) { socket in
                    count += 1
                    if count == 1 { try await course.body(socket) }
                }
                #expect(course.error == nil)
            } catch {
                #expect(SessionError.label(of: error) == course.error, "\(error)")
            }
            return count
        }
        let script = Script([.acceptWebSocket()] + course.actions)
        let expected = course.isRepeated ? 2 : 1
        #expect(try await run(SessionManager(on: MockTransport(script: script))) == expected)
        try await StubServer.with { server in
            server.route("/", script)
            let count = try await run(SessionManager(for: server))
            #expect(count == expected)
        }
    }

    @Test func `a connection is made again if sending is the first to meet the loss, and the reader is behind`()
        async throws
    {
        let messages = (0..<8).map { Script.Action.message(.binary(Data(repeating: $0, count: 2_000))) }
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route(
                "/", Script([.acceptWebSocket()] + messages + [.wait(gate), .end(.reset)]),
                Script([.acceptWebSocket(), .echoMessages()]))
            let session = SessionManager(for: server) { $0.transfer.streamBufferSize = 1_000 }
            var request = try session.request(.get, "/")
            request.retryPolicy = RetryPolicy(limit: 3)
            request.retryPolicy?.backoff = Backoff(base: .zero)
            var count = 0
            try await session.withWebSockets(for: request, reconnectionTime: .zero) { socket in
                count += 1
                guard count == 1 else { return }
                _ = try await socket.first { _ in true }
                gate.open()
                try await server.connections(open: 0)
                while true { try await socket.send(.text("a")) }
            }
            #expect(count == 2)
        }
    }

    /// A connection whose loss sending and receiving describe differently.
    private struct LostLink: WebSocketLink {
        var subprotocol: String? { nil }
        var deflate: WebSocketDeflate? { nil }
        var closure: WebSocketClosure? { nil }

        func receive() async throws -> [WebSocketFrame]? { throw Self.loss(2) }
        func send(_ makeFrame: () throws -> WebSocketFrame) async throws { throw Self.loss(1) }
        func close(_ closure: WebSocketClosure) async throws {}
        func fail(_ violation: WebSocketViolation) {}

        static func loss(_ errno: Int32) -> TransportError {
            var context = FailureContext()
            context.errno = errno
            return TransportError(.connectionLost(.inBody(received: 0, expected: nil)), context: context)
        }
    }

    @Test(arguments: [1, 2, 3])
    func `a connection is made again after each error that it has thrown, and no other`(errno: Int32) async throws {
        let session = SessionManager(on: MockTransport(script: .webSocketEcho)) {
            $0.interceptors = [
                Intercepting { request, next in
                    var response = try await next(request)
                    response.head.webSocket = LostLink()
                    return response
                }
            ]
        }
        var request = try session.request(.get, "/")
        request.retryPolicy = RetryPolicy(limit: 3)
        request.retryPolicy?.backoff = Backoff(base: .zero)
        var count = 0
        do {
            try await session.withWebSockets(for: request, reconnectionTime: .zero) { socket in
                count += 1
                guard count == 1 else { return }
                await #expect(throws: TransportError.self) { try await socket.send(.text("a")) }
                await #expect(throws: TransportError.self) { try await socket.first { _ in true } }
                throw LostLink.loss(errno)
            }
        } catch {
            #expect(errno == 3, "\(error)")
        }
        #expect(count == (errno == 3 ? 1 : 2))
    }

    @Test func `a closure that has returned is not run again if its messages are lost`() async throws {
        var options = WebSocketOptions()
        options.closeTimeout = .milliseconds(10)
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket(), .hang]))
            let session = SessionManager(for: server)
            let request = try session.request(.get, "/")
            var count = 0
            let error = try await sessionError {
                try await session.withWebSockets(for: request, options: options, reconnectionTime: .zero) { socket in
                    count += 1
                    guard count == 1 else { return }
                    // More than the system's buffers take.
                    let message = WebSocketMessage.binary(Data(count: 32 << 20))
                    let sender = Task.immediate { try await socket.send(message) }
                    sender.cancel()
                    await #expect(throws: CancellationError.self) { try await sender.value }
                }
            }
            guard case .connectionLost(.inBody) = error.reason else { throw error }
            #expect(count == 1)
        }
    }

    @Test func `a close frame without a code ends the loop, also of a closure that sends`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket(), .closeWebSocket()]), .status(404))
            let session = SessionManager(for: server)
            let request = try session.request(.get, "/")
            let error = try await sessionError {
                try await session.withWebSockets(for: request, reconnectionTime: .zero) { socket in
                    while true { try await socket.send(.text("a")) }
                }
            }
            guard case .webSocketClosed? = error.reason else { throw error }
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test func `shutting the session down ends the wait for another connection as a cancellation`() async throws {
        let clock = ManualClock()
        let session = SessionManager(baseURL: URL(string: "http://a.example/")) {
            $0.transport = MockTransport(.failure(TransportError(.cannotConnect(.refused))))
            $0.clock = clock
        }
        let request = try session.request(.get, "/")
        let result = Task { try await session.withWebSockets(for: request) { _ in } }
        try await clock.sleepers(count: 1)
        await session.shutdown(draining: .zero)
        await #expect(throws: CancellationError.self) { try await result.value }
    }

    @Test func `the policy limits the connections that fail in a row`() async throws {
        try await StubServer.with { server in
            server.route("/", .status(503))
            let clock = ManualClock()
            let session = SessionManager(for: server) { $0.clock = clock }
            var request = try session.request(.get, "/")
            request.retryPolicy = RetryPolicy(limit: 2)
            let result = Task { [request] in try await session.withWebSockets(for: request) { _ in } }
            for _ in 1...2 {
                try await clock.sleepers(count: 1)
                clock.advance(by: .seconds(60))
            }
            let error = await #expect(throws: SessionError.self) { try await result.value }
            #expect(error?.statusCode == 503)
            #expect(server.activity.requests.count == 3)
        }
    }

    @Test func `without a policy, any Retry-After is waited for`() async throws {
        try await StubServer.with { server in
            server.route(
                "/", .status(503, headers: ["Retry-After": "120"]),
                Script([.acceptWebSocket(), .closeWebSocket(code: 1000)]))
            let clock = ManualClock()
            let session = SessionManager(for: server) { $0.clock = clock }
            let request = try session.request(.get, "/")
            async let result: Void = session.withWebSockets(for: request) { socket in for try await _ in socket {} }
            #expect(try await clock.sleepers(count: 1) == [.seconds(121)])
            clock.advance(by: .seconds(121))
            try await result
        }
    }

    @Test(arguments: [Script.Ending.close, .reset])
    func `a refusal whose body is cut is not a lost connection`(ending: Script.Ending) async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            let head = "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n"
            server.route("/", Script([.send(Data("\(head)cut".utf8)), .wait(gate), .end(ending)]))
            let session = SessionManager(for: server) {
                $0.interceptors = [
                    Intercepting { request, next in
                        let response = try await next(request)
                        gate.open()
                        return response
                    }
                ]
            }
            let request = try session.request(.get, "/")
            let error = try await sessionError { try await session.withWebSockets(for: request) { _ in } }
            #expect(error.statusCode == 404)
            #expect(error.responseBody == Data("cut".utf8))
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test func `an error of the closure ends the loop, and so does its return`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.acceptWebSocket(), .echoMessages()]))
            let session = SessionManager(for: server)
            let request = try session.request(.get, "/")
            await #expect(throws: Planned.self) {
                try await session.withWebSockets(for: request) { _ in throw Planned() }
            }
            try await session.withWebSockets(for: request) { socket in try await socket.send(.text("a")) }
            #expect(server.activity.requests.count == 2)
        }
    }

    @Test func `a path is resolved against the base URL, and messages are decoded`() async throws {
        struct Note: Decodable, Equatable { let text: String }
        try await StubServer.with { server in
            server.route(
                "/rooms/7",
                Script([.acceptWebSocket(), .message(.text(#"{"text": "hi"}"#)), .closeWebSocket(code: 1000)]))
            let session = SessionManager(for: server)
            let notes = try await session.withWebSocket("rooms/7", headers: [.userAgent: "test"]) { socket in
                var notes: [Note] = []
                for try await message in socket { notes.append(try message.decoded(as: Note.self)) }
                return notes
            }
            #expect(notes == [Note(text: "hi")])
            #expect(server.activity.requests.first?.headers["User-Agent"] == "test")
            #expect(throws: SerializationError.self) { try WebSocketMessage.binary(Data()).decoded(as: Note.self) }
        }
    }

    private actor Received {
        var messages: [WebSocketMessage] = []

        func add(_ message: WebSocketMessage) { messages.append(message) }
    }
}
