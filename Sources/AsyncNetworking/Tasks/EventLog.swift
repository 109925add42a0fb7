// SPDX-License-Identifier: MIT

/// The values of a stream in order, kept for readers that come later.
///
/// Each value has a number, starting at 1, by which a reader knows which values it has received. A value may replace
/// earlier ones: a late or slow reader then receives only the newest.
package struct EventLog<Element> {
    private var entries: [Entry] = []
    private var lastNumber = 0
    /// Whether the stream has ended.
    package private(set) var isFinished = false

    fileprivate struct Entry {
        let number: Int
        let element: Element
    }

    /// Creates an empty log.
    package init() {}

    /// The next value for a reader.
    package enum NextValue<Value> {
        /// A value that the reader has not received yet.
        case value(Value, number: Int)
        /// No new value yet.
        case wait
        /// The end of the stream.
        case end
    }

    /// The kept values, oldest first.
    package var elements: some BidirectionalCollection<Element> { entries.lazy.map(\.element) }

    /// Appends a value; returns `false` after the end.
    ///
    /// - Parameters:
    ///   - element: The value.
    ///   - isReplaced: Whether an earlier value is replaced; `nil`, the default, replaces none.
    @discardableResult
    package mutating func append(_ element: Element, replacing isReplaced: ((Element) -> Bool)? = nil) -> Bool {
        guard !isFinished else { return false }
        if let isReplaced { entries.removeAll { isReplaced($0.element) } }
        // A task without incidents sends six events, and the progress of each direction.
        if entries.isEmpty { entries.reserveCapacity(8) }
        lastNumber += 1
        entries.append(Entry(number: lastNumber, element: element))
        return true
    }

    /// Marks the end of the values.
    package mutating func finish() {
        isFinished = true
    }

    /// Returns the next value for a reader that has received the values up to number `seen` and is interested in those
    /// for which `select` returns a value.
    package func next<Value>(after seen: Int, _ select: (Element) -> Value?) -> NextValue<Value> {
        for entry in entries[index(after: seen)...] {
            if let value = select(entry.element) { return .value(value, number: entry.number) }
        }
        return isFinished ? .end : .wait
    }

    /// Returns the index of the first entry with a number above `seen`.
    private func index(after seen: Int) -> Int {
        guard seen > 0 else { return 0 }
        return entries.lastIndex { $0.number <= seen }.map { $0 + 1 } ?? 0
    }
}

extension EventLog.Entry: Sendable where Element: Sendable {}
extension EventLog: Sendable where Element: Sendable {}
extension EventLog.NextValue: Sendable where Value: Sendable {}
