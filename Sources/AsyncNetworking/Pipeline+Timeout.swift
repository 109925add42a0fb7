// SPDX-License-Identifier: MIT

import ANHTTP

extension Request {
    /// The time limit of the whole call; `nil`, the default, for none.
    ///
    /// It includes all attempts, redirects and challenges, the waits between them, interceptors, and the reading of the
    /// response's body, also while a task is suspended or a WebSocket connection is open. It does not include the time
    /// before a task first runs, nor deserialization. A download that needs several requests, and an event source,
    /// measure each request anew.
    ///
    /// When it expires, the call fails with ``ANHTTP/TransportError/Reason/timedOut(_:)``; with zero or less, nothing
    /// is sent. A retry whose wait would not end before is not made; the call then ends with the last response or
    /// error. The program's own closures, such as interceptors and the refresh of a token, are not interrupted, nor is
    /// an exchange of a transport of the program's own that does not implement ``ANHTTP/Timeouts/total``.
    /// ``ANHTTP/TransferOptions/timeouts`` limit the phases of each exchange instead.
    public var timeout: Duration? {
        get { self[TimeLimits.self]?.call?.duration }
        set {
            let attempts = self[TimeLimits.self]?.attempts
            let call = newValue.map { TimeLimit(duration: $0) }
            // A request without a limit has no attribute.
            self[TimeLimits.self] = call == nil && attempts == nil ? nil : TimeLimits(call: call, attempts: attempts)
        }
    }

    /// The time left for the call and for its attempts, at least zero; `nil` without a limit.
    var timeLeft: Duration? { self[TimeLimits.self]?.timeLeft }

    /// Starts measuring the time of the call.
    @inline(never)
    mutating func startTimeout(on clock: any Clock<Duration>) {
        guard let limits = self[TimeLimits.self] else { return }
        self[TimeLimits.self] = limits.call.map { call in
            TimeLimits(call: TimeLimit(duration: call.duration, stopwatch: Stopwatch(clock)))
        }
    }

    /// Limits all attempts of the call together.
    @inline(never)
    mutating func limitAttempts(to deadline: Duration, since start: Stopwatch) {
        var limits = self[TimeLimits.self] ?? TimeLimits()
        limits.attempts = TimeLimit(duration: deadline, stopwatch: start)
        self[TimeLimits.self] = limits
    }

    /// Limits the total time of an exchange to the time left.
    ///
    /// - Throws: `TransportError.timedOut` if no time is left.
    @inline(never)
    mutating func limitToTimeLeft() throws(TransportError) {
        guard let limits = self[TimeLimits.self], let left = limits.timeLeft else { return }
        guard left > .zero else { throw .timedOut(.request, limits.expired, FailureContext()) }
        guard var options else { return }
        options.timeouts.total = min(options.timeouts.total ?? left, left)
        self.options = options
    }

    /// Returns an error with the limit of the call, or of its attempts, in place of the time that was left for the last
    /// exchange or wait.
    @inline(never)
    func namingTimeout(_ error: any Error) -> any Error {
        guard let limit = self[TimeLimits.self]?.expired, let failure = error as? TransportError,
            case .timedOut(let phase) = failure.reason
        else { return error }
        return TransportError.timedOut(phase, limit, failure.context)
    }
}

/// The time limits of a call.
private struct TimeLimits: RequestAttribute, Sendable {
    static var defaultValue: TimeLimits? { nil }

    /// The limit of the whole call.
    var call: TimeLimit?
    /// The limit of all attempts together.
    var attempts: TimeLimit?

    /// The time left until the first limit expires, at least zero; `nil` if nothing is measured yet.
    var timeLeft: Duration? { [call?.left, attempts?.left].compactMap(\.self).min() }

    /// The duration of the limit that has expired, that of the call first; `nil` if both have time left.
    var expired: Duration? { [call, attempts].compactMap(\.self).first { $0.left == .zero }?.duration }
}

private struct TimeLimit: Sendable {
    let duration: Duration
    /// Measures the time since the limit began to apply; `nil` before that.
    var stopwatch: Stopwatch?

    /// The time left, at least zero; `nil` if nothing is measured yet.
    var left: Duration? { stopwatch.map { max(.zero, duration - $0.elapsed) } }
}
