// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

extension StubServer {
    /// How a server is made.
    public struct Options: Sendable {
        /// Where it listens; 127.0.0.1 unless set.
        public var address: Address
        /// The port; 0 for a free one.
        public var port: UInt16
        /// The settings for TLS; nil for plain HTTP.
        public var tls: TLS?
        /// How many connections may wait to be accepted; 4096, where the system's `somaxconn` allows it.
        public var backlog: Int32 = 4096
        /// The most bytes of a request's body that are kept; 1 MiB.
        ///
        /// Its length and SHA-256 count all bytes.
        public var maximumRecordedBody = 1 << 20
        /// The most bytes of a request's head; 1 MiB.
        public var maximumHeadSize = 1 << 20
        /// The system's buffer for bytes that were not read yet; nil for the system's choice.
        ///
        /// See socket(7), `SO_RCVBUF`.
        public var receiveBufferSize: Int32?

        /// Creates options.
        public init(_ address: Address = .ipv4, port: UInt16 = 0, tls: TLS? = nil) {
            self.address = address
            self.port = port
            self.tls = tls
        }
    }

    /// Where a server may listen.
    public enum Address: Hashable, Sendable {
        /// On 127.0.0.1.
        case ipv4
        /// On ::1.
        case ipv6
        /// On a Unix-domain socket, whose file is made and later removed.
        case unix(path: String)
    }

    /// How a server does TLS.
    public struct TLS: Sendable {
        /// The certificate that it shows, with the chain above it.
        public var certificate: TestCertificate
        /// The lowest version; TLS 1.2 unless set.
        public var minimumVersion = TLSVersion.v1_2
        /// The highest version; nil for the highest that OpenSSL has.
        public var maximumVersion: TLSVersion?
        /// The protocols for ALPN, best first; empty for no ALPN.
        public var protocols = ["http/1.1"]
        /// The authorities, as PEM, one of which must have signed the client's certificate; nil asks for none.
        public var clientAuthority: Data?

        /// Creates settings.
        public init(_ certificate: TestCertificate) {
            self.certificate = certificate
        }
    }

    /// Where a server listens.
    public enum Endpoint: Hashable, Sendable {
        /// On an address and a port.
        case tcp(host: String, port: Int)
        /// On a Unix-domain socket.
        case unix(path: String)

        /// The port; 0 for a Unix-domain socket.
        public var port: Int {
            switch self {
            case .tcp(_, let port): port
            case .unix: 0
            }
        }

        /// The start of a URL, without a slash at its end.
        func baseURL(scheme: String) -> String {
            switch self {
            case .tcp(let host, let port): "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
            case .unix: "\(scheme)://localhost"
            }
        }
    }
}
