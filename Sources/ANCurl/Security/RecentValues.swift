// SPDX-License-Identifier: MIT

/// A cache that keeps the values that were used last: `size` of them at least, and twice as many at most.
///
/// There are two generations. If the younger one is full, it becomes the older one, whose values are lost unless they were
/// used since.
package struct RecentValues<Key: Hashable, Value> {
    private let size: Int
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]

    /// Creates an empty cache.
    package init(size: Int) {
        self.size = size
    }

    /// The number of values.
    package var count: Int { young.count + old.count }

    /// The value of a key; `nil` if there is none. Reading it is a use.
    package subscript(key: Key) -> Value? {
        mutating get {
            if let value = young[key] { return value }
            guard let value = old.removeValue(forKey: key) else { return nil }
            keep(value, for: key)
            return value
        }
        set {
            old[key] = nil
            if let newValue { keep(newValue, for: key) } else { young[key] = nil }
        }
    }

    private mutating func keep(_ value: Value, for key: Key) {
        if young.count >= size, young[key] == nil { (old, young) = (young, [:]) }
        young[key] = value
    }
}

extension RecentValues: Sendable where Key: Sendable, Value: Sendable {}
