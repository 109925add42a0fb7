// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

extension StubConnection {
    /// Accepts the upgrade to the WebSocket protocol (RFC 6455 §4.2.2).
    mutating func acceptWebSocket(headers: HeaderPairs) throws(End) {
        let key = request.headers.values("Sec-WebSocket-Key").first ?? ""
        let head = ReplyEncoder.head(
            version: "HTTP/1.1", status: 101, reason: nil, headers: .accepting(webSocketKey: key, adding: headers))
        try write(head[...])
        frames = WebSocketFrameDecoder(
            of: .client, maximumPayload: 1 << 30, allowsCompression: headers["Sec-WebSocket-Extensions"] != nil)
        isWebSocket = true
    }

    /// Sends messages back until the client closes the connection, or a number of times. The client's close frame is
    /// answered, which ends the connection.
    mutating func echoMessages(_ limit: Int?) throws(End) {
        var echo = MessageEcho(limit)
        while !echo.isFinished {
            let frame = try nextFrame()
            if let answer = echo.answer(frame) { try write(answer.encoded(mask: nil)[...]) }
            if frame.opcode == .close { throw .byScript(.close) }
        }
    }

    /// Reads what a WebSocket client sent before it closed the connection, for the log.
    mutating func readLastFrames() {
        guard isWebSocket else { return }
        while (try? nextFrame()) != nil {}
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
                    if frame.opcode.isControl { environment.log.update { $0.webSocketControlFrames.append(frame) } }
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

extension HeaderPairs {
    /// Returns the fields of a response that accepts a WebSocket connection (RFC 6455 §4.2.2).
    ///
    /// - Parameters:
    ///   - key: The `Sec-WebSocket-Key` of the request.
    ///   - headers: Fields that are sent in addition, or in place of those with the same name.
    static func accepting(webSocketKey key: String, adding headers: HeaderPairs) -> HeaderPairs {
        let fields: [HeaderPair] = [
            HeaderPair("Upgrade", "websocket"), HeaderPair("Connection", "Upgrade"),
            HeaderPair("Sec-WebSocket-Accept", webSocketAccept(for: key)),
        ]
        return HeaderPairs(fields.filter { headers.values($0.name).isEmpty } + Array(headers))
    }

    /// Returns the `Sec-WebSocket-Accept` that answers a key.
    static func webSocketAccept(for key: String) -> String {
        MessageDigest.webSocketAccept(for: key).map { Data($0).base64EncodedString() } ?? ""
    }
}
