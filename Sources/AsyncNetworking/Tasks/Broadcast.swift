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

    /// Creates a broadcast without a value.
    package init(keeping: BroadcastHistory = .newest) {
        state = Lock(State(core: BroadcastState(keeping: keeping)))
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

/// The values of a ``Broadcast``, their numbers, and who waits for the next.
package struct BroadcastState<Element, Waiter> {
    private let history: BroadcastHistory
    private var kept: [Element] = []
    /// How many values there were before those that are kept.
    private var dropped = 0
    package private(set) var isFinished = false
    private var waiters: [UInt64: Waiter] = [:]
    private var lastTicket: UInt64 = 0

    /// Creates a state without a value.
    package init(keeping history: BroadcastHistory = .newest) {
        self.history = history
    }

    /// The newest value.
    package var latest: Element? { kept.last }

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
        guard !isFinished else { return [] }
        switch history {
        case .newest where !kept.isEmpty:
            kept[0] = element
            dropped += 1
        case .newest:
            kept.append(element)
        case .all:
            // So many does a task without incidents send.
            if kept.isEmpty { kept.reserveCapacity(6) }
            kept.append(element)
        }
        return takeWaiters()
    }

    /// Ends; returns the waiters to wake.
    package mutating func finish() -> [Waiter] {
        isFinished = true
        return takeWaiters()
    }

    /// What a reader finds that has seen the values up to number `seen`, the first being 1.
    package func next(after seen: Int) -> Answer {
        let index = max(0, seen - dropped)
        if index < kept.count { return .value(kept[index], number: dropped + index + 1) }
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
