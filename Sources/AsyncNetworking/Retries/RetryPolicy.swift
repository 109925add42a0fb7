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
/// | the server may have acted on the request | unless its method is one of ``methods`` (by default the idempotent ones, RFC 9110 §9.2.2) or it has an ``idempotencyKeyField`` |
/// | the body is not replayable | see ``ANHTTP/RequestBody/isReplayable`` |
/// | `Retry-After` exceeds ``maximumRetryAfter`` | the caller decides whether to wait that long |
/// | the wait would end after the ``deadline`` | |
/// | the host's ``budget`` is used up | retries must not overload a server |
/// | ``decision`` returns ``Decision/stop`` | |
///
/// The result is that of the last attempt. The earlier attempts, and the reason why there was no further one, are in
/// ``ANHTTP/ResponseHead/retryHistory``, in the ``ANHTTP/TransferMetrics/retryHistory`` of a ``Response``, and in
/// ``SessionError/retryHistory``; see ``ANHTTP/RetryHistory``.
///
/// The wait before a retry is the longer of `Retry-After`, given in seconds or as a date, and ``backoff``. Cancelling
/// the task ends the wait immediately. Each attempt follows redirects from the original URL. A request is never
/// repeated once its response has been passed to the caller. A download to a file whose response ends early is continued
/// from the byte where it ended, if ``ResumeData`` would permit it; that, too, counts as a retry.
public struct RetryPolicy: Sendable {
    /// The maximum number of retries; 0 disables them.
    public var limit: Int
    /// The waits before retries.
    public var backoff = Backoff()
    /// The statuses that are retriable; 408, 425, 429, 500, 502, 503 and 504 by default.
    public var statuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]
    /// The failures that are retriable; ``Failure/transient`` by default.
    public var failures = Failure.transient
    /// The methods that are retriable even if the server may have acted on the request; GET, HEAD, OPTIONS, TRACE, PUT
    /// and DELETE by default.
    public var methods: Set<HTTPRequest.Method> = [.get, .head, .options, .trace, .put, .delete]
    /// The header field that makes a request retriable regardless of its method, because the server recognizes a
    /// repetition by its value.
    ///
    /// `Idempotency-Key` by default (draft-ietf-httpapi-idempotency-key-header); `nil` for none.
    public var idempotencyKeyField: HTTPField.Name? = .idempotencyKey
    /// The longest `Retry-After` to wait for; 60 s by default, `nil` for no limit.
    public var maximumRetryAfter: Duration? = .seconds(60)
    /// The time limit for all attempts and waits together, including bodies; `nil`, the default, for no limit.
    ///
    /// Each exchange is limited to the time that is left; see ``ANHTTP/Timeouts/total``.
    public var deadline: Duration?
    /// The limit on the share of retries among the requests to one host; `nil` for no limit.
    public var budget: RetryBudget? = RetryBudget()
    /// A closure called for each attempt that threw an error or has a status of 400 or above, before the policy is
    /// applied; `nil`, the default, follows the policy.
    ///
    /// It may request or prevent another attempt; the limit, body, deadline and budget apply in any case. An error that
    /// it throws becomes the error of the request.
    public var decision: (@Sendable (Context) async throws -> Decision)?

    /// Creates the default policy with a maximum number of retries.
    public init(limit: Int = 2) {
        self.limit = limit
    }

    /// The policy without retries, which is a session's default.
    public static let none = RetryPolicy(limit: 0)

    /// Returns a copy modified by a closure.
    public func with(_ change: (inout RetryPolicy) -> Void) -> RetryPolicy {
        var copy = self
        change(&copy)
        return copy
    }

    /// An attempt about which ``decision`` is asked.
    public struct Context: Sendable {
        /// The request.
        public var request: Request
        /// The number of the attempt, starting at 1.
        public var attempt: Int
        /// The head of the response, or the error.
        public var result: Result<ResponseHead, any Error>
        /// Whether the policy considers the result retriable.
        public var isRetriable: Bool
    }

    /// The program's decision about an attempt.
    public enum Decision: Hashable, Sendable {
        /// Applies the policy.
        case followPolicy
        /// Sends the request again, regardless of its method, after this wait; `nil` waits as the policy would.
        case retry(after: Duration? = nil)
        /// Accepts the result without another attempt.
        case stop
    }
}

extension Request {
    /// The retry policy of this request; `nil`, the default, uses the session's.
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
