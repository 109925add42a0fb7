// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// A transport based on libcurl, with one event loop thread, or several when there is work for them; see
/// ``ANHTTP/ConnectionLimits/eventLoops``.
///
/// When the last reference to it is released, its connections are closed, even without a call to ``shutdown()``, and
/// its threads end, unless tasks still run on them (``eventLoopExecutor``).
public struct CurlTransport: Transport {
    let group: EngineGroup
    private var context: EngineContext { group.context }
    /// The options of requests that have none of their own.
    var defaultOptions: SharedTransferOptions { context.defaultOptions }

    /// Creates a transport and starts its first thread.
    ///
    /// - Parameters:
    ///   - limits: The limits of the connection pool; the defaults of ``ANHTTP/ConnectionLimits`` if omitted.
    ///   - options: The options of requests that have none of their own; the defaults of ``ANHTTP/TransferOptions`` if
    ///     omitted.
    /// - Throws: ``ANHTTP/TransportError/Reason/internalInconsistency(_:)`` if the system cannot provide a thread or a
    ///   descriptor, or libcurl cannot be initialized.
    public init(limits: ConnectionLimits = ConnectionLimits(), options: TransferOptions = TransferOptions())
        throws(TransportError)
    {
        try self.init(limits: limits, options: options, http2: nil)
    }

    /// Creates a transport whose HTTP/2 connections are used as given, whatever the linked libcurl permits.
    package init(
        limits: ConnectionLimits = ConnectionLimits(), options: TransferOptions = TransferOptions(),
        http2: HTTP2Sharing?
    ) throws(TransportError) {
        let library = try CurlLibrary.current.get()
        group = try EngineGroup(EngineContext(limits, options, http2 ?? library.http2, library))
    }

    /// Sends a request, and returns its response: as soon as the head has arrived if the body is streamed, and when the
    /// body is complete if it is collected; see ``ANHTTP/BodyDelivery/collected(upTo:)`` for statuses from 300 on. Cancelling the task cancels the exchange.
    ///
    /// - Parameters:
    ///   - request: The request to send, with the transport's options if it has none of its own. Changes by
    ///     `Request.changeOptions(_:)` have no effect without a session.
    ///   - delivery: Whether the body will be collected or streamed.
    ///   - events: Receives the events of the exchange on the loop's thread, and must return immediately; `nil` for
    ///     none.
    /// - Throws: ``ANHTTP/TransportError`` or `CancellationError`.
    public func open(
        _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
    ) async throws -> OpenResponse {
        if let credential = Self.digestCredential(of: request) {
            return try await openAnswering(request, with: credential, delivery, events)
        }
        let (exchange, head) = try await perform(request, delivery, events)
        return exchange.response(head)
    }

    /// The credential with which a challenge by Digest is answered.
    @inline(never)
    private static func digestCredential(of request: Request) -> Credential? {
        guard let answer = request.transportAuthentication?.server, answer.scheme == .digest,
            request.webSocketOptions == nil
        else { return nil }
        return answer.credential
    }

    /// Whether the request will be signed.
    @inline(never)
    private static func isSigned(_ request: Request) -> Bool { request.transportAuthentication?.signature != nil }

    /// Starts an exchange, and waits for its head, or for the response if the body is collected.
    func perform(
        _ request: Request, _ delivery: BodyDelivery, _ events: (any ExchangeEventSink)?
    ) async throws -> (Exchange, ResponseHead) {
        let exchange =
            if Self.isSigned(request) {
                try await makeSignedExchange(request, delivery, events)
            } else {
                try makeExchange(request, delivery, events)
            }
        let head = try await withTaskCancellationHandler {
            try await exchange.start()
        } onCancel: {
            exchange.cancel()
        }
        return (exchange, head)
    }

    /// Returns the exchange for a request. If its body has to be read from a source, a pump begins to wait for demand.
    @inline(never)
    private func makeExchange(
        _ request: Request, _ delivery: BodyDelivery, _ events: (any ExchangeEventSink)?
    ) throws(TransportError) -> Exchange {
        try request.validate()
        return try makeExchange(of: request, delivery, events)
    }

