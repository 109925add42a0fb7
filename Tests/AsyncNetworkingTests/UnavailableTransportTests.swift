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
            try limitDescriptors(to: 0)
            let manager = SessionManager()
            for _ in 0..<2 {
                let error = try await sessionError { _ = try await manager.get("http://127.0.0.1:1/") }
                guard case .transport(.internalInconsistency(let words, _)) = error else { throw error }
                try #require(words.contains("Too many open files"))
            }
            await manager.shutdown()
            try #require(try await sessionError { _ = try await manager.get("http://127.0.0.1:1/") }.isInvalidated)
            // A sanitizer looks for leaks when the process ends, and opens files for that.
            try limitDescriptors(to: 1024)
        }
    }
}

/// Sets how many descriptors the process may have from now on. See getrlimit(2).
private func limitDescriptors(to count: rlim_t) throws {
    var limit = rlimit()
    try unsafe #require(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    limit.rlim_cur = count
    try unsafe #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
}
