// SPDX-License-Identifier: MIT

/// The port through which requests leave: one exchange with a server, and nothing above it.
///
/// A transport follows no redirects, repeats nothing that the server may have seen, and caches nothing. The engine on
/// libcurl is one; a mock for tests is another.
public protocol Transport: Sendable {
    /// Performs one exchange and runs `body` with the response as soon as its head has arrived.
    ///
    /// The exchange ends with the scope: what `body` did not read is given up, and when this returns or throws, nothing of
    /// the exchange is running any more. Cancelling the task cancels the exchange.
    ///
    /// A module without the upcoming feature `NonisolatedNonsendingByDefault` must write the type of `body` as it is here, with
    /// `nonisolated(nonsending)`.
    ///
    /// - Parameters:
    ///   - request: What is sent.
    ///   - delivery: Whether the body will be collected or streamed; a transport may use it to save work.
    ///   - events: Told what happens; called on the transport's own thread, so it must return at once.
    ///   - body: Lent the response's body while it runs.
    /// - Throws: ``TransportError``, `CancellationError`, or what `body` throws.
    func perform(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: nonisolated(nonsending) (ResponseHead, ResponseBody) async throws -> Void
    ) async throws

    /// Ends all exchanges with ``TransportError/shutDown`` and closes all connections.
    func shutdown() async

    /// Where the transport keeps cookies; nil, the default, for one that neither keeps nor sends any.
    var cookieJar: (any CookieJar)? { get }
}

extension Transport {
    /// Performs one exchange and returns what `makeValue` makes of the response.
    ///
    /// It is generic here and not in the protocol, where every exchange would pay for code that does not know its types. Its
    /// label differs from that of the requirement, which it would otherwise satisfy, by calling itself.
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
            throw TransportError.internalInconsistency("The transport did not run the scope.", TransferFacts())
        }
        return value
    }
}

/// How the body of a response will be read.
public enum BodyDelivery: Hashable, Sendable {
    /// As a whole, with the head; at most so many bytes.
    case collected(upTo: Int)
    /// Chunk by chunk, as it arrives.
    case streamed
}

/// Receives the events of one exchange.
public protocol TransferEventSink: Sendable {
    /// Takes note of an event, without blocking.
    func receive(_ event: TransferEvent)
}

/// Something that happened during an exchange.
@nonexhaustive
public enum TransferEvent: Sendable {
    /// The exchange begins, with this request. A session tells it, not the transport.
    case started(Request)
    /// An interim response, 100 to 199, such as `103 Early Hints` (RFC 8297).
    case informational(ResponseHead)
    /// The head of the response.
    case head(ResponseHead)
    /// Body bytes were sent.
    case uploadProgress(TransferProgress)
    /// Body bytes were received.
    case downloadProgress(TransferProgress)
    /// The exchange ended, well or not.
    indirect case finished(TransferMetrics)
}
