// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
import CCurl
import COpenSSL
import HTTPTypes

extension HTTPField.Name {
    fileprivate static let keepAlive = HTTPField.Name(constant: "keep-alive")
}

/// How far a response has been received, beside the parser of its head.
package struct TransferReceiving: ~Copyable {
    package private(set) var phase = Phase.awaited
    /// Whether receiving is paused because the reader's buffer is full.
    package private(set) var isPaused = false
    /// Whether libcurl waits for bytes from the connection for this transfer.
    var isReading = false
    /// The number of bytes received of the body.
    package private(set) var count = 0
    /// The number of bytes received of the framing of ``chunks``.
    var framingCount = 0
    private var unread = Unread.none
    /// The decoder of a chunked response to a request with a body; `nil` for another response, which libcurl decodes.
    package var chunks: ChunkedBody?
    /// The connection's handshake, if the response is delimited by the end of the connection.
    var handshake: Handshake?
    /// The time at which a response that may be discarded is handed over although it is not complete.
    var handOverTime: MonotonicInstant?
    var pace = ReportPace()
    /// Whether the next bytes must not be refused. See ``CurlDefects/fragilePauses``.
    var mustTake = false
    /// Whether libcurl delivers what it has buffered in a later turn. See ``CurlDefects/latePauses``.
    var isRestComing = false

    /// Creates the state of a response of which nothing was received.
    package init() {}

    /// The phase of the response.
    package enum Phase: Sendable {
        /// There is no final head.
        case awaited
        /// The final head may be that of a challenge to which libcurl responds.
        case held(ResponseHead)
        /// The server refused a part of the request by a response that is not the exchange's.
        case refused(RefusedPart)
        /// The head was delivered, and the body is being received.
        case inBody
        /// The response was detected to be complete before libcurl reported it.
        case over
        /// The reader has received the end of the response before libcurl reported it.
        case handedOn
    }

    /// The bytes of a response that libcurl left in the socket.
    private enum Unread {
        /// There are none, or they were no complete response.
        case none
        /// They were taken from the socket.
        case kept([UInt8])
        /// They were delivered, and were a complete response.
        case whole
    }

    /// Whether there is no final head.
    package var isAwaited: Bool { if case .awaited = phase { true } else { false } }

    package var isHeld: Bool { if case .held = phase { true } else { false } }

    /// The part of the request that the server refused; `nil` if it refused none.
    package var refusedPart: RefusedPart? { if case .refused(let part) = phase { part } else { nil } }

    package var isOver: Bool {
        switch phase {
        case .over, .handedOn: true
        case .awaited, .held, .refused, .inBody: false
        }
    }

    package var isHandedOn: Bool { if case .handedOn = phase { true } else { false } }

    package var isUnreadWhole: Bool { if case .whole = unread { true } else { false } }

    // MARK: The head

    /// Notes that the final head is that of the response.
    package mutating func beginBody() { phase = .inBody }

    /// Holds the final head until it is known whether libcurl responds to it.
    package mutating func hold(_ head: ResponseHead) { phase = .held(head) }

    /// Notes that the response refuses a part of the request.
    package mutating func refuse(_ part: RefusedPart) { phase = .refused(part) }

    /// Returns the held head, which is that of the response after all; `nil` if none is held.
    package mutating func takeHeld() -> ResponseHead? {
        guard case .held(let head) = phase else { return nil }
        phase = .inBody
        return head
    }

    /// Notes that the request is sent again, because the response was none. Returns the status of a held head.
    package mutating func beginLeg() -> Int? {
        defer { (phase, handshake, chunks, unread) = (.awaited, nil, nil, .none) }
        return if case .held(let head) = phase { head.status.code } else { nil }
    }

    /// Notes that the request is sent again on another connection.
    package mutating func beginAgain() { (unread, isRestComing) = (.none, false) }

    // MARK: The body

    /// Notes that bytes of the body were received.
    package mutating func take(_ bytes: Int) { count += bytes }

    /// Notes that the reader's buffer is full.
    package mutating func pause() { isPaused = true }

    /// Ends a pause, and returns whether there was one.
    package mutating func resume() -> Bool {
        defer { isPaused = false }
        return isPaused
    }

    /// Notes that a response whose head was delivered is complete. Returns whether that is new.
    package mutating func end() -> Bool {
        guard case .inBody = phase else { return false }
        phase = .over
        return true
    }

    /// Notes that the reader receives the end of the response.
    package mutating func handOn() {
        if case .over = phase { phase = .handedOn }
    }

    // MARK: Bytes that libcurl left in the socket

    /// Keeps the bytes that were waiting in the socket.
    package mutating func keep(_ bytes: [UInt8]) { unread = .kept(bytes) }

    /// Returns the bytes that were kept; none if they were taken before.
    package mutating func takeUnread() -> [UInt8] {
        guard case .kept(let bytes) = unread else { return [] }
        unread = .none
        return bytes
    }

    /// Notes whether the response is complete after the kept bytes were delivered.
    package mutating func finishUnread(isWhole: Bool) { unread = isWhole ? .whole : .none }
}

