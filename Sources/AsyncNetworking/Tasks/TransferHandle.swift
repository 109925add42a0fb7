// SPDX-License-Identifier: MIT

public import ANHTTP

/// A task of a ``SessionManager`` that runs beside the task that started it: what can be seen of it and done to it.
///
/// All of it may be used from anywhere, at any time, and returns at once. ``TransferTask`` is the handle that has the
/// task's value too.
public protocol TransferHandle: Sendable {
    /// What stands behind the handle.
    var core: TransferCore { get }
}

extension TransferHandle {
    /// A number that no other task of the manager has.
    public var id: UInt64 { core.id }
    /// What kind of work it does.
    public var kind: SessionTask.Kind { core.kind }
    /// The request as it was handed to the manager; nil where none could be made.
    public var request: Request? { core.request }

    // MARK: What it does

    /// Starts the task, or lets it go on. Of tasks that run or are over this changes nothing.
    public func resume() { core.resume() }

    /// Pauses the task: it gives its turn to others, reads no more of the response and sends no more of the request.
    ///
    /// What the connection has buffered by then is still moved. The connection stays open; while it waits for this side,
    /// the idle limit does not run, but that on the total time does, and the server may have limits of its own.
    public func suspend() { core.suspend() }

    /// Asks the task to end; its value then throws `CancellationError`, unless it was complete already.
    public func cancel() { core.cancel() }

    // MARK: What is seen of it

    /// The task at this moment.
    public var status: TransferStatus { core.status }

    /// Everything that happened to the task and will: each reader hears all from the beginning, in order, then the end.
    ///
    /// It is kept as long as the task is. What a server can add to it is bounded by the limits on heads, redirects and
    /// retries.
    public var events: ProgressStream<TaskEvent> { ProgressStream(broadcast: core.events) }

    /// How much of the request's body was sent: the latest value first, then newer ones, until the task is over.
    ///
    /// "Sent" means handed to the connection. A body that is sent again, for a redirect or a challenge, starts over.
    public var uploadProgress: ProgressStream<TransferProgress> { ProgressStream(broadcast: core.uploads) }

    /// How much of the response's body was received: the latest value first, then newer ones, until the task is over.
    ///
    /// Bodies of redirects and of rejected downloads are no progress.
    public var downloadProgress: ProgressStream<TransferProgress> { ProgressStream(broadcast: core.downloads) }

    /// The progress of what the task is for: ``uploadProgress`` of an upload, otherwise ``downloadProgress``.
    ///
    /// Any number of readers may iterate it; who does not costs nothing.
    public var progress: ProgressStream<TransferProgress> {
        kind == .upload ? uploadProgress : downloadProgress
    }

    // MARK: What it is called

    /// How soon it gets its turn among tasks that wait; see ``SessionConfiguration/maximumConcurrentTransfers``.
    public var priority: TransferPriority {
        get { core.priority }
        nonmutating set { core.priority = newValue }
    }

    /// A text of the program's own, which the library does not look at.
    public var label: String? {
        get { core.label }
        nonmutating set { core.label = newValue }
    }

    /// Words by which ``SessionManager/transfers(tagged:)`` finds the task.
    public var tags: Set<String> {
        get { core.tags }
        nonmutating set { core.tags = newValue }
    }
}

extension TransferCore: TransferHandle {
    /// Itself.
    public var core: TransferCore { self }
}
