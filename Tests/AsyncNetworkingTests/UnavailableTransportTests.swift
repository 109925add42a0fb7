// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import Testing

@Suite(.timeLimit(.minutes(1))) struct UnavailableTransportTests {
    @Test func `a manager made where no descriptor is left fails its requests, and shuts down`() async throws {
        await #expect(processExitsWith: .success) {
            // What the process opens once for all is open before the limit.
            _ = try? await SessionManager().get("http://127.0.0.1:1/")
            var limit = rlimit(rlim_cur: 0, rlim_max: 0)
            try unsafe #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            let manager = SessionManager()
            for _ in 0..<2 {
                let error = try await sessionError { _ = try await manager.get("http://127.0.0.1:1/") }
                guard case .transport(.internalInconsistency(let words, _)) = error else { throw error }
                try #require(words.contains("Too many open files"))
            }
            await manager.shutdown()
            try #require(try await sessionError { _ = try await manager.get("http://127.0.0.1:1/") }.isInvalidated)
        }
    }
}
