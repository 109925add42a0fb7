// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A request exactly as a ``StubServer`` received it.
public struct RecordedRequest: Sendable {
    /// The method.
    public var method: String
    /// The request target: a path with its query, or an absolute URL when the server is spoken to as a proxy.
    public var target: String
    /// The version, such as `HTTP/1.1`.
    public var version: String
    /// The header fields, in order and in their case.
    public var headers: HeaderPairs
    /// The body without its framing; of a large one the first ``StubServer/Options/maximumRecordedBody`` bytes.
    public var body = Data()
    /// The number of body bytes received.
    public var bodyLength: Int64 = 0
    /// The SHA-256 of all body bytes received, in lower-case hexadecimal; nil before the end of the body, and
    /// without one.
    public var bodySHA256: String?
    /// The trailer fields of a chunked body.
    public var trailers: HeaderPairs = [:]
    /// Whether the request was received to its end.
    public var isComplete = false
    /// Whether the client closed, or reset, the connection before the server was done with the request.
    public var isAbandoned = false
    /// The connection: 0 for the first that the server accepted.
    public var connection: Int
    /// The position among the requests on that connection: 0 for the first.
    public var positionOnConnection: Int
    /// What TLS agreed on; nil without TLS.
    public var tls: TLSSummary?

    /// The target up to its query, without scheme and authority.
    public var path: String {
        String(pathAndQuery.prefix { $0 != "?" })
    }

    /// The query without its question mark, as sent; nil without one.
    public var query: String? {
        pathAndQuery.firstIndex(of: "?").map { String(pathAndQuery[$0...].dropFirst()) }
    }

    private var pathAndQuery: Substring {
        guard !target.hasPrefix("/"), let scheme = target.firstRange(of: "://") else { return target[...] }
        return target[scheme.upperBound...].drop { $0 != "/" && $0 != "?" }
    }

    /// The body as text; invalid UTF-8 becomes U+FFFD.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// What a TLS handshake agreed on, as OpenSSL names it.
    public struct TLSSummary: Hashable, Sendable {
        /// The version, such as `TLSv1.3`.
        public var version: String
        /// The cipher suite.
        public var cipher: String
        /// The name that the client asked for (SNI, RFC 6066 §3).
        public var serverName: String?
        /// The protocol that was negotiated (ALPN, RFC 7301).
        public var applicationProtocol: String?
        /// Whether an earlier session was resumed.
        public var isResumed: Bool
        /// The common name of the client's certificate, where one was asked for.
        public var clientName: String?
    }
}
