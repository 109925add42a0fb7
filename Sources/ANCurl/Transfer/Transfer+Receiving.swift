// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import COpenSSL
import HTTPTypes

extension HTTPField.Name {
    fileprivate static let keepAlive = HTTPField.Name(parsed: "keep-alive") ?? .connection
}

extension Transfer {
    func receiveHeader(_ line: UnsafeRawBufferPointer) -> Int {
        noteInput()
        if !state.parser.hasBegun {
            noteTLS()
            noteAlternativeAnswered()
            state.parser.isOnMultiplexedConnection = state.isOnHTTP2 || state.isOnHTTP3
        }
        do throws(HeaderParser.Failure) {
            switch unsafe try state.parser.receive(line.assumingMemoryBound(to: UInt8.self)) {
            case .none: break
            case .informational(let head):
                exchange.events?.receive(.informational(head))
                // A 101 would switch to another protocol, which no request asks for.
                guard head.status.code != 101 else { throw .invalid(.noFinalResponse) }
            case .final(let head):
                try receiveHandshake(head)
                if exchange.handlesCookies, !exchange.isSecure, connection == nil, head.headers.contains(.setCookie) {
                    loop.shares.removeOverlays(setBy: head.headers[values: .setCookie], from: exchange.request.url)
                }
                reviewReuse(after: .answered(status: head.status.code, sentPart))
                switch use(of: head) {
                case .response: deliver(head)
                case .undecided:
                    state.heldHead = head
                case .refusal(let part):
                    state.refusedPart = part
                    _ = rewind()
                    return 0
                }
                // libcurl sends a body with any method except HEAD: here it does not know that the method is HEAD, and
                // would wait for a body that a response to HEAD does not have.
                guard exchange.request.method != .head || !exchange.sendsBody else { return 0 }
                prepareBuffer()
                if !state.parser.isMultiplexed, let socket = state.connection {
                    loop.connections.noteKeepAlive(head.headers[.keepAlive], on: socket)
                    loop.connections.noteVersion(isHTTP10: head.version == .http1_0, on: socket)
                }
                if head.status.code >= 300 { stopSending() }
                noteProgress()
                if state.parser.isEndedByClose, exchange.isSecure, exchange.request.method != .head { noteHandshake() }
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

    /// Stores the cookies of a response to the opening handshake of a WebSocket connection, which libcurl does not see,
    /// and checks a response that switches protocols.
    private func receiveHandshake(_ head: ResponseHead) throws(HeaderParser.Failure) {
        guard let connection else { return }
        if exchange.handlesCookies {
            loop.shares.store(head.headers[values: .setCookie], from: exchange.request.url)
        }
        guard head.status.code == 101 else { return }
        do throws(WebSocketViolation) {
            try connection.accept(head, independentStream)
        } catch {
            throw .invalid(.webSocket(error.reason))
        }
    }

    private func noteInput() {
        state.clock.noteActivity(at: loop.now)
        if state.isOnHTTP2, let socket = state.connection { loop.connections.noteInput(socket, at: loop.now) }
    }

    func deliver(_ head: ResponseHead) {
        exchange.events?.receive(.head(head))
        exchange.receive(head, from: state.metrics.remoteAddress)
        loop.noteChange(of: self)
    }

    /// Ends the request's body after the server has rejected it. libcurl stops sending in this case, except when
    /// sending is paused or the server is about to close the connection.
    private func stopSending() {
        if state.sending.refuse() { handle.resume(receiving: true, sending: true) }
    }

    /// Notes whether libcurl reads from the connection for this transfer.
    func noteReading(_ isReading: Bool) {
        state.isReading = isReading
        noteReadingEnded()
    }

    /// Ends the response if libcurl does not read because the response is complete. libcurl does not report the end of
    /// a response before the end of the request, but over HTTP/1.1 it stops reading at the end of the response. It
    /// never begins to wait for a response that arrived while the request was sent.
    func noteReadingEnded() {
        guard exchange.sendsBody, !state.isReading, !isFinished, state.refusedPart == nil, state.parser.isComplete,
            !state.parser.isMultiplexed, !state.isReceivingPaused, state.heldHead == nil
        else { return }
        endResponse()
    }

    /// Detects the end of the response by the end of the stream or, if its frames are not inspected, by its length. Over
    /// HTTP/2, libcurl does not stop reading.
    func noteProgress() {
        guard exchange.sendsBody, state.parser.isComplete, state.parser.isMultiplexed, state.heldHead == nil
        else { return }
        let length = state.parser.hasNoBody ? 0 : state.parser.contentLength
        if state.stream == nil ? length == Int64(state.bytesReceived) : isStreamWhole { endResponse() }
    }

    /// Marks the response as complete before libcurl reports it.
    private func endResponse() {
        guard !state.isResponseOver else { return }
        state.isResponseOver = true
        loop.noteChange(of: self)
    }

    /// Whether the response is complete although the request is not. Over HTTP/2, libcurl may be about to report the end
    /// of a response whose request it has sent.
    var isAheadOfRequest: Bool {
        !isFinished && state.isResponseOver && state.sending.body != .ended
            && (hasUnsentBody || !state.parser.isMultiplexed)
    }

    /// Whether no more of the request's body is sent after the response: the server takes no more of it, or the caller
    /// waits for the end of the exchange and the body may have none.
    var endsWithResponse: Bool {
        if state.sending.isRefused || state.stream?.isReset == true { return true }
        return exchange.delivery != .streamed && (exchange.upload.length == nil || !exchange.upload.isReplayable)
    }

    /// Whether a finished response is known to be complete. If not, only libcurl can tell, after the end of the
    /// request's body.
    var isResponseWhole: Bool {
        if state.parser.hasNoBody || state.parser.isEndedByClose { return true }
        if let length = state.parser.contentLength { return length == Int64(state.bytesReceived) }
        if state.stream != nil { return isStreamWhole }
        guard let connection = state.connection else { return false }
        return !Self.hasEnded(connection)
    }

    /// Whether not all of the request's body was read.
    var hasUnsentBody: Bool {
        exchange.sendsBody && exchange.upload.length != 0 && state.sending.body != .taken
    }

    private func noteHandshake() {
        guard CurlLibrary.usesOpenSSL, let session = unsafe ccurl_tls_session(handle.raw) else { return }
        state.handshake = unsafe Handshake.of(OpaquePointer(session))
    }

    private func noteTLS() {
        guard exchange.isSecure, let session = unsafe ccurl_tls_session(handle.raw) else { return }
        let tls = OpaquePointer(session)
        state.metrics.tlsVersion = unsafe loop.name(SSL_get_version(tls))
        state.metrics.cipher = unsafe loop.name(SSL_CIPHER_get_name(SSL_get_current_cipher(tls)))
    }

    private func prepareBuffer() {
        guard case .collected(let limit) = exchange.delivery, let length = state.parser.contentLength,
            length > 0
        else { return }
        exchange.reserve(Int(min(length, Int64(min(limit, 1 << 20)))))
    }

    func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        noteInput()
        deliverHeldHead()
        switch unsafe exchange.receive(bytes) {
        case .take:
            state.bytesReceived += bytes.count
            loop.noteChange(of: self)
            noteProgress()
            reportDownload()
            return bytes.count
        case .pause:
            state.isReceivingPaused = true
            return CCURL_WRITE_PAUSE
        case .refuse(let limit):
            state.failure = failure(.responseTooLarge(.body(limit: limit)))
            return 0
        case .abandon:
            state.failure = CancellationError()
            return 0
        }
    }

    private func reportDownload() {
        guard let events = exchange.events, state.downloadPace.isDue(at: loop.now) else { return }
        events.receive(.downloadProgress(downloadProgress))
    }

    /// The progress of the download, in encoded bytes as transferred.
    var downloadProgress: TransferProgress {
        TransferProgress(completedBytes: Int64(state.bytesReceived), totalBytes: state.parser.contentLength)
    }
}
