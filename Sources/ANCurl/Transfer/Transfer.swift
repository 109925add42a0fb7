// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import FoundationEssentials
import HTTPTypes

/// An exchange in progress in libcurl, with an easy handle that is created for this exchange and freed with it.
///
/// A reused easy handle keeps state that no option resets: a 417, the latest `errno`, the answers to challenges. Two
/// kinds of it corrupt memory: a header line that begins with whitespace, received first on a reused handle, is a use
/// after free (curl issue 11101, fixed in 8.1), and a second request with trailers overruns a buffer (sending bodies
/// was rewritten in 8.7). Creating and freeing a handle takes about 1 µs. Connections, TLS sessions, addresses and
/// cookies outlive it: they belong to the multi handle and to ``HandleShares``.
///
/// Used on the loop's thread only. Accesses to its state are not checked for exclusivity at run time; see
/// ``LoopState``.
final class Transfer: PriorityQueueElement {
    let exchange: Exchange
    let handle: EasyHandle
    let loop: LoopState
    let message = MessageBuffer()
    let headers: HeaderList
    /// The restriction on the addresses that may be connected to; `nil` if all are allowed.
    let addressGuard: AddressGuard?
    /// The scheme, host and port of the URL.
    let origin: String
    /// Whether a connection that speaks HTTP/2 may be used.
    let allowsHTTP2: Bool
    /// The generation of the origin's connections that may be used.
    private(set) var generation = 0
    /// The limits of the speed that apply to the host.
    let speedLimits: [SpeedLimit]

    /// The position in the queue of deadlines. Maintained by ``PriorityQueue``.
    @safe @exclusivity(unchecked) var queueIndex: Int?
    /// Whether the transfer is queued for review at the end of this turn. Maintained by ``LoopState``.
    var isChanged = false
    /// Whether other exchanges were told that the connection carries several. Maintained by ``CurlEngine``.
    var hasNotedMultiplexing = false
    /// The time at which the request is sent again; `nil` if it is not waiting. Maintained by ``CurlEngine``.
    var startTime: MonotonicInstant?
    /// Whether the request waits for the TLS handshake of another one, whose connection it may share.
    private(set) var awaitsHandshakes = false
    /// Whether the exchange has its result, or another transfer repeats its request. Maintained by ``CurlEngine``.
    var isFinished = false
    /// The limit on connecting that libcurl was given; `nil` before.
    var connectLimit: Duration?
    /// The WebSocket connection that the exchange becomes; `nil` until libcurl has made it. Maintained by ``CurlEngine``.
    var connection: WebSocketConnection?

    @safe @exclusivity(unchecked) var state: TransferState

    /// Creates and configures an easy handle for an exchange.
    convenience init(_ exchange: Exchange, loop: LoopState) throws(TransportError) {
        try self.init(exchange, loop: loop, repeating: nil)
    }

    /// Creates a transfer that repeats the request of another one, whose connection was lost or discarded.
    convenience init(repeating other: Transfer) throws(TransportError) {
        try self.init(other.exchange, loop: other.loop, repeating: other)
    }

