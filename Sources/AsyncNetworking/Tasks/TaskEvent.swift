// SPDX-License-Identifier: MIT

public import ANHTTP

/// An event in the life of a task. ``AnyTransferTask/events`` yields all events of a task in order.
@nonexhaustive
public enum TaskEvent: Sendable {
    /// The task was created.
    case created
    /// The task was resumed; it runs as soon as the limit on concurrent tasks permits.
    case resumed
    /// The task was suspended.
    case suspended
    /// The task was cancelled.
    case cancelled
    /// A request is about to be sent: the first one, or one after a redirect, a retry or a challenge.
    indirect case request(Request)
    /// An interim response, with a status of 100–199.
    indirect case informational(ResponseHead)
    /// The head of the final response has arrived; redirects are not reported.
    indirect case response(ResponseHead)
    /// A download is resumed after `offset` bytes; `total` is the size of the whole file, or `nil` if unknown.
    case continued(offset: Int64, total: Int64?)
    /// Bytes of the request's body were sent; see ``AnyTransferTask/uploadProgress``.
    case uploadProgress(TransferProgress)
    /// Bytes of the response's body were received; see ``AnyTransferTask/downloadProgress``.
    case downloadProgress(TransferProgress)
    /// An exchange has ended, successfully or not, with these metrics.
    indirect case metrics(TransferMetrics)
    /// The task has ended; always the last event.
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

/// The outcome of a task.
public enum TaskOutcome: Sendable {
    /// The task has a value.
    case succeeded
    /// The task failed.
    case failed(any Error)
    /// The task was cancelled before it was complete.
    case cancelled

    init(_ error: any Error) {
        self = error is CancellationError ? .cancelled : .failed(error)
    }
}

/// A snapshot of a task.
public struct TaskStatus: Sendable {
    /// The state.
    public var state: TaskState
    /// The head of the response; `nil` before it has arrived.
    public var response: ResponseHead?
    /// The progress of sending the request's body; `nil` before the first report.
    public var uploadProgress: TransferProgress?
    /// The progress of receiving the response's body; `nil` before the first report.
    public var downloadProgress: TransferProgress?
    /// The outcome; `nil` before the task has ended.
    public var outcome: TaskOutcome?
}
