// SPDX-License-Identifier: MIT

import FoundationEssentials
import SimulationWorld
import TestSupport
import Testing

@Suite struct SimulatedProgramsTests {
    @Test(arguments: Exploration.families)
    func `no oracle is violated by the programs of fixed seeds`(family: String) async throws {
        var exploration = Exploration()
        for seed in 1...UInt64(rounds(60, few: 10)) {
            if let finding = try await exploration.run(family, seed: seed) { Issue.record("\(finding)") }
        }
    }

    @Test func `seeds that once failed do not fail again`() async throws {
        var exploration = Exploration()
        for line in try Self.corpus() {
            let words = line.split(separator: " ")
            let seed = try #require(words.dropFirst().first.flatMap { UInt64($0) })
            if let finding = try await exploration.run(String(words[0]), seed: seed) { Issue.record("\(finding)") }
        }
    }

    @Test(arguments: Exploration.families)
    func `the same seed gives the same trace`(family: String) async throws {
        for seed in 1...UInt64(rounds(10, few: 2)) {
            let trace = try await Exploration.trace(family, seed: seed)
            #expect(try await Exploration.trace(family, seed: seed) == trace)
        }
    }

    @Test func `two processes with the same seeds print the same traces`() async throws {
        let products = CommandLine.arguments.first { $0.contains(".xctest") }
            .map { URL(filePath: $0).deletingLastPathComponent().path }
        let program = try #require(ProcessInfo.processInfo.environment["AN_PRODUCTS"] ?? products) + "/Simulate"
        var command = Command(program)
        command.environment = [
            "TRACE": "1", "SEED": "1", "COUNT": "\(rounds(6, few: 2))", "SWIFT_DETERMINISTIC_HASHING": "1",
        ]
        // Those of AddressSanitizer apply to the program, too.
        command.environment?["ASAN_OPTIONS"] = ProcessInfo.processInfo.environment["ASAN_OPTIONS"]
        let first = try await command.run()
        #expect(first.status == 0)
        #expect(first.output.count > 10_000)
        #expect(try await command.run().output == first.output)
    }

    private static func corpus() throws -> [Substring] {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Simulation/Corpus/seeds")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("#") }
    }
}
