// SPDX-License-Identifier: MIT

/// The protocol between the loop, which produces a response, and the one task that reads it.
///
/// The reader requests a result and leaves a waiter if it is not available yet. The loop reports events; if an event
/// satisfies the waiter, the state machine returns the waiter to be resumed, and the reader requests the result again.
/// The bytes are stored outside of this state machine, which receives only their count.
package struct ExchangeStateMachine<Waiter> {
    private var progress = Progress.awaitingHead
    private var waiter: (Waiter, interest: Interest)?
    /// The tasks that have closed the exchange and wait for its end.
    private var closers: [Waiter] = []
    private var reading: Reading
    private var isPaused = false
    /// The number of bytes of a body that may be discarded, up to which its end is awaited; `nil` if the end of the
    /// exchange is awaited.
    private var patience: Int?

    /// Creates a state machine for a reader with the given way of reading.
    package init(reading: Reading) {
        self.reading = reading
    }

    /// The way in which the body is read.
    package enum Reading: Equatable {
        /// In chunks; the transfer is paused while more than `capacity` bytes are buffered.
        case streaming(capacity: Int)
        /// As a whole; the transfer fails above `limit` bytes.
        case collecting(limit: Int)
        /// Not at all, because the reader's scope has ended.
        case abandoned
    }

    /// The event that a reader waits for.
    package enum Interest {
        /// The head, or the end of the exchange without one.
        case head
        /// Bytes of the body, or the end of the exchange.
        case bytes
        /// The end of the response.
        case end
        /// The end of the exchange, or the beginning of a long response that may be discarded.
        case response
    }

    /// The progress of the response.
    private enum Progress {
        /// Nothing has been received yet.
        case awaitingHead
        /// The head was received; the body is being received.
        case inBody
        /// The response is complete, while the loop still sends the request's body.
        case responded
        /// The exchange has succeeded or failed, and the loop no longer uses it.
        case over
    }

    /// Whether no more of the response is received.
    package var isResponseOver: Bool { progress == .responded || progress == .over }

    /// Whether the loop no longer uses the exchange.
    package var isOver: Bool { progress == .over }

    /// Whether a reader is waiting. A body has at most one reader at a time.
    package var hasWaiter: Bool { waiter != nil }

    /// Whether the scope in which the body was available has ended.
    package var isAbandoned: Bool { reading == .abandoned }

    // MARK: The loop's side

    /// Notes that the head is complete.
    ///
    /// - Parameter patience: The number of bytes of the body up to which its end is awaited, if the response may be
    ///   discarded; `nil` if it may not.
    package mutating func receiveHead(patience: Int? = nil) {
        guard progress == .awaitingHead else { return }
        (progress, self.patience) = (.inBody, patience)
    }

    /// Notes that the end of a response that may be discarded was awaited for long enough.
    package mutating func endPatience() {
        if patience != nil { patience = -1 }
    }

    /// Returns what to do with `count` received bytes while `buffered` bytes are unread.
    ///
    /// - Parameters:
    ///   - regardlessOfCapacity: Whether the bytes cannot be offered again, so that a stream takes them.
    ///   - mayGrow: Whether a buffer that is not empty may grow by the bytes.
    package mutating func receiveBytes(
        _ count: Int, buffered: Int, regardlessOfCapacity: Bool = false, mayGrow: @autoclosure () -> Bool = true
    ) -> BytesAction {
        switch reading {
        case .streaming(let capacity):
            guard
                regardlessOfCapacity || buffered == 0 || count <= max(0, capacity) - buffered && mayGrow()
            else {
                isPaused = true
                return .pause
            }
            return .take
        case .collecting(let limit):
            return count <= max(0, limit) - buffered ? .take : .refuse(limit: limit)
        case .abandoned:
            return .abandon
        }
    }

    /// The decision about received bytes.
    package enum BytesAction: Equatable {
        /// The bytes are to be buffered.
        case take
        /// The buffer is full; the transfer is to be paused, after which libcurl offers the bytes again.
        case pause
        /// The body exceeds the reader's limit for collecting it.
        case refuse(limit: Int)
        /// The reader's scope has ended, so the bytes are discarded.
        case abandon
    }

    /// Called at the end of a turn of the loop. Returns the waiter if the event that it waits for has occurred.
    package mutating func flush(buffered: Int) -> Waiter? {
        isSatisfied(buffered: buffered) ? takeWaiter() : nil
    }

    /// Notes that the response is complete, and that the exchange goes on.
    package mutating func endResponse() {
        if progress != .over { progress = .responded }
    }

    /// Ends the exchange. Returns all waiters, regardless of what they wait for.
    package mutating func end() -> EndAction {
        progress = .over
        defer { closers = [] }
        return EndAction(reader: takeWaiter(), closers: closers)
    }

    /// The waiters to resume at the end of an exchange.
    package struct EndAction {
        package let reader: Waiter?
        package let closers: [Waiter]
    }

    // MARK: The reader's side

    /// Stores a waiter. It is returned at once if the event has already occurred, if another task is waiting, or if the
    /// scope has ended. A resumed reader checks the state again.
    package mutating func wait(for interest: Interest, _ newWaiter: Waiter, buffered: Int) -> Waiter? {
        guard waiter == nil, reading != .abandoned else { return newWaiter }
        waiter = (newWaiter, interest)
        return flush(buffered: buffered)
    }

    /// Notes that the reader has emptied the buffer. Returns whether the loop must be notified to resume the transfer.
    package mutating func resume() -> Bool {
        defer { isPaused = false }
        return isPaused && progress != .over
    }

    /// Switches to collecting the rest of the body. Returns whether the loop must be notified to resume the transfer.
    package mutating func collect(upTo limit: Int) -> Bool {
        guard reading != .abandoned else { return false }
        reading = .collecting(limit: limit)
        return resume()
    }

    /// Ends the reader's scope.
    package mutating func close() -> CloseAction {
        reading = .abandoned
        return CloseAction(mustCancel: progress != .over, strayReader: takeWaiter())
    }

    /// Stores the waiter of a task that has closed the exchange, until the exchange ends. It is returned at once if that is
    /// the case. There may be several.
    package mutating func waitForEnd(_ closer: Waiter) -> Waiter? {
        guard progress != .over else { return closer }
        closers.append(closer)
        return nil
    }

    /// The actions required when the scope ends.
    package struct CloseAction {
        /// Whether the exchange must be cancelled because it is not over.
        package let mustCancel: Bool
        /// A waiter to resume, of a task that was still reading because the body had escaped its scope.
        package let strayReader: Waiter?
    }

    private func isSatisfied(buffered: Int) -> Bool {
        switch (waiter?.interest, progress) {
        case (nil, _): false
        case (_, .over): true
        case (.response, .responded): false
        case (_, .responded): true
        case (.head, .inBody): true
        case (.bytes, _): buffered > 0
        case (.response, .inBody): patience.map { buffered > $0 } ?? false
        case (.head, .awaitingHead), (.response, .awaitingHead), (.end, _): false
        }
    }

    private mutating func takeWaiter() -> Waiter? {
        defer { waiter = nil }
        return waiter?.0
    }
}

extension ExchangeStateMachine: Sendable where Waiter: Sendable {}

/// A suspended task, to be resumed exactly once.
///
/// It wraps an unchecked continuation for performance: one is created for each request, and the state machines that
/// store it return it only once, which their tests verify.
@safe
package struct Waiter: Sendable {
    private let continuation: UnsafeContinuation<Void, Never>

    /// Suspends the calling task; `register` receives the waiter and must ensure that it is resumed.
    static func suspend(_ register: (Waiter) -> Void) async {
        await unsafe withUnsafeContinuation { unsafe register(Waiter(continuation: $0)) }
    }

    func wake() {
        unsafe continuation.resume()
    }
}
