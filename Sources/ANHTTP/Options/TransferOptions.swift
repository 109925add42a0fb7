// SPDX-License-Identifier: MIT

public import FoundationEssentials
import Synchronization

/// The options of a transfer, for a session or for a single request.
///
/// They are written in the same way for a session, one call, and a request; a call and a request inherit the options
/// that they do not change:
///
/// ```swift
/// let api = SessionManager { $0.timeouts.idle = .seconds(20) }
/// try await api.get(url, options: { $0.timeouts.idle = .seconds(5) })
/// request.changeOptions { $0.timeouts.idle = .seconds(5) }
/// ```
public struct TransferOptions: Hashable, Sendable {
    /// The time limits, with a precision of milliseconds; by default 30 s to connect, 60 s without a byte, and no
    /// others.
    public var timeouts = Timeouts()
    /// The HTTP versions that may be used; by default HTTP/2 if TLS negotiates it, otherwise HTTP/1.1, and HTTP/3 for
    /// servers that offered it. WebSocket connections use HTTP/1.1 regardless.
    public var httpVersion = HTTPVersionPolicy.automatic
    /// The proxy; by default that of environment variables such as `https_proxy`, see ``ProxyPolicy/environment``.
    public var proxy = ProxyPolicy.environment
    /// The TLS options; by default servers are verified, with TLS 1.2 or later.
    public var tls = TLSOptions()
    /// The options for making connections; by default both IP versions, any local address, and TCP keep-alive after 60
    /// s.
    public var connection = ConnectionOptions()
    /// Whether stored cookies are sent, and cookies of responses are stored, unless ``Request/handlesCookies`` is set;
    /// `true` by default. It has no effect with a transport that stores no cookies, such as a mock.
    ///
    /// The values of a request's own `Cookie` fields are sent after the stored cookies, in the same field; if this is
    /// `false`, those fields are sent unchanged.
    public var handlesCookies = true

    /// The time to wait for `100 Continue` (RFC 9110 §10.1.1) over HTTP/1.1 before a body is sent, after which it is
    /// sent anyway; with zero or less, the field `Expect` is sent and the body not delayed. `nil`, the default, sends
    /// no `Expect` field unless the request has one, with which libcurl waits for at most 1 s. No field is added to a
    /// request without a body or with an empty one. A request that is answered by 417 is sent once more, without the
    /// field.
    public var expectContinueTimeout: Duration?

    /// Whether compressed responses are requested and decoded; `true` by default. If `false`, no `Accept-Encoding` is
    /// added, and bodies are delivered as received.
    ///
    /// The codings are gzip and deflate, and also br and zstd if `libbrotlidec.so.1` and `libzstd.so.1` are installed,
    /// which libcurl depends on in most distributions. The body is decoded in pieces, on the task that reads it. A body
    /// that is malformed or ends within a coding, or has a coding that is not one of these or more than five, causes
    /// ``TransportError/Reason/invalidContentEncoding``; bytes after the end of a gzip, deflate or br stream are
    /// ignored. A body with too little content fails so, too: one of more than 1 MiB and 16 times the decoded bytes.
    ///
    /// A request's own `Accept-Encoding` replaces the default one, which is `identity` for a request with `Range`; none
    /// is added to a request for a WebSocket connection. The head keeps the `Content-Encoding` field. A response with
    /// the status 206 is a part of the encoded bytes (RFC 9110 §14.2), and is delivered as received.
    public var decodesContent = true
    /// The limits for decoding compressed responses; by default 1 GiB, and 200 times the received bytes.
    ///
    /// A body that exceeds one fails with ``TransportError/Reason/responseTooLarge(_:)``. The default limits do not apply
    /// to an event source of a session.
    public var decompressionLimit = DecompressionLimit()

