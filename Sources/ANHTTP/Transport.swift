// SPDX-License-Identifier: MIT

/// A type that performs single HTTP exchanges.
///
/// A transport does not follow redirects, cache responses, or repeat requests that the server may have processed. The
/// engine based on libcurl conforms to this protocol, and so does the mock for tests.
public protocol Transport: Sendable {
    /// Performs one exchange, and calls `body` with the response as soon as its head has arrived.
    ///
    /// The exchange ends with the call: what `body` has not read is discarded, and after this method returns or throws,
    /// no part of the exchange is running. Cancelling the task cancels the exchange.
    ///
    /// A module without the upcoming feature `NonisolatedNonsendingByDefault` must declare the type of `body` exactly
    /// as here, with `nonisolated(nonsending)`.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - delivery: Whether the body will be collected or streamed; a transport may use this to save work.
    ///   - events: Receives the events of the exchange; `nil` for none. It is called on the transport's own thread and
    ///     must return immediately.
    ///   - body: Receives the head and the body, which is valid only during the call.
    /// - Throws: ``TransportError``, `CancellationError`, or the error thrown by `body`.
    func perform(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: nonisolated(nonsending) (ResponseHead, ResponseBody) async throws -> Void
    ) async throws

    /// Ends all exchanges with ``TransportError/Reason/shutDown`` and closes all connections; later exchanges fail with
    /// the same error.
    func shutdown() async

    /// The schemes by which the transport authenticates, given a credential; all schemes by default. A challenge by
    /// another scheme is not answered.
    var authenticationSchemes: Set<AuthenticationScheme> { get }
}

extension Transport {
    /// All schemes, the default of the requirement.
    public var authenticationSchemes: Set<AuthenticationScheme> { Set(AuthenticationScheme.allCases) }

    /// Performs one exchange and returns a value made from the response.
    ///
    /// The exchange ends with the call: what `makeValue` has not read is discarded. Cancelling the task cancels the
    /// exchange.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - delivery: Whether the body will be collected or streamed.
    ///   - events: Receives the events of the exchange on the transport's own thread, and must return immediately;
    ///     `nil`, the default, for none.
    ///   - makeValue: Receives the head and the body, which is valid only during the call, and returns the value.
    /// - Returns: The value that `makeValue` returns.
    /// - Throws: ``TransportError``, `CancellationError`, or the error thrown by `makeValue`. The reason is
    ///   ``TransportError/Reason/internalInconsistency(_:)`` if the transport returns without calling `makeValue`.
    @inlinable
    public func perform<Value>(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)? = nil,
        returning makeValue: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        var value: Value?
        try await perform(
            request, delivery: delivery, reporting: events,
            body: { head, body in value = try await makeValue(head, body) })
        guard let value else {
            throw TransportError(.internalInconsistency("The transport did not call the body closure."))
        }
        return value
    }
}

/// The way in which a response body will be read.
public enum BodyDelivery: Hashable, Sendable {
    /// As a whole, once it is complete. A body of more than the given number of bytes, counted before decompression,
    /// fails with ``TransportError/Reason/responseTooLarge(_:)``.
    case collected(upTo: Int)
    /// In chunks, as they arrive, with backpressure.
    case streamed
}

/// A receiver of the events of an exchange, for metrics, progress and logs.
public protocol TransferEventSink: Sendable {
    /// Handles an event, in the order in which events occur. It is called on the transport's own thread, and must not
    /// block.
    func receive(_ event: TransferEvent)
}

/// An event during an exchange.
///
/// A transport reports interim responses, then the head, then the progress of the body, and finally ``finished(_:)``;
/// the progress of the upload may occur at any time before that.
@nonexhaustive
public enum TransferEvent: Sendable {
    /// The exchange begins with the given request; sent by a session, not by a transport.
    case started(Request)
    /// An interim response, status 100 to 199, such as `103 Early Hints` (RFC 8297).
    case informational(ResponseHead)
    /// The head of the final response.
    case head(ResponseHead)
    /// Bytes of the request body were sent; reported at intervals and at the end.
    case uploadProgress(TransferProgress)
    /// Bytes of the response body were received; reported at intervals and at the end.
    case downloadProgress(TransferProgress)
    /// The exchange ended, successfully or not, with the given metrics; the last event.
    indirect case finished(TransferMetrics)
}
