// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import Glibc
import Synchronization

/// Measures what AFNetworking's interface adds to a request, in processor time with 64 in flight: `ShimCost [REQUESTS]`.
///
/// The transport answers at once and from memory. The request is a GET with a small JSON document as its answer; on the one
/// side a task of the core's with the core's JSON, on the other side the verb with its callback on a queue, Foundation's
/// response and JSON, and both notifications.
@main
struct ShimCost {
    static let bar = 10.0

    @concurrent static func main() async throws {
        let requests = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 20_000
        let session = SessionManager(
            SessionConfiguration(baseURL: URL(string: "http://127.0.0.1/")) { $0.transport = InstantTransport() })
        let manager = AFHTTPSessionManager(session: session)
        manager.completionQueue = DispatchQueue(label: "completion")
        var core = Double.infinity
        var shim = Double.infinity
        // The best of seven runs, in turn: what disturbs a run only adds to it.
        for _ in 0..<7 {
            core = min(core, try await measure(requests) { try await perform($0, with: session) })
            shim = min(shim, try await measure(requests) { await Callbacks(manager).perform($0) })
        }
        print("A task of the core's takes \(rounded(core)) µs, a verb of AFNetworking's \(rounded(shim)) µs.")
        print("It adds \(rounded(shim - core)) µs (the aim is \(bar) µs).")
    }

    private static func rounded(_ number: Double) -> Double {
        (number * 100).rounded() / 100
    }

    /// The processor time of a request, in microseconds.
    private static func measure(_ requests: Int, _ perform: (Int) async throws -> Void) async throws -> Double {
        try await perform(requests / 10)
        let start = processorMicroseconds()
        try await perform(requests)
        return (processorMicroseconds() - start) / Double(requests)
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

    private static func processorMicroseconds() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return [usage.ru_utime, usage.ru_stime].map { Double($0.tv_sec) * 1e6 + Double($0.tv_usec) }.reduce(0, +)
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

/// Answers from memory.
private struct InstantTransport: Transport {
    private static let answer = Data(#"{"id": 7, "name": "Ada", "tags": ["math", "code"], "x": 1}"#.utf8)

    func perform(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        events?.receive(.finished(TransferMetrics()))
        let head = ResponseHead(
            status: .ok,
            headers: [.contentType: "application/json", .contentLength: "\(Self.answer.count)", .server: "x"],
            url: request.url)
        try await body(head, ResponseBody(Self.answer))
    }

    func shutdown() async {}
}
