// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes
import Synchronization

/// A request and its response, with the state shared by the loop and the reading task.
///
/// The methods under "The loop's side" are called on the loop's thread, the others by the task that performs the
/// request; ``cancel()`` can be called from any thread.
final class Exchange: Sendable {
    let request: Request
    let sharedOptions: SharedTransferOptions
    let delivery: BodyDelivery
    let events: (any ExchangeEventSink)?
    let upload: Upload
    /// Whether a body is sent, possibly an empty one: methods defined to carry content declare a length of 0. See RFC
    /// 9110 §8.6.
    let sendsBody: Bool
    /// Whether a length of 0 is declared by the header field alone, because libcurl would send the request as one that
    /// obtains a challenge.
    let declaresEmptyBody: Bool
    /// Whether the URL's scheme is `https`.
    let isSecure: Bool
    /// Whether there may be a proxy for the URL.
    let mayUseProxy: Bool
    /// How the request is sent through an HTTP proxy; `nil` without one.
    private let proxyUse: ProxyUse?
    /// How cookies are sent and stored.
    let cookies: CookieHandling
    /// The authentication that libcurl performs; `nil` if it performs none.
    let authentication: TransportAuthentication?
    /// Whether responses may be challenges to which libcurl responds.
    let answersChallenges: Bool
    /// Whether the connection is neither shared with other exchanges nor used again; see ``HTTP2Sharing``.
    let needsOwnConnection: Bool
    /// Whether the end of the response waits for the rest of a request's body that has an end.
    let awaitsRequest: Bool
    /// Whether the exchange may go on for long.
    let isLongLived: Bool
    /// The security settings with which the server is verified, or the resolver if only the resolver is reached over
    /// TLS.
    let security: ConnectionSecurity?
    let group: EngineGroup
    /// The state of the WebSocket connection that the exchange becomes; `nil` for any other exchange.
    let webSocket: WebSocketChannel?
    private let isCancelled = Atomic(false)
    let state: Lock<State>

    init(
        _ request: consuming Request, delivery: BodyDelivery, events: (any ExchangeEventSink)?, upload: Upload,
        group: EngineGroup
    ) throws(TransportError) {
        let context = group.context
        sharedOptions = (request.sharedOptions ?? context.defaultOptions).withoutReplacedCredential(for: request)
        self.delivery = delivery
        self.events = events
        self.upload = upload
        isSecure = request.url.isHTTPS
        mayUseProxy =
            sharedOptions.value.connection.unixSocketPath == nil
            && sharedOptions.value.proxy.mayBeUsed(for: request.url)
        proxyUse = mayUseProxy ? sharedOptions.value.proxyUse(for: request) : nil
        cookies = CookieHandling(request, sharedOptions.value, context.defects)
        authentication = request.transportAuthentication
        let hasBody =
            if case .none = upload {
                request.method == .post || request.method == .put || request.method == .patch
            } else {
                true
            }
        let mayBeProbed =
            authentication?.server?.scheme.isProbed == true || authentication?.proxy?.scheme.isProbed == true
            || sharedOptions.value.answersProxyChallenges
        declaresEmptyBody = hasBody && mayBeProbed && upload.length == 0
        sendsBody = hasBody && !declaresEmptyBody
        try authentication?.checkCapabilities()
        webSocket = request.webSocketOptions.map { WebSocketChannel($0, memory: context.memory) }
        awaitsRequest = delivery != .streamed || sendsBody && request.endsWithResponse
        isLongLived = webSocket != nil || request.mayGoOnForLong
        guard webSocket == nil || authentication?.server == nil && authentication?.signature == nil else {
            throw TransportError(
                .invalidRequest(.option("a WebSocket connection authenticates by header fields only, such as Basic.")))
        }
        answersChallenges =
            authentication?.answersChallenges == true || sharedOptions.value.answersProxyChallenges
        // The connection of a WebSocket is its own in any case, and must outlive libcurl's transfer.
        needsOwnConnection =
            webSocket == nil
            && (authentication?.needsOwnConnection == true
                || proxyUse?.needsOwnConnection == true
                || !isSecure && sharedOptions.value.httpVersion == .http2PriorKnowledge
                    && context.http2 != .multiplexed)
        if isSecure {
            security = try context.securities.security(sharedOptions, for: request.url)
        } else if let resolver = sharedOptions.value.connection.dnsOverHTTPS {
            security = try context.securities.plain(sharedOptions, for: resolver)
        } else {
            security = nil
        }
        self.group = group
        self.request = request
        let reading: ExchangeStateMachine<Waiter>.Reading =
            switch delivery {
            case .collected(let limit): .collecting(limit: limit)
            case .streamed: .streaming(capacity: sharedOptions.value.streamBufferSize)
            }
        state = Lock(State(machine: ExchangeStateMachine(reading: reading)))
        try checkHTTP3()
    }

