// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

/// The limits on the time of one exchange, and where it stands with them.
struct TransferClock {
    /// When the exchange was given to libcurl.
    let start: MonotonicInstant
    private let timeouts: Timeouts
    private(set) var leftQueue: MonotonicInstant?
    private(set) var connected: MonotonicInstant?
    private var lastActivity: MonotonicInstant

    init(start: MonotonicInstant, timeouts: Timeouts) {
        self.start = start
        self.timeouts = timeouts
        lastActivity = start
    }

    /// A connection is being made or used.
    mutating func leaveQueue(at now: MonotonicInstant) {
        if leftQueue == nil { leftQueue = now }
    }

    /// The connection is ready for the request.
    mutating func connect(at now: MonotonicInstant) {
        leaveQueue(at: now)
        connected = now
        lastActivity = now
    }

    /// The connection was lost, and another one is made.
    mutating func reconnect(at now: MonotonicInstant) {
        leftQueue = now
        connected = nil
    }

    /// Bytes moved, or this side ended a pause.
    mutating func noteActivity(at now: MonotonicInstant) {
        lastActivity = now
    }

    /// The limit that ends the exchange first, and when; nil when none can.
    ///
    /// While the exchange waits for this side, being idle is no offence.
    func nextLimit(isWaitingForUs: Bool, now: MonotonicInstant) -> Limit? {
        let total = timeouts.total.map { Limit(kind: .total, duration: $0, since: start) }
        let step: Limit? =
            if connected != nil {
                timeouts.idle.map { Limit(kind: .idle, duration: $0, since: isWaitingForUs ? now : lastActivity) }
            } else if let leftQueue {
                timeouts.connect.map { Limit(kind: .connect, duration: $0, since: leftQueue) }
            } else {
                timeouts.queue.map { Limit(kind: .queue, duration: $0, since: start) }
            }
        guard let total, let step else { return total ?? step }
        return total.deadline <= step.deadline ? total : step
    }

    /// A limit that runs.
    struct Limit: Equatable {
        let kind: Kind
        let duration: Duration
        let since: MonotonicInstant

        /// When it runs out.
        var deadline: MonotonicInstant { since.advanced(by: duration) }

        /// Which of ``Timeouts`` it is.
        enum Kind {
            case total, idle, connect, queue
        }
    }
}
