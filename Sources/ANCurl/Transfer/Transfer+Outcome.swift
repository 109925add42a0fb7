// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import FoundationEssentials
import Glibc
import HTTPTypes

extension Transfer {
    /// Returns the result of the exchange, after libcurl finished it with `code`.
    func outcome(_ code: CURLcode) -> Result<ResponseEnding, any Error> {
        let isComplete = code == CURLE_OK || isResponseComplete(code)
        // A challenge that is the response refuses the body, whose source may fail.
        if isComplete, state.failure == nil { deliverHeldHead() }
        if let failure = state.failure ?? uploadError { return .failure(failure) }
        guard isComplete else { return .failure(transportError(code)) }
        guard !isStreamCut else { return .failure(streamError) }
        // libcurl drops what it holds for a reader without room; see ``CurlDefects/readPauses``.
        guard state.parser.isComplete, !wasCut, !state.receiving.isPaused, state.receiving.chunks?.isComplete != false
        else {
            return .failure(failure(earlyEnd))
        }
        if let error = lengthError(after: code) { return .failure(error) }
        receiveLostTrailers()
        return .success(ResponseEnding(trailers: state.parser.finishTrailers(), metrics: measure()))
    }

    /// Whether a body delimited by the end of the connection ended without the server's `close_notify`.
    private var wasCut: Bool { state.receiving.handshake?.isClosedByServer == false }

    /// The error for a body that is shorter than declared, or over HTTP/2 or HTTP/3 one whose size differs from the declared
    /// one, or from that of the server's frames (RFC 9113 §8.1.1); `nil` for none.
    private func lengthError(after code: CURLcode) -> TransportError? {
        let isBodiless = state.parser.framing.hasNoBody || exchange.request.method == .head
        let declared = isBodiless ? nil : state.parser.framing.contentLength
        guard state.parser.framing.isMultiplexed else {
            // libcurl passes over the body of a challenge that it could not answer after all.
            guard code == CURLE_OK, let declared, Int64(state.receiving.count) < declared else { return nil }
            return failure(earlyEnd)
        }
        let sizes = [declared, state.connection.stream.flatMap { $0.isEnded ? Int64($0.bodySize) : nil }].compactMap(
            \.self)
        guard let wrong = sizes.first(where: { $0 != Int64(state.receiving.count) }) else { return nil }
        return failure(Int64(state.receiving.count) < wrong ? earlyEnd : .invalidResponse(.framing))
    }

    /// Whether the response is complete, although libcurl ended the transfer with an error.
    private func isResponseComplete(_ code: CURLcode) -> Bool {
        guard state.parser.isComplete, !isBetweenConnections else { return false }
        if isMalformed(code) { return false }
        if isStreamWhole || state.receiving.isUnreadWhole || state.receiving.chunks?.isComplete == true { return true }
        // The server may close the connection before libcurl has read the end of the stream.
        if state.connection.isHTTP3, state.parser.framing.contentLength == Int64(state.receiving.count) { return true }
        switch code {
        case CURLE_TOO_MANY_REDIRECTS:
            return true
        case CURLE_WRITE_ERROR:
            return exchange.request.method == .head
        case CURLE_SEND_ERROR:
            // The server rejected the rest of the request's body.
            return state.parser.framing.hasNoBody || exchange.request.method == .head
                || state.parser.framing.contentLength == handle.offset(CURLINFO_SIZE_DOWNLOAD_T)
        case CURLE_OPERATION_TIMEDOUT:
            return state.receiving.isOver && isResponseWhole
        case CURLE_READ_ERROR:
            // libcurl 8.7 and later report the end that was forced upon a request's body, but a response that the server
            // cut as soon as its connection ends.
            return state.sending.body == .ended
        default:
            return false
        }
    }

    /// Returns the metrics of the exchange so far. See curl_easy_getinfo(3), TIMES.
    func measure() -> TransferMetrics {
        var metrics = state.metrics
        let clock = state.clock
        metrics.queued = clock.start.duration(to: clock.leftQueue ?? loop.now)
        metrics.total = clock.start.duration(to: loop.now)
        guard clock.leftQueue != nil else { return metrics }
        metrics.sendCount = max(1, state.repeating.attempts)
        metrics.isConnectionReused = clock.connected != nil && handle.long(CURLINFO_NUM_CONNECTS) == 0
        if !metrics.isConnectionReused {
            metrics.nameLookup = time(CURLINFO_NAMELOOKUP_TIME_T)
            metrics.connect = time(CURLINFO_CONNECT_TIME_T)
            metrics.tlsHandshake = time(CURLINFO_APPCONNECT_TIME_T)
        }
        metrics.requestStart = time(CURLINFO_PRETRANSFER_TIME_T)
        metrics.firstByte = time(CURLINFO_STARTTRANSFER_TIME_T)
        // The loop's clock is read at the start of a turn; libcurl's time is that of the last byte.
        metrics.total = max(metrics.total, time(CURLINFO_TOTAL_TIME_T) ?? .zero)
        metrics.requestHeadBytes = Int64(handle.long(CURLINFO_REQUEST_SIZE))
        metrics.requestBodyBytes = Int64(state.sending.count)
        metrics.responseHeadBytes = Int64(handle.long(CURLINFO_HEADER_SIZE))
        // libcurl 8 counts the framing of chunks that it does not decode.
        metrics.responseBodyBytes =
            state.receiving.chunks == nil
            ? handle.offset(CURLINFO_SIZE_DOWNLOAD_T) : Int64(state.receiving.count)
        // libcurl knows no version of a response that it lost.
        metrics.httpVersion =
            HTTPVersion(curlNumber: handle.long(CURLINFO_HTTP_VERSION))
            ?? (state.parser.isComplete ? negotiatedVersion : nil)
        return metrics
    }

