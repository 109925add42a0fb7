// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

extension StubConnection {
    /// Accepts the upgrade to the WebSocket protocol (RFC 6455 §4.2.2).
    mutating func acceptWebSocket(headers: HeaderPairs) throws(End) {
        let key = request.headers.values("Sec-WebSocket-Key").first ?? ""
        let accept = MessageDigest.webSocketAccept(for: key).map { Data($0).base64EncodedString() } ?? ""
        let fields: [HeaderPair] = [
            HeaderPair("Upgrade", "websocket"), HeaderPair("Connection", "Upgrade"),
            HeaderPair("Sec-WebSocket-Accept", accept),
        ].filter { headers.values($0.name).isEmpty }
        let head = ReplyEncoder.head(
            version: "HTTP/1.1", status: 101, reason: nil, headers: HeaderPairs(fields + Array(headers)))
        try write(head[...])
    }

    /// Sends messages back until the client closes the connection, or a number of times. The client's close frame is
    /// answered, which ends the connection.
    mutating func echoMessages(_ limit: Int?) throws(End) {
        var count = 0
        while limit.map({ count < $0 }) ?? true {
            let frame = try nextFrame()
            switch frame.opcode {
            case .ping: try write(WebSocketFrame(.pong, frame.payload).encoded(mask: nil)[...])
            case .pong: break
            case .close:
                try write(WebSocketFrame(.close, Array(frame.payload.prefix(2))).encoded(mask: nil)[...])
                throw .byScript(.close)
            case .text, .binary, .continuation:
                try write(frame.encoded(mask: nil)[...])
                if frame.isFinal { count += 1 }
            }
        }
    }

    /// Sends a close frame, and reads until the client's answer.
    mutating func closeWebSocket(_ closure: WebSocketClosure) throws(End) {
        try write(WebSocketFrame(.close, closure.payload).encoded(mask: nil)[...])
        while try nextFrame().opcode != .close {}
        throw .byScript(.close)
    }

    /// Returns the client's next frame, unmasked.
    private mutating func nextFrame() throws(End) -> WebSocketFrame {
        while true {
            do {
                if let frame = try frames.next() {
                    guard frame.opcode == .close else { return frame }
                    let closure = try WebSocketClosure(payload: frame.payload)
                    environment.log.update { $0.webSocketClosures.append(closure) }
                    return frame
                }
                var chunk = [UInt8](repeating: 0, count: 1 << 16)
                let count = try socket.receive(into: &chunk)
                guard count > 0 else { throw End.peerClosed }
                frames.append(Array(chunk[..<count]))
            } catch {
                throw .peerClosed
            }
        }
    }
}

extension WebSocketMessage {
    /// The frame of a server that sends the message in one piece.
    var frame: WebSocketFrame {
        switch self {
        case .text(let text): WebSocketFrame(.text, Array(text.utf8))
        case .binary(let data): WebSocketFrame(.binary, Array(data))
        }
    }
}