    private init(_ exchange: Exchange, loop: LoopState, repeating other: Transfer?) throws(TransportError) {
        self.exchange = exchange
        self.loop = loop
        let place = exchange.place
        state = TransferState(exchange, on: loop, entered: place.entered)
        let former = other.flatMap { $0.isGenerationKnown ? $0.generation : nil }
        let needsNewConnection = other?.state.beginAgain(exchange, on: loop, leaving: former) ?? false
        let alternative = other == nil ? state.alternative : nil
        let omitted = other?.state.repeating.omitted ?? []
        speedLimits = try exchange.options.speedLimits.applying(to: exchange.request.url)
        addressGuard = try AddressGuard(exchange.options.connection.addresses)
        let url = exchange.request.url.absoluteString
        origin = place.origin
        do throws(CurlFailure) {
            handle = try EasyHandle()
        } catch {
            throw error.transportError
        }
        let omitsExpectation = other?.state.repeating.omitsExpectation ?? false
        headers = try exchange.headerList(by: alternative, withoutExpectation: omitsExpectation)
        let headSize = headers.textCount + url.utf8.count
        guard headSize <= EasyHandle.maximumHeadSize else {
            throw TransportError(.invalidRequest(.option("The head is larger than 1 MB, which libcurl does not send.")))
        }
        if loop.context.defects.contains(.droppedFields), exchange.webSocket == nil,
            headers.longestLine > CurlDefects.longestLine
        {
            let reason = "A header field is larger than 300 KiB, which this version of libcurl does not send."
            throw TransportError(.invalidRequest(.option(reason)))
        }
        let cookies = try loop.context.shares.field(for: exchange, own: headers.cookies)
        let version = try loop.context.http2.curlNumber(
            of: exchange.version, isSecure: exchange.isSecure, headSize: headSize)
        allowsHTTP2 = version != CCURL_HTTP_VERSION_1_1
        try handle.applyOptions(of: exchange, curlVersion: version)
        do throws(CurlFailure) {
            try handle.applyConstants()
            let bufferSize = ReceiveBuffer(for: exchange.delivery, speedLimits).rawValue
            try handle.set(CURLOPT_BUFFERSIZE, min(bufferSize, exchange.memory?.chunk ?? .max))
            try handle.apply(loop.context.limits)
            if loop.context.defects.contains(.keptLookups),
                loop.context.failedLookups.withLock({ $0.contains(exchange.request.url.authority) })
            {
                try handle.set(CURLOPT_DNS_CACHE_TIMEOUT, 0)
            }
            try loop.context.shares.attach(to: handle, withCookies: exchange.cookies == .libcurl)
            if let cookies { try handle.set(CURLOPT_COOKIE, cookies) }
            if let security = exchange.security {
                try handle.apply(security, exchange.options)
            }
            // A head that does not fit into the buffer, with cookies and credentials, is cut by older versions of libcurl.
            let leastBuffer = max(
                allowsHTTP2 && loop.context.http2 == .exclusive ? 64 << 10 : 16 << 10,
                headSize > 4 << 10 ? headSize + (16 << 10) : 0)
            try handle.apply(exchange, url: url, headers: headers, uploadBufferSize: leastBuffer)
            // Over plain TCP, libcurl would wait for the first response before it opens a second connection, to learn
            // whether the server speaks HTTP/2; over TLS it knows after the handshake.
            if exchange.isSecure, allowsHTTP2, loop.context.http2 == .multiplexed { try awaitHandshakes(true) }
            if let alternative { try handle.apply(alternative, isRacing: exchange.isRacing(alternative)) }
            // The discarded connection may still serve other exchanges, and libcurl would choose it again.
            if needsNewConnection { try handle.set(CURLOPT_FRESH_CONNECT, true) }
            try installCallbacks()
        } catch {
            throw error.transportError
        }
        if let authentication = exchange.authentication { try handle.apply(authentication, of: exchange) }
        try handle.removeCredentials(of: omitted)
        // Last, so that the other transfer keeps its state if this one cannot be created.
        if let other { swap(&state, &other.state) }
    }

    /// Sets whether libcurl lets the request wait for the handshakes of others. See CURLOPT_PIPEWAIT(3).
    func awaitHandshakes(_ awaits: Bool) throws(CurlFailure) {
        try handle.set(CURLOPT_PIPEWAIT, awaits)
        awaitsHandshakes = awaits
    }

    /// Whether libcurl tells connections of different generations apart.
    var isGenerationKnown: Bool { allowsHTTP2 && exchange.isSecure && exchange.security != nil }

    /// The generation of the origin's connections that new requests use.
    private var currentGeneration: Int { allowsHTTP2 ? loop.connections.generation(of: origin) : 0 }

    /// Makes libcurl choose from the connections that new requests use.
    func followGeneration() throws(TransportError) {
        let current = currentGeneration
        guard current != generation, let security = exchange.security else { return }
        do throws(CurlFailure) {
            try handle.setKey(of: security, exchange.options.connection, generation: current)
        } catch {
            throw error.transportError
        }
        generation = current
    }

    /// Whether the request waits for a connection of a generation that new requests do not use.
    var waitsForOldGeneration: Bool {
        isQueued && generation != currentGeneration
    }

    /// Whether the request waits in libcurl for a connection.
    var isQueued: Bool { state.admitted != nil && startTime == nil && state.clock.leftQueue == nil }

    /// When the request stops waiting for the handshakes of others; `nil` if it does not wait for any.
    var handshakeWaitEnd: MonotonicInstant? {
        guard awaitsHandshakes, startTime == nil, let admitted = state.admitted else { return nil }
        return state.clock.handshakeWaitEnd(since: admitted)
    }

    /// Whether the connection can carry other exchanges at the same time.
    var isMultiplexed: Bool {
        guard loop.context.http2 == .multiplexed, !exchange.needsOwnConnection else { return false }
        return state.parser.framing.isMultiplexed || hasNegotiatedMultiplexing
    }

    /// Whether the connection is known to speak HTTP/2 or HTTP/3 before a response says so, and how many streams the server
    /// allows, if its frames are inspected.
    private var hasNegotiatedMultiplexing: Bool {
        guard state.clock.connected != nil else { return false }
        if let monitor = state.connection.monitor, monitor.maximumStreams == nil { return false }
        let isNegotiated = exchange.isSecure && CurlLibrary.usesOpenSSL
        return state.connection.isHTTP3 || state.connection.isHTTP2 && isNegotiated
    }

    /// The time limit that expires first; `nil` if there is none.
    var nextLimit: TransferClock.Limit? {
        guard !isFinished else { return nil }
        if let connection, connection.isOpen {
            return state.clock.earlier(connection.clock.limit(isPaused: connection.channel.isPaused, now: loop.now))
        }
        if let limit = alternativeLimit { return state.clock.earlier(limit) }
        if state.receiving.isOver {
            // The server still takes the bytes that a limit of speed holds back.
            let isOpen = state.receiving.isHandedOn || loop.sending.isWaiting(self)
            return state.clock.earlier(isOpen ? nil : state.clock.limitAfterResponse)
        }
        return state.clock.nextLimit(isWaitingForUs: state.isPaused, now: loop.now)
    }
}

