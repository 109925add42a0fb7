// SPDX-License-Identifier: MIT

import AsyncNetworking
import ClientKit
import Foundation
import ServerKit
import Synchronization

/// Measures how long a snapshot holds the event loop of a session with many requests, and fails if that is more than 1 ms:
/// `SnapshotCost [REQUESTS]`.
///
/// The requests wait for a connection, or each of them has one. The figures are the longest times between two jobs of a
/// task on the loop, in processor time of its thread: that which other programs take does not count.
@main
struct SnapshotCost {
    static func main() async throws {
        try await run()
    }

    /// Measures on the global executor: `main` runs on the main actor, also if it is declared `@concurrent`.
    @concurrent private static func run() async throws {
        let requests = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 10_000
        ThisProcess.raiseDescriptorLimit()
        let programs = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        let server = try BenchServer(program: programs.appending(path: "BenchServer"))
        var bars = Bars()
        for (state, connections) in [("waiting", 6), ("running", requests)] {
            try await measure(requests, state, connections, server.port, &bars)
        }
        if bars.isAnyMissed { exit(1) }
    }

    private static func measure(
        _ count: Int, _ state: String, _ connections: Int, _ port: Int, _ bars: inout Bars
    ) async throws {
        guard let url = URL(string: "http://127.0.0.1:\(port)/") else { throw CancellationError() }
        let session = SessionManager {
            $0.proxy = .none
            $0.connectionLimits.maximumConnections = nil
            $0.connectionLimits.maximumConnectionsPerHost = connections
            $0.timeouts.idle = nil
        }
        // The server waits for the rest of the body.
        var request = Request(method: .put, url: url)
        request.body = .writer(length: 2) { writer in
            try await writer.write(Data("1".utf8))
            try await Task.sleep(for: .seconds(3600))
        }
        for _ in 0..<count { session.makeDataTask(for: request).resume() }
        func hasBegun(_ snapshot: SessionSnapshot) -> Bool {
            let waiting = snapshot.hosts.reduce(0) { $0 + $1.waiting.count }
            return snapshot.hosts.first?.connections.count == connections && waiting == count - connections
        }
        while await !hasBegun(session.snapshot()) { try await Task.sleep(for: .milliseconds(100)) }
        let alone = await longestTurn(of: session) { try? await Task.sleep(for: .milliseconds(200)) }
        let longest = await longestTurn(of: session) {
            for _ in 0..<10 { _ = await session.snapshot() }
        }
        print("\(count) requests, \(state): without a snapshot, the longest turn takes \(alone / .milliseconds(1)) ms")
        bars.check(
            "\(count) requests, \(state): the longest turn with snapshots, in ms", longest / .milliseconds(1), atMost: 1
        )
        session.taskGroup().cancel()
        await session.shutdown()
    }

    /// Returns the longest time in which the loop runs no job of a task, while `work` runs.
    private static func longestTurn(of session: SessionManager, while work: () async -> Void) async -> Duration {
        let isOver = Flag()
        async let longest = Task(executorPreference: session.eventLoopExecutor) {
            var longest = Duration.zero
            var last = ThisProcess.threadTime
            while !isOver.value.load(ordering: .relaxed) {
                await Task.yield()
                let now = ThisProcess.threadTime
                (longest, last) = (max(longest, now - last), now)
            }
            return longest
        }.value
        await work()
        isOver.value.store(true, ordering: .relaxed)
        return await longest
    }

    private final class Flag: Sendable {
        let value = Atomic(false)
    }
}
