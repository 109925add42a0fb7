// SPDX-License-Identifier: MIT

import ANCurl
import ANSystem
import AsyncNetworkingTesting
import Testing

@Suite struct DeadlineQueueTests {
    @Test func `an empty queue has nothing due`() {
        var queue = DeadlineQueue<String>()
        #expect(queue.first == nil)
        #expect(queue.popDue(at: MonotonicInstant(nanoseconds: .max)) == nil)
    }

    @Test func `an entry is due at its deadline, not before`() {
        var queue = DeadlineQueue<String>()
        queue.insert("a", at: MonotonicInstant(nanoseconds: 10))
        #expect(queue.first == MonotonicInstant(nanoseconds: 10))
        #expect(queue.popDue(at: MonotonicInstant(nanoseconds: 9)) == nil)
        #expect(queue.popDue(at: MonotonicInstant(nanoseconds: 10))?.key == "a")
        #expect(queue.popDue(at: MonotonicInstant(nanoseconds: 10)) == nil)
        #expect(queue.first == nil)
    }

    @Test func `a key may be there several times`() {
        var queue = DeadlineQueue<String>()
        for nanoseconds: Int64 in [3, 1, 2, 1] { queue.insert("a", at: MonotonicInstant(nanoseconds: nanoseconds)) }
        var deadlines: [Int64] = []
        while let entry = queue.popDue(at: MonotonicInstant(nanoseconds: 5)) {
            deadlines.append(entry.deadline.nanoseconds)
        }
        #expect(deadlines == [1, 1, 2, 3])
    }

    @Test(arguments: 0..<20)
    func `entries come in the order of a sorted list`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var queue = DeadlineQueue<Int>()
        var reference: [(deadline: Int64, key: Int)] = []
        var now: Int64 = 0
        for key in 0..<2000 {
            if Int.random(in: 0..<3, using: &random) > 0 {
                let deadline = now + Int64.random(in: 0...200, using: &random)
                queue.insert(key, at: MonotonicInstant(nanoseconds: deadline))
                reference.append((deadline, key))
            } else {
                now += Int64.random(in: 0...50, using: &random)
                var popped: [(deadline: Int64, key: Int)] = []
                while let entry = queue.popDue(at: MonotonicInstant(nanoseconds: now)) {
                    popped.append((entry.deadline.nanoseconds, entry.key))
                }
                let due = reference.filter { $0.deadline <= now }.map(\.deadline).sorted()
                #expect(popped.map(\.deadline) == due)
                #expect(Set(popped.map(\.key)) == Set(reference.filter { $0.deadline <= now }.map(\.key)))
                reference.removeAll { $0.deadline <= now }
            }
            #expect(queue.first?.nanoseconds == reference.map(\.deadline).min())
        }
    }
}
