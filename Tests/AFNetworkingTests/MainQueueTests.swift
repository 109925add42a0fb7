// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworkingTesting
import TestSupport
import Testing

/// Observers on `OperationQueue.main`, in programs that serve the main queue in different ways. A program that hangs is
/// terminated by SIGALRM.
@Suite(.serialized, .timeLimit(.minutes(5))) struct MainQueueTests {
    @Test(arguments: [["AsyncMain"], ["BlockingMain", "dispatchMain"], ["BlockingMain", "runLoop"]])
    func `observers on the main queue receive every notification without blocking it`(program: [String]) async throws {
        try await StubServer.with { server in
            server.fallback { $0.target == "/unanswered" ? .hang : .text("hello") }
            let directory = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            let words = [directory.appending(path: program[0]).path(), server.url("/").absoluteString]
            let outcome = try await Command(words + program.dropFirst()).run()
            #expect(outcome.status == 0, "\(outcome.text)")
        }
    }
}
