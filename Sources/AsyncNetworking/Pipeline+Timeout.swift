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
    /// error. The program's own closures, such as interceptors and the refresh of a token, are not interrupted.
    /// ``ANHTTP/TransferOptions/timeouts`` limit the phases of each exchange instead.
    public var timeout: Duration? {
        get { self[CallTimeout.self]?.limit }
        set { self[CallTimeout.self] = newValue.map { CallTimeout(limit: $0) } }
    }

    /// The time left for the call, at least zero; `nil` without a limit.
    var timeLeft: Duration? { self[CallTimeout.self]?.timeLeft }

    /// Starts measuring the time of the call.
    @inline(never)
    mutating func startTimeout(on clock: any Clock<Duration>) {
        // Not by optional chaining, which would set the attribute of a request without a limit.
        guard var timeout = self[CallTimeout.self] else { return }
        timeout.stopwatch = Stopwatch(clock)
        self[CallTimeout.self] = timeout
    }

    /// Limits the total time of an exchange, and of its wait for a route, to the time left for the call.
    ///
    /// - Throws: `TransportError.timedOut` if no time is left.
    @inline(never)
    mutating func limitToTimeLeft() throws(TransportError) {
        guard let timeLeft else { return }
        guard timeLeft > .zero else { throw .timedOut(.request, timeout, FailureContext()) }
        limitTotalTime(to: timeLeft)
    }

    /// Limits the total time of an exchange, and of its wait for a route.
    @inline(never)
    mutating func limitTotalTime(to limit: Duration?) {
        guard let limit, var options else { return }
        options.timeouts.total = min(options.timeouts.total ?? limit, limit)
        options.timeouts.connectivity = min(options.timeouts.connectivity ?? limit, limit)
        self.options = options
    }

    /// Returns an error with the limit of the call in place of the time that was left for the last exchange.
    @inline(never)
    func namingTimeout(_ error: any Error) -> any Error {
        guard let timeout, timeLeft == .zero, let failure = error as? TransportError,
            case .timedOut(let phase) = failure.reason
        else { return error }
        return TransportError.timedOut(phase, timeout, failure.context)
    }
}

/// The time limit of a call.
private struct CallTimeout: RequestAttribute, Sendable {
    static var defaultValue: CallTimeout? { nil }

    let limit: Duration
    /// Measures the time since the call began; `nil` before that.
    var stopwatch: Stopwatch?

    init(limit: Duration) {
        self.limit = limit
    }

    var timeLeft: Duration? {
        stopwatch.map { max(.zero, limit - $0.elapsed) }
    }
}
