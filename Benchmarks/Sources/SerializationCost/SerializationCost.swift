// SPDX-License-Identifier: MIT

import AsyncNetworking
import ClientKit
import Foundation
import ServerKit

/// Measures the encoding of request bodies against a reference, and fails if a limit is exceeded:
/// `SerializationCost [ROUNDS]`.
///
/// - A nested form of 50 keys against `URLComponents`, which receives the flat names and values in order.
/// - A multipart form with a file of 1 GB, and one of 1,000 small parts, each against the upload of a plain file of the
///   same size, to a server that discards bodies. The parts are appended, and the plain file is written, before the
///   measurement.
///
/// The figures are medians of interleaved rounds.
@main
struct SerializationCost {
    static func main() async throws {
        try await run()
    }

    /// Measures on the global executor: `main` runs on the main actor, also if it is declared `@concurrent`.
    @concurrent private static func run() async throws {
        let rounds = max(CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 7, 1)
        var bars = Bars()
        try measureForms(rounds: rounds, &bars)
        try await measureUploads(rounds: rounds, &bars)
        if bars.isAnyMissed { exit(1) }
    }

    // MARK: Forms

    private static func measureForms(rounds: Int, _ bars: inout Bars) throws {
        let parameters = Form.parameters
        let encoder = URLEncodedFormEncoder()
        let encoded = try encoder.encode(parameters)
        let items = URLComponents(string: "?" + encoded)?.queryItems ?? []
        let expected = Form.query(of: items)
        guard encoded == expected, items.count == 50 else {
            throw Failure("The results of the encoders differ: \(expected)")
        }
        let repetitions = 2_000
        let (ours, theirs) = try interleave(rounds) {
            for _ in 0..<repetitions where try encoder.encode(parameters).isEmpty { throw Failure("empty") }
        } and: {
            for _ in 0..<repetitions where Form.query(of: items).isEmpty { throw Failure("empty") }
        }
        let words = "\(micro(ours, repetitions)) µs, URLComponents \(micro(theirs, repetitions)) µs"
        bars.check("A form of 50 nested keys: \(words)", ours / theirs, atMost: 0.67)
    }

    // MARK: Uploads

    private static func measureUploads(rounds: Int, _ bars: inout Bars) async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("an-serialization-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let programs = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let server = try BenchServer(program: programs.appendingPathComponent("BenchServer"))
        let uploader = try Uploader(port: server.port)

        let large = try Uploader.makeFile(directory.appendingPathComponent("large"), size: 1 << 30)
        let form = try Uploader.formWithFile(large)
        let (multipart, plain) = try await interleave(rounds) {
            try await uploader.upload(form.makeBody().body)
        } and: {
            try await uploader.upload(.file(large))
        }
        bars.check(
            "A form with a file of 1 GB: \(gigabytes(multipart)), a plain file \(gigabytes(plain))", multipart / plain,
            atMost: 1 / 0.9)

        let growth = try await PeakMemory.growth { try await uploader.upload(form.makeBody().body) }
        bars.check("Additional memory, in MB", Double(growth) / 1e6, atMost: 16)

        let contents = (0..<1_000).map { Data(repeating: UInt8(truncatingIfNeeded: $0), count: 1 << 10) }
        let formOfParts = try Uploader.formWithParts(contents)
        let size = formOfParts.length ?? 0
        let small = try Uploader.makeFile(directory.appendingPathComponent("small"), size: size)
        let repetitions = 100
        let (parts, file) = try await interleave(rounds) {
            for _ in 0..<repetitions { try await uploader.upload(formOfParts.makeBody().body) }
        } and: {
            for _ in 0..<repetitions { try await uploader.upload(.file(small)) }
        }
        let words = "\(micro(parts, repetitions)) µs, a plain file \(micro(file, repetitions)) µs"
        bars.check("A form of 1,000 parts, \(size) bytes: \(words)", parts / file, atMost: 1 / 0.9)
    }

    // MARK: Times

    /// Returns the median durations of two functions in seconds, after a warm-up run of each.
    private static func interleave(
        _ rounds: Int, _ first: () async throws -> Void, and second: () async throws -> Void
    ) async rethrows -> (Double, Double) {
        var times: ([Double], [Double]) = ([], [])
        for round in 0...rounds {
            let (one, two) = (try await seconds(first), try await seconds(second))
            if round > 0 {
                times.0.append(one)
                times.1.append(two)
            }
        }
        return (median(times.0), median(times.1))
    }

    private static func interleave(
        _ rounds: Int, _ first: () throws -> Void, and second: () throws -> Void
    ) rethrows -> (Double, Double) {
        var times: ([Double], [Double]) = ([], [])
        for round in 0...rounds {
            let one = try ContinuousClock().measure(first) / .seconds(1)
            let two = try ContinuousClock().measure(second) / .seconds(1)
            if round > 0 {
                times.0.append(one)
                times.1.append(two)
            }
        }
        return (median(times.0), median(times.1))
    }

    private static func seconds(_ work: () async throws -> Void) async rethrows -> Double {
        let start = ContinuousClock.now
        try await work()
        return (ContinuousClock.now - start) / .seconds(1)
    }

    private static func median(_ times: [Double]) -> Double {
        times.sorted()[times.count / 2]
    }

    private static func micro(_ seconds: Double, _ repetitions: Int) -> Double {
        (seconds / Double(repetitions) * 1e7).rounded() / 10
    }

    private static func gigabytes(_ seconds: Double) -> String {
        "\((Double(1 << 30) / 1e9 / seconds * 100).rounded() / 100) GB/s"
    }
}
