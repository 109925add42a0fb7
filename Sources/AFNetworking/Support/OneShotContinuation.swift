// SPDX-License-Identifier: MIT

import ANSystem

/// A continuation that is resumed once: with the first value that it is given, or with the fallback when it is freed
/// without one.
final class OneShotContinuation<Value: Sendable>: Sendable {
    private let continuation: Lock<CheckedContinuation<Value, Never>?>
    private let fallback: Value

    init(_ continuation: CheckedContinuation<Value, Never>, fallback: Value) {
        self.continuation = Lock(continuation)
        self.fallback = fallback
    }

    deinit {
        resume(returning: fallback)
    }

    /// Resumes the continuation. Has no effect after the first call.
    func resume(returning value: Value) {
        continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }?.resume(returning: value)
    }
}

extension AFURLSessionManager {
    /// Calls a block with a completion handler on the manager's own queue and suspends until the handler is called.
    /// Returns the fallback if the handler is released uncalled, or if the calling task is cancelled.
    func awaitCallback<Value: Sendable>(
        fallback: Value, _ call: @escaping @Sendable (_ handler: @escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value {
        let pending = Lock(PendingCallback<Value>())
        return await withTaskCancellationHandler {
            await withCheckedContinuation { checked in
                let continuation = OneShotContinuation(checked, fallback: fallback)
                let isCancelled = pending.withLock { pending in
                    pending.continuation = continuation
                    return pending.isCancelled
                }
                guard !isCancelled else { return continuation.resume(returning: fallback) }
                sessionQueue.async { call { continuation.resume(returning: $0) } }
            }
        } onCancel: {
            pending.withLock { pending in
                pending.isCancelled = true
                return pending.continuation
            }?.resume(returning: fallback)
        }
    }
}

/// A callback that is awaited. The reference is weak: the completion handlers retain the continuation.
private struct PendingCallback<Value: Sendable>: Sendable {
    weak var continuation: OneShotContinuation<Value>?
    var isCancelled = false
}
