// SPDX-License-Identifier: MIT

package import ANHTTP

// Creating tasks of any kind. A task is registered when it is created, so that `invalidate(cancellingTasks: false)`
// lets it finish even if it has not started.

extension SessionManager {
    /// Creates a task. If `request` is a failure, or the manager no longer accepts requests, the task fails at once.
    ///
    /// - Parameters:
    ///   - kind: The kind of task.
    ///   - request: The request, or the error with which the task fails.
    ///   - priority: The priority among waiting tasks.
    ///   - isResumed: Whether the task starts at once.
    ///   - prepare: Receives the task's core before the work begins.
    ///   - ending: Called with the result when the task has ended, before its value is available.
    ///   - work: The work of the task, which begins when the task is first admitted.
    nonisolated func makeTask<Value>(
        _ kind: TaskKind, _ request: Result<Request, any Error>, priority: TransferPriority = .normal,
        isResumed: Bool = false, prepare: (TransferCore) -> Void = { _ in },
        ending: (@Sendable (Result<Value, any Error>) async -> Void)? = nil,
        work: @escaping @Sendable (RunningTask) async throws -> Value
    ) -> TransferTask<Value> {
        let wanted = try? request.get()
        let (core, isTaken) = registry.begin { id in
            TransferCore(
                id: id, kind: kind, request: wanted, priority: priority, scheduler: scheduler,
                stopwatch: pipeline.uptime)
        }
        prepare(core)
        guard isTaken, let wanted else {
            let error: any Error = if case .failure(let error) = request { error } else { SessionError.invalidated }
            return TransferTask(core, failingWith: error, ending: ending)
        }
        // Resumed before the work begins, so that the work need not suspend.
        if isResumed { core.resume() }
        return TransferTask(RunningTask(core: core, request: wanted), in: registry, ending: ending, work: work)
    }

    /// Creates a task that performs a request and runs a closure with the response as it arrives, regardless of its
    /// status.
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
        _ kind: TaskKind, for request: Request, priority: TransferPriority, isResumed: Bool,
        prepare: (TransferCore) -> Void,
        body: @escaping @Sendable (ResponseHead, ResponseBody, TransferCore) async throws -> Value,
        ending: @escaping @Sendable (Result<Value, any Error>) async -> Void
    ) -> TransferTask<Value> {
        makeTask(
            kind, .success(request), priority: priority, isResumed: isResumed, prepare: prepare, ending: ending
        ) { transfer in
            let core = transfer.core
            return try await self.perform(
                transfer.erased, transfer.gatedRequest(), delivery: .streamed, reporting: core
            ) { head, responseBody in
                core.receive(head)
                core.accept()
                return try await body(head, responseBody, core)
            }
        }
    }
}