extension Transfer {
    /// Receives a line of a head or trailers. libcurl before 8.7 passes on together the trailers that arrive during a pause.
    func receiveHeader(_ lines: UnsafeRawBufferPointer) -> Int {
        var rest = unsafe lines[...]
        while state.parser.isComplete, let end = unsafe rest.firstIndex(of: UInt8(ascii: "\n")),
            unsafe end + 1 < rest.endIndex
        {
            let line = unsafe UnsafeRawBufferPointer(rebasing: rest[...end])
            guard unsafe receiveLine(line) == line.count else { return 0 }
            unsafe rest = rest[(end + 1)...]
        }
        let line = unsafe UnsafeRawBufferPointer(rebasing: rest)
        return unsafe receiveLine(line) == line.count ? lines.count : 0
    }

    private func receiveLine(_ line: UnsafeRawBufferPointer) -> Int {
        noteInput()
        if !state.parser.hasBegun {
            noteTLS()
            noteAlternativeAnswered()
            state.parser.isOnMultiplexedConnection = state.connection.isHTTP2 || state.connection.isHTTP3
        }
        // Only the lines that may begin with `Set-Cookie` are copied.
        if exchange.cookies == .libcurl, !exchange.isSecure, loop.context.shares.cookieFlag.isSet,
            let first = unsafe line.first, first | 0x20 == UInt8(ascii: "s"),
            let name = unsafe Cookie.name(setBy: Array(line))
        {
            loop.noteInsecureCookie(named: name, from: exchange.request.url)
        }
        do throws(HeaderParser.Failure) {
            switch unsafe try state.parser.receive(line.assumingMemoryBound(to: UInt8.self)) {
            case .none: break
            case .informational(let head):
                exchange.events?.receive(.informational(head))
                // A 101 would switch to another protocol, which no request asks for.
                guard head.status.code != 101 else { throw .invalid(.noFinalResponse) }
            case .final(let head):
                loop.removeOverlays()
                if exchange.cookies == .engine {
                    loop.context.shares.store(head.headers[values: .setCookie], from: exchange.request.url)
                }
                loop.context.shares.limitCookies()
                try receiveHandshake(head)
                reviewReuse(after: .answered(status: head.status.code, sentPart))
                watchExcess()
                switch use(of: head) {
                case .response:
                    state.receiving.beginBody()
                    deliver(head)
                case .undecided:
                    state.receiving.hold(head)
                case .refusal(let part):
                    state.receiving.refuse(part)
                    _ = rewind()
                    return 0
                }
                // libcurl sends a body with any method except HEAD: here it does not know that the method is HEAD, and
                // would wait for a body that a response to HEAD does not have.
                guard exchange.request.method != .head || !exchange.sendsBody else { return 0 }
                if exchange.sendsBody, state.parser.framing.isChunked { state.receiving.chunks = ChunkedBody() }
                prepareBuffer()
                if !state.parser.framing.isMultiplexed, let socket = state.connection.socket {
                    loop.connections.noteKeepAlive(head.headers[.keepAlive], on: socket)
                    loop.connections.noteVersion(isHTTP10: head.version == .http1_0, on: socket)
                }
                stopSending(after: head, isHeld: state.receiving.isHeld)
                noteProgress()
                if state.parser.framing.isEndedByClose, exchange.isSecure, exchange.request.method != .head {
                    noteHandshake()
                }
            }
            return line.count
        } catch {
            switch error {
            case .invalid(let problem): state.failure = failure(.invalidResponse(problem))
            case .tooLarge(let limit): state.failure = failure(.responseTooLarge(.head(limit: limit)))
            }
            return 0
        }
    }

