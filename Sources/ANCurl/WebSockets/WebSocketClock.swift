// SPDX-License-Identifier: MIT

package import ANHTTP
package import ANSystem

/// The time limits of an open WebSocket connection.
package struct WebSocketClock {
    private let options: WebSocketOptions
    private var isOpen = false
    private var lastInput: MonotonicInstant
    /// The time at which a ping was sent, if nothing was received since.
    private var pinged: MonotonicInstant?
    /// The time at which the first close frame was sent or received.
    private var closed: MonotonicInstant?
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

    /// Notes that the connection is not read any more for a while.
    package mutating func pause() {
        pinged = nil
    }

    /// Notes that the connection is being closed.
    package mutating func close(at now: MonotonicInstant) {
        if closed == nil { closed = now }
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
    package mutating func step(at now: MonotonicInstant, isPaused: Bool) -> Step {
        guard let limit = limit(isPaused: isPaused, now: now), limit.deadline <= now else { return .none }
        if closed != nil { return .closed }
        if pinged != nil { return .lost(limit) }
        pinged = now
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
