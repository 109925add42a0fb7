// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials

/// A WebSocket connection (RFC 6455): a sequence of the received messages, and functions to send some.
///
/// ```swift
/// try await session.withWebSocket(Request(url: chat)) { socket in
///     try await socket.send(.text("hello"))
///     for try await message in socket { print(message) }
/// }
/// ```
///
/// One task iterates at a time; any number of tasks send. Pings of the server are answered while the program does
/// neither. A slow reader slows the server down: when ``ANHTTP/TransferOptions/streamBufferSize`` bytes wait for it,
/// the connection is not read.
///
/// | event | iteration | sending |
/// |---|---|---|
/// | the server closes the connection with code 1000 or 1001, or without a code | ends after the messages before it | throws ``ANHTTP/TransportError/Reason/webSocketClosed(_:)`` |
/// | the server closes it with another code | throws `webSocketClosed` after these messages | throws `webSocketClosed` |
/// | ``close(code:reason:)`` | ends; messages that were not read are discarded | throws `webSocketClosed` |
/// | the connection is lost, or the server does not answer a ping in time | throws | throws |
/// | the server violates the protocol, or a message is too large | throws; the connection is closed with the code for it | throws |
/// | the task that called `withWebSocket` is cancelled | throws `CancellationError`; the connection ends at once | throws `CancellationError` |
///
/// Cancelling another task that iterates or sends ends only its wait.
public struct WebSocket: AsyncSequence, Sendable {
    let core: Core

    init(_ link: some WebSocketLink, _ options: WebSocketOptions, of request: Request, on pipeline: Pipeline) {
        core = Core(link: link, options: options, request: request, pipeline: pipeline)
    }

    /// The subprotocol that the server chose from ``ANHTTP/WebSocketOptions/subprotocols``; `nil` if it chose none.
    public var subprotocol: String? { core.link.subprotocol }

    /// The code and the reason with which the server closed the connection, or answered ``close(code:reason:)``; `nil`
    /// if it has sent no close frame, also after the connection was lost.
    public var closure: WebSocketClosure? { core.link.closure }

    /// Sends a message. Messages are sent one after the other, in the order of the calls.
    ///
    /// The function returns when at most 64 KiB of messages wait for the system to accept them: a server that does not
    /// read makes it wait. That it has returned does not mean that the server has received the message; a failure is
    /// thrown by the iteration, and by later calls.
    ///
    /// - Parameter message: The message: text or bytes.
    /// - Throws: ``ANHTTP/TransportError``, with ``ANHTTP/TransportError/Reason/webSocketClosed(_:)`` if the connection
    ///   is closed; or `CancellationError` if the calling task is cancelled: the message may then still be sent.
    public func send(_ message: WebSocketMessage) async throws {
        try await core.send(message)
    }

    /// Closes the connection, and returns when the server has answered, or after 5 s, which begin anew while the server
    /// receives what was sent before. Messages that have not been read are discarded, and the iteration ends. Closing a
    /// connection that has ended has no effect. Cancelling the calling task does not shorten the wait, unless it is the
    /// task that called `withWebSocket`.
    ///
    /// The connection is also closed, with code 1000, when the closure of `withWebSocket` returns, and with code 1001
    /// (going away) if it throws.
    ///
    /// - Parameters:
    ///   - code: The code: 1000, the default, 1001 to 1003, 1007 to 1014, or 3000 to 4999 (RFC 6455 §7.4).
    ///   - reason: An explanation, empty by default; it is truncated to 123 bytes of UTF-8.
    /// - Throws: ``ANHTTP/TransportError/Reason/invalidRequest(_:)`` for another code, without closing the connection,
    ///   or the error of the connection if it ended before all messages were sent.
    public func close(code: UInt16 = 1000, reason: String = "") async throws {
        guard WebSocketClosure.isSendable(code) else {
            throw TransportError(.invalidRequest(.option("a WebSocket cannot be closed with code \(code).")))
        }
        try await core.close(WebSocketClosure(code: code, reason: reason))
    }

    /// Ends the connection at once, with code 1001 (going away).
    @inline(never)
    func abandon() {
        core.link.fail(WebSocketViolation("", code: 1001))
    }

