// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import HTTPTypes

/// The conditions under which a failed request is sent again, how often, and after which wait.
///
/// ```swift
/// let api = SessionManager(baseURL: url) {
///     $0.retryPolicy = RetryPolicy(limit: 3)
/// }
/// ```
///
/// An attempt has failed if its response has one of the ``statuses`` or its error is one of the ``failures``. It is
/// retried, except in these cases:
///
/// | no retry if | details |
/// |---|---|
/// | there were ``limit`` retries | |
/// | a server may have acted on the request, as after every response, including a redirect and the answer to an exchange that an interceptor repeated | unless its method is one of ``methods`` (by default the idempotent ones, RFC 9110 §9.2.2) or it has an `Idempotency-Key` |
/// | the body is not replayable | see ``ANHTTP/RequestBody/isReplayable`` |
/// | `Retry-After` exceeds ``maximumRetryAfter`` | the caller decides whether to wait that long |
/// | the wait would not end before the ``deadline`` | |
/// | the origin's ``budget`` is used up | retries must not overload a server |
/// | ``decision`` returns ``Decision/stop`` | |
///
/// ``decision`` may also return ``Decision/retry(after:)``: it then repeats any error, or status of 400 or above,
/// regardless of ``statuses``, ``failures`` and ``methods``, and a wait that it gives replaces `Retry-After`,
/// ``maximumRetryAfter`` and ``backoff``. The limit, the body, the deadline and the budget apply in any case.
///
/// The result is that of the last attempt. The earlier attempts, and the reason why there was no further one, are in
/// ``ANHTTP/ResponseHead/retryHistory``, in the ``ANHTTP/TransferMetrics/retryHistory`` of a ``Response``, and in
/// ``SessionError/retryHistory``; see ``ANHTTP/RetryHistory``.
///
/// The wait before a retry is the longer of `Retry-After`, given in seconds or as a date, and ``backoff``. Cancelling
/// the task ends the wait immediately. Each attempt follows redirects from the original URL. A request is never
/// repeated once its response has been passed on: for functions that return the whole body, such as
/// ``SessionManager/data(for:)`` and the verbs, that is when the body is complete; for streamed responses and for
/// tasks, including ``DataTask``, when the head has arrived. As an exception, a download to a file whose response ends
/// early is continued from the byte where it ended, if ``ResumeData`` would permit it; that, too, counts as a retry, but if
/// bytes had arrived, the ``backoff`` begins anew and the ``budget`` is not used.
///
/// The failed exchange of a session in an ``Authenticator``'s refresh counts as one of the request: any method is retried if
/// the request was not sent before. If an interceptor around the call sends further requests, the policy of each applies to it, and the
/// attempts of the call are counted on.
public struct RetryPolicy: Sendable {
    /// The maximum number of retries; 2 by default. With 0 or less there are no retries, and ``deadline`` and
    /// ``decision`` have no effect.
    public var limit: Int
    /// The waits before retries; by default random, of at most 0.5 s before the first, 1 s before the second, and so on
    /// up to 30 s. A longer `Retry-After` of the response takes precedence, up to ``maximumRetryAfter``.
    public var backoff = Backoff()
    /// The statuses of responses that are retriable; 408, 425, 429, 500, 502, 503 and 504 by default. If empty, no
    /// response is retried unless ``decision`` says so. After any response the server may have acted on the request, so
    /// ``methods`` apply.
    public var statuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]
    /// The kinds of errors that are retriable; ``Failure/transient`` by default: failures of name lookup, of
    /// connecting, of the TLS handshake and of a proxy, lost connections, and timeouts of the request or response. If
    /// empty, no error is retried unless ``decision`` says so.
    public var failures = Failure.transient
    /// The methods that are retriable even if the server may have acted on the request, as after every response; GET,
    /// HEAD, OPTIONS, TRACE, PUT and DELETE by default (RFC 9110 §9.2.2). A request with another method, such as POST,
    /// is retried only after a failure before it reached the server, with an `Idempotency-Key`, or if
    /// ``decision`` says so.
    ///
    /// By `Idempotency-Key` a server recognizes a repeated request (draft-ietf-httpapi-idempotency-key-header). The
    /// library never adds the field: the program sets it, with a value that is unique for each request, and all retries
    /// send the same value.
    public var methods: Set<HTTPRequest.Method> = [.get, .head, .options, .trace, .put, .delete]
    /// The longest `Retry-After` to wait for; 60 s by default, `nil` for no limit. A response with a longer one is not
    /// retried, but returned to the caller, unless ``decision`` chooses the wait. With zero or less, that applies to
    /// any `Retry-After` that asks for a wait.
    public var maximumRetryAfter: Duration? = .seconds(60)
    /// The time limit for all attempts and waits together, including bodies and all requests of a download; `nil`, the
    /// default, for no limit.
    ///
    /// Each exchange is limited to the time that is left, and then fails with
    /// ``ANHTTP/TransportError/Reason/timedOut(_:)``; see ``ANHTTP/Timeouts/total``. With zero or less, every
    /// exchange fails, and none is retried. The deadline has no effect if ``limit`` is 0 or less; `Request.timeout`
    /// limits a call in any case.
    public var deadline: Duration?
    /// The limit on the share of retries among the requests to one origin; by default up to 10 retries at once, and in
    /// the long run one per second and one for every five requests. `nil` for no limit.
    public var budget: Budget? = Budget()
    /// A closure called for each attempt that threw an error or has a status of 400 or above, before the policy is
    /// applied; `nil`, the default, follows the policy.
    ///
    /// It may request or prevent another attempt; the limit, body, deadline and budget apply in any case. It runs in
    /// the task that makes the request, which waits for it. Meanwhile the body of the response is received and kept in
    /// memory, up to ``ANHTTP/TransferOptions/maximumBodySize``, so that the closure may make requests. It is not called for `CancellationError`, for errors after
    /// the response was passed on (except that of a download that can be continued), for the response to a request that
    /// accepts only stored ones, nor if ``limit`` is 0 or less. An error that it throws becomes the error of the request.
    public var decision: (@Sendable (Context) async throws -> Decision)?

    /// Creates a policy with a maximum number of retries, and otherwise with the default that each property states.
    ///
    /// - Parameter limit: The maximum number of retries; 2 by default, and 0 or less disables them.
    public init(limit: Int = 2) {
        self.limit = limit
    }

    /// The policy without retries, which is a session's default. Set as `Request.retryPolicy`, it disables the
    /// session's policy; write `RetryPolicy.none` there, because `.none` means `nil` for an optional property.
    ///
    /// A resumable upload goes on after an interruption also with this policy: up to 8 times without progress.
    public static let none = RetryPolicy(limit: 0)

    /// Returns a copy of the policy modified by a closure.
    ///
    /// - Parameter change: Modifies the copy.
    public func with(_ change: (inout RetryPolicy) -> Void) -> RetryPolicy {
        var copy = self
        change(&copy)
        return copy
    }

    /// The attempt about which ``RetryPolicy/decision`` is asked.
    public struct Context: Sendable {
        /// The request, with the session's header fields and before redirects; without credentials that the
        /// authentication policy adds. Changes have no effect on the request that is sent.
        public var request: Request
        /// The number of the attempt, starting at 1.
        public var attempt: Int
        /// The head of the response, whose status is 400 or above, or the error. Errors of lower layers, such as
        /// ``ANHTTP/TransportError``, are not wrapped in a ``SessionError``.
        public var result: Result<ResponseHead, any Error>
        /// Whether the result is one of the policy's ``RetryPolicy/statuses`` or ``RetryPolicy/failures``; the other
        /// conditions of a retry, such as the method, are not considered.
        public var isRetriable: Bool
    }

    /// The program's decision about an attempt; the result of ``RetryPolicy/decision``.
    public enum Decision: Hashable, Sendable {
        /// Applies the policy, as if there were no decision.
        case followPolicy
        /// Sends the request again after this wait, regardless of its method and of whether the result is retriable;
        /// `nil`, the default, waits as the policy would, and a negative wait counts as zero. The limit, body, deadline
        /// and budget still apply.
        case retry(after: Duration? = nil)
        /// Accepts the result without another attempt: the response is returned, or the error is thrown.
        case stop
    }
}

