// SPDX-License-Identifier: MIT

package import FoundationEssentials

extension RetryPolicy {
    /// A limit on the share of retries among the requests of a session to one origin (scheme, host and port), so that
    /// retries do not overload a server that is recovering. It takes effect as ``RetryPolicy/budget``.
    ///
    /// It is a token bucket for each origin, which starts with `capacity` retries. Each retry takes one; each first attempt
    /// adds `perRequest`, and each second `perSecond`, up to the capacity. With the defaults, at most one retry for every
    /// five requests is permitted in the long run, plus one each second.
    ///
    /// Only requests with a policy that permits retries and has a budget count as first attempts. A session keeps one
    /// count for each origin and budget: requests whose policies have equal budgets share it, and others have no effect
    /// on it. It keeps at most 1,000 counts below their capacity; beyond that, an arbitrary one starts anew.
    public struct Budget: Hashable, Sendable {
        /// The maximum number of retries that a host can accumulate; 10 by default.
        package let capacity: Double
        /// The number of retries that each first attempt adds; 0.2 by default.
        package let perRequest: Double
        /// The number of retries that each second adds; 1 by default.
        package let perSecond: Double

        /// Creates a budget for each origin.
        ///
        /// - Parameters:
        ///   - capacity: The maximum number of retries that an origin can accumulate, and with which it starts; 10 by
        ///     default. Below 1, no retry is permitted. Fractions accumulate: a retry takes one whole.
        ///   - perRequest: The number of retries that each first attempt adds; 0.2 by default, 0 for none.
        ///   - perSecond: The number of retries that each second adds; 1 by default, 0 for none.
        public init(capacity: Double = 10, perRequest: Double = 0.2, perSecond: Double = 1) {
            // A value that is no number equals none, by which its count could be found.
            func number(_ value: Double) -> Double { value.isNaN ? 0 : value }
            self.capacity = number(capacity)
            self.perRequest = number(perRequest)
            self.perSecond = number(perSecond)
        }
    }
}

/// The retries left of one budget for one origin.
package struct RetryBucket: Sendable {
    private let budget: RetryPolicy.Budget
    private var tokens: Double
    private var lastChange: Duration

    /// Creates a bucket that is full.
    package init(_ budget: RetryPolicy.Budget, now: Duration) {
        self.budget = budget
        tokens = budget.capacity
        lastChange = now
    }

    /// Adds the share of a first attempt.
    package mutating func deposit(now: Duration) { add(budget.perRequest, now: now) }

    /// Takes one retry; returns `false` if less than one is left.
    package mutating func withdraw(now: Duration) -> Bool {
        add(0, now: now)
        guard tokens >= 1 else { return false }
        tokens -= 1
        return true
    }

    /// Gives back a retry that was taken in vain.
    package mutating func giveBack(now: Duration) { add(1, now: now) }

    /// Whether no retry is missing, so that the bucket is like a new one.
    package func isFull(at now: Duration) -> Bool { tokens(at: now) >= budget.capacity }

    private mutating func add(_ amount: Double, now: Duration) {
        tokens = max(tokens, min(budget.capacity, tokens(at: now) + amount))
        lastChange = now
    }

    private func tokens(at now: Duration) -> Double {
        tokens + max(0, (now - lastChange) / .seconds(1)) * budget.perSecond
    }
}

/// The retries left of the budgets of a session.
package struct RetryLedger: Sendable {
    private var buckets: [Key: RetryBucket] = [:]
    /// The maximum number of entries. When it is reached, those of full buckets are removed, or else an arbitrary one.
    private static let maximumCount = 1_000

    private struct Key: Hashable {
        let origin: Origin
        let budget: RetryPolicy.Budget
    }

    /// Creates a ledger in which all buckets are full.
    package init() {}

    /// Adds the share of a first attempt.
    package mutating func deposit(_ url: URL, _ budget: RetryPolicy.Budget, now: Duration) {
        change(url, budget, now: now) { $0.deposit(now: now) }
    }

    /// Gives back a retry that was taken in vain.
    package mutating func giveBack(_ url: URL, _ budget: RetryPolicy.Budget, now: Duration) {
        change(url, budget, now: now) { $0.giveBack(now: now) }
    }

    /// Takes one retry; returns `false` if less than one is left.
    package mutating func withdraw(_ url: URL, _ budget: RetryPolicy.Budget, now: Duration) -> Bool {
        let key = Key(origin: Origin(url), budget: budget)
        if buckets[key] == nil, buckets.count >= Self.maximumCount {
            buckets = buckets.filter { !$0.value.isFull(at: now) }
            if buckets.count >= Self.maximumCount, let other = buckets.keys.first { buckets[other] = nil }
        }
        return buckets[key, default: RetryBucket(budget, now: now)].withdraw(now: now)
    }

    /// Adds to a bucket. One without an entry is full.
    private mutating func change(
        _ url: URL, _ budget: RetryPolicy.Budget, now: Duration, _ add: (inout RetryBucket) -> Void
    ) {
        guard !buckets.isEmpty else { return }
        let key = Key(origin: Origin(url), budget: budget)
        guard var bucket = buckets[key] else { return }
        add(&bucket)
        buckets[key] = bucket.isFull(at: now) ? nil : bucket
    }
}
