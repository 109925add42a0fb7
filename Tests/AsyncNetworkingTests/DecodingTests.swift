// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import FoundationEssentials
import HTTPTypes
import Testing

/// Where values are made of responses.
@Suite struct DecodingTests {
    @TaskLocal static var caller = "nobody"

    /// Gives the name of the caller, as the task knows it.
    private struct CallerSerializer: ResponseSerializer {
        func serialize(_ head: ResponseHead, _ body: Data) -> String { DecodingTests.caller }
    }

    @Test func `a value is made in the task that asked for it`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("x") }
            let api = SessionManager(for: server)
            let name = try await Self.$caller.withValue("Ada") { try await api.get("", as: CallerSerializer()).value }
            #expect(name == "Ada")
        }
    }

    /// Takes note of the thread on which events come: the loop's.
    private struct ThreadSink: TransferEventSink {
        let names = AsyncStream<String>.makeStream()

        func receive(_ event: TransferEvent) {
            names.continuation.yield(currentThreadName())
        }
    }

    @Test func `a value is not made on the loop's thread`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("x") }
            let api = SessionManager(for: server)
            let name = try await api.get("", as: ThreadNameSerializer()).value
            #expect(!name.hasPrefix("ANCurl"))

            let sink = ThreadSink()
            try await api.withResponse(for: Request(url: server.url("/")), reporting: sink) { _, _ in }
            sink.names.continuation.finish()
            var isOnLoop = false
            for await name in sink.names.stream where name.hasPrefix("ANCurl") { isOnLoop = true }
            #expect(isOnLoop, "The loop has another name, and the check above says nothing.")
        }
    }

    /// Gives the name of the thread that it runs on.
    private struct ThreadNameSerializer: ResponseSerializer {
        func serialize(_ head: ResponseHead, _ body: Data) -> String { currentThreadName() }
    }

    /// Keeps its thread busy until it is told to go on.
    private final class SlowSerializer: ResponseSerializer {
        let entered = AsyncStream<Void>.makeStream()
        let mayEnd = DispatchSemaphore(value: 0)

        func serialize(_ head: ResponseHead, _ body: Data) -> DispatchTimeoutResult {
            entered.continuation.finish()
            // Only a failure waits so long: a value that is made behind this one, or on the loop.
            return mayEnd.wait(timeout: .now() + .seconds(120))
        }
    }

    @Test func `while a value is being made, others are, and requests are answered`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("[1]") }
            let api = SessionManager(for: server)
            let slow = SlowSerializer()
            async let first = onMainActor(api, slow)
            for await _ in slow.entered.stream {}
            for path in ["b", "c"] {
                let second = try await api.get(path, as: .decodable([Int].self)).value
                #expect(second == [1])
            }
            slow.mayEnd.signal()
            let result = try await first
            #expect(result == .success)
        }
    }

    /// The main thread is the one that no other work waits for.
    @MainActor
    private func onMainActor(_ api: SessionManager, _ serializer: SlowSerializer) async throws -> DispatchTimeoutResult
    {
        try await api.get("a", as: serializer).value
    }
}

/// The name of the thread, which the loop's thread has of its own.
private func currentThreadName() -> String {
    (try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)) ?? "unknown"
}
