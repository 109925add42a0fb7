// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import CostKit
import Synchronization

/// Measures the processor time that AFNetworking's interface adds to a request, with 64 in flight:
/// `ShimCost [REQUESTS [core | main | queue | plain | foundation]]`. The second argument runs one case only, for a
/// profiler.
///
/// The transport responds immediately from memory. The request is a GET with a small JSON response. `core` is a core
/// task with the core's JSON; `main` and `queue` are the verb with its callback, Foundation's JSON and both
/// notifications, called back on the main queue, which is the default, and on another queue.
///
/// For Foundation's share of the cost, `plain` is an async function in its own task, and `foundation` the same with
/// only the Foundation calls that the interface requires. It fails if a verb adds more than six times this share.
@main
struct ShimCost {
    /// The maximum cost of a verb in relation to Foundation's share, and the aim.
    static let (limit, aim) = (6.0, 1.5)

    static func main() async throws {
        try await run()
    }

    /// Measures on the global executor: `main` runs on the main actor, also if it is declared `@concurrent`.
    @concurrent private static func run() async throws {
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
        let ways: KeyValuePairs<String, (Int) async throws -> Void> = [
            "core": { requests in
                try await perform(requests) {
                    let task = session.makeDataTask(for: try session.request(.get, "small.json"), as: .json)
                    task.resume()
                    _ = try await task.value
                }
            },
            "main": { await Callbacks { call(onMain, $0) }.perform($0) },
            "queue": { await Callbacks { call(onQueue, $0) }.perform($0) },
            "plain": { requests in
                try await perform(requests) {
                    try await Task {
                        _ = try await session.value(for: session.request(.get, "small.json"), as: .json)
                    }.value
                }
            },
            "foundation": { await Callbacks { callFoundation(session, $0) }.perform($0) },
        ]
        var costs: [String: Cost] = [:]
        // The best of seven interleaved runs.
        for _ in 0..<7 {
            for (name, way) in ways where only == nil || only == name {
                costs[name] = Cost.min(costs[name], try await .measure(requests, way))
            }
        }
        guard let core = costs["core"], let main = costs["main"], let queue = costs["queue"],
            let plain = costs["plain"], let foundation = costs["foundation"]
        else { return }
        print("A core task takes \(core).")
        print("A verb of AFNetworking with callbacks on the main queue adds \(main - core).")
        print("A verb with callbacks on another queue adds \(queue - core).")
        print(
            "An async function takes \(plain); the required Foundation calls add \(foundation - plain).")
        let share = (foundation - plain).microseconds
        for (name, verb) in [("main", main), ("queue", queue)] {
            let ratio = ((verb - core).microseconds / share * 100).rounded() / 100
            print("\(name): \(ratio) × Foundation's share (at most \(limit); the aim is \(aim))")
        }
        if (main - core).microseconds > limit * share { exit(1) }
    }

    /// Performs requests, 64 at a time.
    private static func perform(_ requests: Int, _ request: @escaping @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<64 {
                group.addTask { for _ in 0..<requests / 64 { try await request() } }
            }
            try await group.waitForAll()
        }
    }

    private static func call(_ manager: AFHTTPSessionManager, _ caller: Callbacks) {
        manager.get(
            "small.json", parameters: nil, headers: nil, progress: nil, success: { _, _ in caller.next() },
            failure: { _, _ in caller.next() })
    }

    /// Performs a request and the Foundation calls of the interface: the task, its JSON, a main queue operation, two
    /// notifications.
    private static func callFoundation(_ session: SessionManager, _ caller: Callbacks) {
        let object = FoundationTask()
        // Ends with the request.
        Task {
            let response = try await session.data(for: session.request(.get, "small.json"))
            let json = FoundationObject(try JSONSerialization.jsonObject(with: response.value))
            DispatchQueue.main.async {
                NotificationCenter.default.post(name: .AFNetworkingTaskDidResume, object: object)
                caller.next()
                NotificationCenter.default.post(
                    name: .AFNetworkingTaskDidComplete, object: object,
                    userInfo: [
                        AFNetworkingTaskDidCompleteResponseDataKey: response.value,
                        AFNetworkingTaskDidCompleteSerializedResponseKey: json.value,
                    ])
            }
        }
    }
}

private final class FoundationTask: URLSessionDataTask, @unchecked Sendable {}

/// An object that is passed between threads and used by one at a time.
private struct FoundationObject: @unchecked Sendable {
    let value: Any

    init(_ value: Any) {
        self.value = value
    }
}

/// A caller with callbacks, each of which starts the next request.
private final class Callbacks: Sendable {
    private let start: @Sendable (Callbacks) -> Void
    private let state = Mutex(State())

    private struct State {
        var left = 0
        var running = 0
        var waiter: CheckedContinuation<Void, Never>?
    }

    /// Creates a caller. `start` starts a request and calls ``next()`` when it has ended.
    init(_ start: @escaping @Sendable (Callbacks) -> Void) {
        self.start = start
    }

    /// Performs requests, 64 at a time.
    func perform(_ requests: Int) async {
        await withCheckedContinuation { waiter in
            state.withLock { $0 = State(left: requests - 64, running: 64, waiter: waiter) }
            for _ in 0..<64 { start(self) }
        }
    }

    /// Called when a request has ended; starts the next one.
    func next() {
        let (isNext, waiter) = state.withLock { state in
            if state.left > 0 {
                state.left -= 1
                return (true, nil as CheckedContinuation<Void, Never>?)
            }
            state.running -= 1
            return (false, state.running == 0 ? state.waiter : nil)
        }
        if isNext { start(self) }
        waiter?.resume()
    }
}
