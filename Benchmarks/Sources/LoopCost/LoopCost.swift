// SPDX-License-Identifier: MIT

import AsyncNetworking
import ClientKit
import Foundation
import Glibc
import ServerKit
import Synchronization

/// Compares sessions with one and with more event loops against a server that costs little: `LoopCost [ROUNDS]`.
///
/// The server shares the processors with the client. The table therefore also has the processor time of a request on the
/// loops' threads, from which the ceiling for more processors follows: the loops of N threads perform N divided by this
/// time, as long as there are processors for the program's own tasks.
///
/// A second table has the latency of small requests, one after the other, while 100 connections are made over TLS. It requires
/// the environment of `scripts/servers/servers run`.
@main
struct LoopCost {
    private static let requests = 20_000
    private static let inFlight = 64

    static func main() async throws {
        try await run()
    }

    /// Measures on the global executor: `main` runs on the main actor, also if it is declared `@concurrent`.
    @concurrent private static func run() async throws {
        let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 7
        let programs = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        let server = try BenchServer(program: programs.appending(path: "BenchServer"))
        guard let url = URL(string: server.address) else { throw Failure("no URL") }
        let variants: [Int?] = [1, 2, nil]
        var samples = [[Sample]](repeating: [], count: variants.count)
        for _ in 0..<rounds {
            for (index, loops) in variants.enumerated() { samples[index].append(try await measure(loops, url)) }
        }
        print("loops      requests/s   CPU a request   on the loops   least ÷ most used loop")
        for (loops, samples) in zip(variants, samples) {
            func median(_ figure: (Sample) -> Double) -> Double { samples.map(figure).sorted()[samples.count / 2] }
            printRow(
                loops,
                [
                    (median(\.rate), 0, 12, ""), (median(\.cost), 1, 13, " µs"), (median(\.loopCost), 1, 12, " µs"),
                    (median(\.evenness), 2, 16, ""),
                ])
        }
        let environment = ProcessInfo.processInfo.environment
        guard let base = environment["AN_NGINX_TLS"], let authority = environment["AN_CA"],
            let handshakes = URL(string: base + "/closing/small.json")
        else { return }
        var latencies = [[Duration]](repeating: [], count: variants.count)
        for _ in 0..<rounds {
            for (index, loops) in variants.enumerated() {
                latencies[index] += try await measureLatencies(loops, url, during: handshakes, authority)
            }
        }
        print("\nloops      latency during 100 handshakes: median, 99th percentile, their ratio")
        for (loops, latencies) in zip(variants, latencies.map { $0.sorted() }) {
            let (median, late) = (latencies[latencies.count / 2], latencies[latencies.count * 99 / 100])
            printRow(
                loops,
                [
                    (median / .milliseconds(1), 2, 12, " ms"), (late / .milliseconds(1), 2, 12, " ms"),
                    (late / median, 1, 12, ""),
                ])
        }
    }

    private static func printRow(
        _ loops: Int?, _ figures: [(value: Double, digits: Int, width: Int, unit: String)]
    ) {
        let name = loops.map(String.init) ?? "automatic"
        let columns = figures.map { figure in
            let text = figure.value.formatted(.number.precision(.fractionLength(figure.digits)).grouping(.never))
            return String(repeating: " ", count: max(0, figure.width - text.count)) + text + figure.unit
        }
        print(name.padding(toLength: 9, withPad: " ", startingAt: 0) + columns.joined())
    }

    private struct Sample {
        /// Requests per second.
        let rate: Double
        /// The processor time of a request in microseconds: of the process, and on the threads of event loops.
        let cost: Double
        let loopCost: Double
        /// The processor time of the least used loop as a part of that of the most used one.
        let evenness: Double
    }

    private static func measure(_ loops: Int?, _ url: URL) async throws -> Sample {
        let session = SessionManager {
            $0.proxy = .none
            $0.connectionLimits.eventLoops = loops
            $0.connectionLimits.maximumConnectionsPerHost = inFlight
        }
        try await perform(requests / 10, on: session, url)
        let (start, startCost, before) = (ContinuousClock.now, ThisProcess.time, try LoopThreads.times())
        try await perform(requests, on: session, url)
        let (elapsed, cost) = (start.duration(to: .now), ThisProcess.time - startCost)
        let used = try LoopThreads.times().map { $0.value - (before[$0.key] ?? .zero) }
        await session.shutdown()
        let each = Double(requests)
        return Sample(
            rate: each / (elapsed / .seconds(1)), cost: cost / .microseconds(1) / each,
            loopCost: used.reduce(.zero, +) / .microseconds(1) / each,
            evenness: (used.min() ?? .zero) / max(used.max() ?? .zero, .nanoseconds(1)))
    }

    /// Returns the latencies of requests to `url` that are sent one after the other while 100 connections are made.
    private static func measureLatencies(
        _ loops: Int?, _ url: URL, during handshakes: URL, _ authority: String
    ) async throws -> [Duration] {
        let session = SessionManager {
            $0.proxy = .none
            $0.httpVersion = .http1
            $0.tls.trustRoots = .file(authority)
            $0.tls.resumesSessions = false
            $0.connectionLimits.eventLoops = loops
            $0.connectionLimits.maximumConnectionsPerHost = 100
        }
        _ = try await session.put(url, body: .bytes(Data("12".utf8)))
        _ = try await session.get(handshakes)
        let end = End()
        var latencies: [Duration] = []
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { end.isReached.store(true, ordering: .relaxed) }
                try await withThrowingDiscardingTaskGroup { group in
                    for _ in 0..<100 { group.addTask { _ = try await session.get(handshakes) } }
                }
            }
            while !end.isReached.load(ordering: .relaxed) {
                let start = ContinuousClock.now
                _ = try await session.put(url, body: .bytes(Data("12".utf8)))
                latencies.append(start.duration(to: .now))
            }
            try await group.waitForAll()
        }
        await session.shutdown()
        return latencies
    }

    private final class End: Sendable {
        let isReached = Atomic(false)
    }

    private static func perform(_ count: Int, on session: SessionManager, _ url: URL) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<inFlight {
                group.addTask {
                    for _ in 0..<(count + task) / inFlight {
                        _ = try await session.put(url, body: .bytes(Data("12".utf8)))
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}

/// The threads of event loops of this process.
private enum LoopThreads {
    /// Returns the processor times by the number of the thread, with a precision of nanoseconds. See proc(5).
    static func times() throws -> [String: Duration] {
        let manager = FileManager.default
        var times: [String: Duration] = [:]
        for task in try manager.contentsOfDirectory(atPath: "/proc/self/task") {
            let folder = "/proc/self/task/\(task)/"
            guard let name = try? String(contentsOfFile: folder + "comm", encoding: .utf8), name == "ANCurl\n",
                let line = try? String(contentsOfFile: folder + "schedstat", encoding: .utf8),
                let nanoseconds = line.split(separator: " ").first.flatMap({ Int64($0) })
            else { continue }
            times[task] = .nanoseconds(nanoseconds)
        }
        return times
    }
}
