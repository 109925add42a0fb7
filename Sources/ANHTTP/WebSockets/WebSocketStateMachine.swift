// SPDX-License-Identifier: MIT

/// The state of a client's WebSocket connection after its handshake (RFC 6455 §5 to §7), without I/O: frames go in,
/// reactions come out.
///
/// Fragments are checked and passed on one by one; their text is checked, and compressed ones are inflated, by the
/// reader.
package struct WebSocketStateMachine: Sendable {
    private let maximumMessageSize: Int
    private var state = State.open
    /// The number of payload bytes of the message whose last fragment has not arrived; `nil` between messages.
    private var messageSize: Int?
    /// The maximum size of the current message, as it is transferred.
    private var sizeLimit = 0
    /// The number of bytes that ``sizeLimit`` grows by with each further fragment of the current message.
    private var sizePerFragment = 0

    package init(maximumMessageSize: Int) {
        self.maximumMessageSize = max(0, maximumMessageSize)
    }

    private enum State {
        /// Messages flow in both directions.
        case open
        /// A close frame was sent; the server's is awaited.
        case closing
        /// Both close frames were exchanged.
        case closed
    }

    /// A reaction to a frame.
    package enum Reaction: Equatable {
        /// There is nothing to do.
        case none
        /// The data frame is passed on to the reader.
        case deliver(WebSocketFrame)
        /// The pong must be sent. It may replace earlier ones that were not sent yet (RFC 6455 §5.5.3).
        case answer(WebSocketFrame)
        /// The server closed the connection, or answered a close frame. The connection ends after the answer was sent;
        /// `nil` if no answer is due.
        case closed(WebSocketClosure, answer: WebSocketFrame?)
    }

    /// Whether messages may be sent.
    package var isOpen: Bool { state == .open }

    /// Returns the frame that closes the connection; `nil` if one was sent before.
    package mutating func close(_ closure: WebSocketClosure) -> WebSocketFrame? {
        guard state == .open else { return nil }
        state = .closing
        return WebSocketFrame(.close, closure.payload)
    }

    /// Returns the reaction to a received frame. After a close frame was sent, messages are discarded; after one was
    /// received, everything is.
    package mutating func receive(_ frame: WebSocketFrame) throws(WebSocketViolation) -> Reaction {
        guard state != .closed else { return .none }
        switch frame.opcode {
        // Also after this side has sent a close frame (RFC 6455 §5.5.2).
        case .ping: return .answer(WebSocketFrame(.pong, frame.payload))
        case .pong: return .none
        case .close:
            let closure = try WebSocketClosure(payload: frame.payload)
            let isAnswer = state == .closing
            state = .closed
            // The answer repeats the code (RFC 6455 §5.5.1).
            return .closed(closure, answer: isAnswer ? nil : WebSocketFrame(.close, Array(frame.payload.prefix(2))))
        case .text, .binary, .continuation:
            try checkOrder(of: frame)
            return state == .open ? .deliver(frame) : .none
        }
    }

    private mutating func checkOrder(of frame: WebSocketFrame) throws(WebSocketViolation) {
        if frame.opcode == .continuation {
            guard messageSize != nil else { throw WebSocketViolation("A continuation frame continues no message.") }
            sizeLimit = min(sizeLimit, .max - sizePerFragment) + sizePerFragment
        } else {
            guard messageSize == nil else { throw WebSocketViolation("A message begins within another one.") }
            // The reader limits the inflated size.
            (sizeLimit, sizePerFragment) =
                frame.isCompressed
                ? (WebSocketDeflate.bound(of: maximumMessageSize), WebSocketDeflate.flushSize) : (maximumMessageSize, 0)
        }
        let size = messageSize ?? 0
        guard frame.payload.count <= sizeLimit - size else { throw .tooLarge(limit: maximumMessageSize) }
        messageSize = frame.isFinal ? nil : size + frame.payload.count
    }
}

/// The reason why a WebSocket connection must fail, with the status code that the server receives.
package struct WebSocketViolation: Error, Hashable, Sendable {
    /// The status code (RFC 6455 §7.4.1): 1002 for a violation of the protocol, 1007 for invalid text, 1009 for a
    /// message above the limit.
    package var code: UInt16
    /// The reason in words.
    package var reason: String

    package init(_ reason: String, code: UInt16 = 1002) {
        self.code = code
        self.reason = reason
    }

    /// Creates the reason for a message above the limit.
    package static func tooLarge(limit: Int) -> WebSocketViolation {
        WebSocketViolation("A message has more than \(limit) bytes.", code: 1009)
    }

    /// The reason of the error for the program.
    ///
    /// - Parameter limit: The maximum size of a message.
    package func failure(limit: Int) -> TransportError.Reason {
        code == 1009 ? .responseTooLarge(.body(limit: limit)) : .invalidResponse(.webSocket(reason))
    }
}
