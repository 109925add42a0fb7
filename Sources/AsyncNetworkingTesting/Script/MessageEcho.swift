// SPDX-License-Identifier: MIT

import ANHTTP

/// The answers of a server that sends the messages of a WebSocket client back.
struct MessageEcho {
    /// The number of messages that are still sent back; `nil` for all.
    private var left: Int?

    /// Creates an echo of a number of messages, or of all if it is `nil`.
    init(_ limit: Int?) {
        left = limit
    }

    /// Whether the number of messages was sent back.
    var isFinished: Bool { left.map { $0 <= 0 } ?? false }

    /// Returns the answer to a frame of the client: a compressed frame is sent back unchanged; `nil` for a pong.
    mutating func answer(_ frame: WebSocketFrame) -> WebSocketFrame? {
        switch frame.opcode {
        case .ping: return WebSocketFrame(.pong, frame.payload)
        case .pong: return nil
        case .close: return WebSocketFrame(.close, Array(frame.payload.prefix(2)))
        case .text, .binary, .continuation:
            if frame.isFinal { left = left.map { $0 - 1 } }
            return frame
        }
    }
}
