// SPDX-License-Identifier: MIT

package import ANHTTP

extension SessionManager {
    /// Makes a task that performs a request and runs `body` with the response as it arrives, whatever its status is.
    ///
    /// Between two chunks `body` should wait for ``TransferCore/pass()``, so that the task can be suspended.
    ///
    /// - Parameters:
    ///   - kind: What the task is called.
    ///   - request: What is sent.
    ///   - priority: How soon it gets its turn.
    ///   - isResumed: Whether it starts at once.
    ///   - prepare: Given the task before its work begins.
    ///   - body: Lent the response's body while it runs, and the task.
    ///   - ending: Done with the result when the task is over, before its value is there.
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
    /// The request that was sent last.
    package var sentRequest: Request? {
        for case .request(let request) in pastEvents.reversed() { return request }
        return nil
    }

    /// What each exchange has cost.
    package var exchanges: [TransferMetrics] {
        pastEvents.compactMap { if case .metrics(let metrics) = $0 { metrics } else { nil } }
    }

    /// Calls `observer` with every event, the earlier ones too; it must return at once and not use the task.
    package func observeEvents(_ observer: @escaping @Sendable (TaskEvent) -> Void) {
        events.observe { if let event = $0 { observer(event) } }
    }

    /// Calls `observer` with the progress of the request's body; it must return at once and not use the task.
    package func observeUploadProgress(_ observer: @escaping @Sendable (TransferProgress) -> Void) {
        uploads.observe { if let progress = $0 { observer(progress) } }
    }

    /// Calls `observer` with the progress of the response; it must return at once and not use the task.
    package func observeDownloadProgress(_ observer: @escaping @Sendable (TransferProgress) -> Void) {
        downloads.observe { if let progress = $0 { observer(progress) } }
    }
}
