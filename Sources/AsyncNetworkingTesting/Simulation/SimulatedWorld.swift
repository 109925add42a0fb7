// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
public import FoundationEssentials

/// The world in which a ``Simulation`` runs a test: its clock, its random numbers and its servers.
public final class SimulatedWorld: Sendable {
    /// The seed of this run.
    public let seed: UInt64
    /// The clock of the world, for `SessionConfiguration.clock` and for the test itself. The date that belongs to it
    /// begins on 2026-01-01.
    public let clock: SimulatedClock
    let scheduler: SimulationScheduler
    let trace: SimulationTrace
    private let counts = Lock((exchanges: 0, transports: [@Sendable () async -> Void]()))

    init(seed: UInt64, _ scheduler: SimulationScheduler) {
        self.seed = seed
        self.scheduler = scheduler
        clock = SimulatedClock(scheduler)
        trace = SimulationTrace { scheduler.now }
    }

    /// The first date, 2026-01-01, in milliseconds since 1970.
    static let firstDate: Int64 = 1_767_225_600_000

    /// The date of the world, which the library uses in it.
    public var date: Date { Date(timeIntervalSince1970: Double(scheduler.millisecondsSince1970) / 1_000) }

    /// Returns a random number from a range, which the seed determines.
    public func random(in range: ClosedRange<Int>) -> Int {
        var generator = Generator(scheduler: scheduler)
        return .random(in: range, using: &generator)
    }

    /// Returns whether an event with a probability occurs, which the seed determines.
    ///
    /// - Parameter probability: From 0 for never to 1 for always.
    public func chance(_ probability: Double) -> Bool {
        var generator = Generator(scheduler: scheduler)
        return .random(in: 0..<1, using: &generator) < probability
    }

    /// Waits for a random duration. Other tasks run meanwhile.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func pause(_ range: ClosedRange<Duration> = .zero ... .milliseconds(100)) async throws {
        try await clock.sleep(for: random(in: range))
    }

    /// Adds an event to the diagram of a failure.
    public func note(_ text: String) {
        trace.add("test", "•", text)
    }

    /// Moves the date without the clock, as when the system's clock is set; a negative duration moves it back.
    public func moveDate(by duration: Duration) {
        scheduler.moveDate(by: duration.clampedNanoseconds / 1_000_000)
    }

    /// In whole milliseconds above the lower bound, so that some events are at the same time, or in nanoseconds for a
    /// shorter range.
    func random(in range: ClosedRange<Duration>) -> Duration {
        let width = (range.upperBound - range.lowerBound).clampedNanoseconds
        let step: Int64 = width < 1_000_000 ? 1 : 1_000_000
        return range.lowerBound + .nanoseconds(step) * random(in: 0...Int(width / step))
    }

    // MARK: For simulations of this package

    /// Adds an event to a lane of the diagram.
    package func mark(_ lane: String, _ mark: Character, _ text: String, isOpen: Bool? = nil) {
        trace.add(lane, mark, text, isOpen: isOpen)
    }

    /// Returns the number of the next exchange, from 1.
    package func nextExchange() -> Int {
        counts.withLock { counts in
            counts.exchanges += 1
            return counts.exchanges
        }
    }

    /// The number of jobs that have run.
    package var steps: Int { scheduler.schedule.steps }
    /// The number of exchanges that have begun.
    package var exchanges: Int { counts.withLock { $0.exchanges } }

    /// Returns the error with which a system call fails, given its name and path; `nil` if it is performed.
    package typealias FileHandler = @Sendable (String, String?) -> Int32?

    /// Sets the function that is called before a file is opened or changes, and the one that returns how many of a
    /// number of bytes one write accepts; `nil` removes it.
    package func onFileChange(_ handler: FileHandler?, writing: (@Sendable (Int) -> Int)? = nil) {
        scheduler.onFileChange(handler, writing: writing)
    }

    /// Ends what waits for the servers of a world that has ended.
    func close() {
        for shutDown in counts.withLock({ $0.transports }) {
            // Ends at once: a transport of the world shuts down without waiting.
            Task(executorPreference: scheduler) { await shutDown() }
        }
    }

    func register(_ shutDown: @escaping @Sendable () async -> Void) {
        counts.withLock { $0.transports.append(shutDown) }
    }

    private struct Generator: RandomNumberGenerator {
        let scheduler: SimulationScheduler

        func next() -> UInt64 { scheduler.randomBits() }
    }
}

/// The clock of a ``SimulatedWorld``, which moves when all tasks wait.
public struct SimulatedClock: Clock {
    private let scheduler: SimulationScheduler

    init(_ scheduler: SimulationScheduler) {
        self.scheduler = scheduler
    }

    /// The current time.
    public var now: ManualClock.Instant { ManualClock.Instant(offset: .nanoseconds(scheduler.now)) }
    /// The smallest step of the clock, 1 ns.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Sleeps until the world has reached a time; returns immediately if it has.
    ///
    /// - Parameters:
    ///   - deadline: The time at which the task is resumed.
    ///   - tolerance: Ignored.
    /// - Throws: `CancellationError` if the task is cancelled.
    public func sleep(until deadline: ManualClock.Instant, tolerance: Duration? = nil) async throws {
        try await scheduler.sleep(until: deadline.offset.clampedNanoseconds)
    }
}

extension SimulatedClock: DatedClock {
    package var millisecondsSince1970: Int64 { scheduler.millisecondsSince1970 }
}
