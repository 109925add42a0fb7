// SPDX-License-Identifier: MIT

import ANSystem

/// A test that runs in a simulated world, once for each of many seeds.
///
/// All tasks of the test run on one thread, and a seed determines their order, the random numbers, and what servers do.
/// Time is virtual: when all tasks wait, the clock moves to the next one that sleeps, so that a timeout of an hour
/// takes no time. If a test fails with a seed, it always fails with it.
///
/// ```swift
/// @Test func `a token is refreshed once`() async throws {
///     try await Simulation { world in
///         let server = world.transport { request in … }
///         let api = SessionManager {
///             $0.transport = server
///             $0.clock = world.clock
///         }
///         …
///     }.explore(seeds: 1...500)
/// }
/// ```
///
/// What is simulated: tasks, actors and task groups of the test and of the code that it calls, except those isolated to
/// the main actor or to an actor with its own executor; the clock ``SimulatedWorld/clock``, and `Task.sleep` in tasks
/// that are children of the test's; the date and the random numbers of this package. Threads and dispatch queues of other code are not; what they do
/// is not repeated with a seed, and a test that waits for them is reported as a hang. Other tests of the process are
/// not affected. The order of sets and dictionaries differs between processes unless the environment variable
/// `SWIFT_DETERMINISTIC_HASHING` is set; with it, a seed gives the same trace in each.
public struct Simulation: Sendable {
    /// The number of steps, each from one suspension of a task to the next, after which a test counts as endless;
    /// 1,000,000 by default.
    public var maximumSteps = 1_000_000
    private let body: @Sendable (SimulatedWorld) async throws -> Void

    /// Creates a test from a closure, which is called once for each seed. It fails if the closure throws an error,
    /// waits forever, or returns while one of its tasks still sleeps or an exchange is still open.
    public init(_ body: @escaping @Sendable (SimulatedWorld) async throws -> Void) {
        self.body = body
    }

    /// Runs the test once for each seed, until it fails.
    ///
    /// - Parameter seeds: The seeds; those from 1 to 100 by default.
    /// - Throws: ``SimulationFailure`` for the first seed with which the test fails; `CancellationError` if the task is
    ///   cancelled, which is checked before each seed.
    public func explore(seeds: ClosedRange<UInt64> = 1...100) async throws {
        for seed in seeds {
            try Task.checkCancellation()
            let run = try await run(seed: seed)
            if let failure = run.failure { throw failure }
        }
    }

    /// The result of a test with one seed.
    package struct Run: Sendable {
        package let failure: SimulationFailure?
        package let world: SimulatedWorld
        /// The events of the world, one in each line, and a digest of the order of its tasks.
        package let trace: String
    }

    /// Runs the test with one seed.
    ///
    /// - Throws: `SystemError` if the thread cannot be created.
    package func run(seed: UInt64) async throws -> Run {
        let scheduler = SimulationScheduler(
            seed: seed, startingAt: SimulatedWorld.firstDate, stepLimit: maximumSteps)
        let world = SimulatedWorld(seed: seed, scheduler)
        guard RuntimeHooks.areSet else {
            return Run(failure: SimulationFailure(.unsupported, world), world: world, trace: "")
        }
        let result = Lock<Result<Void, any Error>?>(nil)
        let task = Task(executorPreference: scheduler) { [body] in
            do {
                try await body(world)
                result.withLock { $0 = .success(()) }
            } catch {
                result.withLock { $0 = .failure(error) }
            }
        }
        return await onThread(scheduler) {
            Self.run(scheduler, world, task) { result.withLock { $0 } }
        }
    }

    /// Runs the jobs of a world to its end.
    private static func run(
        _ scheduler: SimulationScheduler, _ world: SimulatedWorld, _ task: Task<Void, Never>,
        result: () -> Result<Void, any Error>?
    ) -> Run {
        let ending = scheduler.run { result() == nil }
        let reason: SimulationFailure.Reason?
        switch (result(), ending) {
        case (_, .tooManySteps): reason = .endless(steps: scheduler.schedule.steps)
        case (.failure(let error)?, _): reason = .threw(error)
        case (nil, .idle): reason = .hang(waiting: world.trace.openLanes)
        case (.success?, .idle):
            let sleepers = scheduler.sleepers.count
            let lanes = world.trace.openLanes
            reason = sleepers == 0 && lanes.isEmpty ? nil : .leftOver(sleepers: sleepers, lanes)
        }
        // Made before what is left is ended, which is no event of the test.
        let run = Run(
            failure: reason.map { SimulationFailure($0, world) }, world: world,
            trace: world.trace.text(scheduler.schedule))
        guard case .idle = ending else { return run }
        // Ends what is left, so that nothing of this world is kept.
        task.cancel()
        world.close()
        _ = scheduler.run { true }
        return run
    }

    private func onThread<Value: Sendable>(
        _ scheduler: SimulationScheduler, _ body: @escaping @Sendable () -> Value
    ) async -> Value {
        await withCheckedContinuation { continuation in
            let run: @Sendable () -> Void = {
                continuation.resume(returning: SystemSimulation.run(scheduler, body))
            }
            do {
                try SystemThread(name: "simulation", stackSize: 8 << 20, run).detach()
            } catch {
                // Without a thread of its own, the simulation borrows this one until it has ended.
                run()
            }
        }
    }
}

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
