// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

/// A request of a ``SessionManager`` that is not over.
public struct SessionTask: Sendable, Identifiable {
    /// A number that no other task of the manager has.
    public let id: UInt64
    /// What kind of work it does.
    public let kind: Kind
    /// The request as it was handed to the manager.
    public let request: Request
    let core: TransferCore?

    init(id: UInt64, kind: Kind, request: Request, core: TransferCore? = nil) {
        self.id = id
        self.kind = kind
        self.request = request
        self.core = core
    }

    /// What the task is steered by; nil for a request of an async function, which its caller cancels.
    public var handle: (any TransferHandle)? { core }

    /// The kinds of tasks.
    public enum Kind: Hashable, Sendable {
        /// The response is collected.
        case data
        /// The response is streamed to a scope.
        case stream
        /// A body is sent with progress.
        case upload
        /// The response is written to a file.
        case download
    }
}

/// The tasks of a manager, and whether it takes more.
///
/// Every request passes through here twice, from any thread: it is a lock and not the manager's own isolation, because two
/// visits to an actor would cost more than the rest of the pipeline.
final class TaskRegistry: Sendable {
    private let state = Lock(State())

    private struct State {
        var tasks: [UInt64: SessionTask] = [:]
        var acceptance = Acceptance.open
        /// Those who wait for the last task to end.
        var emptyWaiters: Waiters = [:]
        /// Those who wait for the tasks to be cancelled.
        var cancellationWaiters: Waiters = [:]
        private var lastNumber: UInt64 = 0

        /// A number for a task or a waiter that nothing else has.
        mutating func takeNumber() -> UInt64 {
            lastNumber += 1
            return lastNumber
        }

        mutating func take(_ waiters: WritableKeyPath<State, Waiters>) -> [CheckedContinuation<Void, Never>] {
            defer { self[keyPath: waiters] = [:] }
            return Array(self[keyPath: waiters].values)
        }

        var isCancelling: Bool {
            if case .cancelling = acceptance { true } else { false }
        }
    }

    private typealias Waiters = [UInt64: CheckedContinuation<Void, Never>]

    /// Whether tasks may begin and how running ones end.
    private enum Acceptance {
        /// Tasks may begin.
        case open
        /// No task begins; the running ones finish.
        case draining
        /// No task begins; the running ones are being cancelled.
        case cancelling
    }

    /// Notes that a task begins.
    ///
    /// - Throws: ``SessionError/invalidated`` when no more tasks are taken.
    func begin(_ kind: SessionTask.Kind, _ request: Request) throws(SessionError) -> SessionTask {
        try state.withLock { state throws(SessionError) in
            guard case .open = state.acceptance else { throw .invalidated }
            let task = SessionTask(id: state.takeNumber(), kind: kind, request: request)
            state.tasks[task.id] = task
            return task
        }
    }

    /// Notes that a task begins that `makeCore` makes with a number; nil when no more tasks are taken.
    func begin(
        _ request: Request?, makeCore: (_ id: UInt64) -> TransferCore
    ) -> (core: TransferCore, task: SessionTask?) {
        state.withLock { state in
            let core = makeCore(state.takeNumber())
            guard let request, case .open = state.acceptance else { return (core, nil) }
            let task = SessionTask(id: core.id, kind: core.kind, request: request, core: core)
            state.tasks[task.id] = task
            return (core, task)
        }
    }

    /// Notes that a task has ended.
    func end(_ task: SessionTask) {
        let waiters = state.withLock { state in
            state.tasks[task.id] = nil
            return state.tasks.isEmpty && !state.emptyWaiters.isEmpty ? state.take(\.emptyWaiters) : []
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The running tasks, oldest first.
    var tasks: [SessionTask] {
        state.withLock { Array($0.tasks.values) }.sorted { $0.id < $1.id }
    }

    /// Takes no more tasks.
    func close(cancelling: Bool) {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            guard cancelling else {
                if case .open = state.acceptance { state.acceptance = .draining }
                return []
            }
            state.acceptance = .cancelling
            return state.take(\.cancellationWaiters)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Whether running tasks are being cancelled because the manager was invalidated.
    var isCancelling: Bool {
        state.withLock { $0.isCancelling }
    }

    /// Returns when no task is running, or when the calling task is cancelled.
    func waitUntilEmpty() async {
        await wait(among: \.emptyWaiters) { $0.tasks.isEmpty }
    }

    /// Returns when running tasks are being cancelled, or when the calling task is.
    func waitUntilCancelling() async {
        await wait(among: \.cancellationWaiters) { $0.isCancelling }
    }

    private func wait(
        among waiters: any WritableKeyPath<State, Waiters> & Sendable, until isOver: (State) -> Bool
    ) async {
        let key = state.withLock { $0.takeNumber() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    guard !isOver(state), !Task.isCancelled else { return false }
                    state[keyPath: waiters][key] = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0[keyPath: waiters].removeValue(forKey: key) }?.resume()
        }
    }
}
