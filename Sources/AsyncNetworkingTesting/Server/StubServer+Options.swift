// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

extension StubServer {
    /// The options of a server.
    public struct Options: Sendable {
        /// The address to listen on; 127.0.0.1 by default.
        public var address: Address
        /// The port to listen on; 0, the default, for any free port.
        public var port: UInt16
        /// The TLS options; `nil`, the default, for plain HTTP.
        public var tls: TLS?
        /// The maximum number of connections waiting to be accepted; 4096 by default, limited by the system's
        /// `somaxconn`. See listen(2).
        public var backlog: Int32 = 4096
        /// The maximum number of bytes that are recorded of a request body; 1 MiB by default.
        ///
        /// The recorded length and SHA-256 include all bytes.
        public var maximumRecordedBody = 1 << 20
        /// The maximum size of a request head in bytes; 1 MiB by default.
        public var maximumHeadSize = 1 << 20
        /// The size of the system's receive buffer in bytes; `nil`, the default, for the system's default.
        ///
        /// See `SO_RCVBUF` in socket(7).
        public var receiveBufferSize: Int32?

        /// Creates options, by default for plain HTTP on a free port of 127.0.0.1.
        public init(_ address: Address = .ipv4, port: UInt16 = 0, tls: TLS? = nil) {
            self.address = address
            self.port = port
            self.tls = tls
        }
    }

    /// An address for a server to listen on.
    public enum Address: Hashable, Sendable {
        /// 127.0.0.1.
        case ipv4
        /// ::1.
        case ipv6
        /// A Unix-domain socket, whose file is created, and deleted when the server stops.
        case unix(path: String)
    }

    /// The TLS options of a server.
    public struct TLS: Sendable {
        /// The certificate of the server, with its chain and private key.
        public var certificate: TestCertificate
        /// The minimum version; TLS 1.2 by default.
        public var minimumVersion = TLSVersion.v1_2
        /// The maximum version; `nil`, the default, for the highest that OpenSSL supports.
        public var maximumVersion: TLSVersion?
        /// The application protocols for ALPN in order of preference; `http/1.1` by default, empty to disable ALPN.
        public var protocols = ["http/1.1"]
        /// The authorities, as PEM, that client certificates must be signed by; `nil`, the default, to request no
        /// client certificate.
        public var clientAuthority: Data?
        /// Whether the handshake fails for a client without a certificate; `true` by default. Without
        /// ``clientAuthority`` it has no effect.
        package var requiresClientCertificate = true
        /// The OCSP response in DER for clients that ask for one; nil sends none.
        package var staple: Data?

        /// Creates options with a certificate.
        public init(_ certificate: TestCertificate) {
            self.certificate = certificate
        }
    }

    /// The actual address of a server.
    public enum Endpoint: Hashable, Sendable {
        /// An IP address and a port.
        case tcp(host: String, port: Int)
        /// The path of a Unix-domain socket.
        case unix(path: String)

        /// The port; 0 for a Unix-domain socket.
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
