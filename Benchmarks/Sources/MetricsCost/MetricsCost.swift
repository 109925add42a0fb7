// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingObservability
import ClientKit
import CoreMetrics
import Foundation
import ServerKit
import Synchronization

/// Measures the memory of a session that records metrics, and fails if it grows: `MetricsCost [REQUESTS]`.
///
/// Small uploads to the benchmark server, 64 at a time; the backend keeps sums in memory. After the first tenth of the
/// requests, the process may grow by at most 4 MB.
@main
struct MetricsCost {
    static func main() async throws {
        try await run()
    }

    /// Measures on the global executor: `main` runs on the main actor, also if it is declared `@concurrent`.
    @concurrent private static func run() async throws {
        let requests = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 100_000
        let programs = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        let server = try BenchServer(program: programs.appending(path: "BenchServer"))
        let metrics = Sums()
        let session = SessionManager(baseURL: URL(string: "http://127.0.0.1:\(server.port)/")) {
            $0.proxy = .none
            $0.recordMetrics(by: metrics)
        }
        var first = 0.0
        for tenth in 1...10 {
            try await send(requests / 10, session)
            let memory = try ThisProcess.residentMemory() / 1e6
            if tenth == 1 { first = memory }
            print("\(requests / 10 * tenth) requests: \(Int(memory.rounded())) MB")
        }
        print(metrics.description)
        var bars = Bars()
        bars.check("Growth after the first tenth in MB", try ThisProcess.residentMemory() / 1e6 - first, atMost: 4)
        if bars.isAnyMissed { exit(1) }
    }

    private static func send(_ requests: Int, _ session: SessionManager) async throws {
        let workers = 64
        try await withThrowingTaskGroup { group in
            for worker in 0..<workers {
                group.addTask {
                    for number in stride(from: worker, to: requests, by: workers) {
                        // Paths differ, so that each would be a series of its own if it were a label.
                        var request = try session.request(.put, "items/\(number)")
                        request.body = .bytes(Data("body".utf8))
                        request.routeTemplate = "/items/{id}"
                        _ = try await session.data(for: request)
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}

/// A backend that keeps the number and the sum of the values of each series.
private final class Sums: MetricsFactory {
    private let series = Mutex<[String: Sum]>([:])

    private func sum(_ label: String, _ dimensions: [(String, String)]) -> Sum {
        let key = ([label] + dimensions.map { "\($0.0)=\($0.1)" }.sorted()).joined(separator: " ")
        return series.withLock { series in
            if let sum = series[key] { return sum }
            let sum = Sum()
            series[key] = sum
            return sum
        }
    }

    var description: String {
        series.withLock { series in
            "\(series.count) series\n"
                + series.map { "  \($0): \($1.description)" }.sorted().joined(separator: "\n")
        }
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler { sum(label, dimensions) }
    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler { sum(label, dimensions) }
    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { sum(label, dimensions) }
    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        sum(label, dimensions)
    }
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
}

/// The number and the sum of the values of a series.
private final class Sum: CounterHandler, MeterHandler, RecorderHandler, TimerHandler {
    private let state = Mutex((count: 0, sum: 0.0))

    private func add(_ value: Double) {
        state.withLock { $0 = ($0.count + 1, $0.sum + value) }
    }

    var description: String { state.withLock { "\($0.count) values, sum \($0.sum)" } }

    func increment(by amount: Int64) { add(Double(amount)) }
    func reset() { state.withLock { $0 = (0, 0) } }
    func set(_ value: Int64) { add(Double(value)) }
    func set(_ value: Double) { add(value) }
    func increment(by amount: Double) { add(amount) }
    func decrement(by amount: Double) { add(-amount) }
    func record(_ value: Int64) { add(Double(value)) }
    func record(_ value: Double) { add(value) }
    func recordNanoseconds(_ duration: Int64) { add(Double(duration) / 1e9) }
}
