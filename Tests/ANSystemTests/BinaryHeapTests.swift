// SPDX-License-Identifier: MIT

import ANSystem
import Synchronization
import TestSupport
import Testing

@Suite struct BinaryHeapTests {
    private func drain<Element>(_ heap: inout BinaryHeap<Element>) -> [Element] {
        var elements: [Element] = []
        while let element = heap.popFirst() { elements.append(element) }
        return elements
    }

    @Test func `an empty heap returns no element`() {
        var heap = BinaryHeap<Int>()
        #expect(heap.popFirst() == nil)
    }

    @Test(arguments: 0...20)
    func `elements are removed in ascending order`(count: Int) {
        var random = SeededGenerator(seed: UInt64(count))
        let elements = (0..<count).map { _ in Int.random(in: 0..<10, using: &random) }
        var heap = BinaryHeap<Int>()
        for element in elements { heap.insert(element) }
        #expect(heap.count == count)
        #expect(drain(&heap) == elements.sorted())
    }

    @Test(arguments: 0...20)
    func `the rest is in order after some elements were removed`(count: Int) {
        var heap = BinaryHeap<Int>()
        for element in (0..<count).reversed() { heap.insert(element) }
        heap.removeAll { $0.isMultiple(of: 3) }
        #expect(drain(&heap) == (0..<count).filter { !$0.isMultiple(of: 3) })
    }

    /// An integer that counts its comparisons.
    private struct Counted: Comparable {
        static let comparisons = Atomic(0)
        let value: Int

        static func < (left: Counted, right: Counted) -> Bool {
            comparisons.add(1, ordering: .relaxed)
            return left.value < right.value
        }
    }

    @Test func `inserting and removing take logarithmic time`() {
        var heap = BinaryHeap<Counted>()
        for value in (0..<1024).reversed() { heap.insert(Counted(value: value)) }
        // A new element rises by at most ten levels.
        #expect(Counted.comparisons.load(ordering: .relaxed) <= 10 * 1024)
        _ = drain(&heap)
        // The last element sinks by at most ten levels, with two comparisons each.
        #expect(Counted.comparisons.load(ordering: .relaxed) <= 30 * 1024)
    }
}
