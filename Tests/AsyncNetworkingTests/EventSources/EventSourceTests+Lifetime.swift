// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

extension EventSourceTests {
    @Test func `a wait has a status with its end and the error of the connection`() async throws {
        let lost = TransportError(.connectionLost(.beforeResponse))
        let transport = MockTransport(.failure(lost), .hang)
        let source = session(transport).events(for: try Self.request())
        let task = Task { for try await _ in source {} }
        try await clock.sleepers(count: 1)
        var statuses = source.statuses.makeAsyncIterator()
        guard case .waiting(let date, let error)? = await statuses.next() else { throw Planned() }
        #expect(abs(date.timeIntervalSinceNow) < 60)
        guard case .connectionLost = (error as? SessionError)?.reason else { throw Planned() }
        clock.advance(by: .seconds(3))
        guard case .connecting? = await statuses.next() else { throw Planned() }
        task.cancel()
        guard case .closed? = await statuses.next() else { throw Planned() }
        #expect(await statuses.next() == nil)
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `an open connection has a status with its head`() async throws {
        let transport = MockTransport(.events(Self.events(1...3), then: .hang))
        let source = session(transport).events(for: try Self.request())
        var events = source.makeAsyncIterator()
        #expect(try await events.next() == Self.events(1...3)[0])
        var statuses = source.statuses.makeAsyncIterator()
        guard case .open(let head)? = await statuses.next() else { throw Planned() }
        #expect(head.mediaType == "text/event-stream")
    }

    @Test func `a source sends nothing before it is iterated, and its statuses end with it`() async throws {
        let transport = MockTransport(.hang)
        var statuses: BroadcastStream<EventSource.Status>.Iterator?
        do {
            let source = session(transport).events(for: try Self.request())
            statuses = source.statuses.makeAsyncIterator()
        }
        #expect(await statuses?.next() == nil)
        #expect(transport.requests.isEmpty)
    }

    /// A connection that is lost 100 s after its only event, if it has any.
    private static func lostLate(events: String) -> MockResponse {
        MockResponse([
            .head(.ok, [.contentType: "text/event-stream"]), .chunk(Data(events.utf8)), .pause(.seconds(100)),
            .fail(TransportError(.connectionLost(.inBody(received: 9, expected: nil)))),
        ])
    }

    private static let hasty = RetryPolicy(limit: .max).with { $0.deadline = .seconds(5) }

    @Test(arguments: ["data: 1\n\n", ""])
    func `the deadline of a policy begins when a connection is lost`(events: String) async throws {
        let isFirst = Lock(true)
        let transport = MockTransport(clock: clock) { _ in
            isFirst.withLock { exchange(&$0, with: false) } ? Self.lostLate(events: events) : .status(.noContent)
        }
        let session = session(transport) { $0.timeouts.idle = nil }
        let source = session.events(for: try Self.request(policy: Self.hasty))
        let task = Task { for try await _ in source {} }
        #expect(try await clock.passWaits(2) == [.seconds(100), .seconds(3)])
        try await task.value
    }

    @Test func `the deadline of a policy ends a wait with its reconnection time`() async throws {
        let transport = MockTransport(.failure(TransportError(.cannotConnect(.refused))))
        let source = session(transport).events(for: try Self.request(policy: Self.hasty))
        let events = source.makeAsyncIterator()
        clock.advance(by: .seconds(60))
        let task = Task {
            var events = events
            return try await events.next()
        }
        #expect(try await clock.passWaits(1) == [.seconds(3)])
        await #expect(throws: SessionError.self) { try await task.value }
        #expect(transport.requests.count == 2)
    }

    @Test func `the statuses go on for an iterator that outlives its source`() async throws {
        let transport = MockTransport(.events(Self.events(1...3), then: .hang))
        var (statuses, events): (BroadcastStream<EventSource.Status>.Iterator, EventSource.Iterator)
        do {
            let source = session(transport).events(for: try Self.request())
            (statuses, events) = (source.statuses.makeAsyncIterator(), source.makeAsyncIterator())
        }
        _ = try await events.next()
        guard case .open? = await statuses.next() else { throw Planned() }
    }

    @Test func `a second iteration ends immediately`() async throws {
        let transport = MockTransport(.events(Self.events(1...3)), .status(.noContent))
        let source = session(transport).events(for: try Self.request())
        var first = source.makeAsyncIterator()
        var second = source.makeAsyncIterator()
        #expect(try await second.next() == nil)
        #expect(try await first.next() == Self.events(1...3)[0])
    }

    @Test func `leaving the loop ends the exchange`() async throws {
        let session = session(MockTransport(.events(Self.events(1...3), then: .hang)))
        for try await event in session.events(for: try Self.request()) where event.id == "3" { break }
        await session.shutdown()
    }

    @Test func `after the end or an error there are no more events`() async throws {
        var source = session(MockTransport(.status(.noContent))).events(for: try Self.request()).makeAsyncIterator()
        #expect(try await source.next() == nil)
        #expect(try await source.next() == nil)
        source = session(MockTransport(.status(.notFound))).events(for: try Self.request()).makeAsyncIterator()
        await #expect(throws: SessionError.self) { try await source.next() }
        #expect(try await source.next() == nil)
    }

    @Test(
        arguments: [
            .hang, .events(events(1...3), then: .hang), .events([], then: .hang), .status(.serviceUnavailable),
        ] as [MockResponse])
    func `cancelling the task ends the exchange or the wait`(response: MockResponse) async throws {
        let transport = MockTransport(response)
        let session = session(transport)
        let source = session.events(for: try Self.request())
        let task = Task { for try await _ in source {} }
        try await transport.requests(count: 1)
        // The time limit of an exchange that hangs, or the wait.
        try await clock.sleepers(count: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(session.tasks.isEmpty)
    }

    @Test func `a cancelled task receives no event that has arrived before`() async throws {
        let transport = MockTransport(.stream(["data: 1\n\ndata: 2\n\n"], type: "text/event-stream", then: .hang))
        let source = session(transport).events(for: try Self.request())
        let task = Task {
            var count = 0
            await #expect(throws: CancellationError.self) {
                for try await _ in source {
                    count += 1
                    cancelCurrentTask()
                }
            }
            return count
        }
        #expect(await task.value == 1)
    }

    @Test func `a cancelled task sends nothing`() async throws {
        let transport = MockTransport(.hang)
        let source = session(transport).events(for: try Self.request())
        let task = Task {
            cancelCurrentTask()
            for try await _ in source {}
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(transport.requests.isEmpty)
    }

    @Test func `invalidating the session ends the exchange and the wait`() async throws {
        for response in [MockResponse.hang, .events(Self.events(1...3), then: .hang), .status(.serviceUnavailable)] {
            let transport = MockTransport(response)
            let session = session(transport)
            let source = session.events(for: try Self.request())
            let task = Task { for try await _ in source {} }
            try await transport.requests(count: 1)
            try await clock.sleepers(count: 1)
            await session.invalidate(cancellingTasks: true)
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    /// Receives the outcomes of calls.
    private struct OutcomeRecorder: EventMonitor {
        let outcomes = Lock([String]())

        func receive(_ event: TaskEvent, of task: AnySessionTask) {
            guard case .ended(let outcome, _) = event else { return }
            outcomes.withLock { $0.append("\(outcome)") }
        }
    }

    @Test func `shutting the session down does not wait for a source that nothing reads`() async throws {
        let monitor = OutcomeRecorder()
        let session = session(MockTransport(.events(Self.events(1...3), then: .hang))) {
            $0.eventMonitors = [monitor]
        }
        var events = session.events(for: try Self.request()).makeAsyncIterator()
        #expect(try await events.next() == Self.events(1...3)[0])
        await session.shutdown(draining: .zero)
        #expect(session.tasks.isEmpty)
        await #expect(throws: CancellationError.self) { while try await events.next() != nil {} }
        #expect(try await events.next() == nil)
        #expect(monitor.outcomes.withLock(\.count) == 1)
    }

    @Test func `a session can be shut down by the loop over its source`() async throws {
        let session = session(MockTransport(.events(Self.events(1...3), then: .hang)))
        await #expect(throws: CancellationError.self) {
            for try await _ in session.events(for: try Self.request()) { await session.shutdown(draining: .zero) }
        }
    }

    @Test func `a connection that nothing reads is a running request until the limit of a shutdown`() async throws {
        let session = session(MockTransport(.events(Self.events(1...3), then: .hang))) { $0.timeouts.idle = nil }
        var events = session.events(for: try Self.request()).makeAsyncIterator()
        _ = try await events.next()
        async let end: Void = session.shutdown(draining: .seconds(10))
        #expect(try await clock.sleepers(count: 1) == [.seconds(10)])
        #expect(session.tasks.count == 1)
        clock.advance(by: .seconds(10))
        await end
        #expect(session.tasks.isEmpty)
        await #expect(throws: CancellationError.self) { while try await events.next() != nil {} }
    }

    @Test func `invalidating the session ends a connection that nothing reads`() async throws {
        let session = session(MockTransport(.events(Self.events(1...3), then: .hang)))
        var events = session.events(for: try Self.request()).makeAsyncIterator()
        _ = try await events.next()
        await session.invalidate(cancellingTasks: true)
        // Returns when no request is left.
        await session.shutdown()
        await #expect(throws: CancellationError.self) { while try await events.next() != nil {} }
    }

    @Test func `nothing is read ahead of a slow reader`() async throws {
        let chunks = EventList<Data>()
        let session = session(MockTransport(.events(Self.events(1...1000)))) {
            $0.interceptors = [ChunkRecorder(chunks: chunks)]
        }
        for try await _ in session.events(for: try Self.request()) { break }
        #expect(await chunks.values.count == 1)
    }

    @MainActor @Test func `a function on the main actor can iterate a source`() async throws {
        var data: [String] = []
        let session = session(MockTransport(.events(Self.events(1...3)), .status(.noContent)))
        for try await event in session.events(for: try Self.request()) {
            data.append(event.data)
            if data.count == 3 { break }
        }
        #expect(data == ["event 1", "event 2", "event 3"])
    }

    /// Records the chunks of each response when they are read.
    private struct ChunkRecorder: Interceptor {
        let chunks: EventList<Data>

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            var response = try await next(request)
            response.body = ResponseBody(source: Source(base: response.body, chunks: chunks))
            return response
        }

        private struct Source: ResponseBodySource {
            let base: ResponseBody
            let chunks: EventList<Data>
            var ending: ResponseEnding? { base.ending }

            func next() async throws -> Data? {
                var iterator = base.makeAsyncIterator()
                guard let chunk = try await iterator.next() else { return nil }
                await chunks.append(chunk)
                return chunk
            }
        }
    }
}
