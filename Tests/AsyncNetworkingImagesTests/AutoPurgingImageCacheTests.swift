// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingImages
import AsyncNetworkingTesting
import Foundation
import Testing

@Suite struct PurgingStoreTests {
    @Test func `above the capacity the least recently accessed values are removed`() {
        // The sizes of AFNetworking's own test: eleven images into a capacity of ten leave the preferred six.
        var store = PurgingStore<Int, Int>(capacity: 10_200_000, preferredUse: 6_120_000)
        for key in 0..<10 { #expect(store.insert(key, for: key, cost: 1_020_000) == []) }
        // Exactly the capacity is not too much.
        #expect(store.use == 10_200_000)
        #expect(store.value(for: 0) == 0)
        #expect(store.insert(10, for: 10, cost: 1_020_000) == [1, 2, 3, 4, 5])
        #expect(store.use == 6_120_000)
        #expect((0...10).filter { store.value(for: $0) != nil } == [0, 6, 7, 8, 9, 10])
    }

    @Test func `a value that exceeds the capacity by itself is removed at once`() {
        var store = PurgingStore<String, Int>(capacity: 10, preferredUse: 6)
        _ = store.insert(1, for: "small", cost: 6)
        #expect(store.insert(2, for: "large", cost: 11) == [1, 2])
        #expect(store.use == 0)
        #expect(store.count == 0)
    }

    @Test func `a value replaces one with the same key`() {
        var store = PurgingStore<String, Int>(capacity: 10, preferredUse: 10)
        _ = store.insert(1, for: "a", cost: 6)
        #expect(store.insert(2, for: "a", cost: 10) == [1])
        #expect(store.use == 10)
        #expect(store.value(for: "a") == 2)
    }

    @Test(arguments: [(20, 10), (-1, 0), (0, 0)])
    func `the preferred use is at most the capacity`(preferred: Int, remaining: Int) {
        var store = PurgingStore<Int, Int>(capacity: 10, preferredUse: preferred)
        for key in 0..<11 { _ = store.insert(key, for: key, cost: 1) }
        #expect(store.use == remaining)
    }

    @Test func `limits take effect with the next value`() {
        var store = PurgingStore<Int, Int>(capacity: 10, preferredUse: 5)
        for key in 0..<10 { _ = store.insert(key, for: key, cost: 1) }
        store.capacity = 4
        #expect(store.use == 10)
        _ = store.insert(10, for: 10, cost: 1)
        #expect(store.use == 4)
        store.preferredUse = 1
        #expect(store.purge().count == 3)
        #expect(store.value(for: 10) == 10)
    }

    @Test func `neither the key nor the value is kept after a removal`() {
        final class Object: Hashable, Sendable {
            static func == (first: Object, second: Object) -> Bool { first === second }
            func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
        }
        var store = PurgingStore<Object, Object>(capacity: 10, preferredUse: 10)
        weak var removed: Object?
        weak var purged: Object?
        weak var value: Object?
        do {
            let (first, second, stored) = (Object(), Object(), Object())
            (removed, purged, value) = (first, second, stored)
            _ = store.insert(stored, for: first, cost: 1)
            _ = store.remove(first)
            _ = store.insert(stored, for: second, cost: 11)
        }
        #expect(store.count == 0)
        #expect(removed == nil && purged == nil && value == nil)
    }

    @Test func `costs do not overflow`() {
        var store = PurgingStore<Int, Int>(capacity: .max, preferredUse: .max)
        for key in 0..<1_000 { _ = store.insert(key, for: key, cost: .max) }
        _ = store.insert(-1, for: -1, cost: -5)
        #expect(store.use > 0)
        #expect(store.count == 1_001)
    }

    @Test func `a store behaves like a list sorted by access`() {
        var random = SplitMix64(seed: 16)
        var store = PurgingStore<Int, Int>(capacity: 50, preferredUse: 30)
        /// The keys, values and costs, least recently accessed first.
        var model: [(key: Int, value: Int, cost: Int)] = []
        for step in 0..<20_000 {
            let key = Int.random(in: 0..<40, using: &random)
            let place = model.firstIndex { $0.key == key }
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                #expect(store.value(for: key) == place.map { model[$0].value })
                if let place { model.append(model.remove(at: place)) }
            case 5..<9:
                let cost = Int.random(in: 0..<8, using: &random)
                var expected = place.map { [model.remove(at: $0).value] } ?? []
                model.append((key, step, cost))
                if model.map(\.cost).reduce(0, +) > 50 {
                    while model.map(\.cost).reduce(0, +) > 30 { expected.append(model.removeFirst().value) }
                }
                #expect(store.insert(step, for: key, cost: cost) == expected)
            default:
                #expect(store.remove(key) == place.map { model.remove(at: $0).value })
            }
            #expect(store.use == model.map(\.cost).reduce(0, +))
            #expect(store.count == model.count)
        }
        #expect(Set(store.removeAll()) == Set(model.map(\.value)))
        #expect(store.use == 0)
    }
}

