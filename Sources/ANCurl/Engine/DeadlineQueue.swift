// SPDX-License-Identifier: MIT

package import ANSystem

/// A priority queue of keys ordered by deadline, implemented as a binary heap.
///
/// Postponing a deadline does not update its entry. When an entry is removed, the caller checks the current deadline
/// and inserts the key again if that is in the future; so receiving a byte costs nothing here.
package struct DeadlineQueue<Key> {
    private var heap: [(deadline: MonotonicInstant, key: Key)] = []

    /// The earliest deadline.
    package var first: MonotonicInstant? { heap.first?.deadline }

    /// Creates an empty queue.
    package init() {}

    /// Inserts a key.
    package mutating func insert(_ key: Key, at deadline: MonotonicInstant) {
        heap.append((deadline, key))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].deadline < heap[parent].deadline else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// Removes and returns the entry with the earliest deadline, if that has passed; otherwise returns `nil`.
    package mutating func popDue(at now: MonotonicInstant) -> (deadline: MonotonicInstant, key: Key)? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink()
        }
        return first
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].deadline < heap[smallest].deadline {
                smallest = child
            }
            guard smallest != parent else { return }
            heap.swapAt(parent, smallest)
            parent = smallest
        }
    }
}
