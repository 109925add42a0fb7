// SPDX-License-Identifier: MIT

import ANSystem

/// Starts waiting tasks as far as the limit on concurrent tasks permits.
final class TaskScheduler: Sendable {
    private let queue: Lock<TaskQueue<TransferCore>>?

    /// Creates a scheduler for at most `limit` concurrent tasks; `nil` for no limit.
    init(limit: Int?) {
        queue = limit.map { Lock(TaskQueue(limit: $0)) }
    }

    /// Performs the action of a task after a change of its state.
    ///
    /// Tasks are admitted outside of the lock. A task that is suspended between leaving the queue and being admitted
    /// refuses its slot, which the next one gets.
    func apply(_ action: TaskStateMachine.Action, of core: TransferCore) {
        guard let queue else {
            if action == .enqueue { _ = core.admit() }
            return
        }
        switch action {
        case .nothing: return
        case .enqueue: queue.withLock { $0.enqueue(core, id: core.id, priority: core.priority) }
        case .dequeue: queue.withLock { $0.remove(id: core.id) }
        case .releaseSlot: queue.withLock { $0.release() }
        }
        while let next = queue.withLock({ $0.admit() }) {
            if !next.admit() { queue.withLock { $0.release() } }
        }
    }

    /// Changes the priority of a waiting task.
    func reorder(_ core: TransferCore, to priority: TransferPriority) {
        queue?.withLock { $0.move(id: core.id, to: priority) }
    }
}
