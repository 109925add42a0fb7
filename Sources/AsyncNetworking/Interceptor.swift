// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials
import Synchronization

/// Code that runs around a request and its response, and can observe, modify, answer or repeat them.
///
/// ```swift
/// struct Stopwatch: Interceptor {
///     func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
///         let start = ContinuousClock.now
///         let response = try await next(request)
///         print(request, response.head.status, ContinuousClock.now - start)
///         return response
///     }
/// }
/// ```
///
/// | purpose | implementation |
/// |---|---|
/// | observe | return the response of `next` unchanged |
/// | modify the request | pass a modified request to `next` |
/// | modify the response | change its head or body; ``ANHTTP/ResponseBody/transforming(_:)`` transforms a stream |
/// | answer without the network | return a response without calling `next` |
/// | repeat the request | call `next` again, which closes the response before |
/// | fail | throw |
///
/// A streamed body reaches the interceptor as a stream; it is never collected first. The caller reads it after the
/// interceptor has returned, and it is closed when the call ends. The head of a response with the status 101 has its
/// WebSocket connection: an interceptor returns it, or a changed copy of it.
///
/// An interceptor may also pass its request to a function of a session, be it another one. That is a call of its own:
/// with the header fields and options of the request, but without a credential or signature that is not a header field,
/// and with the time measured anew.
///
/// An interceptor runs in the task that makes the request, and shares its isolation and cancellation. Inside a ``Hedging``
/// it runs in a child task without an isolation, and for the validation of a stored response in the background in a task
/// of its own.
/// ``SessionConfiguration/interceptors`` run around calls, ``SessionConfiguration/attemptInterceptors`` around each
/// exchange. A download that asks for the rest of a file calls the interceptors for each of its requests.
public protocol Interceptor: Sendable {
    /// Handles one request.
    ///
    /// It may wait. Requests are handled concurrently, so calls may overlap.
    ///
    /// - Parameters:
    ///   - request: The request, as modified by earlier steps. For ``SessionConfiguration/interceptors`` it has neither
    ///     the session's header fields nor, unless it was made with `options:`, its transfer options yet.
    ///   - next: Sends a request to the next step and returns its response.
    /// - Returns: The response for the caller: the last one of `next`, possibly changed, or another one.
    /// - Throws: Any error; it becomes the error of the call, wrapped in a ``SessionError`` if it is a
    ///   ``ANHTTP/TransportError`` or ``ANSerialization/SerializationError``. If the interceptor runs around exchanges,
    ///   the retry policy treats the error like one of the exchange.
    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse
}

/// An interceptor of this library that changes neither the credentials of requests nor the header fields that they have. A
/// cache that comes before it therefore knows them as they are sent.
package protocol FieldPreservingInterceptor: Interceptor {
    /// Whether the interceptor adds header fields; `false` by default.
    var addsFields: Bool { get }
}

extension FieldPreservingInterceptor {
    package var addsFields: Bool { false }
}

/// The steps after an ``Interceptor``. Called as a function, it sends a request and returns the response.
public struct Chain: Sendable {
    /// How the caller reads the response's body: collected in memory, up to a limit, or as a stream. Tasks, including
    /// ``DataTask``, always read a stream.
    public let delivery: BodyDelivery
    /// The number of the attempt, starting at 1; it is above 1 for a retry. Redirects and answers to challenges belong
    /// to the attempt. For ``SessionConfiguration/interceptors`` it is 1, more after retries of a call that an
    /// interceptor repeats, or that of the rest of a download.
    public let attempt: Int
    /// The identifier of the call's task, by which its events are recognized: the ``AnySessionTask/id`` of the task that
    /// an ``EventMonitor`` receives with them.
    package let taskID: UInt64
    private let passage: Passage

    fileprivate init(_ passage: Passage, of call: Call) {
        self.passage = passage
        delivery = call.delivery
        attempt = call.attempt
        taskID = call.taskID
    }

