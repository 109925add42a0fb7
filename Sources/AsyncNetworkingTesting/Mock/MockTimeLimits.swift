// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

/// The limits of `Timeouts` for one exchange of a ``MockTransport``, which hold while the transport waits.
final class MockTimeLimits: Sendable {
    private let request: Request
    private let clock: any Clock<Duration>
    private let elapsed: @Sendable () -> Duration
    /// The time waited since the last activity of the server.
    private let idleTime = Lock(Duration.zero)

    /// Begins an exchange, timed on the clock of its session, if that has one of its own.
    init(_ request: Request, clock: any Clock<Duration>) {
        self.request = request
        let clock = request.sessionClock ?? clock
        self.clock = clock
        elapsed = Self.stopwatch(clock)
    }

    /// Begins a new period without activity.
    func noteActivity() {
        idleTime.withLock { $0 = .zero }
    }

    /// Runs a wait for the server, and cancels it when a limit is reached.
    ///
    /// - Parameter isSeen: Whether the limit is one of the sleepers of a ``ManualClock``, because nothing else ends the
    ///   wait.
    func wait<Value: Sendable>(
        in phase: TransportError.TimeoutPhase, isSeen: Bool = false,
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let limit = nextLimit else { return try await work() }
        let begin = elapsed()
        defer {
            let waited = elapsed() - begin
            idleTime.withLock { $0 += waited }
        }
        return try await withThrowingTaskGroup(of: Value?.self) { [clock] group in
            group.addTask { try await work() }
            group.addTask {
                let left = min(limit.left, .longestSleep)
                if !isSeen, let clock = clock as? ManualClock {
                    try await clock.sleepUnseen(for: left)
                } else {
                    try await clock.sleep(for: left)
                }
                return nil
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() ?? nil else {
                throw TransportError.timedOut(phase, limit.whole, FailureContext(request.url))
            }
            return value
        }
    }

    /// The limit that will be reached first, and the time until then; `nil` if there is none.
    private var nextLimit: (left: Duration, whole: Duration)? {
        guard let timeouts = request.options?.timeouts else { return nil }
        let total = timeouts.total.map { ($0 - elapsed(), $0) }
        let idle = timeouts.idle.map { ($0 - idleTime.withLock(\.self), $0) }
        return [total, idle].compactMap(\.self).min { $0.0 < $1.0 }
    }

    private static func stopwatch(_ clock: some Clock<Duration>) -> @Sendable () -> Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }
}
