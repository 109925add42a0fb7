// SPDX-License-Identifier: MIT

/// The entries of a cache: which exist, which of them are in memory, and which were used least recently.
///
/// A pure value: the cache performs the removals that it returns.
struct CacheIndex: Sendable {
    private let limits: CacheLimits
    private let hasDisk: Bool
    private var buckets: [CacheKey: [Slot]] = [:]
    private var clock: UInt64 = 0
    /// The number of entries.
    private(set) var count = 0
    /// The number of bytes in memory.
    private(set) var memoryBytes = 0
    private var memoryCount = 0
    /// The uses of entries in memory, the least recent first. Those that are not the last of their entry are ignored.
    private var memory = UseQueue()
    /// The number of bytes in files.
    private(set) var diskBytes: Int64 = 0
    /// The number of invalidations so far, and the value it had at the last one of a key or, above a number of keys, of
    /// any.
    private(set) var invalidations: UInt64 = 0
    private var invalidated: [CacheKey: UInt64] = [:]
    private var allInvalidated: UInt64 = 0
    private var lastOrder: UInt64 = 0

    /// An entry of the index.
    struct Slot: Sendable {
        /// The files of the entry; `nil` if it is only in memory.
        let name: EntryName?
        let id: UInt64
        /// The entry, if it is in memory.
        var entry: CacheEntry?
        /// The time of the last use: a count of uses, or 0 if it was not used in this process.
        var lastUse: UInt64
        /// The memory that the entry occupies; 0 if it is not in memory.
        var memoryCost = 0
    }

    /// The files of an entry that was removed.
    struct Removal: Sendable, Hashable {
        let name: EntryName
        /// Whether another entry uses the same body file.
        let keepsBody: Bool
    }

    init(_ limits: CacheLimits, hasDisk: Bool) {
        self.limits = limits
        self.hasDisk = hasDisk
    }

    /// Returns the slots of a key.
    func slots(_ key: CacheKey) -> [Slot] { buckets[key] ?? [] }

    /// All slots with their keys, in any order.
    var all: some Sequence<(key: CacheKey, slot: Slot)> {
        buckets.lazy.flatMap { key, slots in slots.lazy.map { (key, $0) } }
    }

    /// The names of all files of entries.
    var names: Set<EntryName> { Set(all.compactMap(\.slot.name)) }

    // MARK: Changes

    /// Adds the files that a scan of the directory found.
    mutating func add(_ names: some Sequence<EntryName>) {
        for name in names {
            diskBytes += name.size
            count += 1
            buckets[name.key, default: []].append(Slot(name: name, id: name.id, entry: nil, lastUse: 0))
        }
    }

    /// Adds an entry as the most recently used one.
    mutating func insert(_ entry: CacheEntry, key: CacheKey, name: EntryName?) {
        clock += 1
        diskBytes += name?.size ?? 0
        count += 1
        buckets[key, default: []].append(Slot(name: name, id: entry.id, entry: nil, lastUse: clock))
        keep(entry, key: key)
    }

    /// Keeps an entry in memory if it fits.
    mutating func keep(_ entry: CacheEntry, key: CacheKey) {
        let cost = entry.memoryCost
        guard !hasDisk || cost <= limits.memoryBytes / 4,
            let place = buckets[key]?.firstIndex(where: { $0.id == entry.id && $0.entry == nil })
        else { return }
        buckets[key]?[place].entry = entry
        buckets[key]?[place].memoryCost = cost
        memoryBytes += cost
        memoryCount += 1
        memory.insert(MemoryUse(time: buckets[key]?[place].lastUse ?? 0, key: key, id: entry.id))
        if memory.count > 2 * memoryCount + Self.few { removeObsoleteUses() }
    }

    /// Makes an entry the most recently used one. Returns its files, in which the use is recorded for other processes.
    mutating func use(_ id: UInt64, key: CacheKey) -> EntryName? {
        clock += 1
        guard let place = buckets[key]?.firstIndex(where: { $0.id == id }) else { return nil }
        buckets[key]?[place].lastUse = clock
        if buckets[key]?[place].entry != nil { memory.insert(MemoryUse(time: clock, key: key, id: id)) }
        return buckets[key]?[place].name
    }

    /// Removes the entries of a key that satisfy a condition, and returns their files.
    mutating func remove(_ key: CacheKey, where condition: (Slot) -> Bool) -> [Removal] {
        guard let slots = buckets[key], slots.contains(where: condition) else { return [] }
        let kept = slots.filter { !condition($0) }
        buckets[key] = kept.isEmpty ? nil : kept
        let bodies = Set(kept.compactMap { $0.name?.body })
        var removals: [Removal] = []
        for slot in slots where condition(slot) {
            count -= 1
            memoryBytes -= slot.memoryCost
            if slot.entry != nil { memoryCount -= 1 }
            guard let name = slot.name else { continue }
            diskBytes -= name.size
            removals.append(Removal(name: name, keepsBody: name.body != 0 && bodies.contains(name.body)))
        }
        return removals
    }

