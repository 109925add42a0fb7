// SPDX-License-Identifier: MIT

/// Who may work: so many at the same time, by priority, and among those of one priority first come first served.
package struct TransferLine<Element: Sendable>: Sendable {
    private let limit: Int
    private var working = 0
    /// Who waits, the next one last.
    private var entries: [Entry] = []
    private var lastTicket: UInt64 = 0

    private struct Entry {
        let id: UInt64
        let priority: TransferPriority
        let ticket: UInt64
        let element: Element

        func comes(before other: Entry) -> Bool {
            (priority, other.ticket) > (other.priority, ticket)
        }
    }

    /// Creates a line for so many places; fewer than 1 counts as 1.
    package init(limit: Int) {
        self.limit = max(1, limit)
    }

    /// Joins the line.
    package mutating func join(_ element: Element, id: UInt64, priority: TransferPriority) {
        lastTicket += 1
        insert(Entry(id: id, priority: priority, ticket: lastTicket, element: element))
    }

    /// Leaves the line, if it is there.
    package mutating func leave(id: UInt64) {
        entries.removeAll { $0.id == id }
    }

    /// Takes another priority, and the place in line that is due to it.
    package mutating func move(id: UInt64, to priority: TransferPriority) {
        guard let index = entries.firstIndex(where: { $0.id == id }) else { return }
        let old = entries.remove(at: index)
        insert(Entry(id: id, priority: priority, ticket: old.ticket, element: old.element))
    }

    /// Somebody has stopped to work.
    package mutating func free() {
        working -= 1
    }

    /// The next one that may work, which counts as working from here on; nil when all places are taken, or nobody waits.
    package mutating func admit() -> Element? {
        guard working < limit, let next = entries.popLast() else { return nil }
        working += 1
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

/// How soon a task gets its turn among those that wait, from 0 to 1.
public struct TransferPriority: RawRepresentable, Hashable, Comparable, Sendable {
    /// The number.
    public let rawValue: Double

    /// Creates a priority; a number outside of 0 to 1 counts as the nearest one inside.
    public init(rawValue: Double) {
        self.rawValue = rawValue > 0 ? min(rawValue, 1) : 0
    }

    /// 0.25.
    public static let low = TransferPriority(rawValue: 0.25)
    /// 0.5, what tasks have unless told otherwise.
    public static let normal = TransferPriority(rawValue: 0.5)
    /// 0.75.
    public static let high = TransferPriority(rawValue: 0.75)

    /// Whether `left` has to wait for `right`.
    public static func < (left: TransferPriority, right: TransferPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}
