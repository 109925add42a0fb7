// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import FoundationEssentials
import Testing

@Suite struct CacheIndexTests {
    private static func name(_ id: UInt64) -> EntryName {
        EntryName(key: CacheKey(target: "http://a.example/\(id)"), id: id, body: 0, size: 10)
    }

    private static func index(entries: Int, found: some Sequence<UInt64>) -> CacheIndex {
        var index = CacheIndex(
            CacheLimits(memoryBytes: 1 << 20, diskBytes: 1 << 40, entries: entries), hasDisk: true)
        index.add(found.map(name))
        return index
    }

    /// Evicts as the cache does. Returns the entries that were removed, and how many times were read.
    private static func evict(_ index: inout CacheIndex, _ time: (UInt64) -> Int64) -> (removed: [UInt64], reads: Int) {
        var times: [EntryName: Int64] = [:]
        var removed: [UInt64] = []
        while true {
            let eviction = index.evict(times)
            removed += eviction.removals.map(\.name.id)
            guard !eviction.unread.isEmpty else { return (removed, times.count) }
            for name in eviction.unread { times[name] = time(name.id) }
        }
    }

    private static func insert(_ id: UInt64, _ index: inout CacheIndex) {
        let entry = CacheEntry(.of(length: 0), body: .memory(Data()), id: id)
        index.insert(entry, key: name(id).key, name: name(id))
    }

    /// Entries 1 to 4 were found in the directory, with the times 40, 10, 30 and 20.
    @Test(
        arguments: [
            (limit: 4, used: [], removed: []),
            (3, [], [2]),
            (2, [], [2, 4]),
            (0, [], [2, 4, 3, 1]),
            (2, [2], [4, 3]),
            (0, [2, 4, 2], [3, 1, 4, 2]),
        ] as [(limit: Int, used: [UInt64], removed: [UInt64])])
    func `entries are removed by their last use, that of files before that of this process`(
        limit: Int, used: [UInt64], removed: [UInt64]
    ) {
        var index = Self.index(entries: limit, found: 1...4)
        for id in used { #expect(index.use(id, key: Self.name(id).key) == Self.name(id)) }
        #expect(Self.evict(&index) { [0, 40, 10, 30, 20][Int($0)] }.removed == removed)
        #expect(index.count == min(limit, 4))
    }

    @Test func `an entry whose file a scan found while it was inserted is one`() {
        var index = Self.index(entries: 4, found: 1...1)
        Self.insert(1, &index)
        index.add([Self.name(1)])
        #expect(index.count == 1)
        #expect(Self.evict(&index) { _ in 0 }.removed == [])
        Self.insert(2, &index)
        index.add([Self.name(3)])
        #expect(index.count == 3)
    }

    @Test func `an entry that another process used since its time was read is kept`() {
        var index = Self.index(entries: 3, found: 1...4)
        #expect(Self.evict(&index) { Int64($0) }.removed == [1])
        Self.insert(5, &index)
        #expect(Self.evict(&index) { $0 == 2 ? 100 : Int64($0) }.removed == [3])
    }

    @Test func `an entry whose file is missing is removed first`() {
        var index = Self.index(entries: 3, found: 1...4)
        #expect(Self.evict(&index) { $0 == 3 ? .min : Int64($0) }.removed == [3])
    }

    @Test func `of 100,000 entries, all times are read once, and then one for each removal`() {
        var index = Self.index(entries: 100_000, found: 1...100_001)
        // The order of time is not that of the numbers.
        func time(_ id: UInt64) -> Int64 { Int64(id &* 2_654_435_761 % 100_003) }
        #expect(Self.evict(&index, time).reads == 100_001)
        for id: UInt64 in 200_001...200_100 {
            Self.insert(id, &index)
            let eviction = Self.evict(&index, time)
            #expect(eviction.removed.count == 1)
            #expect(eviction.reads == 1)
        }
        let oldest = (1...100_001 as ClosedRange<UInt64>).map(time).sorted()[101]
        Self.insert(300_000, &index)
        #expect(Self.evict(&index, time).removed.map(time) == [oldest])
    }
}
