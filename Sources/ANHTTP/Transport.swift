// SPDX-License-Identifier: MIT

/// A type that performs single HTTP exchanges.
///
/// A transport does not follow redirects, cache responses, or retry failed attempts. It repeats a request only if a
/// reused connection was lost, or an alternative service failed, before the response, provided that the method is
/// idempotent (RFC 9110 §9.2.2) and the body replayable; or if the server states that it has not processed the request.
/// See ``TransferMetrics/sendCount``. The engine based on libcurl conforms to this protocol, and so does the mock for
/// tests.
public protocol Transport: Sendable {
    /// Performs one exchange, and calls `body` once with the response.
    ///
    /// If the delivery is ``BodyDelivery/streamed``, `body` is called as soon as the head has arrived; otherwise a
    /// transport may wait for the complete body, as those of this package do. A failure before the call of `body` is
    /// thrown by this method, and a later one by the functions that read the body.
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
    ///   - events: Receives the events of the exchange; `nil` for none. It is called on the transport's own thread or
    ///     by the calling task, and must return immediately.
    ///   - body: Receives the head and the body, which is valid only during the call.
    /// - Throws: ``TransportError``, `CancellationError`, or the error thrown by `body`.
    func perform(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: nonisolated(nonsending) (ResponseHead, ResponseBody) async throws -> Void
    ) async throws

    /// Ends all exchanges with ``TransportError/Reason/shutDown`` and closes all connections; later exchanges fail with
    /// the same error. Calls after the first one have no effect. The calls of `perform` may return later.
    func shutdown() async

    /// The schemes by which the transport authenticates, given a credential; all schemes by default. A session does not
    /// answer a challenge by another scheme.
    var authenticationSchemes: Set<AuthenticationScheme> { get }

    /// The executor that runs tasks on the thread of the transport's event loop; `nil`, the default, if it has none. A
    /// task that prefers it, as by `Task(executorPreference:)`, must not block, because all exchanges would wait for
    /// it.
    var eventLoopExecutor: (any TaskExecutor)? { get }
}

extension Transport {
    /// All authentication schemes, the default for transports that do not declare their own.
    public var authenticationSchemes: Set<AuthenticationScheme> { Set(AuthenticationScheme.allCases) }

    /// `nil`, the default for transports that provide no executor of an event loop.
    public var eventLoopExecutor: (any TaskExecutor)? { nil }

    /// Performs one exchange and returns a value made from the response.
    ///
    /// If the delivery is ``BodyDelivery/streamed``, `makeValue` is called as soon as the head has arrived; otherwise
    /// the transport may wait for the complete body. The exchange ends with the call: what `makeValue` has not read is
    /// discarded. Cancelling the task cancels the exchange.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - delivery: Whether the body will be collected or streamed.
    ///   - events: Receives the events of the exchange on the transport's own thread or by the calling task, and must
    ///     return immediately; `nil`, the default, for none.
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
    /// fails with ``TransportError/Reason/responseTooLarge(_:)``. A limit of 0 or less permits only an empty body.
    /// There is no backpressure.
    case collected(upTo: Int)
    /// In chunks, as they arrive, with backpressure: see ``TransferOptions/streamBufferSize``.
    case streamed
}

/// A receiver of the events of an exchange, for metrics, progress and logs.
///
/// A sink that is passed to a session receives the events of all exchanges of a call in turn, such as those of
/// redirects.
public protocol TransferEventSink: Sendable {
    /// Handles an event, in the order in which events occur. It is called on the transport's own thread, or on the task
    /// of the request, as for ``TransferEvent/started(_:)``, and must not block.
    func receive(_ event: TransferEvent)
}

/// An event during an exchange.
///
/// A transport reports interim responses, then the head, then the progress of the body, and finally ``finished(_:)``;
/// the progress of the upload may occur at any time before that. Responses to challenges that the transport answers
/// itself, as for Digest, are not reported.
@nonexhaustive
public enum TransferEvent: Sendable {
    /// The exchange begins with the given request; sent by a session, not by a transport.
    case started(Request)
    /// An interim response, status 100 to 199, such as `103 Early Hints` (RFC 8297). The 101 that opens a WebSocket
    /// connection is reported as ``head(_:)`` instead.
    case informational(ResponseHead)
    /// The head of the final response.
    case head(ResponseHead)
    /// Bytes of the request body were passed on for sending; reported by libcurl's transport at most every 50 ms, and
    /// at the end. A GET without a body has no such event.
    case uploadProgress(TransferProgress)
    /// Bytes of the response body were received, counted before decompression; reported by libcurl's transport at most
    /// every 50 ms, and at the end if the head was received.
    case downloadProgress(TransferProgress)
    /// The exchange ended, successfully or not, with the given metrics; the last event. A request that fails before its
    /// exchange begins, for example because of an invalid URL, may have no such event.
    indirect case finished(TransferMetrics)
}
