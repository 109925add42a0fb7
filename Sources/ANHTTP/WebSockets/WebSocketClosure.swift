// SPDX-License-Identifier: MIT

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