    /// The maximum size in bytes of a response body that is collected in memory, after decompression and, except in tasks,
    /// which decompress it as it arrives, also before; 128 MiB by default. 0 or less permits only empty bodies. Streams
    /// and files have no limit.
    ///
    /// A larger body fails with ``TransportError/Reason/responseTooLarge(_:)``. The limit of a session's request is the one
    /// that it has before the interceptors, which cannot change it.
    public var maximumBodySize = 128 << 20
    /// The maximum total size in bytes of all heads of a response, including interim ones and trailers; 300 KiB by
    /// default. With 0 or less, every response fails.
    ///
    /// Larger heads, and a head with more than 4096 fields, fail with ``TransportError/Reason/responseTooLarge(_:)``.
    /// libcurl itself limits them to 300 KiB, so that a larger value has no effect, and a line to 100 KiB.
    public var maximumHeadSize = 300 << 10
    /// The maximum number of bytes of a streamed body that are buffered for the reader, before decompression; 256 KiB
    /// by default. A single chunk is buffered even if it is larger, so that 0 or less buffers one chunk at a time. The
    /// limit also applies to the messages of a WebSocket connection that wait for the program.
    ///
    /// If the buffer is full, the connection is not read until the reader catches up. Over HTTP/2 and HTTP/3, libcurl
    /// also buffers what the server has already sent within the stream's flow-control window, up to about 10 MB.
    public var streamBufferSize = 256 << 10

    /// The limits of the speed at which bodies are received and sent, all of which apply; none by default.
    ///
    /// A limit of a session's options is shared by its transfers; one that a request adds is shared by those requests to
    /// which it was added. See ``SpeedLimit``.
    public var speedLimits: [SpeedLimit] = []

    /// Creates the default options, as stated for each property.
    public init() {}

    /// Returns a copy of the options, changed by a closure.
    ///
    /// - Parameter change: Changes the copy, as in `options.with { $0.proxy = .none }`.
    public func with(_ change: (inout TransferOptions) -> Void) -> TransferOptions {
        var copy = self
        change(&copy)
        return copy
    }
}

/// The time limits of a transfer and its parts, set in ``TransferOptions/timeouts``; `nil` means no limit.
///
/// A transfer that exceeds one fails with ``TransportError/Reason/timedOut(_:)``, whose ``FailureContext/timeLimit`` is
/// the limit. A limit of zero or less has expired when its part begins.
public struct Timeouts: Hashable, Sendable {
    /// The limit for establishing a connection, from leaving the queue until the request can be sent: name lookup,
    /// proxy, TCP and TLS. 30 s by default, `nil` for no limit. Without it, the system's own timeout may fail a request
    /// with ``TransportError/ConnectFailure/systemTimeout``. A request that is sent again on a new connection has the
    /// whole limit again.
    public var connect: Duration? = .seconds(30)
    /// The limit for waiting in the queue for a connection; `nil`, the default, for none. With zero or less every
    /// exchange fails, even if a connection is free. See ``ConnectionLimits``.
    public var queue: Duration?
    /// The limit for the time without a byte sent or received, once connected, including the wait for the response; 60
    /// s by default, `nil` for no limit.
    ///
    /// The limit is suspended while the transfer is paused locally, because the response body is not being read or the
    /// source of the request body has nothing to send. It does not apply to a WebSocket connection once that is open;
    /// see ``WebSocketOptions/pingInterval``.
    public var idle: Duration? = .seconds(60)
    /// The limit for one complete exchange, from its start to the end of the body; `nil`, the default, for none. It
    /// includes the time in the queue, the time that the reader of a streamed body takes, and the whole life of a
    /// WebSocket connection. Each exchange of a call, such as that of a retry or redirect, has the whole limit again;
    /// `Request.timeout` limits all of them together.
    public var total: Duration?
    /// The limit for waiting for a route to the host, if `SessionConfiguration.waitsForConnectivity` or
    /// `Request.waitsForConnectivity` is set, including the attempts to connect meanwhile; `nil`, the default, for
    /// none.
    public var connectivity: Duration?

