// SPDX-License-Identifier: MIT

public import ANHTTP
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
/// | a server may have acted on the request, as after every response, including a redirect and the answer to an exchange that an interceptor repeated | unless its method is one of ``methods`` (by default the idempotent ones, RFC 9110 §9.2.2) or it has an ``idempotencyKeyField`` |
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
public struct RetryPolicy: Sendable {
    /// The maximum number of retries; 2 by default. With 0 or less there are no retries, and ``deadline`` and
    /// ``decision`` have no effect.
    public var limit: Int
    /// The waits before retries; by default random, of at most 0.5 s before the first, 1 s before the second, and so on
    /// up to 30 s. A longer `Retry-After` of the response takes precedence, up to ``maximumRetryAfter``.
    public var backoff = Backoff()
    /// The statuses of responses that are retriable; 408, 425, 429, 500, 502, 503 and 504 by default. If empty, no
    /// response is retried unless ``decision`` says so. After any response the server may have acted on the request, so
    /// ``methods`` and ``idempotencyKeyField`` apply.
    public var statuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]
    /// The kinds of errors that are retriable; ``Failure/transient`` by default: failures of name lookup, of
    /// connecting, of the TLS handshake and of a proxy, lost connections, and timeouts of the request or response. If
    /// empty, no error is retried unless ``decision`` says so.
    public var failures = Failure.transient
    /// The methods that are retriable even if the server may have acted on the request, as after every response; GET,
    /// HEAD, OPTIONS, TRACE, PUT and DELETE by default (RFC 9110 §9.2.2). A request with another method, such as POST,
    /// is retried only after a failure before it reached the server, with an ``idempotencyKeyField``, or if
    /// ``decision`` says so.
    public var methods: Set<HTTPRequest.Method> = [.get, .head, .options, .trace, .put, .delete]
    /// The header field by which a server recognizes a repeated request: a request with this field is retriable
    /// regardless of its method, even if the server may have acted on it.
    ///
    /// `Idempotency-Key` by default (draft-ietf-httpapi-idempotency-key-header); `nil` for none. The library never adds
    /// the field: the program sets it, with a value that is unique for each request. All retries send the same value.
    public var idempotencyKeyField: HTTPField.Name? = .idempotencyKey
    /// The longest `Retry-After` to wait for; 60 s by default, `nil` for no limit. A response with a longer one is not
    /// retried, but returned to the caller, unless ``decision`` chooses the wait. With zero or less, that applies to
    /// any `Retry-After` that asks for a wait.
    public var maximumRetryAfter: Duration? = .seconds(60)
    /// The time limit for all attempts and waits together, including bodies; `nil`, the default, for no limit.
    ///
    /// Each exchange is limited to the time that is left, and then fails with
    /// ``ANHTTP/TransportError/Reason/timedOut(_:)``; see ``ANHTTP/Timeouts/total``. With zero or less, every
    /// exchange fails, and none is retried. The deadline has no effect if ``limit`` is 0 or less; `Request.timeout`
    /// limits a call in any case.
    public var deadline: Duration?
    /// The limit on the share of retries among the requests to one origin; by default up to 10 retries at once, and in
    /// the long run one per second and one for every five requests. `nil` for no limit.
    public var budget: RetryBudget? = RetryBudget()
    /// A closure called for each attempt that threw an error or has a status of 400 or above, before the policy is
    /// applied; `nil`, the default, follows the policy.
    ///
    /// It may request or prevent another attempt; the limit, body, deadline and budget apply in any case. It runs in
    /// the task that makes the request, which waits for it. It is not called for `CancellationError`, for errors after
    /// the response was passed on (except that of a download that can be continued), nor if ``limit`` is 0 or less. An
    /// error that it throws becomes the error of the request.
    public var decision: (@Sendable (Context) async throws -> Decision)?

    /// Creates a policy with a maximum number of retries, and otherwise with the default that each property states.
    ///
    /// - Parameter limit: The maximum number of retries; 2 by default, and 0 or less disables them.
    public init(limit: Int = 2) {
        self.limit = limit
    }

    /// The policy without retries, which is a session's default. Set as `Request.retryPolicy`, it disables the
    /// session's policy; write `RetryPolicy.none` there, because `.none` means `nil` for an optional property.
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
