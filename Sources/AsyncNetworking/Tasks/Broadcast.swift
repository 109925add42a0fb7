// SPDX-License-Identifier: MIT

import ANSystem

/// Something that is told to any number of readers: the latest value of what changes, or everything that happens.
///
/// Of values, each reader first hears the latest, then each newer one it is fast enough for, then the end. A reader that is
/// slow costs nothing: values it misses are replaced by newer ones; the last is never missed. Of everything, each reader
/// hears all from the beginning.
package final class Broadcast<Element: Sendable>: Sendable {
    private let state: Lock<State>

    private struct State {
        var core: BroadcastState<Element, CheckedContinuation<Void, Never>>
        var observers: [@Sendable (Element?) -> Void] = []
    }

    /// Creates a broadcast, with values that there are already.
    package init(_ values: BroadcastValues<Element> = BroadcastValues()) {
        state = Lock(State(core: BroadcastState(values)))
    }

    /// Publishes a value.
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

    /// The latest value.
    package var latest: Element? {
        state.withLock { $0.core.latest }
    }

    /// All that is kept, the oldest first.
    var kept: [Element] {
        state.withLock { $0.core.values.kept }
    }

    /// Calls `observer` with the latest value, with each newer one, and with nil at the end.
    ///
    /// It is called under the broadcast's lock, so that it hears values in their order: it must not use the broadcast.
    func observe(_ observer: @escaping @Sendable (Element?) -> Void) {
        state.withLock { state in
            if let latest = state.core.latest { observer(latest) }
            if state.core.isFinished { observer(nil) } else { state.observers.append(observer) }
        }
    }

    /// The next value after the one numbered `seen`; nil at the end, or when the calling task is cancelled.
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
                    // Before the waiter is there it is not found here, and finds that the task is cancelled.
                    state.withLock { $0.core.removeWaiter(ticket) }?.resume()
                }
            }
        }
        return nil
    }
}

/// What a ``Broadcast`` keeps for readers that come later.
package enum BroadcastHistory: Hashable, Sendable {
    /// The newest value.
    case newest
    /// All values.
    case all
}

/// The values of a ``Broadcast``, and their numbers.
package struct BroadcastValues<Element> {
    private let history: BroadcastHistory
    /// Those before the newest, where all are kept.
    private var earlier: [Element] = []
    /// The newest value.
    package private(set) var latest: Element?
    private var count = 0
    package private(set) var isFinished = false

    /// Creates values of which there is none yet.
    package init(keeping history: BroadcastHistory = .newest) {
        self.history = history
    }

    /// Takes a new value; false after the end.
    package mutating func send(_ element: Element) -> Bool {
        guard !isFinished else { return false }
        if history == .all, let latest {
            // So many does a task without incidents send before its last.
            if earlier.isEmpty { earlier.reserveCapacity(5) }
            earlier.append(latest)
        }
        latest = element
        count += 1
        return true
    }

    /// Ends.
    package mutating func finish() {
        isFinished = true
    }

    /// All that is kept, the oldest first.
    package var kept: [Element] { earlier + (latest.map { [$0] } ?? []) }

    /// The first value that is kept and has a number above `seen`, the first of all being 1.
    package func value(after seen: Int) -> (value: Element, number: Int)? {
        guard seen < count, let latest else { return nil }
        return history == .all && seen < earlier.count ? (earlier[seen], seen + 1) : (latest, count)
    }
}

extension BroadcastValues: Sendable where Element: Sendable {}

/// The values of a ``Broadcast``, and who waits for the next.
package struct BroadcastState<Element, Waiter> {
    package private(set) var values: BroadcastValues<Element>
    private var waiters: [UInt64: Waiter] = [:]
    private var lastTicket: UInt64 = 0

    /// Creates a state without waiters.
    package init(_ values: BroadcastValues<Element>) {
        self.values = values
    }

    /// The newest value.
    package var latest: Element? { values.latest }

    package var isFinished: Bool { values.isFinished }

    /// What a reader finds.
    package enum Answer {
        /// A value that it has not seen.
        case value(Element, number: Int)
        /// Nothing new yet.
        case wait
        /// The end.
        case end
    }

    /// Takes a new value; returns the waiters to wake.
    package mutating func send(_ element: Element) -> [Waiter] {
        values.send(element) ? takeWaiters() : []
    }

    /// Ends; returns the waiters to wake.
    package mutating func finish() -> [Waiter] {
        values.finish()
        return takeWaiters()
    }

    /// What a reader finds that has seen the values up to number `seen`, the first being 1.
    package func next(after seen: Int) -> Answer {
        if let (value, number) = values.value(after: seen) { return .value(value, number: number) }
        return isFinished ? .end : .wait
    }

    /// A number for one wait.
    package mutating func makeTicket() -> UInt64 {
        lastTicket += 1
        return lastTicket
    }

    /// Leaves a waiter; it comes back when there is something new already.
    package mutating func wait(_ waiter: Waiter, ticket: UInt64, after seen: Int) -> Waiter? {
        guard case .wait = next(after: seen) else { return waiter }
        waiters[ticket] = waiter
        return nil
    }

    /// Takes a waiter back; nil when it was woken, or never left.
    package mutating func removeWaiter(_ ticket: UInt64) -> Waiter? {
        waiters.removeValue(forKey: ticket)
    }

    private mutating func takeWaiters() -> [Waiter] {
        defer { waiters = [:] }
        return Array(waiters.values)
    }
}

extension BroadcastState: Sendable where Element: Sendable, Waiter: Sendable {}

/// What is told of a task: of its progress the latest value first, then newer ones; of its events all; then the end.
///
/// Any number of readers may iterate it, at any time; a slow one skips values of progress but never the last, and no event.
public struct ProgressStream<Element: Sendable>: AsyncSequence, Sendable {
    /// Transfers fail in their values, not here.
    public typealias Failure = Never

    let broadcast: Broadcast<Element>

    /// Creates a stream of what a broadcast sends.
    package init(broadcast: Broadcast<Element>) {
        self.broadcast = broadcast
    }

    /// Starts to read, from the latest value on, or from the first event.
    public func makeAsyncIterator() -> Iterator {
        Iterator(broadcast: broadcast)
    }

    /// Yields values until the transfer has ended, or the calling task is cancelled.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let broadcast: Broadcast<Element>
        private var seen = 0

        fileprivate init(broadcast: Broadcast<Element>) {
            self.broadcast = broadcast
        }

        /// The next value; nil at the end.
        public mutating func next() async -> Element? {
            guard let (element, number) = await broadcast.next(after: seen) else { return nil }
            seen = number
            return element
        }
    }
}
