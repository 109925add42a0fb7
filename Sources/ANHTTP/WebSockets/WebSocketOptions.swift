// SPDX-License-Identifier: MIT

/// The options of a WebSocket connection, passed to `SessionManager.withWebSocket(_:options:_:)`.
///
/// Those of its establishment, such as proxies, TLS and ``Timeouts/connect``, are the request's ``TransferOptions``.
public struct WebSocketOptions: Hashable, Sendable {
    /// The subprotocols to offer, preferred ones first; none by default (RFC 6455 §1.9). A server may ignore the offer;
    /// one that chooses another subprotocol fails the request with ``TransportError/Reason/invalidResponse(_:)``. A
    /// subprotocol that is not a token fails it with ``TransportError/Reason/invalidRequest(_:)``.
    public var subprotocols: [String] = []
    /// The maximum size of a received message in bytes, after decompression; 16 MiB by default, and 0 or less permits
    /// only empty messages.
    ///
    /// A larger message closes the connection with code 1009 and fails with
    /// ``TransportError/Reason/responseTooLarge(_:)``, for a single frame before its content has arrived.
    public var maximumMessageSize = 16 << 20
    /// The time without received bytes after which a ping is sent (RFC 6455 §5.5.2); 30 s by default, and a value below
    /// 1 ms counts as 1 ms; `nil` for no pings. Without pings, only TCP keep-alive detects that a silent connection is
    /// lost. No pings are sent while the connection is not read because messages wait for the program.
    public var pingInterval: Duration? = .seconds(30)
    /// The time without received bytes after a ping until the connection counts as lost, and fails with
    /// ``TransportError/Reason/timedOut(_:)``; 20 s by default. With zero or less, the first ping normally ends the
    /// connection.
    ///
    /// The limit is suspended while the connection is not read because messages wait for the program. It has no effect
    /// without pings.
    public var pingTimeout: Duration = .seconds(20)
    /// Whether `permessage-deflate` is offered, which compresses messages if the server accepts it (RFC 7692); `false`
    /// by default.
    ///
    /// Compression takes up to 300 KB of memory for each connection.
    public var offersCompression = false
    /// The time to wait for the answer to a close frame.
    package var closeTimeout: Duration = .seconds(5)

    /// Creates the default options: no subprotocols, received messages of at most 16 MiB, a ping after 30 s that must
    /// be answered within 20 s, and no compression.
    public init() {}
}
