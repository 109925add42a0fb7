// SPDX-License-Identifier: MIT

public import ANHTTP
public import HTTPTypes

/// Which requests are sent again after they went wrong, when, and how often.
///
/// ```swift
/// let api = SessionManager(baseURL: url) {
///     $0.retries = RetryPolicy(limit: 3)
/// }
/// ```
///
/// An attempt went wrong if its response has one of the ``statuses``, or if it failed by one of the ``failures``. It is
/// followed by another one, unless
///
/// | what | because |
/// |---|---|
/// | there were ``limit`` retries | |
/// | the server may have acted on the request | and its method is not one of ``methods`` (by default the idempotent ones, RFC 9110 §9.2.2), and it has no ``idempotencyKeyField`` |
/// | the body can be read only once | ``ANHTTP/RequestBody/isReplayable`` |
/// | `Retry-After` is longer than ``maximumRetryAfter`` | a longer wait is for the caller to decide about |
/// | the wait would end after the ``deadline`` | |
/// | the host's ``budget`` is used up | retries must not keep a server down |
/// | ``decision`` says so | |
///
/// The result is then that of the last attempt. ``ANHTTP/RetryHistory`` says what the others came to and why there was no
/// further one: in ``ANHTTP/ResponseHead/retries``, in ``ANHTTP/TransferMetrics/retries`` of a ``Response``, and in
/// ``SessionError/retries``.
///
/// The wait before a retry is what `Retry-After` says, as seconds or as a date, or what ``backoff`` says if that is longer.
/// Cancelling the task ends it at once. Redirects start over with each attempt; a response that has been handed to its
/// reader is never asked for again.
public struct RetryPolicy: Sendable {
    /// How many times a request is sent again at most.
    public var limit: Int
    /// How long to wait before each retry.
    public var backoff = Backoff()
    /// The statuses that are worth another attempt: 408, 425, 429, 500, 502, 503 and 504.
    public var statuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]
    /// The failures that are worth another attempt: those that may be gone the next time. See ``Failure``.
    public var failures = Failure.transient
    /// The methods that may be repeated although the server may have acted on the request: GET, HEAD, OPTIONS, TRACE, PUT
    /// and DELETE.
    public var methods: Set<HTTPRequest.Method> = [.get, .head, .options, .trace, .put, .delete]
    /// A request with this field may be repeated whatever its method is: the server knows the repetition by its value.
    /// `Idempotency-Key` by default (draft-ietf-httpapi-idempotency-key-header); nil for none.
    public var idempotencyKeyField = HTTPField.Name("Idempotency-Key")
    /// The longest `Retry-After` that is waited for; nil for any. 60 s by default.
    public var maximumRetryAfter: Duration? = .seconds(60)
    /// The time for all attempts and waits together, bodies included; nil, the default, for no limit.
    ///
    /// What is left of it bounds the total time of each exchange; see ``ANHTTP/Timeouts/total``.
    public var deadline: Duration?
    /// How many of the requests to a host may be retries; nil for any number.
    public var budget: RetryBudget? = RetryBudget()
    /// Asked about each attempt that failed or has a status of 400 or above, before the policy acts: it may want another
    /// attempt, or none. Limit, body, deadline and budget hold all the same.
    public var decision: (@Sendable (Occasion) async throws -> Verdict)?

    /// Creates the default policy, with so many retries.
    public init(limit: Int = 2) {
        self.limit = limit
    }

    /// The policy of a session that was given no other: nothing is sent again.
    public static let none = RetryPolicy(limit: 0)

    /// Returns a copy that `change` has changed.
    public func with(_ change: (inout RetryPolicy) -> Void) -> RetryPolicy {
        var copy = self
        change(&copy)
        return copy
    }

    /// An attempt that went wrong.
    public struct Occasion: Sendable {
        /// The request.
        public var request: Request
        /// The number of the attempt, from 1.
        public var attempt: Int
        /// The head of the response, or the error.
        public var result: Result<ResponseHead, any Error>
        /// Whether the policy itself holds the result for worth another attempt.
        public var isRetriable: Bool
    }

    /// What a program decides about an attempt that went wrong.
    public enum Verdict: Hashable, Sendable {
        /// What the policy says.
        case followPolicy
        /// The request is sent again, after this wait or, if nil, the one that the policy says; whatever the method is.
        case retry(after: Duration? = nil)
        /// The result stands.
        case stop
    }
}

extension Request {
    /// Whether and how this request is sent again; nil, the default, means as the session says.
    public var retries: RetryPolicy? {
        get { self[RetryPolicy.OfRequest.self] }
        set { self[RetryPolicy.OfRequest.self] = newValue }
    }
}

extension RetryPolicy {
    fileprivate enum OfRequest: RequestAttribute {
        static var defaultValue: RetryPolicy? { nil }
    }
}