    /// Sends a request to the next step and returns its response, whose body can be read until the next call of this
    /// function or the end of the call.
    ///
    /// It may be called again, to repeat the request. The body must then be replayable
    /// (``ANHTTP/RequestBody/isReplayable``), which is not checked here: a body that can be read only once may be sent
    /// incompletely. Calls may overlap; their responses stay open until the next call that begins after them.
    ///
    /// - Parameter request: The request to send: the interceptor's own, modified or another one. One without a time
    ///   limit has that of the interceptor's request. It also has the transfer options of that request, or its changes of
    ///   the session's, to which its own changes are applied; policies and other attributes are not inherited. In place of
    ///   the request of a WebSocket connection, one that is created anew with another path, another method or a body is
    ///   sent as it is, and opens no connection. What the session has added to the interceptor's request is not sent to
    ///   another origin: credentials of the authentication policy, and fields of ``SessionConfiguration/headers`` that are
    ///   among ``RedirectPolicy/sensitiveHeaders``. A credential for a proxy, or the session's `Proxy-Authorization`, is
    ///   not sent to another proxy.
    /// - Throws: The errors of later steps or `CancellationError`, also after the interceptor has returned: a request
    ///   that it has not waited for begins no further exchange then, and its response is closed. Errors of
    ///   lower layers, such as ``ANHTTP/TransportError``, are not wrapped in a ``SessionError`` yet.
    public func callAsFunction(_ request: Request) async throws -> OpenResponse {
        try await callAsFunction(request, besideOthers: false)
    }

    /// Sends a request to the next step and returns its response.
    ///
    /// - Parameter besideOthers: Whether the responses that are open stay open.
    func callAsFunction(_ request: Request, besideOthers: Bool) async throws -> OpenResponse {
        try await passage.send(request, besideOthers: besideOthers)
    }

    /// The pipeline of the session.
    var pipeline: Pipeline { passage.pipeline }

    /// Whether an exchange has begun because of this interceptor.
    var hasSent: Bool { get async { await passage.hasSent } }
}

/// The way of a request through one interceptor, which may ask for several responses, also concurrently.
private actor Passage {
    nonisolated let pipeline: Pipeline
    private nonisolated let request: Request
    private nonisolated let rest: ArraySlice<any Interceptor>
    private nonisolated let next: Pipeline.Next
    /// The call as the interceptor has received it, with the results of the last request.
    private var call: Call
    /// The responses that can be read.
    private var open: [Left] = []
    private var requestCount = 0
    private nonisolated let scope: InterceptorScope
    /// The number of exchanges before the interceptor was called.
    private let earlierExchanges: Int

    /// What one request has left.
    struct Left: Sendable {
        /// The number of the request.
        let number: Int
        /// The exchanges that are open.
        let bodies: [ResponseBody]
        /// The request's copy of the call.
        let call: Call
    }

    @inline(never)
    init(
        of request: Request, _ call: Call, on pipeline: Pipeline, before rest: ArraySlice<any Interceptor>,
        _ next: Pipeline.Next
    ) {
        self.pipeline = pipeline
        self.request = request
        self.rest = rest
        self.next = next
        self.call = call
        self.call.seen = SeenRequests()
        scope = InterceptorScope(within: call.scope)
        earlierExchanges = call.exchangeCount
    }

    var hasSent: Bool { call.exchangeCount > earlierExchanges }

    nonisolated func send(_ request: Request, besideOthers: Bool) async throws -> OpenResponse {
        let (begun, number, closed) = await begin(besideOthers: besideOthers)
        for body in closed.flatMap(\.bodies) { await body.close() }
        guard var call = begun else { throw CancellationError() }
        do {
            var sent = call.replacing(self.request, by: request, on: pipeline)
            try sent.encodeBodyOfInterceptor(with: pipeline.json.encoder)
            if sent.timeout != nil { sent = await measuringTimeout(of: sent) }
            call.noteTimeout(of: sent)
            var response = try await pipeline.intercept(sent, &call, by: rest, next)
            // One that an interceptor has made of bytes in memory can always be read.
            if response.body.origin != nil || !response.body.isReplaced { response.body.loan = number }
            guard await keep(call, number) else { throw CancellationError() }
            return response
        } catch {
            await call.exchanges.close()
            await note(call, isCancelled: pipeline.registry.isOfCancellation(error))
            throw error
        }
    }

    /// Begins a request: returns the call, `nil` if the interceptor has returned, and the responses that must be closed.
    @inline(never)
    private func begin(besideOthers: Bool) -> (call: Call?, number: Int, closed: [Left]) {
        requestCount += 1
        defer { if !besideOthers { open = [] } }
        var call = call
        call.scope = scope
        call.seen = SeenRequests()
        return (scope.isOver ? nil : call, requestCount, besideOthers ? [] : open)
    }

    /// Keeps the exchanges that a request has left open; returns `false` if the interceptor has returned.
    @inline(never)
    private func keep(_ call: Call, _ number: Int) -> Bool {
        guard !scope.isOver else { return false }
        var call = call
        let bodies = call.exchanges.release()
        open.append(Left(number: number, bodies: bodies, call: call))
        note(call)
        return true
    }

    /// Notes what a request has recorded. One that is cancelled may be the loser of a race.
    @inline(never)
    private func note(_ call: Call, isCancelled: Bool = false) {
        if !isCancelled { self.call.note(call) }
        self.call.count(call)
    }

    @inline(never)
    private func measuringTimeout(of request: Request) -> Request {
        var request = request
        call.measureTimeout(of: &request, on: pipeline.clock)
        return request
    }

    /// Gives the call back as the request has left it whose number is given, by default the last one, and with it the
    /// exchanges that are open, which it returns.
    @inline(never)
    nonisolated func finish(_ call: inout Call, with number: Int? = nil) async -> [Left] {
        let (open, last) = await end()
        call.note(open.first { $0.number == number }?.call ?? last)
        call.count(last)
        for left in open { left.bodies.forEach { call.exchanges.own($0) } }
        return open
    }

    private func end() -> ([Left], Call) {
        scope.end()
        defer { open = [] }
        return (open, call)
    }
}

