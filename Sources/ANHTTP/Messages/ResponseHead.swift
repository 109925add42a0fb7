// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import HTTPTypes
import Synchronization

/// The head of a response: status and header fields.
public struct ResponseHead: Sendable {
    private var shared: Shared<Contents>
    /// The decoder of the session that received the response, for serializers without one of their own.
    package var jsonDecoder: JSONDecoder?

    private struct Contents: Sendable {
        var status: HTTPResponse.Status
        var headers: HTTPFields
        var version: HTTPVersion
        var url: URL
        var redirectHistory: [ResponseHead] = []
        var retryHistory = RetryHistory()
        var webSocket: (any WebSocketLink)?
        var callHistory = CallHistory()
        var sending: Sending?
    }

    /// The status code, 100 to 999, with the server's reason phrase, which is empty over HTTP/2 and HTTP/3.
    public var status: HTTPResponse.Status {
        get { shared.value.status }
        set { set(\.status, to: newValue) }
    }
    /// The header fields in the order received, without trailers; repeated names are separate fields.
    public var headers: HTTPFields {
        get { shared.value.headers }
        set { set(\.headers, to: newValue) }
    }
    /// The HTTP version of the response; HTTP/1.1 by default.
    public var version: HTTPVersion {
        get { shared.value.version }
        set { set(\.version, to: newValue) }
    }
    /// The URL that the response came from, after any redirects.
    public var url: URL {
        get { shared.value.url }
        set { set(\.url, to: newValue) }
    }
    /// The redirect responses that led here, in order; set by a session, otherwise empty.
    public var redirectHistory: [ResponseHead] {
        get { shared.value.redirectHistory }
        set { set(\.redirectHistory, to: newValue) }
    }
    /// The attempts before this response, and why no more were made; set by a session that retries, otherwise empty.
    public var retryHistory: RetryHistory {
        get { shared.value.retryHistory }
        set { set(\.retryHistory, to: newValue) }
    }
    /// The WebSocket connection that a response with the status 101 has opened, which is valid until the exchange ends;
    /// `nil` for another response.
    package var webSocket: (any WebSocketLink)? {
        get { shared.value.webSocket }
        set { set(\.webSocket, to: newValue) }
    }
    /// The events of the call before this response; set by a session for a response that may be rejected.
    package var callHistory: CallHistory {
        get { shared.value.callHistory }
        set { set(\.callHistory, to: newValue) }
    }

    /// When the request was sent; set by a session with a cache for a response of its transport.
    package var sending: Sending? {
        get { shared.value.sending }
        set { set(\.sending, to: newValue) }
    }

    /// When a request was sent, as a value of the request and of the head of its response: it begins with the time at which
    /// the transport got the request, and libcurl's replaces that when a connection is ready for it.
    package final class Sending: Sendable {
        private let now: @Sendable () -> Int64
        private let notedTime: Atomic<Int64>
        private let notedOrder: Atomic<UInt64>

        /// The time in milliseconds since 1970.
        package var time: Int64 { notedTime.load(ordering: .relaxed) }
        /// The position among the requests of the process, of which a cache may get the responses of any, starting at 1.
        package var order: UInt64 { notedOrder.load(ordering: .relaxed) }

        private static let last = Atomic<UInt64>(0)

        /// Creates the value of a request that is sent now, with the next position.
        ///
        /// - Parameter now: Returns the time in milliseconds since 1970.
        package init(now: @escaping @Sendable () -> Int64) {
            self.now = now
            notedTime = Atomic(now())
            notedOrder = Atomic(Self.next)
        }

        /// Notes that the request is sent now, or once more.
        package func note() {
            notedTime.store(now(), ordering: .relaxed)
            notedOrder.store(Self.next, ordering: .relaxed)
        }

        /// The position of the last request that was sent so far; 0 if none was.
        package static var lastOrder: UInt64 { last.load(ordering: .relaxed) }

        private static var next: UInt64 { last.add(1, ordering: .relaxed).newValue }
    }

    private mutating func set<Value>(_ property: WritableKeyPath<Contents, Value>, to value: Value) {
        var contents = shared.value
        contents[keyPath: property] = value
        shared = Shared(contents)
    }

    /// Creates a head, for tests and interceptors.
    ///
    /// - Parameters:
    ///   - status: The status code with its reason phrase, possibly empty.
    ///   - headers: The header fields; empty by default.
    ///   - version: The HTTP version; HTTP/1.1 by default.
    ///   - url: The URL that the response came from.
    public init(status: HTTPResponse.Status, headers: HTTPFields = [:], version: HTTPVersion = .http1_1, url: URL) {
        shared = Shared(Contents(status: status, headers: headers, version: version, url: url))
    }

