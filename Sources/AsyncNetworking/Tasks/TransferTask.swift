// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A task of a ``SessionManager`` and its value.
///
/// The manager owns the task: it runs until it is done, ``TransferHandle/cancel()`` is called, or a task that awaits
/// ``value`` is cancelled. Dropping the handle does not stop it, unless it was never started: then it never will be, and
/// ends.
public final class TransferTask<Value: Sendable>: TransferHandle {
    /// What stands behind the handle.
    public let core: TransferCore
    private let work: Task<Value, any Error>

    /// Makes a task that does `work` once it is resumed, then leaves the registry, then does `ending` with the result.
    init(
        _ transfer: Transfer, in registry: TaskRegistry, ending: (@Sendable (Result<Value, any Error>) async -> Void)?,
        work: @escaping @Sendable (Transfer) async throws -> Value
    ) {
        let core = transfer.core
        self.core = core
        // It ends with the transfer, which ``TransferHandle/cancel()`` and the manager's invalidation end.
        self.work = Task {
            let result: Result<Value, any Error>
            do {
                try await core.pass()
                result = .success(try await work(transfer))
                core.finish(.succeeded)
            } catch {
                result = .failure(error)
                core.finish(TransferOutcome(error))
            }
            registry.end(core.id)
            await ending?(result)
            return try result.get()
        }
        core.begin { [work = self.work] in work.cancel() }
    }

    /// Makes a task that has failed; `ending` is done with the error.
    init(
        _ core: TransferCore, failingWith error: any Error,
        ending: (@Sendable (Result<Value, any Error>) async -> Void)?
    ) {
        self.core = core
        core.finish(TransferOutcome(error))
        // It ends at once.
        work = Task {
            await ending?(.failure(error))
            throw error
        }
    }

    deinit {
        core.abandon()
    }

    /// The result, once the task is done. Cancelling the task that awaits it cancels the transfer.
    ///
    /// A task that is suspended has to be resumed by somebody else meanwhile.
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

    /// Asks the task to end, and waits for that, even where the calling task is cancelled.
    func end() async {
        core.cancel()
        _ = await work.result
    }

    /// The head of the response, as soon as it has come. Cancelling the task that awaits it leaves the transfer alone.
    ///
    /// - Throws: What ``value`` throws, when there is no response.
    public var response: ResponseHead {
        get async throws {
            for await event in events {
                if case .response(let head) = event { return head }
            }
            try Task.checkCancellation()
            _ = try await work.value
            throw SessionError.transport(
                .internalInconsistency("There is a value without a response.", TransferFacts()))
        }
    }
}

/// A request whose response is collected.
public typealias DataTask = TransferTask<Response<Data>>

/// A body being sent; its value is the response.
public typealias UploadTask = TransferTask<Response<Data>>

/// A response being written to a file; its value says where.
public typealias DownloadTask = TransferTask<Response<DownloadedFile>>

/// A file that a download has written.
public struct DownloadedFile: Hashable, Sendable {
    /// The file's path.
    public var path: String
    /// The number of bytes in it.
    public var size: Int64

    /// Creates a description of a file.
    public init(path: String, size: Int64) {
        self.path = path
        self.size = size
    }
}
