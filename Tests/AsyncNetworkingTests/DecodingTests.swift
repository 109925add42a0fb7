// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import FoundationEssentials
import HTTPTypes
import Testing

/// The tasks and threads in which responses are deserialized.
@Suite struct DecodingTests {
    @TaskLocal static var caller = "none"

    /// Returns the name of the caller, taken from a task-local value.
    private struct CallerSerializer: ResponseSerializer {
        func serialize(_ head: ResponseHead, _ body: Data) -> String { DecodingTests.caller }
    }

    @Test func `a value is deserialized in the calling task`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("x") }
            let api = SessionManager(for: server)
            let name = try await Self.$caller.withValue("Ada") { try await api.get("", as: CallerSerializer()).value }
            #expect(name == "Ada")
        }
    }

    /// Records the thread on which events are received, which is the loop's.
    private struct ThreadSink: ExchangeEventSink {
        let names = AsyncStream<String>.makeStream()

        func receive(_ event: ExchangeEvent) {
            names.continuation.yield(currentThreadName())
        }
    }

    @Test func `a value is not deserialized on the loop's thread`() async throws {
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

    /// Returns the name of the thread that it runs on.
    private struct ThreadNameSerializer: ResponseSerializer {
        func serialize(_ head: ResponseHead, _ body: Data) -> String { currentThreadName() }
    }

    /// Blocks its thread until it is released.
    private final class SlowSerializer: ResponseSerializer {
        let entered = AsyncStream<Void>.makeStream()
        let mayEnd = DispatchSemaphore(value: 0)

        func serialize(_ head: ResponseHead, _ body: Data) -> DispatchTimeoutResult {
            entered.continuation.finish()
            // The limit is reached only on failure, if another value or the loop waits for this one.
            return mayEnd.wait(timeout: .now() + .seconds(120))
        }
    }

    @Test func `values are deserialized concurrently, while requests are answered`() async throws {
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

    /// No other work waits for the main thread.
    @MainActor
    private func onMainActor(_ api: SessionManager, _ serializer: SlowSerializer) async throws -> DispatchTimeoutResult
    {
        try await api.get("a", as: serializer).value
    }
}

/// The name of the current thread, which is specific to the loop's thread.
private func currentThreadName() -> String {
    (try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)) ?? "unknown"
}
