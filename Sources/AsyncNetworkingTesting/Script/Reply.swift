// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A response as a ``StubServer`` sends it.
///
/// The server adds the fields that the framing needs and nothing else: no `Date`, no `Server`, no `Content-Type`.
public struct Reply: Sendable {
    /// The version in the status line, `HTTP/1.1`.
    public var version = "HTTP/1.1"
    /// The status code.
    public var status: Int
    /// The reason phrase: nil sends the usual one, an empty one sends none.
    public var reason: String?
    /// The header fields, sent as they are.
    public var headers: HeaderPairs
    /// The body.
    public var body: Body
    /// How the body is framed; `Content-Length` by default.
    public var framing: Framing
    /// The trailer fields; only a chunked body has them.
    public var trailers: HeaderPairs
    /// The speed at which the body is sent; nil for at once.
    public var pace: Script.Pace?

    /// Creates a response.
    public init(
        status: Int = 200, reason: String? = nil, headers: HeaderPairs = [:], body: Body = .bytes(Data()),
        framing: Framing = .contentLength, trailers: HeaderPairs = [:], pace: Script.Pace? = nil
    ) {
        self.status = status
        self.reason = reason
        self.headers = headers
        self.body = body
        self.framing = framing
        self.trailers = trailers
        self.pace = pace
    }

    /// The bytes of a body.
    public enum Body: Sendable {
        /// Bytes in memory.
        case bytes(Data)
        /// So many of ``StubServer/generatedBytes(_:)``, never held in memory.
        case generated(Int64)

        /// The UTF-8 of a string.
        public static func string(_ string: String) -> Body {
            .bytes(Data(string.utf8))
        }

        /// The number of bytes.
        public var count: Int64 {
            switch self {
            case .bytes(let data): Int64(data.count)
            case .generated(let count): max(0, count)
            }
        }
    }

    /// How a client learns where a body ends, RFC 9112 §6.
    public enum Framing: Hashable, Sendable {
        /// By `Content-Length`; a declared length that differs from the body's is sent all the same.
        case contentLength(declared: Int64? = nil)
        /// By the chunked coding, in chunks of so many bytes.
        case chunked(size: Int = 16_384)
        /// By the end of the connection.
        case untilClose
        /// By what the header fields say: the server adds none, and sends the body as it is.
        case asGiven

        /// By `Content-Length`.
        public static var contentLength: Framing { .contentLength() }
        /// By the chunked coding, in chunks of 16 KiB.
        public static var chunked: Framing { .chunked() }
    }
}
