// SPDX-License-Identifier: MIT

package import ANHTTP
package import ANSystem

/// The time limits of an open WebSocket connection.
package struct WebSocketClock {
    private let options: WebSocketOptions
    private var isOpen = false
    private var lastInput: MonotonicInstant
    /// The time at which a ping was sent, or bytes before it were delivered, if nothing was received since.
    private var pinged: MonotonicInstant?
    /// The number of bytes of the output before that ping.
    private var pingOffset = 0
    /// The number of bytes of the output that the server's system had received when this system was last asked.
    private var deliveredCount = 0
    /// The time at which the first close frame was sent or received, or bytes before it were delivered.
    private var closed: MonotonicInstant?
    /// The number of bytes of the output before that close frame; 0 if it was received.
    private var closeOffset = 0
    /// The time at which both close frames had been exchanged.
    private var finished: MonotonicInstant?

    package init(_ options: WebSocketOptions, now: MonotonicInstant) {
        self.options = options
        lastInput = now
    }

    package mutating func open() {
        isOpen = true
    }

    /// Notes that bytes were received.
    package mutating func noteInput(at now: MonotonicInstant) {
        lastInput = now
        pinged = nil
    }

    /// Notes how many bytes of the output the server's system has received.
    ///
    /// A ping or a close frame waits behind them. When it was delivered, and the system accepts all bytes, further ones tell
    /// nothing of a server that is stuck: its system has room for them.
    package mutating func noteDelivery(of count: Int, isBlocked: Bool, at now: MonotonicInstant) {
        defer { deliveredCount = max(count, deliveredCount) }
        guard count > deliveredCount else { return }
        if pinged != nil, isBlocked || deliveredCount < pingOffset { pinged = now }
        if closed != nil, deliveredCount < closeOffset { closed = now }
    }

    /// Whether a ping was sent, and nothing received since, or a close frame waits behind bytes.
    package var isAwaitingAnswer: Bool { pinged != nil || closed != nil && deliveredCount < closeOffset }

    /// Notes that the connection is not read any more for a while.
    package mutating func pause() {
        pinged = nil
    }

    /// Notes that the connection is being closed.
    ///
    /// - Parameter output: The number of bytes before the close frame, and of those that the server's system has received,
    ///   which do not postpone the limit; `nil` if the server has sent a close frame, and need not read any more.
    package mutating func close(at now: MonotonicInstant, after output: (count: Int, delivered: Int)?) {
        guard closed == nil else { return }
        (closed, closeOffset) = (now, output?.count ?? 0)
        deliveredCount = max(deliveredCount, output?.delivered ?? 0)
    }

    /// Notes that both close frames were exchanged: the server closes the connection (RFC 6455 §7.1.1).
    package mutating func finish(at now: MonotonicInstant) {
        if finished == nil { finished = now }
    }

    /// The action that is due.
    package enum Step: Equatable {
        case none
        /// A ping must be sent.
        case ping
        /// Nothing was received after a ping: the connection is lost.
        case lost(TransferClock.Limit)
        /// The connection was not closed in time by the server.
        case closed
    }

    /// Returns what is due, and notes that it is done.
    ///
    /// - Parameter outputCount: The number of bytes that were sent, or are sent before a ping.
    package mutating func step(at now: MonotonicInstant, isPaused: Bool, after outputCount: Int) -> Step {
        guard let limit = limit(isPaused: isPaused, now: now), limit.deadline <= now else { return .none }
        if closed != nil { return .closed }
        if pinged != nil { return .lost(limit) }
        (pinged, pingOffset) = (now, outputCount)
        return .ping
    }

    /// Returns the limit that expires next; `nil` if there is none.
    package func limit(isPaused: Bool, now: MonotonicInstant) -> TransferClock.Limit? {
        if let finished {
            return TransferClock.Limit(
                kind: .idle, duration: min(.seconds(1), options.closeTimeout), since: finished)
        }
        if let closed { return TransferClock.Limit(kind: .idle, duration: options.closeTimeout, since: closed) }
        guard isOpen, let interval = options.pingInterval else { return nil }
        if let pinged, !isPaused {
            return TransferClock.Limit(kind: .idle, duration: options.pingTimeout, since: pinged)
        }
        return TransferClock.Limit(
            kind: .idle, duration: max(.milliseconds(1), interval), since: isPaused ? now : lastInput)
    }
}
