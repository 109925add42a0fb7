// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
import FoundationEssentials
public import HTTPTypes

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
    /// | is closed by the server with code 1001 (going away), 1006, or 1011 to 1014 | another one, after a wait |
    /// | is closed by the server with code 1000 or another one, or fails otherwise | this function returns or throws |
    /// | `body` returns while it is open, or throws an error of its own | this function returns or throws |
    ///
    /// The wait is `reconnectionTime` and that of the policy's backoff, which begins anew when a connection was open.
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
        var plan = ReconnectionPlan(
            request, request.retryPolicy ?? RetryPolicy(limit: .max), reconnectionTime: max(.zero, reconnectionTime))
        var request = request
        request.retryPolicy = RetryPolicy.none
        var stopwatch = Stopwatch(configuration.clock)
        while true {
            let record = AttemptRecord()
            let failure: any Error
            do {
                let isGoingAway = try await withWebSocket(request, options: options, notingIn: record) { socket in
                    plan.receive()
                    stopwatch = Stopwatch(configuration.clock)
                    try await body(socket)
                    return socket.closure?.code == 1001
                }
                guard isGoingAway else { return }
                failure = TransportError(.webSocketClosed(WebSocketClosure(code: 1001)))
            } catch {
                failure = error
            }
            try Task.checkCancellation()
            let timing = RetryPlan.Timing(
                elapsed: stopwatch.elapsed, now: Int64(pipeline.now().timeIntervalSince1970),
                unit: pipeline.randomUnit())
            guard let ending = ReconnectionPlan.Ending(ofWebSocket: failure),
                case .reconnect(let wait) = plan.step(after: ending, seen: record.seen, at: timing)
            else { throw SessionError.lifting(failure) }
            try await pipeline.pause(wait)
        }
    }
}

extension ReconnectionPlan.Ending {
    /// The codes after which a server may be asked again: going away, lost, and failures of the server (RFC 6455 §7.4.1
    /// and the IANA registry).
    private static let transientCodes: Set<UInt16> = [1001, 1006, 1011, 1012, 1013, 1014]

    /// Creates the ending of a WebSocket connection with an error; `nil` if there is no other connection after it.
    init?(ofWebSocket error: any Error) {
        switch SessionError.lifting(error) {
        case SessionError.transport(let error):
            guard case .webSocketClosed(let closure) = error.reason else {
                self = .failed(.failure(error))
                return
            }
            guard Self.transientCodes.contains(closure?.code ?? 1006) else { return nil }
            self = .completed
        case let error as SessionError:
            guard let head = error.rejection?.head else { return nil }
            self = .failed(.success(head))
        default: return nil
        }
    }
}
