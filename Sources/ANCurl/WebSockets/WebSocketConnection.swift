// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import FoundationEssentials
import HTTPTypes

/// The loop's side of a WebSocket connection: libcurl has made the connection, and the bytes on it are ours. Used on the
/// loop's thread only.
///
/// libcurl returns the connection to the multi handle when it is established, and attaches it to the easy handle again
/// at the first curl_easy_send(3), which begins the handshake. See CURLOPT_CONNECT_ONLY(3).
final class WebSocketConnection {
    let channel: WebSocketChannel
    let socket: Int32
    private let options: WebSocketOptions
    private let capacity: Int
    private let handshake: WebSocketHandshake
    private var phase = Phase.upgrading
    /// The bytes of the response's head that belong to no complete line, or the body of a response that refuses.
    private var received: [UInt8] = []
    /// The size of a chunked body that refuses the connection, and its content as far as it was received.
    private var refusal = (size: 0, chunks: ChunkedBody(), content: [UInt8]())
    /// The number of bytes of ``received`` that are known to have no line end.
    private var scanned = 0
    private var decoder: WebSocketFrameDecoder
    private var machine: WebSocketStateMachine
    private var stream: ConnectionStream
    private(set) var clock: WebSocketClock
    private var keys = MaskingKeys()
    /// The error of the first attempt to send that failed. What has arrived before is received nevertheless.
    private var sendFailure: End?
    /// The number of frames that may still be handled in this turn of the loop.
    private var framesLeft = 0

    private enum Phase {
        /// The response's head is awaited.
        case upgrading
        /// The response is another one than 101, and its body is awaited.
        case refused
        /// Frames are exchanged.
        case open
        /// Both sides have sent a close frame: when the output was sent, the server closes the connection, so that it is
        /// the one that keeps the state TIME_WAIT (RFC 6455 §7.1.1).
        case ending
        /// The connection ends after an attempt to send the output.
        case failing
    }

    /// The end of a connection.
    enum End: Error {
        case failed(any Error)
        /// The connection was closed, or the response that refuses it is complete.
        case complete
    }

    init(
        _ channel: WebSocketChannel, _ handshake: WebSocketHandshake, _ stream: ConnectionStream, socket: Int32,
        capacity: Int, now: MonotonicInstant
    ) {
        self.channel = channel
        self.socket = socket
        self.handshake = handshake
        self.stream = stream
        self.capacity = capacity
        options = channel.options
        decoder = WebSocketFrameDecoder(maximumPayload: options.maximumMessageSize)
        machine = WebSocketStateMachine(maximumMessageSize: options.maximumMessageSize)
        clock = WebSocketClock(options, now: now)
    }

    /// Whether frames are exchanged.
    var isOpen: Bool {
        switch phase {
        case .upgrading, .refused: false
        case .open, .ending, .failing: true
        }
    }

    /// Whether the response is another one than 101, and its body is awaited.
    var isRefused: Bool { phase == .refused }

    /// Whether the connection must be read.
    var wantsInput: Bool { phase == .ending || phase != .failing && !channel.isPaused }

    /// Performs the commands of tasks, and sends and receives what is possible without waiting.
    ///
    /// - Returns: Whether more may be received without another event on the socket.
    func serve(_ transfer: Transfer) throws(End) -> Bool {
        framesLeft = Self.framesPerTurn
        // Frames that arrived before a pause come first.
        var hasMore = try handleFrames(of: transfer)
        perform(channel.takeCommands(), at: transfer.loop.now)
        try sendUnlessLost(transfer)
        if !hasMore, wantsInput { hasMore = try receive(by: transfer) }
        if let sendFailure, !hasMore { throw phase == .open ? sendFailure : .complete }
        if hasMore { try sendUnlessLost(transfer) } else { try send(by: transfer) }
        if phase == .open || phase == .ending { channel.flush() }
        return hasMore && wantsInput
    }

    /// Sends what is possible without waiting. If the connection is lost, what has arrived is received first: messages, and
    /// the reason in a close frame.
    private func sendUnlessLost(_ transfer: Transfer) throws(End) {
        do throws(End) {
            try send(by: transfer)
        } catch {
            guard case .failed(let failure) = error, phase == .open else { throw error }
            sendFailure = error
            channel.failOutput(failure)
        }
    }

    /// Sends a ping if one is due.
    ///
    /// - Throws: ``End`` if a time limit has expired.
    func review(_ transfer: Transfer) throws(End) {
        let now = transfer.loop.now
        switch clock.step(at: now, isPaused: channel.isPaused, after: outputCount) {
        case .none: return
        case .ping:
            append(WebSocketFrame(.ping))
            _ = try serve(transfer)
        case .lost(let limit): throw .failed(transfer.timeoutError(limit))
        // The server did not answer the close frame, or does not read what was to be sent before.
        case .closed:
            throw channel.hasOutput && phase != .ending ? .failed(transfer.failure(transfer.earlyEnd)) : .complete
        }
    }

