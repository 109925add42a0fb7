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
        var entries: [UInt64: Entry] = [:]
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

    /// A task that is not over.
    private enum Entry: Sendable {
        /// A request of an async function.
        case request(SessionTask)
        /// A task with a handle.
        case transfer(TransferCore)

        var task: SessionTask? {
            switch self {
            case .request(let task): task
            case .transfer(let core):
                core.request.map { SessionTask(id: core.id, kind: core.kind, request: $0, core: core) }
            }
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
            state.entries[task.id] = .request(task)
            return task
        }
    }

    /// Notes that a task with a handle begins, which `makeCore` makes with a number; false where it has no request, and when
    /// no more tasks are taken.
    func begin(_ makeCore: (_ id: UInt64) -> TransferCore) -> (core: TransferCore, isTaken: Bool) {
        state.withLock { state in
            let core = makeCore(state.takeNumber())
            guard core.request != nil, case .open = state.acceptance else { return (core, false) }
            state.entries[core.id] = .transfer(core)
            return (core, true)
        }
    }

    /// Notes that a task has ended.
    func end(_ id: UInt64) {
        let waiters = state.withLock { state in
            state.entries[id] = nil
            return state.entries.isEmpty && !state.emptyWaiters.isEmpty ? state.take(\.emptyWaiters) : []
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The running tasks, oldest first.
    var tasks: [SessionTask] {
        state.withLock { Array($0.entries.values) }.compactMap(\.task).sorted { $0.id < $1.id }
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
        await wait(among: \.emptyWaiters) { $0.entries.isEmpty }
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