    /// The session's budget, if the body waits for its reader in chunks; otherwise `nil`.
    var memory: MemoryBudget? { delivery == .streamed ? context.memory : nil }

    /// Whether a connection over TLS may be made: to the server, a resolver or a proxy.
    var mayUseTLS: Bool { isSecure || usesResolver || mayUseProxy }

    /// The settings and the state common to the event loops.
    var context: EngineContext { group.context }

    /// The transfer options.
    var options: TransferOptions { sharedOptions.value }

    /// Whether connections of other exchanges may be used.
    var sharing: ConnectionSharing {
        guard webSocket == nil, !needsOwnConnection else { return .none }
        let mayMultiplex =
            switch version {
            case .automatic, .http2: isSecure && context.http2 == .multiplexed
            case .http2PriorKnowledge: context.http2 == .multiplexed
            case .http3, .http3Only: true
            case .http1: false
            }
        return mayMultiplex ? .multiplexed : .successive
    }

    /// Whether the exchange is performed on the first loop, which alone has the schedule of limited speeds, and libcurl's
    /// count of the connections to a proxy that forwards requests of several origins.
    var isOnFirstLoop: Bool { !options.speedLimits.isEmpty || isForwarded }

    /// The engine of the exchange, and its share of the limits.
    var place: Dispatcher.Place {
        get { state.withLock { $0.place } }
        set { state.withLock { $0.place = newValue } }
    }

    /// Its share of the limits; `nil` before it is started.
    var admission: Dispatcher.Admission? {
        get { state.withLock { $0.place.admission } }
        set { state.withLock { $0.place.admission = newValue } }
    }

    /// The parties whose challenges libcurl obtains by requests without the body.
    ///
    /// It does so if a party has exactly one scheme, other than Basic and Negotiate, for which it has the first answer
    /// without a challenge; for a proxy, only if the proxy forwards the request.
    var probes: Probes {
        guard sendsBody else { return [] }
        var probes: Probes = []
        if let scheme = authentication?.server?.scheme, scheme.isProbed { probes.insert(.server) }
        if let scheme = proxyScheme, scheme.isProbed, isForwarded { probes.insert(.proxy) }
        return probes
    }

    /// Whether names are looked up by DNS over HTTPS.
    var usesResolver: Bool { options.connection.dnsOverHTTPS != nil }

    /// Whether a proxy forwards the request.
    var isForwarded: Bool { proxyUse?.isTunnel == false }

    /// The credential with which a proxy opens a tunnel to the server; `nil` without one.
    var tunnelCredential: Credential? {
        guard let proxyUse, proxyUse.isTunnel else { return nil }
        return authentication?.proxy?.credential ?? proxyUse.proxy.credential
    }

    /// The values of the request's own `Proxy-Authorization` fields with which a proxy opens a tunnel to the server.
    var tunnelFields: [String] { proxyUse?.isTunnel == true ? request.headers[values: .proxyAuthorization] : [] }

    /// The scheme for the proxy; `nil` if there are several, or none.
    private var proxyScheme: AuthenticationScheme? {
        if let scheme = authentication?.proxy?.scheme { return scheme }
        guard case .proxy(let proxy) = options.proxy, let schemes = proxy.credential?.schemes else { return nil }
        return schemes.count == 1 ? schemes.first : nil
    }

    // MARK: The reader's side

