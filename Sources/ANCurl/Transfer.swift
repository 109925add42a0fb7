// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import FoundationEssentials
import HTTPTypes

/// One exchange at work in libcurl: an easy handle that is made for this exchange and freed with it.
///
/// A used easy handle keeps state that no option resets: a 417, the system's last error number, the answers to challenges.
/// Two kinds of it corrupt memory: a header line that begins with a blank, received first on a used handle, is a use after
/// free (curl issue 11101, fixed in 8.1), and a second request with trailers overruns a buffer (sending bodies was rewritten
/// in 8.7). Making and freeing a handle takes about 1 µs. Connections, TLS sessions, addresses and cookies outlive it: they
/// belong to the multi handle and to ``HandleShares``.
///
/// It lives on the loop's thread, and nowhere else.
final class Transfer {
    let exchange: Exchange
    let handle: EasyHandle
    let loop: LoopState
    let message = MessageBuffer()
    private let headers: HeaderList
    /// The addresses that connections may be made to; `nil` if any will do.
    let addressGuard: AddressGuard?
    /// The scheme, host and port of the URL.
    let origin: String

    /// Represents this transfer in the queue of deadlines.
    let alarm = Alarm()
    /// Whether it is noted for the end of this turn. Kept by ``LoopState``.
    var isChanged = false
    /// The ticket with which it waits to be given to libcurl; `nil` otherwise. Kept by ``CurlEngine``.
    var ticket: Int?
    /// Whether the exchange has its result. Kept by ``CurlEngine``.
    var isFinished = false

    var state: TransferState

    /// Makes a handle ready for an exchange.
    convenience init(_ exchange: Exchange, loop: LoopState) throws(TransportError) {
        try self.init(exchange, loop: loop, TransferState(exchange, on: loop))
    }

    /// Makes a handle ready for the exchange of another transfer, whose connection was lost or given up.
    convenience init(repeating other: Transfer) throws(TransportError) {
        var state = other.state
        state.beginAgain(other.exchange, on: other.loop)
        try self.init(other.exchange, loop: other.loop, state)
    }

    private init(_ exchange: Exchange, loop: LoopState, _ state: TransferState) throws(TransportError) {
        self.exchange = exchange
        self.loop = loop
        self.state = state
        addressGuard = try AddressGuard(exchange.options.connection.addresses)
        let url = exchange.request.url.absoluteString
        origin = Self.origin(of: url)
        do throws(CurlFailure) {
            handle = try EasyHandle()
        } catch {
            throw error.transportError
        }
        headers = try HeaderList(
            exchange.request, exchange.options, exchange.upload, sendsBody: exchange.sendsBody,
            leavesOutCookies: exchange.handlesCookies, isSigned: exchange.authentication?.signature != nil)
        try handle.apply(exchange.options)
        do throws(CurlFailure) {
            try handle.applyConstants()
            try handle.set(CURLOPT_BUFFERSIZE, ReceiveBuffer(for: exchange.delivery).rawValue)
            try handle.apply(loop.pool)
            try loop.shares.attach(to: handle, withCookies: exchange.handlesCookies)
            if let cookies = headers.cookies { try handle.set(CURLOPT_COOKIE, cookies) }
            if let security = exchange.security {
                try handle.apply(security, resumesSessions: exchange.options.tls.resumesSessions)
            }
            try handle.apply(exchange, url: url, headers: headers)
            if state.sendsNoCredential { try handle.set(CURLOPT_PROXYUSERNAME, nil) }
            // The connection that was given up may still serve other exchanges, and libcurl would choose it again.
            if state.needsNewConnection { try handle.set(CURLOPT_FRESH_CONNECT, true) }
            try installCallbacks()
        } catch {
            throw error.transportError
        }
        if let authentication = exchange.authentication, !state.sendsNoCredential || authentication.signature != nil {
            try handle.apply(authentication)
        }
        alarm.transfer = self
    }

    /// Whether its connection takes other exchanges at the same time.
    var isMultiplexed: Bool { state.parser.isMultiplexed && !exchange.needsOwnConnection }

    private static func origin(of url: String) -> String {
        var slashes = 0
        let end = url.utf8.firstIndex { byte in
            if byte == UInt8(ascii: "/") { slashes += 1 }
            return slashes == 3 || byte == UInt8(ascii: "?")
        }
        return end.map { String(url[..<$0]) } ?? url
    }

    /// The limit that the exchange meets first; `nil` if there is none.
    var nextLimit: TransferClock.Limit? {
        guard !isFinished else { return nil }
        guard !state.isResponseOver else { return state.clock.limitAfterResponse(isStarving: state.isSendingPaused) }
        return state.clock.nextLimit(isWaitingForUs: state.isPaused, now: loop.now)
    }
}

/// Represents a transfer in the queue of deadlines, which must not keep it alive.
final class Alarm {
    fileprivate(set) weak var transfer: Transfer?
    /// The earliest deadline that is queued. Kept by ``CurlEngine``.
    var deadline: MonotonicInstant?
}

