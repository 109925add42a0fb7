// SPDX-License-Identifier: MIT

package import ANHTTP

/// What is progress of a task, and what is not.
///
/// A task may take several exchanges: redirects, retries, answers to challenges, and the one that brings its response. What
/// the others bring is no progress of a download. An exchange does not know yet which of them it is, so what it has
/// received is held until ``accept(offset:total:at:)``.
package struct ProgressTracker: Sendable {
    private var uploadRate = RateEstimate()
    private var downloadRate = RateEstimate()
    /// The latest of this exchange that was not passed on.
    private var held: TransferProgress?
    private var isAccepted = false
    private var hasReceived = false
    /// The bytes that were there before this exchange.
    private var offset: Int64 = 0
    private var total: Int64?

    /// Creates a tracker of a task without an exchange.
    package init() {}

    /// An exchange begins.
    package mutating func beginExchange(at time: Duration) {
        held = nil
        isAccepted = false
        uploadRate.update(bytes: 0, at: time)
    }

    /// The exchange brings what the task is for; returns the progress so far, if there is any.
    ///
    /// - Parameters:
    ///   - offset: The bytes that were there before.
    ///   - total: The size of the whole, where it is known otherwise than by what the exchange says of itself.
    package mutating func accept(offset: Int64 = 0, total: Int64? = nil, at time: Duration) -> TransferProgress? {
        isAccepted = true
        self.offset = offset
        self.total = total
        downloadRate.update(bytes: offset, at: time)
        if let held { return receive(held, at: time) }
        guard offset > 0 else { return nil }
        return TransferProgress(completedBytes: offset, totalBytes: total)
    }

    /// Bytes were sent; returns the progress.
    package mutating func send(_ progress: TransferProgress, at time: Duration) -> TransferProgress {
        uploadRate.update(bytes: progress.completedBytes, at: time)
        return progress.with(uploadRate.bytesPerSecond)
    }

    /// Bytes were received; returns the progress, if it is one.
    package mutating func receive(_ progress: TransferProgress, at time: Duration) -> TransferProgress? {
        guard isAccepted else {
            held = progress
            return nil
        }
        held = nil
        hasReceived = true
        var progress = progress
        progress.completedBytes = offset.addingClamped(progress.completedBytes)
        progress.totalBytes = total ?? progress.totalBytes.map { offset.addingClamped($0) }
        downloadRate.update(bytes: progress.completedBytes, at: time)
        return progress.with(downloadRate.bytesPerSecond)
    }

    /// The response is complete with so many bytes; returns the progress where no exchange has told of any, as with a
    /// response that came from elsewhere.
    package mutating func complete(_ size: Int64) -> TransferProgress? {
        hasReceived ? nil : TransferProgress(completedBytes: size, totalBytes: size)
    }

    /// The task pauses.
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
    /// The sum, held within what 64 bits can count: servers name what numbers they like.
    func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}
