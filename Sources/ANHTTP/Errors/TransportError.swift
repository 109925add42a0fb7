// SPDX-License-Identifier: MIT

package import FoundationEssentials

// TransportError
// ├── context: FailureContext   the URL, host, address, libcurl's code and message, errno, times, earlier attempts
// └── reason: Reason
//     ├── invalidURL            the URL is malformed; nothing was sent
//     ├── unsupportedScheme     the scheme is neither http nor https; nothing was sent
//     ├── invalidRequest        the request is malformed and was not sent
//     ├── unsupported           the linked libcurl lacks a required capability
//     ├── timedOut              a limit of ``Timeouts`` expired in the given phase
//     ├── cannotResolve         a host name cannot be resolved
//     ├── cannotConnect         refused, unreachable, or a local failure
//     ├── proxy                 the proxy refused, or its protocol failed
//     ├── tls                   the handshake failed or the server is not trusted
//     ├── connectionLost        the connection ended before the exchange
//     ├── invalidResponse       the response is not valid HTTP
//     ├── invalidContentEncoding the content coding is unknown, or the data is malformed
//     ├── responseTooLarge      a size limit was exceeded
//     ├── requestBody           the source of the request body failed
//     ├── webSocketClosed       a WebSocket connection was closed
//     ├── shutDown              the transport was shut down
//     └── internalInconsistency

/// The error of an exchange that failed without a complete response. HTTP status codes are not errors at this level.
///
/// A ``Transport`` and the functions that read a ``ResponseBody`` throw it. The functions of a session wrap it in a
/// `SessionError`, whose property `transport` returns it.
public struct TransportError: Error, Sendable {
    private var storage: Storage

    /// Creates an error, for transports and tests of error handling; by default with empty details.
    public init(_ reason: Reason, context: FailureContext = FailureContext()) {
        storage = .values(reason, context)
    }

    /// The reason for the failure, to be compared or switched over.
    public var reason: Reason {
        switch storage {
        case .values(let reason, _): reason
        }
    }

    /// The details of the failed transfer; empty for most errors that occur before one.
    public package(set) var context: FailureContext {
        get {
            switch storage {
            case .values(_, let context): context
            }
        }
        set { storage = .values(reason, newValue) }
    }

    /// Creates the error of an expired time limit.
    package static func timedOut(
        _ phase: TimeoutPhase, _ limit: Duration?, _ context: FailureContext
    ) -> TransportError {
        var context = context
        context.timeLimit = limit
        return TransportError(.timedOut(phase), context: context)
    }

    /// A reference to the values. An error takes one word in the frame of each function that may throw it; frames of
    /// asynchronous functions stay on the heap while a request runs.
    private indirect enum Storage: Sendable {
        case values(Reason, FailureContext)
    }

