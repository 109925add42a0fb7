// SPDX-License-Identifier: MIT

/// A callback that is called once: with the first value that it is given, or with the fallback when it is freed without
/// one.
package final class OneShot<Value: Sendable>: Sendable {
    private let callback: Lock<(@Sendable (Value) -> Void)?>
    private let fallback: Value

    /// Creates a callback with the value for when it is freed uncalled.
    package init(fallback: Value, _ callback: @escaping @Sendable (Value) -> Void) {
        self.callback = Lock(callback)
        self.fallback = fallback
    }

    deinit {
        call(fallback)
    }

    /// Passes a value to the callback. Has no effect after the first call.
    package func call(_ value: Value) {
        callback.set(\.self, to: nil)?(value)
    }
}