@Suite(.timeLimit(.minutes(5))) struct AutoPurgingImageCacheTests {
    private let url = URL(string: "https://example.com/a")

    @Test func `limits are those of AFNetworking by default`() {
        let cache = AutoPurgingImageCache(memoryPressure: nil)
        #expect(cache.capacity == 104_857_600)
        #expect(cache.preferredUseAfterPurge == 62_914_560)
        #expect(cache.memoryUse == 0)
    }

    @Test func `images are added, found and removed`() throws {
        let cache = AutoPurgingImageCache(memoryPressure: nil)
        let key = ImageCacheKey(try #require(url))
        let image = try ImageContent(SamplePicture.png)
        #expect(cache.image(for: key) == nil)
        #expect(!cache.remove(key))
        cache.add(image, for: key)
        #expect(cache.image(for: key) == image)
        #expect(cache.memoryUse == 1 << 10)
        #expect(cache.remove(key))
        #expect(!cache.removeAll())
        cache.add(image, for: key)
        #expect(cache.removeAll())
        #expect(cache.memoryUse == 0)
    }

    @Test func `a purge leaves the preferred use`() throws {
        let image = try ImageContent(SamplePicture.png)
        // It is smaller than its key.
        let cost = 1 << 10
        #expect(image.memoryCost < cost)
        let cache = AutoPurgingImageCache(capacity: 10 * cost, preferredUse: 6 * cost, memoryPressure: nil)
        let keys = try (0..<10).map { ImageCacheKey(try #require(URL(string: "https://example.com/\($0)"))) }
        for key in keys { cache.add(image, for: key) }
        #expect(cache.memoryUse == 10 * cost)
        cache.purge()
        #expect(cache.memoryUse == 6 * cost)
        cache.preferredUseAfterPurge = cost
        cache.capacity = 2 * cost
        cache.add(image, for: keys[0])
        #expect(keys.filter { cache.image(for: $0) != nil } == [keys[0]])
        #expect(cache.capacity == 2 * cost)
        #expect(cache.preferredUseAfterPurge == cost)
    }

    @Test func `keys differ by URL, header fields and identifier`() throws {
        let url = try #require(url)
        let longer = try #require(URL(string: "https://example.com/ab"))
        let keys = [
            ImageCacheKey(url), ImageCacheKey(longer), ImageCacheKey(url, identifier: "b"),
            ImageCacheKey(url, headers: [.authorization: "Bearer a"]),
            ImageCacheKey(url, headers: [.authorization: "Bearer b"]),
            ImageCacheKey(url, headers: [.authorization: "Bearer b"], identifier: "b"),
        ]
        #expect(Set(keys).count == keys.count)
        var request = Request(url: url, headers: [.authorization: "Bearer b"])
        request.cachePolicy = .reload
        #expect(ImageCacheKey(request) == keys[4])
        #expect(ImageCacheKey(request, identifier: "b") == keys[5])
    }

    @Test func `memory pressure removes all images`() async throws {
        let (pressure, continuation) = AsyncStream.makeStream(of: Void.self)
        let cache = AutoPurgingImageCache(memoryPressure: pressure)
        let key = ImageCacheKey(try #require(url))
        cache.add(try ImageContent(SamplePicture.png), for: key)
        continuation.yield()
        while cache.memoryUse > 0 { await Task.yield() }
        #expect(cache.image(for: key) == nil)
    }

    @Test func `a cache that is released no longer observes memory pressure`() async throws {
        let (pressure, continuation) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        continuation.onTermination = { _ in end.finish() }
        weak var released: AutoPurgingImageCache?
        do {
            let cache = AutoPurgingImageCache(memoryPressure: pressure)
            released = cache
        }
        #expect(released == nil)
        for await _ in ended {}
    }

    @Test func `100,000 operations from 16 tasks leave the cache consistent`() async throws {
        let image = try ImageContent(SamplePicture.png)
        let cost = 1 << 10
        let cache = AutoPurgingImageCache(capacity: 50 * cost, preferredUse: 30 * cost, memoryPressure: nil)
        let keys = try (0..<100).map { ImageCacheKey(try #require(URL(string: "https://example.com/\($0)"))) }
        let found = await withTaskGroup(of: Int.self) { group in
            for task in 0..<16 {
                group.addTask {
                    var random = SplitMix64(seed: UInt64(task))
                    var found = 0
                    for _ in 0..<6_250 {
                        let key = keys[Int.random(in: 0..<keys.count, using: &random)]
                        switch Int.random(in: 0..<20, using: &random) {
                        case 0..<12: found += cache.image(for: key) == nil ? 0 : 1
                        case 12..<18: cache.add(image, for: key)
                        case 18: cache.remove(key)
                        default: cache.purge()
                        }
                    }
                    return found
                }
            }
            return await group.reduce(0, +)
        }
        #expect(found > 0)
        #expect(cache.memoryUse <= 50 * cost)
        #expect(cache.memoryUse == keys.count { cache.image(for: $0) != nil } * cost)
    }
}

@Suite(.timeLimit(.minutes(5))) struct MemoryPressureTests {
    @Test(
        arguments: [
            (
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n",
                1_234
            ),
            ("full avg10=0.00 total=9\nsome total=7\n", 7), ("", nil), ("some avg10=0.00", nil), ("some total=x", nil),
        ] as [(String, Int?)])
    func `the kernel's text is read`(text: String, microseconds: Int?) {
        #expect(MemoryPressure.stallTime(inText: text) == microseconds.map { .microseconds($0) })
    }

    @Test func `an element is yielded if tasks waited for a tenth of the interval`() async throws {
        let clock = ManualClock()
        let total = Lock<Duration?>(.seconds(50))
        let pressure = MemoryPressure(interval: .seconds(2), clock: clock) { total.withLock { $0 } }
        let events = Lock(0)
        let task = Task {
            for await _ in pressure { events.withLock { $0 += 1 } }
        }
        for (added, expected) in [(0, 0), (200, 0), (201, 1), (0, 1), (1_500, 2), (10, 2)] {
            try await clock.sleepers(count: 1)
            total.withLock { $0? += .milliseconds(added) }
            clock.advance(by: .seconds(2))
            try await clock.sleepers(count: 1)
            #expect(events.withLock { $0 } == expected)
        }
        // The information is not available for a while, in which tasks have waited.
        total.withLock { $0 = nil }
        clock.advance(by: .seconds(2))
        try await clock.sleepers(count: 1)
        total.withLock { $0 = .seconds(60) }
        clock.advance(by: .seconds(2))
        try await clock.sleepers(count: 1)
        #expect(events.withLock { $0 } == 3)
        task.cancel()
        await task.value
    }

    @Test func `an interval is no longer than a clock can sleep`() async throws {
        let clock = ManualClock()
        let task = Task {
            for await _ in MemoryPressure(interval: .seconds(Int64.max), clock: clock, stallTime: { .zero }) {}
        }
        #expect(try await clock.sleepers(count: 1) == [.seconds(36_500 * 86_400)])
        task.cancel()
        await task.value
    }

    @Test func `the sequence ends if the kernel has no information, or the task is cancelled`() async throws {
        for await _ in MemoryPressure(interval: .seconds(2), clock: ManualClock(), stallTime: { nil }) {
            Issue.record("There must be no element.")
        }
        let clock = ManualClock()
        let task = Task {
            for await _ in MemoryPressure(interval: .seconds(2), clock: clock, stallTime: { .zero }) {}
        }
        try await clock.sleepers(count: 1)
        task.cancel()
        await task.value
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/proc/pressure/memory")))
    func `the system's file is read`() {
        #expect(MemoryPressure.stallTime(in: "/proc/pressure/memory") != nil)
        #expect(MemoryPressure.stallTime(in: "/proc/no/such/file") == nil)
    }
}
