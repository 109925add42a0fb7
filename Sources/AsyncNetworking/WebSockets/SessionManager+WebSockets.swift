// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
import ANSystem
import FoundationEssentials
public import HTTPTypes

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
        var seen = SeenRequests()
        return try await withWebSocket(request, options: options, noting: &seen, body)
    }

    /// Opens a WebSocket connection, and notes which requests a server may have seen.
    nonisolated func withWebSocket<Value: Sendable>(
        _ request: Request, options: WebSocketOptions, noting seen: inout SeenRequests,
        _ body: (WebSocket) async throws -> Value
    ) async throws -> Value {
        let request = request.upgrading(options)
        let task = try registry.begin(.stream, request)
        defer { registry.end(task.id) }
        return try await pipeline.call(task, request, delivery: .streamed, reporting: nil) { request, call in
            defer { seen = call.seen }
            var request = request
            request.webSocketOptions = options
            return try await pipeline.respond(to: request, &call) { head, response in
                guard head.status.code == 101, let link = head.webSocket else {
                    throw await Self.refusal(head, response, on: pipeline.clock)
                }
                let socket = WebSocket(link, options, of: request, on: pipeline)
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
    }

    /// Returns the error for a response that does not open the connection.
    @inline(never)
    private static nonisolated func refusal(
        _ head: ResponseHead, _ body: ResponseBody, on clock: any Clock<Duration>
    ) async -> any Error {
        do {
            try await switchingProtocols.validate(head, body, checksEmptyBody: true, on: clock)
            return TransportError(
                .invalidRequest(.option("the session's transport does not support WebSocket connections.")))
        } catch {
            return error
        }
    }

    private static let switchingProtocols = ResponseValidation(statuses: [101])
    private static let goingAway = TransportError(.webSocketClosed(WebSocketClosure(code: 1001)))
}

extension Request {
    /// Returns the request that opens a WebSocket connection.
    @inline(never)
    fileprivate func upgrading(_ options: WebSocketOptions) -> Request {
        var request = self
        request.url = url.withoutWebSocketScheme
        request.webSocketOptions = options
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

extension SessionManager {
    /// Opens a WebSocket connection to a path or URL and runs a closure with it.
    ///
    /// Like ``withWebSocket(_:options:_:)``, which documents the connection and the errors, with the session's base URL
    /// and header fields.
    ///
    /// - Parameters:
    ///   - target: A path or URL as a string, resolved against the base URL, or a `URL`; with the scheme `wss`, `ws`,
    ///     `https` or `http`.
    ///   - headers: Header fields that replace all others of the same name; none by default.
    ///   - options: The subprotocols, limits and pings.
    ///   - body: Receives the connection, which is valid only while the closure runs.
    /// - Returns: The value that `body` returns.
    public nonisolated func withWebSocket<Value: Sendable>(
        _ target: some RequestTarget, headers: HTTPFields = [:], options: WebSocketOptions = WebSocketOptions(),
        _ body: (WebSocket) async throws -> Value
    ) async throws -> Value {
        try await withWebSocket(request(.get, target, headers: headers), options: options, body)
    }

    /// Runs a closure with a WebSocket connection, and again with another one each time that the connection is lost.
    ///
    /// | the connection | effect |
    /// |---|---|
    /// | cannot be made, is refused with a status that the retry policy retries, is lost, or its pings are not answered | another one, after a wait |
    /// | is closed by the server with code 1001 (going away), or 1011 to 1014 | another one, after a wait |
    /// | is refused by an open circuit of a ``CircuitBreaker``, or has waited for a route for too long | another one, after an open circuit when another request may be sent |
    /// | is closed by the server with code 1000 or another one, or fails otherwise | this function returns or throws |
    /// | `body` closes it, returns, or throws another error than that of the connection | this function returns or throws |
    ///
    /// `body` is run again after it has returned only if a closure with code 1001 has ended its iteration: a body whose
    /// work is done closes the connection, or returns before its iteration ends. If messages of a body that is done are
    /// lost with the connection, this function throws the error.
    ///
    /// The wait is `reconnectionTime` and the longer of the policy's backoff, which begins anew when a connection was
    /// open, and the `Retry-After` of a response that refuses the connection. Without a policy of the request,
    /// `Retry-After` may be any time, of which at most a day is waited for; otherwise the policy's `maximumRetryAfter`
    /// applies.
    /// Messages that were sent before a loss may not have arrived: `body` begins each connection with what the server
    /// must know, such as the last message that was received.
    ///
    /// ```swift
    /// try await session.withWebSockets(for: session.request(.get, "rooms/7")) { socket in
    ///     try await socket.send(.text("since \(last)"))
    ///     for try await message in socket { print(message) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - request: The request of ``withWebSocket(_:options:_:)``, sent for each connection. Without a
    ///     `Request.retryPolicy` there is no limit on the number of connections that fail in a row.
    ///   - options: The subprotocols, limits and pings.
    ///   - reconnectionTime: The shortest wait before another connection; 1 s by default. A negative one counts as zero.
    ///   - body: Receives each connection, which is valid only while the closure runs.
    /// - Throws: The error of the last connection, or that of `body`, as ``withWebSocket(_:options:_:)`` throws them;
    ///   `CancellationError` if the calling task is cancelled or the manager cancels its requests.
    public nonisolated func withWebSockets(
        for request: Request, options: WebSocketOptions = WebSocketOptions(), reconnectionTime: Duration = .seconds(1),
        _ body: (WebSocket) async throws -> Void
    ) async throws {
        var plan = ReconnectionPlan(request, reconnectionTime: max(.zero, reconnectionTime))
        var request = request
        request.retryPolicy = RetryPolicy.none
        while true {
            var seen = SeenRequests()
            plan.begin(at: pipeline.uptime.elapsed)
            var course = WebSocketCourse.notOpened
            var failure: (any Error)?
            do {
                try await withWebSocket(request, options: options, noting: &seen) { socket in
                    plan.receive()
                    do {
                        try await body(socket)
                        course = .returned(socket.core.readClosure)
                    } catch {
                        course = .threw(error, from: socket.core)
                        throw error
                    }
                }
            } catch {
                failure = error
            }
            try Task.checkCancellation()
            guard let ending = course.ending(failing: failure) else {
                if let failure { throw failure }
                return
            }
            guard case .reconnect(let wait) = plan.step(after: ending, seen: seen, at: pipeline.timing) else {
                throw failure ?? SessionError.transport(Self.goingAway)
            }
            try await pipeline.pause(wait)
        }
    }
}

/// The course of one of several connections for the same closure, as far as it decides about another connection.
enum WebSocketCourse {
    /// The connection was not opened, and the closure not run.
    case notOpened
    /// The closure has returned after its iteration ended with this closure of the server; `nil` if it did not.
    case returned(WebSocketClosure?)
    /// The closure has thrown an error, which may be that of the connection.
    case threw(any Error, from: WebSocket.Core)

    /// The codes after which a server may be asked again: going away, and failures of the server (RFC 6455 §7.4.1 and the
    /// IANA registry).
    private static let transientCodes: Set<UInt16?> = [1001, 1011, 1012, 1013, 1014]

    /// Returns the ending by which a plan decides about another connection; `nil` if there is none, because the closure
    /// has ended this one, or the server has, for good. The connection has ended: a close frame that arrived before it was
    /// lost has been read, unless the reader was behind.
    ///
    /// - Parameter failure: The error of the call; `nil` if it succeeded.
    func ending(failing failure: (any Error)?) -> ReconnectionPlan.Ending? {
        switch self {
        // The task or the session is cancelled, or the closure gives up.
        case _ where failure is CancellationError: nil
        case .notOpened: failure.map { .init($0) }
        // Other transient codes end the iteration with an error.
        case .returned(let closure): closure?.code == 1001 ? .completed : nil
        case .threw(let error, from: let core):
            switch core.ending(throwing: error) {
            case .closed(let closure): Self.transientCodes.contains(closure.code) ? .completed : nil
            // The call has added its history to the error.
            case .lost: failure.map { .init($0) }
            case nil: nil
            }
        }
    }
}
