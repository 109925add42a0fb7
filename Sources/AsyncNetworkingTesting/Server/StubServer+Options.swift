// SPDX-License-Identifier: MIT

extension StubServer {
    /// How a server is made.
    public struct Options: Sendable {
        /// Where it listens; 127.0.0.1 unless set.
        public var address: Address
        /// The port; 0 for a free one.
        public var port: UInt16
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
        public init(_ address: Address = .ipv4, port: UInt16 = 0) {
            self.address = address
            self.port = port
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
