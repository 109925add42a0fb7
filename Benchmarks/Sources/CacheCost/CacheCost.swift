// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import ClientKit
import CostKit
import Foundation

/// Measures a session's response cache, and fails if a limit is missed: `CacheCost [REQUESTS]`.
///
/// - The processor time that a cache adds to a request that it cannot serve, with a transport that responds
///   immediately.
/// - The responses per second from memory, and of 4 KB from the disk, through the whole pipeline on one core.
/// - The time to open a directory of 100,000 responses.
/// - The time to download 512 MB to a file from a server in this process, with a cache on the disk and without.
@main
struct CacheCost {
    static func main() async throws {
        try await run()
    }

    /// Measures on the global executor: `main` runs on the main actor, also if it is declared `@concurrent`.
    @concurrent private static func run() async throws {
        let requests = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 20_000
        let directory = FileManager.default.temporaryDirectory.appending(path: "an-cache-cost-\(UUID())")
        defer { try? FileManager.default.removeItem(at: directory) }
        var bars = Bars()
        try await measureMisses(requests, &bars)
        try await measureHits(requests, directory.appending(path: "hits").path(), &bars)
        try await measureOpening(directory.appending(path: "many").path(), &bars)
        try await measureDownload(directory, &bars)
        if bars.isAnyMissed { exit(1) }
    }

    // MARK: Requests

    private static func measureMisses(_ requests: Int, _ bars: inout Bars) async throws {
        let kinds: [(String, HTTPFields)] = [
            ("that cannot be stored", [.cacheControl: "no-store"]), ("without validators", [:]),
        ]
        for (kind, headers) in kinds {
            func cost(_ cache: ResponseCache?) async throws -> Cost {
                let manager = session(cache, headers: headers, Data())
                return try await best(requests) { url in _ = try await manager.data(for: Request(url: url)) }
            }
            let added = try await cost(.memory()) - cost(nil)
            bars.check("A cache adds to a response \(kind): \(added)", added.microseconds, atMost: 3)
        }
    }

    private static func measureHits(_ requests: Int, _ directory: String, _ bars: inout Bars) async throws {
        let caches: [(String, ResponseCache, Double)] = [
            ("memory", .memory(), 150_000), ("the disk", .disk(directory, memory: 0), 20_000),
        ]
        for (place, cache, bar) in caches {
            let manager = session(cache, headers: [.cacheControl: "max-age=86400"], Data(count: 4_096))
            let cost = try await best(requests) { url in
                _ = try await manager.data(for: Request(url: url))
            }
            let rate = 1e6 / cost.microseconds
            bars.check("Responses of 4 KB from \(place): \(Int(rate))/s, \(cost)", bar / rate, atMost: 1)
        }
    }

    private static func session(_ cache: ResponseCache?, headers: HTTPFields, _ body: Data) -> SessionManager {
        SessionManager {
            $0.transport = InstantTransport(answer: body, headers: headers)
            $0.cache = cache
        }
    }

    /// Returns the best of five runs.
    private static func best(_ requests: Int, _ request: (URL) async throws -> Void) async throws -> Cost {
        guard let url = URL(string: "http://127.0.0.1/small.json") else { throw CancellationError() }
        func run(_ count: Int) async throws { for _ in 0..<count { try await request(url) } }
        var best = try await Cost.measure(requests, run)
        for _ in 1..<5 { best = Cost.min(best, try await .measure(requests, run)) }
        return best
    }

    // MARK: Directories

    private static func measureOpening(_ directory: String, _ bars: inout Bars) async throws {
        let count = 100_000
        let urls = (0..<count).compactMap { URL(string: "http://127.0.0.1/\($0)") }
        let manager = session(.disk(directory, memory: 0), headers: [.cacheControl: "max-age=86400"], Data(count: 100))
        for url in urls { _ = try await manager.data(for: Request(url: url)) }
        var (time, cache) = (Double.infinity, ResponseCache.memory())
        for _ in 0..<3 {
            let start = ContinuousClock.now
            cache = .disk(directory, memory: 0)
            time = min(time, (ContinuousClock.now - start) / .milliseconds(1))
        }
        let reader = session(cache, headers: [:], Data())
        for url in urls.shuffled().prefix(1_000) {
            let source = try await reader.data(for: Request(url: url)).metrics.source
            guard source == .cache else { throw CancellationError() }
        }
        guard cache.usage.entries == count else { throw CancellationError() }
        bars.check("Opening a directory of 100,000 responses, in ms", time, atMost: 300)
    }

    private static func measureDownload(_ directory: URL, _ bars: inout Bars) async throws {
        let file = directory.appending(path: "download").path()
        let body = Reply(headers: ["Cache-Control": "max-age=86400"], body: .generated(512 << 20))
        try await StubServer.with { server in
            server.route("/", .reply(body))
            func seconds(_ cache: ResponseCache?) async throws -> Double {
                let manager = SessionManager {
                    $0.cache = cache
                    $0.proxy = .none
                }
                // All but the first download would pay for truncating the file of the previous one.
                try? FileManager.default.removeItem(atPath: file)
                let start = ContinuousClock.now
                try await manager.withResponse(for: Request(url: server.url("/"))) { _, body in
                    _ = try await body.write(to: file)
                }
                let time = (ContinuousClock.now - start) / .seconds(1)
                await manager.shutdown()
                return time
            }
            var (with, without) = (Double.infinity, Double.infinity)
            for round in 0..<3 {
                without = min(without, try await seconds(nil))
                let cache = ResponseCache.disk(directory.appending(path: "large\(round)").path(), capacity: 4 << 30)
                with = min(with, try await seconds(cache))
                guard cache.usage.entries == 1 else { throw CancellationError() }
                cache.removeAll()
            }
            bars.check(
                "A download of 512 MB: \(with) s with a cache, \(without) s without", with / without, atMost: 1.15)
        }
    }
}
