// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

/// The limits of `Timeouts` for one exchange of a ``MockTransport``, which hold while the transport waits.
final class MockTimeLimits: Sendable {
    private let request: Request
    /// The time since the beginning of the exchange.
    private let elapsed: @Sendable () -> Duration
    /// Returns at a time since the beginning; `isSeen` is that of ``wait(in:isSeen:_:)``.
    private let sleep: @Sendable (_ deadline: Duration, _ isSeen: Bool) async throws -> Void
    /// The time waited since the last activity of the server.
    private let idleTime = Lock(Duration.zero)

    /// Begins an exchange, timed on the clock of its session, if that has one of its own.
    init(_ request: Request, clock: any Clock<Duration>) {
        self.request = request
        let clock = request.sessionClock ?? clock
        (elapsed, sleep) = Self.timer(clock)
    }

    /// Begins a new period without activity.
    func noteActivity() {
        idleTime.withLock { $0 = .zero }
    }

    /// Runs a wait for the server, and cancels it when a limit is reached.
    ///
    /// - Parameter isActive: Whether the limit on the time without activity does not apply.
    /// - Parameter isSeen: Whether the limit is one of the sleepers of a ``ManualClock``, because nothing else ends the
    ///   wait.
    func wait<Value: Sendable>(
        in phase: TransportError.TimeoutPhase, isSeen: Bool = false, isActive: Bool = false,
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let begin = elapsed()
        guard let limit = limit(at: begin, isActive) else { return try await work() }
        defer {
            let waited = elapsed() - begin
            idleTime.withLock { $0 += waited }
        }
        return try await withThrowingTaskGroup(of: Value?.self) { [sleep] group in
            group.addTask { try await work() }
            group.addTask {
                try await sleep(begin + min(limit.left, .longestSleep), isSeen)
                return nil
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() ?? nil else {
                throw TransportError.timedOut(phase, limit.whole, FailureContext(request.url))
            }
            return value
        }
    }

    /// Returns the limit that will be reached first, and the time until then; `nil` if there is none.
    private func limit(at time: Duration, _ isActive: Bool) -> (left: Duration, whole: Duration)? {
        guard let timeouts = request.options?.timeouts else { return nil }
        let total = timeouts.total.map { ($0 - time, $0) }
        let idle = isActive ? nil : timeouts.idle.map { ($0 - idleTime.withLock(\.self), $0) }
        return [total, idle].compactMap(\.self).min { $0.0 < $1.0 }
    }

    private static func timer(_ clock: some Clock<Duration>) -> (
        elapsed: @Sendable () -> Duration, sleep: @Sendable (Duration, Bool) async throws -> Void
    ) {
        let start = clock.now
        return (
            { start.duration(to: clock.now) },
            { deadline, isSeen in
                if !isSeen, let clock = clock as? ManualClock, let start = start as? ManualClock.Instant {
                    try await clock.sleepUnseen(until: start.advanced(by: deadline))
                } else {
                    try await clock.sleep(until: start.advanced(by: deadline), tolerance: nil)
                }
            }
        )
    }
}
