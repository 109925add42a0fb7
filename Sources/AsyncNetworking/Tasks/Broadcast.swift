// SPDX-License-Identifier: MIT

import ANSystem

/// A multicast stream that yields either the newest value or all values to any number of readers.
///
/// If it keeps the newest value, each reader first receives that one, then newer ones as fast as it iterates, then the
/// end. A slow reader skips values but always receives the last one, and takes no memory for skipped ones. If it keeps
/// all values, each reader receives all of them from the first one on.
package final class Broadcast<Element: Sendable>: Sendable {
    private let state: Lock<State>

    private struct State {
        var core: BroadcastState<Element, CheckedContinuation<Void, Never>>
        var observers: [@Sendable (Element?) -> Void] = []
    }

    /// Creates a broadcast with initial values.
    package init(_ values: BroadcastValues<Element> = BroadcastValues()) {
        state = Lock(State(core: BroadcastState(values)))
    }

    /// A broadcast that has ended without values.
    fileprivate static var ended: Broadcast {
        let broadcast = Broadcast()
        broadcast.finish()
        return broadcast
    }

    /// Sends a value to all readers.
    package func send(_ element: Element) {
        let waiters = state.withLock { state in
            for observer in state.observers { observer(element) }
            return state.core.send(element)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Ends the stream.
    package func finish() {
        let waiters = state.withLock { state in
            for observer in state.observers { observer(nil) }
            state.observers = []
            return state.core.finish()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The newest value, or `nil` before the first one.
    package var latest: Element? {
        state.withLock { $0.core.latest }
    }

    /// The kept values, oldest first.
    var kept: [Element] {
        state.withLock { $0.core.values.kept }
    }

    /// Calls `observer` with the newest value, with each later one, and with `nil` at the end.
    ///
    /// It is called under the broadcast's lock, so that it receives values in order; it must not use the broadcast.
    func observe(_ observer: @escaping @Sendable (Element?) -> Void) {
        state.withLock { state in
            if let latest = state.core.latest { observer(latest) }
            if state.core.isFinished { observer(nil) } else { state.observers.append(observer) }
        }
    }

    /// Returns the next value after number `seen`, waiting if necessary; `nil` at the end, or if the calling task is
    /// cancelled.
    fileprivate func next(after seen: Int) async -> (Element, number: Int)? {
        while !Task.isCancelled {
            switch state.withLock({ $0.core.next(after: seen) }) {
            case .value(let element, let number): return (element, number)
            case .end: return nil
            case .wait:
                let ticket = state.withLock { $0.core.makeTicket() }
                await withTaskCancellationHandler {
                    await withCheckedContinuation { waiter in
                        let returned = state.withLock { state in
                            Task.isCancelled ? waiter : state.core.wait(waiter, ticket: ticket, after: seen)
                        }
                        returned?.resume()
                    }
                } onCancel: {
                    // If this runs before the continuation is stored, it finds none here, and the code above finds the
                    // task cancelled.
                    state.withLock { $0.core.removeWaiter(ticket) }?.resume()
                }
            }
        }
        return nil
    }
}

/// The values that a ``Broadcast`` keeps for later readers.
package enum BroadcastHistory: Hashable, Sendable {
    /// The newest value.
    case newest
    /// All values.
    case all
}

/// The kept values of a ``Broadcast`` and their numbers.
package struct BroadcastValues<Element> {
    private let history: BroadcastHistory
    /// The values before the newest, if all are kept.
    private var earlier: [Element] = []
    /// The newest value.
    package private(set) var latest: Element?
    private var count = 0
    package private(set) var isFinished = false

    /// Creates an empty collection of values.
    package init(keeping history: BroadcastHistory = .newest) {
        self.history = history
    }

    /// Adds a value; returns `false` after the end.
    package mutating func send(_ element: Element) -> Bool {
        guard !isFinished else { return false }
        if history == .all, let latest {
            // A task without incidents sends five events before its last.
            if earlier.isEmpty { earlier.reserveCapacity(5) }
            earlier.append(latest)
        }
        latest = element
        count += 1
        return true
    }

    /// Marks the end of the values.
    package mutating func finish() {
        isFinished = true
    }

    /// The kept values, oldest first.
    package var kept: [Element] { earlier + (latest.map { [$0] } ?? []) }

    /// Returns the first kept value with a number above `seen`; numbers start at 1.
    package func value(after seen: Int) -> (value: Element, number: Int)? {
        guard seen < count, let latest else { return nil }
        return history == .all && seen < earlier.count ? (earlier[seen], seen + 1) : (latest, count)
    }
}

extension BroadcastValues: Sendable where Element: Sendable {}

/// The values of a ``Broadcast``, and the readers waiting for the next one.
package struct BroadcastState<Element, Waiter> {
    package private(set) var values: BroadcastValues<Element>
    private var waiters: [UInt64: Waiter] = [:]
    private var lastTicket: UInt64 = 0

    /// Creates a state without waiting readers.
    package init(_ values: BroadcastValues<Element>) {
        self.values = values
    }

    /// The newest value.
    package var latest: Element? { values.latest }

    package var isFinished: Bool { values.isFinished }

    /// The next value for a reader.
    package enum NextValue {
        /// A value that the reader has not received yet.
        case value(Element, number: Int)
        /// No new value yet.
        case wait
        /// The end of the stream.
        case end
    }

    /// Adds a value, and returns the waiting readers to resume.
    package mutating func send(_ element: Element) -> [Waiter] {
        values.send(element) ? takeWaiters() : []
    }

    /// Marks the end, and returns the waiting readers to resume.
    package mutating func finish() -> [Waiter] {
        values.finish()
        return takeWaiters()
    }

    /// Returns the result for a reader that has received the values up to number `seen`; numbers start at 1.
    package func next(after seen: Int) -> NextValue {
        if let (value, number) = values.value(after: seen) { return .value(value, number: number) }
        return isFinished ? .end : .wait
    }

    /// Returns an identifier for one wait.
    package mutating func makeTicket() -> UInt64 {
        lastTicket += 1
        return lastTicket
    }

    /// Stores a waiting reader; returns it instead if there is something new already.
    package mutating func wait(_ waiter: Waiter, ticket: UInt64, after seen: Int) -> Waiter? {
        guard case .wait = next(after: seen) else { return waiter }
        waiters[ticket] = waiter
        return nil
    }

    /// Removes a waiting reader; returns `nil` if it was resumed or never stored.
    package mutating func removeWaiter(_ ticket: UInt64) -> Waiter? {
        waiters.removeValue(forKey: ticket)
    }

    private mutating func takeWaiters() -> [Waiter] {
        defer { waiters = [:] }
        return Array(waiters.values)
    }
}

extension BroadcastState: Sendable where Element: Sendable, Waiter: Sendable {}

/// A stream of a task's progress or events, which ends with the task.
///
/// A stream of progress yields the latest value first, then newer ones; a slow reader skips values, but never the last.
/// A stream of events yields every event from the first one on. Any number of readers may iterate a stream at any time.
/// The stream never throws: a task's error is thrown by its ``TransferTask/value``.
public struct BroadcastStream<Element: Sendable>: AsyncSequence, Sendable {
    /// The stream does not throw.
    public typealias Failure = Never

    let broadcast: Broadcast<Element>

    /// Creates a stream of the values of a broadcast.
    package init(broadcast: Broadcast<Element>) {
        self.broadcast = broadcast
    }

    /// Creates a stream of the values of a broadcast; without one, an empty stream.
    init(_ broadcast: Broadcast<Element>?) {
        self.broadcast = broadcast ?? .ended
    }

    /// Returns an iterator that starts at the latest value, or at the first event.
    public func makeAsyncIterator() -> Iterator {
        Iterator(broadcast: broadcast)
    }

    /// An iterator over the values until the task ends or the calling task is cancelled.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let broadcast: Broadcast<Element>
        private var seen = 0

        fileprivate init(broadcast: Broadcast<Element>) {
            self.broadcast = broadcast
        }

        /// Returns the next value, waiting for it if necessary; `nil` at the end, or if the calling task is cancelled.
        public mutating func next() async -> Element? {
            guard let (element, number) = await broadcast.next(after: seen) else { return nil }
            seen = number
            return element
        }
    }
}