extension Request {
    /// The retry policy of this request, which replaces the session's as a whole; `nil`, the default, uses the
    /// session's. ``AsyncNetworking/RetryPolicy/none`` prevents retries. An ``AsyncNetworking/EventSource`` never uses
    /// the session's.
    public var retryPolicy: RetryPolicy? {
        get { self[RetryPolicy.OfRequest.self] }
        set { self[RetryPolicy.OfRequest.self] = newValue }
    }
}

extension RetryPolicy {
    fileprivate enum OfRequest: RequestAttribute {
        static var defaultValue: RetryPolicy? { nil }
    }
}

extension RetryPolicy {
    /// A kind of failure that may not recur in another attempt.
    ///
    /// | failure | ``ANHTTP/TransportError/reason-swift.property`` | the server may have acted | by default | typical cause |
    /// |---|---|---|---|---|
    /// | ``nameLookup`` | `cannotResolve`, `timedOut` while resolving | no | yes | a DNS server is busy |
    /// | ``connect`` | `cannotConnect`, `timedOut` while connecting or in the TLS handshake | no | yes | the server restarts, or a packet was lost |
    /// | ``tlsHandshake`` | `tls(.handshake)` | no | yes | the connection was lost during the handshake |
    /// | ``proxy`` | `proxy(.handshake)`, `proxy(.tunnelRefused)` with a status of 500 or above | no | yes | the proxy is busy |
    /// | ``connectionLost`` | `connectionLost` | yes | yes | the server restarted, or a middlebox dropped the connection |
    /// | ``noResponse`` | `timedOut` while sending, waiting for or receiving the response | yes | yes | the server is busy |
    /// | ``queue`` | `timedOut` waiting for a free connection | no | no | the client sends too many requests at once |
    /// | ``invalidResponse`` | `invalidResponse`, `invalidContentEncoding` | yes | no | the server does not follow the protocol, and is likely to do so again |
    ///
    /// Other failures are retried only if ``RetryPolicy/decision`` says so: an untrusted certificate, an address that
    /// is unusable or forbidden, rejected proxy credentials, a request that cannot be sent, a response above a limit, a
    /// body whose source failed, an expired wait for a route, an open circuit, and errors that the program throws. Event
    /// sources, ``SessionManager/withWebSockets(for:options:reconnectionTime:_:)`` and resumable uploads go on after an
    /// expired wait for a route, and after the wait for which an open circuit asks.
    public enum Failure: CaseIterable, Hashable, Sendable {
        /// The host name could not be resolved, or a timeout expired during its lookup. Retriable by default, for any
        /// method.
        case nameLookup
        /// No connection could be established, or a timeout expired while connecting or during the TLS handshake. A
        /// forbidden address, or a local address that cannot be used, is not retriable. Retriable by default, for any
        /// method.
        case connect
        /// The TLS handshake was interrupted. An untrusted certificate is a failure of another kind, which is not
        /// retried. Retriable by default, for any method.
        case tlsHandshake
        /// The proxy could not be used: its handshake failed, or it refused a tunnel with a status of 500 or above.
        /// Retriable by default, for any method.
        case proxy
        /// The connection was lost before the end of the response; the server may have acted on the request. Retriable
        /// by default, for ``RetryPolicy/methods``.
        case connectionLost
        /// A timeout expired while the request was sent or the response received; the server may have acted on the
        /// request. Retriable by default, for ``RetryPolicy/methods``.
        case noResponse
        /// A timeout expired before a connection was free (``ANHTTP/Timeouts/queue``); not retriable by default.
        case queue
        /// The response violates HTTP, or its content coding is invalid; not retriable by default. An invalid content
        /// coding is detected when the body is read, which is too late for a retry unless the call collects the body of a
        /// status from 300 on, or one that an interceptor has replaced.
        case invalidResponse

