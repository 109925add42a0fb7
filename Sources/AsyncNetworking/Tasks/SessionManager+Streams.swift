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
    ///   - events: Told what happens in each exchange, on the network's thread.
    ///   - priority: How soon it gets its turn.
    ///   - isResumed: Whether it starts at once.
    ///   - body: Lent the response's body while it runs, and the task.
    ///   - ending: Done with the result when the task is over, before its value is there.
    package nonisolated func makeTask<Value: Sendable>(
        _ kind: SessionTask.Kind, for request: Request, reporting events: any TransferEventSink,
        priority: TransferPriority, isResumed: Bool,
        body: @escaping @Sendable (ResponseHead, ResponseBody, TransferCore) async throws -> Value,
        ending: @escaping @Sendable (Result<Value, any Error>) async -> Void
    ) -> TransferTask<Value> {
        makeTask(kind, .success(request), priority: priority, isResumed: isResumed, ending: ending) { transfer in
            let core = transfer.core
            let sink = EventPair(first: core.monitor, second: events)
            return try await self.perform(
                transfer.gatedTask(), delivery: .streamed, reporting: sink
            ) { head, responseBody in
                core.receive(head)
                core.accept()
                return try await body(head, responseBody, core)
            }
        }
    }
}

extension TransferCore {
    /// Calls `observer` with every event, the earlier ones too; it must return at once and not use the task.
    package func observeEvents(_ observer: @escaping @Sendable (TaskEvent) -> Void) {
        events.observe { if let event = $0 { observer(event) } }
    }

    /// Calls `observer` with the progress of the response; it must return at once and not use the task.
    package func observeDownloadProgress(_ observer: @escaping @Sendable (TransferProgress) -> Void) {
        downloads.observe { if let progress = $0 { observer(progress) } }
    }
}

/// Tells two sinks.
private struct EventPair: TransferEventSink {
    let first: any TransferEventSink
    let second: any TransferEventSink

    func receive(_ event: TransferEvent) {
        first.receive(event)
        second.receive(event)
    }
}
