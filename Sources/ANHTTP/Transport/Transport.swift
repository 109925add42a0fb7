// SPDX-License-Identifier: MIT

import HTTPTypes

/// A type that performs single HTTP exchanges.
///
/// A transport does not follow redirects, cache responses, or retry failed attempts. It repeats a request only if a
/// reused connection was lost, or an alternative service failed, before the response, provided that the method is
/// idempotent (RFC 9110 §9.2.2) and the body replayable; or if the server states that it has not processed the request.
/// See ``TransferMetrics/sendCount``. The engine based on libcurl conforms to this protocol, and so does the mock for
/// tests.
public protocol Transport: Sendable {
    /// Sends a request, and returns its response with the exchange open.
    ///
    /// If the delivery is ``BodyDelivery/streamed``, this returns as soon as the head has arrived; otherwise a transport
    /// may wait for the complete body, as those of this package do, except for a long body of a response that may be
    /// discarded; see ``BodyDelivery/collected(upTo:)``. A failure before that is thrown by this function, when nothing of the exchange is
    /// running any more, and a later one by the functions that read the body.
    ///
    /// A transport that wraps another one passes the request on, possibly a changed copy of it. A new one would lack what the
    /// session has added, such as a credential for a proxy, and would not be sent while the session ends.
    ///
    /// The caller must end the exchange by ``OpenResponse/close()``, also after the body was read to its end. The
    /// source of the body owns what the exchange needs to live, such as a task that reads the request's body.
    /// Cancelling the task that waits for this function or for the body cancels the exchange.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - delivery: Whether the body will be collected or streamed; a transport may use this to save work.
    ///   - events: Receives the events of the exchange; `nil` for none. It is called on the transport's own thread or
    ///     by the calling task, and must return immediately.
    /// - Throws: ``TransportError`` or `CancellationError`.
    func open(
        _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
    ) async throws -> OpenResponse

    /// Ends all exchanges with ``TransportError/Reason/shutDown`` and closes all connections; later exchanges fail with
    /// the same error. Calls after the first one have no effect. The exchanges may end later.
    func shutdown() async

    /// The schemes by which the transport authenticates, given a credential; all schemes by default. A session does not
    /// answer a challenge by another scheme.
    var authenticationSchemes: Set<AuthenticationScheme> { get }

    /// The executor that runs tasks on the thread of the transport's event loop; `nil`, the default, if it has none. A
    /// task that prefers it, as by `Task(executorPreference:)`, must not block, because all exchanges would wait for
    /// it.
    var eventLoopExecutor: (any TaskExecutor)? { get }

    /// What the transport can do besides, such as storing cookies; nothing by default. A transport that wraps another one
    /// returns that of the other one.
    var features: TransportFeatures { get }
}

/// What a transport can do besides exchanges: libcurl's stores cookies, knows proxies and alternative services, and lists
/// its connections.
public struct TransportFeatures: Sendable {
    /// The store of the transport's cookies; `nil` if it neither stores nor sends any.
    package var cookies: (any CookieJar)?
    /// Whether requests may use an ``AlternativeRoute``; `true` unless the transport cannot in this environment.
    package var usesAlternativeRoutes = true
    /// Returns whether a request is sent to a proxy, and not directly to the server; `nil` if the transport does not
    /// know.
    package var usesProxy: (@Sendable (Request) -> Bool)?
    /// Returns whether a request is sent to the host of its URL itself: neither to a proxy or a socket, nor to another host.
    package var reachesHost: @Sendable (Request) -> Bool = { request in
        guard let options = request.options else { return true }
        if case .proxy = options.proxy { return false }
        return options.connection.unixSocketPath == nil && options.connection.hostOverrides.isEmpty
    }
    /// Returns the ASCII form of an internationalized host name (RFC 5891) that the transport looks up; `nil` if it does not
    /// convert names, or not this one.
    package var asciiName: @Sendable (HostName) -> HostName? = { _ in nil }
    /// Returns whether a challenge of a server by Digest can be answered; the system may lack its algorithm.
    package var answersDigest: @Sendable (DigestChallenge) -> Bool = { _ in true }
    /// Ends all exchanges with ``TransportError/Reason/shutDown``, and rejects later ones, except those of requests that
    /// clean up: see ``Request/cleansUp``. ``Transport/shutdown()`` then ends these. `nil` if the transport cannot.
    package var endExchanges: (@Sendable () async -> Void)?
    /// Returns the connections and exchanges of this moment.
    package var snapshot: @Sendable () async -> TransportSnapshot = { TransportSnapshot() }

    /// Creates the features of a transport that has none.
    public init() {}

