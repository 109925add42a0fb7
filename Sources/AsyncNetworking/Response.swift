// SPDX-License-Identifier: MIT

public import ANHTTP
public import HTTPTypes

/// A value made from a response, with all that came with it.
public struct Response<Value: Sendable>: Sendable {
    /// The value: bytes, or what a serializer made of them.
    public var value: Value
    /// The status and header fields.
    public var head: ResponseHead
    /// The trailer fields.
    public var trailers: HTTPFields
    /// What the last exchange cost, and the attempts before it.
    public var metrics: TransferMetrics {
        get { sharedMetrics.value }
        set { sharedMetrics = Shared(newValue) }
    }

    private var sharedMetrics: Shared<TransferMetrics>

    /// Creates a response.
    public init(_ value: Value, head: ResponseHead, ending: ResponseEnding = ResponseEnding()) {
        self.value = value
        self.head = head
        trailers = ending.trailers
        sharedMetrics = ending.sharedMetrics
        if head.retries != RetryHistory() { metrics.retries = head.retries }
    }

    /// The status code.
    public var statusCode: Int { head.status.code }
    /// The header fields.
    public var headers: HTTPFields { head.headers }
    /// The redirects that led here, in their order.
    public var redirects: [ResponseHead] { head.redirects }

    /// The same response with another value.
    public func map<Other: Sendable, Failure: Error>(
        _ transform: (Value) throws(Failure) -> Other
    ) throws(Failure) -> Response<Other> {
        Response<Other>(
            try transform(value), head: head, ending: ResponseEnding(trailers: trailers, metrics: sharedMetrics))
    }
}