extension Request {
    /// Interceptors around each exchange of this request, inside those of the session.
    package var attemptInterceptors: [any Interceptor] {
        get { self[AttemptInterceptors.self] }
        set { self[AttemptInterceptors.self] = newValue }
    }

    private enum AttemptInterceptors: RequestAttribute {
        static var defaultValue: [any Interceptor] { [] }
    }
}

/// The time until an interceptor returns. After that, no exchange begins because of a request that it has not waited for.
final class InterceptorScope: Sendable {
    private let outer: InterceptorScope?
    private let hasEnded = Atomic(false)

    /// Creates the scope of an interceptor, which also ends with that of the one around it.
    fileprivate init(within outer: InterceptorScope?) {
        self.outer = outer
    }

    var isOver: Bool { hasEnded.load(ordering: .acquiring) || outer?.isOver == true }

    fileprivate func end() { hasEnded.store(true, ordering: .releasing) }
}

extension Call {
    /// Takes over what a request of an interceptor has recorded in its copy of the call.
    fileprivate mutating func note(_ copy: Call) {
        (retries, metrics, history, limit) = (copy.retries, copy.metrics, copy.history, copy.limit)
    }

    /// Counts what a request of an interceptor has sent.
    fileprivate mutating func count(_ copy: Call) {
        exchangeCount = max(exchangeCount, copy.exchangeCount)
        limitStart = limitStart ?? copy.limitStart
        seen.formUnion(copy.seen)
    }

    /// Returns the request that an interceptor sends in place of its own. If it goes to another origin or proxy, it loses
    /// what the session has added: the credentials of the authentication policy, and sensitive header fields.
    @inline(never)
    fileprivate func replacing(_ request: Request, by other: Request, on pipeline: Pipeline) -> Request {
        var next = other.continuing(request, keepingRole: other.keepsRole(of: request))
        // It may be a request of another session.
        (next.transportAuthentication, next.token) = (request.transportAuthentication, request.token)
        pipeline.requireTLS(of: &next)
        pipeline.removeProxyCredential(from: &next, replacing: request)
        if let home = request[Home.self] { next[Home.self] = home }
        // Most interceptors keep the URL.
        guard next.url != request.url || pipeline.headers.contains(.proxyAuthorization) else { return next }
        let (home, other) = (pipeline.home(of: request), pipeline.home(of: next))
        if next[Home.self] == nil, home != other { next[Home.self] = home }
        guard home.origin != other.origin else { return next }
        let policies = [next, request].map { $0.redirectPolicy ?? pipeline.redirectPolicy }
        let sensitive = policies[0].sensitiveHeaders.union(policies[1].sensitiveHeaders)
        pipeline.removeFields(sensitive.subtracting([.proxyAuthorization]), from: &next, replacing: request)
        guard credentialOrigin != nil else { return next }
        if next.headers[.authorization] == request.headers[.authorization] { next.headers[.authorization] = nil }
        next.transportAuthentication?.server = nil
        next.transportAuthentication?.signature = nil
        return next
    }
}

