// SPDX-License-Identifier: MIT

/// An object that a ``PriorityQueue`` holds, in one queue at a time.
package protocol PriorityQueueElement: AnyObject {
    /// The position in the queue's heap; `nil` if the object is not in a queue. Maintained by the queue.
    var queueIndex: Int? { get set }
}

/// A priority queue of objects, such as one ordered by deadline, implemented as a binary heap.
///
/// Postponing a deadline does not update its entry. When an entry is removed, the caller checks the current deadline
/// and inserts the object again if that is in the future; so receiving a byte costs nothing here. Each object has one
/// entry at most, and knows its position, so that it can be removed when it is finished.
package struct PriorityQueue<Element: PriorityQueueElement, Deadline: Comparable> {
    private var heap: [Entry] = []

    private struct Entry {
        let deadline: Deadline
        let element: Element
    }

    /// The earliest deadline.
    package var first: Deadline? { heap.first?.deadline }

    /// The object with the earliest deadline.
    package var firstElement: Element? { heap.first?.element }

    /// The number of objects.
    package var count: Int { heap.count }

    /// Creates an empty queue.
    package init() {}

    /// Inserts an object, unless it is in the queue with this deadline or an earlier one.
    package mutating func insert(_ element: Element, at deadline: Deadline) {
        let entry = Entry(deadline: deadline, element: element)
        if let index = element.queueIndex {
            if deadline < heap[index].deadline { rise(entry, from: index) }
        } else {
            heap.append(entry)
            rise(entry, from: heap.count - 1)
        }
    }

    /// Removes an object, if it is in the queue.
    package mutating func remove(_ element: Element) {
        guard let index = element.queueIndex else { return }
        element.queueIndex = nil
        let last = heap.removeLast()
        guard index < heap.count else { return }
        if last.deadline < heap[index].deadline { rise(last, from: index) } else { sink(last, from: index) }
    }

    /// Removes and returns the object with the earliest deadline, if that has passed; otherwise returns `nil`.
    package mutating func popDue(at now: Deadline) -> Element? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        remove(first.element)
        return first.element
    }

    /// Stores an entry at a position or closer to the root.
    private mutating func rise(_ entry: Entry, from index: Int) {
        var index = index
        while index > 0 {
            let parent = (index - 1) / 2
            guard entry.deadline < heap[parent].deadline else { break }
            store(heap[parent], at: index)
            index = parent
        }
        store(entry, at: index)
    }

    /// Stores an entry at a position or farther from the root.
    private mutating func sink(_ entry: Entry, from index: Int) {
        var index = index
        while true {
            var child = 2 * index + 1
            if child + 1 < heap.count, heap[child + 1].deadline < heap[child].deadline { child += 1 }
            guard child < heap.count, heap[child].deadline < entry.deadline else { break }
            store(heap[child], at: index)
            index = child
        }
        store(entry, at: index)
    }

    private mutating func store(_ entry: Entry, at index: Int) {
        heap[index] = entry
        entry.element.queueIndex = index
    }
}
