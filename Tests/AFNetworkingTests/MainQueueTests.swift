// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworkingTesting
import Testing

/// Observers on `OperationQueue.main`, in programs that serve the main queue in different ways. A program that hangs is
/// terminated by SIGALRM.
@Suite(.serialized, .timeLimit(.minutes(5))) struct MainQueueTests {
    @Test(arguments: [["AsyncMain"], ["BlockingMain", "dispatchMain"], ["BlockingMain", "runLoop"]])
    func `observers on the main queue receive every notification without blocking it`(program: [String]) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("hello") }
            let process = Process()
            process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
                .deletingLastPathComponent().appending(path: program[0])
            process.arguments = [server.url("/").absoluteString] + program.dropFirst()
            try await withCheckedThrowingContinuation { (ended: CheckedContinuation<Void, any Error>) in
                process.terminationHandler = { _ in ended.resume() }
                do { try process.run() } catch { ended.resume(throwing: error) }
            }
            #expect(process.terminationReason == .exit)
            #expect(process.terminationStatus == 0)
        }
    }
}
