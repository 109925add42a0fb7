// SPDX-License-Identifier: MIT

package import ANHTTP

extension SessionManager {
    /// Creates a task that performs a request and runs a closure with the response as it arrives, regardless of its status.
    ///
    /// Between two chunks `body` should await ``TransferCore/waitUntilRunning()``, so that the task can be suspended.
    ///
    /// - Parameters:
    ///   - kind: The kind of the task.
    ///   - request: The request to send.
    ///   - priority: The priority among waiting tasks.
    ///   - isResumed: Whether the task starts at once.
    ///   - prepare: Receives the task's core before the work begins.
    ///   - body: Receives the response's head, its body, which is valid only while the closure runs, and the task's
    ///     core.
    ///   - ending: Called with the result when the task has ended, before its value is available.
    package nonisolated func makeTask<Value: Sendable>(
        _ kind: SessionTask.Kind, for request: Request, priority: TransferPriority, isResumed: Bool,
        prepare: (TransferCore) -> Void,
        body: @escaping @Sendable (ResponseHead, ResponseBody, TransferCore) async throws -> Value,
        ending: @escaping @Sendable (Result<Value, any Error>) async -> Void
    ) -> TransferTask<Value> {
        makeTask(
            kind, .success(request), priority: priority, isResumed: isResumed, prepare: prepare, ending: ending
        ) { transfer in
            let core = transfer.core
            return try await self.perform(
                transfer.gatedTask(), delivery: .streamed, reporting: core.monitor
            ) { head, responseBody in
                core.receive(head)
                core.accept()
                return try await body(head, responseBody, core)
            }
        }
    }
}

extension TransferCore {
    /// The most recently sent request.
    package var sentRequest: Request? {
        for case .request(let request) in pastEvents.reversed() { return request }
        return nil
    }

    /// The metrics of each exchange.
    package var exchanges: [TransferMetrics] {
        pastEvents.compactMap { if case .metrics(let metrics) = $0 { metrics } else { nil } }
    }

    /// Calls `observer` with every event, including past ones. It must return immediately and not use the task.
    package func observeEvents(_ observer: @escaping @Sendable (TaskEvent) -> Void) {
        events.observe { if let event = $0 { observer(event) } }
    }

    /// Calls `observer` with the progress of the request's body. It must return immediately and not use the task.
    package func observeUploadProgress(_ observer: @escaping @Sendable (TransferProgress) -> Void) {
        uploads.observe { if let progress = $0 { observer(progress) } }
    }

    /// Calls `observer` with the progress of the response's body. It must return immediately and not use the task.
    package func observeDownloadProgress(_ observer: @escaping @Sendable (TransferProgress) -> Void) {
        downloads.observe { if let progress = $0 { observer(progress) } }
    }
}