/// The state of an exchange that changes while libcurl works on it.
struct TransferState {
    var parser: HeaderParser
    var clock: TransferClock
    /// Why a callback stopped the transfer.
    var failure: (any Error)?
    /// Why the server, or this side by it, was refused in the TLS handshake or after it.
    var refusal: Refusal?
    /// Whether the server asked for a client certificate when the connection was made, and none was given.
    var lacksIdentity = false
    /// The connection, where only its end says that the response is complete.
    var handshake: Handshake?
    /// The head of a response that libcurl may be about to answer.
    var heldHead: ResponseHead?
    /// Whether the latest leg was a request without its body, to learn the server's challenge.
    var isProbing = false
    /// Whether a server answered a probe by neither a challenge nor a success.
    var isProbeRefused = false
    /// Whether the request is sent without the server's credential after all.
    var sendsNoCredential = false
    /// Whether the server refused the rest of the request's body by its answer.
    var isBodyRefused = false
    /// Whether the response was seen to be complete before libcurl reported it.
    var isResponseOver = false
    /// Whether libcurl has ceased to read from the connection for this transfer.
    var isReadingEnded = false
    /// Whether libcurl is told that the request's body is over, so that it judges the response.
    var isBodyEnded = false
    /// Whether libcurl has taken all of the request's body.
    var isBodyTaken = false
    /// When it was given to libcurl.
    var admitted: MonotonicInstant?
    /// The address that was tried last for it.
    var triedAddress: SocketAddress?
    /// The sockets that were made for it.
    var sockets: [Int32] = []
    /// The socket of the connection that carries it; `nil` before that, and for a Unix-domain socket.
    var connection: Int32?
    /// Whether that connection speaks HTTP/2.
    var isOnHTTP2 = false
    /// What reads ahead on that connection, and the stream of the request there; the stream stays known after its end.
    var monitor: HTTP2Monitor?
    var stream: HTTP2Stream?
    /// Whether the request is sent again, and not on a connection that is there.
    var needsNewConnection = false
    /// Whether the connection was given up before anything was sent: the server had ended it, or unsolicited bytes waited.
    var isConnectionSpoilt = false
    /// The number of times that the request was given to another handle.
    var repeats = 0
    /// How often a connection was ready for the request.
    var attempts = 0
    /// How much of a body in memory was sent.
    var bytesSent = 0
    /// Whether libcurl has taken the trailers.
    var hasSentTrailers = false
    /// How much of the body was received.
    var bytesReceived = 0
    /// Whether sending is paused because the body's source has nothing to send yet.
    var isSendingPaused = false
    /// Whether receiving is paused because the reader's buffer is full.
    var isReceivingPaused = false
    var metrics = TransferMetrics()
    var uploadPace = ReportPace()
    var downloadPace = ReportPace()

    /// Why a server was refused, and what it showed.
    struct Refusal {
        let failure: TransportError.TLSFailure
        let trust: ServerTrust?
    }

    init(_ exchange: Exchange, on loop: LoopState) {
        parser = HeaderParser(
            url: exchange.request.url, maximumSize: exchange.options.maximumHeadSize, cache: loop.headerFields)
        clock = TransferClock(start: loop.now, timeouts: exchange.options.timeouts)
    }

    /// Forgets an attempt, so that the request can be sent on another connection.
    mutating func beginAgain(_ exchange: Exchange, on loop: LoopState) {
        if isProbeRefused { sendsNoCredential = true }
        if heldHead != nil || isProbeRefused { beginNextLeg(exchange, on: loop) }
        isProbeRefused = false
        repeats += 1
        // One that refused a request takes no more, as libcurl knows.
        needsNewConnection = !isUnprocessed
        sockets = []
        connection = nil
        lacksIdentity = false
        isConnectionSpoilt = false
        if clock.connected != nil { clock.reconnect(at: loop.now) }
    }

    /// Forgets a response that was a challenge.
    mutating func beginNextLeg(_ exchange: Exchange, on loop: LoopState) {
        heldHead = nil
        parser = HeaderParser(
            url: exchange.request.url, maximumSize: exchange.options.maximumHeadSize, cache: loop.headerFields)
        attempts = 0
        isProbing = false
        isBodyRefused = false
        isResponseOver = false
        lacksIdentity = false
        handshake = nil
    }

    /// Whether the server says that it has not processed the request (RFC 9113 §8.7).
    var isUnprocessed: Bool { stream?.isUnprocessed == true && !parser.hasBegun }

    var isPaused: Bool { isSendingPaused || isReceivingPaused }
}

/// Keeps reports of progress at least 50 ms apart.
struct ReportPace {
    private var last: MonotonicInstant?

    mutating func isDue(at now: MonotonicInstant) -> Bool {
        if let last, now < last.advanced(by: .milliseconds(50)) { return false }
        last = now
        return true
    }
}

/// Where libcurl writes what went wrong. See CURLOPT_ERRORBUFFER(3).
@safe
struct MessageBuffer: ~Copyable {
    let start: UnsafeMutablePointer<CChar>

    init() {
        unsafe start = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe start.pointee = 0
    }

    deinit {
        unsafe start.deallocate()
    }

    var text: String {
        unsafe String(cString: start)
    }
}
