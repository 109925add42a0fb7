// SPDX-License-Identifier: MIT

import ANSystem

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
    package var stream: BroadcastStream<Element> {
        BroadcastStream { [self] seen in await state.next(in: \.log, among: \.waiters, after: seen) { $0 } }
    }

    /// Sends a value to all readers.
    package func send(_ element: Element) {
        update { $0.append(element) { _ in true } }
    }

    /// Ends the stream.
    package func finish() {
        update { $0.finish() }
    }

    private func update(_ body: (inout EventLog<Element>) -> Void) {
        let waiters = state.withLock { state in
            body(&state.log)
            return state.waiters.takeAll()
        }
        for waiter in waiters { waiter.resume() }
    }
}
