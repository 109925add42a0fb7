// SPDX-License-Identifier: MIT

import ANCurl
import TestSupport
import Testing

@Suite struct MemoryAccountTests {
    @Test(
        arguments: [
            (-1, 4_096), (0, 4_096), (1 << 20, 4_096), (16 << 20, 4_096), (32 << 20, 8_192), (64 << 20, 16_384),
            (1 << 40, 16_384),
        ] as [(Int, Int)])
    func `the chunk follows from the budget`(total: Int, chunk: Int) {
        #expect(MemoryAccount(total: total).chunk == chunk)
    }

    @Test(
        arguments: [
            // Half of the quarter that is lent.
            (holders: 1, bytes: 131_072, isLent: true), (1, 131_073, false),
            // The shares take half of the budget, or more.
            (64, 131_072, true), (80, 65_536, true), (80, 65_537, false), (96, 1, false), (10_000, 1, false),
            (1, Int.max, false),
        ] as [(holders: Int, bytes: Int, isLent: Bool)])
    func `a holder borrows at most as much as it leaves`(holders: Int, bytes: Int, isLent: Bool) {
        var account = MemoryAccount(total: 1 << 20)
        for _ in 0..<holders { account.enter() }
        let outcome = account.lend(bytes, before: 0)
        #expect(outcome == isLent)
        #expect(account.lent == (isLent ? bytes : 0))
    }

    @Test func `who gives back is never refused`() {
        var account = MemoryAccount(total: 1 << 20)
        account.enter()
        account.settle(1 << 20, before: 0)
        let isMoreLent = account.lend((1 << 20) + 1, before: 1 << 20)
        #expect(!isMoreLent)
        let isLent = account.lend(1 << 19, before: 1 << 20)
        #expect(isLent && account.lent == 1 << 19)
    }

    @Test func `a share that is released gives back what it borrowed`() {
        let budget = MemoryBudget(total: 1 << 20)
        var shares = (0..<8).map { _ in MemoryShare(of: budget) }
        #expect(shares.allSatisfy { $0.mayHold(budget.chunk) })
        #expect(budget.snapshot.lent == 0)
        #expect(shares[0].mayHold(50_000))
        shares[1].hold(200_000)
        #expect(budget.snapshot.lent == 250_000 - 2 * budget.chunk)
        #expect(!shares[2].mayHold(50_000))
        shares[1].hold(0)
        #expect(shares[2].mayHold(50_000))
        shares.removeAll()
        #expect(budget.snapshot.lent == 0 && budget.snapshot.holders == 0)
    }

    /// Holders that come, receive, are read and go at random. A fifth of them is never read.
    @Test(arguments: 1...UInt64(rounds(300, few: 60)))
    func `what is held stays within the budget, and a holder that was read goes on`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let total = Int.random(in: 100_000...4_000_000, using: &random)
        let budget = MemoryBudget(total: total)
        let (chunk, most) = (budget.chunk, total / 2 / (2 * budget.chunk))
        var holders: [(share: MemoryShare, buffered: Int, isStuck: Bool)] = []
        for step in 0..<500 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0 where holders.count < most:
                holders.append((MemoryShare(of: budget), 0, step % 5 == 0))
            case 1 where !holders.isEmpty && step % 8 == 0:
                holders.remove(at: .random(in: holders.indices, using: &random))
            case 2:
                guard let index = holders.indices.randomElement(using: &random), !holders[index].isStuck else { break }
                holders[index].buffered = 0
                holders[index].share.hold(0)
                #expect(holders[index].share.mayHold(chunk))
            default:
                guard let index = holders.indices.randomElement(using: &random) else { break }
                let bytes = Int.random(in: 1...chunk, using: &random)
                if holders[index].share.mayHold(holders[index].buffered + bytes) { holders[index].buffered += bytes }
            }
            let lent = holders.reduce(0) { $0 + max(0, $1.buffered - chunk) }
            #expect(budget.snapshot.lent == lent && budget.snapshot.holders == holders.count)
            // With what libcurl keeps of each.
            #expect(holders.reduce(0) { $0 + $1.buffered + chunk } <= total)
        }
    }
}