/// The mutable state of a transfer, which is too large to be copied. A transfer that repeats the request of another one
/// takes over its state.
struct TransferState: ~Copyable {
    var parser: HeaderParser
    var sending = TransferSending()
    var receiving = TransferReceiving()
    var connection = TransferConnection()
    var repeating: TransferRepeating
    var clock: TransferClock
    /// The error with which a callback aborted the transfer.
    var failure: (any Error)?
    /// The time at which the transfer was added to libcurl.
    var admitted: MonotonicInstant?
    /// The alternative service that the request uses; `nil` if it uses none, or none any more.
    var alternative: AlternativeRoute?
    var metrics = TransferMetrics()

    init(_ exchange: Exchange, on loop: LoopState, entered: MonotonicInstant?) {
        parser = Self.parser(for: exchange, on: loop)
        alternative = exchange.usableAlternative
        repeating = TransferRepeating(probes: exchange.probes)
        clock = TransferClock(start: entered ?? loop.now, timeouts: exchange.options.timeouts)
    }

    private static func parser(for exchange: Exchange, on loop: LoopState) -> HeaderParser {
        HeaderParser(
            url: exchange.request.url, maximumSize: exchange.options.maximumHeadSize, cache: loop.headerFields,
            acceptsSwitch: exchange.webSocket != nil)
    }

    /// Resets the state of an attempt, so that the request can be sent on another connection.
    ///
    /// - Parameter generation: The generation of the origin's connections that it could use; `nil` if there is none.
    /// - Returns: Whether the request must not use an existing connection.
    mutating func beginAgain(_ exchange: Exchange, on loop: LoopState, leaving generation: Int?) -> Bool {
        let refusedPart = receiving.refusedPart
        if receiving.isHeld || refusedPart != nil { beginNextLeg(exchange, on: loop) }
        receiving.beginAgain()
        repeating.beginAgain(without: refusedPart, probes: exchange.probes)
        // A connection on which a request was refused is not reused; libcurl handles that. Nor is one to an alternative
        // service that was not even connected to.
        let isConnectionIntact = connection.stream?.rejection == .overload
        // One that carries one exchange at a time is closed with this attempt; others may be idle.
        let isClosed = connection.isSpoilt && !connection.isHTTP2 && !connection.isHTTP3
        // Others that a lost connection carried share the one that takes its place.
        let isLost =
            connection.isHTTP2 && loop.context.http2 == .multiplexed && !connection.isSpoilt && refusedPart == nil
        if isLost, !isUnprocessed, !isConnectionIntact, let generation {
            loop.connections.suspect(generation, of: exchange.place.origin)
        }
        let isOffered = connection.socket.map(loop.connections.isOffered) ?? true
        let needsNewConnection =
            !isUnprocessed && !isConnectionIntact && isOffered && !(isLost && generation != nil)
            && !(isClosed && repeating.mayTryIdleConnection)
            && (alternative == nil || repeating.attempts > 0)
        alternative = nil
        loop.didLeave(connection.socket)
        connection.leave()
        sending.forgetDelivery()
        clock.enterQueueAgain(at: loop.now)
        return needsNewConnection
    }

    /// Resets the state of a response that was a challenge.
    mutating func beginNextLeg(_ exchange: Exchange, on loop: LoopState) {
        repeating.beginLeg(after: receiving.beginLeg())
        parser = Self.parser(for: exchange, on: loop)
        sending.beginLeg()
        connection.lacksIdentity = false
    }

    /// Whether the server states that it has not processed the request (RFC 9113 §8.7).
    var isUnprocessed: Bool { connection.stream?.isUnprocessed == true && !parser.hasBegun }

    var isPaused: Bool { sending.isPaused || receiving.isPaused }
}

/// Limits progress reports to one every 50 ms.
struct ReportPace {
    private var last: MonotonicInstant?

    mutating func isDue(at now: MonotonicInstant) -> Bool {
        if let last, now < last.advanced(by: .milliseconds(50)) { return false }
        last = now
        return true
    }
}

/// The buffer for libcurl's error message. See CURLOPT_ERRORBUFFER(3).
@safe
struct MessageBuffer: ~Copyable {
    private let bytes: ManagedBuffer<Void, CChar>

    init() {
        // `UnsafeMutablePointer.allocate` would call posix_memalign(3), which takes ten times as long.
        bytes = ManagedBuffer.create(minimumCapacity: Int(CURL_ERROR_SIZE)) { _ in }
        unsafe start.pointee = 0
    }

    /// The address of the buffer, which is valid as long as this value.
    var start: UnsafeMutablePointer<CChar> {
        unsafe bytes.withUnsafeMutablePointerToElements { unsafe $0 }
    }

    var text: String {
        unsafe String(cString: start)
    }
}
