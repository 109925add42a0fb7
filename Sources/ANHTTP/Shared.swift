// SPDX-License-Identifier: MIT

/// A large value behind a reference, which makes its containers small and cheap to copy.
package final class Shared<Value: Sendable>: Sendable {
    package let value: Value

    package init(_ value: Value) {
        self.value = value
    }
}