    /// Creates the default limits: 30 s to connect, 60 s idle, no others.
    package init() {}
}

/// The HTTP versions that a transfer may use, set in ``TransferOptions/httpVersion``.
public enum HTTPVersionPolicy: Hashable, Sendable {
    /// HTTP/2 if TLS negotiates it (ALPN, RFC 7301), otherwise HTTP/1.1. HTTP/1.1 if the linked libcurl is older than
    /// 8.10.1, whose HTTP/2 loses requests and mixes up bytes when exchanges share a connection, or lacks HTTP/2. A
    /// session uses HTTP/3 for servers that offered it, if the linked libcurl supports it; see
    /// `SessionConfiguration.usesAlternativeServices`.
    case automatic
    /// HTTP/1.1 only.
    case http1
    /// HTTP/2 if TLS negotiates it, otherwise HTTP/1.1; with any libcurl that has HTTP/2. Before 8.10.1, a connection
    /// carries one exchange at a time, and is closed if the exchange ends early: requests that run concurrently use
    /// several connections, up to ``ConnectionLimits/maximumConnectionsPerHost``, and wait for one of them.
    case http2
    /// HTTP/2 without negotiation over plain TCP (RFC 9113 §3.3), where a request to a server that does not speak it
    /// fails. Over TLS, HTTP/2 is negotiated, and some versions of libcurl still accept HTTP/1.1. Fails with
    /// ``TransportError/Reason/unsupported(_:)`` if the linked libcurl lacks it. libcurl before 8.10.1 makes
    /// a new connection for each request over plain TCP.
    case http2PriorKnowledge
    /// HTTP/3, HTTP/2 or HTTP/1.1: a new connection to an `https` URL is attempted over QUIC, and also over TCP if QUIC
    /// fails or takes longer than 200 ms, and the one that is established first is used. An open connection is reused,
    /// whichever its version. With a proxy, a Unix-domain socket or an `http` URL, the same as ``automatic``. Fails with
    /// ``TransportError/Reason/unsupported(_:)`` if the linked libcurl lacks HTTP/3. See CURLOPT_HTTP_VERSION(3).
    case http3
    /// HTTP/3 only. An `http` URL, a proxy, a Unix-domain socket, and a linked libcurl that lacks HTTP/3 fail a request
    /// with ``TransportError/Reason/unsupported(_:)``.
    case http3Only
}

/// The limits for decoded responses, as a protection against decompression bombs, set in
/// ``TransferOptions/decompressionLimit``. A body that exceeds one fails with
/// ``TransportError/Reason/responseTooLarge(_:)``.
public struct DecompressionLimit: Hashable, Sendable {
    /// The maximum number of decoded bytes; 1 GiB by default, `nil` for no limit, and 0 permits only empty bodies. If a
    /// body has several codings, it applies to the output of each.
    public var maximumSize: Int? = 1 << 30
    /// The maximum ratio of decoded to received bytes, checked while the body is decoded, from 1 MiB on; 200 by
    /// default, `nil` for no limit. A ratio below 1 counts as 1. If a body has several codings, it applies to the output
    /// of each, in which a byte that the next one decodes to nothing counts as 50.
    public var maximumRatio: Int? = 200
    /// The number of decoded bytes up to which the ratio is not checked.
    package var ratioThreshold = 1 << 20

    /// Creates the default limits: 1 GiB, and a ratio of 200 from 1 MiB on.
    package init() {}
}

