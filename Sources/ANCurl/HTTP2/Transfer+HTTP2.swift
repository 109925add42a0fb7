// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import HTTPTypes

// Conclusions from the frames of an HTTP/2 connection about an exchange. If frames cannot be inspected (without TLS,
// behind an HTTPS proxy, or with a TLS library other than OpenSSL), only libcurl's results are used.

extension Transfer {
    /// Notes the stream on which the request is about to be sent.
    func joinStream() {
        leaveStream()
        state.connection.stream = nil
        guard let monitor = connectionMonitor() else { return }
        state.connection.monitor = monitor
        state.connection.stream = monitor.open(for: self)
        loop.readAgain(monitor.socket)
        try? observeTurns()
    }

    /// Inspects the next record whenever libcurl has processed this transfer.
    ///
    /// When a socket is ready, libcurl processes all of its transfers in turn, and each reads as much as it can. If the
    /// next record were inspected only after that, libcurl would process all transfers for each record. libcurl has no
    /// callback for this purpose, but it calls the one for progress. See CURLOPT_XFERINFOFUNCTION(3).
    private func observeTurns() throws(CurlFailure) {
        unsafe try handle.set(CURLOPT_XFERINFODATA, pointer: Unmanaged.passUnretained(self).toOpaque())
        let code = unsafe ccurl_set_progress_callback(handle.raw) { context, _, _, _, _ in
            let transfer = unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
            if let monitor = transfer.state.connection.monitor, monitor.recordCount < monitor.recordLimit,
                transfer.loop.readAhead(monitor) != .unread
            {
                monitor.recordLimit = 0
            }
            return 0
        }
        guard code == CURLE_OK else { throw CurlFailure(code: code) }
        try handle.set(CURLOPT_NOPROGRESS, false)
    }

    /// Removes the request from its connection's streams.
    func leaveStream() {
        guard let stream = state.connection.stream, let monitor = state.connection.monitor else { return }
        state.connection.monitor = nil
        monitor.close(stream)
        loop.reviewClosing(monitor)
        if monitor.isSpent, monitor.waiting.isEmpty { loop.retire(monitor) }
    }

    private func connectionMonitor() -> HTTP2Monitor? {
        guard state.connection.isHTTP2, let socket = state.connection.socket else { return nil }
        if let monitor = loop.monitors[socket] { return monitor }
        // The streams are counted from the first one.
        guard state.connection.isFirst else { return nil }
        // With TLS to a proxy, the BIO of encrypted bytes is not the socket's. libcurl's own requests to a
        // DNS-over-HTTPS resolver could open streams that are not counted.
        guard exchange.isSecure, !mayUseTLSProxy, exchange.options.connection.dnsOverHTTPS == nil,
            let session = unsafe tlsSession,
            let monitor = unsafe HTTP2Monitor(
                session, socket: socket, keepsAnswers: loop.context.defects.contains(.lostAnswers))
        else { return nil }
        loop.watchFrames(monitor)
        return monitor
    }

    /// Whether the server has ended the stream and all of the response's body was received.
    var isStreamWhole: Bool {
        guard let stream = state.connection.stream, stream.isEnded, stream.bodySize == state.receiving.count,
            state.connection.monitor?.answer(on: stream)?.isMalformed != true
        else { return false }
        guard let length = state.parser.framing.contentLength, !state.parser.framing.hasNoBody,
            exchange.request.method != .head
        else {
            return true
        }
        return length == Int64(stream.bodySize)
    }

    /// Whether libcurl 7.88 makes no progress on an exchange whose response is complete: it waits for the request's
    /// body, which has no bytes to send yet, although the server reset the stream without an error.
    var isForgotten: Bool {
        state.connection.stream?.isReset == true && state.sending.isPaused && !state.receiving.isPaused
    }

    /// Whether the server has completed its response. libcurl has not handed it on if it repeats the request.
    var hasLostAnswer: Bool {
        guard let stream = state.connection.stream, stream.isEnded else { return false }
        guard let answer = state.connection.monitor?.answer(on: stream), !answer.isMalformed else { return false }
        return answer.head != nil
    }

