// SPDX-License-Identifier: MIT

/// A decoder of frames, wherever their bytes are split (RFC 6455 §5.2).
package struct WebSocketFrameDecoder: Sendable {
    private let sender: Sender
    private let maximumPayload: Int
    private let allowsCompression: Bool
    private var bytes: [UInt8] = []
    private var start = 0

    /// The side that sends the frames.
    package enum Sender: Sendable {
        /// A client, which must mask its frames.
        case client
        /// A server, which must not.
        case server
    }

    /// Creates a decoder.
    ///
    /// - Parameters:
    ///   - sender: The side that sends the frames.
    ///   - maximumPayload: The maximum size of a frame's payload in bytes. A larger frame is refused by its header; one
    ///     that may be compressed, if it is larger than compression can make it.
    ///   - allowsCompression: Whether `permessage-deflate` was negotiated (RFC 7692).
    package init(of sender: Sender = .server, maximumPayload: Int, allowsCompression: Bool = false) {
        self.sender = sender
        self.maximumPayload = max(125, maximumPayload)
        self.allowsCompression = allowsCompression
    }

    /// Adds received bytes.
    package mutating func append(_ chunk: [UInt8]) {
        if start == bytes.count {
            bytes = chunk
        } else {
            bytes.removeSubrange(..<start)
            bytes.append(contentsOf: chunk)
        }
        start = 0
    }

    /// Returns the next frame; `nil` if more bytes are needed.
    package mutating func next() throws(WebSocketViolation) -> WebSocketFrame? {
        let available = bytes.count - start
        guard available >= 2 else { return nil }
        let (first, second) = (bytes[start], bytes[start + 1])
        var frame = try frame(first)
        guard (second & 0x80 != 0) == (sender == .client) else {
            throw WebSocketViolation(
                sender == .server ? "A frame of the server is masked." : "A frame of the client is not masked.")
        }
        let short = second & 0x7F
        guard !frame.opcode.isControl || short <= 125 else {
            throw WebSocketViolation("A control frame is longer than 125 bytes.")
        }
        let lengthBytes = short == 126 ? 2 : short == 127 ? 8 : 0
        let header = 2 + lengthBytes + (sender == .client ? 4 : 0)
        guard available >= 2 + lengthBytes else { return nil }
        let size = lengthBytes == 0 ? Int(short) : try length(in: start + 2..<start + 2 + lengthBytes)
        let mayBeCompressed = frame.isCompressed || allowsCompression && frame.opcode == .continuation
        guard size <= (mayBeCompressed ? WebSocketDeflate.bound(of: maximumPayload) : maximumPayload) else {
            throw .tooLarge(limit: maximumPayload)
        }
        guard available - header >= size else { return nil }
        let payloadStart = start + header
        frame.payload = Array(bytes[payloadStart..<payloadStart + size])
        if sender == .client {
            frame.payload.applyMask(UInt32(truncatingIfNeeded: number(in: payloadStart - 4..<payloadStart)), from: 0)
        }
        start = payloadStart + size
        return frame
    }

    /// Returns a frame without payload from the first byte of its header.
    private func frame(_ first: UInt8) throws(WebSocketViolation) -> WebSocketFrame {
        guard let opcode = WebSocketFrame.Opcode(rawValue: first & 0x0F) else {
            throw WebSocketViolation("The opcode \(first & 0x0F) is reserved.")
        }
        guard first & 0x30 == 0 else { throw WebSocketViolation("A reserved bit is set.") }
        let isCompressed = first & 0x40 != 0
        guard !isCompressed || allowsCompression && (opcode == .text || opcode == .binary) else {
            throw WebSocketViolation("The bit for compression is set where it is not allowed.")
        }
        let isFinal = first & 0x80 != 0
        guard isFinal || !opcode.isControl else { throw WebSocketViolation("A control frame is fragmented.") }
        return WebSocketFrame(opcode, isFinal: isFinal, isCompressed: isCompressed)
    }

    /// Returns an extended payload length, which must be encoded in the shortest form.
    private func length(in range: Range<Int>) throws(WebSocketViolation) -> Int {
        let number = number(in: range)
        guard number > (range.count == 2 ? 125 : 0xFFFF), number >> 63 == 0 else {
            throw WebSocketViolation("The length of a frame is not encoded in the shortest form.")
        }
        return Int(number)
    }

    private func number(in range: Range<Int>) -> UInt64 {
        bytes[range].reduce(0) { $0 << 8 | UInt64($1) }
    }
}