    /// Checks a response to the opening handshake of a WebSocket connection that switches protocols.
    private func receiveHandshake(_ head: ResponseHead) throws(HeaderParser.Failure) {
        guard let connection, head.status.code == 101 else { return }
        do throws(WebSocketViolation) {
            try connection.accept(head, independentStream)
        } catch {
            throw .invalid(.webSocket(error.reason))
        }
    }

    private func noteInput() {
        state.clock.noteActivity(at: loop.now)
        if state.connection.isHTTP2, let socket = state.connection.socket {
            loop.connections.noteInput(socket, at: loop.now)
        }
    }

    func deliver(_ head: ResponseHead) {
        exchange.events?.receive(.head(head))
        exchange.receive(head, length: state.parser.framing.contentLength, from: state.metrics.remoteAddress)
        if head.mayBeDiscarded {
            state.receiving.handOverTime = loop.now.advanced(by: Exchange.patienceTime)
        }
        loop.noteChange(of: self)
    }

    /// Ends the request's body if the server has rejected it. libcurl stops sending in this case, except when
    /// sending is paused or the server is about to close the connection.
    func stopSending(after head: ResponseHead, isHeld: Bool) {
        if state.sending.receive(status: head.status.code, isHeld: isHeld) {
            handle.resume(receiving: true, sending: true)
        }
    }

    /// Notes whether libcurl reads from the connection for this transfer.
    func noteReading(_ isReading: Bool) {
        state.receiving.isReading = isReading
        noteReadingEnded()
    }

    /// Ends the response if libcurl does not read because the response is complete. libcurl does not report the end of
    /// a response before the end of the request, but over HTTP/1.1 it stops reading at the end of the response. It
    /// never begins to wait for a response that arrived while the request was sent.
    func noteReadingEnded() {
        guard exchange.sendsBody, !state.receiving.isReading || isEndUnseen, !isFinished, !state.receiving.isPaused,
            !state.receiving.isRestComing, !state.parser.framing.isMultiplexed
        else { return }
        if state.receiving.isReading, let socket = usedSocket {
            loop.notePaused(self, on: socket, holding: .readable)
        }
        endResponse()
    }

    /// Detects the end of the response by the end of the stream or, if its frames are not inspected, by its length. Over
    /// HTTP/2, libcurl does not stop reading.
    func noteProgress() {
        guard exchange.sendsBody, state.parser.framing.isMultiplexed else { return }
        let length = state.parser.framing.hasNoBody ? 0 : state.parser.framing.contentLength
        if state.connection.stream == nil ? length == Int64(state.receiving.count) : isStreamWhole { endResponse() }
    }

    /// Marks the response as complete before libcurl reports it.
    private func endResponse() {
        if state.receiving.end() || isChallengeLost || isLostUnseen { loop.noteChange(of: self) }
    }

    /// Whether the connection has ended before the response, while the source of the request's body has no bytes. See
    /// ``CurlDefects/unseenEnds``.
    var isLostUnseen: Bool {
        guard loop.context.defects.contains(.unseenEnds), exchange.sendsBody, state.receiving.isAwaited,
            !state.receiving.isReading, state.sending.isPaused, !isFinished, !state.parser.framing.isMultiplexed,
            let socket = usedSocket
        else { return false }
        return Self.hasEnded(socket)
    }

    /// Whether libcurl has read a challenge and waits for the connection to take the rest of the body, which it never will.
    private var isChallengeLost: Bool {
        state.receiving.isHeld && !state.receiving.isReading && state.sending.body == .lost
    }

    /// Whether the response is complete although the request is not. Over HTTP/2, libcurl may be about to report the end
    /// of a response whose request it has sent.
    var isAheadOfRequest: Bool {
        !isFinished && (state.receiving.isOver || isChallengeLost) && state.sending.body != .ended
            && (hasUnsentBody || !state.parser.framing.isMultiplexed)
    }

    /// Whether no more of the request's body is sent after the response: the server or the connection takes no more of it,
    /// or the caller waits for the end of the exchange and the body may have none.
    var endsWithResponse: Bool {
        if state.sending.isRefused || state.sending.body == .lost || state.connection.stream?.isReset == true {
            return true
        }
        return exchange.awaitsRequest && (exchange.upload.length == nil || !exchange.upload.isReplayable)
    }

