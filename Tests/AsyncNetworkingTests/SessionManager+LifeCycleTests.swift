// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

extension SessionManager {
    /// Waits until requests are refused, which shows that a concurrent life-cycle call has started.
    fileprivate func isRefusing() async throws {
        try await eventually {
            let probe = upload("probe", body: .none)
            probe.cancel()
            do {
                _ = try await probe.value
                return false
            } catch let error as SessionError where error.isInvalidated {
                return true
            } catch is CancellationError {
                return false
            }
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct InvalidationTests {
    @Test func `subsequent requests of every kind are refused`() async throws {
        let transport = MockTransport(.text("x"))
        let manager = SessionManager(on: transport)
        await manager.invalidate(cancellingTasks: false)
        let request = try manager.request(.get, "x")
        let attempts: [() async throws -> Void] = [
            { _ = try await manager.get("x") },
            { _ = try await manager.data(for: request) },
            { _ = try await manager.value(for: request, as: .string) },
            { try await manager.withResponse(for: request) { _, _ in } },
            { _ = try await manager.upload("x", body: .string("a")).value },
            { _ = try await manager.download("x", to: "/nowhere/file").value },
        ]
        for attempt in attempts {
            #expect(try await sessionError(attempt).isInvalidated)
        }
        #expect(transport.requests.isEmpty)
    }

    @Test func `without cancelling, running requests finish, including redirects`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { request in
            request.url.path == "/b"
                ? .text("end") : MockResponse([.wait(gate), .head(.found, [.location: "/b"])])
        }
        let manager = SessionManager(on: transport)
        async let running = manager.get("x").text
        try await transport.requests(count: 1)
        await manager.invalidate(cancellingTasks: false)
        #expect(manager.tasks.count == 1)
        gate.open()
        #expect(try await running == "end")
        #expect(manager.tasks.isEmpty)
    }

    @Test func `with cancelling, running requests throw CancellationError`() async throws {
        let transport = MockTransport(.hang)
        let manager = SessionManager(on: transport)
        let data = Task { try await manager.get("x") }
        let upload = manager.upload("x", body: .string("a"))
        try await transport.requests(count: 2)
        await manager.invalidate(cancellingTasks: true)
        await #expect(throws: CancellationError.self) { _ = try await data.value }
        await #expect(throws: CancellationError.self) { _ = try await upload.value }
        #expect(try await sessionError { _ = try await manager.get("x") }.isInvalidated)
    }

    @Test func `requests that were to finish can still be cancelled`() async throws {
        let transport = MockTransport(.hang)
        let manager = SessionManager(on: transport)
        let data = Task { try await manager.get("x") }
        try await transport.requests(count: 1)
        await manager.invalidate(cancellingTasks: false)
        await manager.invalidate(cancellingTasks: true)
        await manager.invalidate(cancellingTasks: false)
        await #expect(throws: CancellationError.self) { _ = try await data.value }
    }

    @Test func `on libcurl, running requests throw CancellationError in every phase`() async throws {
        try await StubServer.with { server in
            server.route("/silent", .hang)
            server.route(
                "/begun", Script([.reply(Reply(body: .string("a"), framing: .contentLength(declared: 9))), .hang]))
            let manager = SessionManager(for: server)
            let silent = Task { try await manager.get("silent") }
            let begun = Task { try await manager.get("begun") }
            let streamed = Task {
                try await manager.withResponse(for: manager.request(.get, "begun")) { _, body in
                    for try await _ in body {}
                }
            }
            try await server.requests(count: 3)
            await manager.invalidate(cancellingTasks: true)
            await #expect(throws: CancellationError.self) { _ = try await silent.value }
            await #expect(throws: CancellationError.self) { _ = try await begun.value }
            await #expect(throws: CancellationError.self) { try await streamed.value }
            try await server.connections(open: 0)
        }
    }

    @Test func `the program's closures find running requests cancelled`() async throws {
        let transport = MockTransport { $0.url.path == "/v1/open" ? MockResponse([.head(.ok), .hang]) : .hang }
        let (ends, decisions) = (EventList<String>(), EventList<String>())
        let manager = SessionManager(on: transport) {
            $0.retryPolicy = RetryPolicy(limit: 1).with {
                $0.decision = { context in
                    await decisions.append("\(context.result)")
                    return .stop
                }
            }
        }
        let data = Task { try await manager.get("x") }
        let streamed = Task {
            try await manager.withResponse(for: manager.request(.get, "open")) { _, body in
                await ends.append("open")
                do {
                    for try await _ in body {}
                } catch {
                    await ends.append("\(type(of: error))")
                    throw error
                }
            }
        }
        try await transport.requests(count: 2)
        try await eventually { await ends.values == ["open"] }
        await manager.invalidate(cancellingTasks: true)
        await #expect(throws: CancellationError.self) { _ = try await data.value }
        await #expect(throws: CancellationError.self) { try await streamed.value }
        #expect(await ends.values == ["open", "CancellationError"])
        #expect(await decisions.values.isEmpty)
    }

    @Test func `a transport that was shut down elsewhere is an error, not a cancellation`() async throws {
        let transport = MockTransport(.text("x"))
        await transport.shutdown()
        let error = try await sessionError { _ = try await SessionManager(on: transport).get("x") }
        guard case .shutDown = error.reason else { throw error }
    }
}

@Suite(.timeLimit(.minutes(5))) struct ShutdownTests {
    private let clock = ManualClock()

    private func manager(on transport: MockTransport) -> SessionManager {
        SessionManager(on: transport) { [clock] in $0.clock = clock }
    }

    @Test func `it waits for running requests, then shuts the transport down`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport(MockResponse([.wait(gate), .head(.ok)]))
        let manager = manager(on: transport)
        async let running = manager.get("x").statusCode
        try await transport.requests(count: 1)
        let shutdown = Task { await manager.shutdown() }
        try await manager.isRefusing()
        #expect(manager.tasks.map(\.kind) == [.data])
        gate.open()
        #expect(try await running == 200)
        await shutdown.value
        await #expect(throws: TransportError.self) {
            try await transport.withResponse(
                for: manager.request(.get, "x"), delivery: .streamed, reporting: nil
            ) { _, _ in }
        }
    }

