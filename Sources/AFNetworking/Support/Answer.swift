// SPDX-License-Identifier: MIT

import ANSystem

/// A one-time answer that resumes a continuation: with the first value that it is given, or with the fallback when it
/// is freed without one.
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

    /// Gives the answer. Has no effect after the first call.
    func give(_ value: Value) {
        waiter.withLock { waiter in
            defer { waiter = nil }
            return waiter
        }?.resume(returning: value)
    }
}

extension AFURLSessionManager {
    /// Asks a question on the manager's own queue and suspends until the answer. Returns the fallback if the function
    /// that takes the answer is released uncalled, or if the calling task is cancelled.
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

/// A pending question. The reference is weak: the functions that can give the answer retain it.
private struct Question<Value: Sendable>: Sendable {
    weak var answer: Answer<Value>?
    var isCancelled = false
}
