// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

/// Processes that are killed while they write, and processes that write at the same time. `AN_CACHE_KILLS` and
/// `AN_CACHE_SECONDS` make the tests longer.
@Suite struct CrashTests {
    private let directory = TemporaryDirectory()

    private var program: String {
        get throws {
            let test = try #require(ProcessInfo.processInfo.environment["AN_PRODUCTS"] ?? Self.products)
            return test + "/CacheWriter"
        }
    }

    /// The directory of the test bundle and of the programs.
    private static var products: String? {
        CommandLine.arguments.first { $0.contains(".xctest") }?.split(
            separator: "/", omittingEmptySubsequences: false
        ).dropLast().joined(separator: "/")
    }

    private static func number(_ name: String, _ standard: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? standard
    }

    /// Slow, because each process runs for up to 0.3 s, and all bodies are compared after it.
    @Test(.timeLimit(.minutes(10)))
    func `after kill -9 at any moment, each body is right or missing`() async throws {
        var found = 0
        for round in 0..<Self.number("AN_CACHE_KILLS", rounds(12, few: 4)) {
            let microseconds = UInt64(round * 7_919 % 97) * 3_000 + 15_000
            let outcome = try await Command(program, directory.path, "\(round)", "1000000", "\(microseconds)").run()
            #expect(outcome.status == 128 + 9)
            found += try await verify()
            // Opening the directory has removed what the process had not finished.
            #expect(try directory.files.filter { $0.hasSuffix(".part") } == [])
        }
        #expect(found > 0)
    }

    @Test(.timeLimit(.minutes(10)))
    func `two processes write to one directory without a wrong body`() async throws {
        let seconds = Self.number("AN_CACHE_SECONDS", 1)
        let program = try program
        try await withThrowingTaskGroup(of: Void.self) { group in
            for seed in [1, 2] {
                group.addTask { [path = directory.path] in
                    let outcome = try await Command(program, path, "\(seed)", "100000000", "\(seconds * 1_000_000)")
                        .run()
                    #expect(outcome.status == 128 + 9)
                }
            }
            try await group.waitForAll()
        }
        #expect(try await verify() > 0)
    }

    @Test func `a disk that refuses larger files leaves neither wrong bodies nor parts of them`() async throws {
        // A write beyond the limit fails as on a full disk, in the middle of a file. See setrlimit(2).
        let limited = "ulimit -f 64; exec \"$0\" \"$@\""
        let outcome = try await Command("/bin/sh", "-c", limited, program, directory.path, "7", "300").run()
        #expect(outcome.status == 0)
        #expect(try directory.files.contains { $0.hasSuffix(".entry") })
        #expect(try directory.files.filter { $0.hasSuffix(".part") || $0.hasSuffix(".body") } == [])
        #expect(try await verify() > 0)
    }

    /// Opens the directory and compares all bodies with the bytes that belong to them. Returns their number.
    private func verify() async throws -> Int {
        let cache = ResponseCache.disk(directory.path, capacity: 64 << 20)
        #expect(cache.diskFailure == nil)
        var count = 0
        for number in 0..<40 {
            let key = CacheKey(target: "http://a.example/\(number)")
            for entry in cache.entries(key) {
                let seed = try #require(
                    HTTPField.Name("X-Seed").flatMap { entry.response.headers[$0] }.flatMap { UInt64($0) })
                guard let body = cache.body(of: entry, key, nil, ending: ResponseEnding()) else { continue }
                let bytes = try await body.collect(upTo: .max)
                let expected = Data(
                    (0..<Int(entry.response.bodyLength)).map {
                        UInt8(truncatingIfNeeded: (seed &+ UInt64($0)) &* 2_654_435_761 >> 7)
                    })
                #expect(bytes == expected)
                count += 1
            }
        }
        return count
    }
}