    @Test func `it waits for a transfer that was started just before`() async throws {
        let manager = manager(on: MockTransport(.text("x")))
        let task = manager.upload("up", body: .string("a"))
        await manager.shutdown()
        #expect(try await task.value.text == "x")
    }

    @Test func `running requests are cancelled at the limit`() async throws {
        let transport = MockTransport(.hang)
        let manager = manager(on: transport)
        let running = Task { try await manager.get("x") }
        // The exchange has a time limit of its own.
        #expect(try await clock.sleepers(count: 1) == [.seconds(60)])
        let shutdown = Task { await manager.shutdown(draining: .seconds(30)) }
        #expect(try await clock.sleepers(count: 2) == [.seconds(30), .seconds(60)])
        #expect(manager.tasks.count == 1)
        clock.advance(by: .seconds(30))
        await shutdown.value
        await #expect(throws: CancellationError.self) { _ = try await running.value }
        #expect(manager.tasks.isEmpty)
    }

    @Test func `it returns before the limit when all requests have ended`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport(MockResponse([.wait(gate), .head(.ok)]))
        let manager = manager(on: transport)
        async let running = manager.get("x").statusCode
        try await transport.requests(count: 1)
        let shutdown = Task { await manager.shutdown(draining: .seconds(30)) }
        try await clock.sleepers(count: 1)
        gate.open()
        await shutdown.value
        #expect(try await running == 200)
        #expect(clock.sleepers.isEmpty)
    }

    @Test(arguments: [Duration.zero, .seconds(-1)])
    func `with a limit of zero or less, running requests are cancelled at once`(limit: Duration) async throws {
        let transport = MockTransport(.hang)
        let manager = manager(on: transport)
        let running = Task { try await manager.get("x") }
        try await transport.requests(count: 1)
        await manager.shutdown(draining: limit)
        await #expect(throws: CancellationError.self) { _ = try await running.value }
    }

    @Test func `cancelling its caller cancels running requests, and it still waits for their end`() async throws {
        let transport = MockTransport(.hang)
        let manager = manager(on: transport)
        let request = try manager.request(.get, "x")
        let data = Task { try await manager.data(for: request) }
        let streamed = Task { try await manager.withResponse(for: request) { _, _ in } }
        try await transport.requests(count: 2)
        let shutdown = Task { await manager.shutdown() }
        try await manager.isRefusing()
        shutdown.cancel()
        await shutdown.value
        #expect(manager.tasks.isEmpty)
        await #expect(throws: CancellationError.self) { _ = try await data.value }
        await #expect(throws: CancellationError.self) { try await streamed.value }
    }

    @Test func `shutdown from an already cancelled task cancels hanging requests`() async throws {
        let transport = MockTransport(.hang)
        let manager = manager(on: transport)
        let running = Task { try await manager.get("x") }
        try await transport.requests(count: 1)
        let order = EventList<String>()
        Task {
            cancelCurrentTask()
            await manager.shutdown()
            await order.append("shut down")
        }
        try await eventually(within: .seconds(50)) { await order.values == ["shut down"] }
        await #expect(throws: CancellationError.self) { _ = try await running.value }
    }

    @Test func `with a caller already cancelled, it still waits until running closures have ended`() async throws {
        let leave = try ScriptGate()
        let manager = manager(on: MockTransport(.text("x")))
        let other = SessionManager(on: MockTransport(MockResponse([.wait(leave), .head(.ok)])))
        let order = EventList<String>()
        let request = try manager.request(.get, "x")
        let scope = Task {
            try await manager.withResponse(for: request) { _, _ in
                await order.append("scope began")
                _ = try await other.get("wait")
                await order.append("scope ended")
            }
        }
        try await eventually { await order.values == ["scope began"] }
        let shutdown = Task {
            cancelCurrentTask()
            await manager.shutdown()
            await order.append("shut down")
        }
        try await manager.isRefusing()
        leave.open()
        await shutdown.value
        try await scope.value
        #expect(await order.values == ["scope began", "scope ended", "shut down"])
    }

    @Test func `it can be called repeatedly and concurrently`() async throws {
        let transport = MockTransport(.hang)
        let manager = manager(on: transport)
        let running = Task { try await manager.get("x") }
        try await transport.requests(count: 1)
        let patient = Task { await manager.shutdown() }
        try await manager.isRefusing()
        await manager.shutdown(draining: .zero)
        await patient.value
        await manager.shutdown()
        await manager.invalidate(cancellingTasks: true)
        await #expect(throws: CancellationError.self) { _ = try await running.value }
    }

    @Test func `a manager that was never used shuts down`() async throws {
        let manager = SessionManager()
        await manager.shutdown()
        #expect(try await sessionError { _ = try await manager.get("http://127.0.0.1/") }.isInvalidated)
    }

    @Test func `on libcurl, it waits until the limit and closes the connections`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/gated", Script([.wait(gate), .reply(Reply(body: .string("x")))]))
            server.route("/silent", .hang)
            let draining = SessionManager(for: server)
            async let running = draining.get("gated").text
            try await server.requests(count: 1)
            let shutdown = Task { await draining.shutdown(draining: .seconds(3600)) }
            try await draining.isRefusing()
            gate.open()
            await shutdown.value
            #expect(try await running == "x")
            try await server.connections(open: 0)

            let impatient = SessionManager(for: server)
            let silent = Task { try await impatient.get("silent") }
            try await server.activity { $0.requests.contains { $0.path == "/silent" } }
            await impatient.shutdown(draining: .zero)
            await #expect(throws: CancellationError.self) { _ = try await silent.value }
            try await server.connections(open: 0)
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct WithSessionTests {
    @Test func `the closure's value is returned, and the manager is shut down`() async throws {
        let transport = MockTransport(.text("x"))
        let (text, manager) = try await withSession { configuration in
            configuration.transport = transport
        } _: { manager in
            (try await manager.get("http://a.example/").text, manager)
        }
        #expect(text == "x")
        #expect(try await sessionError { _ = try await manager.get("http://a.example/") }.isInvalidated)
    }

    @Test func `requests that the closure left running are cancelled, also when it throws`() async throws {
        let transport = MockTransport(.hang)
        let left = EventList<UploadTask>()
        await #expect(throws: Planned(number: 2)) {
            try await withSession(baseURL: url("http://a.example/")) { configuration in
                configuration.transport = transport
            } _: { manager in
                await left.append(manager.upload("up", body: .string("a")))
                try await transport.requests(count: 1)
                throw Planned(number: 2)
            }
        }
        let task = try #require(await left.values.first)
        await #expect(throws: CancellationError.self) { _ = try await task.value }
    }
}

