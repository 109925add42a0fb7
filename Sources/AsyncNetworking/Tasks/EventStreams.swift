// SPDX-License-Identifier: MIT

import ANSystem

/// The values of a stream in order, kept for readers that come later.
///
/// Each value has a number, starting at 1, by which a reader knows which values it has received. A value may replace
/// an earlier one: a late or slow reader then receives only the newest. Of values that are details, the newest are kept,
/// and the newest of each kind.
package struct EventLog<Element> {
    private var entries: [Entry] = []
    private var detailCount = 0
    /// The number of the newest value; 0 before the first.
    package private(set) var lastNumber = 0
    /// Whether the stream has ended.
    package private(set) var isFinished = false

    fileprivate struct Entry {
        var number: Int
        var element: Element
        /// The kind of a detail; `nil` if it is none.
        let detail: Int?
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
    ///   - detail: The kind of a value that is kept only as one of the newest ``keptDetails``, or as the newest one of
    ///     this kind; `nil`, the default, for another value.
    ///   - isReplaced: Whether an earlier value is replaced, of which the newest is; `nil`, the default, replaces none.
    @discardableResult
    package mutating func append(
        _ element: Element, detail: Int? = nil, replacing isReplaced: ((Element) -> Bool)? = nil
    ) -> Bool {
        guard !isFinished else { return false }
        // Looks at the values since then only, however many there are.
        if let isReplaced, let index = entries.lastIndex(where: { isReplaced($0.element) }) {
            entries.remove(at: index)
        }
        if detail != nil { countDetail() }
        // A task without incidents sends six events, and the progress of each direction.
        if entries.isEmpty { entries.reserveCapacity(8) }
        lastNumber += 1
        entries.append(Entry(number: lastNumber, element: element, detail: detail))
        return true
    }

    /// Changes the newest value in place; the readers receive it again if `body` returns `true`. Has no effect before the
    /// first value and after the end.
    package mutating func changeNewest(_ body: (inout Element) -> Bool) {
        guard !isFinished, !entries.isEmpty, body(&entries[entries.count - 1].element) else { return }
        lastNumber += 1
        entries[entries.count - 1].number = lastNumber
    }

    /// Removes the oldest details when there are twice as many as are kept, so that this is rare.
    private mutating func countDetail() {
        detailCount += 1
        guard detailCount > 2 * Self.keptDetails else { return }
        // The newest one is appended afterwards.
        var surplus = detailCount - Self.keptDetails
        var newest: [Int: Int] = [:]
        for entry in entries { if let kind = entry.detail { newest[kind] = entry.number } }
        entries.removeAll { entry in
            guard let kind = entry.detail, surplus > 0, newest[kind] != entry.number else { return false }
            surplus -= 1
            return true
        }
        detailCount = Self.keptDetails
    }

    /// The number of details that are kept in any case; up to twice as many may be.
    package static var keptDetails: Int { 256 }

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

/// A multicast stream that yields the newest value to any number of readers.
///
/// Each reader first receives the newest value, then newer ones as fast as it iterates, then the end. A slow reader
/// skips values but always receives the last one, and takes no memory for skipped ones.
package final class Broadcast<Element: Sendable>: Sendable {
    private let state = Lock(State())

    private struct State: Sendable {
        var log = EventLog<Element>()
        var waiters = Waiters<CheckedContinuation<Void, Never>>()
    }

    /// Creates a stream without a value.
    package init() {}

    /// A stream of the values for one reader.
    ///
    /// The stream keeps the broadcast alive.
    package var stream: BroadcastStream<Element> { stream { $0 } }

    /// A stream for one reader, of what `select` returns for the values, except `nil`.
    func stream<Selected>(_ select: @escaping @Sendable (Element) -> Selected?) -> BroadcastStream<Selected> {
        BroadcastStream { [self] seen in await state.next(in: \.log, among: \.waiters, after: seen, select) }
    }

    /// Sends a value to all readers.
    package func send(_ element: Element) {
        update { $0.append(element) { _ in true } }
    }

    /// Changes the newest value; the readers receive it again if `body` returns `true`.
    func change(_ body: (inout Element) -> Bool) {
        update { $0.changeNewest(body) }
    }

    /// Ends the stream.
    package func finish() {
        update { $0.finish() }
    }

    private func update(_ body: (inout EventLog<Element>) -> Void) {
        state.change { state in (body(&state.log), resuming: state.waiters.takeAll()) }
    }
}

/// A stream that any number of readers may iterate at any time, each with its own position.
///
/// Streams report the progress and events of a task, the progress of a ``SessionTaskGroup``, the states of an
/// ``EventSource``, and, in other modules, those of images and of network activity:
///
/// | stream | values | a slow reader |
/// |---|---|---|
/// | ``AnySessionTask/events`` | all events, from the first one on | receives all of them, except outdated ones |
/// | any other | the latest value first, then newer ones | skips values, but never the last |
///
/// The stream of a task, a group or an event source ends with it. Cancelling the task that reads a stream ends only
/// that iteration; the task, group or source continues. A stream never throws: the error of a task is thrown by its
/// ``SessionTask/value``.
public struct BroadcastStream<Element: Sendable>: AsyncSequence, Sendable {
    /// Returns the next value for a reader that has received those up to a number, and its own number; `nil` at the
    /// end, or if the calling task is cancelled.
    typealias Source = @Sendable (_ seen: Int) async -> (Element, number: Int)?

    private let source: Source

    init(_ source: @escaping Source) {
        self.source = source
    }

    /// Returns the stream, which keeps an object as long as it is read.
    func keeping(_ object: some AnyObject & Sendable) -> BroadcastStream {
        BroadcastStream { [source] seen in
            defer { withExtendedLifetime(object) {} }
            return await source(seen)
        }
    }

    /// Returns an iterator that starts at the latest value or, for the events of a task, at the first one, even if the
    /// stream has ended.
    public func makeAsyncIterator() -> Iterator {
        Iterator(source: source)
    }

    /// An iterator over the values until the stream ends or the calling task is cancelled.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let source: Source
        private var seen = 0

        fileprivate init(source: @escaping Source) {
            self.source = source
        }

        /// Returns the next value, waiting for it if necessary; `nil` at the end, or if the calling task is cancelled.
        public mutating func next() async -> Element? {
            guard let (element, number) = await source(seen) else { return nil }
            seen = number
            return element
        }
    }
}

extension Lock {
    /// Waits for the next value of a log; see ``BroadcastStream/Source``.
    func next<Element, Selected>(
        in log: any KeyPath<Value, EventLog<Element>> & Sendable, among waiters: WaitersPath, after seen: Int,
        _ select: (Element) -> Selected?
    ) async -> (Selected, number: Int)? {
        let next = await wait(among: waiters) { value -> EventLog<Element>.NextValue<Selected>? in
            let next = value[keyPath: log].next(after: seen, select)
            return if case .wait = next { nil } else { next }
        }
        return if case .value(let value, let number) = next { (value, number) } else { nil }
    }
}
