// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

/// A request whose task is cancelled throws `CancellationError`, in every phase.
@Suite(.timeLimit(.minutes(5))) struct CancellationTests {
    private static let beginning = MockResponse([.head(.ok), .chunk(Data("a".utf8)), .hang])

    /// Starts a request and cancels it once `isThere` returns.
    private func cancel(
        _ request: @escaping @Sendable () async throws -> Void, once isThere: () async throws -> Void
    ) async throws {
        let task = Task { try await request() }
        try await isThere()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `before it is sent`() async throws {
        let transport = MockTransport(.text("x"))
        let manager = SessionManager(on: transport)
        let task = Task {
            cancelCurrentTask()
            _ = try await manager.get("x")
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(transport.requests.isEmpty)
        #expect(manager.tasks.isEmpty)
    }

    @Test(arguments: [MockResponse.hang, beginning])
    func `while the response is awaited or collected`(response: MockResponse) async throws {
        let transport = MockTransport(response)
        let manager = SessionManager(on: transport)
        try await cancel {
            _ = try await manager.get("x")
        } once: {
            try await transport.requests(count: 1)
        }
        #expect(manager.tasks.isEmpty)
    }

    /// Passes a response on when its body has ended.
    private struct Patience: Interceptor {
        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            let response = try await next(request)
            var iterator = response.body.makeAsyncIterator()
            #expect(try await iterator.next() == nil)
            return response
        }
    }

    @Test func `while the response is whole, and the body of the request is still sent`() async throws {
        try await StubServer.with { server in
            var script = Script.status(204)
            script.readsBodyFirst = false
            script.actions.insert(.readBody(upTo: 4), at: 0)
            server.route("/open", script)
            let manager = SessionManager(for: server) {
                $0.attemptInterceptors = [Patience()]
                $0.transfer.timeouts.idle = nil
            }
            let (body, source) = AsyncStream<Data>.makeStream()
            let (ended, end) = AsyncStream<Never>.makeStream()
            source.onTermination = { _ in end.finish() }
            let producer = Task {
                while case .enqueued = source.yield(Data("ping".utf8)) { try await Task.sleep(for: .milliseconds(5)) }
            }
            let request = try manager.request(.post, "open", body: .stream(body))
            let (begun, begin) = AsyncStream<Never>.makeStream()
            try await cancel {
                try await manager.withResponse(for: request) { head, _ in
                    #expect(head.status == .noContent)
                    begin.finish()
                    // Until nothing more of the body is wanted.
                    for await _ in ended {}
                    try Task.checkCancellation()
                }
            } once: {
                for await _ in begun {}
            }
            // The stream ends with its iteration only if that was waiting for a chunk.
            producer.cancel()
            _ = await producer.result
        }
    }

    @Test func `while the body is streamed`() async throws {
        let manager = SessionManager(on: MockTransport(Self.beginning))
        let request = try manager.request(.get, "x")
        let read = EventList<Data>()
        try await cancel {
            try await manager.withResponse(for: request) { _, body in
                for try await chunk in body { await read.append(chunk) }
            }
        } once: {
            try await eventually { await read.values.count == 1 }
        }
    }

    @Test func `in the second exchange of a redirect`() async throws {
        let transport = MockTransport(.redirect(.found, to: "/b"), .hang)
        let manager = SessionManager(on: transport)
        try await cancel {
            _ = try await manager.get("x")
        } once: {
            try await transport.requests(count: 2)
        }
    }

    @Test func `between two exchanges`() async throws {
        let transport = MockTransport(.redirect(.found, to: "/b"), .text("end"))
        let manager = SessionManager(on: transport) {
            $0.redirectPolicy.decision = { redirection in
                cancelCurrentTask()
                return redirection.proposed
            }
        }
        await #expect(throws: CancellationError.self) {
            try await Task { _ = try await manager.get("x") }.value
        }
        #expect(transport.requests.count == 1)
    }

    @Test func `while a redirect decision is running`() async throws {
        let asked = EventList<URL>()
        let clock = ManualClock()
        let manager = SessionManager(on: MockTransport(.redirect(.found, to: "/b"))) {
            $0.redirectPolicy.decision = { redirection in
                await asked.append(redirection.proposed.url)
                try await clock.sleep(for: .seconds(1))
                return nil
            }
        }
        try await cancel {
            _ = try await manager.get("x")
        } once: {
            try await eventually { await asked.values.count == 1 }
        }
    }

    @Test func `between the head of the response and its body, while the body of the request is still sent`()
        async throws
    {
        try await StubServer.with { server in
            server.route(
                "/open",
                Script(
                    [
                        .readBody(upTo: 4), .reply(Reply(body: .string("a"), framing: .contentLength(declared: 9))),
                        .hang,
                    ], readsBodyFirst: false))
            let (received, isSeen) = (try ScriptGate(), try ScriptGate())
            let manager = SessionManager(for: server) {
                $0.attemptInterceptors = [
                    Intercepting { request, next in
                        let response = try await next(request)
                        received.open()
                        // Does not notice the cancellation.
                        try await Task { try await isSeen.wait() }.value
                        return OpenResponse(
                            head: response.head, body: ResponseBody(try await response.body.collect(upTo: 9)))
                    }
                ]
            }
            let (body, source) = AsyncStream<Data>.makeStream()
            source.yield(Data("ping".utf8))
            let task = manager.upload("open", body: .stream(body))
            try await received.wait()
            task.cancel()
            source.yield(Data("pong".utf8))
            try await server.activity { $0.requests.count { $0.isAbandoned } == 1 }
            isSeen.open()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    /// A cancellation during a closure of the program: of the task, or by the session.
    private static let causes = ["task", "session"]

    private func perform(
        _ cause: String, on transport: MockTransport,
        _ configure: (inout SessionConfiguration, _ cancel: @escaping @Sendable () async -> Void) -> Void
    ) async throws {
        let session = Lock<SessionManager?>(nil)
        let manager = SessionManager(
            .on(transport) {
                configure(&$0) {
                    guard cause == "session" else { return cancelCurrentTask() }
                    await session.withLock(\.self)?.invalidate(cancellingTasks: true)
                }
            })
        session.set(\.self, to: manager)
        let task = Task { try await manager.data(for: manager.request(.get, "x")) }
        await #expect(throws: CancellationError.self) { try await task.value }
        session.set(\.self, to: nil)
        #expect(transport.requests.count == 1)
    }

    @Test(arguments: causes, [MockResponse.status(.badGateway), .failure(TransportError(.cannotResolve))])
    func `while the decision about a retry is running, whatever it is`(cause: String, response: MockResponse)
        async throws
    {
        try await perform(cause, on: MockTransport(response)) { configuration, cancel in
            configuration.retryPolicy = RetryPolicy(limit: 1).with {
                $0.decision = { _ in
                    await cancel()
                    return .stop
                }
            }
        }
    }

    @Test(arguments: causes)
    func `while a challenge is handled, whatever the answer is`(cause: String) async throws {
        let transport = MockTransport(.status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=x"]))
        try await perform(cause, on: transport) { configuration, cancel in
            configuration.authentication.challengeHandler = { _ in
                await cancel()
                return .performDefaultHandling
            }
        }
    }

    @Test(arguments: causes)
    func `while a redirect decision is running, whatever it is`(cause: String) async throws {
        try await perform(cause, on: MockTransport(.redirect(.found, to: "/b"))) { configuration, cancel in
            configuration.redirectPolicy.decision = { _ in
                await cancel()
                return nil
            }
        }
    }

    @Test func `by a serializer that checks for it`() async throws {
        let manager = SessionManager(on: MockTransport(.text("x")))
        let request = try manager.request(.get, "x")
        let serializer = HandWritten {
            cancelCurrentTask()
            try Task.checkCancellation()
        }
        await #expect(throws: CancellationError.self) {
            try await Task { try await manager.value(for: request, as: serializer) }.value
        }
    }

    @Test func `while a body is read from its source`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.hang], readsBodyFirst: false))
            let manager = SessionManager(for: server)
            // A stream that ends early because it is cancelled must not be reported as too short.
            let (chunks, continuation) = AsyncStream.makeStream(of: Data.self)
            continuation.yield(Data("a".utf8))
            let request = try manager.request(.post, "/", body: .stream(chunks, length: 2))
            try await cancel {
                _ = try await manager.data(for: request)
            } once: {
                try await server.requests(count: 1)
            }
        }
    }

    @Test func `on libcurl, at every point at which the server can stall`() async throws {
        try await StubServer.with { server in
            server.route("/silent", .hang)
            server.route(
                "/begun", Script([.reply(Reply(body: .string("a"), framing: .contentLength(declared: 9))), .hang]))
            server.route("/redirect", .redirect(302, to: "/silent"))
            let manager = SessionManager(for: server)
            for path in ["silent", "begun", "redirect"] {
                let before = server.activity.requests.count
                try await cancel {
                    _ = try await manager.get(path)
                } once: {
                    try await server.requests(count: before + (path == "redirect" ? 2 : 1))
                }
            }
            try await server.activity { $0.requests.count { $0.isAbandoned } == 3 }
            #expect(manager.tasks.isEmpty)
        }
    }
}
