// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSerialization
import ANSystem
import FoundationEssentials
import HTTPTypes

extension SessionManager {
    /// Opens a WebSocket connection and runs a closure with it (RFC 6455).
    ///
    /// ```swift
    /// try await session.withWebSocket(Request(url: chat)) { socket in
    ///     try await socket.send(.text("hello"))
    ///     for try await message in socket { print(message) }
    /// }
    /// ```
    ///
    /// The request is handled like any other: header fields, interceptors, retries until the connection is open,
    /// redirects, tokens and Basic credentials, cookies, proxies, TLS and address policies, and the limits on
    /// connections, of which it takes one. An HTTP proxy is asked for a tunnel. ``ANHTTP/Timeouts/idle`` applies until
    /// the connection is open; then pings find out whether it is alive. ``ANHTTP/Timeouts/total`` and `Request.timeout`
    /// include the time that the connection is open.
    ///
    /// When `body` returns, the connection is closed with code 1000, and this function returns after the server has
    /// answered, or after 5 s. When `body` throws or the task is cancelled, the connection ends at once.
    ///
    /// - Parameters:
    ///   - request: A request with the scheme `wss`, `ws`, `https` or `http`, the method `GET` and no body. The fields
    ///     of the handshake are added.
    ///   - options: The subprotocols, limits and pings; by default no subprotocol is offered, received messages may
    ///     have 16 MiB, and a ping is sent after 30 s without data.
    ///   - body: Receives the connection, which is valid only while the closure runs.
    /// - Returns: The value that `body` returns.
    /// - Throws: ``SessionError``: ``ANSerialization/SerializationError/rejected(_:)``, with the response's head and at
    ///   most 64 KiB of its body, if the status is not 101; ``ANHTTP/TransportError/Reason/invalidRequest(_:)`` for
    ///   another method, a body, or a status 101 from a transport that does not support WebSockets;
    ///   ``SessionError/invalidated`` if the manager was invalidated or shut down before; or the error of a connection
    ///   that could not be made, or that ended before all messages were sent. `CancellationError` if the calling task
    ///   is cancelled or the manager cancels its requests. The error that `body` throws, wrapped in a ``SessionError``
    ///   if it is a ``ANHTTP/TransportError`` or ``ANSerialization/SerializationError``.
    public nonisolated func withWebSocket<Value: Sendable>(
        _ request: Request, options: WebSocketOptions = WebSocketOptions(),
        _ body: (WebSocket) async throws -> Value
    ) async throws -> Value {
        try await withWebSocket(request, options: options, notingIn: nil, body)
    }

    /// Opens a WebSocket connection, and notes in a record which requests a server may have seen.
    nonisolated func withWebSocket<Value: Sendable>(
        _ request: Request, options: WebSocketOptions, notingIn record: AttemptRecord?,
        _ body: (WebSocket) async throws -> Value
    ) async throws -> Value {
        let slot = Lock<WebSocket?>(nil)
        let request = request.upgrading(options) { link in slot.withLock { $0 = WebSocket(link, options) } }
        return try await perform(
            registry.begin(.stream, request), request, delivery: .streamed, notingIn: record
        ) { head, response in
            guard head.status.code == 101, let socket = slot.withLock({ $0 }) else {
                throw await Self.refusal(head, response)
            }
            do {
                let value = try await body(socket)
                try await socket.close()
                return value
            } catch {
                socket.abandon()
                throw error
            }
        }
    }

    /// Returns the error for a response that does not open the connection.
    @inline(never)
    private static nonisolated func refusal(_ head: ResponseHead, _ body: ResponseBody) async -> any Error {
        do {
            try await switchingProtocols.validate(head, body, checksEmptyBody: true)
            return TransportError(
                .invalidRequest(.option("the session's transport does not support WebSocket connections.")))
        } catch {
            return error
        }
    }

    private static let switchingProtocols = ResponseValidation(statuses: [101])
}

extension Request {
    /// Returns the request that opens a WebSocket connection.
    @inline(never)
    fileprivate func upgrading(
        _ options: WebSocketOptions, accept: @escaping @Sendable (any WebSocketLink) -> Void
    ) -> Request {
        var request = self
        request.url = url.withoutWebSocketScheme
        request.webSocketUpgrade = WebSocketUpgrade(options, accept: accept)
        return request
    }
}

extension URL {
    /// The URL with `https` for `wss` and `http` for `ws` (RFC 6455 §3).
    var withoutWebSocketScheme: URL {
        let text = absoluteString
        switch scheme?.lowercased() {
        case "wss": return URL(string: "https" + text.dropFirst(3)) ?? self
        case "ws": return URL(string: "http" + text.dropFirst(2)) ?? self
        default: return self
        }
    }
}
