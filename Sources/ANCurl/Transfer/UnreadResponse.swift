// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import COpenSSL
import Glibc
import HTTPTypes

/// The bytes of an HTTP/1.1 response that libcurl left in the socket.
package struct UnreadResponse {
    private let bytes: ArraySlice<UInt8>
    private var position: Int

    /// The way in which the end of a body is determined (RFC 9112 §6.3).
    package enum Framing: Equatable {
        /// By its length in bytes, which is 0 if there is no body.
        case length(Int64)
        /// By the chunked transfer coding (RFC 9112 §7.1).
        case chunked
        /// By the end of the connection.
        case close
    }

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes[...]
        position = 0
    }

    /// Returns the next line with its terminator; `nil` if it is incomplete.
    package mutating func nextLine() -> ArraySlice<UInt8>? {
        guard let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        defer { position = end + 1 }
        return bytes[position...end]
    }

    /// Returns the body, which follows the head, as far as it was received, the lines of its trailers, and whether it is
    /// complete.
    ///
    /// A body that the end of the connection delimits is not complete: after a failure to send, the system does not
    /// tell an orderly end from a reset.
    package mutating func nextBody(_ framing: Framing) -> (bytes: [UInt8], trailers: [[UInt8]], isComplete: Bool) {
        switch framing {
        case .length(let length):
            let part = take(length)
            return (Array(part), [], Int64(part.count) == length)
        case .chunked:
            var chunks = ChunkedBody()
            let (content, trailers) = chunks.decode(take(.max))
            return (content, trailers, chunks.isComplete)
        case .close:
            return (Array(take(.max)), [], false)
        }
    }

    private mutating func take(_ count: Int64) -> ArraySlice<UInt8> {
        let part = bytes[position...].prefix(Int(clamping: count))
        position = part.endIndex
        return part
    }
}

// Responses to unfinished request bodies over HTTP/1.1. A server that refuses a body may respond and close the
// connection without reading the rest, so that the next send fails. libcurl then gives up, even if the response is
// waiting in the socket (RFC 9112 §9.6). Over HTTP/2, see ``HTTP2Answers``.

extension Transfer {
    /// The maximum number of bytes read from a socket that libcurl closes.
    private static let maximumUnreadSize = 256 << 10

    /// Prepares for a failure to send on the connection in use: over HTTP/1.1 a response may be waiting, and over HTTP/2
    /// also GOAWAY, which says whether the request was processed.
    func expectSendFailure() {
        // That of an earlier connection says nothing of this one.
        state.connection.handshake = nil
        let mayReceive = state.connection.isHTTP2 ? state.connection.monitor != nil : exchange.sendsBody
        guard mayReceive, !mayUseTLSProxy, let socket = usedSocket else { return }
        guard exchange.isSecure else { return loop.senders[socket] = self }
        guard let session = unsafe tlsSession else { return }
        // The socket holds encrypted bytes, of which libcurl discards some before it closes the socket. Failures are
        // hidden from OpenSSL instead: libcurl then reads what has arrived, or the end of the connection.
        guard let handshake = unsafe Handshake.of(session), let sink = unsafe SSL_get_wbio(session) else { return }
        state.connection.handshake = handshake
        let pointer = unsafe Unmanaged.passUnretained(handshake).toOpaque()
        unsafe BIO_set_callback_arg(sink, pointer.assumingMemoryBound(to: CChar.self))
        unsafe BIO_set_callback_ex(sink) { sink, operation, _, count, _, _, result, written in
            guard operation == BIO_CB_WRITE | BIO_CB_RETURN, result <= 0,
                unsafe BIO_test_flags(sink, BIO_FLAGS_SHOULD_RETRY) == 0
            else { return Int(result) }
            if let pointer = unsafe BIO_get_callback_arg(sink) {
                unsafe Unmanaged<Handshake>.fromOpaque(pointer).takeUnretainedValue().hasLostOutput = true
            }
            unsafe written?.pointee = count
            return 1
        }
    }

    /// Forgets the connection when the request is finished or repeated.
    func leaveConnection() {
        endPause()
        leaveStream()
        stopExpectingSendFailure()
    }

    /// Forgets that a failure to send was expected on the connection in use.
    func stopExpectingSendFailure() {
        if let socket = usedSocket, loop.senders[socket] === self { loop.senders[socket] = nil }
    }

    /// Keeps the bytes that wait in a socket, which libcurl is about to close.
    func keepUnreadResponse(_ socket: Int32) {
        // Interim responses, or the beginning of the response, may have been received.
        guard !isFinished, !state.parser.isInHead, !state.receiving.isPaused, state.failure == nil else { return }
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: Self.maximumUnreadSize) { buffer, count in
            while count < buffer.count {
                let received = unsafe recv(
                    socket, buffer.baseAddress?.advanced(by: count), buffer.count - count, Int32(MSG_DONTWAIT))
                guard received > 0 else { break }
                count += received
            }
        }
        state.receiving.keep(bytes)
    }

    /// Delivers the response that was waiting when libcurl failed to send the request's body. The cookies in its head
    /// are not stored by libcurl.
    func receiveUnreadResponse() {
        let bytes = state.receiving.takeUnread()
        guard !bytes.isEmpty, !isBetweenConnections else { return }
        guard !state.parser.isComplete else { return receiveUnreadBody(bytes) }
        // libcurl may hold the beginning of the line.
        guard bytes.starts(with: "HTTP/".utf8) else { return }
        var response = UnreadResponse(bytes)
        while !state.parser.isComplete {
            guard let line = response.nextLine(), receive(line) || state.parser.isComplete else { return }
        }
        guard state.failure == nil, state.receiving.refusedPart == nil else { return }
        // The whole body is decoded here.
        state.receiving.chunks = nil
        let body = response.nextBody(framing)
        if !body.bytes.isEmpty {
            let taken = unsafe body.bytes.withUnsafeBytes { unsafe receiveContent($0, regardlessOfCapacity: true) }
            guard taken == body.bytes.count else { return }
        }
        for line in body.trailers where !receive(line[...]) { return }
        state.receiving.finishUnread(isWhole: body.isComplete)
    }

    /// Whether the response to a challenge is held, and there is no connection for the answer.
    var isBetweenConnections: Bool { state.receiving.isHeld && state.clock.connected == nil }

    /// Delivers the rest of a body whose beginning libcurl has received.
    private func receiveUnreadBody(_ bytes: [UInt8]) {
        guard state.receiving.refusedPart == nil, framing != .length(0) else { return }
        var rest = bytes[...]
        if state.receiving.chunks == nil {
            guard let length = state.parser.framing.contentLength else { return }
            rest = rest.prefix(max(0, Int(clamping: length - Int64(state.receiving.count))))
        }
        let taken = unsafe rest.withUnsafeBytes { unsafe receiveBody($0, regardlessOfCapacity: true) }
        let isAtEnd = state.parser.framing.contentLength == Int64(state.receiving.count)
        state.receiving.finishUnread(isWhole: taken == rest.count && isAtEnd)
    }

    /// Parses a line of a head or of trailers; returns `false` if it ends the transfer.
    private func receive(_ line: ArraySlice<UInt8>) -> Bool {
        unsafe line.withUnsafeBytes { unsafe receiveHeader($0) } == line.count
    }

    private var framing: UnreadResponse.Framing {
        let parser = state.parser
        if parser.framing.hasNoBody || exchange.request.method == .head { return .length(0) }
        if let length = parser.framing.contentLength { return .length(length) }
        return parser.framing.isEndedByClose ? .close : .chunked
    }
}
