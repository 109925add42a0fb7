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
