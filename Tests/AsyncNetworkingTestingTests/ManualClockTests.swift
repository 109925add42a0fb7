// SPDX-License-Identifier: MIT

import AsyncNetworkingTesting
import Testing

@Suite struct ManualClockTests {
    let clock = ManualClock()

    @Test func `a sleeping task wakes at its deadline and not before`() async throws {
        let order = EventLog()
        let clock = clock
        async let first: Void = {
            try await clock.sleep(for: .seconds(1)); order.append("first")
        }()
        async let second: Void = {
            try await clock.sleep(for: .seconds(2)); order.append("second")
        }()
        #expect(try await clock.sleepers(count: 2) == [.seconds(1), .seconds(2)])
        clock.advance(by: .milliseconds(999))
        #expect(clock.sleepers == [.milliseconds(1), .milliseconds(1001)])
        clock.advance(by: .milliseconds(1))
        try await first
        #expect(order.entries == ["first"])
        #expect(clock.sleepers == [.seconds(1)])
        clock.advance(by: .seconds(5))
        try await second
        #expect(order.entries == ["first", "second"])
        #expect(clock.now.offset == .seconds(6))
    }

    @Test func `a cancelled sleep throws CancellationError and is removed`() async throws {
        let clock = clock
        let task = Task { try await clock.sleep(for: .seconds(1)) }
        try await clock.sleepers(count: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(clock.sleepers.isEmpty)
    }

    @Test func `a sleep until a past instant returns immediately`() async throws {
        clock.advance(by: .seconds(1))
        try await clock.sleep(until: clock.now)
        try await clock.sleep(until: .init())
        #expect(clock.sleepers.isEmpty)
    }

    @Test func `a cancelled task does not sleep`() async throws {
        let clock = clock
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            try await clock.sleep(until: clock.now)
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `the clock can be used as any Clock of Duration`() async throws {
        let erased: any Clock<Duration> = clock
        async let slept: Void = erased.sleep(for: .seconds(3))
        try await clock.sleepers(count: 1)
        clock.advance(by: .seconds(3))
        try await slept
    }
}
