// SPDX-License-Identifier: MIT

public import ANHTTP

/// A handle that observes and controls a task of a ``SessionManager``.
///
/// All members may be used from any thread or task at any time, and return immediately. ``TransferTask`` is the handle
/// that also provides the task's value.
public protocol TransferHandle: Sendable {
    /// The state shared by all handles of the task.
    var core: TransferCore { get }
}

extension TransferHandle {
    /// The task's identifier, unique within its manager.
    public var id: UInt64 { core.id }
    /// The kind of task.
    public var kind: SessionTask.Kind { core.kind }
    /// The request as it was passed to the manager; `nil` if it could not be created.
    public var request: Request? { core.request }

    // MARK: Control

    /// Starts or continues the task. Has no effect on a task that is running or has ended.
    public func resume() { core.resume() }

    /// Suspends the task: it stops reading the response and sending the request, and gives its slot to a waiting task.
    ///
    /// Data already buffered by the connection is still transferred. The connection stays open. Meanwhile the idle
    /// timeout is paused, but the total timeout is not, and the server may have timeouts of its own.
    public func suspend() { core.suspend() }

    /// Cancels the task. Its value then throws `CancellationError`, unless the task was already complete.
    public func cancel() { core.cancel() }

    // MARK: Observation

    /// A snapshot of the task's state, response, progress and outcome.
    public var status: TaskStatus { core.status }

    /// The task's events: every reader receives all of them from the first one on, in order, until the task ends.
    ///
    /// The events are kept as long as the task. Their number is bounded by the limits on response heads, redirects and
    /// retries.
    public var events: BroadcastStream<TaskEvent> { BroadcastStream(broadcast: core.events) }

    /// The progress of sending the request's body: yields the latest value first, then newer ones until the task ends.
    ///
    /// Bytes count as sent when they have been passed to the connection. Progress starts over if the body is sent
    /// again, after a redirect or a challenge.
    public var uploadProgress: BroadcastStream<TransferProgress> { BroadcastStream(broadcast: core.uploads) }

    /// The progress of receiving the response's body: yields the latest value first, then newer ones until the task
    /// ends.
    ///
    /// The bodies of redirects and of rejected downloads do not count.
    public var downloadProgress: BroadcastStream<TransferProgress> { BroadcastStream(broadcast: core.downloads) }

    /// The progress in the task's main direction: ``uploadProgress`` for an upload task, otherwise
    /// ``downloadProgress``.
    ///
    /// Any number of readers may iterate it. Progress costs nothing if no one reads it.
    public var progress: BroadcastStream<TransferProgress> {
        kind == .upload ? uploadProgress : downloadProgress
    }

    // MARK: Scheduling and identification

    /// The task's priority among waiting tasks; ``TransferPriority/normal`` by default. See
    /// ``SessionConfiguration/maximumConcurrentTransfers``.
    public var priority: TransferPriority {
        get { core.priority }
        nonmutating set { core.priority = newValue }
    }

    /// A description for the program's own use, which the library ignores; `nil` by default.
    public var label: String? {
        get { core.label }
        nonmutating set { core.label = newValue }
    }

    /// The tags by which ``SessionManager/transfers(tagged:)`` finds the task; empty by default.
    public var tags: Set<String> {
        get { core.tags }
        nonmutating set { core.tags = newValue }
    }
}

extension TransferCore: TransferHandle {
    /// The task's state, which is this object.
    public var core: TransferCore { self }
}