        /// The failures that are retriable by default: ``nameLookup``, ``connect``, ``tlsHandshake``, ``proxy``,
        /// ``connectionLost`` and ``noResponse``.
        ///
        /// To add one to a policy: `policy.failures.insert(.queue)`.
        public static let transient: Set<Failure> = [
            .nameLookup, .connect, .tlsHandshake, .proxy, .connectionLost, .noResponse,
        ]

        /// Creates the kind of an error; `nil` if the error is not retriable.
        package init?(_ error: any Error) {
            guard let error = error as? TransportError else { return nil }
            switch error.reason {
            case .cannotResolve: self = .nameLookup
            case .cannotConnect(.localAddress), .cannotConnect(.addressForbidden): return nil
            case .cannotConnect: self = .connect
            case .tls(.handshake): self = .tlsHandshake
            case .tls: return nil
            case .proxy(.handshake), .proxy(.tunnelRefused(status: 500...)): self = .proxy
            case .proxy: return nil
            case .connectionLost: self = .connectionLost
            case .invalidResponse, .invalidContentEncoding: self = .invalidResponse
            case .timedOut(let phase):
                guard let failure = Failure(phase) else { return nil }
                self = failure
            case .invalidURL, .unsupportedScheme, .invalidRequest, .unsupported,
                .responseTooLarge, .requestBody, .webSocketClosed, .shutDown, .internalInconsistency:
                return nil
            }
        }

        private init?(_ phase: TransportError.TimeoutPhase) {
            switch phase {
            case .connectivity: return nil
            case .queue: self = .queue
            case .nameLookup: self = .nameLookup
            case .connect, .tlsHandshake: self = .connect
            case .request, .responseHead, .responseBody: self = .noResponse
            }
        }
    }
}

