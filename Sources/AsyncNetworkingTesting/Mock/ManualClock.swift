// SPDX-License-Identifier: MIT

import ANSystem
public import FoundationEssentials

/// A clock that is advanced manually, so that tests of timing take no time.
///
/// A session uses it if it is set as `SessionConfiguration.clock`, and a ``MockTransport`` if it was created with it.
/// The clock also provides the date by which the session judges the ages of cached responses and the expiry of tokens.
///
/// ```swift
/// let clock = ManualClock()
/// let task = Task { try await retry(after: .seconds(30), clock: clock) }
/// try await clock.sleepers(count: 1)      // the task is sleeping
/// clock.advance(by: .seconds(30))
/// ```
///
/// All members may be used from any thread or task at any time.
public final class ManualClock: Clock {
    private let state = Observed(State())
    private let start: Date

    /// Creates a clock whose time is zero. Only ``advance(by:)`` changes it.
    ///
    /// - Parameter date: The date at which the time is zero, in whole seconds, rounded down; by default the current one.
    public init(date: Date = .now) {
        start = Date(timeIntervalSince1970: date.timeIntervalSince1970.rounded(.down))
    }

    /// The date at the clock's current time.
    public var date: Date { start + now.offset / .seconds(1) }

    /// The current time of the clock; zero until ``advance(by:)`` is called. It never decreases.
    public var now: Instant { state.value.now }
    /// The smallest step of the clock: zero, because any duration is possible.
    public var minimumResolution: Duration { .zero }

    /// Sleeps until the clock is advanced to `deadline` or beyond; returns immediately if that time has been reached.
    ///
    /// - Parameters:
    ///   - deadline: The time at which the task is resumed.
    ///   - tolerance: Ignored: the call of ``advance(by:)`` that reaches the deadline wakes the task.
    /// - Throws: `CancellationError` if the task is cancelled before or during the sleep.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        try Task.checkCancellation()
        let sleeper: Int? = state.update { state in
            guard deadline > state.now else { return nil }
            state.lastSleeper += 1
            state.sleepers[state.lastSleeper] = deadline
            return state.lastSleeper
        }
        guard let sleeper else { return }
        try await withTaskCancellationHandler {
            try await state.wait { $0.now >= deadline }
        } onCancel: {
            state.update { _ = $0.sleepers.removeValue(forKey: sleeper) }
        }
    }

    /// Sleeps for a duration without being one of ``sleepers``: a limit for something else that a test waits for.
    func sleepUnseen(until deadline: Instant) async throws {
        try await state.wait { $0.now >= deadline }
    }

    /// Advances the clock and wakes the tasks whose deadlines have been reached. A zero or negative duration has no
    /// effect.
    ///
    /// The clock jumps to the new time, which is ``now`` for all woken tasks; they are woken in the order in which they
    /// began to sleep, not in that of their deadlines. Returns immediately, possibly before the tasks run. Use
    /// ``sleepers(count:)`` to wait until tasks sleep again.
    public func advance(by duration: Duration) {
        state.update { state in
            state.now = state.now.advanced(by: max(.zero, duration))
            let now = state.now
            // Removed at once, so that a subsequent wait for sleepers counts only tasks that sleep again.
            state.sleepers = state.sleepers.filter { $0.value > now }
        }
    }

    /// The remaining durations of the tasks that are sleeping now, in ascending order; empty if no task is sleeping.
    public var sleepers: [Duration] {
        let state = state.value
        return state.sleepers.values.map { state.now.duration(to: $0) }.sorted()
    }

    /// Waits without a time limit until at least `count` tasks are sleeping, and then returns ``sleepers``: the
    /// remaining durations of all sleeping tasks in ascending order.
    ///
    /// - Parameter count: The number of tasks; with 0 or a negative number, returns at once.
    /// - Throws: `CancellationError` if the task is cancelled, also before the call.
    @discardableResult
    public func sleepers(count: Int) async throws -> [Duration] {
        try await state.wait { $0.sleepers.count >= count }
        return sleepers
    }

    /// An instant of a ``ManualClock``, given by its distance from the clock's zero.
    public struct Instant: InstantProtocol {
        /// The time since the clock's zero; negative for an instant before it.
        public var offset: Duration

        /// Creates an instant at a distance from the clock's zero, negative for an earlier one; by default the zero
        /// itself.
        public init(offset: Duration = .zero) {
            self.offset = offset
        }

        /// Returns the instant `duration` after this one, or before it if `duration` is negative.
        public func advanced(by duration: Duration) -> Instant {
            Instant(offset: offset + duration)
        }

        /// Returns the duration from this instant to `other`; negative if `other` is earlier.
        public func duration(to other: Instant) -> Duration {
            other.offset - offset
        }

        /// Returns whether `left` is earlier than `right`.
        public static func < (left: Instant, right: Instant) -> Bool {
            left.offset < right.offset
        }
    }

    private struct State {
        var now = Instant()
        /// The deadlines of the sleeping tasks.
        var sleepers: [Int: Instant] = [:]
        var lastSleeper = 0
    }
}

extension ManualClock: DatedClock {
    package var millisecondsSince1970: Int64 {
        let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded()
        // A test may have let everything expire.
        return milliseconds.isNaN ? 0 : Int64(min(max(milliseconds, -9e18), 9e18))
    }
}
