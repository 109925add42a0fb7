// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A message of a WebSocket connection (RFC 6455 §5.6), sent by `WebSocket.send(_:)` and received by iterating over a
/// `WebSocket`.
public enum WebSocketMessage: Hashable, Sendable {
    /// Text, sent as UTF-8. A received text is always valid UTF-8.
    case text(String)
    /// Bytes, sent unchanged.
    case binary(Data)
}

extension WebSocketMessage {
    /// The message in one frame, neither compressed nor masked.
    package var frame: WebSocketFrame {
        switch self {
        case .text(let text): WebSocketFrame(.text, Array(text.utf8))
        case .binary(let data): WebSocketFrame(.binary, Array(data))
        }
    }
}

/// The reason for which a server closed a WebSocket connection, as in its close frame (RFC 6455 §7.1.5, §7.1.6).
///
/// It is in `WebSocket.closure` and ``TransportError/Reason/webSocketClosed(_:)``.
public struct WebSocketClosure: Hashable, Sendable {
    /// The status code (RFC 6455 §7.4), such as 1000 for a normal closure; `nil` if the frame has none.
    public var code: UInt16?
    /// The explanation in the close frame, for logs; at most 123 bytes in UTF-8, possibly empty.
    public var reason: String

    /// Creates a closure, by default without an explanation.
    package init(code: UInt16?, reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// Whether the connection was closed because it had served its purpose: with code 1000 or 1001 (going away), or
    /// without a code.
    package var isNormal: Bool { code == nil || code == 1000 || code == 1001 }

    /// Whether an endpoint may send a code in a close frame: the registered ones, and those for libraries and
    /// applications (RFC 6455 §7.4).
    package static func isSendable(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// The payload of the close frame. The reason is truncated to 123 bytes, between characters.
    package var payload: [UInt8] {
        guard let code else { return [] }
        var text = reason[...]
        while text.utf8.count > 123 { text.removeLast() }
        return [UInt8(code >> 8), UInt8(code & 0xFF)] + text.utf8
    }

    /// Parses the payload of a close frame.
    package init(payload: [UInt8]) throws(WebSocketViolation) {
        guard payload.count != 1 else { throw WebSocketViolation("A close frame has half of a code.") }
        guard payload.count >= 2 else {
            self.init(code: nil)
            return
        }
        let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
        guard Self.isSendable(code) else { throw WebSocketViolation("The close code \(code) is not allowed.") }
        let text = Array(payload[2...])
        var check = UTF8Check()
        guard check.check(text), check.isComplete else {
            throw WebSocketViolation("The reason of a close frame is not valid UTF-8.", code: 1007)
        }
        self.init(code: code, reason: String(decoding: text, as: UTF8.self))
    }
}

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
    /// A ping waits behind the messages that are being sent: the limit begins anew whenever more of them was delivered.
    /// It is suspended while the connection is not read because messages wait for the program. It has no effect without
    /// pings.
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

/// A check of UTF-8 that arrives in pieces, which fails at the first byte that cannot be part of valid text (Unicode
/// §3.9, table 3-7).
package struct UTF8Check: Sendable {
    /// The number of continuation bytes that a character still needs.
    private var missing = 0
    /// The range of the next continuation byte.
    private var range: ClosedRange<UInt8> = 0x80...0xBF

    package init() {}

    /// Whether the text may end here.
    package var isComplete: Bool { missing == 0 }

    /// Checks more bytes; returns `false` if the text is invalid.
    package mutating func check(_ bytes: [UInt8]) -> Bool {
        for byte in bytes {
            guard missing == 0 else {
                guard range.contains(byte) else { return false }
                missing -= 1
                range = 0x80...0xBF
                continue
            }
            switch byte {
            case 0x00...0x7F: break
            case 0xC2...0xDF: missing = 1
            case 0xE0: (missing, range) = (2, 0xA0...0xBF)
            case 0xE1...0xEC, 0xEE...0xEF: missing = 2
            case 0xED: (missing, range) = (2, 0x80...0x9F)
            case 0xF0: (missing, range) = (3, 0x90...0xBF)
            case 0xF1...0xF3: missing = 3
            case 0xF4: (missing, range) = (3, 0x80...0x8F)
            default: return false
            }
        }
        return true
    }
}
