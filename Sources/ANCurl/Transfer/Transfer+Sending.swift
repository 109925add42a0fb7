// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import FoundationEssentials
import Glibc
import HTTPTypes

/// How far a request's body has been sent, and the decisions that depend on it alone.
package struct TransferSending {
    package private(set) var body = Body.open
    /// Whether the server's response rejected the rest of the body.
    package private(set) var isRefused = false
    /// Whether libcurl has read the trailers.
    package private(set) var hasSentTrailers = false
    /// The number of bytes of the body that libcurl has read.
    package private(set) var count = 0
    /// The number of bytes that the system had not delivered when it was last asked; `nil` if libcurl has read bytes since.
    private var undelivered: Int32?
    var pace = ReportPace()

    /// Creates the state of a body of which nothing was sent.
    package init() {}

    /// What libcurl has of the body.
    package enum Body {
        /// Less than all of it.
        case open
        /// Less than all of it, and libcurl does not ask again, because the source has no bytes yet.
        case paused
        /// Less than all of it, and the connection takes no more, which libcurl learns only when it reads.
        case lost
        /// All of it.
        case taken
        /// Its end was signaled to libcurl, wherever that was, so that libcurl evaluates the response.
        case ended
    }

    package var isPaused: Bool { body == .paused }

    /// The answer when libcurl asks for bytes.
    package enum Reply {
        /// The next bytes of the source.
        case bytes
        /// To wait.
        case pause
        /// That there are no more.
        case end
    }

    /// Returns the reply to libcurl's question for bytes.
    package mutating func reply() -> Reply {
        undelivered = nil
        if body == .ended { return .end }
        // libcurl before 8.7 may ask although it waits, and is told of the end of the pause only if it is one.
        if body == .paused { return .pause }
        // Reporting the end here would make the truncated body appear complete. The connection is closed, or the stream
        // reset, instead.
        return isRefused || body == .lost ? .pause : .bytes
    }

    /// Notes that the connection takes no more. Returns whether that is new.
    package mutating func lose() -> Bool {
        guard body == .open else { return false }
        body = .lost
        return true
    }

    /// Notes that libcurl has read bytes of a body; `length` is `nil` if its length is unknown.
    package mutating func take(_ bytes: Int, of length: Int64?) {
        count += bytes
        if Int64(count) == length { body = .taken }
    }

    /// Notes that the source has no more bytes.
    package mutating func finish() { body = .taken }

    /// Notes that the source has no bytes yet.
    package mutating func pause() { body = .paused }

    /// Ends a pause, and returns whether there was one.
    package mutating func resume() -> Bool {
        guard body == .paused else { return false }
        body = .open
        return true
    }

    /// Notes the status of the final head, by which the server may reject the rest of the body. Returns whether libcurl must
    /// ask again, because it waits.
    ///
    /// - Parameter isHeld: Whether libcurl may answer the response: it then decides whether it sends the rest, so that
    ///   the connection can carry the answer.
    package mutating func receive(status: Int, isHeld: Bool) -> Bool {
        guard status >= 300 else { return false }
        if !isHeld { isRefused = true }
        return resume() || body == .lost && !isHeld
    }

    /// Ends the body wherever it is.
    package mutating func end() { body = .ended }

    /// Notes that libcurl reads the trailers.
    package mutating func takeTrailers() { hasSentTrailers = true }

    /// What a rewind requires.
    package enum Rewind {
        /// Nothing: no byte was read.
        case nothing
        /// That the source starts again.
        case source
        /// What is impossible: the source cannot start again, or libcurl has read the trailers, which libcurl before 8.7
        /// cannot send twice.
        case impossible
    }

    /// Starts again from the first byte.
    package mutating func rewind(isReplayable: Bool) -> Rewind {
        if body != .ended { body = .open }
        guard !hasSentTrailers else { return .impossible }
        guard count > 0 else { return .nothing }
        guard isReplayable else { return .impossible }
        count = 0
        return .source
    }

    /// Notes that the request is sent again, as the answer to a challenge or without a part that was refused.
    package mutating func beginLeg() { isRefused = false }

    /// Notes the number of bytes that the system has not delivered. Returns whether it has delivered some since the last
    /// call.
    package mutating func noteUndelivered(_ bytes: Int32) -> Bool {
        defer { undelivered = bytes }
        return undelivered.map { bytes < $0 } ?? false
    }

    /// Notes that the connection is another one.
    package mutating func forgetDelivery() { undelivered = nil }
}

