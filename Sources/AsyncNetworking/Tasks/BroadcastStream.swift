// SPDX-License-Identifier: MIT

import ANSystem

/// A stream that any number of readers may iterate at any time, each with its own position.
///
/// Streams report the progress and events of a task, the progress of a ``TransferGroup``, the states of an
/// ``EventSource``, and, in other modules, those of images and of network activity:
///
/// | stream | values | a slow reader |
/// |---|---|---|
/// | ``AnyTransferTask/events`` | all events, from the first one on | receives all of them, except outdated progress |
/// | any other | the latest value first, then newer ones | skips values, but never the last |
///
/// The stream of a task, a group or an event source ends with it. Cancelling the task that reads a stream ends only
/// that iteration; the task, group or source continues. A stream never throws: the error of a task is thrown by its
/// ``TransferTask/value``.
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