    /// Whether a finished response is known to be complete. If not, only libcurl can tell, after the end of the
    /// request's body.
    var isResponseWhole: Bool {
        if state.parser.framing.hasNoBody || state.parser.framing.isEndedByClose { return true }
        if let length = state.parser.framing.contentLength { return length == Int64(state.receiving.count) }
        if let chunks = state.receiving.chunks { return chunks.isOver }
        if state.connection.stream != nil { return isStreamWhole }
        guard let socket = usedSocket else { return false }
        return !Self.hasEnded(socket)
    }

    /// Whether not all of the request's body was read.
    var hasUnsentBody: Bool {
        exchange.sendsBody && exchange.upload.length != 0 && state.sending.body != .taken
    }

    private func noteHandshake() {
        guard let session = unsafe tlsSession else { return }
        state.receiving.handshake = unsafe Handshake.of(session)
    }

    private func noteTLS() {
        guard exchange.isSecure, let tls = unsafe tlsSession else { return }
        state.metrics.tlsVersion = unsafe loop.name(SSL_get_version(tls))
        state.metrics.cipher = unsafe loop.name(SSL_CIPHER_get_name(SSL_get_current_cipher(tls)))
    }

    private func prepareBuffer() {
        guard case .collected(let limit) = exchange.delivery, let length = state.parser.framing.contentLength,
            length > 0
        else { return }
        exchange.reserve(Int(min(length, Int64(min(limit, 1 << 20)))))
    }

    /// Receives bytes of the body as libcurl passes them on, and returns how many were taken.
    ///
    /// - Parameter regardlessOfCapacity: Whether the reader's buffer takes them although it is full, because they cannot be
    ///   offered again.
    func receiveBody(_ bytes: UnsafeRawBufferPointer, regardlessOfCapacity: Bool = false) -> Int {
        guard var chunks = state.receiving.chunks else {
            return unsafe receiveContent(bytes, regardlessOfCapacity: regardlessOfCapacity)
        }
        let (content, trailers) = unsafe chunks.decode(bytes)
        guard !chunks.isMalformed else {
            state.failure = failure(.invalidResponse(.framing))
            return 0
        }
        if !content.isEmpty {
            let taken = unsafe content.withUnsafeBytes {
                unsafe receiveContent($0, regardlessOfCapacity: regardlessOfCapacity)
            }
            // If it is paused, libcurl passes the same bytes on again.
            guard taken == content.count else { return taken }
        }
        state.receiving.chunks = chunks
        state.receiving.framingCount += bytes.count - content.count
        for line in trailers {
            guard unsafe line.withUnsafeBytes({ unsafe receiveHeader($0) }) == line.count else { return 0 }
        }
        if chunks.isOver { endResponse() }
        return bytes.count
    }

    /// Receives decoded bytes of the body, and returns how many were taken.
    func receiveContent(_ bytes: UnsafeRawBufferPointer, regardlessOfCapacity: Bool = false) -> Int {
        noteInput()
        deliverHeldHead()
        let regardlessOfCapacity = regardlessOfCapacity || state.receiving.mustTake
        state.receiving.mustTake = false
        guard regardlessOfCapacity || mayReceive() else {
            return pauseReceiving()
        }
        switch unsafe exchange.receive(bytes, regardlessOfCapacity: regardlessOfCapacity) {
        case .take:
            state.receiving.take(bytes.count)
            noteLimited(bytes.count, in: \.receiving)
            loop.noteChange(of: self)
            noteProgress()
            reportDownload()
            return bytes.count
        case .pause:
            return pauseReceiving()
        case .refuse(let limit):
            state.failure = failure(.responseTooLarge(.body(limit: limit)))
            return 0
        case .abandon:
            state.failure = CancellationError()
            return 0
        }
    }

    private func reportDownload() {
        guard let events = exchange.events, state.receiving.pace.isDue(at: loop.now) else { return }
        events.receive(.downloadProgress(downloadProgress))
    }

    /// The progress of the download, in encoded bytes as transferred.
    var downloadProgress: TransferProgress {
        TransferProgress(completedBytes: Int64(state.receiving.count), totalBytes: state.parser.framing.contentLength)
    }
}
