// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials

/// The transport on libcurl: one loop thread, one connection pool.
///
/// It is freed with its last reference: its thread ends and its connections close, without a call to ``shutdown()``.
public struct CurlTransport: Transport {
    private let engine: CurlEngine

    /// Creates a transport and starts its thread.
    ///
    /// - Parameters:
    ///   - pool: The limits of the connection pool.
    ///   - options: What requests without options of their own have.
    /// - Throws: ``ANHTTP/TransportError/internalInconsistency(_:_:)`` when the system has no thread or descriptor left.
    public init(pool: ConnectionLimits = ConnectionLimits(), options: TransferOptions = TransferOptions())
        throws(TransportError)
    {
        engine = try CurlEngine(pool: pool, defaultOptions: options)
    }

    /// Performs one exchange; see ``ANHTTP/Transport``.
    public func perform(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        try request.validate()
        let request = try request.preparedToSign()
        guard let pump = try BodyPump(for: request) else {
            let upload: Upload = if case .bytes(let data) = request.body.content { .bytes(data) } else { .none }
            let exchange = try Exchange(
                request, delivery: delivery, events: events, upload: upload, engine: engine)
            return try await perform(exchange, body: body)
        }
        let exchange = try Exchange(
            request, delivery: delivery, events: events, upload: .channel(pump.channel), engine: engine)
        // When the exchange is over, leaving this scope cancels the pump, which may be waiting for its source, and waits
        // for it.
        async let _ = pump.run { [engine] in engine.post(.resumeSending(exchange)) }
        return try await perform(exchange, body: body)
    }

    /// Runs the scope of one exchange: whatever happens, the loop has let go of it at the end.
    private func perform(
        _ exchange: Exchange, body: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        try await withTaskCancellationHandler {
            let head = try await exchange.start()
            do {
                try await body(head, ResponseBody(source: exchange))
                await exchange.close()
            } catch {
                await exchange.close()
                throw error
            }
        } onCancel: {
            exchange.cancel()
        }
    }

    /// The cookies of all exchanges; they stay when the transport is shut down.
    public var cookieJar: (any CookieJar)? { engine }

    /// Ends all exchanges with ``ANHTTP/TransportError/shutDown`` and closes all connections.
    public func shutdown() async {
        await engine.shutdown()
    }
}

extension Request {
    /// Checks what libcurl would not, or would say less clearly.
    func validate() throws(TransportError) {
        guard let scheme = url.scheme, scheme.isHTTP || scheme.isHTTPS else {
            throw .invalidRequest(.scheme(url.scheme ?? ""))
        }
        guard let host = url.host(), !host.isEmpty else {
            throw .invalidRequest(.url(url.redactedDescription))
        }
    }
}

extension String {
    /// Whether this scheme is http; schemes know no case (RFC 3986 §3.1).
    var isHTTP: Bool { self == "http" || lowercased() == "http" }

    /// Whether this scheme is https.
    var isHTTPS: Bool { self == "https" || self != "http" && lowercased() == "https" }
}
