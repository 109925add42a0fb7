// SPDX-License-Identifier: MIT

import Glibc

/// A point on the machine's monotonic clock, in nanoseconds: what timers on a loop are measured with.
public struct MonotonicInstant: Comparable, Hashable, Sendable {
    /// Nanoseconds since an arbitrary point, the clock's zero.
    public let nanoseconds: Int64

    /// Creates an instant from nanoseconds on the monotonic clock.
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The present, as `CLOCK_MONOTONIC` tells it. See clock_gettime(2).
    public static var now: MonotonicInstant {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// The instant after `duration`; a sum past an end of the clock stays at that end.
    public func advanced(by duration: Duration) -> MonotonicInstant {
        let step = duration.clampedNanoseconds
        let (sum, overflow) = nanoseconds.addingReportingOverflow(step)
        return MonotonicInstant(nanoseconds: overflow ? (step < 0 ? .min : .max) : sum)
    }

    /// The time from this instant to `other`; negative when `other` is earlier.
    public func duration(to other: MonotonicInstant) -> Duration {
        .nanoseconds(other.nanoseconds) - .nanoseconds(nanoseconds)
    }

    /// Whether `left` comes before `right`.
    public static func < (left: MonotonicInstant, right: MonotonicInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

extension Duration {
    /// The whole nanoseconds of this duration, held within what 64 bits can count (292 years).
    package var clampedNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        let (sum, overflowed) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflowed ? (seconds < 0 ? .min : .max) : sum
    }
}