    /// The reason why an exchange failed.
    ///
    /// Reasons are equal if their cases and associated values are; see ``RequestBodyFailure/==(_:_:)`` for the errors
    /// of body sources.
    @nonexhaustive
    public enum Reason: Equatable, Sendable {
        /// The URL has no host or is malformed; nothing was sent. The value is the URL without secrets, or libcurl's
        /// description of the problem.
        case invalidURL(String)
        /// The scheme of the URL is neither http nor https; nothing was sent. The value is the scheme, empty if absent.
        case unsupportedScheme(String)
        /// The request is malformed, or its options cannot be used, for the given reason; nothing was sent.
        case invalidRequest(String)
        /// The linked libcurl lacks the given capability, such as `HTTP/3`, that the request requires; nothing was
        /// sent.
        case unsupported(String)
        /// A limit of ``Timeouts``, of the whole call or of a WebSocket ping expired; see ``FailureContext/timeLimit``.
        case timedOut(TimeoutPhase)
        /// The name of the server or proxy cannot be resolved, so that nothing was sent; see ``FailureContext/host``.
        /// Also if ``Proxy/port`` is negative or above 65,535.
        case cannotResolve
        /// No connection could be established, for the given reason; nothing was sent.
        case cannotConnect(ConnectFailure)
        /// The proxy refused a tunnel, or its protocol failed. A status that it sends for an http URL is a response.
        case proxy(ProxyFailure)
        /// The TLS handshake failed, the server is not trusted, or the TLS options cannot be used. No part of the
        /// request was sent, except possibly before ``TLSFailure/clientCertificateRefused``.
        case tls(TLSFailure)
        /// The connection ended before the exchange was complete, at the given point; the server may have processed the
        /// request. Also if the file of a body stored in a `ResponseCache` changes or cannot be read while the body is
        /// read.
        case connectionLost(ConnectionLossPhase)
        /// The response is not valid HTTP, or the server violates the WebSocket protocol, for the given reason.
        case invalidResponse(ResponseFailure)
        /// A content coding of the response is unknown, there are more than five, or the data is malformed or
        /// truncated.
        case invalidContentEncoding
        /// The response exceeds the given size limit; the rest of it was discarded.
        case responseTooLarge(SizeLimit)
        /// The source of the request body failed, its length differs from the declared one, or the body had to be sent
        /// again and cannot be.
        case requestBody(RequestBodyFailure)
        /// The WebSocket connection was closed: by the server with another code than 1000 or 1001 (RFC 6455 §7.4.1), or
        /// before a message could be sent. The closure is `nil` if the server sent none.
        case webSocketClosed(WebSocketClosure?)
        /// The transport was shut down before or during the exchange. A session that cancels its own requests throws
        /// `CancellationError` instead.
        case shutDown
        /// The system lacks memory, threads or descriptors; a transport or the body of a response is used incorrectly;
        /// or the library has a bug, which please report. The value says which.
        case internalInconsistency(String)

        /// Creates the reason for a malformed request.
        package static func invalidRequest(_ failure: RequestFailure) -> Reason { .invalidRequest(failure.description) }

        /// Creates the reason for a missing capability.
        package static func unsupported(_ capability: Capability) -> Reason { .unsupported(capability.rawValue) }
    }

    /// The reason why a request is malformed.
    package enum RequestFailure: Hashable, Sendable {
        /// The name of a header field is not a token (RFC 9110 §5.1).
        case headerName(String)
        /// The value of a header field contains CR, LF, NUL or another control character (RFC 9110 §5.5).
        case headerValue(name: String)
        /// The method is not a token (RFC 9110 §9.1).
        case method(String)
        /// An option cannot be used, for the given reason.
        case option(String)
    }

    /// An optional capability of libcurl.
    package enum Capability: String, Hashable, Sendable {
        /// HTTP/2 (RFC 9113).
        case http2 = "HTTP/2"
        /// HTTP/3 (RFC 9114).
        case http3 = "HTTP/3"
        /// Proxies that are contacted over TLS.
        case httpsProxy = "HTTPS proxies"
        /// OpenSSL as the TLS library of libcurl.
        case openSSL = "OpenSSL"
        /// NTLM authentication.
        case ntlm = "NTLM"
        /// Negotiate (Kerberos) authentication.
        case negotiate = "Negotiate"
    }

    /// The phase of a transfer in which a time limit expired.
    public enum TimeoutPhase: Hashable, Sendable {
        /// Waiting for a route to the host.
        case connectivity
        /// Waiting for a free connection.
        case queue
        /// Resolving a host name.
        case nameLookup
        /// Establishing a TCP connection, a QUIC connection with its TLS handshake or, for an http URL, the connection
        /// through a proxy.
        case connect
        /// Performing the TLS handshake over TCP or, for an https URL, establishing the tunnel through a proxy before
        /// it.
        case tlsHandshake
        /// Sending the body of a request; also if the limit of a whole call expires before a request is sent.
        case request
        /// Waiting for the head of the response.
        case responseHead
        /// Receiving the body of the response, or waiting for bytes after a WebSocket ping.
        case responseBody
    }

