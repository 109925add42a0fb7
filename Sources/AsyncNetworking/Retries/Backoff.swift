// SPDX-License-Identifier: MIT

/// How long to wait before a retry: exponentially longer each time, up to a bound, at random below that.
///
/// Before retry *n*, the first being 1, the wait is at most `base × multiplier^(n−1)`, and never above `maximum`. With
/// jitter it is anything between nothing and that, so that clients that failed together do not come back together.
public struct Backoff: Hashable, Sendable {
    /// The longest wait before the first retry; 0.5 s by default.
    public var base: Duration
    /// How much longer each wait is than the one before; 2 by default.
    public var multiplier: Double
    /// The longest wait of all; 30 s by default.
    public var maximum: Duration
    /// Whether the wait is drawn at random, from nothing to its longest ("full jitter"); true by default.
    public var isJittered: Bool

    /// Creates a backoff.
    public init(
        base: Duration = .milliseconds(500), multiplier: Double = 2, maximum: Duration = .seconds(30),
        isJittered: Bool = true
    ) {
        self.base = base
        self.multiplier = multiplier
        self.maximum = maximum
        self.isJittered = isJittered
    }

    /// The wait before a retry.
    ///
    /// - Parameters:
    ///   - retry: The number of the retry, from 1.
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
        // A product with 1 would be off by what a `Double` cannot hold.
        isJittered && !(unit >= 1) ? longest * max(0, unit) : longest
    }

    /// The maximum, as far as a clock can sleep.
    private var bound: Duration { min(maximum, .longestSleep) }
}

extension Duration {
    /// A hundred years: more would overflow in a clock's arithmetic.
    static let longestSleep = Duration.seconds(100 * 365 * 86_400)
}