/// The options for making connections, set in ``TransferOptions/connection``: IP versions, addresses, name resolution
/// and TCP keep-alive.
public struct ConnectionOptions: Hashable, Sendable {
    /// The IP versions that may be used; both by default. Requests to a name without an address of the chosen version
    /// fail with ``TransportError/Reason/cannotResolve``, and those to an address of the other version with
    /// ``TransportError/Reason/cannotConnect(_:)``.
    public var ipVersion = IPVersion.any
    /// The path of a Unix-domain socket to connect to instead of the URL's host and port, while TLS and the `Host`
    /// field keep the URL's host; `nil`, the default, for none. The proxy, ``addresses``, and what a session knows of the
    /// host (strict transport and alternative services) have no effect then. A path of more than 107 bytes fails
    /// requests with ``TransportError/Reason/invalidRequest(_:)``, and one without a socket with
    /// ``TransportError/ConnectFailure/refused``. Over HTTP/1.1, a connection carries a single request. See
    /// CURLOPT_UNIX_SOCKET_PATH(3).
    public var unixSocketPath: String?
    /// The local interface, address or host name to connect from, as in CURLOPT_INTERFACE(3); `nil`, the default, for
    /// any. One that cannot be used fails requests with ``TransportError/ConnectFailure/localAddress``.
    public var localInterface: String?
    /// Hosts and ports to connect to instead of those of the URL, while TLS and the `Host` field keep the URL's host;
    /// none by default. The first one for the URL's host and port is used. See CURLOPT_CONNECT_TO(3).
    public var hostOverrides: [HostOverride] = []
    /// The addresses that connections may be made to; all by default. The first other one that is tried fails the
    /// request with ``TransportError/ConnectFailure/addressForbidden``, even if the host has further addresses. With a
    /// proxy, only the proxy's address is checked.
    public var addresses = AddressPolicy.any
    /// The URL of a DNS-over-HTTPS server to resolve names with instead of the system (RFC 8484); `nil`, the default,
    /// for the system. Names that it does not resolve are not looked up by the system; requests to them fail with
    /// ``TransportError/Reason/cannotResolve``. See CURLOPT_DOH_URL(3).
    ///
    /// The server must be trusted by ``TLSOptions/trustRoots``; security policies do not apply to it. The connection to
    /// it is made through the proxy of the environment, if any, regardless of ``TransferOptions/proxy``, and
    /// ``addresses`` do not apply to it. If that proxy is connected to over TLS, requests fail with
    /// ``TransportError/Reason/unsupported(_:)``; list the server in `no_proxy`.
    ///
    /// No connection is used that was made for another resolver. The requests of a session share the addresses that were
    /// found within 60 s, whichever resolver has found them.
    public var dnsOverHTTPS: URL?
    /// The idle time after which the system sends TCP keep-alive probes, and the interval between them, rounded up to
    /// whole seconds, at least 1 s; 60 s by default, `nil` for no probes. The connection is lost when as many probes in
    /// succession as the system sends, 9 by default, were not answered. Linux accepts at most 32,767 s; with more, the
    /// system's own idle time and interval apply. See tcp(7) and CURLOPT_TCP_KEEPIDLE(3).
    public var tcpKeepAlive: Duration? = .seconds(60)

    /// Creates the default options, as stated for each property.
    package init() {}

    /// The IP versions that may be used to connect to a server or proxy.
    public enum IPVersion: Hashable, Sendable {
        /// IPv4 and IPv6, tried in parallel (RFC 8305).
        case any
        /// IPv4 only; IPv6 addresses of a host are ignored.
        case v4
        /// IPv6 only; IPv4 addresses of a host are ignored.
        case v6
    }

    /// A replacement for the host and port of a URL when connecting, for ``ConnectionOptions/hostOverrides``. See
    /// CURLOPT_CONNECT_TO(3).
    public struct HostOverride: Hashable, Sendable {
        /// The host of the URL.
        package var host: String
        /// The port of the URL.
        package var port: Int
        /// The address or host name to connect to.
        package var address: String
        /// The port to connect to.
        package var addressPort: Int

