// SPDX-License-Identifier: MIT

/// The state of a task, and whether it holds one of the limited places of running tasks.
///
/// | | resume | admit | suspend | cancel | finish |
/// |---|---|---|---|---|---|
/// | suspended | → waiting, requests a place | returns the place | – | → cancelling | → finished |
/// | waiting | – | → running | → suspended, leaves the queue | → cancelling, leaves the queue | → finished, leaves the queue |
/// | running | – | returns the place | → suspended, frees its place | → cancelling | → finished, frees its place |
/// | cancelling | – | returns the place | – | – | → finished, frees its place |
/// | finished | – | returns the place | – | – | – |
///
/// A running task that is cancelled keeps its place until it has ended.
package struct TransferStateMachine: Hashable, Sendable {
    /// The current state.
    package private(set) var state = TransferState.suspended
    /// Whether the task was ever resumed.
    package private(set) var wasResumed = false
    private var hasPlace = false

    /// Creates the state of a suspended task.
    package init() {}

    /// The action that the scheduler must perform after a change of state.
    package enum Demand: Hashable, Sendable {
        /// No action.
        case nothing
        /// Queue the task for a place.
        case place
        /// Remove the task from the queue.
        case leaveLine
        /// Release the task's place.
        case freePlace
    }

    /// Starts or continues the task; returns `nil` if the state does not change.
    package mutating func resume() -> Demand? {
        guard state == .suspended else { return nil }
        state = .waiting
        wasResumed = true
        return .place
    }

    /// Gives the task a place; returns `false` if the task is no longer waiting.
    package mutating func admit() -> Bool {
        guard state == .waiting else { return false }
        state = .running
        hasPlace = true
        return true
    }

    /// Suspends the task; returns `nil` if the state does not change.
    package mutating func suspend() -> Demand? {
        guard state == .waiting || state == .running else { return nil }
        return leave(to: .suspended)
    }

    /// Cancels the task; returns `nil` if the state does not change.
    package mutating func cancel() -> Demand? {
        switch state {
        case .suspended, .running:
            state = .cancelling
            return .nothing
        case .waiting:
            return leave(to: .cancelling)
        case .cancelling, .finished:
            return nil
        }
    }

    /// Ends the task; returns `nil` if it had already ended.
    package mutating func finish() -> Demand? {
        state == .finished ? nil : leave(to: .finished)
    }

    private mutating func leave(to next: TransferState) -> Demand {
        defer {
            state = next
            hasPlace = false
        }
        if hasPlace { return .freePlace }
        return state == .waiting ? .leaveLine : .nothing
    }
}

/// The state of a task.
public enum TransferState: Hashable, Sendable, CaseIterable {
    /// The task was not started yet, or was suspended.
    case suspended
    /// The task was resumed and waits for a place; see ``SessionConfiguration/maximumConcurrentTransfers``.
    case waiting
    /// The task is running.
    case running
    /// The task was cancelled and has not ended yet.
    case cancelling
    /// The task has ended.
    case finished
}
