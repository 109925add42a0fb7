// SPDX-License-Identifier: MIT

public import ANHTTP
public import HTTPTypes

/// A value deserialized from a response, with the response's head, trailers and metrics.
public struct Response<Value: Sendable>: Sendable {
    /// The body, or the value that a serializer made of it.
    public var value: Value
    /// The status and header fields.
    public var head: ResponseHead
    /// The trailer fields; empty if there were none.
    public var trailers: HTTPFields
    /// The metrics of the last exchange, and the earlier attempts.
    public var metrics: TransferMetrics {
        get { sharedMetrics.value }
        set { sharedMetrics = Shared(newValue) }
    }

    private var sharedMetrics: Shared<TransferMetrics>

    /// Creates a response from a value, a head, and the trailers and metrics of the exchange, empty by default.
    public init(_ value: Value, head: ResponseHead, ending: ResponseEnding = ResponseEnding()) {
        self.value = value
        self.head = head
        trailers = ending.trailers
        sharedMetrics = ending.sharedMetrics
        if head.retryHistory != RetryHistory() { metrics.retryHistory = head.retryHistory }
    }

    /// The status code.
    public var statusCode: Int { head.status.code }
    /// The header fields.
    public var headers: HTTPFields { head.headers }
    /// The heads of the redirects that were followed, in order.
    public var redirectHistory: [ResponseHead] { head.redirectHistory }

    /// Returns the response with its value transformed.
    ///
    /// - Throws: The error that `transform` throws.
    public func map<Other: Sendable, Failure: Error>(
        _ transform: (Value) throws(Failure) -> Other
    ) throws(Failure) -> Response<Other> {
        Response<Other>(
            try transform(value), head: head, ending: ResponseEnding(trailers: trailers, metrics: sharedMetrics))
    }
}