    /// Reports the end of the exchange.
    func reportEnd(_ result: Result<ResponseEnding, any Error>, to events: any ExchangeEventSink) {
        if exchange.sendsBody { events.receive(.uploadProgress(uploadProgress)) }
        if state.parser.isComplete { events.receive(.downloadProgress(downloadProgress)) }
        var metrics = if case .success(let ending) = result { ending.metrics } else { measure() }
        if case .failure(let error as TransportError) = result, case .timedOut = error.reason {
            metrics.hasTimedOut = true
        }
        events.receive(.finished(metrics))
    }

    /// Returns one of libcurl's times, measured from when the exchange was added to libcurl.
    private func time(_ info: CURLINFO) -> Duration? {
        let microseconds = handle.offset(info)
        guard microseconds > 0, let admitted = state.admitted else { return nil }
        return state.clock.start.duration(to: admitted) + .microseconds(microseconds)
    }

    /// Sets the total time limit in libcurl as well, slightly later than on the loop: a server can keep libcurl busy
    /// with bytes that carry no content, during which the loop waits for it. See CURLOPT_TIMEOUT_MS(3).
    func limitTime() throws(TransportError) {
        do throws(CurlFailure) {
            if let total = exchange.options.timeouts.total {
                let left = max(.zero, total.bounded - state.clock.start.duration(to: loop.now)) + .milliseconds(100)
                try handle.set(CURLOPT_TIMEOUT_MS, left.wholeMilliseconds)
            }
            try limitConnecting()
        } catch {
            throw error.transportError
        }
    }

    /// Sets the limit on connecting in libcurl, too, if libcurl gives a silent address half of what is left of it before it
    /// tries the next one. The loop's own limit ends the transfer, so libcurl's is set anew when that one is extended. See
    /// CURLOPT_CONNECTTIMEOUT_MS(3).
    func limitConnecting() throws(CurlFailure) {
        guard loop.context.defects.contains(.successiveAddresses) else { return }
        let start = countsQueue ? state.admitted : nil
        guard let limit = state.clock.connectLimit(countedSince: start, at: loop.now), limit != connectLimit
        else { return }
        try handle.set(CURLOPT_CONNECTTIMEOUT_MS, limit.wholeMilliseconds)
        connectLimit = limit
    }

    /// When the limit on connecting is set anew while the request waits; `nil` if that is not necessary.
    var nextConnectLimit: MonotonicInstant? { state.clock.nextConnectLimit(at: loop.now) }

    /// Whether libcurl's limit on connecting counts the time in which the request waits for a connection.
    var countsQueue: Bool { loop.context.defects.contains(.countedQueue) && state.admitted != nil }

    /// Returns the error for an expired time limit.
    func timeoutError(_ limit: TransferClock.Limit) -> TransportError {
        .timedOut(timeoutPhase, limit.duration, context())
    }

    var timeoutPhase: TransportError.TimeoutPhase {
        let clock = state.clock
        // A request that the server has not processed waits for another connection, of which libcurl tells nothing.
        guard clock.leftQueue != nil, !state.isUnprocessed else { return .queue }
        guard clock.connected != nil else {
            // QUIC has no phase between the two.
            guard let socket = state.connection.sockets.last else {
                return state.connection.triedAddress == nil ? .nameLookup : .connect
            }
            // libcurl reports that the connection is established only after the TLS handshake.
            return exchange.isSecure && SocketEndpoint.isConnected(socket) ? .tlsHandshake : .connect
        }
        if state.parser.isComplete { return .responseBody }
        return hasUnsentBody && !state.parser.hasBegun ? .request : .responseHead
    }

    /// Returns an error with the details of the transfer that are known so far.
    func failure(_ reason: TransportError.Reason) -> TransportError {
        TransportError(reason, context: context())
    }

    /// Returns the context of a failure: the details of the transfer that are known so far.
    func context(code: CURLcode? = nil) -> FailureContext {
        var context = FailureContext(exchange.request.url)
        if state.clock.leftQueue != nil {
            let host = handle.string(CURLINFO_PRIMARY_IP)
            context.address =
                host.isEmpty
                ? state.connection.triedAddress : SocketAddress(host: host, port: handle.long(CURLINFO_PRIMARY_PORT))
            let errno = handle.long(CURLINFO_OS_ERRNO)
            context.errno = errno != 0 ? Int32(truncatingIfNeeded: errno) : state.connection.socketError
        }
        context.curlCode = code.map { Int32($0.rawValue) }
        let words = message.text
        // It may quote a proxy of the environment.
        if !words.isEmpty { context.message = words.withoutUserInformation }
        context.elapsed = state.clock.start.duration(to: loop.now)
        context.sendCount = max(1, state.repeating.attempts)
        context.metrics = measure()
        return context
    }
}

extension HTTPVersion {
    fileprivate init?(curlNumber: Int) {
        switch curlNumber {
        case Int(CURL_HTTP_VERSION_1_0): self = .http1_0
        case Int(CURL_HTTP_VERSION_1_1): self = .http1_1
        case Int(CURL_HTTP_VERSION_2_0): self = .http2
        case Int(CURL_HTTP_VERSION_3): self = .http3
        default: return nil
        }
    }
}
