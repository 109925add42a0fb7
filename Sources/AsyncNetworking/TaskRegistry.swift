// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

/// A request of a ``SessionManager`` that has not ended.
public struct SessionTask: Sendable, Identifiable {
    /// The task's identifier, unique within its manager.
    public let id: UInt64
    /// The kind of task.
    public let kind: Kind
    /// The request as it was passed to the manager.
    public let request: Request
    let core: TransferCore?

    init(id: UInt64, kind: Kind, request: Request, core: TransferCore? = nil) {
        self.id = id
        self.kind = kind
        self.request = request
        self.core = core
    }

    /// The handle that suspends, resumes and cancels the task; `nil` for a request of an async function, which its
    /// caller controls.
    public var handle: (any TransferHandle)? { core }

    /// The kind of a task.
    public enum Kind: Hashable, Sendable {
        /// A request whose response is collected in memory.
        case data
        /// A request whose response is streamed to a closure.
        case stream
        /// An upload task, which sends a body.
        case upload
        /// A download task, which writes the response to a file.
        case download
    }
}

/// The tasks of a manager that have not ended, and whether it accepts new ones.
///
/// Guarded by a lock rather than by the manager's isolation: every request enters and leaves it, from any thread, and
/// two hops to an actor would cost more than the rest of the pipeline.
final class TaskRegistry: Sendable {
    private let state = Lock(State())

    private struct State {
        var entries: [UInt64: Entry] = [:]
        var acceptance = Acceptance.open
        /// Continuations waiting for the last task to end.
        var emptyWaiters: Waiters = [:]
        /// Continuations waiting for tasks to be cancelled.
        var cancellationWaiters: Waiters = [:]
        private var lastNumber: UInt64 = 0

        /// Returns an identifier for a task or a continuation, unique within the registry.
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

    /// A task that has not ended.
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

    /// Whether the manager accepts new tasks, and what happens to running ones.
    private enum Acceptance {
        /// New tasks are accepted.
        case open
        /// New tasks are rejected; running ones finish.
        case draining
        /// New tasks are rejected; running ones are cancelled.
        case cancelling
    }

    /// Registers a request of an async function.
    ///
    /// - Throws: ``SessionError/invalidated`` if the manager no longer accepts requests.
    func begin(_ kind: SessionTask.Kind, _ request: Request) throws(SessionError) -> SessionTask {
        try state.withLock { state throws(SessionError) in
            guard case .open = state.acceptance else { throw .invalidated }
            let task = SessionTask(id: state.takeNumber(), kind: kind, request: request)
            state.entries[task.id] = .request(task)
            return task
        }
    }

    /// Registers a task with a handle, whose core `makeCore` creates from an identifier.
    ///
    /// - Returns: The core, and whether it was registered: not if it has no request, or if the manager no longer
    ///   accepts requests.
    func begin(_ makeCore: (_ id: UInt64) -> TransferCore) -> (core: TransferCore, isTaken: Bool) {
        state.withLock { state in
            let core = makeCore(state.takeNumber())
            guard core.request != nil, case .open = state.acceptance else { return (core, false) }
            state.entries[core.id] = .transfer(core)
            return (core, true)
        }
    }

    /// Unregisters a task.
    func end(_ id: UInt64) {
        let waiters = state.withLock { state in
            state.entries[id] = nil
            return state.entries.isEmpty && !state.emptyWaiters.isEmpty ? state.take(\.emptyWaiters) : []
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The registered tasks, oldest first.
    var tasks: [SessionTask] {
        state.withLock { Array($0.entries.values) }.compactMap(\.task).sorted { $0.id < $1.id }
    }

    /// Rejects new tasks.
    ///
    /// - Parameter cancelling: Whether running tasks are cancelled.
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

    /// Whether running tasks are cancelled because the manager was invalidated.
    var isCancelling: Bool {
        state.withLock { $0.isCancelling }
    }

    /// Returns when no task is registered, or when the calling task is cancelled.
    func waitUntilEmpty() async {
        await wait(among: \.emptyWaiters) { $0.entries.isEmpty }
    }

    /// Returns when running tasks are cancelled, or when the calling task is.
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
