// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import Synchronization

/// The tasks of a manager that have not ended, and whether it accepts new ones.
///
/// Guarded by a lock rather than by the manager's isolation: every request enters and leaves it, from any thread, and
/// two hops to an actor would cost more than the rest of the pipeline.
final class TaskRegistry: Sendable {
    private let state = Lock(State())
    /// The last identifier of a task in this process.
    private static let lastID = Atomic<UInt64>(0)

    private struct State {
        /// The tasks by identifier.
        var tasks: [UInt64: AnyTransferTask] = [:]
        /// Those of them that send a request when they are cancelled.
        var cleanups: Set<UInt64> = []
        var acceptance = Acceptance.open
        /// Continuations waiting for the last task, or for the last of ``cleanups``, to end.
        var emptyWaiters = Waiters<CheckedContinuation<Void, Never>>()
        /// Continuations waiting for tasks to be cancelled.
        var cancellationWaiters = Waiters<CheckedContinuation<Void, Never>>()

        var isCancelling: Bool {
            if case .cancelling = acceptance { true } else { false }
        }
    }

    private static func makeID() -> UInt64 {
        lastID.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// Whether the manager accepts new tasks, and what happens to running ones.
    private enum Acceptance {
        /// New tasks are accepted.
        case open
        /// New tasks are rejected; running ones finish.
        case draining
        /// New tasks are rejected; running ones are cancelled.
        case cancelling

        /// Whether the current task may register a request: one that refreshes the token of a running request belongs
        /// to that one.
        var permitsTask: Bool {
            switch self {
            case .open: true
            case .draining: Authenticator.isWithinRefresh
            case .cancelling: false
            }
        }
    }

    /// Registers a request of an async function.
    ///
    /// - Throws: ``SessionError/invalidated`` if the manager no longer accepts requests.
    func begin(_ kind: TaskKind, _ request: Request) throws(SessionError) -> AnyTransferTask {
        try state.withLock { state throws(SessionError) in
            guard state.acceptance.permitsTask else { throw .invalidated }
            let task = AnyTransferTask(id: Self.makeID(), kind: kind, request: request)
            state.tasks[task.id] = task
            return task
        }
    }

    /// Registers a request that belongs to a registered task, also if the manager accepts no others.
    func begin(_ kind: TaskKind, _ request: Request, of _: AnyTransferTask) -> AnyTransferTask {
        state.withLock { state in
            let task = AnyTransferTask(id: Self.makeID(), kind: kind, request: request)
            state.tasks[task.id] = task
            return task
        }
    }

    /// Notes that a registered task sends a request when it is cancelled.
    func expectCleanup(by id: UInt64) {
        state.withLock { _ = $0.cleanups.insert(id) }
    }

    /// Registers a task that a function returns, whose core `makeCore` creates from an identifier.
    ///
    /// - Returns: The core, and whether it was registered: not if it has no request, or if the manager no longer
    ///   accepts requests.
    func begin(_ makeCore: (_ id: UInt64) -> TransferCore) -> (core: TransferCore, isTaken: Bool) {
        state.withLock { state in
            let core = makeCore(Self.makeID())
            guard core.request != nil, state.acceptance.permitsTask else { return (core, false) }
            state.tasks[core.id] = AnyTransferTask(core)
            return (core, true)
        }
    }

    /// Unregisters a task.
    func end(_ id: UInt64) {
        let waiters = state.withLock { state in
            state.tasks[id] = nil
            let isLastCleanup = state.cleanups.remove(id) != nil && state.cleanups.isEmpty
            return isLastCleanup || state.tasks.isEmpty ? state.emptyWaiters.takeAll() : []
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The registered tasks, oldest first.
    var tasks: [AnyTransferTask] {
        state.withLock { Array($0.tasks.values) }.sorted { $0.id < $1.id }
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
            return state.cancellationWaiters.takeAll()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Whether running tasks are cancelled because the manager was invalidated.
    var isCancelling: Bool {
        state.withLock { $0.isCancelling }
    }

    /// Returns when no task is registered, or when the calling task is cancelled.
    func waitUntilEmpty() async {
        _ = await state.wait(among: \.emptyWaiters) { $0.tasks.isEmpty ? true : nil }
    }

    /// Whether a task may have to send a request before the transport is shut down.
    var expectsCleanups: Bool { state.withLock { !$0.cleanups.isEmpty } }

    /// Returns when no task has to send a request any more, or when the calling task is cancelled.
    func waitForCleanups() async {
        _ = await state.wait(among: \.emptyWaiters) { $0.cleanups.isEmpty ? true : nil }
    }

    /// Returns when running tasks are cancelled, or when the calling task is.
    func waitUntilCancelling() async {
        _ = await state.wait(among: \.cancellationWaiters) { $0.isCancelling ? true : nil }
    }
}

// The manager's tasks.

extension SessionManager {
    /// The tasks that have not ended, oldest first: those that functions returned, whether started or not; the requests
    /// of async functions, which only their callers control; and validations of cached responses in the background. It
    /// is a snapshot.
    public nonisolated var tasks: [AnyTransferTask] { registry.tasks }

    /// Returns the tasks that have not ended and satisfy a predicate, oldest first.
    ///
    /// ```swift
    /// api.transfers { $0.request?.url.path.hasPrefix("/v1/images/") == true }.cancel()
    /// ```
    ///
    /// Requests of async functions are not included, because their callers control them, nor are validations of cached
    /// responses in the background. Tasks that are created later do not become part of the group.
    ///
    /// - Parameter isIncluded: Whether to include a task; all tasks by default.
    public nonisolated func transfers(where isIncluded: (AnyTransferTask) -> Bool = { _ in true }) -> TransferGroup {
        TransferGroup(registry.tasks.filter { $0.core != nil && isIncluded($0) })
    }

    /// Returns the tasks that have not ended and carry a tag, oldest first; the group may be empty. Tasks that are
    /// created or tagged later do not become part of the group. Requests of async functions have no tags.
    ///
    /// - Parameter tag: One of the task's ``AnyTransferTask/tags``.
    public nonisolated func transfers(tagged tag: String) -> TransferGroup {
        transfers { $0.tags.contains(tag) }
    }
}
