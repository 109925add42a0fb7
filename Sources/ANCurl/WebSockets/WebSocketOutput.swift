// SPDX-License-Identifier: MIT

package import ANHTTP
import CLinux

/// The bytes that a WebSocket connection still has to send.
///
/// Small frames are joined, so that one system call sends many.
package struct WebSocketOutput: Sendable {
    /// The number of bytes that were not accepted.
    package private(set) var count = 0
    /// The number of bytes that were accepted, or need not be sent any more, since the connection was opened.
    package private(set) var acceptedCount = 0
    /// The frames that are not in ``bytes`` yet, in order, and the index of the first one.
    private var frames: [Frame] = []
    private var first = 0
    /// The pongs that are sent before the frames.
    private var pongs: [UInt8] = []
    /// The bytes being sent, and the number of those that were accepted.
    private var bytes: [UInt8] = []
    private var offset = 0
    /// The end of the last message in ``bytes``; 0 if there is none.
    private var messageEnd = 0
    /// The number of messages in ``frames``.
    private var messageCount = 0

    private struct Frame {
        var bytes: [UInt8]
        let isMessage: Bool
    }

    package init() {}

    /// Whether all bytes were accepted.
    package var isEmpty: Bool { count == 0 }

    /// Whether bytes of messages were not accepted.
    package var hasMessages: Bool { offset < messageEnd || messageCount > 0 }

    /// Adds the bytes of a frame, which is a message of the program or, by default, one of the protocol.
    package mutating func append(_ frame: [UInt8], isMessage: Bool = false) {
        frames.append(Frame(bytes: frame, isMessage: isMessage))
        count += frame.count
        if isMessage { messageCount += 1 }
    }

    /// Adds a pong, which is sent before the frames. If 16 KiB of pongs wait because the server does not read, only the
    /// latest one is kept (RFC 6455 §5.5.3).
    package mutating func appendPong(_ frame: [UInt8]) {
        if pongs.count + frame.count > Self.joinedSize {
            count -= pongs.count
            acceptedCount += pongs.count
            pongs = []
        }
        pongs += frame
        count += frame.count
    }

    /// Offers bytes to a function that returns how many it accepted, unless there are none.
    ///
    /// - Returns: The number of bytes that were accepted.
    @discardableResult
    package mutating func sendOnce<Failure: Error>(
        _ accept: (ArraySlice<UInt8>) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        guard prepare() else { return 0 }
        let accepted = try accept(bytes[offset...])
        offset += accepted
        count -= accepted
        acceptedCount += accepted
        return accepted
    }

    /// Discards the bytes that were not accepted.
    package mutating func discard() {
        var empty = WebSocketOutput()
        empty.acceptedCount = acceptedCount
        self = empty
    }

    /// Fills ``bytes`` if all of it was accepted; returns whether there is anything to send.
    private mutating func prepare() -> Bool {
        guard offset == bytes.count else { return true }
        offset = 0
        bytes = pongs
        pongs = []
        messageEnd = 0
        while first < frames.count, bytes.isEmpty || bytes.count + frames[first].bytes.count <= Self.joinedSize {
            if bytes.isEmpty { bytes = frames[first].bytes } else { bytes += frames[first].bytes }
            if frames[first].isMessage {
                messageEnd = bytes.count
                messageCount -= 1
            }
            frames[first].bytes = []
            first += 1
        }
        if first == frames.count {
            frames.removeAll(keepingCapacity: frames.capacity <= 64)
            first = 0
        } else if first >= 64, 2 * first >= frames.count {
            frames.removeFirst(first)
            first = 0
        }
        return !bytes.isEmpty
    }

    /// The maximum number of bytes that are joined: a TLS record (RFC 8446 §5.1).
    private static let joinedSize = 16 << 10
}

/// The pongs for pings that arrive together; of many, the latest ones (RFC 6455 §5.5.3).
package struct PongBatch: Sendable {
    private var pongs: [WebSocketFrame] = []
    /// The index of the oldest one.
    private var first = 0

    package init() {}

    /// The pongs in their order.
    package var frames: [WebSocketFrame] { Array(pongs[first...] + pongs[..<first]) }

    package mutating func append(_ pong: WebSocketFrame) {
        guard pongs.count == Self.maximumCount else { return pongs.append(pong) }
        pongs[first] = pong
        first = (first + 1) % Self.maximumCount
    }

    private static let maximumCount = 64
}

/// Unpredictable masking keys for frames (RFC 6455 §5.3), of which the system provides many at once.
struct MaskingKeys: Sendable {
    private var keys: [UInt32] = []

    /// Returns a key that is used once.
    mutating func next() -> UInt32 {
        if keys.isEmpty { keys = Self.random() }
        return keys.popLast() ?? .random(in: .min ... .max)
    }

    /// Returns up to 64 random numbers, which getrandom(2) provides without interruption.
    private static func random() -> [UInt32] {
        unsafe [UInt32](unsafeUninitializedCapacity: 64) { keys, count in
            let bytes = unsafe getrandom(keys.baseAddress, 64 * MemoryLayout<UInt32>.size, 0)
            count = max(0, bytes) / MemoryLayout<UInt32>.size
        }
    }
}