    /// The reason why no connection could be established.
    public enum ConnectFailure: Hashable, Sendable {
        /// The port is closed (`ECONNREFUSED`), or the Unix-domain socket does not exist (`ENOENT`).
        case refused
        /// There is no route to the host (`ENETUNREACH`, `EHOSTUNREACH`, `ENETDOWN`, `EHOSTDOWN`).
        case unreachable
        /// The system's own timeout expired (`ETIMEDOUT`).
        case systemTimeout
        /// The local interface, address or socket cannot be used, for example because too many files are open
        /// (`EMFILE`), or permission is denied (`EACCES`), as for a Unix-domain socket.
        case localAddress
        /// The host has an address that the ``AddressPolicy`` forbids; see ``FailureContext/address``.
        case addressForbidden
        /// Any other reason; see ``FailureContext/errno`` and ``FailureContext/message``.
        case other
    }

    /// The reason why a proxy failed; the server was not reached. See ``FailureContext/host`` and
    /// ``FailureContext/message``.
    public enum ProxyFailure: Hashable, Sendable {
        /// The proxy requires other credentials: it answered CONNECT with status 407, or refused the user over SOCKS.
        case authenticationRequired
        /// The proxy answered CONNECT with the given status.
        case tunnelRefused(status: Int)
        /// The handshake with a SOCKS proxy failed, or the proxy ended the connection without an answer to CONNECT.
        case handshake
        /// The TLS connection to the proxy failed.
        case tls(TLSFailure)
    }

    /// The reason why TLS failed or a server is not trusted.
    public enum TLSFailure: Hashable, Sendable {
        /// A certificate of the chain has expired.
        case certificateExpired
        /// A certificate of the chain is not valid yet.
        case certificateNotYetValid
        /// The certificate is self-signed and not trusted.
        case selfSigned
        /// The chain does not end at a trusted certificate authority.
        case unknownAuthority
        /// The certificate is not valid for the host; see ``SecurityPolicy/validatesDomainName``.
        case wrongHost
        /// A certificate of the chain was revoked, according to a revocation list or the stapled OCSP response.
        case revoked
        /// No current list among the ``SecurityPolicy/revocationLists`` covers the server's certificate, or a list for
        /// an authority of the chain is not current.
        case revocationUnknown
        /// The server sent no OCSP response, which ``SecurityPolicy/Stapling/required`` requires.
        case stapleMissing
        /// The server's OCSP response is not acceptable, for the given reason.
        case badStaple(String)
        /// The certificate is not valid for TLS servers.
        case wrongPurpose
        /// A key or signature of the chain is too weak.
        case weakKey
        /// The name constraints of an authority do not permit the certificate.
        case nameConstraints
        /// No key of the chain is pinned; the associated value contains the pinned keys.
        case pinMismatch(expected: [PublicKeyPin])
        /// There is no chain to a pinned certificate.
        case certificateNotPinned
        /// The policy has a pinning mode but no pins.
        case noPins
        /// The policy allows invalid certificates and validates host names, which is possible only with pins.
        case invalidWithoutPins
        /// The ``SecurityPolicy/evaluator`` refused the server, for the given reason. In the module AFNetworking also:
        /// the challenge block of a manager refused the server, or provided no client certificate.
        case rejected(String)
        /// Verification failed with the given code of X509_STORE_CTX_get_error(3).
        case untrusted(verifyResult: Int)
        /// The handshake failed: there is no common version, cipher or parameter, the peer violated the protocol or
        /// does not speak TLS, the connection was lost, or OpenSSL does not know the ciphers or curves of
        /// ``TLSOptions``.
        case handshake
        /// The trusted certificates, configured or of the system, cannot be read or parsed, or the file or data
        /// contains no certificate.
        case badTrustRoots
        /// The security policy, or a host pattern of ``TLSOptions``, cannot be used, for the given reason; nothing was
        /// sent.
        case badSecurityPolicy(SecurityPolicy.ConfigurationError)
        /// The configured client certificate or key cannot be used, for the given reason.
        case badClientIdentity(ClientIdentity.LoadingError)
        /// The server requires a client certificate, or a different one. With TLS 1.3, the request may have been sent
        /// before.
        case clientCertificateRefused
        /// The file at ``TLSOptions/keyLogPath`` cannot be opened.
        case keyLog(path: String)
    }

