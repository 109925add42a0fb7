// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import FoundationEssentials
import HTTPTypes

/// One easy handle and the state of the exchange it is working on; both are used again for later exchanges.
///
/// It lives on the loop's thread, and nowhere else.
final class Transfer {
    let handle: EasyHandle
    let loop: LoopState
    let buffer: ReceiveBuffer
    let message = MessageBuffer()
    private var headers = HeaderList()
    /// The options that the handle has, so that the next exchange with the same ones need not set them.
    private var appliedOptions: SharedTransferOptions?
    /// What those options say about addresses; nil where any will do.
    private(set) var addressGuard: AddressGuard?
    /// What verifies servers where these options ask for nothing special; nil before it was asked for.
    var plainSecurity: ConnectionSecurity?
    /// What verifies the servers of the handle's connections.
    var appliedSecurity: ConnectionSecurity?

    /// Whether the handle uses the cookies.
    private var isSharingCookies = false
    /// Whether the handle has cookies of a request's own.
    private var hasOwnCookies = false

    /// What stands for this transfer in the queue of deadlines.
    let alarm = Alarm()
    /// Whether it is noted for the end of this turn. Kept by ``LoopState``.
    var isChanged = false

    /// Where the exchange goes: the URL up to its path.
    private(set) var origin = ""
    /// The ticket with which it waits to be given to libcurl; nil otherwise. Kept by ``CurlEngine``.
    var ticket: Int?

    /// The exchange it works on; nil between two of them.
    private(set) var exchange: Exchange?
    /// The state of that exchange.
    var state: TransferState

    init(loop: LoopState, buffer: ReceiveBuffer) throws(TransportError) {
        self.loop = loop
        self.buffer = buffer
        state = TransferState(on: loop)
        do throws(CurlFailure) {
            handle = try EasyHandle()
            try handle.applyConstants()
            try handle.set(CURLOPT_BUFFERSIZE, buffer.rawValue)
            try handle.apply(loop.pool)
            try installCallbacks()
        } catch {
            throw error.transportError
        }
        alarm.transfer = self
    }

    /// Makes the handle ready for an exchange.
    func begin(_ exchange: Exchange) throws(TransportError) {
        state = TransferState(exchange, on: loop)
        message.clear()
        try headers.fill(
            exchange.request, exchange.options, exchange.upload, sendsBody: exchange.sendsBody,
            leavesOutCookies: exchange.handlesCookies, isSigned: exchange.authentication?.signature != nil)
        if exchange.sharedOptions !== appliedOptions {
            appliedOptions = nil
            appliedSecurity = nil
            plainSecurity = nil
            try handle.apply(exchange.options)
            addressGuard = try AddressGuard(exchange.options.connection.addresses)
            appliedOptions = exchange.sharedOptions
        }
        if exchange.isSecure || exchange.options.connection.dnsOverHTTPS != nil { try applySecurity(of: exchange) }
        let url = exchange.request.url.absoluteString
        if !Self.isOrigin(origin, of: url) { origin = Self.origin(of: url) }
        do throws(CurlFailure) {
            try handle.apply(exchange, url: url, headers: headers)
            try installTrailers(for: exchange)
            try applyCookies(of: exchange)
        } catch {
            throw error.transportError
        }
        if let authentication = exchange.authentication { try handle.apply(authentication) }
        self.exchange = exchange
    }

    private func applyCookies(of exchange: Exchange) throws(CurlFailure) {
        if exchange.handlesCookies != isSharingCookies {
            try loop.cookies.attach(handle, exchange.handlesCookies)
            isSharingCookies = exchange.handlesCookies
        }
        guard headers.cookies != nil || hasOwnCookies else { return }
        try handle.set(CURLOPT_COOKIE, headers.cookies)
        hasOwnCookies = headers.cookies != nil
    }

    /// Whether its connection takes other exchanges at the same time.
    var isMultiplexed: Bool { state.parser.isMultiplexed && exchange?.needsOwnConnection == false }

