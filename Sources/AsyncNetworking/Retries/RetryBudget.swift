// SPDX-License-Identifier: MIT

import FoundationEssentials

extension RetryPolicy {
    /// A limit on the share of retries among the requests of a session to one origin (scheme, host and port), so that
    /// retries do not overload a server that is recovering. It takes effect as ``RetryPolicy/budget``.
    ///
    /// It is a token bucket for each origin, which starts with `capacity` retries. Each retry takes one; each first attempt
    /// adds `perRequest`, and each second `perSecond`, up to the capacity. With the defaults, at most one retry for every
    /// five requests is permitted in the long run, plus one each second.
    ///
    /// Only requests with a policy that permits retries and has a budget count as first attempts. A session keeps one count
    /// for each origin, which requests with policies of their own share. It keeps at most 1,000 counts below their
    /// capacity; beyond that, an arbitrary one starts anew.
    public struct Budget: Hashable, Sendable {
        /// The maximum number of retries that a host can accumulate; 10 by default.
        package var capacity: Double
        /// The number of retries that each first attempt adds; 0.2 by default.
        package var perRequest: Double
        /// The number of retries that each second adds; 1 by default.
        package var perSecond: Double

        /// Creates a budget for each origin.
        ///
        /// - Parameters:
        ///   - capacity: The maximum number of retries that an origin can accumulate, and with which it starts; 10 by
        ///     default. Below 1, no retry is permitted. Fractions accumulate: a retry takes one whole.
        ///   - perRequest: The number of retries that each first attempt adds; 0.2 by default, 0 for none.
        ///   - perSecond: The number of retries that each second adds; 1 by default, 0 for none.
        public init(capacity: Double = 10, perRequest: Double = 0.2, perSecond: Double = 1) {
            self.capacity = capacity
            self.perRequest = perRequest
            self.perSecond = perSecond
        }
    }
}

/// The remaining budget of one host.
package struct RetryBucket: Sendable {
    package private(set) var tokens: Double
    /// The largest capacity of the policies that share the count, and the largest number of retries that one adds each
    /// second.
    private var capacity, perSecond: Double
    private var lastChange: Duration

    package init(_ budget: RetryPolicy.Budget, now: Duration) {
        tokens = budget.capacity
        capacity = budget.capacity
        perSecond = budget.perSecond
        lastChange = now
    }

    /// Adds the share of a first attempt.
    package mutating func deposit(_ budget: RetryPolicy.Budget, now: Duration) {
        fill(budget, by: budget.perRequest, now: now)
    }

    /// Takes one retry; returns `false` if less than one is left.
    package mutating func withdraw(_ budget: RetryPolicy.Budget, now: Duration) -> Bool {
        fill(budget, by: 0, now: now)
        guard tokens >= 1, budget.capacity >= 1 else { return false }
        tokens -= 1
        return true
    }

    /// Whether the budget is full, so that the host's entry can be removed without effect.
    package var isFull: Bool { tokens >= capacity }

    private mutating func fill(_ budget: RetryPolicy.Budget, by amount: Double, now: Duration) {
        let seconds = max(0, (now - lastChange) / .seconds(1))
        tokens = max(tokens, min(capacity, tokens + seconds * perSecond))
        // A policy with a smaller capacity takes nothing away.
        tokens = max(tokens, min(budget.capacity, tokens + amount))
        // A policy with a larger capacity adds to the count of one that began it.
        if budget.capacity > capacity { (tokens, capacity) = (tokens + budget.capacity - capacity, budget.capacity) }
        perSecond = max(perSecond, budget.perSecond)
        lastChange = now
    }
}

/// The remaining budgets of the hosts of a session.
struct RetryLedger: Sendable {
    private var buckets: [Origin: RetryBucket] = [:]
    /// The maximum number of entries. When it is reached, those with a full budget are removed, or else an arbitrary
    /// one.
    private static let maximumHosts = 1_000

    mutating func deposit(_ url: URL, _ budget: RetryPolicy.Budget, now: Duration) {
        // A host without an entry has a full budget.
        guard !buckets.isEmpty else { return }
        let host = Origin(url)
        guard var bucket = buckets[host] else { return }
        bucket.deposit(budget, now: now)
        buckets[host] = bucket.isFull ? nil : bucket
    }

    mutating func withdraw(_ url: URL, _ budget: RetryPolicy.Budget, now: Duration) -> Bool {
        let host = Origin(url)
        if buckets[host] == nil, buckets.count >= Self.maximumHosts {
            buckets = buckets.filter { !$0.value.isFull }
            if buckets.count >= Self.maximumHosts, let other = buckets.keys.first { buckets[other] = nil }
        }
        return buckets[host, default: RetryBucket(budget, now: now)].withdraw(budget, now: now)
    }
}
