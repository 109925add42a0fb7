// SPDX-License-Identifier: MIT

package import ANHTTP
package import ANSystem

/// The time limits of one exchange, with its progress through the phases to which they apply.
package struct TransferClock {
    /// The time at which the exchange was added to the engine.
    package let start: MonotonicInstant
    private let timeouts: Timeouts
    /// The time at which the request began to wait for a connection, the latest time if it did so again.
    private var enteredQueue: MonotonicInstant
    package private(set) var leftQueue: MonotonicInstant?
    package private(set) var connected: MonotonicInstant?
    private var lastActivity: MonotonicInstant
    /// The time since then, or since the current phase began, in which the loop could not run.
    private var lateness = Duration.zero
    /// The time of the last activity on a connection that was lost, since when libcurl makes another one or waits for it.
    private var lost: MonotonicInstant?

    package init(start: MonotonicInstant, timeouts: Timeouts) {
        self.start = start
        self.timeouts = timeouts
        lastActivity = start
        enteredQueue = start
    }

    /// Notes that a connection is being made or used, which ends the queue phase.
    package mutating func leaveQueue(at now: MonotonicInstant) {
        guard leftQueue == nil else { return }
        leftQueue = now
        lateness = .zero
    }

    /// Notes that the connection is ready for the request.
    package mutating func connect(at now: MonotonicInstant) {
        leaveQueue(at: now)
        connected = now
        noteActivity(at: now)
    }

    /// Notes that the connection was lost and another one is being made.
    package mutating func reconnect(at now: MonotonicInstant) {
        leftQueue = now
        connected = nil
        lost = lastActivity
        lateness = .zero
    }

    /// Notes that the loop could not run for some time, which does not count towards the limits of phases: bytes may have
    /// been waiting.
    package mutating func excuse(_ lateness: Duration) {
        self.lateness += lateness
    }

    /// Notes that the request waits for a connection again.
    package mutating func enterQueueAgain(at now: MonotonicInstant) {
        enteredQueue = now
        leftQueue = nil
        connected = nil
        lost = nil
        lateness = .zero
    }

    /// Notes that bytes were transferred, or that this side ended a pause.
    package mutating func noteActivity(at now: MonotonicInstant) {
        lastActivity = now
        lateness = .zero
    }

    /// Returns when a request that was admitted at `time` stops waiting for the TLS handshakes of others, and makes a
    /// connection of its own; `nil` if it no longer waits.
    ///
    /// A server that is slow, or silent, must not hold up the requests that could reach it by another connection. The wait
    /// is short, so that a limit on connecting means nearly the same for them all.
    package func handshakeWaitEnd(since time: MonotonicInstant) -> MonotonicInstant? {
        guard leftQueue == nil else { return nil }
        let wait = Duration.milliseconds(300)
        return time.advanced(by: timeouts.connect.map { min($0 / 4, wait) } ?? wait)
    }

    /// Returns the limit on connecting to be set in libcurl, as it counts: a fourth later than it expires here, so that some
    /// of it is left for other addresses; `nil` if there is none.
    ///
    /// - Parameter admitted: The time since when libcurl counts for the first connection, if it counts the time in which the
    ///   request waits.
    package func connectLimit(countedSince admitted: MonotonicInstant?, at now: MonotonicInstant) -> Duration? {
        guard let connect = timeouts.connect?.bounded else { return nil }
        // A division of durations takes hundreds of instructions.
        let reserve = Duration(attoseconds: connect.attoseconds >> 2) + .milliseconds(100)
        guard connected == nil else { return connect + reserve }
        let expiry = leftQueue.map { $0.advanced(by: connect + lateness) } ?? now.advanced(by: connect)
        let start = admitted.map { lost ?? $0 } ?? leftQueue ?? now
        return start.duration(to: max(now, expiry)) + reserve
    }

    /// Returns when the limit in libcurl must be set anew, if it counts the time in which the request waits: as long as it
    /// is later than the limit here would be; `nil` if the request does not wait.
    package func nextConnectLimit(at now: MonotonicInstant) -> MonotonicInstant? {
        guard leftQueue == nil, let connect = timeouts.connect?.bounded else { return nil }
        return now.advanced(by: max(.zero, connect / 4) + .milliseconds(50))
    }

    /// Returns the limit that expires first; `nil` if none applies.
    ///
    /// The idle limit does not elapse while the exchange waits for this side.
    package func nextLimit(isWaitingForUs: Bool, now: MonotonicInstant) -> Limit? {
        let step: Limit? =
            if connected != nil {
                limit(.idle, timeouts.idle, since: isWaitingForUs ? now : lastActivity)
            } else if let leftQueue {
                limit(.connect, timeouts.connect, since: leftQueue)
            } else {
                limit(.queue, timeouts.queue, since: enteredQueue)
            }
        return earlier(step)
    }

    /// Returns the limit of a phase; `nil` without a duration. The time in which the loop could not run does not count.
    package func limit(_ kind: Limit.Kind, _ duration: Duration?, since start: MonotonicInstant) -> Limit? {
        duration.map { Limit(kind: kind, duration: $0, since: start.advanced(by: lateness)) }
    }

    /// Returns the total limit or another one, whichever expires first; `nil` if neither applies.
    package func earlier(_ step: Limit?) -> Limit? {
        let total = timeouts.total.map { Limit(kind: .total, duration: $0, since: start) }
        guard let total, let step else { return total ?? step }
        return total.deadline <= step.deadline ? total : step
    }

    /// The limit for the rest of a request whose response is complete: 1 s without a byte being sent.
    package var limitAfterResponse: Limit {
        Limit(kind: .idle, duration: .seconds(1), since: lastActivity)
    }

    /// A running time limit.
    package struct Limit: Equatable {
        package let kind: Kind
        package let duration: Duration
        package let since: MonotonicInstant

        package init(kind: Kind, duration: Duration, since: MonotonicInstant) {
            self.kind = kind
            self.duration = duration
            self.since = since
        }

        /// The time at which the limit expires.
        package var deadline: MonotonicInstant { since.advanced(by: duration) }

        /// The corresponding property of ``Timeouts``.
        package enum Kind {
            case total, idle, connect, queue
        }
    }
}

/// Tells for how many turns of a loop that was late no limit has expired, because bytes may have arrived in time and not
/// been read.
///
/// The late turn itself knows only of the descriptors that were ready before it was held up, and each turn learns of a
/// part of many.
package struct LoopLateness {
    private var turns = 0
    private var isFirst = false
    /// The number of ready descriptors from which there may be others: the loop's own one is not counted.
    private static let full = Epoll.maximumReady - 1

    /// Creates the state of a loop that is not late.
    package init() {}

    /// Whether descriptors may still have bytes.
    package var isOngoing: Bool { turns > 0 }

    /// Begins with a turn that is late, of a loop that waits for `descriptors`. Further ones change nothing: a loop that is
    /// held up in each turn has limits, too.
    package mutating func begin(descriptors: Int) {
        guard turns == 0 else { return }
        turns = descriptors / Self.full + 2
        isFirst = true
    }

    /// Returns whether descriptors may still have bytes after a turn that read from `count` of them.
    package mutating func mayHideBytes(afterReadingFrom count: Int) -> Bool {
        guard turns > 0 else { return false }
        turns = isFirst || count >= Self.full ? turns - 1 : 0
        isFirst = false
        return turns > 0
    }
}
