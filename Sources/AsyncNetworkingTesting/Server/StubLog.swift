// SPDX-License-Identifier: MIT

import ANSystem

/// What a server has seen, and who waits for it to see more.
final class StubLog: Sendable {
    private let state = Lock(State())

    /// A copy of what was seen so far.
    var activity: StubServer.Activity {
        state.withLock { $0.activity }
    }

    /// Changes what was seen, and wakes those who waited for it.
    func update<Result: Sendable>(_ change: (inout StubServer.Activity) -> Result) -> Result {
        let (result, due) = state.withLock { state in
            let result = change(&state.activity)
            return (result, state.takeDueWaiters())
        }
        for continuation in due { continuation.resume() }
        return result
    }

    /// Waits until `condition` holds; throws `CancellationError` when the task is cancelled first.
    func wait(until condition: @escaping @Sendable (StubServer.Activity) -> Bool) async throws {
        let number = state.withLock { $0.takeNumber() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let outcome: WaitOutcome = state.withLock { state in
                    // A cancelled task may have run its handler before this: then its number is no longer open.
                    guard state.openNumbers.contains(number) else { return .cancelled }
                    guard !condition(state.activity) else { return .holds }
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
        var activity = StubServer.Activity()
        var waiters: [Int: Waiter] = [:]
        /// The numbers of waits that were not cancelled.
        var openNumbers: Set<Int> = []
        private var nextNumber = 0

        mutating func takeNumber() -> Int {
            nextNumber += 1
            openNumbers.insert(nextNumber)
            return nextNumber
        }

        mutating func takeDueWaiters() -> [CheckedContinuation<Void, any Error>] {
            guard !waiters.isEmpty else { return [] }
            let due = waiters.filter { $0.value.condition(activity) }
            for number in due.keys { waiters[number] = nil }
            return due.values.map(\.continuation)
        }
    }

    private struct Waiter {
        let condition: @Sendable (StubServer.Activity) -> Bool
        let continuation: CheckedContinuation<Void, any Error>
    }

    private enum WaitOutcome {
        case cancelled
        case holds
        case mustWait
    }
}
