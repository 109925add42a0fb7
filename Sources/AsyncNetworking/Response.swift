// SPDX-License-Identifier: MIT

public import ANHTTP
public import HTTPTypes

/// A response with its value, which is the body or was deserialized from it, and with its head, trailers and metrics.
///
/// ``SessionManager/data(for:)``, ``SessionManager/response(for:as:)`` and the verbs return one, as does the
/// ``SessionTask/value`` of a data or upload task.
public struct Response<Value: Sendable>: Sendable {
    /// The body as `Data`, or the value that the serializer returned for it; `()` for a ``DownloadedFile/response``,
    /// whose body is in the file.
    public var value: Value
    /// The status, header fields and URL of the final response, after redirects and retries.
    public var head: ResponseHead
    /// The trailer fields that followed the body (RFC 9110 §6.5); empty if there were none.
    public var trailers: HTTPFields
    /// The time of the whole call, from its beginning until the response was received, with all exchanges and the waits
    /// between them. Measured on the clock of the session; zero for a response that a test created. The time of the last
    /// exchange alone is the ``ANHTTP/TransferMetrics/total`` of the ``metrics``.
    public var callDuration: Duration = .zero
    /// The metrics of the last exchange, and in ``ANHTTP/TransferMetrics/retryHistory`` the earlier attempts. Empty,
    /// except for their ``ANHTTP/TransferMetrics/source``, for a response that the cache returned without an exchange
    /// or because the exchange failed, and for one that an interceptor or a test created without metrics.
    public var metrics: TransferMetrics {
        get { sharedMetrics.value }
        set { sharedMetrics = Shared(newValue) }
    }

    private var sharedMetrics: Shared<TransferMetrics>

    /// Creates a response, for example for a test. The metrics contain the retry history of the head, if it has one.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - head: The status, header fields and URL.
    ///   - ending: The trailer fields and the metrics of the exchange; none by default.
    public init(_ value: Value, head: ResponseHead, ending: ResponseEnding = ResponseEnding()) {
        self.value = value
        self.head = head
        trailers = ending.trailers
        sharedMetrics = ending.sharedMetrics
        if head.retryHistory != RetryHistory() { metrics.retryHistory = head.retryHistory }
    }

    /// The status code of the final response, such as 200.
    public var statusCode: Int { head.status.code }
    /// The header fields of the final response, without the ``trailers``; the same as those of the ``head``.
    public var headers: HTTPFields { head.headers }
    /// The heads of the redirects that were followed, in order; empty if there were none.
    public var redirectHistory: [ResponseHead] { head.redirectHistory }

    /// Returns a response with the value transformed, and with the same head, trailers and metrics.
    ///
    /// - Parameter transform: Converts the value.
    /// - Throws: The error that `transform` throws.
    public func map<Other: Sendable, Failure: Error>(
        _ transform: (Value) throws(Failure) -> Other
    ) throws(Failure) -> Response<Other> {
        var other = Response<Other>(
            try transform(value), head: head, ending: ResponseEnding(trailers: trailers, metrics: sharedMetrics))
        other.callDuration = callDuration
        return other
    }
}
