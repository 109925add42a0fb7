// SPDX-License-Identifier: MIT

/// The failure of a ``Simulation`` with a seed.
///
/// Its description has the seed, the reason, and a diagram of the events, with a line for each lane, such as that of an
/// exchange, and a column for each event.
public struct SimulationFailure: Error, CustomStringConvertible, Sendable {
    /// The seed, with which the test fails again.
    public let seed: UInt64
    /// Why the test failed.
    public let reason: Reason
    /// The diagram of the events.
    public let diagram: String

    init(_ reason: Reason, _ world: SimulatedWorld) {
        seed = world.seed
        self.reason = reason
        diagram = world.trace.diagram
    }

    /// The reason of a failure.
    @nonexhaustive
    public enum Reason: Sendable {
        /// The closure threw an error.
        case threw(any Error)
        /// All tasks wait, and none of them for a time. The names of what has begun and not ended, such as exchanges.
        case hang(waiting: [String])
        /// The test did not end within ``Simulation/maximumSteps``.
        case endless(steps: Int)
        /// The closure returned, but some tasks still sleep, or something that has begun, such as an exchange, has not
        /// ended.
        case leftOver(sleepers: Int, [String])
        /// The Swift runtime has no hooks through which tasks could be scheduled: it is linked statically.
        case unsupported
    }

    /// The seed, the reason, and the diagram of the events.
    public var description: String {
        """
        The simulation failed with seed \(seed): \(reasonText)
        Run it again with explore(seeds: \(seed)...\(seed)).

        \(diagram)
        """
    }

    private var reasonText: String {
        switch reason {
        case .threw(let error): "\(error)"
        case .hang(let lanes):
            "All tasks wait forever. Open: \(lanes.isEmpty ? "nothing" : lanes.joined(separator: "; "))."
        case .endless(let steps): "It has not ended after \(steps) steps."
        case .leftOver(let sleepers, let lanes):
            "It has ended, but \(sleepers) tasks sleep. Open: \(lanes.isEmpty ? "nothing" : lanes.joined(separator: "; "))."
        case .unsupported: "The Swift runtime is linked statically, so that its tasks cannot be scheduled."
        }
    }
}
