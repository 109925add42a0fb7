// SPDX-License-Identifier: MIT

import Glibc

/// A point in time on the system's monotonic clock, `CLOCK_MONOTONIC`, in nanoseconds.
///
/// Changes of the system's time do not affect it, and it does not advance while the system is suspended. The sources of
/// an ``EventLoop`` use it for their timers. See clock_gettime(2).
public struct MonotonicInstant: Comparable, Hashable, Sendable {
    /// The number of nanoseconds since the clock's zero, an arbitrary point in time.
    public let nanoseconds: Int64

    /// Creates an instant from a number of nanoseconds on the monotonic clock.
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The current time of `CLOCK_MONOTONIC`. See clock_gettime(2).
    public static var now: MonotonicInstant {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Returns the instant `duration` after this one, or before it if negative, clamped to the range of
    /// ``nanoseconds``. Fractions of a nanosecond are cut off.
    public func advanced(by duration: Duration) -> MonotonicInstant {
        let step = duration.clampedNanoseconds
        let (sum, overflow) = nanoseconds.addingReportingOverflow(step)
        return MonotonicInstant(nanoseconds: overflow ? (step < 0 ? .min : .max) : sum)
    }

    /// Returns the time from this instant to `other`; negative if `other` is earlier.
    public func duration(to other: MonotonicInstant) -> Duration {
        Duration(attoseconds: (Int128(other.nanoseconds) - Int128(nanoseconds)) * Duration.attosecondsPerNanosecond)
    }

    /// Returns whether `left` is earlier than `right`.
    public static func < (left: MonotonicInstant, right: MonotonicInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

extension Duration {
    /// The duration in whole nanoseconds, clamped to the range of 64 bits (292 years).
    package var clampedNanoseconds: Int64 {
        // A thousand million is 2⁹ times 1,953,125. Below 78 minutes this divides 64 bits, not 128.
        guard let units = Int64(exactly: attoseconds >> 9), units >= 0 else {
            return Int64(clamping: attoseconds / Self.attosecondsPerNanosecond)
        }
        return units / 1_953_125
    }

    fileprivate static var attosecondsPerNanosecond: Int128 { 1_000_000_000 }
}

extension Duration {
    /// A hundred years; longer durations would overflow the arithmetic of clocks, which ends the process.
    package static let longestSleep = Duration.seconds(100 * 365 * 86_400)

    /// The duration, at most ``longestSleep`` in either direction.
    package var bounded: Duration { min(max(self, .zero - .longestSleep), .longestSleep) }
}
