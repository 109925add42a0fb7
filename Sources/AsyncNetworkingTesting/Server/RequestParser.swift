// SPDX-License-Identifier: MIT

import ANHTTP

/// An incremental parser for HTTP/1.x requests (RFC 9112) that keeps all details.
///
/// The parser is pure: it receives bytes with ``append(_:)`` and returns the parts of requests from ``next()``. It
/// accepts some malformed requests so that they can be recorded: lines may end with LF alone, and names and methods may
/// be any text.
package struct RequestParser {
    private let maximumHeadSize: Int
    private var state = State.head
    private var bytes: [UInt8] = []
    /// The position of the first byte that was not parsed yet.
    private var start = 0
    private var head = Head()
    private var headSize = 0

    /// Creates a parser that rejects heads and lines of more than `maximumHeadSize` bytes.
    package init(maximumHeadSize: Int) {
        self.maximumHeadSize = maximumHeadSize
    }

    /// Whether no byte of the next request has arrived.
    package var isIdle: Bool {
        switch state {
        case .head: start == bytes.count
        case .headers, .body, .chunkSize, .chunk, .chunkEnd, .trailers: false
        }
    }

    /// Whether there are bytes that were not parsed yet.
    package var hasUnreadBytes: Bool { start < bytes.count }

    /// Appends received bytes.
    package mutating func append(_ more: some Collection<UInt8>) {
        if start > 0 {
            bytes.removeSubrange(..<start)
            start = 0
        }
        bytes.append(contentsOf: more)
    }

    /// Returns the next part; ``Part/needsMore`` if more bytes must be appended.
    package mutating func next() throws(ParsingError) -> Part {
        while true {
            switch state {
            case .head:
                guard let line = try takeLine() else { return .needsMore }
                if line.isEmpty { continue }
                head = try Self.parseRequestLine(line)
                state = .headers
            case .headers:
                guard let line = try takeLine() else { return .needsMore }
                guard line.isEmpty else {
                    head.headers.append(try Self.parseField(line))
                    continue
                }
                let framing = try Self.framing(of: HeaderPairs(head.headers))
                headSize = 0
                state = framing
                defer { head = Head() }
                return .head(method: head.method, target: head.target, version: head.version, HeaderPairs(head.headers))
            case .body(let left):
                guard left > 0 else { return end() }
                guard let taken = take(atMost: left) else { return .needsMore }
                state = .body(left: left - Int64(taken.count))
                return .body(taken)
            case .chunkSize:
                guard let line = try takeLine() else { return .needsMore }
                let size = try Self.parseChunkSize(line)
                headSize = 0
                state = size == 0 ? .trailers : .chunk(left: size)
            case .chunk(let left):
                guard let taken = take(atMost: left) else { return .needsMore }
                let rest = left - Int64(taken.count)
                state = rest == 0 ? .chunkEnd : .chunk(left: rest)
                return .body(taken)
            case .chunkEnd:
                guard let line = try takeLine() else { return .needsMore }
                guard line.isEmpty else { throw .chunk }
                state = .chunkSize
            case .trailers:
                guard let line = try takeLine() else { return .needsMore }
                guard !line.isEmpty else { return end() }
                head.headers.append(try Self.parseField(line))
            }
        }
    }

    private mutating func end() -> Part {
        defer {
            state = .head
            head = Head()
            headSize = 0
        }
        return .end(trailers: HeaderPairs(head.headers))
    }

    /// Returns the next line without its line ending; `nil` if it is incomplete.
    private mutating func takeLine() throws(ParsingError) -> ArraySlice<UInt8>? {
        guard let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) else {
            guard bytes.count - start <= maximumHeadSize - headSize else { throw .tooLarge }
            return nil
        }
        headSize += end - start
        guard headSize <= maximumHeadSize else { throw .tooLarge }
        let line = bytes[start..<end]
        start = end + 1
        return line.last == UInt8(ascii: "\r") ? line.dropLast() : line
    }

    private mutating func take(atMost limit: Int64) -> [UInt8]? {
        let count = Int(min(limit, Int64(bytes.count - start)))
        guard count > 0 else { return nil }
        defer { start += count }
        return Array(bytes[start..<start + count])
    }

    // MARK: Lines

    private static func parseRequestLine(_ line: ArraySlice<UInt8>) throws(ParsingError) -> Head {
        guard let first = line.firstIndex(of: UInt8(ascii: " ")), let last = line.lastIndex(of: UInt8(ascii: " ")),
            first < last
        else { throw .requestLine }
        let version = text(line[(last + 1)...])
        // The connection preface of HTTP/2 (RFC 9113 §3.4) resembles a request; it is accepted so that a script can
        // respond with frames.
        guard version.hasPrefix("HTTP/1.") || version == "HTTP/2.0" && line.starts(with: "PRI ".utf8) else {
            throw .requestLine
        }
        return Head(method: text(line[..<first]), target: text(line[(first + 1)..<last]), version: version)
    }

    private static func parseField(_ line: ArraySlice<UInt8>) throws(ParsingError) -> HeaderPair {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else { throw .field }
        return HeaderPair(text(line[..<colon]), String(text(line[(colon + 1)...]).trimmingBlanks))
    }

    /// Returns the state for the framing of a body, according to RFC 9112 §6.3.
    private static func framing(of headers: HeaderPairs) throws(ParsingError) -> State {
        if headers.has(token: "chunked", in: "Transfer-Encoding") { return .chunkSize }
        guard let value = headers["Content-Length"] else { return .body(left: 0) }
        guard let length = Int64(digits: value), headers.values("Content-Length").allSatisfy({ $0 == value }) else {
            throw .contentLength
        }
        return .body(left: length)
    }

    private static func parseChunkSize(_ line: ArraySlice<UInt8>) throws(ParsingError) -> Int64 {
        let digits = text(line.prefix { $0 != UInt8(ascii: ";") }).trimmingBlanks
        guard let first = digits.utf8.first, first != UInt8(ascii: "-"), first != UInt8(ascii: "+"),
            let size = Int64(digits, radix: 16)
        else { throw .chunk }
        return size
    }

    /// Returns bytes decoded as UTF-8 if they are valid, otherwise as Latin-1, so that no byte is lost.
    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(validating: bytes, as: UTF8.self) ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    /// A part of a request.
    package enum Part: Hashable {
        /// More bytes are needed.
        case needsMore
        /// The head of a request.
        case head(method: String, target: String, version: String, HeaderPairs)
        /// Bytes of the body, at least one.
        case body([UInt8])
        /// The end of the request.
        case end(trailers: HeaderPairs)
    }

    /// The reason why bytes cannot be parsed as a request.
    package enum ParsingError: Error, Hashable {
        /// The request line does not consist of a method, a target and an HTTP/1 version.
        case requestLine
        /// A header field has no name or no colon.
        case field
        /// A `Content-Length` is not a number, or two of them differ.
        case contentLength
        /// The chunked coding is malformed.
        case chunk
        /// A head or a line exceeds the limit.
        case tooLarge
    }

    private enum State {
        /// Before or within the request line.
        case head
        /// Within the header fields.
        case headers
        /// Within a body of known length.
        case body(left: Int64)
        /// Before the size of a chunk.
        case chunkSize
        /// Within a chunk.
        case chunk(left: Int64)
        /// Before the line ending after a chunk.
        case chunkEnd
        /// Within the trailer fields.
        case trailers
    }

    private struct Head {
        var method = ""
        var target = ""
        var version = ""
        var headers: [HeaderPair] = []
    }
}
