// SPDX-License-Identifier: MIT

import ANSystem

/// The latest value of something that changes, for any number of readers.
///
/// Each reader first hears the latest value, then each newer one it is fast enough for, then the end. A reader that is slow
/// costs nothing: values it misses are replaced by newer ones; the last is never missed.
final class Broadcast<Element: Sendable>: Sendable {
    private let state = Lock(BroadcastState<Element, CheckedContinuation<Void, Never>>())

    /// Publishes a value.
    func send(_ element: Element) {
        for waiter in state.withLock({ $0.send(element) }) { waiter.resume() }
    }

    /// Ends the stream.
    func finish() {
        for waiter in state.withLock({ $0.finish() }) { waiter.resume() }
    }

    /// The latest value.
    var latest: Element? {
        state.withLock { $0.latest }
    }

    /// The next value after the one numbered `seen`; nil at the end, or when the calling task is cancelled.
    fileprivate func next(after seen: Int, reader: UInt64) async -> (Element, number: Int)? {
        while !Task.isCancelled {
            switch state.withLock({ $0.next(after: seen) }) {
            case .value(let element, let number): return (element, number)
            case .end: return nil
            case .wait:
                await withTaskCancellationHandler {
                    await withCheckedContinuation { waiter in
                        let returned = state.withLock { state in
                            Task.isCancelled ? waiter : state.wait(waiter, reader: reader, after: seen)
                        }
                        returned?.resume()
                    }
                } onCancel: {
                    state.withLock { $0.removeWaiter(of: reader) }?.resume()
                }
            }
        }
        return nil
    }

    fileprivate func makeReader() -> UInt64 {
        state.withLock { $0.makeReader() }
    }
}

/// Which reader of a ``Broadcast`` has seen what.
struct BroadcastState<Element, Waiter> {
    private(set) var latest: Element?
    private var number = 0
    private var isFinished = false
    private var waiters: [UInt64: Waiter] = [:]
    private var lastReader: UInt64 = 0

    /// What a reader finds.
    enum Answer {
        /// A value that it has not seen.
        case value(Element, number: Int)
        /// Nothing new yet.
        case wait
        /// The end.
        case end
    }

    mutating func makeReader() -> UInt64 {
        lastReader += 1
        return lastReader
    }

    /// Takes a new value; returns the waiters to wake.
    mutating func send(_ element: Element) -> [Waiter] {
        guard !isFinished else { return [] }
        latest = element
        number += 1
        return takeWaiters()
    }

    /// Ends; returns the waiters to wake.
    mutating func finish() -> [Waiter] {
        isFinished = true
        return takeWaiters()
    }

    func next(after seen: Int) -> Answer {
        if let latest, number > seen { return .value(latest, number: number) }
        return isFinished ? .end : .wait
    }

    /// Leaves a waiter; it comes back when there is something new already.
    mutating func wait(_ waiter: Waiter, reader: UInt64, after seen: Int) -> Waiter? {
        guard case .wait = next(after: seen) else { return waiter }
        waiters[reader] = waiter
        return nil
    }

    mutating func removeWaiter(of reader: UInt64) -> Waiter? {
        waiters.removeValue(forKey: reader)
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
    public typealias Failure = Never

    let broadcast: Broadcast<Element>

    public func makeAsyncIterator() -> Iterator {
        Iterator(broadcast: broadcast, reader: broadcast.makeReader())
    }

    /// Yields values until the transfer has ended, or the calling task is cancelled.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let broadcast: Broadcast<Element>
        fileprivate let reader: UInt64
        private var seen = 0

        fileprivate init(broadcast: Broadcast<Element>, reader: UInt64) {
            self.broadcast = broadcast
            self.reader = reader
        }

        public mutating func next() async -> Element? {
            guard let (element, number) = await broadcast.next(after: seen, reader: reader) else { return nil }
            seen = number
            return element
        }
    }
}
