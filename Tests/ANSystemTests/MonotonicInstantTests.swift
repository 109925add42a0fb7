// SPDX-License-Identifier: MIT

import ANSystem
import Testing

@Suite struct MonotonicInstantTests {
    private static let longest = Duration(secondsComponent: .max, attosecondsComponent: 999_999_999_999_999_999)
    private static let shortest = Duration(secondsComponent: .min, attosecondsComponent: -999_999_999_999_999_999)

    @Test(
        arguments: [
            (.zero, 0),
            (.nanoseconds(1), 1),
            (.nanoseconds(-1), -1),
            (Duration(secondsComponent: 0, attosecondsComponent: 999_999_999), 0),
            (Duration(secondsComponent: 0, attosecondsComponent: -999_999_999), 0),
            (.milliseconds(1500), 1_500_000_000),
            (.seconds(9_223_372_036), 9_223_372_036_000_000_000),
            (.nanoseconds(Int64.max), .max),
            (.nanoseconds(Int64.min), .min),
            (.nanoseconds(Int64.max) + .nanoseconds(1), .max),
            (.nanoseconds(Int64.min) - .nanoseconds(1), .min),
            (.seconds(9_223_372_037), .max),
            (.seconds(-9_223_372_037), .min),
            (longest, .max),
            (shortest, .min),
        ] as [(Duration, Int64)])
    func `a duration is clamped to 64 bits of nanoseconds`(duration: Duration, nanoseconds: Int64) {
        #expect(duration.clampedNanoseconds == nanoseconds)
    }

    @Test(
        arguments: [
            (0, .nanoseconds(5), 5),
            (100, .nanoseconds(-5), 95),
            (Int64.max, .nanoseconds(1), .max),
            (Int64.max, .nanoseconds(-1), Int64.max - 1),
            (1, longest, .max),
            (Int64.min, .nanoseconds(-1), .min),
            (-1, shortest, .min),
            (0, shortest, .min),
        ] as [(Int64, Duration, Int64)])
    func `an instant is clamped to the range of the clock`(start: Int64, by: Duration, end: Int64) {
        let moved = MonotonicInstant(nanoseconds: start).advanced(by: by)
        #expect(moved == MonotonicInstant(nanoseconds: end))
    }

    @Test(
        arguments: [
            (10, 25, .nanoseconds(15)),
            (25, 10, .nanoseconds(-15)),
            (0, Int64.max, .nanoseconds(Int64.max)),
            (Int64.min, Int64.max, .nanoseconds(Int64.max) + .nanoseconds(Int64.max) + .nanoseconds(1)),
            (Int64.max, Int64.min, .nanoseconds(Int64.min) + .nanoseconds(Int64.min) + .nanoseconds(1)),
        ] as [(Int64, Int64, Duration)])
    func `the time between two instants is exact and signed`(from: Int64, to: Int64, duration: Duration) {
        #expect(MonotonicInstant(nanoseconds: from).duration(to: MonotonicInstant(nanoseconds: to)) == duration)
    }

    @Test func `instants are ordered and the clock is monotonic`() {
        #expect(MonotonicInstant(nanoseconds: -1) < MonotonicInstant(nanoseconds: 0))
        #expect(!(MonotonicInstant(nanoseconds: 1) < MonotonicInstant(nanoseconds: 1)))
        let instants = (0..<1000).map { _ in MonotonicInstant.now }
        #expect(instants == instants.sorted())
    }
}
