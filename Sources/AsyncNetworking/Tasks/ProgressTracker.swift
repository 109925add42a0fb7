// SPDX-License-Identifier: MIT

package import ANHTTP

/// The progress of a task across its exchanges.
///
/// A task may need several exchanges: for redirects, retries, challenges, and the final response. Only the final one
/// counts as progress of a download. An exchange cannot know in advance whether it is the final one, so its received
/// bytes are held back until ``accept(offset:total:countsExchange:at:)``.
///
/// Exchanges may overlap, of which one has the progress of the task: the one that began last, until it ends, such as
/// one that ``Hedging`` has sent in vain. Then the last one that is running takes its place, or, if it ended without a
/// response, the last one that had one. Otherwise it keeps the place until another exchange begins.
package struct ProgressTracker: Sendable {
    private var uploadRate = RateEstimate()
    private var downloadRate = RateEstimate()
    /// The current exchange, and those that were running when it began, in the order in which they began.
    private var exchanges: [Exchange] = []
    /// The index of the exchange that has the progress of the task.
    private var current = 0
    private var isAccepted = false
    private var hasReceived = false
    /// The number of bytes downloaded before this exchange.
    private var offset: Int64 = 0
    private var total: Int64?

    private struct Exchange {
        let number: Int
        /// The number of bytes that were sent before this exchange, and of the whole if it sends a part of it.
        let sentBefore: Int64
        let sentTotal: Int64?
        var isRunning = true
        /// Whether it has the head of a response.
        var isAnswered = false
        var sent: TransferProgress?
        /// The latest progress that was held back.
        var held: TransferProgress?
    }

    /// Creates a tracker for a task before its first exchange.
    package init() {}

    /// Starts a new exchange.
    ///
    /// - Parameters:
    ///   - number: The number of the exchange, by which those that overlap are distinguished.
    ///   - time: The current time.
    ///   - sentBefore: The number of bytes that were sent before this exchange.
    ///   - sentTotal: The size of the whole if this exchange sends a part of it; otherwise `nil`.
    package mutating func beginExchange(
        _ number: Int, at time: Duration, sendingFrom sentBefore: Int64 = 0, of sentTotal: Int64? = nil
    ) {
        exchanges.removeAll { !$0.isRunning || $0.number == number }
        exchanges.append(Exchange(number: number, sentBefore: sentBefore, sentTotal: sentTotal))
        current = exchanges.count - 1
        isAccepted = false
        uploadRate.update(bytes: sentBefore, at: time)
    }

    /// Records the head of an exchange's response.
    package mutating func noteHead(of number: Int) {
        if let index = index(of: number) { exchanges[index].isAnswered = true }
    }

    /// Ends an exchange. Returns the progress of sending if another exchange has that of the task now.
    package mutating func endExchange(_ number: Int, at time: Duration) -> TransferProgress? {
        guard let index = index(of: number) else { return nil }
        exchanges[index].isRunning = false
        let answered = exchanges[index].isAnswered ? nil : exchanges.lastIndex(where: \.isAnswered)
        guard index == current, !isAccepted, let next = exchanges.lastIndex(where: \.isRunning) ?? answered else {
            return nil
        }
        current = next
        return exchanges[next].sent.map { reportSent($0, at: time) }
    }

    /// Makes an exchange the current one, and returns the progress of sending if that is another one's now.
    package mutating func select(_ number: Int, at time: Duration) -> TransferProgress? {
        guard let index = index(of: number), index != current else { return nil }
        current = index
        return exchanges[index].sent.map { reportSent($0, at: time) }
    }

    /// Marks the current exchange as the final one, and returns the progress so far, if any.
    ///
    /// - Parameters:
    ///   - offset: The number of bytes downloaded before this exchange.
    ///   - total: The size of the whole; `nil` if it is unknown, or for an exchange from the start, to derive it from
    ///     that.
    ///   - countsExchange: Whether the bytes of this exchange are part of the response.
    ///   - time: The current time.
    package mutating func accept(
        offset: Int64 = 0, total: Int64? = nil, countsExchange: Bool = true, at time: Duration
    ) -> TransferProgress? {
        isAccepted = countsExchange
        self.offset = offset
        self.total = total
        downloadRate.update(bytes: offset, at: time)
        if exchanges.indices.contains(current), let held = exchanges[current].held.take(), countsExchange {
            return reportReceived(held, at: time)
        }
        guard offset > 0 else { return nil }
        return TransferProgress(completedBytes: offset, totalBytes: total)
    }

    /// Records bytes that an exchange has sent, and returns the progress; `nil` if another one has that of the task.
    package mutating func send(_ progress: TransferProgress, by number: Int, at time: Duration) -> TransferProgress? {
        guard let index = index(of: number) else { return nil }
        exchanges[index].sent = progress
        return index == current ? reportSent(progress, at: time) : nil
    }

    /// Records bytes that an exchange has received, and returns the progress; `nil` if it is not known to be the final
    /// one.
    package mutating func receive(_ progress: TransferProgress, by number: Int, at time: Duration) -> TransferProgress?
    {
        guard let index = index(of: number) else { return nil }
        guard index == current, isAccepted else {
            exchanges[index].held = progress
            return nil
        }
        return reportReceived(progress, at: time)
    }

    private func index(of number: Int) -> Int? { exchanges.firstIndex { $0.number == number } }

    private mutating func reportSent(_ progress: TransferProgress, at time: Duration) -> TransferProgress {
        var progress = progress
        progress.completedBytes = exchanges[current].sentBefore.addingClamped(progress.completedBytes)
        if let total = exchanges[current].sentTotal { progress.totalBytes = total }
        uploadRate.update(bytes: progress.completedBytes, at: time)
        return progress.with(uploadRate.bytesPerSecond)
    }

    private mutating func reportReceived(_ progress: TransferProgress, at time: Duration) -> TransferProgress {
        hasReceived = true
        var progress = progress
        progress.completedBytes = offset.addingClamped(progress.completedBytes)
        // A part may be followed by others.
        if offset > 0 || total != nil { progress.totalBytes = total }
        downloadRate.update(bytes: progress.completedBytes, at: time)
        return progress.with(downloadRate.bytesPerSecond)
    }

    /// Records that the response is complete, and returns the progress if no exchange has reported it, for example
    /// because an interceptor or the cache answered the request.
    package mutating func complete(_ size: Int64) -> TransferProgress? {
        isAccepted && hasReceived ? nil : TransferProgress(completedBytes: size, totalBytes: size)
    }

    /// Records that the task was suspended.
    package mutating func interrupt() {
        uploadRate.interrupt()
        downloadRate.interrupt()
    }
}

