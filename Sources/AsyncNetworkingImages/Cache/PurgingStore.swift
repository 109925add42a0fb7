// SPDX-License-Identifier: MIT

import ANSystem

/// Values with costs, in the order of their last access.
///
/// If their total cost exceeds the capacity, the values that were not accessed for the longest time are removed until
/// the preferred use is reached. Each function takes constant time, apart from the time for the removed values.
package struct PurgingStore<Key: Hashable, Value> {
    /// The cost above which values are removed. A change takes effect when the next value is added.
    package var capacity: Int
    /// The cost that remains after values were removed; at most the capacity. A change takes effect when the next value
    /// is added.
    package var preferredUse: Int
    /// The cost of all values.
    package private(set) var use = 0

    private var places: [Key: Int] = [:]
    /// The entries, which form a list from the least to the most recently accessed one; `nil` at an unused place.
    private var entries: [Entry?] = []
    private var unused: [Int] = []
    private var oldest: Int?
    private var newest: Int?

    fileprivate struct Entry {
        let key: Key
        let value: Value
        var cost: Int
        var older: Int?
        var newer: Int?
    }

    /// Creates an empty store.
    package init(capacity: Int, preferredUse: Int) {
        self.capacity = capacity
        self.preferredUse = preferredUse
    }

    /// The number of values.
    package var count: Int { places.count }

    /// Returns a value and marks it as accessed.
    package mutating func value(for key: Key) -> Value? {
        guard let place = places[key] else { return nil }
        if newest != place {
            unlink(place)
            append(place)
        }
        return entries[place]?.value
    }

    /// Adds a value, in place of one with the same key, and removes others if the capacity is exceeded; possibly the
    /// new value, too.
    ///
    /// - Returns: The values that were removed, for their release outside of a lock.
    package mutating func insert(_ value: Value, for key: Key, cost: Int) -> [Value] {
        var removed = [remove(key)].compactMap(\.self)
        // Bounded, so that sums cannot overflow.
        let cost = min(max(cost, 0), 1 << 40)
        let entry = Entry(key: key, value: value, cost: cost)
        let place = unused.popLast() ?? entries.endIndex
        if place == entries.endIndex { entries.append(entry) } else { entries[place] = entry }
        places[key] = place
        append(place)
        use += cost
        if use > capacity { removed += purge() }
        return removed
    }

    /// Removes the values that were not accessed for the longest time until the preferred use is reached.
    package mutating func purge() -> [Value] {
        var removed: [Value] = []
        while use > min(preferredUse, capacity), let key = oldest.flatMap({ entries[$0]?.key }), let value = remove(key)
        {
            removed.append(value)
        }
        return removed
    }

    /// Removes a value and returns it; `nil` if it is missing.
    package mutating func remove(_ key: Key) -> Value? {
        guard let place = places.removeValue(forKey: key) else { return nil }
        unlink(place)
        unused.append(place)
        defer { entries[place] = nil }
        use -= entries[place]?.cost ?? 0
        return entries[place]?.value
    }

    /// Removes all values and returns them.
    package mutating func removeAll() -> [Value] {
        let values = entries.compactMap { $0?.value }
        self = PurgingStore(capacity: capacity, preferredUse: preferredUse)
        return values
    }

    private mutating func append(_ place: Int) {
        entries[place]?.older = newest
        entries[place]?.newer = nil
        if let newest { entries[newest]?.newer = place } else { oldest = place }
        newest = place
    }

    private mutating func unlink(_ place: Int) {
        let (older, newer) = (entries[place]?.older, entries[place]?.newer)
        if let older { entries[older]?.newer = newer } else { oldest = newer }
        if let newer { entries[newer]?.older = older } else { newest = older }
    }
}

extension PurgingStore.Entry: Sendable where Key: Sendable, Value: Sendable {}
extension PurgingStore: Sendable where Key: Sendable, Value: Sendable {}

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

    /// Adds a value, in place of one with the same key. It costs at least 1 KiB, an estimate for the key and what describes
    /// the value.
    package func add(_ value: Value, for key: Key, cost: Int) {
        _ = store.withLock { $0.insert(value, for: key, cost: max(cost, 1 << 10)) }
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
