// SPDX-License-Identifier: MIT

/// The agreement between the loop, which produces a response, and the one task that reads it.
///
/// The reader asks; where the answer is not there yet it leaves a waiter. The loop reports what happened; where that is
/// what the waiter waits for, the waiter is handed back to be woken, and the reader asks again. The bytes themselves lie
/// beside this machine, which only hears how many there are.
package struct ExchangeStateMachine<Waiter> {
    private var progress = Progress.awaitingHead
    private var waiter: (Waiter, interest: Interest)?
    private var reading: Reading
    private var isPaused = false

    /// Creates a machine for a reader who will read like that.
    package init(reading: Reading) {
        self.reading = reading
    }

    /// How the body is read.
    package enum Reading: Equatable {
        /// Piece by piece; above `capacity` waiting bytes the transfer pauses.
        case streaming(capacity: Int)
        /// As a whole; above `limit` bytes the transfer fails.
        case collecting(limit: Int)
        /// Not at all: the reader has gone.
        case abandoned
    }

    /// What a reader can wait for.
    package enum Interest {
        /// The head, or the end without one.
        case head
        /// Bytes, or the end.
        case bytes
        /// The end.
        case end
        /// The end, for the scope that is being left: the only interest left then.
        case release
    }

    /// How far the response has come.
    private enum Progress {
        /// Nothing was delivered yet.
        case awaitingHead
        /// The head is here; the body is arriving.
        case inBody
        /// The exchange is over, well or not: the loop holds nothing of it any more.
        case over
    }

    /// Whether the exchange is over.
    package var isOver: Bool { progress == .over }

    /// Whether a task is waiting: a body has one reader at a time.
    package var hasWaiter: Bool { waiter != nil }

    /// Whether the scope that lent the body has ended.
    package var isAbandoned: Bool { reading == .abandoned }

    // MARK: The loop's side

    /// The head is complete.
    package mutating func receiveHead() {
        if progress == .awaitingHead { progress = .inBody }
    }

    /// Decides about bytes that arrived while so many are waiting already.
    package mutating func receiveBytes(_ count: Int, buffered: Int) -> BytesVerdict {
        switch reading {
        case .streaming(let capacity):
            guard buffered == 0 || count <= max(0, capacity) - buffered else {
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

    /// What becomes of bytes.
    package enum BytesVerdict: Equatable {
        /// They go into the buffer.
        case take
        /// The buffer is full: the transfer pauses and offers them again.
        case pause
        /// There are more than the reader wants to collect.
        case refuse(limit: Int)
        /// Nobody will read them.
        case abandon
    }

    /// At the end of a turn of the loop: the waiter, if what it waits for is here.
    package mutating func flush(buffered: Int) -> Waiter? {
        isSatisfied(buffered: buffered) ? takeWaiter() : nil
    }

    /// The exchange is over: the waiter, whatever it waits for.
    package mutating func end() -> Waiter? {
        progress = .over
        return takeWaiter()
    }

    // MARK: The reader's side

    /// Leaves a waiter; it comes back at once when there is nothing to wait for, or nothing to hope for: somebody else
    /// waits already, or the scope has ended. Whoever it wakes asks again.
    package mutating func wait(for interest: Interest, _ newWaiter: Waiter, buffered: Int) -> Waiter? {
        guard waiter == nil, reading != .abandoned || interest == .release else { return newWaiter }
        waiter = (newWaiter, interest)
        return flush(buffered: buffered)
    }

    /// The reader has made room; true when the loop must be told to go on.
    package mutating func resume() -> Bool {
        defer { isPaused = false }
        return isPaused && progress != .over
    }

    /// The reader now wants the rest as a whole; true when the loop must be told to go on.
    package mutating func collect(upTo limit: Int) -> Bool {
        guard reading != .abandoned else { return false }
        reading = .collecting(limit: limit)
        return resume()
    }

    /// The reader wants no more.
    package mutating func close() -> CloseAction {
        reading = .abandoned
        return CloseAction(mustCancel: progress != .over, strayReader: takeWaiter())
    }

    /// What closing asks for.
    package struct CloseAction {
        /// The loop still works on the exchange.
        package let mustCancel: Bool
        /// A task that was still reading, to be woken: the body had escaped its scope.
        package let strayReader: Waiter?
    }

    private func isSatisfied(buffered: Int) -> Bool {
        switch (waiter?.interest, progress) {
        case (nil, _): false
        case (_, .over): true
        case (.head, .inBody): true
        case (.bytes, _): buffered > 0
        case (.head, .awaitingHead), (.end, _), (.release, _): false
        }
    }

    private mutating func takeWaiter() -> Waiter? {
        defer { waiter = nil }
        return waiter?.0
    }
}

extension ExchangeStateMachine: Sendable where Waiter: Sendable {}