        /// Creates an override.
        ///
        /// - Parameters:
        ///   - host: The host of the URL, without brackets around an IPv6 address; an empty string stands for any host.
        ///   - port: The port of the URL, also if it is the default port of the scheme. Numbers out of 1 to 65,535, of this
        ///     port or of the other one, fail the request with ``TransportError/Reason/invalidRequest(_:)``.
        ///   - address: The address or host name to connect to, without brackets around an IPv6 address; an empty
        ///     string stands for the host of the URL.
        ///   - addressPort: The port to connect to; `nil`, the default, for `port`.
        public init(host: String, port: Int, address: String, addressPort: Int? = nil) {
            self.host = host
            self.port = port
            self.address = address
            self.addressPort = addressPort ?? port
        }
    }
}

/// The limits of a transport's connection pool and buffers. A session has one of each; see `SessionConfiguration.connectionLimits`.
public struct ConnectionLimits: Hashable, Sendable {
    /// The maximum number of concurrent exchanges on one HTTP/2 or HTTP/3 connection, of which the server may allow
    /// fewer; libcurl's own default.
    package static let maximumStreams = 100
    /// The maximum number of connections to one host and port, active or idle; 6 by default, 0 or less for no limit.
    /// Those of long-lived exchanges are not counted; see ``maximumLongLivedPerHost``.
    ///
    /// Further exchanges wait, first in, first out, unless they can share an HTTP/2 or HTTP/3 connection; see
    /// ``Timeouts/queue``. For http URLs through an HTTP proxy, the limit, increased by the number of connections of
    /// long-lived exchanges, also applies to the proxy as a whole, and for hosts that
    /// ``ConnectionOptions/hostOverrides`` replace by the same one, to that.
    public var maximumConnectionsPerHost = 6
    /// The maximum number of connections to one host and port in use by long-lived exchanges, which are WebSockets, event
    /// sources and other requests according to ``Request/isLongLived``; 256 by default, 0 or less for no limit. Further
    /// ones wait, first in, first out; see ``Timeouts/queue``.
    ///
    /// Other requests do not wait for long-lived ones, unless ``maximumConnections`` is reached. Over HTTP/2 and HTTP/3,
    /// where both share connections, they count alike; a WebSocket always has an HTTP/1.1 connection of its own. After a
    /// long-lived request, its connection is kept for reuse in addition to those of ``maximumConnectionsPerHost``.
    public var maximumLongLivedPerHost = 256
    /// The maximum number of connections in total, active or idle, including those of long-lived exchanges; a value below
    /// 1 counts as 1, and `nil`, the default, is no limit.
    ///
    /// At the limit, an idle connection is closed to make room for a new one: of one event loop, the one that has been idle
    /// longest. If all are active, further exchanges wait, first in, first out; see ``Timeouts/queue``. Those that can
    /// share a connection of HTTP/2 or HTTP/3 do not wait, and keep it active: as long as there is one at any time on each
    /// connection, a request to another origin waits.
    public var maximumConnections: Int?
    /// The number of connections, active ones included except those of long-lived exchanges, above which idle ones are
    /// closed instead of kept for reuse, the one that has been idle longest first, on each event loop; 256 by default. 0 or less leaves the
    /// limit to libcurl: none in 7.88, four times the number of exchanges in recent versions. See
    /// CURLMOPT_MAXCONNECTS(3).
    public var maximumIdleConnections = 256
    /// The longest time that a connection may be idle and still be reused, rounded up to whole seconds, at least
    /// 1 s and at most about 24 days; 118 s by default. See CURLOPT_MAXAGE_CONN(3).
    ///
    /// Over HTTP/1.1, a shorter `timeout` in the `Keep-Alive` field of a response takes precedence; the connection is
    /// then reused until 1 s before that time, or until half of a `timeout` of 1 s.
    public var maximumIdleAge = Duration.seconds(118)
    /// The longest time after its establishment for which a connection is still reused, rounded up to whole seconds, at
    /// least 1 s and at most about 24 days; `nil`, the default, for no limit. Exchanges in progress are not
    /// interrupted. A connection of HTTP/2 over TLS is not used for new requests after that time although others use it;
    /// over HTTP/3 the limit is that of idle connections. See CURLOPT_MAXLIFETIME_CONN(3).
    public var maximumAge: Duration?
    /// The maximum number of bytes of bodies and WebSocket messages that wait for slow readers and slow servers in the
    /// buffers of all exchanges together, including what libcurl keeps; `nil`, the default, for no more than the limits of
    /// each exchange, such as ``TransferOptions/streamBufferSize``.
    ///
    /// An exchange whose reader has taken everything always goes on: each one may hold two chunks, of 4 KiB with a budget
    /// up to 16 MiB, and of 16 KiB from 64 MiB on. A quarter of the budget is lent to those that hold more. If the chunks
    /// are more than half of the budget, for example with more than 1,024 exchanges and 16 MiB, less is lent. If they are
    /// more than all of it, each further exchange exceeds it by two chunks; limit the number of connections to prevent
    /// that.
    ///
    /// Not included are bodies that are collected, or received while the program decides about a response, which have
    /// limits of their own, bodies of requests in memory, a WebSocket message that has not been received completely, a fixed size per connection, and the system's socket
    /// buffers. Of a stream that waits, libcurl 8.10.1 and later receive up to 10 MB over HTTP/2, and over HTTP/3; so a
    /// session with a budget streams bodies over HTTP/1.1, unless ``TransferOptions/httpVersion`` is changed.
    public var memoryBudget: Int?

