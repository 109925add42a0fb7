// SPDX-License-Identifier: MIT

/// A value that is never printed: neither descriptions nor mirrors contain it.
package struct Secret<Value: Hashable & Sendable>: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    package var value: Value

    /// Wraps a value.
    package init(_ value: Value) {
        self.value = value
    }

    package var description: String { "…" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