    /// Whether another exchange may use the handle: libcurl remembers a 417, and then waits for no `100 Continue` again,
    /// the system's last error number, and what servers asked for in a challenge, to send it to the next server.
    var isReusable: Bool {
        switch state.parser.status.code {
        case 401, 407, 417: false
        default:
            exchange?.authentication == nil && exchange?.answersChallenges == false
                && handle.long(CURLINFO_OS_ERRNO) == 0
        }
    }

    /// Lets go of the exchange.
    func finish() {
        exchange = nil
        ticket = nil
        state = TransferState(on: loop)
    }

    /// Whether a URL begins with this origin and its path, query or end follows.
    private static func isOrigin(_ origin: String, of url: String) -> Bool {
        let (start, url) = (origin.utf8, url.utf8)
        guard !start.isEmpty, url.starts(with: start) else { return false }
        guard let next = url.dropFirst(start.count).first else { return true }
        return next == UInt8(ascii: "/") || next == UInt8(ascii: "?")
    }

    private static func origin(of url: String) -> String {
        var slashes = 0
        let end = url.utf8.firstIndex { byte in
            if byte == UInt8(ascii: "/") { slashes += 1 }
            return slashes == 3 || byte == UInt8(ascii: "?")
        }
        return end.map { String(url[..<$0]) } ?? url
    }

    /// The limit that the exchange meets first; nil when there is none.
    var nextLimit: TransferClock.Limit? {
        exchange == nil ? nil : state.clock.nextLimit(isWaitingForUs: state.isPaused, now: loop.now)
    }
}

/// Stands for a transfer in the queue of deadlines, where it must not be kept alive.
final class Alarm {
    fileprivate(set) weak var transfer: Transfer?
    /// The earliest deadline that is queued. Kept by ``CurlEngine``.
    var deadline: MonotonicInstant?
}

/// What changes while a transfer works on an exchange.
struct TransferState {
    var parser: HeaderParser
    var clock: TransferClock
    /// Why a callback stopped the transfer.
    var failure: (any Error)?
    /// Why the server, or this side by it, was refused in the TLS handshake or after it.
    var refusal: Refusal?
    /// The connection, where only its end says that the response is complete.
    var handshake: Handshake?
    /// The head of a response that libcurl may be about to answer.
    var heldHead: ResponseHead?
    /// Whether the server refused the rest of the request's body by its answer.
    var isBodyRefused = false
    /// When it was given to libcurl.
    var admitted: MonotonicInstant?
    /// The address that was tried last for it.
    var triedAddress: SocketAddress?
    /// The socket that was made last for it.
    var socket: Int32?
    /// How often a connection was ready for the request.
    var attempts = 0
    /// How much of a body in memory was sent.
    var bytesSent = 0
    /// How much of the body was received, after decompression.
    var bytesReceived = 0
    /// Whether the request's body has nothing to send for now.
    var isSendingPaused = false
    /// Whether nobody reads the response's body for now.
    var isReceivingPaused = false
    var metrics = TransferMetrics()
    var uploadPace = ReportPace()
    var downloadPace = ReportPace()

    /// Why a server was refused, and what it showed.
    struct Refusal {
        let failure: TransportError.TLSFailure
        let trust: ServerTrust?
    }

    init(on loop: LoopState) {
        parser = HeaderParser(url: Self.noURL, maximumSize: 0, cache: loop.headerFields)
        clock = TransferClock(start: loop.now, timeouts: Timeouts())
    }

    init(_ exchange: Exchange, on loop: LoopState) {
        parser = HeaderParser(
            url: exchange.request.url, maximumSize: exchange.options.maximumHeadSize, cache: loop.headerFields)
        clock = TransferClock(start: loop.now, timeouts: exchange.options.timeouts)
    }

    /// Stands for the URL between two exchanges.
    private static let noURL = URL(filePath: "/")

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
        clear()
    }

    deinit {
        unsafe start.deallocate()
    }

    func clear() {
        unsafe start.pointee = 0
    }

    var text: String {
        unsafe String(cString: start)
    }
}