    /// Returns whether a request may be sent to a proxy, from which a 407 then comes.
    package func mayUseProxy(for request: Request) -> Bool {
        if let usesProxy { return usesProxy(request) }
        if case .none? = request.options?.proxy { return false }
        return true
    }
}

extension Transport {
    /// All authentication schemes, the default for transports that do not declare their own.
    public var authenticationSchemes: Set<AuthenticationScheme> { Set(AuthenticationScheme.allCases) }

    /// `nil`, the default for transports that provide no executor of an event loop.
    public var eventLoopExecutor: (any TaskExecutor)? { nil }

    /// No features, the default for transports that only perform exchanges.
    public var features: TransportFeatures { TransportFeatures() }

    /// Performs one exchange, and returns the value that a closure makes from the response.
    ///
    /// The closure is called as soon as the head has arrived if the delivery is ``BodyDelivery/streamed``; otherwise the
    /// transport may wait for the complete body. The exchange ends with the call: what `body` has not read is discarded.
    /// Cancelling the task cancels the exchange.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - delivery: Whether the body will be collected or streamed.
    ///   - events: Receives the events of the exchange on the transport's own thread or by the calling task, and must
    ///     return immediately; `nil`, the default, for none.
    ///   - body: Receives the head and the body, which is valid only during the call.
    /// - Returns: The value that `body` returns.
    /// - Throws: ``TransportError``, `CancellationError`, or the error thrown by `body`.
    public func withResponse<Value>(
        for request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)? = nil,
        _ body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        let response = try await open(request, delivery: delivery, reporting: events)
        return try await withTaskCancellationHandler {
            do {
                let value = try await body(response.head, response.body)
                await response.close()
                return value
            } catch {
                await response.close()
                throw error
            }
        } onCancel: {
            response.body.cancel()
        }
    }
}

/// A response whose exchange is open: the head, and the body, which can be read until the exchange is closed.
public struct OpenResponse: Sendable {
    /// The status, header fields and URL.
    public var head: ResponseHead
    /// The body, read as it arrives, or complete if its delivery is ``BodyDelivery/collected(upTo:)``.
    public var body: ResponseBody

    /// Creates a response, for transports and interceptors.
    ///
    /// - Parameters:
    ///   - head: The status, header fields and URL.
    ///   - body: The body; `ResponseBody(Data(…))` for one in memory.
    public init(head: ResponseHead, body: ResponseBody) {
        self.head = head
        self.body = body
    }

    /// Ends the exchange: discards what was not read of the body, and returns when no part of the exchange is running.
    /// Calls after the first one return at once.
    public func close() async { await body.close() }
}

/// The way in which a response body will be read.
public enum BodyDelivery: Hashable, Sendable {
    /// As a whole, once it is complete. A body of more than the given number of bytes, counted before decompression,
    /// fails with ``TransportError/Reason/responseTooLarge(_:)``. A limit of 0 or less permits only an empty body.
    /// There is no backpressure.
    ///
    /// The body of a response with status 300 or above may be discarded, because a session follows the redirect, answers
    /// the challenge, or retries. libcurl's transport then returns the response before its body is complete if the body
    /// has more than 64 KiB, or is not complete 100 ms after the head; and a failure of the body is one of reading it.
    case collected(upTo: Int)
    /// In chunks, as they arrive, with backpressure: see ``TransferOptions/streamBufferSize``.
    case streamed
}

extension ResponseHead {
    /// Whether a session may discard the response and send another request; see ``BodyDelivery/collected(upTo:)``.
    package var mayBeDiscarded: Bool { status.code >= 300 }
}

/// A receiver of the events of an exchange, for metrics, progress and logs.
///
/// A sink that is passed to a session receives the events of all exchanges of a call in turn, such as those of
/// redirects.
public protocol ExchangeEventSink: Sendable {
    /// Handles an event, in the order in which events occur. It is called on the transport's own thread, or on the task
    /// of the request, as for ``ExchangeEvent/started(_:)``, and must not block.
    func receive(_ event: ExchangeEvent)
}

/// An event during an exchange.
///
/// A transport reports interim responses, then the head, then the progress of the body, and finally ``finished(_:)``;
/// the progress of the upload may occur at any time before that. Responses to challenges that the transport answers
/// itself, as for Digest, are not reported.
@nonexhaustive
public enum ExchangeEvent: Sendable {
    /// The exchange begins with the given request; sent by a session, not by a transport.
    case started(Request)
    /// An interim response, status 100 to 199, such as `103 Early Hints` (RFC 8297). The 101 that opens a WebSocket
    /// connection is reported as ``head(_:)`` instead.
    case informational(ResponseHead)
    /// The head of the final response.
    case head(ResponseHead)
    /// Bytes of the request body were passed on for sending; reported by libcurl's transport at most every 50 ms, and
    /// at the end. A GET without a body has no such event.
    case uploadProgress(TransferProgress)
    /// Bytes of the response body were received, counted before decompression; reported by libcurl's transport at most
    /// every 50 ms, and at the end if the head was received.
    case downloadProgress(TransferProgress)
    /// The exchange ended, successfully or not, with the given metrics; the last event. A request that fails before its
    /// exchange begins, for example because of an invalid URL, may have no such event.
    indirect case finished(TransferMetrics)
}

