// SPDX-License-Identifier: MIT

/// The bytes that a WebSocket connection still has to send.
///
/// Small frames are joined, so that one system call sends many. Bytes that the system did not accept are offered again
/// at the same address, as SSL_write(3) requires.
package struct WebSocketOutput {
    /// The frames that are not in ``bytes`` yet, in order, and the index of the first one.
    private var frames: [(bytes: [UInt8], isMessage: Bool)] = []
    private var first = 0
    /// The pongs that are sent before the frames.
    private var pongs: [UInt8] = []
    /// The bytes being sent, and the number of those that were accepted.
    private var bytes: [UInt8] = []
    private var offset = 0
    /// The number of messages' frames that end with ``bytes``.
    private var messages = 0

    package init() {}

    /// Whether all bytes were accepted.
    package var isEmpty: Bool { offset == bytes.count && first == frames.count && pongs.isEmpty }

    /// Adds the bytes of a frame.
    ///
    /// - Parameter isMessage: Whether it is a frame of a message, which is counted when it has been accepted.
    package mutating func append(_ frame: [UInt8], isMessage: Bool = false) {
        frames.append((frame, isMessage))
    }

    /// Adds a pong, which is sent before the frames. If 16 KiB of pongs wait because the server does not read, only the
    /// latest one is kept (RFC 6455 §5.5.3).
    package mutating func appendPong(_ frame: [UInt8]) {
        if pongs.count + frame.count > Self.joinedSize { pongs = [] }
        pongs += frame
    }

    /// Offers bytes to a function that returns how many it accepted, until it accepts none or there are no more.
    ///
    /// - Returns: The number of messages' frames that were accepted completely.
    package mutating func send<Failure: Error>(
        _ accept: (ArraySlice<UInt8>) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        var count = 0
        while prepare() {
            let accepted = try accept(bytes[offset...])
            guard accepted > 0 else { break }
            offset += accepted
            guard offset == bytes.count else { continue }
            count += messages
            messages = 0
        }
        return count
    }

    /// Fills ``bytes`` if all of it was accepted; returns whether there is anything to send.
    private mutating func prepare() -> Bool {
        guard offset == bytes.count else { return true }
        offset = 0
        bytes = pongs
        pongs = []
        while first < frames.count, bytes.isEmpty || bytes.count + frames[first].bytes.count <= Self.joinedSize {
            if bytes.isEmpty { bytes = frames[first].bytes } else { bytes += frames[first].bytes }
            if frames[first].isMessage { messages += 1 }
            frames[first].bytes = []
            first += 1
        }
        if first == frames.count {
            frames.removeAll(keepingCapacity: frames.capacity <= 64)
            first = 0
        }
        return !bytes.isEmpty
    }

    /// The maximum number of bytes that are joined: a TLS record (RFC 8446 §5.1).
    private static let joinedSize = 16 << 10
}
