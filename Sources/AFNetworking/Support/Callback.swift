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

/// A wrapper that transfers a value to the queue on which it is used: a closure, a serializer or an object from a
/// serializer.
///
/// It is unchecked because AFNetworking's interface specifies queues in its documentation, not by types. A value is
/// transferred once, through a lock or a queue, and is not used on both sides at the same time.
struct UncheckedSendable<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}

/// A weak reference, which a lock can protect.
struct Weak<Object: AnyObject> {
    private(set) weak var object: Object?
}

extension Weak: Sendable where Object: Sendable {}