    /// The number of bytes that were sent or wait for it.
    private var outputCount: Int { channel.withOutput { $0.acceptedCount + $0.count } }

    /// The number of bytes that the system has delivered; `nil` if it does not know.
    private var deliveredCount: Int? {
        Transfer.undelivered(on: socket).map { undelivered in
            channel.withOutput { $0.acceptedCount - Int(undelivered) }
        }
    }

    /// Notes how much of the output the system has delivered.
    func noteDelivery(of transfer: Transfer) {
        guard isOpen, let count = deliveredCount else { return }
        clock.noteDelivery(of: count, isBlocked: channel.hasOutput, at: transfer.loop.now)
    }

    private func perform(_ commands: [WebSocketChannel.Command], at now: MonotonicInstant) {
        for command in commands {
            switch command {
            case .close(let closure): close(closure, at: now)
            case .fail(let violation):
                close(WebSocketClosure(code: violation.code, reason: violation.reason), at: now)
                phase = .failing
            }
        }
    }

    private func close(_ closure: WebSocketClosure, at now: MonotonicInstant) {
        guard let frame = machine.close(closure) else { return }
        clock.close(at: now, after: (outputCount, deliveredCount ?? 0))
        append(frame)
    }

    /// Adds a control frame to those to be sent.
    private func append(_ frame: WebSocketFrame) {
        channel.withOutput { $0.append(frame.encoded(mask: keys.next())) }
    }

    private func append(_ pongs: PongBatch) {
        let frames = pongs.frames
        guard !frames.isEmpty else { return }
        channel.withOutput { output in
            for pong in frames { output.appendPong(pong.encoded(mask: keys.next())) }
        }
    }

    // MARK: Sending

    private func send(by transfer: Transfer) throws(End) {
        // Frames of the protocol do not wait for a socket that takes no more.
        guard sendFailure == nil else { return channel.withOutput { $0.discard() } }
        // Tasks use the output between the calls.
        for turn in 1... {
            // The last frame of a connection that fails is sent as far as the socket takes it.
            guard phase == .failing || turn <= Self.sendsPerTurn else { break }
            let count = try channel.withOutput { output throws(End) in
                try output.sendOnce { bytes throws(End) in
                    do throws(ConnectionStream.Failure) {
                        return try stream.send(bytes)
                    } catch {
                        // A server that has sent its close frame need not read any more.
                        throw phase == .ending ? .complete : .failed(transfer.webSocketError(error))
                    }
                }
            }
            if count == 0 { break }
        }
        if phase == .failing { throw .complete }
        if phase == .ending, !channel.hasOutput { clock.finish(at: transfer.loop.now) }
    }

    // MARK: Receiving

