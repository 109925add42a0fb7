// SPDX-License-Identifier: MIT

import ANSystem

/// A ``PurgingStore`` for any thread, which is emptied under memory pressure. Removed values are released outside of
/// its lock.
package final class PurgingCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let store: Lock<PurgingStore<Key, Value>>
    /// Ends when the cache is released, or with the sequence.
    private let watcher: Task<Void, Never>?

    /// Creates an empty cache.
    package init(
        capacity: Int, preferredUse: Int, memoryPressure: (any AsyncSequence<Void, Never> & Sendable)?
    ) {
        let store = Lock(PurgingStore<Key, Value>(capacity: capacity, preferredUse: preferredUse))
        self.store = store
        watcher = memoryPressure.map { Self.empty(store, on: $0) }
    }

    deinit {
        watcher?.cancel()
    }

    private static func empty(
        _ store: Lock<PurgingStore<Key, Value>>, on memoryPressure: some AsyncSequence<Void, Never> & Sendable
    ) -> Task<Void, Never> {
        Task {
            for await _ in memoryPressure { _ = store.withLock { $0.removeAll() } }
        }
    }

    /// Adds a value, in place of one with the same key.
    package func add(_ value: Value, for key: Key, cost: Int) {
        _ = store.withLock { $0.insert(value, for: key, cost: cost) }
    }

    /// Returns a value and marks it as accessed.
    package func value(for key: Key) -> Value? { store.withLock { $0.value(for: key) } }

    /// Removes a value. Returns whether there was one.
    package func remove(_ key: Key) -> Bool { store.withLock { $0.remove(key) } != nil }

    /// Removes all values. Returns whether there were any.
    package func removeAll() -> Bool { !store.withLock { $0.removeAll() }.isEmpty }

    /// Removes the values that were not accessed for the longest time until the preferred use is reached.
    package func purge() { _ = store.withLock { $0.purge() } }

    /// The cost of all values.
    package var use: Int { store.withLock { $0.use } }

    /// The cost above which values are removed.
    package var capacity: Int {
        get { store.withLock { $0.capacity } }
        set { store.withLock { $0.capacity = newValue } }
    }

    /// The cost that remains after values were removed.
    package var preferredUse: Int {
        get { store.withLock { $0.preferredUse } }
        set { store.withLock { $0.preferredUse = newValue } }
    }
}
