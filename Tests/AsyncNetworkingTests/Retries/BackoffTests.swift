// SPDX-License-Identifier: MIT

import AsyncNetworking
import Testing

@Suite struct BackoffTests {
    @Test func `waits double up to the maximum`() {
        let backoff = Backoff(base: .seconds(1), maximum: .seconds(10), isJittered: false)
        let waits = (1...6).map { backoff.wait(beforeRetry: $0, unit: 0.5) }
        #expect(waits == [1, 2, 4, 8, 10, 10].map { .seconds($0) })
    }

    @Test func `by default, waits start at 0.5 s and end at 30 s`() {
        let waits = (1...8).map { Backoff().wait(beforeRetry: $0, unit: 1) }
        #expect(waits == [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000].map { .milliseconds($0) })
    }

    @Test func `jitter draws from zero to the longest wait`() {
        let backoff = Backoff(base: .seconds(4))
        #expect(backoff.wait(beforeRetry: 1, unit: 0) == .zero)
        #expect(backoff.wait(beforeRetry: 1, unit: 0.25) == .seconds(1))
        #expect(backoff.wait(beforeRetry: 2, unit: 0.25) == .seconds(2))
        #expect(backoff.wait(beforeRetry: 2, unit: 1) == .seconds(8))
    }

    @Test(arguments: [1.0, 0.5, 0, -1, -.infinity, .nan])
    func `a multiplier of 1 or less keeps the wait constant`(multiplier: Double) {
        let backoff = Backoff(base: .seconds(3), multiplier: multiplier, isJittered: false)
        #expect((1...4).map { backoff.wait(beforeRetry: $0, unit: 1) } == Array(repeating: .seconds(3), count: 4))
    }

    @Test(arguments: [1e300, .infinity])
    func `a very large multiplier waits the maximum`(multiplier: Double) {
        let backoff = Backoff(base: .seconds(3), multiplier: multiplier, maximum: .seconds(5), isJittered: false)
        #expect((1...3).map { backoff.wait(beforeRetry: $0, unit: 1) } == [.seconds(3), .seconds(5), .seconds(5)])
    }

    @Test(arguments: [Int.min, -1, 0, 1])
    func `a retry number below 1 counts as 1`(retry: Int) {
        #expect(Backoff(isJittered: false).wait(beforeRetry: retry, unit: 1) == .milliseconds(500))
    }

    @Test func `extreme durations do not trap`() {
        let century = Duration.seconds(100 * 365 * 86_400)
        let longest = Duration(secondsComponent: .max, attosecondsComponent: 0)
        let shortest = Duration(secondsComponent: .min, attosecondsComponent: 0)
        #expect(Backoff(base: longest, maximum: longest).wait(beforeRetry: 100, unit: 1) == century)
        #expect(Backoff(base: .seconds(1), maximum: longest).wait(beforeRetry: .max, unit: 1) == century)
        #expect(Backoff(base: shortest, maximum: longest).wait(beforeRetry: 3, unit: 1) == .zero)
        #expect(Backoff(base: .seconds(1), maximum: shortest).wait(beforeRetry: 3, unit: 1) == .zero)
        #expect(Backoff(base: .nanoseconds(1)).wait(beforeRetry: 3, unit: 1) == .nanoseconds(4))
        #expect(Backoff().wait(beforeRetry: 3, unit: .nan) == .zero)
    }
}