    /// Starts the task that reads the request's body from its source; ``close()`` ends it.
    ///
    /// It has the executor preference of the calling task, as a child task would.
    func startPump(_ pump: BodyPump) {
        let task = Task(executorPreference: currentTaskExecutor) { [weak self] in
            await pump.run { [weak self] in
                if let self { post(.resumeSending(self)) }
            } cancel: { [weak self] in
                self?.cancel()
            }
        }
        state.set(\.pump, to: task)
    }

    /// Starts the exchange and waits for its head, or for the whole response if the delivery is collected; of a long one
    /// that may be discarded, for the beginning. If this throws, the exchange is closed.
    func start() async throws -> ResponseHead {
        await wait(for: delivery == .streamed ? .head : .response) { group.start(self) }
        do {
            return try state.withLock { state throws in
                if let head = state.head, state.failure == nil || delivery == .streamed { return head }
                // The failure of a body that may be discarded belongs to reading it, unless the call itself ends.
                if let head = state.head, head.mayBeDiscarded, let failure = state.failure as? TransportError,
                    failure.reason != .shutDown
                {
                    return head
                }
                throw state.failure ?? Self.endWithoutHead
            }
        } catch {
            await close()
            throw error
        }
    }

    /// Returns the response with the head that ``start()`` has returned.
    @inline(never)
    func response(_ head: ResponseHead) -> OpenResponse {
        var head = head
        if let webSocket, head.status.code == 101 {
            head.webSocket = UpgradedExchange(exchange: self, channel: webSocket)
        }
        return OpenResponse(head: head, body: ResponseBody(source: self))
    }

    /// Requests that the loop end the exchange. Callable from any thread, at any time, any number of times.
    ///
    /// The flag is set before the message is posted. If the loop handles this message before the one that adds the
    /// exchange, it finds the flag set when it adds the exchange.
    func cancel() {
        isCancelled.store(true, ordering: .releasing)
        post(.end(self, because: CancellationError()))
    }

    /// Posts a message to the engine that knows of the exchange, if it was started. Callable from any thread.
    func post(_ message: CurlEngine.Message) {
        state.withLock { $0.place.engine }?.post(message)
    }

    /// Cancels the exchange if it is incomplete, and returns once the loop and the pump no longer use it.
    func close() async {
        let (action, pump) = state.withLock { state in
            (state.buffer, state.share) = (BodyBuffer(), nil)
            return (state.machine.close(), state.pump)
        }
        action.strayReader?.wake()
        if action.mustCancel {
            await Waiter.suspend { waiter in
                state.withLock { $0.machine.waitForEnd(waiter) }?.wake()
                cancel()
            }
        }
        guard let pump else { return }
        // It may be waiting for its source.
        pump.cancel()
        await pump.value
    }

    func wait(
        for interest: ExchangeStateMachine<Waiter>.Interest, then start: () -> Void = {}
    ) async {
        await Waiter.suspend { waiter in
            let satisfied = state.withLock { state in
                state.machine.wait(for: interest, waiter, buffered: state.buffer.count)
            }
            satisfied?.wake()
            start()
        }
    }

    private static let endWithoutHead = TransportError(
        .internalInconsistency("The exchange ended with neither a head nor an error."))

    // MARK: The loop's side

    /// Moves the exchange to another engine, which receives no message about it before this one that adds it.
    func move(to engine: CurlEngine, entered: MonotonicInstant) {
        state.withLock { state in
            state.place.engine = engine
            state.place.entered = entered
            engine.post(.add(self))
        }
    }

    var wasCancelled: Bool { isCancelled.load(ordering: .acquiring) }

    /// The end of a body that may be discarded is awaited up to this number of bytes, and for this time. Receiving it
    /// saves the connection.
    static let patience = 64 << 10
    static let patienceTime = Duration.milliseconds(100)

    func receive(_ head: ResponseHead, length: Int64?, from address: SocketAddress?) {
        let isLong = length.map { $0 > Self.patience } ?? false
        let patience = head.mayBeDiscarded ? isLong ? -1 : Self.patience : nil
        let hasBody = request.method != .head && head.status.code != 204 && head.status.code != 304
        let isEncoded = options.decodesContent && hasBody && head.isDecodable
        state.withLock { state in
            state.head = head
            state.address = address
            // The channel of a WebSocket connection has its own.
            if let memory, webSocket == nil { state.share = MemoryShare(of: memory) }
            if isEncoded { state.decoding = .undecided(head.headers[values: .contentEncoding]) }
            state.machine.receiveHead(patience: patience)
        }
    }

