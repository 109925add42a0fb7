// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A task of a ``SessionManager``: it observes and controls a transfer, and provides its value.
///
/// The manager owns the task: it runs until it ends, until ``cancel()`` is called or a Swift task that awaits ``value``
/// is cancelled, or until the manager cancels its requests. Releasing this object does not stop the task, unless the
/// task was never resumed: then it is cancelled.
///
/// All members may be used from any thread or task at any time. Those that are not `async` return immediately. All
/// properties of ``AnyTransferTask``, such as ``AnyTransferTask/progress`` and ``AnyTransferTask/status``, are also
/// properties of this type.
@dynamicMemberLookup
public final class TransferTask<Value: Sendable>: Identifiable, Sendable {
    package let core: TransferCore
    private let work: Task<Value, any Error>

    /// Creates a task that performs `work` once it is resumed, then leaves the registry, then calls `ending` with the
    /// result.
    init(
        _ task: RunningTask, in registry: TaskRegistry, ending: (@Sendable (Result<Value, any Error>) async -> Void)?,
        work: @escaping @Sendable (RunningTask) async throws -> Value
    ) {
        let core = task.core
        self.core = core
        // The Swift task ends with the transfer, which ``cancel()`` and the manager's invalidation end.
        self.work = Task {
            let result: Result<Value, any Error>
            do {
                try await core.waitUntilRunning()
                result = .success(try await work(task))
                core.finish(.succeeded)
            } catch {
                result = .failure(error)
                core.finish(TaskOutcome(error))
            }
            registry.end(core.id)
            await ending?(result)
            return try result.get()
        }
        core.begin { [work = self.work] in work.cancel() }
    }

    /// Creates a task that has failed, and calls `ending` with the error.
    init(
        _ core: TransferCore, failingWith error: any Error,
        ending: (@Sendable (Result<Value, any Error>) async -> Void)?
    ) {
        self.core = core
        core.finish(TaskOutcome(error))
        // The Swift task ends at once.
        work = Task {
            await ending?(.failure(error))
            throw error
        }
    }

    deinit {
        core.abandon()
    }

    /// The task without its value, for lists of tasks of different kinds; it controls and observes the same task.
    ///
    /// A task that was never resumed is still cancelled when its `TransferTask` is released.
    public var erased: AnyTransferTask { AnyTransferTask(core) }

    // MARK: The result

    /// The value of the task, available when it has ended. Cancelling the Swift task that awaits it cancels the
    /// transfer.
    ///
    /// Awaiting the value does not resume the task: a suspended task must be resumed elsewhere. Any number of tasks may
    /// await it, and cancelling one of them ends the transfer for all.
    ///
    /// - Throws: ``SessionError``, which is ``SessionError/invalidated`` if the manager was invalidated or shut down
    ///   before the task was created; `CancellationError` if the transfer was cancelled; or an error of the program's
    ///   own code, such as a serializer.
    public var value: Value {
        get async throws {
            try await withTaskCancellationHandler {
                try await work.value
            } onCancel: {
                core.cancel()
            }
        }
    }

    /// Cancels the task and waits for its end, even if the calling task is cancelled.
    func end() async {
        core.cancel()
        _ = await work.result
    }

    /// The head of the response, available when it has arrived, even if the response is rejected afterwards. Cancelling
    /// the Swift task that awaits it does not cancel the transfer.
    ///
    /// Awaiting it does not resume the task. For a download that ``DownloadOptions/skipsVerifiedFile`` made
    /// unnecessary, it is a response with status 304. If a download needs several requests, it is the head of the first
    /// accepted response.
    ///
    /// - Throws: The error of ``value`` if the task ends without a response, or `CancellationError` if the calling task
    ///   is cancelled.
    public var response: ResponseHead {
        get async throws {
            for await event in erased.events {
                if case .response(let head) = event { return head }
            }
            try Task.checkCancellation()
            _ = try await work.value
            throw SessionError.transport(
                TransportError(.internalInconsistency("The task has a value but no response.")))
        }
    }
}

// The members of `AnyTransferTask`.
extension TransferTask {
    /// The task's identifier, unique within the process; tasks that are created later have higher ones.
    public var id: UInt64 { core.id }
    /// Starts or continues the task. Has no effect on a task that is waiting or running, was cancelled, or has ended.
    /// With ``SessionConfiguration/maximumConcurrentTransfers``, the task may wait for its turn.
    public func resume() { core.resume() }
    /// Suspends the task: it stops reading the response and sending the request, but its connection stays open, and
    /// timeouts may expire; see ``AnyTransferTask/suspend()``. Has no effect on a task that is suspended, was
    /// cancelled, or has ended.
    public func suspend() { core.suspend() }
    /// Cancels the task, and returns without waiting for its end. Its ``value`` then throws `CancellationError`, unless
    /// the task was already complete. Cancelling it again has no effect.
    public func cancel() { core.cancel() }

    /// A property of ``AnyTransferTask`` that can be read only, such as ``AnyTransferTask/progress`` or
    /// ``AnyTransferTask/status``.
    public subscript<Member>(dynamicMember member: KeyPath<AnyTransferTask, Member>) -> Member {
        erased[keyPath: member]
    }

    /// A property of ``AnyTransferTask`` that can be set, such as ``AnyTransferTask/priority`` or
    /// ``AnyTransferTask/label``. Setting it changes the task itself.
    public subscript<Member>(dynamicMember member: ReferenceWritableKeyPath<AnyTransferTask, Member>) -> Member {
        get { erased[keyPath: member] }
        set { erased[keyPath: member] = newValue }
    }
}

extension TransferTask {
    /// Resumes the task and returns it.
    func started() -> Self {
        resume()
        return self
    }

    /// Runs `scope` with the task, then cancels the task and waits for its end.
    func endingWithScope<Result>(_ scope: (TransferTask) async throws -> Result) async rethrows -> Result {
        do {
            let result = try await scope(self)
            await end()
            return result
        } catch {
            await end()
            throw error
        }
    }
}

/// A task that collects the response's body in memory; its value is the response with the body.
/// ``SessionManager/makeDataTask(for:)`` creates one, which accepts any status.
public typealias DataTask = TransferTask<Response<Data>>

/// A task that sends a body; its value is the response with its body. ``SessionManager/upload(_:as:)`` starts one with
/// the default serializer, which accepts the statuses 200–299. The type is that of ``DataTask``;
/// ``AnyTransferTask/kind`` differs.
public typealias UploadTask = TransferTask<Response<Data>>

/// A task that writes the response to a file; its value is the file, with the response.
/// ``SessionManager/download(_:to:options:)`` starts one.
public typealias DownloadTask = TransferTask<DownloadedFile>
