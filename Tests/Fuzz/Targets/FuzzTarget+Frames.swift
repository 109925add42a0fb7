// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANReachability
import AsyncNetworking
import FoundationEssentials

extension FuzzTarget {
    /// Parsers of binary messages of a network.
    static let frames: [FuzzTarget] = [
        FuzzTarget("websocket-frames", checkWebSocketFrames),
        FuzzTarget("http2-frames", checkHTTP2Frames),
        FuzzTarget("netlink-messages", checkNetlinkMessages),
    ]

    // MARK: WebSocket

    private struct Conversation: Equatable {
        var frames: [WebSocketFrame] = []
        var reactions: [WebSocketStateMachine.Reaction] = []
        var messages: [WebSocketMessage] = []
        var violation: WebSocketViolation?
    }

    /// The first byte says who sends the frames, whether they may be compressed, and what was negotiated. The frames
    /// and messages do not depend on the chunks, and frames that are encoded again are the same.
    private static func checkWebSocketFrames(_ input: [UInt8]) throws {
        let flags = input.first ?? 0
        let bytes = Array(input.dropFirst())
        let sender: WebSocketFrameDecoder.Sender = flags & 1 == 0 ? .server : .client
        let limit = 4_096
        try Division.requireSame(bytes) { chunks in
            var decoder = WebSocketFrameDecoder(
                of: sender, maximumPayload: limit, allowsCompression: flags & 2 != 0)
            var machine = WebSocketStateMachine(maximumMessageSize: limit)
            var assembler = MessageAssembler(maximumSize: limit, resets: flags & 4 != 0)
            var result = Conversation()
            if flags & 8 != 0 { _ = machine.close(WebSocketClosure(code: 1000)) }
            do throws(WebSocketViolation) {
                for chunk in chunks {
                    decoder.append(Array(chunk))
                    while let frame = try decoder.next() {
                        result.frames.append(frame)
                        let reaction = try machine.receive(frame)
                        result.reactions.append(reaction)
                        guard case .deliver(let frame) = reaction, let message = try assembler.add(frame) else {
                            continue
                        }
                        result.messages.append(message)
                    }
                }
            } catch {
                result.violation = error
            }
            try check(result.messages, limit: limit)
            try check(result.frames, of: sender, allowsCompression: flags & 2 != 0)
            return result
        }
    }

    private static func check(_ messages: [WebSocketMessage], limit: Int) throws(Violation) {
        for message in messages {
            let size =
                switch message {
                case .text(let text): text.utf8.count
                case .binary(let bytes): bytes.count
                }
            try require(size <= limit, "a message of \(size) bytes is within the limit")
        }
    }

    private static func check(
        _ frames: [WebSocketFrame], of sender: WebSocketFrameDecoder.Sender, allowsCompression: Bool
    ) throws {
        var decoder = WebSocketFrameDecoder(of: sender, maximumPayload: 1 << 20, allowsCompression: allowsCompression)
        for frame in frames {
            decoder.append(frame.encoded(mask: sender == .server ? nil : 0x8123_4567))
            try requireEqual(try decoder.next(), frame, "the frame as bytes")
            guard frame.opcode == .close, let closure = try? WebSocketClosure(payload: frame.payload) else { continue }
            try requireEqual(closure.payload, frame.payload, "the closure as bytes")
        }
    }

    // MARK: HTTP/2

    private struct Scan: Equatable {
        var events: [HTTP2FrameScanner.Event] = []
        var heads: [[String]] = []
        var bodies: [[UInt8]] = []
        var isBroken = false
    }

    /// The events, heads and bodies do not depend on the chunks.
    private static func checkHTTP2Frames(_ input: [UInt8]) throws {
        try Division.requireSame(input) { chunks in
            var scanner = HTTP2FrameScanner()
            var table = HTTP2StreamTable()
            var answers = HTTP2Answers()
            var result = Scan()
            let streams = [table.open(), table.open(), table.open()]
            for stream in streams { answers.open(stream.number) }
            for chunk in chunks {
                let bytes = Array(chunk)
                scanner.receive(bytes.span) { event in
                    result.events.append(event)
                    table.receive(event)
                    if case .headersEnd(let stream) = event { answers.endHeaders(stream) }
                } content: {
                    answers.receive($0, $1, $2)
                }
            }
            result.isBroken = table.isBroken
            for stream in streams {
                result.heads.append((answers[stream.number]?.head ?? []).map { "\($0.name): \($0.value)" })
                result.bodies.append(answers[stream.number]?.body ?? [])
            }
            return result
        }
    }

    // MARK: Netlink

    /// Messages are at least as long as their headers; the kind of a path does not depend on anything but its messages.
    private static func checkNetlinkMessages(_ input: [UInt8]) throws {
        let messages = Array(NetlinkMessages(input[...]))
        try require(messages.count <= input.count / 16, "\(messages.count) messages fit into \(input.count) bytes")
        let destination = IPAddress("2001:db8::1") ?? IPAddress(bytes: [UInt8](repeating: 1, count: 4))
        let links = messages.compactMap { Link($0) }
        for message in messages {
            _ = message.errorCode
            guard let route = Route(message), let destination else { continue }
            for link in links {
                let paths = [1, 2].map { _ in NetworkPath(to: destination, over: route, link: link) { _ in nil } }
                try requireEqual(paths[0], paths[1], "the path")
            }
        }
    }
}