    /// The moment at which a connection was lost. In every case the server may have processed the request or a part of
    /// it.
    public enum ConnectionLossPhase: Hashable, Sendable {
        /// Before the first byte of the final response; the server may have processed the request.
        case beforeResponse
        /// Within the head of the response; the server has begun to respond.
        case inHead
        /// Within the body of the response, after `received` bytes, counted before decompression; `expected` is its
        /// declared length in the same unit, `nil` if unknown, as with chunked coding.
        case inBody(received: Int64, expected: Int64?)
        /// While the request was being sent; the server may have processed the part that it received.
        case whileSending
    }

    /// A violation of HTTP, or of the WebSocket protocol, by a server. Lines are as they were received.
    @nonexhaustive
    public enum ResponseFailure: Hashable, Sendable {
        /// The response does not begin with a status line.
        case notHTTP
        /// The given status line is malformed.
        case statusLine(String)
        /// The given header line is malformed.
        case headerLine(String)
        /// Two `Content-Length` fields differ, or one is not a number (RFC 9112 §6.3).
        case contentLength
        /// The chunked coding or an HTTP/2 frame is malformed.
        case framing
        /// The exchange ended with an interim response.
        case noFinalResponse
        /// The server violates the WebSocket protocol, for the given reason (RFC 6455).
        case webSocket(String)
    }

    /// The size limit that was exceeded.
    public enum SizeLimit: Hashable, Sendable {
        /// The heads and trailers have more than `limit` bytes, which is ``TransferOptions/maximumHeadSize`` or what
        /// libcurl accepts, or one of them has more than 4096 fields.
        case head(limit: Int)
        /// The collected body, before or after decompression, or a line, event or message of a stream, has more than
        /// `limit` bytes.
        case body(limit: Int)
        /// The body decodes to more than `limit` bytes; see ``DecompressionLimit/maximumSize``.
        case decompressed(limit: Int)
        /// The body decodes to more than `limit` times the received bytes; see ``DecompressionLimit/maximumRatio``.
        case decompressionRatio(limit: Int)
    }

    /// The reason why the source of a request body failed; the server may have received a part of the body.
    public enum RequestBodyFailure: Error, Sendable {
        /// The source ended after `produced` bytes, before its declared length.
        case tooShort(declared: Int64, produced: Int64)
        /// The source produced more bytes than its declared length.
        case tooLong(declared: Int64)
        /// The body had to be sent again, but can be read only once.
        case notReplayable
        /// The file cannot be opened or read, for the given reason.
        case file(path: String, reason: String)
        /// The source, or the closure in ``Request/trailers``, threw the given error. If that is itself a
        /// ``TransportError/RequestBodyFailure``, the request fails with it instead.
        case source(any Error)
    }
}

extension TransportError.RequestBodyFailure: Equatable {
    /// Returns whether two failures have the same case and associated values. The errors of sources are equal if their
    /// types and descriptions are.
    public static func == (first: Self, second: Self) -> Bool {
        switch (first, second) {
        case (.tooShort(let declared, let produced), .tooShort(let otherDeclared, let otherProduced)):
            declared == otherDeclared && produced == otherProduced
        case (.tooLong(let declared), .tooLong(let otherDeclared)): declared == otherDeclared
        case (.notReplayable, .notReplayable): true
        case (.file(let path, let reason), .file(let otherPath, let otherReason)):
            path == otherPath && reason == otherReason
        case (.source(let error), .source(let other)):
            type(of: error) == type(of: other) && "\(error)" == "\(other)"
        case (.tooShort, _), (.tooLong, _), (.notReplayable, _), (.file, _), (.source, _): false
        }
    }
}