@Suite(.timeLimit(.minutes(5))) struct TaskListTests {
    @Test func `running tasks are listed, oldest first, until they end`() async throws {
        let transport = MockTransport(.hang)
        let manager = SessionManager(on: transport)
        let request = try manager.request(.get, "stream")
        let directory = try TemporaryDirectory()

        let data = Task { _ = try await manager.get("data") }
        try await transport.requests(count: 1)
        let stream = Task { try await manager.withResponse(for: request) { _, _ in } }
        try await transport.requests(count: 2)
        // Tasks that functions return are listed from their creation on.
        let upload = manager.upload("upload", body: .string("x"))
        let download = manager.download("download", to: "\(directory.path)/file")
        let tasks = manager.tasks
        #expect(tasks.map(\.kind) == [.data, .stream, .upload, .download])
        #expect(tasks.map(\.request?.url.lastPathComponent) == ["data", "stream", "upload", "download"])
        #expect(tasks.map(\.id) == tasks.map(\.id).sorted())
        #expect(Set(tasks.map(\.id)).count == 4)

        data.cancel()
        _ = await data.result
        #expect(manager.tasks.map(\.kind) == [.stream, .upload, .download])
        stream.cancel()
        upload.cancel()
        download.cancel()
        _ = await stream.result
        _ = try? await upload.value
        _ = try? await download.value
        #expect(manager.tasks.isEmpty)
    }
}
