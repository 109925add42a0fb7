// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import CostKit
import Synchronization

/// Measures what AFNetworking's interface adds to a request, in processor time with 64 in flight:
/// `ShimCost [REQUESTS [core | main | queue]]`, the second for one of the three alone, under a profiler.
///
/// The transport answers at once and from memory. The request is a GET with a small JSON document as its answer; on the one
/// side a task of the core's with the core's JSON, on the other side the verb with its callback, Foundation's JSON, and both
/// notifications: called back on the main queue, which is the default, and on a queue of the program's own.
@main
struct ShimCost {
    static let bar = 10.0

    @concurrent static func main() async throws {
        let requests = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 20_000
        let only = CommandLine.arguments.dropFirst(2).first
        let transport = InstantTransport(
            answer: Data(#"{"id": 7, "name": "Ada", "tags": ["math", "code"], "x": 1}"#.utf8),
            headers: [.contentType: "application/json", .contentLength: "58", .server: "x"])
        let session = SessionManager(
            SessionConfiguration(baseURL: URL(string: "http://127.0.0.1/")) { $0.transport = transport })
        let onMain = AFHTTPSessionManager(session: session)
        let onQueue = AFHTTPSessionManager(session: session)
        onQueue.completionQueue = DispatchQueue(label: "completion")
        var (core, main, queue): (Cost?, Cost?, Cost?)
        // The best of seven runs, in turn.
        for _ in 0..<7 {
            if only == nil || only == "core" {
                core = Cost.min(core, try await .measure(requests) { try await perform($0, with: session) })
            }
            if only == nil || only == "main" {
                main = Cost.min(main, await .measure(requests) { await Callbacks(onMain).perform($0) })
            }
            if only == nil || only == "queue" {
                queue = Cost.min(queue, await .measure(requests) { await Callbacks(onQueue).perform($0) })
            }
        }
        guard let core, let main, let queue else { return }
        print("A task of the core's takes \(core).")
        print("A verb of AFNetworking's that calls back on the main queue adds \(main - core) (the aim is \(bar) µs).")
        print("One that calls back on another queue adds \(queue - core).")
    }

    /// Performs so many requests, 64 at a time.
    private static func perform(_ requests: Int, with session: SessionManager) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<64 {
                group.addTask {
                    for _ in 0..<requests / 64 {
                        let task = session.makeDataTask(for: try session.request(.get, "small.json"), as: .json)
                        task.resume()
                        _ = try await task.value
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}

/// Requests of a caller with callbacks, each of which starts the next one.
private final class Callbacks: Sendable {
    private let manager: AFHTTPSessionManager
    private let state = Mutex(State())

    private struct State {
        var left = 0
        var running = 0
        var waiter: CheckedContinuation<Void, Never>?
    }

    init(_ manager: AFHTTPSessionManager) {
        self.manager = manager
    }

    /// Performs so many requests, 64 at a time.
    func perform(_ requests: Int) async {
        await withCheckedContinuation { waiter in
            state.withLock { $0 = State(left: requests - 64, running: 64, waiter: waiter) }
            for _ in 0..<64 { start() }
        }
    }

    private func start() {
        manager.get(
            "small.json", parameters: nil, headers: nil, progress: nil, success: { [self] _, _ in next() },
            failure: { [self] _, _ in next() })
    }

    private func next() {
        let (isNext, waiter) = state.withLock { state in
            if state.left > 0 {
                state.left -= 1
                return (true, nil as CheckedContinuation<Void, Never>?)
            }
            state.running -= 1
            return (false, state.running == 0 ? state.waiter : nil)
        }
        if isNext { start() }
        waiter?.resume()
    }
}
