// SPDX-License-Identifier: MIT

/// An established WebSocket connection of a transport, which handles control frames itself and provides the data
/// frames.
package protocol WebSocketLink: Sendable {
    /// The subprotocol that the server chose; `nil` for none.
    var subprotocol: String? { get }
    /// The parameters of `permessage-deflate`; `nil` if it was not negotiated.
    var deflate: WebSocketDeflate? { get }
    /// The closure that the server sent; `nil` if it has sent none.
    var closure: WebSocketClosure? { get }

    /// Returns the next data frames, at least one; `nil` after a normal closure by either side, and in all later calls.
    ///
    /// - Throws: ``TransportError``, or `CancellationError` if the calling task is cancelled, which does not end the
    ///   connection.
    func receive() async throws -> [WebSocketFrame]?

    /// Sends a data frame; returns when few bytes wait to be sent.
    ///
    /// - Parameter makeFrame: Creates the frame. Frames are sent in the order in which they are created.
    func send(_ makeFrame: () throws -> WebSocketFrame) async throws

    /// Closes the connection, and returns when it has ended. Messages that have not been read are discarded.
    ///
    /// - Throws: The error of the connection if it ended before all messages were sent.
    func close(_ closure: WebSocketClosure) async throws

    /// Closes the connection without waiting for an answer, because of a violation of the protocol or because it is no
    /// longer needed.
    func fail(_ violation: WebSocketViolation)
}

/// The settings of a request that becomes a WebSocket connection.
///
/// A transport that supports WebSockets performs the opening handshake (RFC 6455 §4.1). If the server accepts, it calls
/// ``accept`` before it passes on the response, whose status is then 101. Any other response is passed on as usual.
package struct WebSocketUpgrade: Sendable {
    package let options: WebSocketOptions
    /// Receives the connection, which is valid until the exchange ends.
    package let accept: @Sendable (any WebSocketLink) -> Void

    package init(_ options: WebSocketOptions, accept: @escaping @Sendable (any WebSocketLink) -> Void) {
        self.options = options
        self.accept = accept
    }
}

extension Request {
    /// The settings of the WebSocket connection that the request becomes; `nil`, the default, for an ordinary request.
    /// Set by a session.
    package var webSocketUpgrade: WebSocketUpgrade? {
        get { self[WebSocketUpgrade.OfRequest.self] }
        set { self[WebSocketUpgrade.OfRequest.self] = newValue }
    }
}

extension WebSocketUpgrade {
    fileprivate enum OfRequest: RequestAttribute {
        static var defaultValue: WebSocketUpgrade? { nil }
    }
}
