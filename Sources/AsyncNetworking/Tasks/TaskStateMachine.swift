// SPDX-License-Identifier: MIT

/// The state of a task, and whether it holds one of the limited slots of running tasks.
///
/// | | resume | admit | suspend | cancel | finish |
/// |---|---|---|---|---|---|
/// | suspended | → waiting, requests a slot, or takes one if an exchange has begun | returns the slot | – | → cancelling | → finished |
/// | waiting | – | → running | → suspended, leaves the queue | → cancelling, leaves the queue | → finished, leaves the queue |
/// | running | – | returns the slot | → suspended, releases its slot | → cancelling | → finished, releases its slot |
/// | cancelling | – | returns the slot | – | – | → finished, releases its slot |
/// | finished | – | returns the slot | – | – | – |
///
/// A running task that is cancelled keeps its slot until it has ended. A suspended one may have connections for which the
/// tasks wait that got its slot, so it continues at once; so does one that waits, but whose exchange begins, because it had a
/// slot before.
package struct TaskStateMachine: Hashable, Sendable {
    /// The current state.
    package private(set) var state = TaskState.suspended
    /// Whether the task was ever resumed.
    package private(set) var wasResumed = false
    private var holdsSlot = false
    /// Whether an exchange has begun, which may have a connection.
    private var hasExchange = false

    /// Creates the state of a suspended task.
    package init() {}

    /// The action that the scheduler must perform after a change of state.
    package enum Action: Hashable, Sendable {
        /// No action.
        case nothing
        /// Queue the task for a slot.
        case enqueue
        /// Give the task a slot, regardless of the limit.
        case takeSlot
        /// Remove the task from the queue.
        case dequeue
        /// Release the task's slot.
        case releaseSlot
    }

    /// Starts or continues the task; returns `nil` if the state does not change.
    package mutating func resume() -> Action? {
        guard state == .suspended else { return nil }
        state = .waiting
        wasResumed = true
        return hasExchange ? .takeSlot : .enqueue
    }

    /// Gives the task a slot; returns `false` if the task is no longer waiting.
    package mutating func admit() -> Bool {
        guard state == .waiting else { return false }
        state = .running
        holdsSlot = true
        return true
    }

    /// Notes that an exchange of the task begins; returns `nil` unless it needs a slot for that.
    package mutating func beginExchange() -> Action? {
        hasExchange = true
        return state == .waiting ? .takeSlot : nil
    }

    /// Suspends the task; returns `nil` if the state does not change.
    package mutating func suspend() -> Action? {
        guard state == .waiting || state == .running else { return nil }
        return leave(to: .suspended)
    }

    /// Cancels the task; returns `nil` if the state does not change.
    package mutating func cancel() -> Action? {
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
    package mutating func finish() -> Action? {
        state == .finished ? nil : leave(to: .finished)
    }

    private mutating func leave(to next: TaskState) -> Action {
        defer {
            state = next
            holdsSlot = false
        }
        if holdsSlot { return .releaseSlot }
        return state == .waiting ? .dequeue : .nothing
    }
}

/// The state of a task; see ``TaskStatus/state``.
public enum TaskState: Hashable, Sendable, CaseIterable {
    /// The task was not started yet, or was suspended; it continues when it is resumed.
    case suspended
    /// The task was resumed and waits for a slot; see ``SessionConfiguration/maximumConcurrentTasks``.
    case waiting
    /// The task is running: its request is being sent, its response received, or it waits, for example for a retry, a
    /// route or a connection. The request of an async function is always in this state.
    case running
    /// The task was cancelled and has not ended yet.
    case cancelling
    /// The task has ended; ``TaskStatus/outcome`` says how.
    case finished
}
