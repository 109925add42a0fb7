// SPDX-License-Identifier: MIT

/// A clock that moves only when it is told to, so that tests of time take none.
///
/// ```swift
/// let clock = ManualClock()
/// let task = Task { try await retry(after: .seconds(30), clock: clock) }
/// try await clock.sleepers(count: 1)      // the task sleeps now
/// clock.advance(by: .seconds(30))
/// ```
public final class ManualClock: Clock {
    private let state = Observed(State())

    /// Creates a clock that stands at its zero.
    public init() {}

    /// The time that the clock stands at.
    public var now: Instant { state.value.now }
    /// The smallest step: any duration.
    public var minimumResolution: Duration { .zero }

    /// Sleeps until the clock was moved to `deadline`; returns at once when it is there already.
    ///
    /// - Throws: `CancellationError` when the task is, or becomes, cancelled.
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

    /// Moves the clock forward and wakes whose time has come; a negative duration moves nothing.
    public func advance(by duration: Duration) {
        state.update { state in
            state.now = state.now.advanced(by: max(.zero, duration))
            let now = state.now
            // Off the list at once: who asks for sleepers next means those that sleep again.
            state.sleepers = state.sleepers.filter { $0.value > now }
        }
    }

    /// How long the tasks that sleep now have left, the shortest time first.
    public var sleepers: [Duration] {
        let state = state.value
        return state.sleepers.values.map { state.now.duration(to: $0) }.sorted()
    }

    /// Waits until so many tasks sleep, or more, and returns how long each has left, the shortest time first.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    @discardableResult
    public func sleepers(count: Int) async throws -> [Duration] {
        try await state.wait { $0.sleepers.count >= count }
        return sleepers
    }

    /// A point in a manual clock's time.
    public struct Instant: InstantProtocol {
        /// The time since the clock's zero.
        public var offset: Duration

        /// Creates an instant.
        public init(offset: Duration = .zero) {
            self.offset = offset
        }

        /// The instant after `duration`.
        public func advanced(by duration: Duration) -> Instant {
            Instant(offset: offset + duration)
        }

        /// The time from here to `other`.
        public func duration(to other: Instant) -> Duration {
            other.offset - offset
        }

        /// Whether `left` is earlier.
        public static func < (left: Instant, right: Instant) -> Bool {
            left.offset < right.offset
        }
    }

    private struct State {
        var now = Instant()
        /// When each sleeping task wants to be woken.
        var sleepers: [Int: Instant] = [:]
        var lastSleeper = 0
    }
}
