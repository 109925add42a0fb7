// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import Glibc
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct SessionManagerSignalsTests {
    /// A service as in the article "Long-running programs".
    private actor Service {
        let api = SessionManager(on: MockTransport(.text("ok")))

        func run() async throws -> Int32 {
            async let ending = api.shutdownOnSignal(draining: .zero)
            do {
                while true { _ = try await api.data(for: Request(url: url("http://a.example/"))) }
            } catch SessionError.invalidated, is CancellationError {
                return try await ending
            }
        }
    }

    @Test(.exitTest, arguments: [SIGTERM, SIGINT]) func `a signal shuts a session of an actor down`(
        signal: Int32
    ) async {
        await #expect(processExitsWith: .success) { [signal] in
            async let ending = Service().run()
            try await eventually { SignalWatch.shared.waitingTasks == 1 }
            kill(getpid(), signal)
            #expect(try await ending == signal)
        }
    }

    @Test func `a signal that cannot be caught is an error, and the session goes on`() async throws {
        let api = SessionManager(on: MockTransport(.text("ok")))
        let error = try await sessionError { try await api.shutdownOnSignal([SIGKILL]) }
        #expect(error.description.contains("signal"))
        #expect(try await api.data(for: Request(url: url("http://a.example/"))).statusCode == 200)
    }
}
