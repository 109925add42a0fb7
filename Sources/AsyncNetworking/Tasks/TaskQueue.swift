// SPDX-License-Identifier: MIT

/// Admits at most `limit` elements at a time, by priority and in FIFO order within a priority.
package struct TaskQueue<Element: Sendable>: Sendable {
    private let limit: Int
    private var admitted = 0
    /// The waiting elements, the next one last.
    private var entries: [Entry] = []
    private var lastNumber: UInt64 = 0

    private struct Entry {
        let id: UInt64
        let priority: TransferPriority
        let number: UInt64
        let element: Element

        func comes(before other: Entry) -> Bool {
            (priority, other.number) > (other.priority, number)
        }
    }

    /// Creates a queue that admits at most `limit` elements at a time; a limit below 1 counts as 1.
    package init(limit: Int) {
        self.limit = max(1, limit)
    }

    /// Adds an element to the queue.
    package mutating func enqueue(_ element: Element, id: UInt64, priority: TransferPriority) {
        lastNumber += 1
        insert(Entry(id: id, priority: priority, number: lastNumber, element: element))
    }

    /// Removes a waiting element, if present.
    package mutating func remove(id: UInt64) {
        entries.removeAll { $0.id == id }
    }

    /// Changes the priority of a waiting element, which keeps its age within the new priority.
    package mutating func move(id: UInt64, to priority: TransferPriority) {
        guard let index = entries.firstIndex(where: { $0.id == id }) else { return }
        let old = entries.remove(at: index)
        insert(Entry(id: id, priority: priority, number: old.number, element: old.element))
    }

    /// Releases the slot of an admitted element.
    package mutating func release() {
        admitted -= 1
    }

    /// Admits and returns the next element; `nil` if all slots are taken or the queue is empty.
    package mutating func admit() -> Element? {
        guard admitted < limit, let next = entries.popLast() else { return nil }
        admitted += 1
        return next.element
    }

    private mutating func insert(_ entry: Entry) {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entry.comes(before: entries[middle]) { low = middle + 1 } else { high = middle }
        }
        entries.insert(entry, at: low)
    }
}

/// The priority of a task, from 0 to 1: if the number of tasks that may run is limited, those with a higher priority
/// start first.
///
/// | priority of | limit | equal priorities |
/// |---|---|---|
/// | a task of a session (``AnyTransferTask/priority``) | ``SessionConfiguration/maximumConcurrentTransfers``; without it, which is the default, priorities have no effect | start in the order in which they were resumed |
/// | a download of an `ImageDownloader` (`AsyncNetworkingImages`) | its `maximumActiveDownloads` | start in its `order`: in that of the requests by default, or in the reverse order with `lifo` |
///
/// A priority does not affect tasks that are running, nor the order in which they get connections, and is not sent to
/// servers.
public struct TransferPriority: RawRepresentable, Hashable, Comparable, Sendable {
    /// The priority, from 0 (started last) to 1 (started first); 0.5 for a task by default. Values outside of that
    /// range do not occur.
    public let rawValue: Double

    /// Creates a priority; a value outside of 0 to 1 is clamped, and NaN counts as 0.
    public init(rawValue: Double) {
        self.rawValue = rawValue > 0 ? min(rawValue, 1) : 0
    }

    /// A priority of 0.25: among waiting tasks, those with it start after those with the default.
    public static let low = TransferPriority(rawValue: 0.25)
    /// A priority of 0.5, the default of tasks.
    public static let normal = TransferPriority(rawValue: 0.5)
    /// A priority of 0.75: among waiting tasks, those with it start before those with the default.
    public static let high = TransferPriority(rawValue: 0.75)

    /// Whether the left priority is lower than the right one.
    public static func < (left: TransferPriority, right: TransferPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}