/// The authentication that a transport performs itself: answers to challenges, or a signature.
///
/// Digest, NTLM and Negotiate consist of several messages, for NTLM and Negotiate on the same connection, and are
/// therefore part of one exchange. The intermediate responses are not visible. If the scheme is known in advance, the
/// first message is sent without the body.
package struct TransportAuthentication: Hashable, Sendable {
    /// The credential and scheme for the server; `nil` for none.
    package var server: SchemeCredential?
    /// The credential and scheme for the proxy, instead of ``Proxy/credential``; `nil` for none.
    package var proxy: SchemeCredential?
    /// The signature for the request; `nil` for none. The server's challenges are not answered for a signed request.
    package var signature: AWSSignature?

    /// Creates a value without credentials, and optionally with a signature.
    package init(_ signature: AWSSignature? = nil) {
        self.signature = signature
    }

    /// A credential and the one scheme that it is used with.
    package struct SchemeCredential: Hashable, Sendable {
        /// The user name and password.
        package var credential: Credential
        /// The scheme to use the credential with.
        package var scheme: AuthenticationScheme

        /// Creates a value from a credential and a scheme.
        package init(_ credential: Credential, by scheme: AuthenticationScheme) {
            self.credential = credential
            self.scheme = scheme
        }
    }
}

extension Request {
    /// The authentication that the transport performs for this request; `nil`, the default, for none. Set by a session.
    ///
    /// Not settable by users, who would have to remove it before a redirect to another origin.
    package var transportAuthentication: TransportAuthentication? {
        get { self[TransportAuthentication.OfRequest.self] }
        set { self[TransportAuthentication.OfRequest.self] = newValue }
    }
}

extension TransportAuthentication {
    fileprivate enum OfRequest: CallAttribute {
        static var defaultValue: TransportAuthentication? { nil }
    }
}

extension Request {
    /// Whether a session sends the request while it ends, as the one by which a cancelled upload is removed.
    package var cleansUp: Bool {
        get { self[CleanUp.self] }
        set { self[CleanUp.self] = newValue }
    }

    private enum CleanUp: CallAttribute {
        static var defaultValue: Bool { false }
    }
}

/// An alternative service that a transport should use for an exchange instead of the origin's own connection: HTTP/3 on
/// a port of the same host (RFC 7838).
///
/// A transport that cannot use it ignores it. One that fails to use it performs the exchange without it, and uses it
/// only for requests that may be repeated.
package struct AlternativeRoute: Sendable {
    /// The UDP port of the alternative.
    package let port: Int
    /// Whether HTTP/3 has already worked on this port. If not, the transport makes a new connection, and does not keep
    /// the exchange waiting if a TCP connection is established first.
    package let isProven: Bool
    /// Receives whether the alternative was used or failed, at most once for each connection that was attempted. Not
    /// called if neither is known. Callable from any thread.
    package let report: @Sendable (_ hasWorked: Bool) -> Void

    /// Creates a route.
    package init(port: Int, isProven: Bool, report: @escaping @Sendable (_ hasWorked: Bool) -> Void) {
        self.port = port
        self.isProven = isProven
        self.report = report
    }
}

extension Request {
    /// Whether the request may use an ``AlternativeRoute``.
    ///
    /// One that may not be sent twice does not: if the server closes its idle connection at the moment when the request is
    /// sent, the frames of HTTP/2 say that it was not processed, and those of HTTP/3 cannot be read.
    package var mayUseAlternativeRoute: Bool {
        mayBeRepeated && body.isReplayable && trailers == nil && webSocketOptions == nil
            && transportAuthentication == nil
            && options?.connection.unixSocketPath == nil && options?.tls.maximumVersion ?? .v1_3 >= .v1_3
    }

    /// Whether the method permits to send the request a second time after a connection was lost before any byte of the
    /// response (RFC 9110 §9.2.2).
    package var mayBeRepeated: Bool {
        switch method {
        case .get, .head, .put, .delete, .options, .trace: true
        default: false
        }
    }
}

extension AlternativeRoute: CallAttribute {
    /// The attribute of a request that may use the origin only.
    package static var defaultValue: AlternativeRoute? { nil }
}
