// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// How a transfer is made: the session's defaults, or one request's own choice.
///
/// A request with options uses them instead of the session's, so start from the session's value and change what differs:
///
/// ```swift
/// request.options = manager.configuration.transfer.with { $0.timeouts.total = .seconds(5) }
/// ```
public struct TransferOptions: Hashable, Sendable {
    /// Limits on time, each to the millisecond.
    public var timeouts = Timeouts()
    /// Which HTTP versions may be used.
    public var httpVersion = HTTPVersionPolicy.automatic
    /// The proxy, by default from the environment.
    public var proxy = ProxyPolicy.environment
    /// The rules for TLS: verified, at least 1.2.
    public var tls = TLSOptions()
    /// Where and how connections are made.
    public var connection = ConnectionOptions()
    /// Whether cookies are sent and kept, where a request does not say otherwise; true by default.
    ///
    /// A `Cookie` field of the request's own is sent too, in one field after the cookies that are kept.
    public var handlesCookies = true

    /// How long to wait for `100 Continue` before a body is sent; nil sends no `Expect` field. See RFC 9110 §10.1.1.
    public var expectContinueTimeout: Duration?

    /// Whether compressed responses are asked for and decoded; true by default.
    ///
    /// The codings are gzip and deflate, and br and zstd where the system has `libbrotlidec.so.1` and `libzstd.so.1`, which
    /// libcurl brings on the usual systems. A body is decoded by the task that reads it, piece by piece. One that ends within
    /// a coding is ``TransportError/ResponseProblem/contentEncoding``; bytes after the end of a gzip stream are ignored.
    ///
    /// The `Content-Encoding` field stays in the head.
    public var decodesContent = true
    /// Bounds on what a compressed response may unpack to.
    public var decompressionLimit = DecompressionLimit()

    /// The most bytes that a collected body may have; 128 MiB by default.
    public var maximumBodySize = 128 << 20
    /// The most bytes that all heads of one response may have together; 300 KiB by default.
    public var maximumHeadSize = 300 << 10
    /// The most bytes of a streamed body that wait in memory for their reader; 256 KiB by default.
    ///
    /// Above it the connection is not read until the reader has caught up. Over HTTP/2 libcurl itself holds what the
    /// server had sent into the stream's window, up to about 10 MB.
    public var streamBufferSize = 256 << 10

    /// Creates the default options.
    public init() {}

    /// Returns a copy that `change` has changed.
    public func with(_ change: (inout TransferOptions) -> Void) -> TransferOptions {
        var copy = self
        change(&copy)
        return copy
    }
}

/// Limits on the time that the parts of a transfer may take; nil means no limit.
public struct Timeouts: Hashable, Sendable {
    /// From leaving the queue to a connection ready for the request: name look-up, proxy, TCP and TLS. 30 s by default.
    public var connect: Duration? = .seconds(30)
    /// Waiting for a free connection. No limit by default.
    public var queue: Duration?
    /// Without a byte moving in either direction once connected. 60 s by default.
    ///
    /// While this side keeps a transfer waiting, because nobody reads the response body or the request body has nothing to
    /// send, the limit does not run.
    public var idle: Duration? = .seconds(60)
    /// From start to end, body included. No limit by default.
    public var total: Duration?
    /// Waiting for a route to the host, where a session does that. No limit by default.
    public var connectivity: Duration?

    /// Creates the limits: 30 s to connect, 60 s idle, the others open.
    public init() {}
}

/// Which HTTP versions a transfer may use.
public enum HTTPVersionPolicy: Hashable, Sendable {
    /// HTTP/2 where TLS negotiates it (ALPN), otherwise HTTP/1.1.
    case automatic
    /// HTTP/1.1 only.
    case http1
    /// HTTP/2 at once, over plain TCP too, without negotiation. See RFC 9113 §3.3. A libcurl before 8.0 then makes a
    /// connection for each request over plain TCP.
    case http2PriorKnowledge
    /// HTTP/3 only; ``TransportError/unsupported(_:)`` where the linked libcurl lacks it.
    case http3
}

/// Bounds on decompression, against responses that unpack to far more than was sent.
public struct DecompressionLimit: Hashable, Sendable {
    /// The most decoded bytes; nil for no bound. 1 GiB by default.
    public var maximumSize: Int? = 1 << 30
    /// The most decoded bytes for each byte received; nil for no bound. 200 by default.
    public var maximumRatio: Int? = 200
    /// Decoded bytes below which the ratio does not matter. 1 MiB by default.
    public var ratioThreshold = 1 << 20

    /// Creates the default bounds.
    public init() {}
}

/// Where and how connections are made.
public struct ConnectionOptions: Hashable, Sendable {
    /// Which versions of IP are used.
    public var ipVersion = IPVersion.any
    /// A Unix-domain socket to connect to instead of the URL's host and port.
    public var unixSocketPath: String?
    /// The interface, address or host name to connect from, as in CURLOPT_INTERFACE(3).
    public var localInterface: String?
    /// Addresses to connect to instead of resolving a name; TLS and `Host` keep the name. See CURLOPT_CONNECT_TO(3).
    public var hostOverrides: [HostOverride] = []
    /// Which addresses connections may be made to; any by default.
    public var addresses = AddressPolicy.any
    /// The URL of a DNS-over-HTTPS server that resolves names instead of the system. See RFC 8484.
    public var dnsOverHTTPS: URL?
    /// How long a TCP connection is quiet before the system probes it; nil sends no probes. 60 s by default.
    public var tcpKeepAlive: Duration? = .seconds(60)

    /// Creates the default options.
    public init() {}

    /// The versions of IP that may be used.
    public enum IPVersion: Hashable, Sendable {
        /// Both, raced against each other (RFC 8305).
        case any
        /// IPv4 only.
        case v4
        /// IPv6 only.
        case v6
    }

    /// A place to connect to instead of a host and port.
    public struct HostOverride: Hashable, Sendable {
        /// The host of the URL.
        public var host: String
        /// The port of the URL.
        public var port: Int
        /// The address or name to connect to.
        public var address: String
        /// The port to connect to.
        public var addressPort: Int

        /// Creates an override; the port stays the same unless `addressPort` says otherwise.
        public init(host: String, port: Int, address: String, addressPort: Int? = nil) {
            self.host = host
            self.port = port
            self.address = address
            self.addressPort = addressPort ?? port
        }
    }
}
