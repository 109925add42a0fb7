// SPDX-License-Identifier: MIT

package import ANHTTP
package import ANSystem

/// The limits on the time of one exchange, and where it stands with them.
package struct TransferClock {
    /// When the exchange was given to libcurl.
    package let start: MonotonicInstant
    private let timeouts: Timeouts
    package private(set) var leftQueue: MonotonicInstant?
    package private(set) var connected: MonotonicInstant?
    private var lastActivity: MonotonicInstant

    package init(start: MonotonicInstant, timeouts: Timeouts) {
        self.start = start
        self.timeouts = timeouts
        lastActivity = start
    }

    /// A connection is being made or used.
    package mutating func leaveQueue(at now: MonotonicInstant) {
        if leftQueue == nil { leftQueue = now }
    }

    /// The connection is ready for the request.
    package mutating func connect(at now: MonotonicInstant) {
        leaveQueue(at: now)
        connected = now
        lastActivity = now
    }

    /// The connection was lost, and another one is made.
    package mutating func reconnect(at now: MonotonicInstant) {
        leftQueue = now
        connected = nil
    }

    /// Bytes moved, or this side ended a pause.
    package mutating func noteActivity(at now: MonotonicInstant) {
        lastActivity = now
    }

    /// The limit that ends the exchange first, and when; nil when none can.
    ///
    /// While the exchange waits for this side, being idle is no offence.
    package func nextLimit(isWaitingForUs: Bool, now: MonotonicInstant) -> Limit? {
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

    /// The limit for the rest of a request whose response is complete: 1 s without a byte to send, or 5 s without one
    /// sent.
    package func limitAfterResponse(isStarving: Bool) -> Limit {
        Limit(kind: .idle, duration: .seconds(isStarving ? 1 : 5), since: lastActivity)
    }

    /// A limit that runs.
    package struct Limit: Equatable {
        package let kind: Kind
        package let duration: Duration
        package let since: MonotonicInstant

        package init(kind: Kind, duration: Duration, since: MonotonicInstant) {
            self.kind = kind
            self.duration = duration
            self.since = since
        }

        /// When it runs out.
        package var deadline: MonotonicInstant { since.advanced(by: duration) }

        /// Which of ``Timeouts`` it is.
        package enum Kind {
            case total, idle, connect, queue
        }
    }
}
