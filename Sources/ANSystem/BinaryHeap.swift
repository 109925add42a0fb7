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