/// The details of a failed transfer, for logs and messages; see ``TransportError/context``.
public struct FailureContext: Hashable, Sendable {
    /// The URL without user information, query values and fragment, such as `https://example.com/a?key=…`; only its
    /// scheme, as in `https:…`, if it has no host. Empty if unknown, as in most errors that occur before the transfer
    /// begins.
    public var url = ""
    /// The host of the URL, spelled as there, or the host of a ``Proxy`` that failed; `nil` if unknown, as for a proxy
    /// of the environment whose name cannot be resolved. Other failures of such a proxy have the host of the URL.
    public var host: String?
    /// The address that was connected to, or else tried last; that of a proxy if there is one, and `nil` if no address
    /// was tried, for example because the name could not be resolved.
    public var address: SocketAddress?
    /// The libcurl error code, as in libcurl-errors(3); `nil` if the error does not come from libcurl.
    public var curlCode: Int32?
    /// The error message of libcurl, or a detail such as which content coding is malformed; `nil` without a message.
    public var message: String?
    /// The `errno` of the last system call that failed, such as connect(2), which need not be the cause; `nil` if no
    /// call failed. See CURLINFO_OS_ERRNO(3).
    public var errno: Int32?
    /// The time from the start of the exchange, including its time in the queue, to the failure; zero if the exchange
    /// had not begun, or if the failure was found by the reader of the body, as when a body cannot be decoded. In the
    /// error of a call with several exchanges, such as those of retries and redirects, it is that of the last one.
    public var elapsed: Duration = .zero
    /// The time limit that expired, or would have expired before the request is sent: one of ``Timeouts``, `Request.timeout`
    /// of the whole call, `RetryPolicy.deadline` of all attempts, or ``WebSocketOptions/pingTimeout``; `nil` if the failure is
    /// not a timeout.
    public var timeLimit: Duration?
    /// The number of times that the transport sent the request, at least 1 even if it failed before; more than 1 if a
    /// reused connection was lost before the response, or a server stated that it had not processed the request.
    ///
    /// The retries of a session are not counted; see ``retryHistory``. If the transport answers a challenge, counting
    /// starts over.
    public var sendCount = 1
    /// The authentication schemes offered by a proxy that refused a tunnel with status 407; empty otherwise.
    package var proxySchemes: Set<AuthenticationScheme> = []
    /// The certificates of a server that was not trusted; `nil` for other failures, for a proxy, and if libcurl does
    /// not use the same OpenSSL as this library.
    public var serverTrust: ServerTrust?
    /// The attempts before this one, and why there were no more; set by a session with a retry policy, otherwise empty.
    public var retryHistory = RetryHistory()
    /// The time of the whole call, from its beginning until it failed, with all exchanges and the waits between them;
    /// zero if the error is not that of a session's call. Measured on the clock of the session.
    public var callDuration: Duration { callHistory.duration }
    /// The events of the call before the exchange failed; set by a session.
    package var callHistory = CallHistory()
    /// Whether the body is complete, but ends within its content coding.
    package var endsWithinCoding = false
    /// The metrics of the exchange that failed; `nil` if it did not begin.
    package var metrics: TransferMetrics?

    /// Whether the request was not sent, because the call has failed before: its time was over, or its token could not be
    /// refreshed.
    package var precedesSending = false

    /// Creates empty details: an empty ``url``, a ``sendCount`` of 1, a zero ``elapsed``, and nothing else.
    public init() {}

    /// Creates the details of a failed request for a URL.
    package init(_ url: URL) {
        self.url = url.redactedDescription
        host = url.host()
    }
}
