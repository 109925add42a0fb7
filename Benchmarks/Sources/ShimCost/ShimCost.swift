// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import Glibc

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
            core = min(
                core,
                try await measure(requests) {
                    let task = session.makeDataTask(for: try session.request(.get, "small.json"), as: .json)
                    task.resume()
                    _ = try await task.value
                })
            shim = min(
                shim,
                try await measure(requests) {
                    await withCheckedContinuation { continuation in
                        manager.get(
                            "small.json", parameters: nil, headers: nil, progress: nil,
                            success: { _, _ in continuation.resume() }, failure: { _, _ in continuation.resume() })
                    }
                })
        }
        print("A task of the core's takes \(rounded(core)) µs, a verb of AFNetworking's \(rounded(shim)) µs.")
        print("It adds \(rounded(shim - core)) µs (the aim is \(bar) µs).")
    }

    private static func rounded(_ number: Double) -> Double {
        (number * 100).rounded() / 100
    }

    /// The processor time of a request, in microseconds.
    private static func measure(
        _ requests: Int, _ request: @escaping @Sendable () async throws -> Void
    ) async throws -> Double {
        try await perform(requests / 10, request)
        let start = processorMicroseconds()
        try await perform(requests, request)
        return (processorMicroseconds() - start) / Double(requests)
    }

    /// Performs so many requests, 64 at a time.
    private static func perform(_ requests: Int, _ request: @escaping @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<64 {
                group.addTask { for _ in 0..<requests / 64 { try await request() } }
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
