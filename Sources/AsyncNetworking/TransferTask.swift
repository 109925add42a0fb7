// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A transfer that runs beside the task that started it, with progress.
///
/// It runs until it is done, ``cancel()`` is called, or a task that awaits ``value`` is cancelled. Dropping it does not
/// stop it.
public final class TransferTask<Value: Sendable>: Sendable {
    private let task: Task<Value, any Error>
    private let monitor: ProgressMonitor

    /// Starts `work`, which reports its progress to the monitor it gets.
    init(
        direction: ProgressMonitor.Direction,
        work: @escaping @Sendable (ProgressMonitor) async throws -> Value
    ) {
        let monitor = ProgressMonitor(direction)
        self.monitor = monitor
        // It ends with the transfer, which ``cancel()`` and the manager's invalidation end.
        task = Task {
            defer { monitor.finish() }
            return try await work(monitor)
        }
    }

    /// The progress: the latest value first, then newer ones, until the transfer has ended in whatever way.
    ///
    /// Any number of readers may iterate it; who does not costs nothing.
    public var progress: ProgressStream<TransferProgress> {
        ProgressStream(broadcast: monitor.broadcast)
    }

    /// The result, once the transfer is done. Cancelling the task that awaits it cancels the transfer.
    ///
    /// - Throws: ``SessionError`` or `CancellationError`.
    public var value: Value {
        get async throws {
            try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
        }
    }

    /// Asks the transfer to end; ``value`` then throws `CancellationError`, unless it was done already.
    public func cancel() {
        task.cancel()
    }
}

/// A body being sent; its value is the response.
public typealias UploadTask = TransferTask<Response<Data>>

/// A response being written to a file; its value says where.
public typealias DownloadTask = TransferTask<Response<DownloadedFile>>

/// A file that a download has written.
public struct DownloadedFile: Hashable, Sendable {
    /// The file's path.
    public var path: String
    /// The number of bytes written.
    public var size: Int64

    /// Creates a description of a file.
    public init(path: String, size: Int64) {
        self.path = path
        self.size = size
    }
}
