// SPDX-License-Identifier: MIT

/// A value on its way to the queue where it is used: a closure, a serializer, what a serializer made.
///
/// AFNetworking's interface says by its documentation, and not by types, which queue that is. A value is handed over once,
/// through a lock or a queue, and not used on both sides at the same time.
struct Handover<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
