// SPDX-License-Identifier: MIT

import SimulationWorld
import Testing

@Suite struct SimulatedProgramsTests {
    @Test(arguments: Exploration.families)
    func `no oracle is violated by the programs of fixed seeds`(family: String) async throws {
        var exploration = Exploration()
        for seed in UInt64(1)...150 {
            if let finding = try await exploration.run(family, seed: seed) { Issue.record("\(finding)") }
        }
    }

    @Test(arguments: Exploration.families)
    func `the same seed gives the same trace`(family: String) async throws {
        for seed in UInt64(1)...20 {
            let trace = try await Exploration.trace(family, seed: seed)
            #expect(try await Exploration.trace(family, seed: seed) == trace)
        }
    }
}