    /// Whether the body has a content coding (RFC 9110 §8.4), as sent.
    package var hasContentCoding: Bool { headers.contains(.contentEncoding) && !headers.contentCodings.isEmpty }

    /// Whether the body is one that a transport decodes: it has a content coding, and is not a part of the encoded
    /// representation.
    package var isDecodable: Bool { status != .partialContent && hasContentCoding }

    /// Returns the content codings that the body has after the transport has decoded it as the request asks for.
    package func codings(leftFor request: Request) -> [String] {
        isDecodable && request.options?.decodesContent != false ? [] : headers.contentCodings
    }

    /// The number in the first `Content-Length` field; `nil` if it is missing or not a decimal number (RFC 9110
    /// §8.6).
    package var contentLength: Int64? { headers.first(.contentLength).flatMap { Int64(digits: $0) } }

    /// The media type of the first `Content-Type` field, in lower case and without parameters; `nil` if there is no
    /// such field or it names no type. It is not validated. See RFC 9110 §8.3.
    public var mediaType: String? {
        guard let value = headers.first(.contentType) else { return nil }
        if !value.isEmpty, value.utf8.allSatisfy(Self.isOfLowercaseType) { return value }
        let type = value.utf8.prefix { $0 != UInt8(ascii: ";") }.drop(while: Self.isBlank)
        guard let last = type.lastIndex(where: { !Self.isBlank($0) }) else { return nil }
        return Substring(type[...last]).lowercased()
    }

    /// Returns whether a byte is a lower-case letter, a digit or one of the punctuation characters common in media
    /// types.
    private static func isOfLowercaseType(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "+"):
            true
        default: false
        }
    }

    /// Returns whether a byte is optional whitespace (RFC 9110 §5.6.3).
    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }
}

extension HTTPFields {
    /// The content codings of all `Content-Encoding` fields in the order in which they were applied: in lower case,
    /// without `identity`, and with the current names of `x-gzip` and `x-compress` (RFC 9110 §8.4).
    package var contentCodings: [String] {
        guard contains(where: { $0.name == .contentEncoding }) else { return [] }
        var codings: [String] = []
        for member in self[values: .contentEncoding].flatMap({ $0.split(at: ",") }) {
            switch member.trimmingBlanks.lowercased() {
            case "", "identity": continue
            case "x-gzip": codings.append("gzip")
            case "x-compress": codings.append("compress")
            case let coding: codings.append(coding)
            }
        }
        return codings
    }
}

/// A version of HTTP.
public enum HTTPVersion: String, Hashable, Sendable, CustomStringConvertible {
    /// HTTP/1.0 (RFC 1945).
    case http1_0 = "HTTP/1.0"
    /// HTTP/1.1 (RFC 9112).
    case http1_1 = "HTTP/1.1"
    /// HTTP/2 (RFC 9113).
    case http2 = "HTTP/2"
    /// HTTP/3 (RFC 9114).
    case http3 = "HTTP/3"

    /// The name of the version, such as `HTTP/1.1`.
    public var description: String { rawValue }
}

/// The byte range of a response, from its `Content-Range` field (RFC 9110 §14.4).
package struct ContentRange: Hashable, Sendable {
    /// The positions of the first and the last byte, counted from 0; `nil` if the requested range is not satisfiable.
    package var bytes: ClosedRange<Int64>?
    /// The size of the complete resource in bytes; `nil` if the server does not know it.
    package var total: Int64?

    /// Parses `bytes 0-499/1234`, `bytes 0-499/*` or `bytes */1234`; `nil` for any other text.
    package init?(_ text: String) {
        let words = text.split(at: " ", omittingEmptySubsequences: true)
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(at: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        if parts[1] != "*" {
            guard let total = Int64(digits: parts[1]) else { return nil }
            self.total = total
        }
        if parts[0] == "*" {
            guard total != nil else { return nil }
            return
        }
        let ends = parts[0].split(at: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Int64(digits: ends[0]), let last = Int64(digits: ends[1]), first <= last,
            last < total ?? .max
        else { return nil }
        bytes = first...last
    }

    /// The range as the whole of a file that consists of it; `nil` if it has no bytes.
    package var ofWholeFile: ContentRange? {
        bytes.map { bytes in
            var whole = self
            (whole.bytes, whole.total) = (0...(bytes.upperBound - bytes.lowerBound), Int64(bytes.count))
            return whole
        }
    }
}

extension ResponseHead {
    /// The range in the first `Content-Range` field; `nil` if it is missing or malformed.
    package var contentRange: ContentRange? { headers.first(.contentRange).flatMap(ContentRange.init) }
}

extension ResponseHead.Sending: CallAttribute {
    /// The attribute of a request of a session without a cache.
    package static var defaultValue: ResponseHead.Sending? { nil }
}
