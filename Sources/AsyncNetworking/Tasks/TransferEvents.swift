// SPDX-License-Identifier: MIT

public import ANHTTP

/// Something that happened to a task. A task's ``TransferHandle/events`` have every one, in order.
@nonexhaustive
public enum TaskEvent: Sendable {
    /// The task was made.
    case created
    /// The task was resumed; it works as soon as there is a place for it.
    case resumed
    /// The task was suspended.
    case suspended
    /// The task was asked to end.
    case cancelled
    /// A request leaves: the first one, that of a redirect, a retry, or an answer to a challenge.
    indirect case request(Request)
    /// An interim response, 100 to 199.
    indirect case informational(ResponseHead)
    /// The response has begun: the last one, not those that redirect.
    indirect case response(ResponseHead)
    /// A download goes on in the middle of its file: so many bytes are there, of so many where that is known.
    case continued(offset: Int64, total: Int64?)
    /// An exchange has ended, well or not, and this is what it cost.
    indirect case metrics(TransferMetrics)
    /// The task is over; always the last event.
    case finished(TransferOutcome)
}

/// How a task has ended.
public enum TransferOutcome: Sendable {
    /// It has a value.
    case succeeded
    /// It has failed.
    case failed(any Error)
    /// It was cancelled before it was complete.
    case cancelled

    init(_ error: any Error) {
        self = error is CancellationError ? .cancelled : .failed(error)
    }
}

/// A task at one moment.
public struct TransferStatus: Sendable {
    /// Where it is.
    public var state: TransferState
    /// The head of the response, once it has come.
    public var response: ResponseHead?
    /// How much of the request's body was sent.
    public var uploadProgress: TransferProgress?
    /// How much of the response's body was received.
    public var downloadProgress: TransferProgress?
    /// How it has ended; nil before.
    public var outcome: TransferOutcome?
}