    /// Returns the exchange for a request that will be signed, which takes as long as its file is hashed.
    @inline(never)
    private func makeSignedExchange(
        _ request: Request, _ delivery: BodyDelivery, _ events: (any ExchangeEventSink)?
    ) async throws -> Exchange {
        guard let signature = request.transportAuthentication?.signature else {
            return try makeExchange(request, delivery, events)
        }
        try request.validate()
        let start = MonotonicInstant.now
        let total = (request.sharedOptions ?? defaultOptions).value.timeouts.total
        var prepared = try await request.prepared(for: signature) { [dispatcher = context.dispatcher] in
            guard dispatcher.accepts(request) else { throw TransportError(.shutDown) }
            if let total, start.duration(to: .now) >= total {
                var context = FailureContext(request.url)
                context.precedesSending = true
                throw TransportError.timedOut(.request, total, context)
            }
        }
        if case .file = request.body.content {
            prepared.shortenTotal(by: start.duration(to: .now), of: request, from: defaultOptions)
        }
        return try makeExchange(of: prepared, delivery, events)
    }

    private func makeExchange(
        of request: consuming Request, _ delivery: BodyDelivery, _ events: (any ExchangeEventSink)?
    ) throws(TransportError) -> Exchange {
        request.url = request.url.withoutDotSegments
        let pump = try BodyPump(for: request, memory: context.memory)
        let upload: Upload =
            switch (pump, request.body.content) {
            case (let pump?, _): .channel(pump.channel)
            case (nil, .bytes(let data)): .bytes(data)
            default: .none
            }
        let exchange = try Exchange(request, delivery: delivery, events: events, upload: upload, group: group)
        if let pump { exchange.startPump(pump) }
        return exchange
    }

    /// The schemes that this libcurl supports: Basic and Digest, and, depending on its build, NTLM and Negotiate. Empty
    /// if libcurl cannot be initialized.
    public var authenticationSchemes: Set<AuthenticationScheme> {
        (try? CurlLibrary.current.get().authenticationSchemes) ?? []
    }

    /// The executor that runs tasks on the event loop's thread; never `nil`.
    ///
    /// A task that prefers it, as by `Task(executorPreference:)`, must not block, because all exchanges would wait for
    /// it. The thread ends only when no task prefers it any more.
    public var eventLoopExecutor: (any TaskExecutor)? { group.engine(context.dispatcher.idlestLoop).taskExecutor }

    /// The number of event loops that were started.
    package var loopCount: Int { context.dispatcher.loopCount }

    /// The budget for the bytes that wait for slow readers and slow servers; `nil` for none.
    package var memory: MemoryBudget? { context.memory }

    /// The cookies of all exchanges, which remain available after ``shutdown()``; proxies, alternative services and the
    /// list of connections.
    public var features: TransportFeatures {
        var features = TransportFeatures()
        features.cookies = group
        features.usesAlternativeRoutes = CurlLibrary.usesAlternativeRoutes
        features.usesProxy = { [context] request in
            // Its own proxy, or one that the environment names for the URL. Behind a tunnel, or a proxy of SOCKS, the
            // server answers.
            let options = request.sharedOptions ?? context.defaultOptions
            return options.value.proxyUse(for: request)?.isTunnel == false
        }
        features.reachesHost = { [context] request in
            (request.sharedOptions ?? context.defaultOptions).value.reachesHost(of: request.url)
        }
        features.asciiName = { $0.ascii }
        features.answersDigest = { DigestAnswer.isPossible($0) }
        features.endExchanges = { [group] in await group.endExchanges() }
        features.snapshot = { [group] in await group.snapshot() }
        return features
    }

    /// Ends all exchanges with ``ANHTTP/TransportError/Reason/shutDown`` and closes all connections; later exchanges
    /// fail with the same error. The connections are closed when this function returns, while exchanges may end later.
    /// Calls after the first one have no effect.
    public func shutdown() async {
        await group.shutdown()
    }
}
