// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

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

/// A request as a ``StubServer`` received it, without normalization.
///
/// A method, target, field name or field value that is not valid UTF-8 is decoded as Latin-1.
///
/// ``StubServer/activity`` contains the requests of a server, and the functions of routes and scripts receive them. A
/// value of this type is a snapshot, which does not change while the server receives more of the request. The activity
/// has a newer one whenever the server has finished reading the body, or the part of it that a script reads, and when
/// the client or the script ends the connection.
public struct RecordedRequest: Sendable {
    /// The method as sent, such as `GET`; it may be any text.
    public var method: String
    /// The request target as sent: usually a path with its query; if the server is used as a proxy, an absolute URL, or
    /// `host:port` for CONNECT; `*` for an OPTIONS request about the server itself. With a ``MockTransport``, always a
    /// path with its query.
    public var target: String
    /// The HTTP version, such as `HTTP/1.1`. It begins with `HTTP/1.`, or is `HTTP/2.0` in the connection preface of
    /// HTTP/2 (RFC 9113 §3.4); other requests are rejected with status 400. Always `HTTP/1.1` with a ``MockTransport``.
    public var version: String
    /// The header fields in the order received, with repeated names and the original case of names. With a
    /// ``MockTransport``, only those of the client's `Request`, without the ones that a real transport adds, such as
    /// `Host`.
    public var headers: HeaderPairs
    /// The body without its framing and not decompressed, of which a server keeps the first
    /// ``StubServer/Options/maximumRecordedBody`` bytes; empty before the body is read, which happens before the script
    /// unless ``Script/readsBodyFirst`` is `false`.
    public var body = Data()
    /// The number of body bytes received so far, without their framing, even if fewer are recorded in ``body``; 0
    /// before the body is read.
    public var bodyLength: Int64 = 0
    /// The SHA-256 of all body bytes in lower-case hexadecimal; `nil` before the end of the body, for an empty one, and
    /// with a ``MockTransport``.
    public var bodySHA256: String?
    /// The trailer fields of a chunked body in the order received; empty without trailers, and before the end of the
    /// body. With a ``MockTransport``, those of the `Request`.
    public var trailers: HeaderPairs = [:]
    /// Whether the complete request was received, including its body and trailer fields.
    ///
    /// `false` before the body is read, even if that is empty; see ``Script/readsBodyFirst``. Always `true` with a
    /// ``MockTransport``.
    public var isComplete = false
    /// Whether the client closed or reset the connection before the server had finished the request and its script;
    /// `false` if the server ended the connection, and always with a ``MockTransport``.
    ///
    /// While a script waits, a client that closes only its sending side counts as having closed the connection. The
    /// value is also `true` if the server ended a WebSocket connection because of an invalid frame of the client.
    public var isAbandoned = false
    /// The number of the connection, counted from 0 in the order in which the server accepted connections; 0 with a
    /// ``MockTransport``.
    public var connection: Int
    /// The number of the request on its connection, counted from 0; 1 or more means that the connection was reused. It
    /// is 0 with a ``MockTransport``.
    public var positionOnConnection: Int
    /// The result of the TLS handshake; `nil` without TLS, and with a ``MockTransport``.
    public var tls: TLSSummary?

    /// The target without scheme, authority and query, percent-encoded as sent; empty for an absolute URL without a
    /// path, and the whole target for CONNECT (`host:port`) and for `*`.
    public var path: String {
        String(pathAndQuery.unicodeScalars.prefix { $0 != "?" })
    }

    /// The query of the target, percent-encoded as sent and without its question mark; `nil` if the target has no
    /// question mark, empty if nothing follows it.
    public var query: String? {
        pathAndQuery.unicodeScalars.firstIndex(of: "?").map { String(pathAndQuery.unicodeScalars[$0...].dropFirst()) }
    }

    private var pathAndQuery: Substring {
        guard !target.hasPrefix("/"), let scheme = target.unicodeScalars.firstRange(of: "://".unicodeScalars) else {
            return target[...]
        }
        return Substring(target.unicodeScalars[scheme.upperBound...].drop { $0 != "/" && $0 != "?" })
    }

    /// ``body``, the recorded part of the body, as text; invalid UTF-8 is replaced by U+FFFD. Empty before the body is
    /// read.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// The result of a TLS handshake, with OpenSSL's names of versions and cipher suites.
    public struct TLSSummary: Hashable, Sendable {
        /// The negotiated TLS version as named by OpenSSL, such as `TLSv1.3`. See SSL_get_version(3).
        public var version: String
        /// The negotiated cipher suite as named by OpenSSL, such as `TLS_AES_256_GCM_SHA384`. See
        /// SSL_CIPHER_get_name(3).
        public var cipher: String
        /// The host name requested by the client (SNI, RFC 6066 §3); `nil` if absent.
        public var serverName: String?
        /// The negotiated application protocol (ALPN, RFC 7301); `nil` if no protocol was negotiated.
        public var applicationProtocol: String?
        /// Whether the handshake resumed an earlier TLS session, of which the client kept a ticket or identifier,
        /// instead of establishing a new one.
        public var isResumed: Bool
        /// The common name of the client's certificate; `nil` if the client sent no certificate, which only a server
        /// with a ``StubServer/TLS/clientAuthority`` requests, or one without a common name.
        public var clientName: String?
    }
}
