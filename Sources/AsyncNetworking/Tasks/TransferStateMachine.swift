// SPDX-License-Identifier: MIT

/// The life of a task: when it may work, and when it has a place among those that work at the same time.
///
/// | | resume | admit | suspend | cancel | finish |
/// |---|---|---|---|---|---|
/// | suspended | → waiting, asks for a place | gives it back | – | → cancelling | → finished |
/// | waiting | – | → running | → suspended, leaves the line | → cancelling, leaves the line | → finished, leaves the line |
/// | running | – | gives it back | → suspended, frees its place | → cancelling | → finished, frees its place |
/// | cancelling | – | gives it back | – | – | → finished, frees its place |
/// | finished | – | gives it back | – | – | – |
///
/// A task that is cancelled while it works keeps its place until it is really over.
package struct TransferStateMachine: Hashable, Sendable {
    /// Where the task is.
    package private(set) var state = TransferState.suspended
    /// Whether it was ever resumed.
    package private(set) var wasResumed = false
    private var hasPlace = false

    /// Creates a task that waits to be resumed.
    package init() {}

    /// What a change of state asks of the line of tasks.
    package enum Demand: Hashable, Sendable {
        /// Nothing.
        case nothing
        /// A place, now or later.
        case place
        /// To be taken out of the line.
        case leaveLine
        /// To take the place back.
        case freePlace
    }

    /// Starts, or goes on; nil when that changes nothing.
    package mutating func resume() -> Demand? {
        guard state == .suspended else { return nil }
        state = .waiting
        wasResumed = true
        return .place
    }

    /// Gets a place; false when it is not wanted any more.
    package mutating func admit() -> Bool {
        guard state == .waiting else { return false }
        state = .running
        hasPlace = true
        return true
    }

    /// Pauses; nil when that changes nothing.
    package mutating func suspend() -> Demand? {
        guard state == .waiting || state == .running else { return nil }
        return leave(to: .suspended)
    }

    /// Asks for the end; nil when that changes nothing.
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

    /// Is over; nil when it was before.
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

/// Where a task of a ``SessionManager`` is.
public enum TransferState: Hashable, Sendable, CaseIterable {
    /// It was not started yet, or was suspended.
    case suspended
    /// It was started, and waits for its turn; see ``SessionConfiguration/maximumConcurrentTransfers``.
    case waiting
    /// It works.
    case running
    /// It was cancelled, and is not over yet.
    case cancelling
    /// It is over.
    case finished
}
