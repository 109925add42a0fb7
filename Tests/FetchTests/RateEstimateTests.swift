// SPDX-License-Identifier: MIT

import Fetch
import Testing

@Suite struct RateEstimateTests {
    @Test func `the estimate of a steady transfer is its speed`() throws {
        var rate = RateEstimate()
        for second in 1...20 { rate.update(bytes: Int64(second) * 1000, at: .seconds(second)) }
        #expect(abs(try #require(rate.bytesPerSecond) - 1000) < 0.001)
        #expect(rate.timeLeft(for: 5000) == .seconds(5))
    }

    @Test func `the estimate of a stalled transfer decreases until the time left is unknown`() throws {
        var rate = RateEstimate()
        rate.update(bytes: 1000, at: .seconds(1))
        var last = try #require(rate.bytesPerSecond)
        for second in 2...30 {
            rate.update(bytes: 1000, at: .seconds(second))
            let now = try #require(rate.bytesPerSecond)
            #expect(now < last)
            last = now
        }
        #expect(rate.timeLeft(for: 5000) == nil)
    }

    @Test func `the estimate of a restarted transfer is not negative`() throws {
        var rate = RateEstimate()
        rate.update(bytes: 1000, at: .seconds(1))
        rate.update(bytes: 10, at: .seconds(2))
        #expect(try #require(rate.bytesPerSecond) > 0)
    }

    @Test func `the time left is unknown before the first measurement`() {
        #expect(RateEstimate().timeLeft(for: 1) == nil)
    }
}