extension TransferProgress {
    fileprivate func with(_ rate: Double?) -> TransferProgress {
        var progress = self
        progress.bytesPerSecond = rate
        return progress
    }
}

extension Int64 {
    /// Returns the sum, clamped to the range of `Int64`, because servers may send arbitrary numbers.
    func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}

/// An exponentially weighted average of the rate of a transfer.
///
/// The weight depends on time, not on the number of updates: after 1.5 s, new measurements account for half of the
/// estimate.
package struct RateEstimate: Hashable, Sendable {
    /// The estimated rate; `nil` before the first measurement.
    package private(set) var bytesPerSecond: Double?
    /// The previous update; `nil` if the next update only sets a starting point.
    private var mark: Mark?

    private struct Mark: Hashable {
        var bytes: Int64
        var time: Duration
    }

    /// Creates an estimate without measurements.
    package init() {}

    /// Adds a measurement: the number of bytes transferred by a point in time.
    package mutating func update(bytes: Int64, at time: Duration) {
        guard let mark, bytes >= mark.bytes else {
            // Fewer bytes than before: another transfer has started.
            self.mark = Mark(bytes: bytes, time: time)
            return
        }
        let elapsed = (time - mark.time) / .seconds(1)
        guard elapsed >= 0.01 else { return }
        let speed = Double(bytes - mark.bytes) / elapsed
        let weight = elapsed / (elapsed + 1.5)
        bytesPerSecond = bytesPerSecond.map { $0 + (speed - $0) * weight } ?? speed
        self.mark = Mark(bytes: bytes, time: time)
    }

    /// Excludes the time until the next update, because the transfer is suspended.
    package mutating func interrupt() {
        mark = nil
    }
}
