// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import Synchronization

/// The tasks of a session that have not ended, and whether it accepts new ones.
struct TaskRegistry: Sendable {
    let state: Lock<SessionState>
    /// The last identifier of a task in this process.
    private static let lastID = Atomic<UInt64>(0)

    /// The part of a session's state.
    struct Tasks: Sendable {
        /// The tasks by identifier.
        fileprivate var running: [UInt64: AnySessionTask] = [:]
        /// Those of them that send a request when they are cancelled.
        fileprivate var cleanups: Set<UInt64> = []
        fileprivate var acceptance = Acceptance.open
        /// Continuations waiting for the last task, or for the last of ``cleanups``, to end.
        fileprivate var emptyWaiters = Waiters<CheckedContinuation<Void, Never>>()
        /// Continuations waiting for tasks to be cancelled.
        fileprivate var cancellationWaiters = Waiters<CheckedContinuation<Void, Never>>()

        fileprivate var isCancelling: Bool {
            if case .cancelling = acceptance { true } else { false }
        }
    }

    /// A request that a cancelled task needs, which does not end when running tasks are cancelled, but by its time limit.
    private final class CleanUp: Sendable {}

    /// Runs a closure that sends a request that a cancelled task needs.
    static func cleaningUp(_ body: () async throws -> Void) async rethrows {
        try await WaitGraph.leading(CleanUp(), body)
    }

    private static func makeID() -> UInt64 {
        lastID.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// Whether the manager accepts new tasks, and what happens to running ones.
    fileprivate enum Acceptance {
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
    func begin(_ kind: TaskKind, _ request: Request) throws(SessionError) -> AnySessionTask {
        let task = AnySessionTask(id: Self.makeID(), kind: kind, request: request)
        try state.withLock { state throws(SessionError) in
            guard state.tasks.acceptance.permitsTask else { throw .invalidated }
            state.tasks.running[task.id] = task
        }
        return task
    }

    /// Registers a request that belongs to a registered task, also if the manager accepts no others.
    func begin(_ kind: TaskKind, _ request: Request, of _: AnySessionTask) -> AnySessionTask {
        state.withLock { state in
            let task = AnySessionTask(id: Self.makeID(), kind: kind, request: request)
            state.tasks.running[task.id] = task
            return task
        }
    }

    /// Notes that a registered task sends a request when it is cancelled.
    func expectCleanup(by id: UInt64) {
        state.withLock { _ = $0.tasks.cleanups.insert(id) }
    }

    /// Registers a task that a function returns, whose core `makeCore` creates from an identifier.
    ///
    /// - Returns: The core, and whether it was registered: not if it has no request, or if the manager no longer
    ///   accepts requests.
    func begin(_ makeCore: (_ id: UInt64) -> TaskCore) -> (core: TaskCore, isTaken: Bool) {
        let core = makeCore(Self.makeID())
        guard core.request != nil else { return (core, false) }
        return state.withLock { state in
            guard state.tasks.acceptance.permitsTask else { return (core, false) }
            state.tasks.running[core.id] = AnySessionTask(core)
            return (core, true)
        }
    }

    /// Unregisters a task.
    func end(_ id: UInt64) {
        // The task is released after the critical section.
        _ = state.change { state in
            let task = state.tasks.running.removeValue(forKey: id)
            let isLastCleanup = state.tasks.cleanups.remove(id) != nil && state.tasks.cleanups.isEmpty
            let isAwaited = isLastCleanup || state.tasks.running.isEmpty
            return (task, resuming: isAwaited ? state.tasks.emptyWaiters.takeAll() : [])
        }
    }

    /// The registered tasks, oldest first.
    var tasks: [AnySessionTask] {
        state.withLock { Array($0.tasks.running.values) }.sorted { $0.id < $1.id }
    }

    /// Rejects new tasks.
    ///
    /// - Parameter cancelling: Whether running tasks are cancelled.
    func close(cancelling: Bool) {
        state.change { state in
            guard cancelling else {
                if case .open = state.tasks.acceptance { state.tasks.acceptance = .draining }
                return ((), resuming: [])
            }
            state.tasks.acceptance = .cancelling
            return ((), resuming: state.tasks.cancellationWaiters.takeAll())
        }
    }

    /// Whether running tasks are cancelled because the manager was invalidated.
    var isCancelling: Bool {
        state.withLock { $0.tasks.isCancelling }
    }

    /// Whether running tasks are cancelled, and the current one does not clean up.
    var cancelsCurrentTask: Bool { isCancelling && !Self.isCleaningUp }

    /// Whether the current call is cancelled: with its task, or by the session.
    var isCurrentCallCancelled: Bool { Task.isCancelled || cancelsCurrentTask }

    /// Whether an error is that of a cancelled call, which an interceptor or a transport may have replaced.
    func isOfCancellation(_ error: any Error) -> Bool { error is CancellationError || isCurrentCallCancelled }

    /// Whether the current task cleans up.
    static var isCleaningUp: Bool { WaitGraph.isWithin { $0 is CleanUp } }

    /// Returns when no task is registered, or when the calling task is cancelled.
    func waitUntilEmpty() async {
        _ = await state.wait(among: \.tasks.emptyWaiters) { $0.tasks.running.isEmpty ? true : nil }
    }

    /// Whether a task may have to send a request before the transport is shut down.
    var expectsCleanups: Bool { state.withLock { !$0.tasks.cleanups.isEmpty } }

    /// Returns when no task has to send a request any more, or when the calling task is cancelled.
    func waitForCleanups() async {
        _ = await state.wait(among: \.tasks.emptyWaiters) { $0.tasks.cleanups.isEmpty ? true : nil }
    }

    /// Returns when running tasks are cancelled, unless the current one cleans up, or when the calling task is.
    func waitUntilCancelling() async {
        let isCleaningUp = Self.isCleaningUp
        _ = await state.wait(among: \.tasks.cancellationWaiters) {
            $0.tasks.isCancelling && !isCleaningUp ? true : nil
        }
    }
}

// The manager's tasks.

extension SessionManager {
    /// The tasks that have not ended, oldest first: those that functions returned, whether started or not; the requests
    /// of async functions, which only their callers control; and validations of cached responses in the background. It
    /// is a snapshot.
    public nonisolated var tasks: [AnySessionTask] { registry.tasks }

    /// Returns the tasks that have not ended and satisfy a predicate, oldest first.
    ///
    /// ```swift
    /// api.taskGroup { $0.request?.url.path.hasPrefix("/v1/images/") == true }.cancel()
    /// ```
    ///
    /// Requests of async functions are not included, because their callers control them, nor are validations of cached
    /// responses in the background. Tasks that are created later do not become part of the group.
    ///
    /// - Parameter isIncluded: Whether to include a task; all tasks by default.
    public nonisolated func taskGroup(where isIncluded: (AnySessionTask) -> Bool = { _ in true }) -> SessionTaskGroup {
        SessionTaskGroup(registry.tasks.filter { $0.core != nil && isIncluded($0) })
    }

    /// Returns the tasks that have not ended and carry a tag, oldest first; the group may be empty. Tasks that are
    /// created or tagged later do not become part of the group. Requests of async functions have no tags.
    ///
    /// - Parameter tag: One of the task's ``AnySessionTask/tags``.
    public nonisolated func taskGroup(tagged tag: String) -> SessionTaskGroup {
        taskGroup { $0.tags.contains(tag) }
    }
}