    /// Receives what has arrived; returns whether there may be more.
    private func receive(by transfer: Transfer) throws(End) -> Bool {
        let buffer = transfer.loop.receiveBuffer
        for _ in 0..<Self.readsPerTurn {
            let (count, hasMore) = try unsafe receive(into: buffer.bytes, of: transfer)
            guard let count else { try receiveEnd(of: transfer) }
            if count > 0 {
                clock.noteInput(at: transfer.loop.now)
                let bytes = unsafe [UInt8](UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]))
                // The close frame is answered before the end of the connection is read.
                if try receive(bytes, of: transfer) || phase == .ending { return true }
            }
            guard hasMore else { return false }
        }
        return true
    }

    private func receive(
        into buffer: UnsafeMutableRawBufferPointer, of transfer: Transfer
    ) throws(End) -> (count: Int?, hasMore: Bool) {
        do throws(ConnectionStream.Failure) {
            let size = min(buffer.count, transfer.exchange.context.memory?.chunk ?? .max)
            return unsafe try stream.receive(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<size]))
        } catch {
            // The status is known; how its body ends does not matter.
            guard phase != .refused else { return (nil, false) }
            throw phase == .ending ? .complete : .failed(transfer.webSocketError(error))
        }
    }

    /// Handles bytes that have arrived; returns whether frames may be left.
    private func receive(_ bytes: [UInt8], of transfer: Transfer) throws(End) -> Bool {
        if phase != .open { transfer.state.clock.noteActivity(at: transfer.loop.now) }
        switch phase {
        case .upgrading: return try receiveHead(bytes, of: transfer)
        case .refused:
            received += bytes
            if let body = body(of: transfer, isEnd: false) { try refuse(with: body, transfer) }
            return false
        case .open:
            transfer.state.receiving.take(bytes.count)
            decoder.append(bytes)
            return try handleFrames(of: transfer)
        case .ending, .failing: return false
        }
    }

    /// Handles the end of the connection, which is an error before the server's close frame.
    private func receiveEnd(of transfer: Transfer) throws(End) -> Never {
        if phase == .refused { try endRefusal(of: transfer) }
        if machine.isOpen { throw .failed(transfer.transportError(CURLE_GOT_NOTHING)) }
        throw .complete
    }

    private func receiveHead(_ bytes: [UInt8], of transfer: Transfer) throws(End) -> Bool {
        received += bytes
        var start = 0
        while phase == .upgrading, let end = received[max(start, scanned)...].firstIndex(of: UInt8(ascii: "\n")) {
            _ = unsafe received[start...end].withUnsafeBytes { unsafe transfer.receiveHeader($0) }
            if let failure = transfer.state.failure { throw .failed(failure) }
            start = end + 1
            scanned = start
            if transfer.state.parser.isComplete { phase = transfer.state.parser.status.code == 101 ? .open : .refused }
        }
        received.removeFirst(start)
        scanned = received.count
        switch phase {
        case .upgrading:
            let limit = transfer.exchange.options.maximumHeadSize
            guard received.count <= limit else {
                throw .failed(transfer.failure(.responseTooLarge(.head(limit: limit))))
            }
            return false
        case .open:
            let rest = received
            received = []
            return try receive(rest, of: transfer)
        default: return try receive([], of: transfer)
        }
    }

    /// Checks the head of a response with status 101, and begins to use the connection without libcurl.
    func accept(_ head: ResponseHead, _ stream: ConnectionStream?) throws(WebSocketViolation) {
        let agreement = try handshake.agreement(by: head)
        channel.open(agreement, socket: stream?.socket)
        if agreement.deflate != nil {
            decoder = WebSocketFrameDecoder(maximumPayload: options.maximumMessageSize, allowsCompression: true)
        }
        if let stream { self.stream = stream }
        clock.open()
    }

    /// Handles the frames that have arrived, until the reader's buffer is full.
    ///
    /// - Returns: Whether some may be left. Then nothing more is received in this turn, not even the end of the connection:
    ///   a reader on another thread may empty its buffer at any moment, and the frames come first.
    private func handleFrames(of transfer: Transfer) throws(End) -> Bool {
        var pongs = PongBatch()
        do throws(WebSocketViolation) {
            defer { append(pongs) }
            var isFull = channel.isPaused
            while phase == .open {
                guard !isFull, framesLeft > 0 else { return true }
                guard let frame = try decoder.next() else { return false }
                framesLeft -= 1
                switch try machine.receive(frame) {
                case .none: break
                case .deliver(let frame):
                    isFull = channel.add(frame, capacity: capacity)
                    if isFull { clock.pause() }
                case .answer(let pong): pongs.append(pong)
                case .closed(let closure, let answer):
                    channel.receive(closure)
                    if let answer { append(answer) }
                    clock.close(at: transfer.loop.now, after: nil)
                    phase = .ending
                }
            }
            return false
        } catch {
            close(WebSocketClosure(code: error.code, reason: error.reason), at: transfer.loop.now)
            // The failure is known; whether the close frame can be sent does not matter.
            try? send(by: transfer)
            channel.flush()
            throw .failed(transfer.failure(error.failure(limit: options.maximumMessageSize)))
        }
    }

    // MARK: Refusals

    /// Returns the body of a response that refuses the connection, or the beginning of a long one; `nil` if more has to
    /// be received.
    private func body(of transfer: Transfer, isEnd: Bool) -> [UInt8]? {
        let parser = transfer.state.parser
        let framing: UnreadResponse.Framing =
            parser.framing.hasNoBody
            ? .length(0)
            : parser.framing.contentLength.map { .length($0) } ?? (parser.framing.isEndedByClose ? .close : .chunked)
        if case .chunked = framing {
            refusal.size += received.count
            refusal.content += refusal.chunks.decode(received).content
            received = []
            let isOver = isEnd || refusal.chunks.isComplete || refusal.chunks.isMalformed
            return isOver || refusal.size >= Self.refusalSize ? refusal.content : nil
        }
        let isFull = isEnd || received.count >= Self.refusalSize
        switch framing {
        case .length(let length) where !isFull && received.count < length: return nil
        case .close where !isFull: return nil
        default:
            var response = UnreadResponse(received)
            let body = response.nextBody(framing)
            return body.isComplete || isFull ? body.bytes : nil
        }
    }

    /// Ends the exchange with as much of the body as has arrived.
    func endRefusal(of transfer: Transfer) throws(End) -> Never {
        try refuse(with: body(of: transfer, isEnd: true) ?? [], transfer)
    }

    private func refuse(with body: [UInt8], _ transfer: Transfer) throws(End) -> Never {
        _ = unsafe body.withUnsafeBytes { unsafe transfer.exchange.receive($0) }
        throw .complete
    }

    /// The maximum number of bytes read in one turn of the loop, in buffers. Other connections follow.
    private static let readsPerTurn = 16
    /// The maximum number of frames handled in one turn: 64 KiB may be 32,768 of them.
    private static let framesPerTurn = 1 << 14
    /// The maximum number of TLS records or parts sent in one turn, between those of other connections.
    private static let sendsPerTurn = 64
    /// The number of bytes of a refusing response's body after which the rest is discarded.
    private static let refusalSize = 64 << 10
}
