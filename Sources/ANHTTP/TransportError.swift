// SPDX-License-Identifier: MIT

// TransportError
// ├── invalidRequest      the request cannot be sent as it stands
// ├── unsupported         the linked libcurl lacks what the request requires
// ├── timedOut            a limit of ``Timeouts`` ran out; the phase says which
// ├── cannotResolve       a name has no address
// ├── cannotConnect       refused, unreachable, or the local side failed
// ├── proxy               the proxy refused, or could not be spoken to
// ├── tls                 the handshake failed or the server is not trusted
// ├── connectionLost      the connection ended too early
// ├── invalidResponse     what arrived is not HTTP, or breaks its rules
// ├── responseTooLarge    a limit on size was passed
// ├── requestBody         the body's source failed or broke its promise
// ├── shutDown            the transport was shut down
// └── internalInconsistency

/// Why an exchange failed below HTTP's own status codes.
@nonexhaustive
public indirect enum TransportError: Error, Sendable {
    /// The request cannot be sent as it stands; nothing was sent.
    case invalidRequest(RequestProblem)
    /// The linked libcurl lacks what the request requires; nothing was sent.
    case unsupported(Capability)
    /// A limit of ``Timeouts`` ran out.
    case timedOut(TimeoutPhase, limit: Duration, TransferFacts)
    /// The name of the server, or of the proxy, has no address.
    case cannotResolve(host: String, TransferFacts)
    /// No connection could be made.
    case cannotConnect(ConnectFailure, TransferFacts)
    /// The proxy refused, or could not be spoken to.
    case proxy(ProxyFailure, TransferFacts)
    /// The TLS handshake failed or the server is not trusted; nothing of the request was sent.
    case tls(TLSFailure, TransferFacts)
    /// The connection ended before the response did.
    case connectionLost(ConnectionLoss, TransferFacts)
    /// What arrived is not HTTP, or breaks its rules.
    case invalidResponse(ResponseProblem, TransferFacts)
    /// A limit on the size of the response was passed.
    case responseTooLarge(SizeLimit, TransferFacts)
    /// The source of the request's body failed or broke its promise.
    case requestBody(RequestBodyProblem, TransferFacts)
    /// The transport was shut down.
    case shutDown
    /// Something that cannot happen, happened; please report it.
    case internalInconsistency(String, TransferFacts)

    /// What is wrong with a request.
    public enum RequestProblem: Hashable, Sendable {
        /// The URL has no host, or cannot be understood.
        case url(String)
        /// The scheme is not http or https.
        case scheme(String)
        /// A header's name is not a token (RFC 9110 §5.1).
        case headerName(String)
        /// A header's value has CR, LF, NUL or another control character (RFC 9110 §5.5).
        case headerValue(name: String)
        /// The method is not a token.
        case method(String)
        /// An option cannot be used, with the reason.
        case option(String)
    }

    /// Something that a libcurl may lack.
    public enum Capability: String, Hashable, Sendable {
        /// HTTP/2.
        case http2 = "HTTP/2"
        /// HTTP/3.
        case http3 = "HTTP/3"
        /// Proxies over TLS.
        case httpsProxy = "HTTPS proxies"
        /// OpenSSL as libcurl's TLS library.
        case openSSL = "OpenSSL"
        /// NTLM.
        case ntlm = "NTLM"
        /// Negotiate, that is Kerberos.
        case negotiate = "Negotiate"
        /// Signatures for Amazon's services.
        case awsSignatures = "AWS signatures"
    }

    /// The part of a transfer whose time ran out.
    public enum TimeoutPhase: String, Hashable, Sendable {
        /// Waiting for a route to the host.
        case connectivity
        /// Waiting for a free connection.
        case queue
        /// Resolving the name.
        case nameLookup = "name look-up"
        /// Connecting.
        case connect
        /// The TLS handshake.
        case tlsHandshake = "TLS handshake"
        /// Sending the request.
        case request
        /// Waiting for the response's head.
        case responseHead = "response head"
        /// Receiving the response's body.
        case responseBody = "response body"
    }

    /// Why no connection could be made.
    public enum ConnectFailure: Hashable, Sendable {
        /// The port is closed (`ECONNREFUSED`).
        case refused
        /// There is no route to the network or host.
        case unreachable
        /// The system gave up waiting (`ETIMEDOUT`).
        case systemTimeout
        /// The interface, address or socket to connect from cannot be used.
        case localAddress
        /// The name leads to an address that ``AddressPolicy`` refuses; the facts have it.
        case addressForbidden
        /// Another reason; the facts have the number.
        case other
    }

    /// What went wrong with a proxy.
    public enum ProxyFailure: Hashable, Sendable {
        /// The proxy wants other credentials (407).
        case authenticationRequired
        /// The proxy answered CONNECT with this status.
        case tunnelRefused(status: Int)
        /// The handshake with a SOCKS proxy failed.
        case handshake
        /// TLS with the proxy itself failed.
        case tls(TLSFailure)
    }

    /// Why TLS failed.
    public enum TLSFailure: Hashable, Sendable {
        /// The certificate is past its end.
        case certificateExpired
        /// The certificate is not valid yet.
        case certificateNotYetValid
        /// The certificate is signed by itself and not trusted.
        case selfSigned
        /// The chain does not end at a trusted authority.
        case unknownAuthority
        /// The certificate is for other names.
        case wrongHost
        /// The certificate was revoked.
        case revoked
        /// There is no current list that says whether the certificate was revoked.
        case revocationUnknown
        /// The server showed no OCSP response, and ``SecurityPolicy/Stapling/required`` asks for one.
        case stapleMissing
        /// The server's OCSP response cannot be taken, for this reason.
        case badStaple(String)
        /// The certificate is not one for servers.
        case wrongPurpose
        /// A key or signature of the chain is too weak.
        case weakKey
        /// An authority may not sign for such names.
        case nameConstraints
        /// No key of the chain is pinned.
        case pinMismatch(expected: [PublicKeyPin])
        /// There is no chain to a pinned certificate.
        case certificateNotPinned
        /// The policy pins, and has no pins.
        case noPins
        /// The policy allows invalid certificates and validates names, which nothing but pins could vouch for.
        case invalidWithoutPins
        /// ``SecurityPolicy/evaluator`` refused, for this reason.
        case rejected(String)
        /// Verification failed with this code of X509_STORE_CTX_get_error(3).
        case untrusted(verifyResult: Int)
        /// The two sides found no common version, cipher or parameters, or broke the protocol.
        case handshake
        /// The trusted certificates given by the program cannot be read.
        case badTrustRoots
        /// The policy given by the program cannot be used.
        case badSecurityPolicy(SecurityPolicy.Problem)
        /// The client's own certificate or key cannot be used.
        case badClientIdentity(ClientIdentity.Problem)
        /// The server wants a client's certificate, or another one.
        case clientCertificateRefused
        /// The file for secrets cannot be written.
        case keyLog(path: String)
    }

    /// When a connection ended too early.
    public enum ConnectionLoss: Hashable, Sendable {
        /// Before any byte of the response; the server may or may not have acted on the request.
        case beforeResponse
        /// Within the response's head.
        case inHead
        /// Within the body: so many bytes came, of so many where that is known.
        case inBody(received: Int64, expected: Int64?)
        /// While the request was being sent.
        case whileSending
    }

    /// How a response breaks HTTP's rules.
    public enum ResponseProblem: Hashable, Sendable {
        /// There is no status line.
        case notHTTP
        /// The status line cannot be understood.
        case statusLine(String)
        /// A header line cannot be understood.
        case headerLine(String)
        /// Two `Content-Length` fields differ, or one is not a number (RFC 9112 §6.3).
        case contentLength
        /// The chunked coding, or a frame of HTTP/2, is broken.
        case framing
        /// The content coding is unknown or broken.
        case contentEncoding
        /// An interim response ended the exchange.
        case noFinalResponse
    }

    /// The limit that was passed.
    public enum SizeLimit: Hashable, Sendable {
        /// The heads have more bytes, or more fields, than ``TransferOptions/maximumHeadSize`` allows.
        case head(limit: Int)
        /// The collected body has more bytes.
        case body(limit: Int)
        /// The body unpacks to more bytes than ``DecompressionLimit/maximumSize``.
        case decompressed(limit: Int)
        /// The body unpacks to more than so many bytes for each one received.
        case decompressionRatio(limit: Int)
    }

    /// What is wrong with the source of a request body.
    public enum RequestBodyProblem: Error, Sendable {
        /// It ended before its declared length.
        case tooShort(declared: Int64, produced: Int64)
        /// It went on past its declared length.
        case tooLong(declared: Int64)
        /// It cannot be read a second time, and was needed again.
        case notReplayable
        /// The file cannot be opened or read.
        case file(path: String, reason: String)
        /// It threw this error.
        case source(any Error)
    }
}

/// What is known about a failed transfer.
public struct TransferFacts: Hashable, Sendable {
    /// The URL without user information and query values.
    public var url = ""
    /// The host that was spoken to: the proxy's, where it was the proxy that failed.
    public var host: String?
    /// The address, where a connection was made or tried.
    public var address: SocketAddress?
    /// libcurl's code, as in libcurl-errors(3).
    public var curlCode: Int32?
    /// libcurl's own words.
    public var message: String?
    /// The system's error number.
    public var errno: Int32?
    /// The time from the start to the failure.
    public var elapsed: Duration = .zero
    /// How often the exchange was sent.
    public var attempts = 1
    /// The schemes that a proxy asked for, where it refused to make a tunnel without credentials, or with these.
    public var proxySchemes: Set<AuthenticationScheme> = []
    /// What a server that was not trusted showed.
    public var serverTrust: ServerTrust?
    /// The attempts before this one, and why there was no further one; a session fills it in.
    public var retries = RetryHistory()

    /// Creates empty facts.
    public init() {}
}
