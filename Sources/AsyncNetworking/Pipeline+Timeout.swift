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
        get { self[TimeLimits.self]?.timeout }
        set {
            guard newValue != nil || self[TimeLimits.self] != nil else { return }
            change { $0.timeout = newValue }
        }
    }

    /// The time left for the call and for its attempts, at least zero; `nil` without a limit.
    var timeLeft: Duration? { self[TimeLimits.self]?.timeLeft }

    /// Starts measuring the time of the call.
    @inline(never)
    mutating func startTimeout(on clock: any Clock<Duration>) {
        guard let limits = self[TimeLimits.self] else { return }
        self[TimeLimits.self] = TimeLimits(timeout: limits.timeout, call: Stopwatch(clock))
    }

    /// Limits all attempts of the call together.
    @inline(never)
    mutating func limitAttempts(to deadline: Duration, since start: Stopwatch) {
        change {
            $0.deadline = deadline
            $0.attempts = start
        }
    }

    private mutating func change(_ change: (inout TimeLimits) -> Void) {
        var limits = self[TimeLimits.self] ?? TimeLimits()
        change(&limits)
        self[TimeLimits.self] = limits
    }

    /// Limits the total time of an exchange, and of its wait for a route, to the time left.
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
    /// exchange.
    @inline(never)
    func namingTimeout(_ error: any Error) -> any Error {
        guard let limit = self[TimeLimits.self]?.expired, let failure = error as? TransportError,
            case .timedOut(let phase) = failure.reason
        else { return error }
        return TransportError.timedOut(phase, limit, failure.context)
    }
}

/// The time limits of a call and of its attempts, each measured by a stopwatch from its start.
private struct TimeLimits: RequestAttribute, Sendable {
    static var defaultValue: TimeLimits? { nil }

    /// The limit of the whole call.
    var timeout: Duration?
    /// The limit of all attempts together.
    var deadline: Duration?
    /// Measures the time since the call began; `nil` before that.
    var call: Stopwatch?
    /// Measures the time since the first attempt began; `nil` before that, and without a deadline.
    var attempts: Stopwatch?

    /// The time left until the first limit expires, at least zero; `nil` if nothing is limited yet.
    var timeLeft: Duration? {
        switch (Self.left(timeout, call), Self.left(deadline, attempts)) {
        case (let one?, let other?): min(one, other)
        case (let one, let other): one ?? other
        }
    }

    /// The limit that has expired, that of the call first; `nil` before that.
    var expired: Duration? {
        if Self.left(timeout, call) == .zero { return timeout }
        return Self.left(deadline, attempts) == .zero ? deadline : nil
    }

    private static func left(_ limit: Duration?, _ stopwatch: Stopwatch?) -> Duration? {
        guard let limit, let stopwatch else { return nil }
        return max(.zero, limit - stopwatch.elapsed)
    }
}
