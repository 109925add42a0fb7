// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import Testing

@Suite struct RetryBudgetTests {
    private static let budget = RetryPolicy.Budget(capacity: 3, perRequest: 0.5, perSecond: 0.25)
    private var bucket = RetryBucket(budget, now: .zero)

    /// Returns the number of consecutive retries that are granted.
    private mutating func granted(at now: Duration) -> Int {
        var count = 0
        while bucket.withdraw(now: now) { count += 1 }
        return count
    }

    @Test mutating func `a budget starts full, and is used up`() {
        #expect(granted(at: .zero) == 3)
        #expect(granted(at: .zero) == 0)
    }

    @Test mutating func `requests add fractions of a retry`() {
        _ = granted(at: .zero)
        bucket.deposit(now: .zero)
        #expect(granted(at: .zero) == 0)
        bucket.deposit(now: .zero)
        #expect(granted(at: .zero) == 1)
    }

    @Test mutating func `time adds retries, up to the capacity`() {
        _ = granted(at: .zero)
        #expect(granted(at: .seconds(3)) == 0)
        #expect(granted(at: .seconds(4)) == 1)
        #expect(!bucket.isFull(at: .seconds(15)) && bucket.isFull(at: .seconds(16)))
        #expect(granted(at: .seconds(1_000_000)) == 3)
        for _ in 0..<100 { bucket.deposit(now: .seconds(1_000_000)) }
        #expect(bucket.isFull(at: .seconds(1_000_000)))
        #expect(granted(at: .seconds(1_000_000)) == 3)
    }

    @Test mutating func `a retry that is given back can be taken again`() {
        _ = granted(at: .zero)
        bucket.giveBack(now: .zero)
        #expect(granted(at: .zero) == 1)
    }

    @Test mutating func `a clock that goes backwards removes nothing`() {
        bucket = RetryBucket(Self.budget, now: .seconds(10))
        #expect(granted(at: .seconds(1)) == 3)
    }

    @Test(arguments: [-1, 0, 0.5, -.infinity, .nan] as [Double])
    func `a budget below one grants no retry`(capacity: Double) {
        var bucket = RetryBucket(RetryPolicy.Budget(capacity: capacity), now: .zero)
        let isGranted = bucket.withdraw(now: .seconds(100))
        #expect(!isGranted)
    }

    @Test(arguments: [
        RetryPolicy.Budget(capacity: 1, perRequest: .nan, perSecond: .nan),
        RetryPolicy.Budget(capacity: 1, perRequest: 0, perSecond: -1),
    ])
    func `a rate that is not positive adds nothing`(budget: RetryPolicy.Budget) throws {
        var ledger = RetryLedger()
        let url = try url("https://a.example/")
        var isGranted: [Bool] = []
        for second in [0, 1, 100] {
            isGranted.append(ledger.withdraw(url, budget, now: .seconds(second)))
            ledger.deposit(url, budget, now: .seconds(second))
        }
        #expect(isGranted == [true, false, false])
    }

    @Test func `each origin and each budget has a count of its own`() throws {
        let larger = RetryPolicy.Budget(capacity: 10, perRequest: 0, perSecond: 1)
        let smaller = RetryPolicy.Budget(capacity: 2, perRequest: 0, perSecond: 0.5)
        let urls = [try url("https://a.example/x"), try url("https://a.example/y"), try url("https://b.example/")]
        var ledger = RetryLedger()
        func granted(_ url: URL, _ budget: RetryPolicy.Budget, at now: Duration) -> Int {
            (0..<100).count { _ in ledger.withdraw(url, budget, now: now) }
        }
        #expect(granted(urls[0], larger, at: .zero) == 10)
        #expect(granted(urls[0], smaller, at: .zero) == 2)
        #expect(granted(urls[1], larger, at: .zero) == 0)
        #expect(granted(urls[2], smaller, at: .zero) == 2)
        for _ in 0..<10 { ledger.deposit(urls[0], smaller, now: .seconds(4)) }
        #expect(granted(urls[1], larger, at: .seconds(4)) == 4)
        #expect(granted(urls[1], smaller, at: .seconds(4)) == 2)
        ledger.giveBack(urls[0], larger, now: .seconds(4))
        #expect(granted(urls[0], larger, at: .seconds(4)) == 1)
        #expect(granted(urls[0], smaller, at: .seconds(4)) == 0)
    }
}
