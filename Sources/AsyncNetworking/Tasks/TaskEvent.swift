// SPDX-License-Identifier: MIT

public import ANHTTP

/// An event in the life of a task. ``AnyTransferTask/events`` yields all events of a task in order.
@nonexhaustive
public enum TaskEvent: Sendable {
    /// The task was created; always the first event.
    case created
    /// The task was started, or continued after a suspension; it runs as soon as
    /// ``SessionConfiguration/maximumConcurrentTransfers`` permits.
    case resumed
    /// The task was suspended after it had been resumed; a task that was never resumed reports no such event.
    case suspended
    /// The task was cancelled and will end, usually with the outcome ``TaskOutcome/cancelled``; it ends successfully if
    /// it was already complete.
    case cancelled
    /// A request is about to be sent: the first one, or one after a redirect, a retry, a challenge or a wait for a
    /// route; with all header fields except those that the transport adds.
    indirect case request(Request)
    /// An interim response, with a status of 100–199.
    indirect case informational(ResponseHead)
    /// The head of the final response has arrived; redirects, answered challenges and retried responses are not
    /// reported. A download that needs several requests reports several. A response that is rejected afterwards is
    /// reported, too, but not one that only shows that a download cannot be resumed.
    indirect case response(ResponseHead)
    /// A download is resumed after `offset` bytes; `total` is the size of the whole file, or `nil` if unknown.
    case continued(offset: Int64, total: Int64?)
    /// Bytes of the request's body were sent; see ``AnyTransferTask/uploadProgress``. A late or slow reader receives
    /// only the latest of these events.
    case uploadProgress(TransferProgress)
    /// Bytes of the response's body were received; see ``AnyTransferTask/downloadProgress``. A late or slow reader
    /// receives only the latest of these events.
    case downloadProgress(TransferProgress)
    /// An exchange has ended, successfully or not, with these metrics.
    indirect case metrics(TransferMetrics)
    /// The task has ended with this outcome; always the last event.
    case finished(TaskOutcome)
}

extension TaskEvent {
    /// The progress of sending the request's body, if this is such an event.
    var uploadProgress: TransferProgress? {
        if case .uploadProgress(let progress) = self { progress } else { nil }
    }

    /// The progress of receiving the response's body, if this is such an event.
    var downloadProgress: TransferProgress? {
        if case .downloadProgress(let progress) = self { progress } else { nil }
    }
}

/// The outcome of a task that has ended; see ``TaskStatus/outcome``.
public enum TaskOutcome: Sendable {
    /// The task has a value, which ``TransferTask/value`` returns.
    case succeeded
    /// The task failed with this error, which ``TransferTask/value`` throws: a ``SessionError``, or an error of the
    /// program's own code.
    case failed(any Error)
    /// The task was cancelled before it was complete, by the program or by its manager, or the program's own code has
    /// thrown `CancellationError`. ``TransferTask/value`` throws `CancellationError`.
    case cancelled

    init(_ error: any Error) {
        self = error is CancellationError ? .cancelled : .failed(error)
    }
}

/// A snapshot of a task; see ``AnyTransferTask/status``.
public struct TaskStatus: Sendable {
    /// The state of the task at the time of the snapshot.
    public var state: TaskState
    /// The head of the final response, also of one that is rejected afterwards; `nil` before it has arrived, and for a
    /// task that ended without one. If a download needs several requests, it is that of the latest one.
    public var response: ResponseHead?
    /// The progress of sending the request's body; `nil` before the first report.
    public var uploadProgress: TransferProgress?
    /// The progress of receiving the final response's body; `nil` before the first report.
    public var downloadProgress: TransferProgress?
    /// The outcome; `nil` before the task has ended.
    public var outcome: TaskOutcome?
}
