// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct CancellationTests {
    /// Starts a request, waits for `moment`, cancels it and expects `CancellationError`.
    private func cancel(
        _ request: Request, _ transport: CurlTransport? = nil, delivery: BodyDelivery = .streamed,
        when moment: () async throws -> Void
    ) async throws {
        let transport = try transport ?? CurlTransport()
        let task = Task {
            try await transport.withResponse(for: request, delivery: delivery, reporting: nil) { _, body in
                for try await _ in body {}
            }
        }
        try await moment()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `a task that is cancelled already sends nothing`() async throws {
        try await StubServer.with { server in
            let transport = try CurlTransport()
            let task = Task {
                while !Task.isCancelled { await Task.yield() }
                return try await transport.collect(server.request()).body
            }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(server.activity.connectionsAccepted == 0)
        }
    }

    @Test func `while it waits for a connection`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .hang }
            var limits = ConnectionLimits()
            limits.maximumConnectionsPerHost = 1
            let transport = try CurlTransport(limits: limits)
            try await cancel(server.request("/1"), transport) {
                try await server.requests(count: 1)
                try await cancel(server.request("/2"), transport) { await Task.yield() }
            }
            #expect(server.activity.requests.map(\.path) == ["/1"])
        }
    }

    @Test func `while it connects`() async throws {
        try await StubServer.with { server in
            server.greet(.hang)
            let url = try #require(URL(string: "https://127.0.0.1:\(server.endpoint.port)/"))
            try await cancel(Request(url: url)) { try await server.connections(open: 1) }
            try await server.connections(open: 0)
        }
    }

    @Test(arguments: [BodyDelivery.collected(upTo: 1000), .streamed])
    func `while it waits for the head`(delivery: BodyDelivery) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .hang }
            try await cancel(server.request(), delivery: delivery) { try await server.requests(count: 1) }
            try await server.connections(open: 0)
        }
    }

    @Test(arguments: [BodyDelivery.collected(upTo: 1000), .streamed])
    func `in the body`(delivery: BodyDelivery) async throws {
        try await StubServer.with { server in
            let hasSent = Flag()
            server.fallback { _ in
                Script([
                    .send(Data("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome".utf8)),
                    .respond { _ in
                        hasSent.raise()
                        return Reply(framing: .asGiven)
                    }, .hang,
                ])
            }
            try await cancel(server.request(), delivery: delivery) { try await eventually { hasSent.isRaised } }
            try await server.connections(open: 0)
        }
    }

    @Test func `in an upload whose source has nothing to send`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in Script([.readBody()], readsBodyFirst: false) }
            server.route("/", Script([.readBody()], readsBodyFirst: false))
            let feed = Feed()
            feed.yield("some")
            try await cancel(server.request(method: .post, body: .stream(feed))) {
                try await server.requests(count: 1)
            }
            let activity = try await server.activity { $0.requests.first?.isAbandoned == true }
            #expect(activity.requests[0].isComplete == false, "Half a body must not look like a whole one.")
        }
    }

    @Test func `in an upload that the server does not read`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.hang], readsBodyFirst: false))
            let body = RequestBody.stream(Generated(count: 1_000_000_000))
            // The server does not see the end of the connection, which lies behind the bytes that it does not read.
            try await cancel(server.request(method: .post, body: body)) { try await server.requests(count: 1) }
        }
    }

    @Test func `a source that ignores cancellation is waited for, and no longer`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.hang], readsBodyFirst: false))
            let gate = Gate()
            let body = RequestBody.stream(gate)
            try await cancel(server.request(method: .post, body: body)) {
                try await server.requests(count: 1)
                gate.openLater()
            }
        }
    }

    @Test func `a source that fails because its request is cancelled is not the reason why the request ends`()
        async throws
    {
        try await StubServer.with { server in
            server.route("/", Script([.hang], readsBodyFirst: false))
            let transport = try CurlTransport()
            let executor = try #require(transport.eventLoopExecutor)
            let (isWaiting, feed) = (Feed(), Feed())
            let body = RequestBody.writer { writer in
                isWaiting.yield("now")
                for try await chunk in feed { try await writer.write(chunk) }
            }
            // The source runs on the loop as well.
            let task = Task(executorPreference: executor) {
                try await transport.collect(server.request(method: .post, body: body))
            }
            for try await _ in isWaiting { break }
            await Task(executorPreference: executor) {
                // The source throws and the task is cancelled, in this order, before the loop's next turn but one.
                feed.finish(throwing: CancellationError())
                Task(executorPreference: executor) { task.cancel() }
            }.value
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test func `cancelling the task that reads cancels the exchange`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.send(Data("HTTP/1.1 200 OK\r\n\r\nsome".utf8)), .hang]))
            try await CurlTransport().stream(server.request()) { _, body in
                let reader = Task { for try await _ in body {} }
                try await server.requests(count: 1)
                reader.cancel()
                await #expect(throws: CancellationError.self) { try await reader.value }
            }
        }
    }

    @Test func `the connection of a cancelled exchange is not used again`() async throws {
        try await StubServer.with { server in
            server.enqueue(.hang)
            server.fallback { _ in .text("ok") }
            let transport = try CurlTransport()
            try await cancel(server.request(), transport) { try await server.requests(count: 1) }
            #expect(try await transport.text(server.request()) == "ok")
            #expect(try await server.requests(count: 2).map(\.connection) == [0, 1])
        }
    }

    // MARK: Shutting down

    @Test func `shutting down ends what runs and refuses what comes`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .hang }
            server.route("/ok", .text("ok"))
            var limits = ConnectionLimits()
            limits.maximumConnectionsPerHost = 2
            let transport = try CurlTransport(limits: limits)
            _ = try await transport.text(server.request("/ok"))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<5 {
                    group.addTask {
                        let error = try await transport.failure(server.request())
                        guard case .shutDown = error.reason else { throw error }
                    }
                }
                try await server.requests(count: 3)
                await transport.shutdown()
                try await group.waitForAll()
            }
            try await server.connections(open: 0)
            let error = try await transport.failure(server.request())
            guard case .shutDown = error.reason else { throw error }
            await transport.shutdown()
        }
    }

    // MARK: Resources, each counted in a process of its own

    @Test(.exitTest) func `ten thousand exchanges cancelled at random moments leave nothing behind`() async throws {
        await #expect(processExitsWith: .success) {
            try await StubServer.with { server in
                server.route("/small", .text("ok"))
                server.route("/large", .generated(10_000_000))
                server.route("/hang", .hang)
                server.route("/slow", .drip(bytes: 10, every: .milliseconds(1)))
                let paths = ["/small", "/large", "/hang", "/slow"]
                let baseline = try await resourcesWithServer()
                do {
                    var random = SplitMix64(seed: 42)
                    let transport = try CurlTransport()
                    for _ in 0..<100 {
                        await withTaskGroup(of: Void.self) { group in
                            for _ in 0..<100 {
                                let path = paths[Int(random.next() % 4)]
                                let patience = Int(random.next() % 64)
                                let uploads = random.next() % 4 == 0
                                group.addTask {
                                    let body: RequestBody = uploads ? .stream(Generated(count: 300_000)) : .none
                                    let request = server.request(path, method: uploads ? .post : .get, body: body)
                                    let task = Task { _ = try await transport.collect(request) }
                                    for _ in 0..<patience { await Task.yield() }
                                    task.cancel()
                                    _ = await task.result
                                }
                            }
                        }
                    }
                    guard try await transport.text(server.request("/small")) == "ok" else { exit(2) }
                }
                try await server.connections(open: 0)
                try await eventually { try ProcessResources().isWithin(baseline) }
            }
        }
    }

    @Test(.exitTest) func `a transport that is dropped frees its thread and its descriptors`() async throws {
        await #expect(processExitsWith: .success) {
            try await StubServer.with { server in
                server.fallback { _ in .text("ok") }
                let baseline = try await resourcesWithServer()
                for _ in 0..<20 {
                    let transport = try CurlTransport()
                    for _ in 0..<3 { _ = try await transport.text(server.request()) }
                }
                try await server.connections(open: 0)
                try await eventually { try ProcessResources().isWithin(baseline) }
                for _ in 0..<20 { _ = try CurlTransport() }
                try await eventually { try ProcessResources().isWithin(baseline) }
                for _ in 0..<20 {
                    let transport = try CurlTransport()
                    _ = try await transport.text(server.request())
                    await transport.shutdown()
                }
                try await server.connections(open: 0)
                try await eventually { try ProcessResources().isWithin(baseline) }
            }
        }
    }

    @Test(.exitTest, .enabled(if: !isSanitized))
    func `large bodies cost no memory, either way`() async throws {
        await #expect(processExitsWith: .success) {
            try await StubServer.with { server in
                server.route("/down", .generated(200_000_000))
                server.route("/up", .text("ok"))
                let transport = try CurlTransport()
                _ = try await transport.text(server.request("/up"))
                let before = try residentKilobytes()
                let count = try await transport.stream(server.request("/down")) { _, body in
                    try await body.reduce(0) { $0 + $1.count }
                }
                guard count == 200_000_000 else { exit(2) }
                let body = RequestBody.stream(Generated(count: 200_000_000))
                _ = try await transport.text(server.request("/up", method: .post, body: body))
                guard server.activity.requests.last?.bodyLength == 200_000_000 else { exit(3) }
                guard try residentKilobytes() - before < 24 << 10 else { exit(4) }
            }
        }
    }
}

/// Returns the resources of this process once the thread of its server has started.
private func resourcesWithServer() async throws -> ProcessResources {
    try await eventually { try ProcessResources().threads.contains { $0.hasPrefix("stub-accept") } }
    return try ProcessResources()
}

/// A source that does not notice cancellation, until it is opened.
private final class Gate: AsyncSequence, Sendable {
    private let stream = AsyncStream<Void>.makeStream()

    func openLater() {
        Task.detached { [stream] in
            for _ in 0..<100 { await Task.yield() }
            stream.continuation.finish()
        }
    }

    func makeAsyncIterator() -> Iterator {
        Iterator(stream: stream.stream)
    }

    struct Iterator: AsyncIteratorProtocol {
        let stream: AsyncStream<Void>

        mutating func next() async -> Data? {
            let stream = stream
            await Task.detached { for await _ in stream {} }.value
            return nil
        }
    }
}