extension Transfer {
    func sendBody(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        state.clock.noteActivity(at: loop.now)
        state.repeating.sendBody()
        // It would take what is lost. Reading finds the reason, also if the reader goes on later.
        if state.connection.handshake?.hasLostOutput == true, state.sending.lose() { loop.noteChange(of: self) }
        switch state.sending.reply() {
        case .bytes: break
        case .pause: return CCURL_READ_PAUSE
        case .end: return 0
        }
        guard maySend() else {
            state.sending.pause()
            return CCURL_READ_PAUSE
        }
        let buffer = unsafe limited(buffer)
        switch exchange.upload {
        case .none:
            state.sending.finish()
            return 0
        case .bytes(let data):
            let start = data.startIndex + state.sending.count
            let count = min(buffer.count, data.endIndex - start)
            unsafe data.copyBytes(to: buffer, from: start..<(start + count))
            noteSent(count)
            return count
        case .channel(let channel):
            return unsafe sendBody(from: channel, buffer)
        }
    }

    private func sendBody(
        from channel: UploadChannel, _ buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        let (supply, count) = unsafe channel.read(into: buffer)
        switch supply {
        case .bytes:
            noteSent(count)
            return count
        case .starving:
            state.sending.pause()
            return CCURL_READ_PAUSE
        case .end:
            state.sending.finish()
            return 0
        case .failed:
            state.failure = uploadError
            return CCURL_READ_ABORT
        }
    }

    private func noteSent(_ count: Int) {
        state.sending.take(count, of: exchange.upload.length)
        noteLimited(count, in: \.sending)
        reportUpload()
    }

    /// The error of the request body's source; `nil` if it did not fail, or if the server rejected the body, as by a
    /// challenge that is complete.
    ///
    /// A source that ends because its task was cancelled may be found to have failed before the message that ends the
    /// exchange is received: the cancellation is then the reason.
    var uploadError: (any Error)? {
        // libcurl goes on sending after a challenge if the server closes the connection of HTTP/2.
        let isRefused = state.sending.isRefused || state.receiving.isHeld && isStreamWhole
        guard !isRefused, case .channel(let channel) = exchange.upload, let problem = channel.problem else {
            return nil
        }
        return exchange.wasCancelled ? CancellationError() : failure(.requestBody(problem))
    }

    func sendTrailers(_ list: inout UnsafeMutablePointer<curl_slist>?) -> Int32 {
        state.sending.takeTrailers()
        guard case .channel(let channel) = exchange.upload else { return CURL_TRAILERFUNC_OK }
        for field in channel.trailers {
            guard let longer = unsafe curl_slist_append(list, "\(field.name.rawName): \(field.value)") else {
                return CURL_TRAILERFUNC_ABORT
            }
            unsafe list = unsafe longer
        }
        return CURL_TRAILERFUNC_OK
    }

    /// Whether the system may still deliver bytes of the request while libcurl waits: libcurl hands it more than the server
    /// reads.
    var isDelivering: Bool {
        if let connection { return connection.clock.isAwaitingAnswer }
        return exchange.sendsBody && state.sending.count > 0 && usedSocket != nil
            && (!state.connection.isHTTP2 || isExclusive)
    }

    /// Notes whether the system has delivered bytes of the request since the last call, which is activity.
    func noteDelivery() {
        if let connection { return connection.noteDelivery(of: self) }
        guard isDelivering, let socket = usedSocket, let count = Self.undelivered(on: socket) else {
            return
        }
        if state.sending.noteUndelivered(count) { state.clock.noteActivity(at: loop.now) }
    }

    /// Returns the number of bytes that the system has accepted on a socket and not delivered; `nil` if it does not know.
    /// See tcp(7), `SIOCOUTQ`.
    static func undelivered(on socket: Int32) -> Int32? {
        var count: Int32 = 0
        return unsafe ioctl(socket, UInt(TIOCOUTQ), &count) == 0 ? count : nil
    }

