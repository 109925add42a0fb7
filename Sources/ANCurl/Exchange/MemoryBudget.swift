// SPDX-License-Identifier: MIT

import ANSystem
import Synchronization

/// The account of the bytes that wait in a session's buffers for slow readers and slow servers.
///
/// Each holder, which is the body of a response or of a request, has a share of two chunks: one in our buffer, and one
/// that libcurl keeps if it is paused. So it can always take a chunk if its buffer is empty, and none waits for another
/// one. A quarter of the budget is lent, less if the shares take more than half of it. The last quarter is left for what the
/// allocation of memory adds. A holder borrows at most as much as it leaves for others, so that those who do not read leave a part to
/// those who come later (Choudhury and Hahne, “Dynamic queue length thresholds for shared-memory packet switches”, 1998).
package struct MemoryAccount: Sendable {
    /// The budget in bytes.
    private let total: Int
    /// The maximum number of bytes that are received at once.
    package let chunk: Int
    /// The number of holders.
    package private(set) var holders = 0
    /// The number of bytes that are lent.
    package private(set) var lent = 0

    /// Creates an account. 1,024 holders have their shares within half of a budget of 16 MiB.
    package init(total: Int) {
        self.total = max(0, total)
        chunk = min(max(self.total / 4096, 4 << 10), 16 << 10)
    }

    package mutating func enter() { holders += 1 }

    /// Removes a holder that has borrowed nothing.
    package mutating func leave() { holders -= 1 }

    /// Lends bytes to a holder that has borrowed `before`. Returns whether it may borrow as many as requested; if not,
    /// nothing changes.
    package mutating func lend(_ count: Int, before: Int) -> Bool {
        let after = lent - before + count
        guard count <= before || count <= limit - after else { return false }
        lent = after
        return true
    }

    /// Notes that a holder that has borrowed `before` holds more than its share, or gives back, without asking.
    package mutating func settle(_ count: Int, before: Int) { lent += count - before }

    /// The number of bytes that may be lent.
    private var limit: Int {
        let (shares, isTooLarge) = holders.multipliedReportingOverflow(by: 2 * chunk)
        return isTooLarge ? 0 : max(0, total / 4 * 3 - max(total / 2, shares))
    }
}

/// The account of a session, which the loop, readers and sources use.
package struct MemoryBudget: Sendable {
    fileprivate let account: Lock<MemoryAccount>
    /// The maximum number of bytes that are received at once.
    package let chunk: Int

    package init(total: Int) {
        let account = MemoryAccount(total: total)
        chunk = account.chunk
        self.account = Lock(account)
    }

    /// The account at this moment.
    package var snapshot: MemoryAccount { account.withLock { $0 } }
}

/// A holder of a session's account. It leaves the account with its last reference.
///
/// Its owner calls it under a lock.
package final class MemoryShare: Sendable {
    private let budget: MemoryBudget
    /// The number of bytes that are borrowed. Written under the lock of the owner.
    private let borrowed = Atomic(0)

    package init(of budget: MemoryBudget) {
        self.budget = budget
        budget.account.withLock { $0.enter() }
    }

    deinit {
        budget.account.withLock { account in
            account.settle(0, before: borrowed.load(ordering: .relaxed))
            account.leave()
        }
    }

    /// The maximum number of bytes that are received at once.
    package var chunk: Int { budget.chunk }

    /// Returns whether the buffer may grow to a number of bytes.
    package func mayHold(_ count: Int) -> Bool {
        change(to: count) { $0.lend($1, before: $2) }
    }

    /// Notes the number of bytes in the buffer.
    package func hold(_ count: Int) {
        _ = change(to: count) { account, new, old in
            account.settle(new, before: old)
            return true
        }
    }

    private func change(to count: Int, by lend: (inout MemoryAccount, Int, Int) -> Bool) -> Bool {
        let (new, old) = (max(0, count - chunk), borrowed.load(ordering: .relaxed))
        guard new != old else { return true }
        guard budget.account.withLock({ lend(&$0, new, old) }) else { return false }
        borrowed.store(new, ordering: .relaxed)
        return true
    }
}
