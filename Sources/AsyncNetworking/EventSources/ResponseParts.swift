// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// A response that is read outside of the closure that ``SessionManager/withResponse(for:validating:reporting:_:)``
/// lends it to.
///
/// At most one chunk is read ahead. The exchange ends with this object.
final class ResponseParts: Sendable {
    private let parts: Handoff<Part>
    /// The task that performs the exchange. It ends with the response, or when this object is released.
    private let task: Task<Void, Never>

    /// A part of a response.
    enum Part: Sendable {
        case head(ResponseHead)
        case chunk(Data)
    }

    /// Starts a request.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - session: The session that performs it.
    ///   - validate: Throws for a response that is not accepted.
    init(
        _ request: Request, on session: SessionManager,
        validating validate: @escaping @Sendable (ResponseHead, ResponseBody) async throws -> Void
    ) {
        let parts = Handoff<Part>()
        self.parts = parts
        task = Task {
            do {
                try await session.withResponse(for: request) { head, body in
                    try await validate(head, body)
                    try await parts.send(.head(head))
                    for try await chunk in body { try await parts.send(.chunk(chunk)) }
                }
                parts.finish()
            } catch {
                parts.finish(throwing: error)
            }
        }
    }

    deinit {
        task.cancel()
    }

    /// Returns the next part: first the head, then the chunks of the body; `nil` at the end.
    ///
    /// - Throws: The error of the request. If the calling task is cancelled, the exchange is, too, and has ended when
    ///   this function throws.
    func next() async throws -> Part? {
        try await withTaskCancellationHandler {
            try await parts.receive()
        } onCancel: {
            task.cancel()
        }
    }
}

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
