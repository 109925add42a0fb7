// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct UnavailableTransportTests {
    @Test(.exitTest) func `a manager created without free descriptors fails its requests, and shuts down`() async throws
    {
        await #expect(processExitsWith: .success) {
            // Descriptors that the process opens once are opened before the limit is set.
            _ = try? await SessionManager().get("http://127.0.0.1:1/")
            try limitDescriptors(to: 0)
            let manager = SessionManager()
            for _ in 0..<2 {
                let error = try await sessionError { _ = try await manager.get("http://127.0.0.1:1/") }
                guard case .internalInconsistency(let words) = error.reason else { throw error }
                try #require(words.contains("Too many open files"))
            }
            await manager.shutdown()
            try #require(try await sessionError { _ = try await manager.get("http://127.0.0.1:1/") }.isInvalidated)
            // Sanitizers open files when the process ends, to look for leaks.
            try limitDescriptors(to: 1024)
        }
    }
}

/// Sets the maximum number of descriptors of the process; see getrlimit(2).
private func limitDescriptors(to count: rlim_t) throws {
    var limit = rlimit()
    try unsafe #require(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    limit.rlim_cur = count
    try unsafe #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
}
