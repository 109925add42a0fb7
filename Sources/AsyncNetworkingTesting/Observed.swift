// SPDX-License-Identifier: MIT

import ANSystem

/// A value with changes that tasks can wait for: a task waiting for a condition is resumed by the change that satisfies
/// it.
final class Observed<Value: Sendable>: Sendable {
    private let state: Lock<State>

    init(_ value: Value) {
        state = Lock(State(value: value))
    }

    /// A copy of the current value.
    var value: Value {
        state.withLock { $0.value }
    }

    /// Changes the value, and resumes the tasks whose conditions it now satisfies, in the order in which they began to
    /// wait.
    func update<Result: Sendable>(_ change: (inout Value) -> Result) -> Result {
        let (result, due) = state.withLock { state in
            let result = change(&state.value)
            return (result, state.takeDueWaiters())
        }
        for continuation in due { continuation.resume() }
        return result
    }

    /// Waits until the value satisfies a condition; throws `CancellationError` if the task is cancelled before.
    ///
    /// The condition is evaluated on each change, while the lock is held.
    func wait(until condition: @escaping @Sendable (Value) -> Bool) async throws {
        let number = state.withLock { $0.takeNumber() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let outcome: WaitOutcome = state.withLock { state in
                    // The cancellation handler may have run before this point; then the number has been removed.
                    guard state.openNumbers.contains(number) else { return .cancelled }
                    guard !condition(state.value) else { return .holds }
                    state.waiters[number] = Waiter(condition: condition, continuation: continuation)
                    return .mustWait
                }
                switch outcome {
                case .cancelled: continuation.resume(throwing: CancellationError())
                case .holds: continuation.resume()
                case .mustWait: break
                }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.openNumbers.remove(number)
                return state.waiters.removeValue(forKey: number)
            }
            waiter?.continuation.resume(throwing: CancellationError())
        }
        state.withLock { _ = $0.openNumbers.remove(number) }
    }

    private struct State {
        var value: Value
        var waiters: [Int: Waiter] = [:]
        /// The numbers of the waits that were neither completed nor cancelled.
        var openNumbers: Set<Int> = []
        private var nextNumber = 0

        init(value: Value) {
            self.value = value
        }

        mutating func takeNumber() -> Int {
            nextNumber += 1
            openNumbers.insert(nextNumber)
            return nextNumber
        }

        mutating func takeDueWaiters() -> [CheckedContinuation<Void, any Error>] {
            guard !waiters.isEmpty else { return [] }
            let due = waiters.filter { $0.value.condition(value) }.sorted { $0.key < $1.key }
            for (number, _) in due { waiters[number] = nil }
            return due.map(\.value.continuation)
        }
    }

    private struct Waiter {
        let condition: @Sendable (Value) -> Bool
        let continuation: CheckedContinuation<Void, any Error>
    }

    private enum WaitOutcome {
        case cancelled
        case holds
        case mustWait
    }
}
