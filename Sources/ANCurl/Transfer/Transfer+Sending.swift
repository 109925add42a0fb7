// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import FoundationEssentials
import Glibc
import HTTPTypes

extension Transfer {
    func sendBody(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        state.clock.noteActivity(at: loop.now)
        state.undelivered = nil
        if state.isBodyEnded { return 0 }
        // Reporting the end here would make the truncated body appear complete. The connection is closed, or the stream
        // reset, instead.
        if state.isBodyRefused { return CCURL_READ_PAUSE }
        switch exchange.upload {
        case .none:
            state.isBodyTaken = true
            return 0
        case .bytes(let data):
            let start = data.startIndex + state.bytesSent
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
            state.isSendingPaused = true
            return CCURL_READ_PAUSE
        case .end:
            state.isBodyTaken = true
            return 0
        case .failed:
            state.failure = uploadError
            return CCURL_READ_ABORT
        }
    }

    private func noteSent(_ count: Int) {
        state.bytesSent += count
        if Int64(state.bytesSent) == exchange.upload.length { state.isBodyTaken = true }
        reportUpload()
    }

    /// The error of the request body's source; `nil` if it did not fail, or if the server rejected the body.
    var uploadError: TransportError? {
        guard !state.isBodyRefused, case .channel(let channel) = exchange.upload, let problem = channel.problem
        else { return nil }
        return failure(.requestBody(problem))
    }

    func sendTrailers(_ list: inout UnsafeMutablePointer<curl_slist>?) -> Int32 {
        state.hasSentTrailers = true
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
        exchange.sendsBody && state.bytesSent > 0 && state.connection != nil && (!state.isOnHTTP2 || isExclusive)
    }

    /// Notes whether the system has delivered bytes of the request since the last call, which is activity. See tcp(7),
    /// `SIOCOUTQ`.
    func noteDelivery() {
        guard isDelivering, let socket = state.connection else { return }
        var count: Int32 = 0
        guard unsafe ioctl(socket, UInt(TIOCOUTQ), &count) == 0 else { return }
        if let last = state.undelivered, count < last { state.clock.noteActivity(at: loop.now) }
        state.undelivered = count
    }

    private func reportUpload() {
        guard let events = exchange.events, state.uploadPace.isDue(at: loop.now) else { return }
        events.receive(.uploadProgress(uploadProgress))
    }

    func rewind(to offset: Int64, from origin: Int32) -> Int32 {
        guard offset == 0, origin == SEEK_SET else { return CURL_SEEKFUNC_CANTSEEK }
        // libcurl 8 rewinds the body before it searches for another connection.
        guard state.attempts == 0 || state.heldHead != nil || mayRepeat() else { return CURL_SEEKFUNC_FAIL }
        return rewind() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
    }

    /// Rewinds the body if any of it was read. libcurl itself discards the bytes that it read and did not send.
    func rewind() -> Bool {
        state.isSendingPaused = false
        state.isBodyTaken = false
        guard state.bytesSent > 0 else { return true }
        guard exchange.upload.isReplayable, !state.hasSentTrailers else {
            state.failure = failure(.requestBody(.notReplayable))
            return false
        }
        if case .channel(let channel) = exchange.upload { channel.rewind() }
        state.bytesSent = 0
        return true
    }

    var uploadProgress: TransferProgress {
        TransferProgress(completedBytes: Int64(state.bytesSent), totalBytes: exchange.upload.length)
    }
}
