// SPDX-License-Identifier: MIT

public import ANHTTP

/// Stands around a request and its response: it may watch, change, answer or repeat them.
///
/// ```swift
/// struct Stopwatch: Interceptor {
///     func intercept(
///         _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
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
/// | to | do |
/// |---|---|
/// | watch | call `proceed`, and `respond` with what it brings |
/// | change the request | call `proceed(with:)` with another one |
/// | change the response | call `respond` with another head or body; ``ANHTTP/ResponseBody/transforming(_:)`` changes a stream |
/// | answer without the network | call `respond` alone |
/// | send again | call `proceed` again after it has returned without a call of `respond` |
/// | fail | throw |
///
/// Bodies are never collected for an interceptor: one of a stream is a stream. `respond` runs the caller's code that reads
/// it, so it ends when the response was read. It must be called once; what it throws ends the call, whatever the interceptor
/// makes of it.
///
/// An interceptor runs in the task that makes the request, with its isolation and cancellation.
/// ``SessionConfiguration/interceptors`` wrap calls, ``SessionConfiguration/attemptInterceptors`` each exchange.
public protocol Interceptor: Sendable {
    /// Handles one request.
    ///
    /// - Parameters:
    ///   - interception: The request, and the way on.
    ///   - respond: Takes the response, once.
    /// - Throws: Anything; it becomes the error of the call.
    func intercept(
        _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws
}

/// A request on its way through an ``Interceptor``.
public struct Interception: Sendable {
    /// The request as it came to the interceptor.
    public let request: Request
    /// The number of the attempt, from 1: above 1 the request is a retry.
    public var attempt: Int { call.attempt }
    /// How the body of the response will be read.
    public var delivery: BodyDelivery { call.delivery }

    private let pipeline: Pipeline
    private let call: PipelineCall
    /// The interceptors between this one and `next`.
    private let rest: ArraySlice<any Interceptor>
    private let next: Pipeline.Step

    fileprivate init(
        _ call: PipelineCall, on pipeline: Pipeline, rest: ArraySlice<any Interceptor>, next: Pipeline.Step
    ) {
        request = call.request
        self.call = call
        self.pipeline = pipeline
        self.rest = rest
        self.next = next
    }

    /// Sends the request on, and runs `body` with the response that comes back.
    ///
    /// - Parameters:
    ///   - request: What is sent in place of the request that came; nil for that one.
    ///   - body: Lent the response's body while it runs.
    /// - Throws: What the steps after this one throw (``SessionError``'s causes as they are, such as
    ///   ``ANHTTP/TransportError``), `CancellationError`, or what `body` throws.
    public func proceed(
        with request: Request? = nil, _ body: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        var call = call
        if let request { call.request = request }
        try await pipeline.intercept(call, by: rest, before: next, respond: body)
    }
}

extension Request {
    /// Interceptors around each exchange of this request alone, after those of the session.
    package var attemptInterceptors: [any Interceptor] {
        get { self[AttemptInterceptors.self] }
        set { self[AttemptInterceptors.self] = newValue }
    }

    private enum AttemptInterceptors: RequestAttribute {
        static var defaultValue: [any Interceptor] { [] }
    }
}

extension Pipeline {
    /// Hands a call to the first of these interceptors, with the others before it; without any, to the next step.
    func intercept(
        _ call: PipelineCall, by interceptors: ArraySlice<any Interceptor>, before next: Step,
        respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        guard let first = interceptors.first else { return try await perform(call, from: next, respond: respond) }
        let interception = Interception(call, on: self, rest: interceptors.dropFirst(), next: next)
        var outcome: Result<Void, any Error>?
        try await first.intercept(interception) { head, body in
            guard outcome == nil else {
                let error = SessionError.interceptor(.secondResponse, type: "\(type(of: first))")
                outcome = .failure(error)
                throw error
            }
            outcome = .success(())
            do {
                try await respond(head, body)
            } catch {
                outcome = .failure(error)
                throw error
            }
        }
        guard let outcome else { throw SessionError.interceptor(.noResponse, type: "\(type(of: first))") }
        try outcome.get()
    }
}
