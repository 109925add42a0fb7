// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A message of a WebSocket connection (RFC 6455 §5.6).
public enum WebSocketMessage: Hashable, Sendable {
    /// Text, sent as UTF-8. A received text is always valid UTF-8.
    case text(String)
    /// Bytes, sent unchanged.
    case binary(Data)
}
