// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

extension StubServer {
    /// The options of a ``StubServer``, fixed when it is created; by default plain HTTP on a free port of 127.0.0.1.
    public struct Options: Sendable {
        /// The address to listen on, of the local machine only; 127.0.0.1 by default.
        public var address: Address
        /// The TCP port to listen on; 0, the default, for any free port, which ``StubServer/endpoint`` contains. It has
        /// no effect on a Unix-domain socket.
        public var port: UInt16
        /// The TLS options; `nil`, the default, for plain HTTP.
        public var tls: TLS?
        /// The maximum number of connections waiting to be accepted; 4096 by default. The system limits it to its
        /// `somaxconn`, and a negative value counts as that. See listen(2).
        public var backlog: Int32 = 4096
        /// The maximum number of bytes that are recorded of a request body; 1 MiB by default. Nothing is recorded if it
        /// is zero or negative.
        ///
        /// ``RecordedRequest/bodyLength`` and ``RecordedRequest/bodySHA256`` cover all bytes.
        public var maximumRecordedBody = 1 << 20
        /// The maximum size of a request head in bytes, also that of the trailer fields and of a line of the chunked
        /// coding; 1 MiB by default. A larger one is answered with status 400, and the connection is closed. With 0 or
        /// a negative value, every request is answered in this way; with a negative one, even before it arrives.
        public var maximumHeadSize = 1 << 20
        /// The size of the system's receive buffer of each connection in bytes; `nil`, the default, for the system's
        /// default.
        ///
        /// The system limits and doubles it; see `SO_RCVBUF` in socket(7).
        public var receiveBufferSize: Int32?

        /// Creates options, with the defaults of the properties that are not parameters.
        ///
        /// - Parameters:
        ///   - address: The address to listen on; 127.0.0.1 by default.
        ///   - port: The TCP port; 0, the default, for any free port.
        ///   - tls: The TLS options; `nil`, the default, for plain HTTP.
        public init(_ address: Address = .ipv4, port: UInt16 = 0, tls: TLS? = nil) {
            self.address = address
            self.port = port
            self.tls = tls
        }
    }

    /// An address for a server to listen on; the server is reachable from the local machine only.
    public enum Address: Hashable, Sendable {
        /// 127.0.0.1, the IPv4 loopback address.
        case ipv4
        /// ::1, the IPv6 loopback address. On a system without IPv6, starting a server throws `SystemError`.
        case ipv6
        /// A Unix-domain socket, whose file is deleted when the server stops.
        ///
        /// Any existing file at the path is deleted when the server starts. The path must have 1 to 107 bytes in UTF-8.
        /// Starting a server throws `SystemError` if the path is longer, names a directory, or lies in one that does
        /// not exist or is not writable. See unix(7).
        case unix(path: String)
    }

    /// The TLS options of a server: its certificate, versions and application protocols, and whether it requires client
    /// certificates.
    public struct TLS: Sendable {
        /// The certificate of the server with its private key and the chain that is sent, ``TestCertificate/chainPEM``.
        public var certificate: TestCertificate
        /// The minimum version; TLS 1.2 by default. For TLS 1.0 and 1.1, OpenSSL's security level is lowered to 0.
        public var minimumVersion = TLSVersion.v1_2
        /// The maximum version; `nil`, the default, for the highest that OpenSSL supports. If it is below
        /// ``minimumVersion``, every handshake fails.
        public var maximumVersion: TLSVersion?
        /// The application protocols for ALPN (RFC 7301) in order of preference; `http/1.1` by default, empty to
        /// disable ALPN.
        ///
        /// A name has 1 to 255 bytes in UTF-8; the rest of a longer one is ignored. If the client offers none of the
        /// protocols, the handshake continues without one. The server itself supports only HTTP/1.1; for other
        /// protocols, scripts send the bytes.
        public var protocols = ["http/1.1"]
        /// The root authorities, as PEM, one of which must have issued the client's certificate, directly or through
        /// intermediate ones that the client sends; the handshake fails for any other client.
        ///
        /// `nil`, the default, requests no client certificate. Data without a certificate are not rejected: the
        /// handshake then fails for every client. An intermediate authority without its root is not sufficient; see
        /// X509_verify_cert(3). With TLS 1.3, the handshake of the client has then already succeeded (RFC 8446 §2): it
        /// learns of the failure when it reads.
        public var clientAuthority: Data?
        /// Whether the handshake fails for a client without a certificate; `true` by default. Without
        /// ``clientAuthority`` it has no effect.
        package var requiresClientCertificate = true
        /// The OCSP response in DER for clients that ask for one; nil sends none.
        package var staple: Data?
        /// Returns the number of TLS 1.3 session tickets to send before some bytes, in one piece with them.
        package var ticketsBeforeWrite: (@Sendable (ArraySlice<UInt8>) -> Int)?
        /// Called when the system has accepted bytes for the client.
        package var didWrite: (@Sendable () -> Void)?

        /// Creates options with a certificate: TLS 1.2 or later, `http/1.1`, and no client certificates.
        public init(_ certificate: TestCertificate) {
            self.certificate = certificate
        }
    }

    /// The actual address of a server, as reported by the system after it began to listen.
    public enum Endpoint: Hashable, Sendable {
        /// The IP address in text form without brackets, 127.0.0.1 or ::1, and the actual port.
        case tcp(host: String, port: Int)
        /// The path of a Unix-domain socket, as given in the options.
        case unix(path: String)

        /// The actual TCP port; 0 for a Unix-domain socket.
        public var port: Int {
            switch self {
            case .tcp(_, let port): port
            case .unix: 0
            }
        }

        /// Returns the beginning of a URL for the endpoint, without a trailing slash.
        func baseURL(scheme: String) -> String {
            switch self {
            case .tcp(let host, let port): "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
            case .unix: "\(scheme)://localhost"
            }
        }
    }
}

/// The error thrown when a wait for the activity of a ``StubServer`` exceeds its time limit, as by
/// ``StubServer/requests(count:within:)``.
public struct ActivityTimeout: LocalizedError, CustomStringConvertible {
    /// The time limit that was exceeded.
    public let limit: Duration
    /// The activity of the server when the limit was reached.
    public let activity: StubServer.Activity

    /// The ``description``, which Foundation returns as `localizedDescription`.
    public var errorDescription: String? { description }

    /// A text with the limit, the methods and targets of the requests that arrived, and the numbers of accepted and
    /// open connections.
    public var description: String {
        let requests = activity.requests.map { "\($0.method) \($0.target)" }.joined(separator: ", ")
        return """
            the awaited activity did not occur within \(limit); \
            requests: \(requests.isEmpty ? "none" : requests); \
            connections: \(activity.connectionsAccepted) accepted, \(activity.openConnections) open
            """
    }
}
