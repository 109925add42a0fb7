// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A transfer task of a ``SessionManager``, and its value.
///
/// The manager owns the task: it runs until it ends, ``TransferHandle/cancel()`` is called, or a Swift task that awaits
/// ``value`` is cancelled. Releasing this handle does not stop the task, unless the task was never resumed: then it is
/// cancelled.
public final class TransferTask<Value: Sendable>: TransferHandle {
    /// The state shared by all handles of the task.
    public let core: TransferCore
    private let work: Task<Value, any Error>

    /// Creates a task that performs `work` once it is resumed, then leaves the registry, then calls `ending` with the
    /// result.
    init(
        _ task: RunningTask, in registry: TaskRegistry, ending: (@Sendable (Result<Value, any Error>) async -> Void)?,
        work: @escaping @Sendable (RunningTask) async throws -> Value
    ) {
        let core = task.core
        self.core = core
        // The Swift task ends with the transfer, which ``TransferHandle/cancel()`` and the manager's invalidation end.
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

    /// The value of the task, available when it has ended. Cancelling the Swift task that awaits it cancels the
    /// transfer.
    ///
    /// Awaiting the value does not resume the task: a suspended task must be resumed elsewhere.
    ///
    /// - Throws: ``SessionError`` or `CancellationError`.
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

    /// The head of the response, available when it has arrived. Cancelling the Swift task that awaits it does not
    /// cancel the transfer.
    ///
    /// - Throws: The error of ``value`` if the task ends without a response, or `CancellationError` if the calling task
    ///   is cancelled.
    public var response: ResponseHead {
        get async throws {
            for await event in events {
                if case .response(let head) = event { return head }
            }
            try Task.checkCancellation()
            _ = try await work.value
            throw SessionError.transport(
                .internalInconsistency("The task has a value but no response.", FailureContext()))
        }
    }
}

/// A task that collects the response's body.
public typealias DataTask = TransferTask<Response<Data>>

/// A task that sends a body; its value is the response.
public typealias UploadTask = TransferTask<Response<Data>>

/// A task that writes the response to a file; its value contains the path.
public typealias DownloadTask = TransferTask<Response<DownloadedFile>>

/// A file written by a download.
public struct DownloadedFile: Hashable, Sendable {
    /// The path of the file.
    public var path: String
    /// The size of the file in bytes.
    public var size: Int64

    /// Creates the value, for testing.
    public init(path: String, size: Int64) {
        self.path = path
        self.size = size
    }
}