    /// Hands a response that may be discarded over to the reader although it is not complete.
    func handOver() {
        state.withLock { state in
            state.machine.endPatience()
            return state.machine.flush(buffered: state.buffer.count)
        }?.wake()
    }

    /// Receives bytes of the body; the result says whether they were accepted.
    func receive(
        _ bytes: UnsafeRawBufferPointer, regardlessOfCapacity: Bool = false
    ) -> ExchangeStateMachine<Waiter>.BytesAction {
        state.withLock { state in
            let (share, count) = (state.share, state.buffer.count)
            let action = state.machine.receiveBytes(
                bytes.count, buffered: count, regardlessOfCapacity: regardlessOfCapacity,
                mayGrow: share?.mayHold(count + bytes.count) ?? true)
            if action == .take {
                unsafe state.buffer.append(bytes)
                share?.hold(state.buffer.count)
            }
            return action
        }
    }

    /// Reserves memory for a body of known size, so that the buffer is allocated once.
    func reserve(_ count: Int) {
        state.withLock { $0.buffer.reserve(count, from: context.bodyMemory) }
    }

    /// Resumes the reader if the event that it waits for has occurred.
    func flush() {
        state.withLock { $0.machine.flush(buffered: $0.buffer.count) }?.wake()
    }

    /// Lets the reader receive the end of the response, while the request's body is still being sent.
    func endResponse(_ ending: ResponseEnding) {
        state.withLock { state in
            state.ending = ending
            state.machine.endResponse()
        }
    }

    func end(_ result: Result<ResponseEnding, any Error>) {
        let action = state.withLock { state in
            switch result {
            case .success(let ending): state.ending = state.ending ?? ending
            // What becomes of the request's body after the response does not change the response.
            case .failure(let error): state.failure = state.ending == nil ? error : nil
            }
            return state.machine.end()
        }
        action.reader?.wake()
        for closer in action.closers { closer.wake() }
    }

    struct State {
        var machine: ExchangeStateMachine<Waiter>
        var head: ResponseHead?
        var buffer = BodyBuffer()
        /// The share of the buffer in the session's budget; `nil` without one, and for a body that is collected.
        var share: MemoryShare?
        var ending: ResponseEnding?
        var failure: (any Error)?
        var isEndRead = false
        /// The address from which the response was received.
        var address: SocketAddress?
        var decoding = Decoding.none
        var place = Dispatcher.Place()
        /// Reads the request's body from its source; `nil` if the body is in memory.
        var pump: Task<Void, Never>?

        mutating func takeChunk() throws -> Chunk {
            try checkReader()
            if !buffer.isEmpty {
                share?.hold(0)
                return .bytes(buffer.take(), mustResume: machine.resume())
            }
            guard machine.isResponseOver else { return .notYet }
            share = nil
            if let failure { throw failure }
            // The end of an encoded body may still prove to be premature.
            if case .none = decoding { isEndRead = true }
            return .end
        }

        /// Returns the whole body once it is complete; `nil` before that.
        mutating func takeAll(limit: Int, of url: URL) throws -> Data? {
            try checkReader()
            if let failure { throw failure }
            guard buffer.count <= limit else {
                var context = FailureContext(url)
                context.address = address
                throw TransportError(.responseTooLarge(.body(limit: limit)), context: context)
            }
            guard machine.isResponseOver else { return nil }
            isEndRead = true
            return buffer.take()
        }

        private func checkReader() throws {
            guard !machine.isAbandoned else { throw CancellationError() }
            guard !machine.hasWaiter else { throw Exchange.secondReader }
        }
    }

    /// The content decoding applied to the body.
    enum Decoding {
        case none
        /// The body has these values of `Content-Encoding`, and its decoder has not been created yet.
        case undecided([String])
        case by(ContentDecoder)
    }

    enum Chunk {
        case bytes(Data, mustResume: Bool)
        case end
        case notYet
    }

    private static let secondReader = TransportError(
        .internalInconsistency("A response body has one reader at a time."))
}