    /// The maximum number of event loops, each with a thread and with connections of its own: at least 1 and at most 64, one
    /// for each request until there are as many. `nil`, the default, for as many as there is work for: one, and another one
    /// whenever all have 8 requests at the same time, up to the number of processors that the process may use, and to 8.
    ///
    /// Requests go to the loop with a connection that they can use, otherwise to the one with the fewest requests. Limits
    /// on connections, cookies, TLS sessions, addresses, strict transport and alternative services are those of all loops
    /// together, but for ``ConnectionLimits/maximumIdleConnections``; with libcurl 8.16 to 8.19, each loop has its own
    /// addresses. A request that waits for a connection may be overtaken by up to four that wait on the loop where one
    /// became free. Requests with limited speed, see ``TransferOptions/speedLimits``, and those that a proxy forwards
    /// without a tunnel, use the first loop only. There is one loop with libcurl 8.11 to 8.15, in which several threads
    /// cannot share cookies.
    public var eventLoops: Int?

    /// The maximum number of event loops.
    package var maximumEventLoops: Int {
        eventLoops.map { min(max(1, $0), 64) } ?? min(max(1, ProcessInfo.processInfo.activeProcessorCount), 8)
    }

    /// The number of requests on each loop from which another one is started.
    package var eventLoopThreshold: Int { eventLoops == nil ? 8 : 1 }

    /// Creates the default limits: 6 connections per host, and 256 of long-lived exchanges, without a limit on their
    /// total number; 256 idle ones, each for at most 118 s; and 100 concurrent exchanges on each HTTP/2 or HTTP/3
    /// connection; and no memory budget.
    public init() {}
}

/// The addresses that connections may be made to; protects programs that fetch untrusted URLs from server-side request
/// forgery.
///
/// The policy is checked after name resolution, against the address of the actual connection, for every exchange:
/// redirects and reused connections are included. Neither a name that resolves to an internal address nor DNS rebinding
/// can bypass it. The first forbidden address that is tried fails the request with
/// ``TransportError/ConnectFailure/addressForbidden``; other addresses of the name are not tried. Set the policy in
/// ``ConnectionOptions/addresses``.
///
/// With a proxy, only the proxy's address is checked, even if names are resolved locally: the proxy may connect to any
/// server. List an internal proxy as an exception. The address of a ``ConnectionOptions/dnsOverHTTPS`` server is not
/// checked.
public enum AddressPolicy: Hashable, Sendable {
    /// All addresses, without a check; the default of ``ConnectionOptions/addresses``.
    case any
    /// Public Internet addresses, and exceptions written as IPv4 or IPv6 addresses (`10.1.2.3`) or networks
    /// (`10.1.0.0/16`, `fd00::/8`); no exceptions by default.
    ///
    /// The special-purpose addresses of RFC 6890 and multicast addresses are forbidden: loopback, private, link-local
    /// (used by cloud metadata services), carrier-grade NAT, documentation and reserved ones, IPv6 addresses that
    /// contain a forbidden IPv4 address (mapped, NAT64, 6to4), and those that contain no IPv4 address and are outside
    /// of 2000::/3. A Unix-domain socket, which only the program itself can choose, is allowed.
    ///
    /// An exception that is neither an address nor a network, such as a host name, fails all requests with
    /// ``TransportError/Reason/invalidRequest(_:)``.
    case publicOnly(except: [String] = [])
}