    /// Removes the least recently used entries of a key above the greatest number of variants, and returns their files.
    ///
    /// Each request reads all entries of its key. A response may vary by a field that is different in each request.
    mutating func limitVariants(_ key: CacheKey) -> [Removal] {
        guard let slots = buckets[key], slots.count > Self.mostVariants else { return [] }
        let rest = slots.sorted { $0.lastUse < $1.lastUse }.dropLast(Self.mostVariants)
        let ids = Set(rest.map(\.id))
        return remove(key) { ids.contains($0.id) }
    }

    /// Returns the position of a request among those that look into the cache, starting at 1.
    mutating func nextOrder() -> UInt64 {
        lastOrder += 1
        return lastOrder
    }

    // MARK: Invalidations

    /// Records that responses to requests sent before must not be used any more.
    ///
    /// - Parameter key: The key of the requests; `nil` for all.
    mutating func invalidate(_ key: CacheKey?) {
        invalidations += 1
        guard let key, invalidated.count < Self.few else {
            invalidated = [:]
            allInvalidated = invalidations
            return
        }
        invalidated[key] = invalidations
    }

    /// Returns whether a key was invalidated since ``invalidations`` had a value.
    func isInvalidated(_ key: CacheKey, since start: UInt64) -> Bool {
        max(allInvalidated, invalidated[key] ?? 0) > start
    }

    // MARK: Bounds

    /// Whether an eviction by ``evict(lastUse:)`` is due.
    var isOverLimit: Bool {
        count > limits.entries || diskBytes > limits.diskBytes || memoryBytes > limits.memoryBytes
    }

    /// Whether the time of the last use matters of entries that were not used in this process.
    var needsTimes: Bool { hasDisk && (count > limits.entries || diskBytes > limits.diskBytes) }

    /// Removes the least recently used entries until the limits are kept, and returns their files.
    ///
    /// Above a thousand entries, a sixteenth more is removed, so that the sorting is rare.
    ///
    /// - Parameter lastUse: Returns the time of the last use of an entry that was not used in this process.
    mutating func evict(lastUse: (EntryName) -> Int64?) -> [Removal] {
        var removals: [Removal] = []
        if memoryBytes > limits.memoryBytes {
            let target = limits.memoryBytes - (memoryCount > Self.few ? limits.memoryBytes / 16 : 0)
            while memoryBytes > target, let use = memory.popFirst() {
                guard isLast(use) else { continue }
                if hasDisk { forget(use.id, use.key) } else { removals += remove(use.key) { $0.id == use.id } }
            }
        }
        guard count > limits.entries || diskBytes > limits.diskBytes else { return removals }
        let share: Int64 = count > Self.few ? 16 : .max
        let (entries, bytes) = (
            limits.entries - limits.entries / Int(share), limits.diskBytes - limits.diskBytes / share
        )
        let order = all.map {
            (key: $0.key, slot: $0.slot, time: $0.slot.lastUse > 0 ? nil : $0.slot.name.flatMap(lastUse))
        }
        .sorted { ($0.slot.lastUse, $0.time ?? .min) < ($1.slot.lastUse, $1.time ?? .min) }
        for (key, slot, _) in order {
            guard count > entries || diskBytes > bytes else { break }
            removals += remove(key) { $0.id == slot.id }
        }
        return removals
    }

    /// Whether a use is the last one of an entry in memory.
    private func isLast(_ use: MemoryUse) -> Bool {
        slots(use.key).contains { $0.id == use.id && $0.entry != nil && $0.lastUse == use.time }
    }

    private mutating func removeObsoleteUses() {
        var current = UseQueue()
        while let use = memory.popFirst() { if isLast(use) { current.insert(use) } }
        memory = current
    }

    /// Drops an entry from memory that is on the disk.
    private mutating func forget(_ id: UInt64, _ key: CacheKey) {
        guard let place = buckets[key]?.firstIndex(where: { $0.id == id }) else { return }
        memoryBytes -= buckets[key]?[place].memoryCost ?? 0
        memoryCount -= 1
        buckets[key]?[place].memoryCost = 0
        buckets[key]?[place].entry = nil
    }

    private static let few = 1_000
    private static let mostVariants = 32
}

/// A use of an entry in memory.
private struct MemoryUse {
    let time: UInt64
    let key: CacheKey
    let id: UInt64
}

/// A binary heap of uses, the least recent first.
private struct UseQueue {
    private var uses: [MemoryUse] = []

    var count: Int { uses.count }

    mutating func insert(_ use: MemoryUse) {
        uses.append(use)
        var child = uses.count - 1
        while child > 0, uses[child].time < uses[(child - 1) / 2].time {
            uses.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func popFirst() -> MemoryUse? {
        guard let last = uses.popLast() else { return nil }
        guard let first = uses.first else { return last }
        uses[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < uses.count && uses[child].time < uses[least].time {
                least = child
            }
            guard least != parent else { return first }
            uses.swapAt(least, parent)
            parent = least
        }
    }
}
