// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworkingTesting

/// Runs the programs of seeds, and shrinks those that fail.
public struct Exploration: Sendable {
    /// What a failing seed has shown.
    public struct Finding: Sendable, CustomStringConvertible {
        /// The family of the program.
        public let family: String
        /// The seed of the program.
        public let seed: UInt64
        /// The violation, in a line.
        public let summary: String
        /// The oracle that was violated; 1 for a hang and 0 for another failure.
        public let oracle: Int
        /// The shrunk program, the violation and the diagram.
        public let description: String
    }

    /// The counts of what the runs have reached.
    public private(set) var covered: [String: Int] = [:]
    /// The number of programs.
    public private(set) var runs = 0
    /// The number of their actions.
    public private(set) var calls = 0
    /// The number of jobs of their tasks.
    public private(set) var steps = 0

    /// Creates an exploration without runs.
    public init() {}

    /// The names of the families.
    public static let families = Program.Family.allCases.map(\.rawValue)

    /// Runs the program of a seed; returns `nil` if no oracle is violated.
    public mutating func run(_ family: String, seed: UInt64) async throws -> Finding? {
        guard let family = Program.Family(rawValue: family) else { return nil }
        let program = Program(family, seed: seed)
        let first = try await Self.run(program)
        runs += 1
        calls += program.actions.count
        steps += first.steps
        for (name, count) in first.covered { covered[name, default: 0] += count }
        guard let failure = first.failure else { return nil }
        return try await Self.shrink(program, failure)
    }

    /// Returns the trace of a seed.
    public static func trace(_ family: String, seed: UInt64) async throws -> String {
        guard let family = Program.Family(rawValue: family) else { return "" }
        return try await run(Program(family, seed: seed)).trace
    }

    private struct Outcome {
        let failure: SimulationFailure?
        let steps: Int
        let covered: [String: Int]
        let trace: String
    }

    private static func run(_ program: Program) async throws -> Outcome {
        let covered = Covered()
        var simulation = Simulation { world in
            let runner = Runner(program, in: world)
            do {
                try await runner.run()
                covered.set(runner.ledger.facts.covered)
            } catch {
                covered.set(runner.ledger.facts.covered)
                throw error
            }
        }
        // Many more than any program needs that ends.
        simulation.maximumSteps = 150_000
        let result = try await simulation.run(seed: program.seed)
        return Outcome(
            failure: result.failure, steps: result.world.steps, covered: covered.value, trace: result.trace)
    }

    /// Leaves out actions as long as the same oracle is violated.
    private static func shrink(_ program: Program, _ failure: SimulationFailure) async throws -> Finding {
        var (program, failure) = (program, failure)
        let oracle = number(failure)
        var index = 0
        while index < program.actions.count {
            var smaller = program
            smaller.actions.remove(at: index)
            if let other = try await run(smaller).failure, number(other) == oracle {
                (program, failure) = (smaller, other)
            } else {
                index += 1
            }
        }
        return Finding(
            family: program.family.rawValue, seed: program.seed, summary: summary(failure), oracle: oracle,
            description: """
                FAMILY=\(program.family) SEED=\(program.seed)
                \(failure)

                \(program.settings)
                \(program.actions.map { "\($0)" }.joined(separator: "\n"))
                """)
    }

    private static func number(_ failure: SimulationFailure) -> Int {
        switch failure.reason {
        case .threw(let error): (error as? Violation)?.oracle ?? 0
        case .hang, .endless: 1
        case .leftOver: 9
        default: 0
        }
    }

    private static func summary(_ failure: SimulationFailure) -> String {
        switch failure.reason {
        case .threw(let error): "\(error)"
        case .hang(let waiting): "oracle 1: hang: \(waiting)"
        case .endless: "oracle 1: endless"
        case .leftOver(let sleepers, let lanes): "oracle 9: \(sleepers) sleepers, \(lanes)"
        default: "\(failure.reason)"
        }
    }
}

/// What a run has reached, which the simulation's thread sets.
private final class Covered: Sendable {
    private let state = Lock<[String: Int]>([:])

    var value: [String: Int] { state.withLock(\.self) }

    func set(_ covered: [String: Int]) {
        state.withLock { $0 = covered }
    }
}
