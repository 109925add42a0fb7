// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import Testing

@Suite struct SpeedScheduleTests {
    /// A transfer that always has more bytes.
    private final class Source {
        let limits: [SpeedLimit]
        let chunk: Int
        var bytes = 0
        var isWaiting = false

        init(_ limits: [SpeedLimit], chunk: Int = 4_096) {
            (self.limits, self.chunk) = (limits, chunk)
        }
    }

    /// A schedule in virtual time.
    private final class World {
        var schedule = SpeedSchedule<Source>(\.bytesReceivedPerSecond)
        var now = MonotonicInstant(nanoseconds: 1)

        /// Lets a source take chunks until it must wait, at most for a gigabyte.
        func run(_ source: Source) {
            while schedule.mayTake(source, source.limits, at: now) {
                schedule.take(source.chunk, by: source, source.limits, at: now)
                source.bytes += source.chunk
                guard source.bytes < 1 << 30 else { return }
            }
            source.isWaiting = true
        }

        /// Lets the waiting sources take chunks for a duration, as the loop does, whose timers are a millisecond apart.
        func run(for duration: Duration) throws {
            let end = now.advanced(by: duration)
            while true {
                while let next = schedule.next(at: now) {
                    try #require(next.isWaiting)
                    next.isWaiting = false
                    run(next)
                }
                guard let due = schedule.due(at: now), due < end else { break }
                now = max(due, now.advanced(by: .milliseconds(1)))
            }
            now = end
        }
    }

    @Test(arguments: [1, 10, 100], [100_000, 1_000_000, 50_000_000])
    func `the limit is kept within 3 % over 10 s, and shared within 10 %`(count: Int, rate: Int) throws {
        let limit = SpeedLimit(bytesReceivedPerSecond: rate)
        let world = World()
        let sources = (0..<count).map { _ in Source([limit], chunk: rate < 1_000_000 ? 4_096 : 16_384) }
        for source in sources { world.run(source) }
        try world.run(for: .seconds(10))
        let total = sources.reduce(0) { $0 + $1.bytes }
        #expect(abs(Double(total) / Double(10 * rate) - 1) < 0.03)
        // A chunk is more than 10 % of the share of each of 100 at 100 kB/s.
        for source in sources {
            #expect(abs(source.bytes - total / count) <= max(total / count / 10, source.chunk))
        }
    }

    @Test func `a transfer with a limit of its own takes no more, and the others take the rest`() throws {
        let (all, own) = (SpeedLimit(bytesReceivedPerSecond: 1_000_000), SpeedLimit(bytesReceivedPerSecond: 100_000))
        let world = World()
        let sources = [Source([all, own]), Source([all]), Source([all])]
        for source in sources { world.run(source) }
        try world.run(for: .seconds(10))
        let shares = sources.map { Double($0.bytes) / 10_000_000 }
        for (share, expected) in zip(shares, [0.1, 0.45, 0.45]) { #expect(abs(share / expected - 1) < 0.05) }
    }

    @Test func `a rate that changes has effect on those that wait`() throws {
        let limit = SpeedLimit(bytesReceivedPerSecond: 1)
        let (world, source) = (World(), Source([limit]))
        world.run(source)
        try world.run(for: .seconds(100))
        #expect(source.bytes == 4_096)
        limit.bytesReceivedPerSecond = 1_000_000
        try world.run(for: .seconds(10))
        #expect(abs(Double(source.bytes) / 10_000_000 - 1) < 0.03)
        limit.bytesReceivedPerSecond = nil
        try world.run(for: .seconds(1))
        #expect(source.bytes == 1 << 30)
    }

    @Test func `a transfer that begins later, or was paused, takes no more than its share from then on`() throws {
        let limit = SpeedLimit(bytesReceivedPerSecond: 1_000_000)
        let world = World()
        let first = Source([limit])
        world.run(first)
        try world.run(for: .seconds(10))
        let second = Source([limit])
        world.run(second)
        let before = first.bytes
        try world.run(for: .seconds(10))
        #expect(abs(Double(second.bytes) / 5_000_000 - 1) < 0.1)
        #expect(abs(Double(first.bytes - before) / 5_000_000 - 1) < 0.1)
    }

    @Test func `a transfer that has ended leaves its share to others, and nothing behind`() throws {
        let limit = SpeedLimit(bytesReceivedPerSecond: 1_000_000)
        let world = World()
        let (first, second) = (Source([limit]), Source([limit]))
        world.run(first)
        world.run(second)
        world.schedule.remove(first, first.limits, at: world.now)
        try world.run(for: .seconds(10))
        #expect(first.bytes <= 2 * 4_096)
        #expect(abs(Double(second.bytes) / 10_000_000 - 1) < 0.03)
        world.schedule.remove(second, second.limits, at: world.now)
        #expect(world.schedule.due(at: world.now) == nil)
    }

    @Test func `transfers one after the other keep the limit`() throws {
        let limit = SpeedLimit(bytesReceivedPerSecond: 10_000)
        let world = World()
        var bytes = 0
        for _ in 0..<100 {
            let source = Source([limit])
            world.run(source)
            try world.run(for: .milliseconds(100))
            bytes += source.bytes
            world.schedule.remove(source, source.limits, at: world.now)
        }
        #expect(bytes < 110_000)
    }

    @Test func `a limit that no transfer uses is forgotten as soon as what was taken under it is due`() throws {
        let world = World()
        let lasting = Source([SpeedLimit(bytesReceivedPerSecond: 10_000)])
        world.run(lasting)
        var most = 0
        for _ in 0..<100 {
            let own = Source([SpeedLimit(bytesReceivedPerSecond: 100_000)])
            world.run(own)
            try world.run(for: .milliseconds(100))
            world.schedule.remove(own, own.limits, at: world.now)
            most = max(most, world.schedule.limitCount)
        }
        #expect(most <= 4)
        world.schedule.remove(lasting, lasting.limits, at: world.now)
        try world.run(for: .seconds(10))
        let last = Source([SpeedLimit(bytesReceivedPerSecond: 1)])
        world.run(last)
        world.schedule.remove(last, last.limits, at: world.now)
        #expect(world.schedule.limitCount == 1)
    }

    @Test func `unused speed is not saved up`() throws {
        let limit = SpeedLimit(bytesReceivedPerSecond: 1_000_000)
        let (world, source) = (World(), Source([limit]))
        world.run(source)
        world.schedule.remove(source, source.limits, at: world.now)
        try world.run(for: .seconds(1_000))
        let late = Source([limit])
        world.run(late)
        try world.run(for: .seconds(1))
        #expect(late.bytes < 1_100_000)
    }

    @Test func `a number below 1 is 1`() {
        #expect(SpeedLimit(bytesReceivedPerSecond: 0, bytesSentPerSecond: -5).bytesReceivedPerSecond == 1)
        let limit = SpeedLimit(bytesSentPerSecond: 7)
        #expect(limit.bytesReceivedPerSecond == nil)
        limit.bytesSentPerSecond = -1
        #expect(limit.bytesSentPerSecond == 1)
        limit.bytesSentPerSecond = nil
        #expect(limit.bytesSentPerSecond == nil)
    }
}
