// SPDX-License-Identifier: MIT

import ANSystem

/// A callback that is called once: with the first value that it is given, or with the fallback when it is freed without
/// one.
final class OneShot<Value: Sendable>: Sendable {
    private let callback: Lock<(@Sendable (Value) -> Void)?>
    private let fallback: Value

    init(fallback: Value, _ callback: @escaping @Sendable (Value) -> Void) {
        self.callback = Lock(callback)
        self.fallback = fallback
    }

    deinit {
        call(fallback)
    }

    /// Passes a value to the callback. Has no effect after the first call.
    func call(_ value: Value) {
        callback.set(\.self, to: nil)?(value)
    }
}

extension AFURLSessionManager {
    /// Calls a block with a completion handler on the manager's own queue and suspends until the handler is called.
    /// Returns the fallback if the handler is released uncalled, or if the calling task is cancelled.
    func awaitCallback<Value: Sendable>(
        fallback: Value, _ call: @escaping @Sendable (_ handler: @escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value {
        let pending = Lock(WeakCallback<Value>())
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let callback = OneShot(fallback: fallback) { continuation.resume(returning: $0) }
                pending.withLock { $0.value = callback }
                // The cancellation handler may have run before the callback was stored.
                guard !Task.isCancelled else { return }
                sessionQueue.async { call { callback.call($0) } }
            }
        } onCancel: {
            pending.withLock { $0.value }?.call(fallback)
        }
    }
}

/// A weak reference to a callback: the completion handlers retain it.
private struct WeakCallback<Value: Sendable>: Sendable {
    weak var value: OneShot<Value>?
}
