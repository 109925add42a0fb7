// SPDX-License-Identifier: MIT

/// A frame of a WebSocket connection (RFC 6455 §5.2), unmasked.
package struct WebSocketFrame: Hashable, Sendable {
    package var isFinal: Bool
    /// Whether the first reserved bit is set, which marks a compressed message (RFC 7692 §6).
    package var isCompressed: Bool
    package var opcode: Opcode
    package var payload: [UInt8]

    package init(_ opcode: Opcode, _ payload: [UInt8] = [], isFinal: Bool = true, isCompressed: Bool = false) {
        self.opcode = opcode
        self.payload = payload
        self.isFinal = isFinal
        self.isCompressed = isCompressed
    }

    /// The defined opcodes.
    package enum Opcode: UInt8, Sendable {
        case continuation = 0x0
        case text = 0x1
        case binary = 0x2
        case close = 0x8
        case ping = 0x9
        case pong = 0xA

        package var isControl: Bool { rawValue >= 0x8 }
    }

    /// Returns the bytes of the frame.
    ///
    /// - Parameter mask: The masking key of a client's frame, which must be unpredictable (RFC 6455 §5.3); `nil` for a
    ///   server's frame.
    package func encoded(mask: UInt32?) -> [UInt8] {
        var bytes = [UInt8]()
        bytes.reserveCapacity(payload.count + 14)
        bytes.append((isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue)
        let flag: UInt8 = mask == nil ? 0 : 0x80
        switch payload.count {
        case ...125: bytes.append(flag | UInt8(payload.count))
        case ...0xFFFF:
            bytes.append(flag | 126)
            bytes.appendBigEndian(UInt64(payload.count), count: 2)
        default:
            bytes.append(flag | 127)
            bytes.appendBigEndian(UInt64(payload.count), count: 8)
        }
        if let mask { bytes.appendBigEndian(UInt64(mask), count: 4) }
        let start = bytes.count
        bytes.append(contentsOf: payload)
        if let mask { bytes.applyMask(mask, from: start) }
        return bytes
    }
}

extension [UInt8] {
    fileprivate mutating func appendBigEndian(_ number: UInt64, count: Int) {
        for index in (0..<count).reversed() { append(UInt8(truncatingIfNeeded: number >> UInt64(8 * index))) }
    }

    /// Masks or unmasks the bytes from an index on (RFC 6455 §5.3).
    mutating func applyMask(_ mask: UInt32, from start: Int) {
        let keys = (
            UInt8(truncatingIfNeeded: mask >> 24), UInt8(truncatingIfNeeded: mask >> 16),
            UInt8(truncatingIfNeeded: mask >> 8), UInt8(truncatingIfNeeded: mask)
        )
        var index = start
        while index + 4 <= count {
            self[index] ^= keys.0
            self[index + 1] ^= keys.1
            self[index + 2] ^= keys.2
            self[index + 3] ^= keys.3
            index += 4
        }
        if index < count { self[index] ^= keys.0 }
        if index + 1 < count { self[index + 1] ^= keys.1 }
        if index + 2 < count { self[index + 2] ^= keys.2 }
    }
}

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
