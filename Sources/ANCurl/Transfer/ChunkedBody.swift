// SPDX-License-Identifier: MIT

/// A decoder of the chunked transfer coding (RFC 9112 §7.1), wherever its bytes are split.
///
/// libcurl does not report the end of a chunked response while the body of its request is open, nor if it fails to send
/// that body; so the responses to such requests are decoded here.
package struct ChunkedBody: Equatable, Sendable {
    private var state = State.size
    /// The bytes of an incomplete line.
    private var line: [UInt8] = []

    private enum State: Equatable {
        /// In the line with the size of a chunk.
        case size
        /// In a chunk with this number of bytes left.
        case content(left: Int64)
        /// In the line that ends a chunk.
        case end
        /// In the trailers.
        case trailers
        case over
        case malformed
    }

    /// The maximum length of a line in bytes.
    private static let maximumLine = 64 << 10

    /// Creates a decoder for a body.
    package init() {}

    /// Whether the last chunk was received, with which the body is complete; trailers may follow.
    package var isComplete: Bool { state == .trailers || state == .over }

    /// Whether the body and its trailers were received.
    package var isOver: Bool { state == .over }

    /// Whether the bytes do not follow the coding.
    package var isMalformed: Bool { state == .malformed }

    /// Decodes the next bytes. Returns the content, and the lines of the trailers with the empty one at the end. What
    /// follows them, or a malformed part, is ignored.
    package mutating func decode(
        _ bytes: some RandomAccessCollection<UInt8>
    ) -> (content: [UInt8], trailers: [[UInt8]]) {
        var content: [UInt8] = []
        var trailers: [[UInt8]] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            if case .content(let left) = state {
                let part = rest.prefix(Int(clamping: left))
                content += part
                rest = rest[part.endIndex...]
                state = left == Int64(part.count) ? .end : .content(left: left - Int64(part.count))
                continue
            }
            guard !isOver, !isMalformed else { break }
            guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else {
                append(rest)
                break
            }
            append(rest[...end])
            rest = rest[rest.index(after: end)...]
            if !isMalformed { finishLine(&trailers) }
        }
        return (content, trailers)
    }

    private mutating func append(_ part: some Collection<UInt8>) {
        line += part
        if line.count > Self.maximumLine { state = .malformed }
    }

    private mutating func finishLine(_ trailers: inout [[UInt8]]) {
        defer { line = [] }
        let isEmpty = line.elementsEqual("\r\n".utf8) || line.elementsEqual("\n".utf8)
        switch state {
        case .size:
            guard let size = Self.size(line) else { return state = .malformed }
            state = size == 0 ? .trailers : .content(left: size)
        case .end: state = isEmpty ? .size : .malformed
        case .trailers:
            trailers.append(line)
            if isEmpty { state = .over }
        case .content, .over, .malformed: break
        }
    }

    /// Returns the size in a chunk's first line; `nil` if it is invalid. Extensions are ignored.
    private static func size(_ line: [UInt8]) -> Int64? {
        let digits = line.prefix { $0 != UInt8(ascii: ";") && $0 > UInt8(ascii: " ") }
        guard digits.first != UInt8(ascii: "+"), digits.first != UInt8(ascii: "-") else { return nil }
        return Int64(String(decoding: digits, as: UTF8.self), radix: 16)
    }
}
