// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import FoundationEssentials

extension CurlEngine {
    /// Starts the opening handshake on a connection that libcurl has made for a WebSocket.
    func upgrade(_ transfer: Transfer, _ channel: WebSocketChannel) {
        guard let socket = transfer.handle.activeSocket else {
            return finish(transfer, .failure(transfer.failure(.connectionLost(.beforeResponse))))
        }
        let handshake = WebSocketHandshake(channel.options)
        let connection = WebSocketConnection(
            channel, handshake, ConnectionStream(transfer.handle), socket: socket,
            capacity: transfer.exchange.options.streamBufferSize, now: state.now)
        do throws(TransportError) {
            let head = try handshake.head(
                of: transfer.exchange.request, cookies: try context.shares.field(for: transfer.exchange, own: nil))
            channel.withOutput { $0.append(head) }
        } catch {
            return finish(transfer, .failure(error))
        }
        transfer.connection = connection
        state.upgraded[socket] = transfer
        serve(transfer)
    }

    /// Sends and receives what is possible on a WebSocket connection, and watches its socket for more.
    func serve(_ transfer: Transfer) {
        guard let connection = transfer.connection, !transfer.isFinished else { return }
        conclude(transfer) { () throws(WebSocketConnection.End) in
            if try connection.serve(transfer) { post(.serveWebSocket(transfer.exchange)) }
        }
        guard !transfer.isFinished else { return }
        var readiness: Readiness = connection.wantsInput ? .readable : []
        if connection.channel.hasOutput { readiness.insert(.writable) }
        state.watch(connection.socket, for: readiness)
        state.noteChange(of: transfer)
    }

    /// Sends a ping on a WebSocket connection if one is due, or ends the connection if a limit has expired.
    func reviewLimits(of transfer: Transfer, _ connection: WebSocketConnection) {
        if let limit = transfer.nextLimit, limit.kind == .total, limit.deadline <= state.now {
            return finish(transfer, .failure(transfer.timeoutError(limit)))
        }
        conclude(transfer) { () throws(WebSocketConnection.End) in try connection.review(transfer) }
        serve(transfer)
    }

    /// Ends the exchange of a connection that was refused by a response whose body does not go on.
    func endRefusal(of transfer: Transfer, _ connection: WebSocketConnection) {
        conclude(transfer) { () throws(WebSocketConnection.End) in try connection.endRefusal(of: transfer) }
    }

    private func conclude(_ transfer: Transfer, _ step: () throws(WebSocketConnection.End) -> Void) {
        do throws(WebSocketConnection.End) {
            try step()
        } catch {
            switch error {
            case .failed(let error): finish(transfer, .failure(error))
            case .complete: finish(transfer, .success(ResponseEnding(metrics: transfer.measure())))
            }
        }
    }
}

extension EasyHandle {
    /// The socket of a connection that was made without a transfer; `nil` if there is none. See
    /// CURLINFO_ACTIVESOCKET(3).
    var activeSocket: Int32? {
        var socket = CCURL_SOCKET_BAD
        guard unsafe ccurl_get_socket(raw, &socket) == CURLE_OK, socket != CCURL_SOCKET_BAD else { return nil }
        return socket
    }

    /// Sets the options for a connection that is made without a transfer. See CURLOPT_CONNECT_ONLY(3).
    ///
    /// A proxy is asked for a tunnel for ws URLs, too (RFC 6455 §4.1).
    func applyUpgrade() throws(CurlFailure) {
        try set(CURLOPT_CONNECT_ONLY, true)
        try set(CURLOPT_HTTPPROXYTUNNEL, true)
        try set(CURLOPT_FRESH_CONNECT, true)
        // libcurl receives nothing but a proxy's answer.
        try set(CURLOPT_BUFFERSIZE, 1024)
    }
}

extension Transfer {
    /// Returns the error for a failure to send or receive on a connection that libcurl has made.
    func webSocketError(_ failure: ConnectionStream.Failure) -> TransportError {
        switch failure {
        case .libcurl(let code):
            return transportError(code == CURLE_SEND_ERROR && state.parser.isComplete ? CURLE_RECV_ERROR : code)
        case .system(let errno):
            var context = context()
            context.errno = errno
            return TransportError(earlyEnd, context: context)
        }
    }

    /// Returns the bytes of an established connection without libcurl; `nil` if only libcurl can send and receive them:
    /// with TLS to a proxy, the session's source is that proxy's session.
    var independentStream: ConnectionStream? {
        guard !mayUseTLSProxy, let connection else { return nil }
        guard exchange.isSecure else { return ConnectionStream(socket: connection.socket) }
        guard let session = unsafe tlsSession else { return nil }
        return unsafe ConnectionStream(session, socket: connection.socket)
    }
}
