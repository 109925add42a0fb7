// SPDX-License-Identifier: MIT

import AsyncNetworking
import Testing

@Suite struct RetryBudgetTests {
    private let budget = RetryPolicy.Budget(capacity: 3, perRequest: 0.5, perSecond: 0.25)

    /// Returns the number of consecutive retries that are granted.
    private func granted(_ bucket: inout RetryBucket, at now: Duration) -> Int {
        var count = 0
        while bucket.withdraw(budget, now: now) { count += 1 }
        return count
    }

    @Test func `a budget starts full, and is used up`() {
        var bucket = RetryBucket(budget, now: .zero)
        #expect(granted(&bucket, at: .zero) == 3)
        #expect(granted(&bucket, at: .zero) == 0)
    }

    @Test func `requests add fractions of a retry`() {
        var bucket = RetryBucket(budget, now: .zero)
        _ = granted(&bucket, at: .zero)
        bucket.deposit(budget, now: .zero)
        #expect(granted(&bucket, at: .zero) == 0)
        bucket.deposit(budget, now: .zero)
        #expect(granted(&bucket, at: .zero) == 1)
    }

    @Test func `time adds retries, up to the capacity`() {
        var bucket = RetryBucket(budget, now: .zero)
        _ = granted(&bucket, at: .zero)
        #expect(granted(&bucket, at: .seconds(3)) == 0)
        #expect(granted(&bucket, at: .seconds(4)) == 1)
        #expect(granted(&bucket, at: .seconds(1_000_000)) == 3)
        for _ in 0..<100 { bucket.deposit(budget, now: .seconds(1_000_000)) }
        #expect(bucket.isFull)
        #expect(granted(&bucket, at: .seconds(1_000_000)) == 3)
    }

    @Test func `a clock that goes backwards removes nothing`() {
        var bucket = RetryBucket(budget, now: .seconds(10))
        #expect(granted(&bucket, at: .seconds(1)) == 3)
    }

    @Test(arguments: [-1, 0, 0.5, -.infinity, .nan] as [Double])
    func `a budget below one grants no retry`(capacity: Double) {
        let budget = RetryPolicy.Budget(capacity: capacity)
        var bucket = RetryBucket(budget, now: .zero)
        let isGranted = bucket.withdraw(budget, now: .seconds(100))
        #expect(!isGranted)
    }

    @Test func `a policy with a smaller budget does not refill the count that it shares`() {
        let (whole, small) = (
            RetryPolicy.Budget(capacity: 10, perRequest: 0, perSecond: 0), RetryPolicy.Budget(capacity: 0)
        )
        var bucket = RetryBucket(whole, now: .zero)
        for _ in 0..<9 { _ = bucket.withdraw(whole, now: .zero) }
        bucket.deposit(small, now: .seconds(1))
        #expect(bucket.tokens == 1)
        #expect(!bucket.isFull)
    }

    @Test func `a policy with a larger budget adds to the count of one that began it`() {
        let (small, whole) = (
            RetryPolicy.Budget(capacity: 1, perRequest: 0, perSecond: 0),
            RetryPolicy.Budget(capacity: 10, perRequest: 0, perSecond: 0)
        )
        var bucket = RetryBucket(small, now: .zero)
        let isFirst = bucket.withdraw(small, now: .zero)
        #expect(isFirst && bucket.tokens == 0)
        bucket.deposit(whole, now: .zero)
        #expect(bucket.tokens == 9)
    }

    @Test func `a policy with a smaller budget takes none of the time of another one`() {
        let whole = RetryPolicy.Budget(capacity: 10, perRequest: 0, perSecond: 1)
        let small = RetryPolicy.Budget(capacity: 0, perRequest: 0, perSecond: 0)
        var bucket = RetryBucket(whole, now: .zero)
        for _ in 0..<10 { _ = bucket.withdraw(whole, now: .zero) }
        for tenth in 1...30 { bucket.deposit(small, now: .milliseconds(100 * tenth)) }
        #expect(abs(bucket.tokens - 3) < 0.001)
        let (isForSmall, isForWhole) = (
            bucket.withdraw(small, now: .seconds(3)), bucket.withdraw(whole, now: .seconds(3))
        )
        #expect(!isForSmall && isForWhole)
    }
}