    /// Returns an iterator over the messages that have not been read: it continues where an earlier one ended. Only one
    /// task may iterate at a time; `next()` throws ``ANHTTP/TransportError/Reason/internalInconsistency(_:)`` in a
    /// second one.
    public func makeAsyncIterator() -> Iterator {
        Iterator(core: core)
    }

    /// An iterator over the received messages, for one task at a time. The connection stays open when the iterator is
    /// released, and another iterator continues with the next message.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let core: Core

        /// Returns the next message; `nil` after the connection was closed normally, and in all later calls. A violation of
        /// the protocol is thrown by all later calls.
        ///
        /// - Throws: ``ANHTTP/TransportError``, with the reason ``ANHTTP/TransportError/Reason/webSocketClosed(_:)`` if
        ///   the server closed the connection with another code than 1000 or 1001,
        ///   ``ANHTTP/TransportError/Reason/invalidResponse(_:)`` if it violates the protocol,
        ///   ``ANHTTP/TransportError/Reason/responseTooLarge(_:)`` if a message is too large, or another one if the
        ///   connection was lost or another task is waiting for a message; `CancellationError` if the calling task is
        ///   cancelled.
        public mutating func next() async throws -> WebSocketMessage? {
            try await core.next()
        }
    }
}

extension WebSocket {
    /// The connection, and the state of the messages that are being received and sent.
    final class Core: Sendable {
        let link: any WebSocketLink
        private let options: WebSocketOptions
        private let request: Request
        private let pipeline: Pipeline
        private let input: Lock<Input>
        /// Created for the first message that is compressed.
        private let deflater = Lock<MessageDeflater?>(nil)

        private struct Input {
            /// The frames that were received and not processed, last first.
            var frames: [WebSocketFrame] = []
            /// Whether frames are discarded, because this side closes the connection.
            var isDiscarding = false
            /// Whether the iteration has ended without an error.
            var isAtEnd = false
            /// The violation of the protocol for which the connection was failed.
            var violation: WebSocketViolation?
            /// The different errors that iterating and sending have thrown.
            var errors: [TransportError] = []
            var assembler: MessageAssembler
        }

        init(link: some WebSocketLink, options: WebSocketOptions, request: Request, pipeline: Pipeline) {
            (self.link, self.options, self.request, self.pipeline) = (link, options, request, pipeline)
            input = Lock(
                Input(
                    assembler: MessageAssembler(
                        maximumSize: options.maximumMessageSize, resets: link.deflate?.serverResets ?? false)))
        }

        func next() async throws -> WebSocketMessage? {
            do {
                while true {
                    try Task.checkCancellation()
                    if let message = try input.withLock({ input throws(WebSocketViolation) in
                        if let violation = input.violation { throw violation }
                        while let frame = input.frames.popLast() {
                            if let message = try input.assembler.add(frame) { return message }
                        }
                        return nil as WebSocketMessage?
                    }) {
                        link.note(message, isSent: false)
                        return message
                    }
                    guard let frames = try await link.receive() else {
                        input.withLock { $0.isAtEnd = true }
                        return nil
                    }
                    input.withLock { if !$0.isDiscarding { $0.frames = frames.reversed() + $0.frames } }
                }
            } catch let violation as WebSocketViolation {
                // RFC 6455 §7.1.7: nothing is processed after the connection was failed.
                discardInput()
                input.withLock { $0.violation = violation }
                link.fail(violation)
                throw TransportError(violation.failure(limit: options.maximumMessageSize))
            } catch {
                throw noted(error)
            }
        }

        func send(_ message: WebSocketMessage) async throws {
            do {
                try await link.send { try frame(of: message) }
            } catch {
                throw noted(error)
            }
            link.note(message, isSent: true)
        }

        func close(_ closure: WebSocketClosure) async throws {
            discardInput()
            do {
                try await link.close(closure)
            } catch {
                throw pipeline.failure(of: request, by: error)
            }
        }

        private func noted(_ error: any Error) -> any Error {
            let error = pipeline.failure(of: request, by: error)
            guard let error = error as? TransportError else { return error }
            // The connection goes on after an error of its use.
            if case .internalInconsistency = error.reason { return error }
            input.withLock { if !$0.errors.contains(where: error.isSame(as:)) { $0.errors.append(error) } }
            return error
        }

        /// How the server or the network has ended the connection.
        enum Ending: Equatable {
            /// The server has closed the connection.
            case closed(WebSocketClosure)
            /// The connection was lost.
            case lost
        }

