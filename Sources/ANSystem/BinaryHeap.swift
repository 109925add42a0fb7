// SPDX-License-Identifier: MIT

/// A priority queue. Adding an element and removing the smallest one take logarithmic time.
package struct BinaryHeap<Element: Comparable> {
    private var elements: [Element] = []

    /// The number of elements.
    package var count: Int { elements.count }

    /// Creates an empty heap.
    package init() {}

    /// Adds an element.
    package mutating func insert(_ element: Element) {
        elements.append(element)
        var child = elements.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard elements[child] < elements[parent] else { return }
            elements.swapAt(child, parent)
            child = parent
        }
    }

    /// The smallest element; `nil` if the heap is empty.
    package var first: Element? { elements.first }

    /// Removes and returns the smallest element; `nil` if the heap is empty.
    package mutating func popFirst() -> Element? {
        guard let last = elements.popLast() else { return nil }
        guard let first = elements.first else { return last }
        elements[0] = last
        sink(0)
        return first
    }

    /// Removes the elements that satisfy a condition, in linear time.
    package mutating func removeAll(where isRemoved: (Element) -> Bool) {
        elements.removeAll(where: isRemoved)
        for parent in (0..<elements.count / 2).reversed() { sink(parent) }
    }

    /// Moves an element down until neither of its children is smaller.
    private mutating func sink(_ start: Int) {
        var parent = start
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < elements.count && elements[child] < elements[smallest] {
                smallest = child
            }
            guard smallest != parent else { return }
            elements.swapAt(parent, smallest)
            parent = smallest
        }
    }
}

extension BinaryHeap: Sendable where Element: Sendable {}

/// Elements by rank, of which the one with the lowest rank is removed first, and each can be moved and removed.
///
/// Every operation takes logarithmic time (amortized).
package struct RankedQueue<Element: Hashable & Sendable, Rank: Comparable & Sendable>: Sendable {
    private var ranks: [Element: Rank] = [:]
    /// The elements with their ranks, also outdated ones, those of elements that were moved or removed, but not more than
    /// current ones.
    private var heap = BinaryHeap<Entry>()

    /// Creates an empty queue.
    package init() {}

    /// The elements, the one with the lowest rank first, which takes linearithmic time.
    package var elements: [Element] { ranks.sorted { $0.value < $1.value }.map(\.key) }

    /// The number of ranks that are kept, outdated ones included.
    package var rankCount: Int { heap.count }

    package var isEmpty: Bool { ranks.isEmpty }

    package func contains(_ element: Element) -> Bool { ranks[element] != nil }

    /// Returns the element with the lowest rank; `nil` if there is no element.
    package mutating func first() -> (element: Element, rank: Rank)? {
        while let entry = heap.first {
            if ranks[entry.element] == entry.rank { return (entry.element, entry.rank) }
            _ = heap.popFirst()
        }
        return nil
    }

    /// Adds an element, or moves one to another rank.
    package mutating func insert(_ element: Element, at rank: Rank) {
        ranks[element] = rank
        heap.insert(Entry(element: element, rank: rank))
        removeOutdated()
    }

    /// Removes an element, if it is there.
    package mutating func remove(_ element: Element) {
        ranks[element] = nil
        removeOutdated()
    }

    /// Removes and returns the element with the lowest rank; `nil` if there is no element.
    package mutating func popFirst() -> Element? {
        while let entry = heap.popFirst() {
            guard ranks[entry.element] == entry.rank else { continue }
            remove(entry.element)
            return entry.element
        }
        return nil
    }

    private mutating func removeOutdated() {
        guard heap.count > 2 * ranks.count else { return }
        heap.removeAll { ranks[$0.element] != $0.rank }
    }

    private struct Entry: Comparable, Sendable {
        let element: Element
        let rank: Rank

        static func < (left: Entry, right: Entry) -> Bool { left.rank < right.rank }
    }
}
