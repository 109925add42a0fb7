// SPDX-License-Identifier: MIT

/// Finds the frames in the bytes that an HTTP/2 server sends (RFC 9113 §4.1).
///
/// Only what decides about the fate of a request is read: the ends of streams, resets and GOAWAY. Header blocks are skipped.
package struct HTTP2FrameScanner {
    /// What a frame says.
    package enum Event: Equatable {
        /// A HEADERS frame.
        case headers(stream: UInt32, endsStream: Bool)
        /// A DATA frame with `count` bytes of the body, which may still follow.
        case data(stream: UInt32, count: Int, endsStream: Bool)
        /// An RST_STREAM frame, with its error code (RFC 9113 §7).
        case reset(stream: UInt32, code: UInt32)
        /// A GOAWAY frame, with the last stream that the server may process and an error code.
        case goAway(lastStream: UInt32, code: UInt32)
        /// A frame of a size that its type cannot have, or with more padding than payload (RFC 9113 §4.2, §6.1), or 10,000 frames
        /// in a row that say nothing (§10.5): the connection cannot go on. Nothing follows.
        case violation
    }

    private var isBroken = false
    /// The number of frames since the last one that said something.
    private var emptyFrames = 0
    /// The header of the frame, as far as it has come, then the first bytes of its payload that are read.
    private var header = Header()
    private var headerCount = 0
    private var prefix: UInt64 = 0
    private var prefixCount = 0
    /// The number of bytes of the payload that have not come.
    private var payloadLeft = 0

    /// Creates a scanner at the start of a frame.
    package init() {}

    private struct Header {
        var length = 0
        var type: UInt8 = 0
        var flags: UInt8 = 0
        var stream: UInt32 = 0

        static let size = 9

        mutating func append(_ byte: UInt8, at index: Int) {
            switch index {
            case 0..<3: length = length << 8 | Int(byte)
            case 3: type = byte
            case 4: flags = byte
            // The first bit is reserved.
            case 5: stream = UInt32(byte & 0x7F)
            default: stream = stream << 8 | UInt32(byte)
            }
        }

        var endsStream: Bool { flags & 0x1 != 0 }
        var isPadded: Bool { flags & 0x8 != 0 && (type == Kind.data || type == Kind.headers) }

        /// The number of bytes of the payload that are read.
        var prefixSize: Int {
            switch type {
            case Kind.reset: 4
            case Kind.goAway: 8
            default: isPadded ? 1 : 0
            }
        }

        /// Whether the frame is of a size that is allowed. This side announces no other limit than the initial one.
        var isValid: Bool {
            guard length <= 16_384 else { return false }
            return switch type {
            case Kind.data, Kind.headers: stream != 0 && length >= prefixSize
            case Kind.reset: stream != 0 && length == 4
            case Kind.settings: length % 6 == 0
            case Kind.ping: length == 8
            case Kind.goAway: length >= 8
            case Kind.windowUpdate: length == 4
            default: true
            }
        }
    }

    private enum Kind {
        static let data: UInt8 = 0
        static let headers: UInt8 = 1
        static let reset: UInt8 = 3
        static let settings: UInt8 = 4
        static let ping: UInt8 = 6
        static let goAway: UInt8 = 7
        static let windowUpdate: UInt8 = 8
    }

    /// Takes bytes, which may begin and end anywhere within a frame.
    package mutating func receive(_ bytes: Span<UInt8>, _ handle: (Event) -> Void) {
        var index = 0
        while index < bytes.count, !isBroken {
            if headerCount < Header.size {
                header.append(bytes[index], at: headerCount)
                headerCount += 1
                index += 1
                if headerCount == Header.size { beginPayload(handle) }
            } else if prefixCount < header.prefixSize {
                prefix = prefix << 8 | UInt64(bytes[index])
                prefixCount += 1
                payloadLeft -= 1
                index += 1
                if prefixCount == header.prefixSize { report(handle) }
            } else {
                let count = min(payloadLeft, bytes.count - index)
                payloadLeft -= count
                index += count
            }
            if headerCount == Header.size, payloadLeft == 0, prefixCount == header.prefixSize { beginFrame() }
        }
    }

    private mutating func beginFrame() {
        header = Header()
        headerCount = 0
        prefix = 0
        prefixCount = 0
    }

    private mutating func beginPayload(_ handle: (Event) -> Void) {
        guard header.isValid else { return fail(handle) }
        payloadLeft = header.length
        if header.prefixSize == 0 { report(handle) }
    }

    /// Notes whether a frame says something.
    private mutating func note(isEmpty: Bool, _ handle: (Event) -> Void) {
        emptyFrames = isEmpty ? emptyFrames + 1 : 0
        if emptyFrames == 10_000 { fail(handle) }
    }

    private mutating func fail(_ handle: (Event) -> Void) {
        isBroken = true
        handle(.violation)
    }

    private mutating func report(_ handle: (Event) -> Void) {
        switch header.type {
        case Kind.data:
            let overhead = header.isPadded ? 1 + Int(prefix) : 0
            guard overhead <= header.length else { return fail(handle) }
            let count = header.length - overhead
            note(isEmpty: count == 0 && !header.endsStream, handle)
            guard !isBroken else { return }
            handle(.data(stream: header.stream, count: count, endsStream: header.endsStream))
        case Kind.headers:
            guard !header.isPadded || 1 + Int(prefix) <= header.length else { return fail(handle) }
            note(isEmpty: false, handle)
            handle(.headers(stream: header.stream, endsStream: header.endsStream))
        case Kind.reset:
            handle(.reset(stream: header.stream, code: UInt32(truncatingIfNeeded: prefix)))
        case Kind.goAway:
            let last = UInt32(truncatingIfNeeded: prefix >> 32) & 0x7FFF_FFFF
            handle(.goAway(lastStream: last, code: UInt32(truncatingIfNeeded: prefix)))
        // nghttp2 counts these, and a long upload brings many of the last kind.
        case Kind.settings, Kind.ping, Kind.windowUpdate: break
        default: note(isEmpty: true, handle)
        }
    }
}
