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
