// SPDX-License-Identifier: MIT

import ANHTTP

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
