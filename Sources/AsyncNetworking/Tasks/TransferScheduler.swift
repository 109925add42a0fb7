// SPDX-License-Identifier: MIT

import ANSystem

/// Gives tasks their turn; without a limit, at once.
final class TransferScheduler: Sendable {
    private let line: Lock<TransferLine<TransferCore>>?

    /// Creates a scheduler for so many tasks at the same time; nil means any number.
    init(limit: Int?) {
        line = limit.map { Lock(TransferLine(limit: $0)) }
    }

    /// Does what a task asks for after a change of its state.
    ///
    /// Tasks are told outside of the lock. One that was suspended between leaving the line and being told does not take
    /// its place, which goes to the next.
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

    /// Moves a task that waits to the place in line that is due to its priority.
    func reorder(_ core: TransferCore, to priority: TransferPriority) {
        line?.withLock { $0.move(id: core.id, to: priority) }
    }
}
