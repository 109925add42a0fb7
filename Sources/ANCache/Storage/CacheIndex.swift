// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

/// The entries of a cache: which exist, which of them are in memory, and which were used least recently.
///
/// A pure value: the cache performs the removals that it returns.
package struct CacheIndex: Sendable {
    private let limits: CacheLimits
    private let hasDisk: Bool
    private var buckets: [CacheKey: [Slot]] = [:]
    private var clock: UInt64 = 0
    /// The number of entries.
    package private(set) var count = 0
    /// The number of bytes in memory.
    private(set) var memoryBytes = 0
    private var memoryCount = 0
    /// The uses of entries, and of those in memory, the least recent first. Those that are not the last of their entry are
    /// ignored.
    private var uses = BinaryHeap<Use>()
    private var memoryUses = BinaryHeap<Use>()
    /// The number of bytes in files.
    private(set) var diskBytes: Int64 = 0
    /// The last invalidation of a key or, above a number of keys, of any.
    private var invalidated: [CacheKey: Invalidation] = [:]
    private var allInvalidated: Invalidation?

    /// An invalidation.
    private struct Invalidation {
        /// The position of the last request of this process that was sent before.
        let order: UInt64
        /// The time, by which entries of other processes are compared.
        let time: CacheTime
    }

    /// An entry of the index.
    struct Slot: Sendable {
        /// The files of the entry; `nil` if it is only in memory.
        let name: EntryName?
        let id: UInt64
        /// The position of its request; see ``CacheEntry/order``.
        let order: UInt64
        /// The entry, if it is in memory.
        var entry: CacheEntry?
        /// The last use that is known.
        var lastUse: UseTime
        /// The memory that the entry occupies; 0 if it is not in memory.
        var memoryCost = 0
        /// Whether its last validation in the background was refused.
        var isRefused = false
        /// The time of the last invalidation of the key before the file of another process was found: the response to an
        /// earlier request must not be used.
        var invalidation: CacheTime?
    }

    /// The time of a use. Those in this process are later than those that a file records.
    struct UseTime: Comparable, Sendable {
        /// The count of uses in this process; 0 if the entry was not used in it.
        var count: UInt64
        /// The time that the entry's file records, unless the entry was used in this process; the least one until it
        /// is read.
        var recorded = Int64.min

        static func < (first: UseTime, second: UseTime) -> Bool {
            (first.count, first.recorded) < (second.count, second.recorded)
        }
    }

    /// A part of an eviction.
    package struct Eviction: Sendable {
        /// The files of the entries that were removed.
        package var removals: [Removal] = []
        /// The entries that are next unless their files record later uses. If there are any, the eviction goes on when
        /// these times have been read.
        package var unread: [EntryName] = []
    }

    /// The files of an entry that was removed.
    package struct Removal: Sendable, Hashable {
        package let name: EntryName
        /// Whether another entry uses the same body file.
        let keepsBody: Bool
    }

    /// Creates an index without entries.
    package init(_ limits: CacheLimits, hasDisk: Bool) {
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
    package mutating func add(_ names: some Sequence<EntryName>) {
        for name in names where !slots(name.key).contains(where: { $0.id == name.id }) {
            var slot = Slot(name: name, id: name.id, order: 0, entry: nil, lastUse: UseTime(count: 0))
            slot.invalidation = lastInvalidation(name.key)?.time
            append(slot, name.key)
        }
    }

    /// Adds an entry as the most recently used one. A scan may have found its file before.
    package mutating func insert(_ entry: CacheEntry, key: CacheKey, name: EntryName?) {
        _ = remove(key) { $0.id == entry.id }
        clock += 1
        append(Slot(name: name, id: entry.id, order: entry.order, entry: nil, lastUse: UseTime(count: clock)), key)
        keep(entry, key: key)
    }

    private mutating func append(_ slot: Slot, _ key: CacheKey) {
        diskBytes += slot.name?.size ?? 0
        count += 1
        buckets[key, default: []].append(slot)
        record(Use(time: slot.lastUse, key: key, id: slot.id))
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
        if let time = buckets[key]?[place].lastUse { recordInMemory(Use(time: time, key: key, id: entry.id)) }
    }

    /// Makes an entry the most recently used one. Returns its files, in which the use is recorded for other processes.
    package mutating func use(_ id: UInt64, key: CacheKey) -> EntryName? {
        clock += 1
        guard let place = buckets[key]?.firstIndex(where: { $0.id == id }) else { return nil }
        let use = Use(time: UseTime(count: clock), key: key, id: id)
        buckets[key]?[place].lastUse = use.time
        record(use)
        if buckets[key]?[place].entry != nil { recordInMemory(use) }
        return buckets[key]?[place].name
    }

    private mutating func record(_ use: Use) {
        uses.insert(use)
        if uses.count > 2 * count + Self.few { uses.removeAll { [buckets] in Self.slot(of: $0, in: buckets) == nil } }
    }

    private mutating func recordInMemory(_ use: Use) {
        memoryUses.insert(use)
        if memoryUses.count > 2 * memoryCount + Self.few {
            memoryUses.removeAll { [buckets] in Self.slot(of: $0, in: buckets)?.entry == nil }
        }
    }

    /// Returns the slot of a use; `nil` if the use is not the last one of an entry.
    private static func slot(of use: Use, in buckets: [CacheKey: [Slot]]) -> Slot? {
        buckets[use.key]?.first { $0.id == use.id && $0.lastUse == use.time }
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

    /// Records that a validation of an entry in the background was refused.
    mutating func noteRefusal(of id: UInt64, key: CacheKey) {
        if let place = buckets[key]?.firstIndex(where: { $0.id == id }) { buckets[key]?[place].isRefused = true }
    }

    // MARK: Invalidations

    /// Records that responses to requests sent before must not be used any more.
    ///
    /// - Parameters:
    ///   - key: The key of the requests; `nil` for all.
    ///   - time: The time of the invalidation. A later one of the same requests counts, unless it is in the future,
    ///     because the system's clock was ahead.
    mutating func invalidate(_ key: CacheKey?, at time: CacheTime) {
        let key = invalidated.count < Self.few ? key : nil
        let earlier: [Invalidation?] =
            if let key { [lastInvalidation(key)] } else { invalidated.values.map { $0 } + [allInvalidated] }
        let last = earlier.compactMap { $0?.time }.max() ?? time
        let invalidation = Invalidation(order: ResponseHead.Sending.lastOrder, time: max(time, min(last, .now)))
        if let key {
            invalidated[key] = invalidation
        } else {
            (invalidated, allInvalidated) = ([:], invalidation)
        }
    }

    /// Returns whether a key was invalidated since the request of this process with a position was sent.
    func isInvalidated(_ key: CacheKey, since order: UInt64) -> Bool {
        order != 0 && lastInvalidation(key).map { $0.order >= order } ?? false
    }

    private func lastInvalidation(_ key: CacheKey) -> Invalidation? { invalidated[key] ?? allInvalidated }

    // MARK: Bounds

    /// Whether an eviction by ``evict(_:)`` is due.
    var isOverLimit: Bool { isOverDiskLimit || memoryBytes > limits.memoryBytes }

    private var isOverDiskLimit: Bool { count > limits.entries || diskBytes > limits.diskBytes }

    /// Removes the least recently used entries until the limits are kept, or until the times are needed that files
    /// record. Each removal takes logarithmic time.
    ///
    /// The recorded time of an entry that was not used in this process is read again before the entry is removed,
    /// because other processes may have used it.
    ///
    /// - Parameter times: The times that the files of entries record, which were read for this eviction.
    package mutating func evict(_ times: [EntryName: Int64] = [:]) -> Eviction {
        var eviction = Eviction()
        while memoryBytes > limits.memoryBytes, let use = memoryUses.popFirst() {
            guard Self.slot(of: use, in: buckets)?.entry != nil else { continue }
            if hasDisk {
                forget(use.id, use.key)
            } else {
                eviction.removals += remove(use.key) { $0.id == use.id }
            }
        }
        var unread: [Use] = []
        while isOverDiskLimit, let use = uses.popFirst() {
            guard let slot = Self.slot(of: use, in: buckets) else { continue }
            if let first = unread.first, first.time < use.time {
                uses.insert(use)
                break
            }
            if use.time.count == 0, let name = slot.name {
                guard let time = times[name] else {
                    unread.append(use)
                    eviction.unread.append(name)
                    continue
                }
                if time > use.time.recorded {
                    setLastUse(UseTime(count: 0, recorded: time), of: use)
                    continue
                }
            }
            eviction.removals += remove(use.key) { $0.id == use.id }
        }
        for use in unread { uses.insert(use) }
        return eviction
    }

    /// Changes the time of an entry's last use to one that its file records.
    private mutating func setLastUse(_ time: UseTime, of use: Use) {
        guard let place = buckets[use.key]?.firstIndex(where: { $0.id == use.id }) else { return }
        buckets[use.key]?[place].lastUse = time
        let use = Use(time: time, key: use.key, id: use.id)
        uses.insert(use)
        if buckets[use.key]?[place].entry != nil { recordInMemory(use) }
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

/// A use of an entry.
private struct Use: Comparable {
    let time: CacheIndex.UseTime
    let key: CacheKey
    let id: UInt64

    static func < (first: Use, second: Use) -> Bool { first.time < second.time }
}
