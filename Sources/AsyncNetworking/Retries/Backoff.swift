// SPDX-License-Identifier: MIT

import ANSystem

/// The waits before retries: exponential up to a maximum, with optional full jitter.
///
/// The wait before retry *n*, starting at 1, is `min(base × multiplier^(n−1), maximum)`, where a multiplier below 1
/// counts as 1. With jitter it is drawn uniformly between zero and that value, so that clients that failed together do
/// not retry together. A backoff takes effect as ``RetryPolicy/backoff``.
public struct Backoff: Hashable, Sendable {
    /// The longest wait before the first retry; 0.5 s by default.
    package var base: Duration
    /// The factor by which the longest wait grows with each retry; 2 by default. A factor of 1 or less keeps it
    /// constant.
    package var multiplier: Double
    /// The upper bound of all waits; 30 s by default.
    package var maximum: Duration
    /// Whether each wait is drawn at random between zero and its longest value ("full jitter"); `true` by default.
    package var isJittered: Bool

    /// Creates a backoff; the defaults double the wait from 0.5 s up to 30 s, with full jitter.
    ///
    /// - Parameters:
    ///   - base: The longest wait before the first retry; 0.5 s by default. A negative one counts as zero.
    ///   - multiplier: The factor by which the longest wait grows with each retry; 2 by default. A factor of 1 or less
    ///     keeps it constant.
    ///   - maximum: The upper bound of all waits; 30 s by default. With zero or less, every wait is zero.
    ///   - isJittered: Whether each wait is drawn at random between zero and its longest value; `true` by default.
    public init(
        base: Duration = .milliseconds(500), multiplier: Double = 2, maximum: Duration = .seconds(30),
        isJittered: Bool = true
    ) {
        self.base = base
        self.multiplier = multiplier
        self.maximum = maximum
        self.isJittered = isJittered
    }

    /// Returns the wait before a retry.
    ///
    /// - Parameters:
    ///   - retry: The number of the retry, starting at 1.
    ///   - unit: A random number from 0 to 1.
    package func wait(beforeRetry retry: Int, unit: Double) -> Duration {
        var longest = max(.zero, min(base, bound))
        guard multiplier > 1 else { return jittered(longest, unit) }
        var step = 1
        while retry > step, longest > .zero, longest < bound {
            longest = longest / .seconds(1) * multiplier < bound / .seconds(1) ? longest * multiplier : bound
            step += 1
        }
        return jittered(longest, unit)
    }

    private func jittered(_ longest: Duration, _ unit: Double) -> Duration {
        // Not multiplied by 1, because the conversion to `Double` would round the duration.
        isJittered && !(unit >= 1) ? longest * max(0, unit) : longest
    }

    /// The maximum, limited to what a clock can sleep.
    private var bound: Duration { min(maximum, .longestSleep) }
}