extension TransportError {
    /// Whether a server may have seen the request, so that it may have acted on it.
    package var mayHaveReachedServer: Bool {
        if context.precedesSending { return false }
        return switch reason {
        case .invalidURL, .unsupportedScheme, .invalidRequest, .unsupported, .cannotResolve, .cannotConnect, .proxy:
            false
        // With TLS 1.3, the server may refuse the certificate after it has received the request.
        case .tls(let failure): failure == .clientCertificateRefused
        case .timedOut(.connectivity), .timedOut(.queue), .timedOut(.nameLookup), .timedOut(.connect),
            .timedOut(.tlsHandshake):
            false
        case .timedOut(.request), .timedOut(.responseHead), .timedOut(.responseBody), .connectionLost,
            .invalidResponse, .invalidContentEncoding, .responseTooLarge, .requestBody, .webSocketClosed, .shutDown,
            .internalInconsistency:
            true
        }
    }
}

/// The waits before retries: exponential up to a maximum, with optional full jitter.
///
/// The wait before retry *n*, starting at 1, is `min(base × multiplier^(n−1), maximum)`, where a multiplier below 1
/// counts as 1. With jitter it is drawn uniformly between zero and that value, so that clients that failed together do
/// not retry together. A backoff takes effect as ``RetryPolicy/backoff``.
public struct Backoff: Hashable, Sendable {
    /// The longest wait before the first retry; 0.5 s by default.
    package var base: Duration
    /// The factor by which the longest wait grows with each retry; 2 by default. A factor of 1 or less keeps it
    /// constant.
    package var multiplier: Double
    /// The upper bound of all waits; 30 s by default.
    package var maximum: Duration
    /// Whether each wait is drawn at random between zero and its longest value ("full jitter"); `true` by default.
    package var isJittered: Bool

    /// Creates a backoff; the defaults double the wait from 0.5 s up to 30 s, with full jitter.
    ///
    /// - Parameters:
    ///   - base: The longest wait before the first retry; 0.5 s by default. A negative one counts as zero.
    ///   - multiplier: The factor by which the longest wait grows with each retry; 2 by default. A factor of 1 or less
    ///     keeps it constant.
    ///   - maximum: The upper bound of all waits; 30 s by default. With zero or less, every wait is zero.
    ///   - isJittered: Whether each wait is drawn at random between zero and its longest value; `true` by default.
    public init(
        base: Duration = .milliseconds(500), multiplier: Double = 2, maximum: Duration = .seconds(30),
        isJittered: Bool = true
    ) {
        self.base = base
        self.multiplier = multiplier
        self.maximum = maximum
        self.isJittered = isJittered
    }

    /// Returns the wait before a retry.
    ///
    /// - Parameters:
    ///   - retry: The number of the retry, starting at 1.
    ///   - unit: A random number from 0 to 1.
    package func wait(beforeRetry retry: Int, unit: Double) -> Duration {
        var longest = max(.zero, min(base, bound))
        guard multiplier > 1 else { return jittered(longest, unit) }
        var step = 1
        while retry > step, longest > .zero, longest < bound {
            longest = longest / .seconds(1) * multiplier < bound / .seconds(1) ? longest * multiplier : bound
            step += 1
        }
        return jittered(longest, unit)
    }

    private func jittered(_ longest: Duration, _ unit: Double) -> Duration {
        // Not multiplied by 1, because the conversion to `Double` would round the duration.
        isJittered && !(unit >= 1) ? longest * max(0, unit) : longest
    }

    /// The maximum, limited to what a clock can sleep.
    private var bound: Duration { maximum.bounded }
}

extension ResponseHead {
    /// Returns the wait that the server asks for in `Retry-After` (RFC 9110 §10.2.3), or `nil` if the field is missing
    /// or malformed.
    ///
    /// A date is compared with the response's `Date`, that is, with the server's own clock; without `Date`, with `now`.
    ///
    /// - Parameter now: The current time in seconds since 1970.
    package func retryAfter(now: Int64) -> Duration? {
        guard let value = headers.first(.retryAfter), !value.isEmpty else { return nil }
        let parts = value.split(at: ".", maxSplits: 1, omittingEmptySubsequences: false)
        if parts.allSatisfy(\.isDigits) {
            let whole = Duration.seconds(Int64(parts[0]) ?? Int64.max)
            // Some servers send a fraction of a second, which is read to the millisecond.
            guard parts.count == 2, let fraction = Int64((parts[1] + "00").prefix(3)) else { return whole }
            return whole + .milliseconds(fraction)
        }
        guard let date = HTTPDate(value, now: now) else { return nil }
        let current = headers.first(.date).flatMap { HTTPDate($0, now: now) }?.seconds ?? now
        return .seconds(max(0, date.seconds - current))
    }
}
