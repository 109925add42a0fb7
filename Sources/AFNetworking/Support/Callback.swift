// SPDX-License-Identifier: MIT

import ANSystem

/// Calls `start` and suspends until the function passed to it is called. Returns the fallback if that function is
/// released uncalled, or if the calling task is cancelled; `start` is not called for a task that was cancelled before.
func callback<Value: Sendable>(
    fallback: Value, _ start: (@escaping @Sendable (Value) -> Void) -> Void
) async -> Value {
    // Only the function passed to `start` retains the callback.
    let pending = Lock(Weak<OneShot<Value>>())
    return await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
            let callback = OneShot(fallback: fallback) { continuation.resume(returning: $0) }
            pending.set(\.self, to: Weak(object: callback))
            // The cancellation handler may have run before the callback was stored.
            guard !Task.isCancelled else { return }
            start { callback.call($0) }
        }
    } onCancel: {
        pending.withLock { $0.object }?.call(fallback)
    }
}
