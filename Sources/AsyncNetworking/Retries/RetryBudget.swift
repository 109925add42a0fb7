// SPDX-License-Identifier: MIT

import ANSystem

/// How many of the requests to one host may be retries, so that retries do not keep down a server that struggles.
///
/// A host begins with ``capacity`` retries. Each retry takes one; each new request brings back a part of one, and so does
/// time, up to the capacity. In the long run no more than one request in five is a retry, by default, beside one a second.
public struct RetryBudget: Hashable, Sendable {
    /// The most retries that can be saved up; 10 by default.
    public var capacity: Double
    /// What each request that is no retry brings; 0.2 by default.
    public var perRequest: Double
    /// What each second brings; 1 by default.
    public var perSecond: Double

    /// Creates a budget.
    public init(capacity: Double = 10, perRequest: Double = 0.2, perSecond: Double = 1) {
        self.capacity = capacity
        self.perRequest = perRequest
        self.perSecond = perSecond
    }
}

/// What is left of a host's budget.
package struct RetryBucket {
    package private(set) var retries: Double
    private var lastChange: Duration

    package init(_ budget: RetryBudget, now: Duration) {
        retries = budget.capacity
        lastChange = now
    }

    /// A request that is no retry.
    package mutating func deposit(_ budget: RetryBudget, now: Duration) {
        fill(budget, by: budget.perRequest, now: now)
    }

    /// A retry; false when there is none left.
    package mutating func withdraw(_ budget: RetryBudget, now: Duration) -> Bool {
        fill(budget, by: 0, now: now)
        guard retries >= 1 else { return false }
        retries -= 1
        return true
    }

    /// Whether forgetting the host would change nothing.
    package func isFull(_ budget: RetryBudget) -> Bool { retries >= budget.capacity }

    private mutating func fill(_ budget: RetryBudget, by amount: Double, now: Duration) {
        let seconds = max(0, (now - lastChange) / .seconds(1))
        retries = min(budget.capacity, retries + amount + seconds * budget.perSecond)
        lastChange = now
    }
}

/// The budgets of the hosts that a session speaks to.
final class RetryLedger: Sendable {
    private let buckets = Lock<[Origin: RetryBucket]>([:])
    /// Above so many hosts those with a full budget are forgotten, and then any.
    private static let maximumHosts = 1_000

    func deposit(_ host: Origin, _ budget: RetryBudget, now: Duration) {
        buckets.withLock { buckets in
            // A host without an entry has a full budget.
            guard var bucket = buckets[host] else { return }
            bucket.deposit(budget, now: now)
            buckets[host] = bucket.isFull(budget) ? nil : bucket
        }
    }

    func withdraw(_ host: Origin, _ budget: RetryBudget, now: Duration) -> Bool {
        buckets.withLock { buckets in
            if buckets[host] == nil, buckets.count >= Self.maximumHosts {
                buckets = buckets.filter { !$0.value.isFull(budget) }
                if buckets.count >= Self.maximumHosts, let other = buckets.keys.first { buckets[other] = nil }
            }
            return buckets[host, default: RetryBucket(budget, now: now)].withdraw(budget, now: now)
        }
    }
}
