// SPDX-License-Identifier: MIT

import ANSystem

/// Gives one answer: the first one that it is told, or its fallback when nobody can tell it any more.
final class Answer<Value: Sendable>: Sendable {
    private let waiter: Lock<CheckedContinuation<Value, Never>?>
    private let fallback: Value

    init(_ waiter: CheckedContinuation<Value, Never>, unless fallback: Value) {
        self.waiter = Lock(waiter)
        self.fallback = fallback
    }

    deinit {
        give(fallback)
    }

    /// Gives the answer, unless it was given.
    func give(_ value: Value) {
        waiter.withLock { waiter in
            defer { waiter = nil }
            return waiter
        }?.resume(returning: value)
    }
}

extension AFURLSessionManager {
    /// Asks on the manager's queue, and waits for the answer. One that can never be given any more is the fallback, and so is
    /// that of a task which is cancelled meanwhile.
    func answer<Value: Sendable>(
        unless fallback: Value, _ ask: @escaping @Sendable (_ answer: @escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value {
        let question = Lock(Question<Value>())
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let answer = Answer(waiter, unless: fallback)
                let isCancelled = question.withLock { question in
                    question.answer = answer
                    return question.isCancelled
                }
                guard !isCancelled else { return answer.give(fallback) }
                sessionQueue.async { ask { answer.give($0) } }
            }
        } onCancel: {
            question.withLock { question in
                question.isCancelled = true
                return question.answer
            }?.give(fallback)
        }
    }
}

/// What is asked; whoever can answer keeps the answer.
private struct Question<Value: Sendable>: Sendable {
    weak var answer: Answer<Value>?
    var isCancelled = false
}
