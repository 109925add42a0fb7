// SPDX-License-Identifier: MIT

import ANSystem

/// A channel from one task to another without a buffer: the sender waits until its value was received.
///
/// There may be one sender and one receiver at a time.
package final class Handoff<Element: Sendable>: Sendable {
    private let state = Lock(State.idle)

    private enum State {
        /// Neither task waits.
        case idle
        /// The sender waits until its value is received.
        case offered(Element, CheckedContinuation<Void, any Error>)
        /// The receiver waits for a value.
        case awaited(CheckedContinuation<Element?, any Error>)
        /// There are no more values. The error is thrown once.
        case finished((any Error)?)
    }

    /// Creates a channel.
    package init() {}

    /// Sends a value, and returns when it was received.
    ///
    /// - Throws: `CancellationError` if the calling task is cancelled before.
    package func send(_ element: Element) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { sender in
                let receiver: CheckedContinuation<Element?, any Error>? = state.withLock { state in
                    switch state {
                    case .awaited(let receiver):
                        state = .idle
                        return receiver
                    case .idle where !Task.isCancelled:
                        state = .offered(element, sender)
                        return nil
                    case .idle, .offered, .finished:
                        sender.resume(throwing: CancellationError())
                        return nil
                    }
                }
                guard let receiver else { return }
                receiver.resume(returning: element)
                sender.resume()
            }
        } onCancel: {
            // If this runs before the value is offered, it finds none, and the code above finds the task cancelled.
            let sender: CheckedContinuation<Void, any Error>? = state.withLock { state in
                guard case .offered(_, let sender) = state else { return nil }
                state = .idle
                return sender
            }
            sender?.resume(throwing: CancellationError())
        }
    }

    /// Ends the channel, with an error if one is given.
    package func finish(throwing error: (any Error)? = nil) {
        let receiver: CheckedContinuation<Element?, any Error>? = state.withLock { state in
            guard case .awaited(let receiver) = state else {
                state = .finished(error)
                return nil
            }
            state = .finished(nil)
            return receiver
        }
        guard let receiver else { return }
        if let error { receiver.resume(throwing: error) } else { receiver.resume(returning: nil) }
    }

    /// Returns the next value; `nil` after the last one.
    ///
    /// Cancelling the calling task has no effect; cancel the sender, too.
    ///
    /// - Throws: The error with which the sender has ended the channel, once.
    package func receive() async throws -> Element? {
        try await withCheckedThrowingContinuation { receiver in
            let (result, sender): (Result<Element?, any Error>?, CheckedContinuation<Void, any Error>?) =
                state.withLock { state in
                    switch state {
                    case .idle:
                        state = .awaited(receiver)
                        return (nil, nil)
                    case .offered(let element, let sender):
                        state = .idle
                        return (.success(element), sender)
                    case .finished(let error):
                        state = .finished(nil)
                        return (error.map { .failure($0) } ?? .success(nil), nil)
                    case .awaited:
                        return (.success(nil), nil)
                    }
                }
            sender?.resume()
            if let result { receiver.resume(with: result) }
        }
    }
}
