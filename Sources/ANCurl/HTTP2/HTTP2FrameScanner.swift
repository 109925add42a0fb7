// SPDX-License-Identifier: MIT

/// A parser that finds the frames in the bytes sent by an HTTP/2 server (RFC 9113 §4.1).
///
/// It interprets the frames that determine the outcome of a request (ends of streams, resets and GOAWAY) and the number of
/// streams (SETTINGS), and passes on header blocks and bodies.
package struct HTTP2FrameScanner {
    /// An event parsed from a frame.
    package enum Event: Equatable {
        /// A HEADERS frame, whose header block follows.
        case headers(stream: UInt32, endsStream: Bool)
        /// The end of a header block.
        case headersEnd(stream: UInt32)
        /// A DATA frame with `count` bytes of the body, which may not have been received yet.
        case data(stream: UInt32, count: Int, endsStream: Bool)
        /// An RST_STREAM frame, with its error code (RFC 9113 §7).
        case reset(stream: UInt32, code: UInt32)
        /// A GOAWAY frame, with the last stream that the server may process, and its error code.
        case goAway(lastStream: UInt32, code: UInt32)
        /// A SETTINGS frame that acknowledges none, with its SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113 §6.5.2); `nil` if it has
        /// none.
        case settings(maximumStreams: UInt32?)
        /// A frame of a size that its type does not allow or with more padding than payload (RFC 9113 §4.2, §6.1), or
        /// 10,000 consecutive frames without content (§10.5). The connection is unusable; no further events follow.
        case violation

        /// The frame's stream; `nil` if the frame applies to the connection.
        var stream: UInt32? {
            switch self {
            case .headers(let stream, _), .headersEnd(let stream), .data(let stream, _, _), .reset(let stream, _):
                stream
            case .goAway, .settings, .violation: nil
            }
        }
    }

    /// The kind of content in a frame.
    package enum Content {
        /// A part of a header block (RFC 9113 §4.3).
        case headerBlock
        /// A part of a body.
        case body
    }

    private var isBroken = false
    /// The number of consecutive frames without content.
    private var emptyFrames = 0
    /// The frame header received so far, followed by the first bytes of the payload that are interpreted.
    private var header = Header()
    private var headerCount = 0
    private var prefix: UInt64 = 0
    private var prefixCount = 0
    /// The limit in the settings received so far.
    private var maximumStreams: UInt32?
    /// The number of payload bytes not yet received.
    private var payloadLeft = 0
    /// The number of payload bytes before the padding that are not yet received.
    private var contentLeft = 0

    /// Creates a scanner at a frame boundary.
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
            // The first bit is reserved (RFC 9113 §4.1).
            case 5: stream = UInt32(byte & 0x7F)
            default: stream = stream << 8 | UInt32(byte)
            }
        }

        var endsStream: Bool { flags & 0x1 != 0 }
        var isAcknowledgment: Bool { flags & 0x1 != 0 }
        var endsHeaders: Bool { flags & 0x4 != 0 && (type == Kind.headers || type == Kind.continuation) }
        var isPadded: Bool { flags & 0x8 != 0 && (type == Kind.data || type == Kind.headers) }
        var hasPriority: Bool { flags & 0x20 != 0 && type == Kind.headers }

        /// The number of leading payload bytes that are interpreted.
        var prefixSize: Int {
            switch type {
            case Kind.reset: 4
            case Kind.goAway: 8
            default: (isPadded ? 1 : 0) + (hasPriority ? 5 : 0)
            }
        }

        /// Whether the frame's size is allowed. The client announces no limit other than the initial one.
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
        static let continuation: UInt8 = 9
    }

    /// Parses bytes, which may begin and end anywhere within a frame.
    ///
    /// - Parameters:
    ///   - handle: Called with each event.
    ///   - read: Called with the content of HEADERS, CONTINUATION and DATA frames, in parts, and the stream.
    package mutating func receive(
        _ bytes: Span<UInt8>, _ handle: (Event) -> Void, content read: (Content, UInt32, Span<UInt8>) -> Void
    ) {
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
            } else if header.type == Kind.settings, payloadLeft > 0 {
                // Identifiers of two bytes and values of four (RFC 9113 §6.5.1).
                prefix = prefix << 8 | UInt64(bytes[index])
                payloadLeft -= 1
                index += 1
                if payloadLeft % 6 == 0, prefix >> 32 & 0xFFFF == 3 {
                    maximumStreams = UInt32(truncatingIfNeeded: prefix)
                }
            } else {
                let isContent = contentLeft > 0
                let count = min(isContent ? contentLeft : payloadLeft, bytes.count - index)
                if isContent {
                    let kind = header.type == Kind.data ? Content.body : .headerBlock
                    read(kind, header.stream, bytes.extracting(index..<index + count))
                    contentLeft -= count
                }
                payloadLeft -= count
                index += count
            }
            if headerCount == Header.size, payloadLeft == 0, prefixCount == header.prefixSize {
                if header.endsHeaders, !isBroken { handle(.headersEnd(stream: header.stream)) }
                if header.type == Kind.settings, !header.isAcknowledgment, !isBroken {
                    handle(.settings(maximumStreams: maximumStreams))
                }
                beginFrame()
            }
        }
    }

    private mutating func beginFrame() {
        header = Header()
        headerCount = 0
        prefix = 0
        prefixCount = 0
        maximumStreams = nil
    }

    private mutating func beginPayload(_ handle: (Event) -> Void) {
        guard header.isValid else { return fail(handle) }
        payloadLeft = header.length
        if header.prefixSize == 0 { report(handle) }
    }

    /// Counts consecutive frames without content.
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
        case Kind.data, Kind.headers:
            // The first byte is the length of the padding.
            let padding = header.isPadded ? Int(prefix >> UInt64(8 * (header.prefixSize - 1))) : 0
            guard header.prefixSize + padding <= header.length else { return fail(handle) }
            contentLeft = header.length - header.prefixSize - padding
            let isData = header.type == Kind.data
            note(isEmpty: isData && contentLeft == 0 && !header.endsStream, handle)
            guard !isBroken else { return }
            handle(
                isData
                    ? .data(stream: header.stream, count: contentLeft, endsStream: header.endsStream)
                    : .headers(stream: header.stream, endsStream: header.endsStream))
        case Kind.continuation:
            contentLeft = header.length
            note(isEmpty: true, handle)
        case Kind.reset:
            handle(.reset(stream: header.stream, code: UInt32(truncatingIfNeeded: prefix)))
        case Kind.goAway:
            let last = UInt32(truncatingIfNeeded: prefix >> 32) & 0x7FFF_FFFF
            handle(.goAway(lastStream: last, code: UInt32(truncatingIfNeeded: prefix)))
        // nghttp2 limits these itself, and a long upload causes many WINDOW_UPDATE frames.
        case Kind.settings, Kind.ping, Kind.windowUpdate: break
        default: note(isEmpty: true, handle)
        }
    }
}
