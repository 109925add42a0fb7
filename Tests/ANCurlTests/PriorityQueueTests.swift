// SPDX-License-Identifier: MIT

import ANCurl
import ANSystem
import AsyncNetworkingTesting
import Testing

@Suite struct PriorityQueueTests {
    private final class Item: PriorityQueueElement {
        let name: Int
        var queueIndex: Int?

        init(_ name: Int = 0) {
            self.name = name
        }
    }

    private func at(_ nanoseconds: Int64) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: nanoseconds)
    }

    @Test func `an empty queue has nothing due`() {
        var queue = PriorityQueue<Item, MonotonicInstant>()
        #expect(queue.first == nil)
        #expect(queue.popDue(at: at(.max)) == nil)
        queue.remove(Item())
        #expect(queue.count == 0)
    }

    @Test func `an object is due at its deadline, not before`() {
        var queue = PriorityQueue<Item, MonotonicInstant>()
        let item = Item()
        queue.insert(item, at: at(10))
        #expect(queue.first == at(10))
        #expect(queue.popDue(at: at(9)) == nil)
        #expect(queue.popDue(at: at(10)) === item)
        #expect(queue.popDue(at: at(10)) == nil)
        #expect(queue.first == nil)
    }

    @Test(
        arguments: [
            ([3, 1, 2, 1], 1), ([1, 3], 1), ([3, 1], 1), ([2, 2], 2),
        ] as [([Int64], Int64)])
    func `an object has one entry, at its earliest deadline`(deadlines: [Int64], earliest: Int64) {
        var queue = PriorityQueue<Item, MonotonicInstant>()
        let (item, other) = (Item(), Item())
        queue.insert(other, at: at(2))
        for deadline in deadlines { queue.insert(item, at: at(deadline)) }
        #expect(queue.count == 2)
        #expect(queue.first == at(min(earliest, 2)))
        queue.remove(other)
        #expect(queue.first == at(earliest))
        #expect(queue.popDue(at: at(5)) === item)
        #expect(queue.count == 0)
        queue.insert(item, at: at(9))
        #expect(queue.first == at(9))
    }

    @Test func `the queue retains an object until it is removed`() {
        var queue = PriorityQueue<Item, MonotonicInstant>()
        weak var item: Item?
        do {
            let new = Item()
            item = new
            queue.insert(Item(), at: at(1))
            queue.insert(new, at: at(2))
        }
        #expect(item != nil)
        if let item { queue.remove(item) }
        #expect(item == nil)
        #expect(queue.count == 1)
    }

    @Test(arguments: 0..<20)
    func `objects come in the order of a sorted list`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var queue = PriorityQueue<Item, MonotonicInstant>()
        var reference: [(item: Item, deadline: Int64)] = []
        var now: Int64 = 0
        for name in 0..<2000 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0...2:
                let item = Item(name)
                let deadline = now + Int64.random(in: 0...200, using: &random)
                queue.insert(item, at: at(deadline))
                reference.append((item, deadline))
            case 3:
                guard let index = reference.indices.randomElement(using: &random) else { continue }
                let deadline = now + Int64.random(in: 0...200, using: &random)
                queue.insert(reference[index].item, at: at(deadline))
                reference[index].deadline = min(deadline, reference[index].deadline)
            case 4:
                guard let index = reference.indices.randomElement(using: &random) else { continue }
                queue.remove(reference[index].item)
                reference.remove(at: index)
            default:
                now += Int64.random(in: 0...20, using: &random)
                var names: Set<Int> = []
                let due = reference.filter { $0.deadline <= now }
                for deadline in due.map(\.deadline).sorted() {
                    #expect(queue.first == at(deadline))
                    if let item = queue.popDue(at: at(now)) { names.insert(item.name) }
                }
                #expect(queue.popDue(at: at(now)) == nil)
                #expect(names == Set(due.map(\.item.name)))
                reference.removeAll { $0.deadline <= now }
            }
            #expect(queue.first?.nanoseconds == reference.map(\.deadline).min())
            #expect(queue.count == reference.count)
        }
    }
}
