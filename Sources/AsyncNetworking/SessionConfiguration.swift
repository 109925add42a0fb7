// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
public import FoundationEssentials
public import HTTPTypes

/// What a ``SessionManager`` is made with. It is a value; a manager keeps the one it was given.
public struct SessionConfiguration: Sendable {
    /// What relative paths are resolved against, as RFC 3986 says; a missing slash at its end is added.
    public var baseURL: URL?
    /// How paths relate to the base URL.
    public var baseURLMode = URLResolver.Mode.reference
    /// Fields for every request that has none of the same name.
    public var headers: HTTPFields = [:]
    /// Whether `User-Agent` and `Accept-Language` are sent where neither the request nor ``headers`` has them.
    public var sendsDefaultHeaders = true
    /// Turns the parameters of the verbs into queries and bodies.
    public var requestSerializer: any RequestSerializer = .http
    /// How transfers are made, where a request does not say otherwise.
    public var transfer = TransferOptions()
    /// The limits of the connection pool.
    public var pool = ConnectionPool()
    /// What wraps each call of the session's functions, the first one outermost: it sees the request as it was handed
    /// over and the response as it will be returned. See ``Interceptor``.
    public var interceptors: [any Interceptor] = []
    /// What wraps each exchange with a server, the first one outermost: every retry, redirect and answer to a challenge
    /// passes through, as it is sent.
    public var attemptInterceptors: [any Interceptor] = []
    /// Told what happens to each request, in this order.
    public var eventMonitors: [any EventMonitor] = []
    /// The most tasks (``DataTask``, ``UploadTask``, ``DownloadTask``) that work at the same time; nil, the default, means
    /// any number. Others wait, by priority and then in the order in which they were resumed. Functions that return a
    /// response are not counted: their callers know how many they call.
    public var maximumConcurrentTransfers: Int?
    /// Which requests are sent again after they went wrong, where a request does not say otherwise; none by default.
    public var retries = RetryPolicy.none
    /// What happens to redirects, where a request does not say otherwise.
    public var redirects = RedirectPolicy()
    /// How requests show who makes them; not at all by default.
    public var authentication = AuthenticationPolicy.none
    /// Whether requests that fail for want of a route to their host wait until there is one, and are then sent again, where
    /// they do not say otherwise; false by default. ``ANHTTP/Timeouts/connectivity`` limits the wait.
    ///
    /// A body that can be read only once does not wait.
    public var waitsForConnectivity = false
    /// What requests want of caches, where they do not say otherwise.
    public var cachePolicy = CachePolicy.useProtocol
    /// What performs the requests; nil for libcurl.
    public var transport: (any Transport)?
    /// What measures the time that ``SessionManager/shutdown(draining:)`` and retries wait, and the speed of transfers.
    package var clock: any Clock<Duration> = ContinuousClock()
    /// What tells whether there is a route.
    package var routes: any RouteSource = ReachabilityMonitor.shared
    /// What jitter is drawn from: numbers from 0 to 1.
    package var randomUnit: @Sendable () -> Double = { .random(in: 0...1) }

    /// Creates the default configuration with a base URL, and changes it.
    public init(baseURL: URL? = nil, configure: (inout SessionConfiguration) -> Void = { _ in }) {
        self.baseURL = baseURL
        configure(&self)
    }

    /// The most connections to one host; see ``ANHTTP/ConnectionPool/maximumConnectionsPerHost``.
    public var maximumConnectionsPerHost: Int {
        get { pool.maximumConnectionsPerHost }
        set { pool.maximumConnectionsPerHost = newValue }
    }

    /// Limits on time; see ``ANHTTP/TransferOptions/timeouts``.
    public var timeouts: Timeouts {
        get { transfer.timeouts }
        set { transfer.timeouts = newValue }
    }

    /// The proxy; see ``ANHTTP/TransferOptions/proxy``.
    public var proxy: ProxyPolicy {
        get { transfer.proxy }
        set { transfer.proxy = newValue }
    }

    /// Whether cookies are sent and kept; see ``ANHTTP/TransferOptions/handlesCookies``.
    public var handlesCookies: Bool {
        get { transfer.handlesCookies }
        set { transfer.handlesCookies = newValue }
    }

    /// What servers must show; see ``ANHTTP/TLSOptions/policy``.
    public var securityPolicy: SecurityPolicy {
        get { transfer.tls.policy }
        set { transfer.tls.policy = newValue }
    }

    /// Who the client is, for servers that ask; see ``ANHTTP/TLSOptions/identity``.
    public var clientIdentity: ClientIdentity? {
        get { transfer.tls.identity }
        set { transfer.tls.identity = newValue }
    }

    /// The rules for TLS; see ``ANHTTP/TransferOptions/tls``.
    public var tls: TLSOptions {
        get { transfer.tls }
        set { transfer.tls = newValue }
    }
}