        /// The closure by the server with which the iteration has ended; `nil` if it has not, and if this side has closed
        /// the connection, also after the server.
        var readClosure: WebSocketClosure? {
            input.withLock { !$0.isDiscarding && $0.isAtEnd } ? link.closure : nil
        }

        /// Returns the end of the connection that an error describes; `nil` if the connection has not thrown that error,
        /// and if this side has closed it.
        func ending(throwing error: any Error) -> Ending? {
            guard let error = error as? TransportError,
                input.withLock({ !$0.isDiscarding && $0.errors.contains(where: error.isSame(as:)) })
            else { return nil }
            return link.closure.map { .closed($0) } ?? .lost
        }

        /// Discards the messages that were received and not read, and all further ones.
        func discardInput() {
            input.withLock { input in
                input.isDiscarding = true
                input.frames = []
            }
        }

        /// Returns the frame of a message.
        func frame(of message: WebSocketMessage) throws(TransportError) -> WebSocketFrame {
            var frame = message.frame
            guard let deflate = link.deflate, !frame.payload.isEmpty else { return frame }
            do throws(SystemError) {
                let deflater = try deflater.withLock { deflater throws(SystemError) in
                    if let deflater { return deflater }
                    let created = try MessageDeflater(resets: deflate.clientResets)
                    deflater = created
                    return created
                }
                frame.payload = try deflater.deflate(frame.payload)
            } catch {
                throw TransportError(.internalInconsistency("A message could not be compressed: \(error)."))
            }
            frame.isCompressed = true
            return frame
        }
    }
}

extension TransportError {
    /// Whether another error is this one. Another request can fail for the same reason, but its error has other details.
    fileprivate func isSame(as other: TransportError) -> Bool { reason == other.reason && context == other.context }
}

/// An assembler of messages from the frames of a WebSocket connection, whose order was checked: it inflates compressed
/// fragments, checks the UTF-8 of text as it arrives, and joins the fragments.
package struct MessageAssembler: Sendable {
    private let maximumSize: Int
    private let resets: Bool
    private var kind = WebSocketFrame.Opcode.binary
    private var isCompressed = false
    private var payload: [UInt8] = []
    private var text = UTF8Check()
    /// Created for the first compressed message.
    private var inflater: MessageInflater?

    /// Creates an assembler.
    ///
    /// - Parameters:
    ///   - maximumSize: The maximum size of a message in bytes, after decompression.
    ///   - resets: Whether each message is compressed on its own (RFC 7692 §7.1.1.1).
    package init(maximumSize: Int, resets: Bool) {
        self.maximumSize = max(0, maximumSize)
        self.resets = resets
    }

    /// Adds a data frame; returns the message of which it is the last one.
    package mutating func add(_ frame: WebSocketFrame) throws(WebSocketViolation) -> WebSocketMessage? {
        if frame.opcode != .continuation {
            (kind, isCompressed, text, payload) = (frame.opcode, frame.isCompressed, UTF8Check(), [])
        }
        let start = payload.count
        if isCompressed {
            try inflate(frame)
        } else {
            guard frame.payload.count <= maximumSize - start else { throw .tooLarge(limit: maximumSize) }
            if start == 0 { payload = frame.payload } else { payload += frame.payload }
        }
        if kind == .text {
            let isValid = text.check(start == 0 ? payload : Array(payload[start...]))
            guard isValid, !frame.isFinal || text.isComplete else {
                throw WebSocketViolation("A text message is not valid UTF-8.", code: 1007)
            }
        }
        guard frame.isFinal else { return nil }
        defer { payload = [] }
        return kind == .text ? .text(String(decoding: payload, as: UTF8.self)) : .binary(Data(payload))
    }

    /// Inflates a fragment. A message above the limit fails before more of it is inflated.
    private mutating func inflate(_ frame: WebSocketFrame) throws(WebSocketViolation) {
        do throws(SystemError) {
            if inflater == nil { inflater = try MessageInflater(resets: resets) }
            try inflater?.inflate(frame.payload, isLast: frame.isFinal, into: &payload, upTo: maximumSize)
        } catch {
            throw WebSocketViolation("A compressed message is malformed.", code: 1007)
        }
        guard payload.count <= maximumSize else { throw .tooLarge(limit: maximumSize) }
    }
}