    /// Delivers a response that the server completed and libcurl lost, because the server reset the stream or ended the
    /// connection. If neither happened, nghttp2 has refused it. The cookies in its head are not stored by libcurl.
    func receiveLostAnswer() {
        guard state.failure == nil, state.receiving.refusedPart == nil, !state.parser.isInHead,
            let stream = state.connection.stream, stream.isEnded, !isStreamWhole || !state.parser.isComplete,
            let monitor = state.connection.monitor, let answer = monitor.answer(on: stream), !answer.isMalformed,
            stream.isReset || monitor.isOver
        else { return }
        if !state.parser.isComplete {
            guard let lines = answer.head.flatMap(Self.lines) else { return }
            for line in lines {
                let count = unsafe Array(line.utf8).withUnsafeBytes { unsafe receiveHeader($0) }
                guard count == line.utf8.count else { return }
            }
        }
        let missing = stream.bodySize - state.receiving.count
        guard missing > 0, missing <= answer.body.count else { return }
        unsafe answer.body.suffix(missing).withUnsafeBytes { bytes in
            unsafe _ = receiveContent(bytes, regardlessOfCapacity: true)
        }
    }

    /// Receives the trailers of a response that has ended before its request, as far as they are kept.
    func receiveLostTrailers() {
        guard !state.parser.hasTrailers, let stream = state.connection.stream, stream.isEnded,
            let answer = state.connection.monitor?.answer(on: stream)
        else { return }
        for (name, value) in answer.trailers where HTTPField.Name(name) != nil && HTTPField.isValidValue(value) {
            let line = Array("\(name): \(value)\r\n".utf8)
            guard unsafe line.withUnsafeBytes({ unsafe receiveHeader($0) }) == line.count else { return }
        }
    }

    /// Returns the lines of a head, in the form in which libcurl passes them on; `nil` if a field is invalid.
    private static func lines(_ fields: [(name: String, value: String)]) -> [String]? {
        guard let status = fields.first?.value else { return nil }
        var lines = ["HTTP/2 \(status) \r\n"]
        for (name, value) in fields.dropFirst() {
            guard HTTPField.Name(name) != nil, HTTPField.isValidValue(value) else { return nil }
            lines.append("\(name): \(value)\r\n")
        }
        return lines + ["\r\n"]
    }

    /// Whether the response is delimited only by the end of the stream and the server has not ended the stream.
    var isStreamCut: Bool {
        guard let stream = state.connection.stream, stream.hasHead, !stream.isEnded else { return false }
        return state.parser.isComplete && state.parser.framing.contentLength == nil && !state.parser.framing.hasNoBody
            && exchange.request.method != .head
    }

    /// The error for a truncated response, or for a connection on which the server violated the protocol.
    var streamError: TransportError {
        guard state.parser.hasBegun else { return failure(.connectionLost(.beforeResponse)) }
        return failure(state.connection.stream?.isReset == true ? earlyEnd : .invalidResponse(.framing))
    }

    /// Whether an overloaded server reset the stream before its response, and the request may be sent again later, on the
    /// same connection. Node.js does so while the bodies of other streams fill its memory.
    var mayRepeatLater: Bool {
        // libcurl may have read no part of a head that is followed by a reset.
        guard state.clock.connected != nil, let stream = state.connection.stream, stream.rejection == .overload,
            !stream.hasHead, !state.parser.hasBegun
        else { return false }
        return exchange.mayBeRepeated && !state.sending.hasSentTrailers && state.repeating.mayMove(sendingAtMost: 10)
    }

    /// Whether the request is sent again because the server states that it has not processed it, or that it is overloaded.
    var mayRepeatRejected: Bool { state.failure == nil && (mayRepeatUnprocessed || mayRepeatLater) }

    /// Whether the server states that it has not processed the request, which is then sent again.
    ///
    /// A server that closes each connection after some streams may refuse a request several times, while it processes
    /// some others each time. A server that refuses individual streams may do so because it cannot process the request,
    /// such as one with a large body.
    var mayRepeatUnprocessed: Bool {
        // What a server said about the stream does not hold for the next connection.
        guard state.clock.connected != nil, state.isUnprocessed, let stream = state.connection.stream,
            !state.sending.hasSentTrailers
        else { return false }
        return state.repeating.mayMove(
            sendingAtMost: stream.rejection == .leftOut ? TransferRepeating.maximumAttempts : 10)
    }
}
