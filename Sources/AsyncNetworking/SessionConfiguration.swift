// SPDX-License-Identifier: MIT

public import ANCache
public import ANHTTP
public import ANSerialization
import ANSystem
public import FoundationEssentials
public import HTTPTypes

/// The configuration of a ``SessionManager``.
///
/// It is a value: a manager keeps the copy that it was created with, and later changes of the original have no effect.
/// It also has the properties of ``ANHTTP/TransferOptions``, such as `timeouts`, `proxy` and `tls`. Arguments of a call
/// and properties of `Request` override some of these settings for one request.
@dynamicMemberLookup
public struct SessionConfiguration: Sendable {
    /// The URL that relative paths are resolved against (RFC 3986 §5); a slash is appended to its path, if any, unless
    /// it ends with one. `nil`, the default, requires absolute URLs: a relative one fails with
    /// ``SessionError/serialization(_:)``, as does every path if the base URL is not an absolute http or https URL. The
    /// URL of a `Request` is not resolved and must be absolute.
    public var baseURL: URL?
    /// How strings are combined with ``baseURL``: as references by RFC 3986 (`.reference`, the default), where a
    /// leading slash leads to the root of the host, or as paths below the base URL (`.appendingPath`), where it is
    /// ignored. Absolute http and https URLs are not affected.
    public var baseURLMode = URLResolver.Mode.reference
    /// Header fields added to every request that has no field of the same name; empty by default. They are also added
    /// to requests to other hosts than that of ``baseURL``; a redirect to another origin removes those in
    /// ``RedirectPolicy/sensitiveHeaders``, and so does one of the ``attemptInterceptors`` that changes the origin;
    /// `Proxy-Authorization` stays while the proxy does.
    public var headers: HTTPFields = [:]
    /// Whether `User-Agent` and `Accept-Language` are sent if neither the request nor ``headers`` contains them; `true`
    /// by default. The languages are those of the process's environment (`LC_ALL`, `LC_MESSAGES`, `LANG` and
    /// `LANGUAGE`, as in gettext(3)); without a locale, and in the locales C and POSIX, there is no `Accept-Language`.
    public var sendsDefaultHeaders = true
    /// The serializer that encodes the parameters of the verbs and of other functions that create a request; `.http` by
    /// default, which encodes them into the query for GET, HEAD and DELETE, and into a form body, empty without
    /// parameters, for other methods. Others are `.json` and `.propertyList`. It also runs for requests without
    /// parameters, but has no effect on a `Request` that the program creates itself.
    public var requestSerializer: any RequestSerializer = .http
    /// The encoder and the decoder for the JSON of requests and responses, unless a call or a serializer has one of its
    /// own. By default dates are ISO 8601 text, encoded in whole seconds; the other strategies are Foundation's.
    /// Neither may be modified once a session uses it.
    public var json = JSONCoding()
    /// The transfer options for requests that do not change them.
    package var transfer = TransferOptions()
    /// The limits of the connection pool and of buffers. By default there are at most 6 connections per host, without a limit on their
    /// total number; idle ones are closed above 256 connections, and are not reused after 118 s. Ignored with a
    /// ``transport`` of the program's own.
    public var connectionLimits = ConnectionLimits()
    /// The interceptors around each call, outermost first; none by default.
    ///
    /// They see the request as it was passed to the session, and the response that is returned after retries and
    /// redirects. See ``Interceptor``.
    public var interceptors: [any Interceptor] = []
    /// The interceptors around each exchange with a server, outermost first; none by default.
    ///
    /// They see every request that is sent, also for a retry, a redirect, an answer to a challenge or a validation,
    /// with all header fields except those that the transport adds, such as stored cookies, signatures, and credentials
    /// of other schemes than Basic and Bearer. They do not see a request that ``cache`` answers. See ``Interceptor``.
    public var attemptInterceptors: [any Interceptor] = []
    /// The monitors that receive the events of each request, called in this order on the thread of the event, often an
    /// event-loop thread of the session, so that they must return immediately; none by default. Those of different
    /// requests may be called at the same time.
    public var eventMonitors: [any EventMonitor] = []
    /// The maximum number of tasks (``DataTask``, ``UploadTask``, ``DownloadTask``) that run concurrently; `nil`, the
    /// default, for no limit. A value below 1 counts as 1.
    ///
    /// Further tasks wait, ordered by ``AnySessionTask/priority`` and then by the time at which they were resumed. A
    /// suspended task is not counted, and continues at once when it is resumed, if it was running before, even if more tasks
    /// run then; a running one that is cancelled is counted until it has ended. Functions that
    /// return a response directly are not counted either: their callers control how many they call. Nor are tasks that
    /// a closure of a running task starts, such as an interceptor or a challenge handler, which may wait for them.
    public var maximumConcurrentTasks: Int?
    /// The retry policy for requests without one of their own; ``RetryPolicy/none`` by default, so that nothing is
    /// retried. An ``EventSource`` does not use it: its reconnections follow `Request.retryPolicy` only.
    public var retryPolicy = RetryPolicy.none
    /// The redirect policy for requests without one of their own; follows at most 20 redirects by default.
    public var redirectPolicy = RedirectPolicy()
    /// Whether requests with the scheme `http` are sent over https to hosts that require it, and responses over https
    /// can add their host by the field `Strict-Transport-Security` (RFC 6797); `true` by default. Servers whose
    /// certificate or host name the security policy does not verify, or leaves to an `evaluator`, cannot add theirs. See
    /// ``SessionManager/strictTransport``.
    public var usesStrictTransport = true
    /// Whether requests with ``ANHTTP/HTTPVersionPolicy/automatic`` are sent over HTTP/3 to https servers that offered
    /// it by the field `Alt-Svc` (RFC 7838), if the linked libcurl supports it; `true` by default.
    ///
    /// If HTTP/3 fails, the request is sent over HTTP/2 or HTTP/1.1; therefore requests that may not be repeated, such
    /// as POST, do not use it. Nor do requests through a proxy or a Unix-domain socket, WebSocket connections, and
    /// requests with trailers, a signature, a credential that the transport handles, such as for Digest, or with TLS or
    /// connection options that exclude it. See ``SessionManager/alternativeServices``.
    public var usesAlternativeServices = true
    /// The credentials, tokens and signatures for requests without an authentication policy of their own;
    /// ``AuthenticationPolicy/none`` by default.
    public var authentication = AuthenticationPolicy.none
    /// Whether a request that fails because there is no route to its host or proxy, or because the host name cannot be
    /// resolved while there is no default route, waits for a route and is then sent again; `false` by default.
    ///
    /// ``ANHTTP/Timeouts/connectivity`` limits the wait, and so do `Request.timeout` and ``RetryPolicy/deadline``; by
    /// default there is no limit. The wait does not count as a retry. A request whose body is not replayable, or that a
    /// server may have seen and that may not be repeated, fails without waiting. `Request.waitsForConnectivity` overrides this setting for one request.
    public var waitsForConnectivity = false
    /// The response cache; `nil`, the default, for none. Several sessions may share one; ``cachePartition`` keeps the
    /// responses of their users apart. See ``ANCache/ResponseCache``.
    public var cache: ResponseCache?
    /// The use of ``cache``, and of caches between client and server, for requests without a cache policy of their own;
    /// ``CachePolicy/protocolPolicy`` by default, which follows RFC 9111.
    public var cachePolicy = CachePolicy.protocolPolicy
    /// The name of the user to whom the session's cookies, client certificates, security policy and
    /// ``attemptInterceptors`` belong; `nil`, the default, for a user of this session only. Without a ``cache`` it has
    /// no effect.
    ///
    /// A response that depends on one of them is used only in sessions with the same name. The name also replaces the
    /// credentials of requests, so that a response remains usable when a token or password changes: all requests of a
    /// session with a name must be those of one user. A name makes a cache on the disk useful to later sessions of the
    /// same user.
    public var cachePartition: String?
    /// A closure that changes a response before it is stored in ``cache``, or returns `nil` to prevent that; `nil`, the
    /// default, stores responses unchanged. `Request.willCache` replaces it for one request.
    ///
    /// It is called by the task that reads the body, when it has read it to the end, for a response that may be stored,
    /// also one that lacks a lifetime, and fits into the cache; not for a 304, which only updates the stored header
    /// fields. It receives the complete body in memory, also of responses that would otherwise be streamed to the disk.
    public var willCache: (@Sendable (CacheProposal) async -> CacheProposal?)?
    /// Whether a request that the ``cache`` cannot answer waits while one of this session for the same URL and
    /// credentials is in flight, and then uses its stored response; `false` by default. It has no effect without a
    /// cache.
    ///
    /// If the first request fails or its response is not stored, the others are sent; if it is cancelled, the next one
    /// takes its place. This applies to GET requests of functions that return the whole body, such as
    /// ``SessionManager/data(for:)`` and the verbs, without a body, a range, conditions, `no-cache` or `no-store`, and
    /// with a cache policy other than ``CachePolicy/reload`` and ``CachePolicy/revalidate``. Streamed responses and
    /// tasks, including ``DataTask``, neither wait nor are waited for. `Request.timeout` limits the wait.
    public var coalescesRequests = false
    /// The transport that performs exchanges; `nil`, the default, uses libcurl. With one of the program's own
    /// that does not wrap that of ``makeTransport()``, ``connectionLimits`` are ignored, no cookies are stored, WebSocket
    /// connections fail unless it is a `MockTransport`, and transfer options such as `tls` have an effect only if the
    /// transport implements them. A session that is shut down, or invalidated with its tasks, also shuts
    /// down its transport, even if another session uses it.
    public var transport: (any Transport)?
    /// The clock for retries and reconnections (waits, deadlines and budgets), for waits for a route, for the timeouts
    /// of whole calls, for ``SessionManager/shutdown(draining:)``, for transfer rates and for the flushes of durable
    /// downloads; `ContinuousClock` by default.
    ///
    /// Tests set a clock that they advance themselves, such as `ManualClock` of `AsyncNetworkingTesting`. The timeouts
    /// of exchanges (``ANHTTP/Timeouts``) follow the transport's own clock; that of a `MockTransport` is the session's.
    /// `ManualClock` also provides the date for the ages of cached responses and tokens, for `Retry-After`, and
    /// for other dates that servers send; with other clocks, these follow the system's date.
    public var clock: any Clock<Duration> = ContinuousClock()
    /// The date, in place of that of ``clock``; `nil` for no other.
    package var now: (@Sendable () -> CacheTime)?
    /// The date of the session: that of ``clock`` if it has one of its own, otherwise the system's.
    package var date: @Sendable () -> CacheTime {
        now ?? { [clock] in CacheTime(milliseconds: clock.dateInMilliseconds) }
    }
    /// The source of information about network routes.
    package var routes: any RouteSource = ReachabilityMonitor.shared
    /// The source of random numbers from 0 to 1 for the jitter of retries.
    package var randomUnit: @Sendable () -> Double = {
        var generator = SystemRandom()
        return .random(in: 0...1, using: &generator)
    }

    /// Creates the default configuration with a base URL, modified by a closure. The default of each property is stated
    /// there.
    ///
    /// - Parameters:
    ///   - baseURL: The URL that relative paths are resolved against; `nil`, the default, requires absolute URLs.
    ///   - configure: Modifies the default configuration; does nothing by default.
    public init(baseURL: URL? = nil, configure: (inout SessionConfiguration) -> Void = { _ in }) {
        self.baseURL = baseURL
        configure(&self)
    }

    /// A transfer option for requests that do not change it, such as `timeouts`, `proxy` or `tls`; the default values
    /// are those of ``ANHTTP/TransferOptions``. `Request.changeOptions(_:)` and the argument `options` of a call change
    /// options for one request.
    ///
    /// ```swift
    /// let api = SessionManager {
    ///     $0.timeouts.idle = .seconds(20)
    ///     $0.tls.policy = policy
    /// }
    /// ```
    public subscript<Value>(dynamicMember option: WritableKeyPath<TransferOptions, Value>) -> Value {
        get { transfer[keyPath: option] }
        set { transfer[keyPath: option] = newValue }
    }
}