extension Pipeline {
    /// Returns the origin and the proxy of a request.
    func home(of request: Request) -> Home {
        Home(origin(of: request), over: request.options(inheriting: options).value.proxy)
    }

    /// Removes the session's credential for a proxy from a request that the program sends in place of another one, if it goes
    /// to another proxy.
    func removeProxyCredential(from next: inout Request, replacing request: Request) {
        guard next.transportAuthentication?.proxy != nil || next.headers.contains(.proxyAuthorization) else { return }
        let (key, other) = (CredentialCache.ProxyKey(request), CredentialCache.ProxyKey(next))
        if key != other { next.transportAuthentication?.proxy = nil }
        if key.server != other.server { removeFields([.proxyAuthorization], from: &next, replacing: request) }
    }

    /// Removes fields of the session from a request that takes the place of another one; those that the program has set
    /// itself are kept.
    fileprivate func removeFields(
        _ names: Set<HTTPField.Name>, from next: inout Request, replacing request: Request
    ) {
        next.headers.removeAll { names.contains($0.name) && headers.contains($0) && request.headers.contains($0) }
    }
}

/// The origin and the proxy of a call's request before it was sent to others, by an interceptor or as a part of a download
/// or an upload, where the session adds no sensitive fields; the attribute is `nil` if it was not.
struct Home: Hashable, CallAttribute {
    static var defaultValue: Home? { nil }

    let origin: Origin
    let proxy: ProxyServer

    init(_ origin: Origin, over proxy: ProxyPolicy) {
        (self.origin, self.proxy) = (origin, ProxyServer(proxy, scheme: origin.scheme))
    }
}

/// A proxy, as far as it is known: a policy without credential and exceptions, and the scheme of the request's URL, for
/// which the environment may name another proxy.
struct ProxyServer: Hashable {
    private let policy: ProxyPolicy
    private let scheme: String

    init(_ policy: ProxyPolicy, scheme: String) {
        self.policy =
            switch policy {
            case .proxy(let proxy): .proxy(Proxy(proxy.kind, host: proxy.host, port: proxy.port))
            case .environment, .none: policy
            }
        self.scheme = policy == .environment ? scheme : ""
    }
}

extension Pipeline {
    /// Passes a request through a list of interceptors, outermost first, and then to the next step.
    func intercept(
        _ request: Request, _ call: inout Call, by interceptors: ArraySlice<any Interceptor>, _ next: Next
    ) async throws -> OpenResponse {
        guard let first = interceptors.first else { return try await next(request, &call) }
        await call.exchanges.close()
        let passage = Passage(of: request, call, on: self, before: interceptors.dropFirst(), next)
        do {
            let chain = Chain(passage, of: call)
            var response = try await first.intercept(request, next: chain)
            let open = await passage.finish(&call, with: response.body.loan)
            if let number = response.body.loan {
                guard open.contains(where: { $0.number == number }) else {
                    throw SessionError.closedResponse(ofInterceptor: "\(type(of: first))")
                }
                response.body.loan = nil
            } else {
                response.body.isReplaced = true
                // Closed before the one that it may read.
                if !response.body.isWhole { call.exchanges.own(response.body) }
                // A stream of the interceptor's own reads the response that is open.
                if response.body.origin == nil, !response.body.isWhole {
                    let base = open.last?.bodies.last
                    (response.body.origin, response.body.exchange) = (base?.origin, base?.exchange)
                }
            }
            return response
        } catch {
            _ = await passage.finish(&call)
            throw error
        }
    }
}

extension Request {
    /// Encodes a body that an interceptor has set for the next one, which may wrap the bytes. The media type that was added for
    /// another interceptor's body is not that of this one.
    fileprivate mutating func encodeBodyOfInterceptor(with encoder: JSONEncoder) throws {
        guard body.encoding != nil else { return }
        if let added = self[AddedMediaType.self], headers[.contentType] == added { headers[.contentType] = nil }
        let isTyped = headers.contains(.contentType)
        try encodeBody(with: encoder)
        self[AddedMediaType.self] = isTyped ? nil : headers[.contentType]
    }
}

/// The media type that was added for the body of an interceptor.
private enum AddedMediaType: RequestAttribute {
    static var defaultValue: String? { nil }
}
