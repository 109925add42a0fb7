// SPDX-License-Identifier: MIT

public import FoundationEssentials

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
