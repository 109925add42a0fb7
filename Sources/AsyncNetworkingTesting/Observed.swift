// SPDX-License-Identifier: MIT

public import ANHTTP
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

/// A recorder of the events of one exchange, for the argument `events` of `Transport.open`.
///
/// Functions of a session that report events, such as `withResponse`, also accept one; it then has the events of all
/// exchanges of the call, such as those answered by redirects. All members may be used from any thread or task at any
/// time.
public final class EventRecorder: ExchangeEventSink {
    private let recorded = Observed([ExchangeEvent]())

    /// Creates a recorder without events. It belongs to one exchange; the events of further ones are appended.
    public init() {}

    /// Records an event and resumes the tasks that wait for it in ``first(where:)``; called by a transport, on any
    /// thread.
    public func receive(_ event: ExchangeEvent) {
        recorded.update { $0.append(event) }
    }

    /// The events recorded so far, in the order in which they were received; empty before the exchange, and kept after
    /// it.
    public var events: [ExchangeEvent] { recorded.value }

    /// The heads of the interim responses (status 100 to 199) recorded so far, in the order in which they were
    /// received; empty if there were no such responses.
    public var informationalHeads: [ResponseHead] {
        events.compactMap { if case .informational(let head) = $0 { head } else { nil } }
    }

    /// The metrics of the exchange, from the first event `ExchangeEvent.finished`; `nil` before the end of the
    /// exchange. After several exchanges, those of the first one.
    public var metrics: TransferMetrics? {
        events.lazy.compactMap { if case .finished(let metrics) = $0 { metrics } else { nil } }.first
    }

    /// Returns the first event that satisfies a condition. If it was not recorded yet, waits for it without a time
    /// limit, even after the exchange has ended.
    ///
    /// - Parameter matches: Whether an event is the one to return. It is evaluated for the recorded events when the
    ///   wait begins, and again after each new event, on the thread that records it. A lock is held meanwhile: it must
    ///   be fast and must not use the recorder.
    /// - Throws: `CancellationError` if the task is cancelled, even if the event was recorded before the call.
    public func first(where matches: @escaping @Sendable (ExchangeEvent) -> Bool) async throws -> ExchangeEvent {
        try await recorded.wait { $0.contains(where: matches) }
        guard let event = events.first(where: matches) else { throw CancellationError() }
        return event
    }
}
