// SPDX-License-Identifier: MIT

import ANSystem

/// Starts waiting tasks as far as the limit on concurrent tasks permits.
final class TransferScheduler: Sendable {
    private let line: Lock<TransferLine<TransferCore>>?

    /// Creates a scheduler for at most `limit` concurrent tasks; `nil` for no limit.
    init(limit: Int?) {
        line = limit.map { Lock(TransferLine(limit: $0)) }
    }

    /// Performs the demand of a task after a change of its state.
    ///
    /// Tasks are admitted outside of the lock. A task that is suspended between leaving the queue and being admitted
    /// refuses its place, which the next one gets.
    func meet(_ demand: TransferStateMachine.Demand, of core: TransferCore) {
        guard let line else {
            if demand == .place { _ = core.admit() }
            return
        }
        switch demand {
        case .nothing: return
        case .place: line.withLock { $0.join(core, id: core.id, priority: core.priority) }
        case .leaveLine: line.withLock { $0.leave(id: core.id) }
        case .freePlace: line.withLock { $0.free() }
        }
        while let next = line.withLock({ $0.admit() }) {
            if !next.admit() { line.withLock { $0.free() } }
        }
    }

    /// Changes the priority of a waiting task.
    func reorder(_ core: TransferCore, to priority: TransferPriority) {
        line?.withLock { $0.move(id: core.id, to: priority) }
    }
}
