// SPDX-License-Identifier: MIT

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