    private func reportUpload() {
        guard let events = exchange.events, state.sending.pace.isDue(at: loop.now) else { return }
        events.receive(.uploadProgress(uploadProgress))
    }

    func rewind(to offset: Int64, from origin: Int32) -> Int32 {
        guard offset == 0, origin == SEEK_SET else { return CURL_SEEKFUNC_CANTSEEK }
        // libcurl 8 rewinds the body before it searches for another connection.
        guard state.repeating.attempts == 0 || state.receiving.isHeld || mayRepeat() else { return CURL_SEEKFUNC_FAIL }
        return rewind() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
    }

    /// Rewinds the body if any of it was read. libcurl itself discards the bytes that it read and did not send.
    func rewind() -> Bool {
        switch state.sending.rewind(isReplayable: exchange.upload.isReplayable) {
        case .nothing: return true
        case .source:
            if case .channel(let channel) = exchange.upload { channel.rewind() }
            return true
        case .impossible:
            state.failure = failure(.requestBody(.notReplayable))
            return false
        }
    }

    var uploadProgress: TransferProgress {
        TransferProgress(completedBytes: Int64(state.sending.count), totalBytes: exchange.upload.length)
    }
}

// Transfers whose speed is limited are paused as those whose reader or source is slow, and go on when the schedule says so.
// One that is resumed for another reason asks the schedule again.

extension Transfer {
    /// Whether the body may be received now. If not, the transfer is resumed later.
    func mayReceive() -> Bool {
        speedLimits.isEmpty || loop.receiving.mayTake(self, speedLimits, at: loop.now)
    }

    /// Whether the body may be sent now. If not, the transfer is resumed later.
    func maySend() -> Bool {
        speedLimits.isEmpty || loop.sending.mayTake(self, speedLimits, at: loop.now)
    }

    /// Notes bytes that were received or sent.
    func noteLimited(_ count: Int, in schedule: ReferenceWritableKeyPath<LoopState, SpeedSchedule<Transfer>>) {
        guard !speedLimits.isEmpty else { return }
        loop[keyPath: schedule].take(count, by: self, speedLimits, at: loop.now)
    }

    /// Returns the part of a buffer that is filled at once.
    func limited(_ buffer: UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer {
        guard let rate = speedLimits.compactMap(\.bytesSentPerSecond).min() else { return unsafe buffer }
        let count = min(buffer.count, rate < 1 << 20 ? 4 << 10 : 16 << 10)
        return unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count))
    }
}

extension CurlEngine {
    /// Resumes transfers that waited because of their limits.
    func resumeLimited() {
        while let transfer = state.receiving.next(at: state.now) {
            if transfer.state.receiving.resume() { resume(transfer) }
        }
        while let transfer = state.sending.next(at: state.now) {
            guard transfer.state.sending.resume() else { continue }
            resume(transfer)
            // Only now, libcurl asks for its bytes. Of several that went on, the one that it serves first would take what is
            // there for all: from 8.15 on, always the oldest.
            handleTimers()
        }
    }

    /// Removes a transfer that has ended.
    func removeLimited(_ transfer: Transfer) {
        guard !transfer.speedLimits.isEmpty else { return }
        state.receiving.remove(transfer, transfer.speedLimits, at: state.now)
        state.sending.remove(transfer, transfer.speedLimits, at: state.now)
    }
}

extension [SpeedLimit] {
    /// Returns the limits that apply to the host of a URL.
    ///
    /// - Throws: ``ANHTTP/TransportError/Reason/invalidRequest(_:)`` for a limit with an invalid host.
    func applying(to url: URL) throws(TransportError) -> [SpeedLimit] {
        guard !isEmpty else { return [] }
        let host = HostName(url)
        do throws(SecurityPolicy.ConfigurationError) {
            for limit in self { try limit.host?.check() }
        } catch {
            throw TransportError(.invalidRequest(.option(error.description)))
        }
        return filter { $0.host?.matches(host) ?? true }
    }
}
