// SPDX-License-Identifier: MIT

public import ANHTTP

/// Code that runs around a request and its response, and can observe, modify, answer or repeat them.
///
/// ```swift
/// struct Stopwatch: Interceptor {
///     func intercept(
///         _ interception: Interception,
///         respond: nonisolated(nonsending) (ResponseHead, ResponseBody) async throws -> Void
///     ) async throws {
///         let start = ContinuousClock.now
///         try await interception.proceed { head, body in
///             print(interception.request, head.status, ContinuousClock.now - start)
///             try await respond(head, body)
///         }
///     }
/// }
/// ```
///
/// The words `nonisolated(nonsending)` may be left out in a module with the upcoming feature
/// `NonisolatedNonsendingByDefault`.
///
/// | purpose | implementation |
/// |---|---|
/// | observe | call `proceed`, and pass the response to `respond` unchanged |
/// | modify the request | call `proceed(with:)` with a modified request |
/// | modify the response | call `respond` with another head or body; ``ANHTTP/ResponseBody/transforming(_:)`` transforms a stream |
/// | answer without the network | call `respond` without `proceed` |
/// | repeat the request | call `proceed` again, after a call of it returned without `respond` having been called |
/// | fail | throw |
///
/// A streamed body reaches the interceptor as a stream; it is never collected first. `respond` runs the caller's code
/// that reads the body, so it returns when the response has been read. It must be called exactly once, unless the
/// interceptor throws. An error thrown by `respond` becomes the error of the call, even if the interceptor catches it
/// and returns.
///
/// An interceptor runs in the task that makes the request, and shares its isolation and cancellation.
/// ``SessionConfiguration/interceptors`` run around calls, ``SessionConfiguration/attemptInterceptors`` around each
/// exchange.
public protocol Interceptor: Sendable {
    /// Handles one request.
    ///
    /// Called in the task that makes the request; it may wait. Requests are handled concurrently, so calls may overlap.
    ///
    /// - Parameters:
    ///   - interception: The request, and the function that passes it on.
    ///   - respond: Delivers the response to the caller, and returns or throws when the caller's code has read it. Must
    ///     be called exactly once, unless this function throws: otherwise the request fails with
    ///     ``SessionError/noResponse(ofInterceptor:)`` or ``SessionError/secondResponse(ofInterceptor:)``.
    /// - Throws: Any error; it becomes the error of the call, wrapped in a ``SessionError`` if it is a
    ///   ``ANHTTP/TransportError`` or ``ANSerialization/SerializationError``. If the interceptor runs around exchanges
    ///   and has not called `respond`, the retry policy treats the error like one of the exchange.
    func intercept(
        _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws
}

/// A request on its way through an ``Interceptor``, and the function that passes it on.
public struct Interception: Sendable {
    /// The request, as modified by earlier steps. For ``SessionConfiguration/interceptors`` it has neither the
    /// session's header fields nor its transfer options yet.
    public let request: Request
    /// The number of the attempt, starting at 1; it is above 1 for a retry. Redirects and answers to challenges belong
    /// to the attempt. For ``SessionConfiguration/interceptors`` it is always 1.
    public var attempt: Int { call.attempt }
    /// How the caller reads the response's body: collected in memory, up to a limit, or as a stream. Tasks, including
    /// ``DataTask``, always read a stream.
    public var delivery: BodyDelivery { call.delivery }

    private let pipeline: Pipeline
    private let call: PipelineCall
    /// The interceptors between this one and the next step.
    private let rest: ArraySlice<any Interceptor>

    fileprivate init(
        _ call: PipelineCall, on pipeline: Pipeline, rest: ArraySlice<any Interceptor>
    ) {
        request = call.request
        self.call = call
        self.pipeline = pipeline
        self.rest = rest
    }

    /// Passes the request to the next step, and runs a closure with the response.
    ///
    /// It may be called again after a call has ended, to repeat the request. The body must then be replayable
    /// (``ANHTTP/RequestBody/isReplayable``), which is not checked here: a body that can be read only once may be sent
    /// incompletely.
    ///
    /// - Parameters:
    ///   - request: The request to pass on; `nil`, the default, passes ``request``.
    ///   - body: Receives the response's head and its body, which is valid only while the closure runs.
    /// - Throws: The errors of later steps, `CancellationError`, or the error that `body` throws. Errors of lower
    ///   layers, such as ``ANHTTP/TransportError``, are not wrapped in a ``SessionError`` yet.
    public func proceed(
        with request: Request? = nil, _ body: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        var call = call
        if let request { call.replaceRequest(by: request) }
        try await pipeline.intercept(call, by: rest) { head, received in
            var lent = received
            if lent.provenance == .received { lent.provenance = .lent }
            try await body(head, lent)
        }
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

extension PipelineCall {
    /// Replaces the request by that of an interceptor. Credentials that the authentication policy has added are removed
    /// if they belong to another origin.
    @inline(never)
    fileprivate mutating func replaceRequest(by other: Request) {
        var next = other.continuing(request)
        if let credentialOrigin, Origin(next.url) != credentialOrigin {
            // A field that the interceptor has set itself is kept.
            if next.headers[.authorization] == request.headers[.authorization] { next.headers[.authorization] = nil }
            next.transportAuthentication?.server = nil
            next.transportAuthentication?.signature = nil
        }
        request = next
    }
}

extension Pipeline {
    /// Passes a call through a list of interceptors, outermost first, and then to the next step.
    func intercept(
        _ call: PipelineCall, by interceptors: ArraySlice<any Interceptor>,
        respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        guard let first = interceptors.first else { return try await perform(call, respond: respond) }
        let interception = Interception(call, on: self, rest: interceptors.dropFirst())
        var outcome: Result<Void, any Error>?
        // The step that retries passes on the next response of a download.
        var isContinued = false
        try await first.intercept(interception) { head, body in
            guard outcome == nil || isContinued else {
                let error = SessionError.secondResponse(ofInterceptor: "\(type(of: first))")
                outcome = .failure(error)
                throw error
            }
            outcome = .success(())
            defer { isContinued = call.continuation?.isPending ?? false }
            do {
                var body = body
                body.provenance = body.provenance == .lent ? .received : .replaced
                try await respond(head, body)
            } catch {
                outcome = .failure(error)
                throw error
            }
        }
        guard let outcome else {
            throw SessionError.noResponse(ofInterceptor: "\(type(of: first))")
        }
        try outcome.get()
    }
}