/// A limit of the speed of transfers, shared fairly by all those that have it in ``TransferOptions/speedLimits``.
///
/// ```swift
/// let limit = SpeedLimit(bytesReceivedPerSecond: 1_000_000)
/// let api = SessionManager { $0.speedLimits = [limit] }
/// limit.bytesReceivedPerSecond = nil  // at night
/// ```
///
/// It limits the bytes of bodies, as transferred, of the transfers of one session: in a second session, the same limit
/// applies once more. libcurl's transport pauses the connections that have received or sent enough, so that the other side
/// slows down; over HTTP/2 and HTTP/3, libcurl buffers up to about 10 MB of what a server has already sent. Of a
/// connection that is paused, ``Timeouts/idle`` does not elapse. Other transports ignore it, and
/// messages of WebSocket connections are not limited.
public struct SpeedLimit: Sendable, Hashable {
    /// The hosts that are limited; `nil` for all.
    package let host: HostPattern?
    private let rates: Rates

    /// Creates a limit.
    ///
    /// - Parameters:
    ///   - bytesReceivedPerSecond: The maximum number of body bytes received per second by all transfers together; `nil`,
    ///     the default, for no limit.
    ///   - bytesSentPerSecond: The maximum number of body bytes sent per second by all transfers together; `nil`, the
    ///     default, for no limit.
    ///   - host: The hosts whose transfers are limited; `nil`, the default, for all.
    public init(bytesReceivedPerSecond: Int? = nil, bytesSentPerSecond: Int? = nil, host: HostPattern? = nil) {
        self.host = host
        rates = Rates(Self.stored(bytesReceivedPerSecond), Self.stored(bytesSentPerSecond))
    }

    /// The maximum number of body bytes received per second by all transfers together; `nil` for no limit. A number below
    /// 1 counts as 1. It may be changed at any time, by any thread, and takes effect within 0.1 s.
    public var bytesReceivedPerSecond: Int? {
        get { Self.value(rates.receiving.load(ordering: .relaxed)) }
        nonmutating set { rates.receiving.store(Self.stored(newValue), ordering: .relaxed) }
    }

    /// The maximum number of body bytes sent per second by all transfers together; `nil` for no limit. A number below 1
    /// counts as 1. It may be changed at any time, by any thread, and takes effect within 0.1 s.
    public var bytesSentPerSecond: Int? {
        get { Self.value(rates.sending.load(ordering: .relaxed)) }
        nonmutating set { rates.sending.store(Self.stored(newValue), ordering: .relaxed) }
    }

    private static func stored(_ value: Int?) -> Int { value.map { max(1, $0) } ?? 0 }
    private static func value(_ stored: Int) -> Int? { stored == 0 ? nil : stored }

    /// The rates that all copies of a limit share; only those are equal to it.
    private final class Rates: Sendable, Hashable {
        let receiving: Atomic<Int>
        let sending: Atomic<Int>

        init(_ receiving: Int, _ sending: Int) {
            self.receiving = Atomic(receiving)
            self.sending = Atomic(sending)
        }

        static func == (left: Rates, right: Rates) -> Bool { left === right }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }
}
