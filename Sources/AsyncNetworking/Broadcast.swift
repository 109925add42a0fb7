// SPDX-License-Identifier: MIT

import ANSystem

/// The latest value of something that changes, for any number of readers.
///
/// Each reader first hears the latest value, then each newer one it is fast enough for, then the end. A reader that is slow
/// costs nothing: values it misses are replaced by newer ones; the last is never missed.
package final class Broadcast<Element: Sendable>: Sendable {
    private let state = Lock(BroadcastState<Element, CheckedContinuation<Void, Never>>())

    /// Creates a broadcast without a value.
    package init() {}

    /// Publishes a value.
    package func send(_ element: Element) {
        for waiter in state.withLock({ $0.send(element) }) { waiter.resume() }
    }

    /// Ends the stream.
    package func finish() {
        for waiter in state.withLock({ $0.finish() }) { waiter.resume() }
    }

    /// The latest value.
    package var latest: Element? {
        state.withLock { $0.latest }
    }

    /// The next value after the one numbered `seen`; nil at the end, or when the calling task is cancelled.
    fileprivate func next(after seen: Int) async -> (Element, number: Int)? {
        while !Task.isCancelled {
            switch state.withLock({ $0.next(after: seen) }) {
            case .value(let element, let number): return (element, number)
            case .end: return nil
            case .wait:
                let ticket = state.withLock { $0.makeTicket() }
                await withTaskCancellationHandler {
                    await withCheckedContinuation { waiter in
                        let returned = state.withLock { state in
                            Task.isCancelled ? waiter : state.wait(waiter, ticket: ticket, after: seen)
                        }
                        returned?.resume()
                    }
                } onCancel: {
                    // Before the waiter is there it is not found here, and finds that the task is cancelled.
                    state.withLock { $0.removeWaiter(ticket) }?.resume()
                }
            }
        }
        return nil
    }
}

/// The latest value of a ``Broadcast``, its number, and who waits for the next.
package struct BroadcastState<Element, Waiter> {
    package private(set) var latest: Element?
    private var number = 0
    private var isFinished = false
    private var waiters: [UInt64: Waiter] = [:]
    private var lastTicket: UInt64 = 0

    /// Creates a state without a value.
    package init() {}

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
        latest = element
        number += 1
        return takeWaiters()
    }

    /// Ends; returns the waiters to wake.
    package mutating func finish() -> [Waiter] {
        isFinished = true
        return takeWaiters()
    }

    /// What a reader finds that has seen the values up to number `seen`, the first being 1.
    package func next(after seen: Int) -> Answer {
        if let latest, number > seen { return .value(latest, number: number) }
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

/// The progress of a transfer, as it is made: the latest value first, then newer ones, then the end.
///
/// Any number of readers may iterate it, at any time; a slow one skips values but never the last.
public struct ProgressStream<Element: Sendable>: AsyncSequence, Sendable {
    /// Transfers fail in their values, not here.
    public typealias Failure = Never

    let broadcast: Broadcast<Element>

    /// Creates a stream of what a broadcast sends.
    package init(broadcast: Broadcast<Element>) {
        self.broadcast = broadcast
    }

    /// Starts to read, from the latest value on.
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
