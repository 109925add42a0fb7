// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials
import HTTPTypes

/// Sends one of several identical GET requests that are in flight, and gives its response to all of them.
///
/// ```swift
/// let api = SessionManager {
///     $0.interceptors = [RequestCoalescing()]
/// }
/// ```
///
/// Requests are identical if they have the same URL and the same header fields, and are sent by the same session, without
/// a call of ``Authenticator/setToken(_:)`` between them. Cookies are not compared. Requests with a body, with options,
/// policies or credentials of their own, streamed ones, and those of the refresh of a token are not shared, nor is anything
/// among ``SessionConfiguration/attemptInterceptors``. A failure is one of all that wait; if the request that is sent is
/// cancelled, or its `timeout` may be the reason of the failure, the next one takes its place. `Request.timeout` limits
/// the wait.
///
/// Nothing is stored: a request that begins after the response sends another one. So does one that begins after the session
/// has sent a request that may change something, such as a POST, to the origin, also by a redirect. If that request fails
/// or is repeated, it counts as one to each origin. With a cache, ``SessionConfiguration/coalescesRequests`` has the same
/// purpose, and knows which responses may be shared.
public struct RequestCoalescing: Interceptor, FieldPreservingInterceptor {
    private let flights = Flights<Key, Outcome>()

    /// Creates an interceptor.
    public init() {}

    /// Sends the request, or waits for the response to an identical one.
    public func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        guard [.get, .head, .options, .trace].contains(request.method) else {
            // What is read during or after a change may differ from what is in flight.
            forgetFlights(to: [request.url], by: request, of: next.pipeline)
            // A redirect may have led it anywhere, unless a single attempt has a response that says where.
            var urls: [URL]?
            defer { forgetFlights(to: urls, by: request, of: next.pipeline) }
            let response = try await next(request)
            if response.head.retryHistory.earlierAttempts.isEmpty {
                urls = [request.url] + (response.head.redirectHistory + [response.head]).map(\.url)
            }
            return response
        }
        guard case .collected(let limit) = next.delivery, request.method == .get, request.body.length == 0,
            request.hasOnlyTimeout, !request.isHedge, !Authenticator.isWithinRefresh
        else { return try await next(request) }
        var hasWaitedInVain = false
        while true {
            // Anew each time, because a token that is set meanwhile ends the wait.
            let key = Key(
                session: ObjectIdentifier(next.pipeline), url: request.url, headers: request.headers,
                home: request[Home.self], limit: limit, tokens: await next.pipeline.tokenGenerations)
            let (flight, isOwn) = flights.join(key)
            if isOwn { return try await lead(flight, key, request, next, limit) }
            // A request that the transfer itself has sent would never end.
            guard let waiting = WaitGraph.begin(for: flight) else { return try await next(request) }
            defer { waiting.end() }
            let outcome = try await next.pipeline.waiting(upTo: request.timeLeft) { await flight.wait(waiting) }
            switch outcome {
            case .response(let response)??: return response.open
            case .failure(let error)??: throw error
            // The next one takes its place.
            case .abandoned??, .some(nil): try Task.checkCancellation()
            // The next one has the newest token. If each response sets one, they would all be sent in turn.
            case .unshared??:
                if hasWaitedInVain { return try await next(request) }
                hasWaitedInVain = true
            case nil: throw TransportError.timedOut(.queue, request.nextTimeout, FailureContext(request.url))
            }
        }
    }

    /// Lets later requests to the origins of some URLs be sent, which a request has asked for; `nil` for all origins.
    private func forgetFlights(to urls: [URL]?, by request: Request, of pipeline: Pipeline) {
        let origins = urls?.map { pipeline.origin(of: $0, for: request) }
        flights.forget { origins?.contains(pipeline.origin(of: $0.url, for: request)) ?? true }
    }

    /// Sends the request, and gives its response to those that wait.
    private func lead(
        _ flight: Flights<Key, Outcome>.Flight, _ key: Key, _ request: Request, _ next: Chain, _ limit: Int
    ) async throws -> OpenResponse {
        do {
            let response = try await WaitGraph.leading(flight) {
                let response = try await next(request)
                let data = try await response.body.collect(upTo: limit)
                return SharedResponse(
                    head: response.head, body: data, ending: response.body.ending ?? ResponseEnding(),
                    origin: response.body.origin)
            }
            // The request may have got the token of another user.
            let isShared = await next.pipeline.tokenGenerations == key.tokens
            let isOwn = Self.mayBeOfLimit(.success(response.head), request, next.pipeline)
            flights.end(flight, key, isOwn ? .abandoned : isShared ? .response(response) : .unshared)
            return response.open
        } catch {
            let isCancelled = next.pipeline.registry.isOfCancellation(error)
            let isOwn = isCancelled || Self.mayBeOfLimit(.failure(error), request, next.pipeline)
            flights.end(flight, key, isOwn ? .abandoned : .failure(error))
            throw error
        }
    }

    /// Whether a request may have another outcome without its time limit, which is its own. Those of the session hold for
    /// all alike.
    private static func mayBeOfLimit(
        _ result: RetryPlan.AttemptResult, _ request: Request, _ pipeline: Pipeline
    ) -> Bool {
        guard let left = request.timeLeft else { return false }
        guard left > .zero else { return true }
        var expired: [Duration?] = []
        let history: RetryHistory
        switch result {
        case .success(let head): history = head.retryHistory
        case .failure(let error as TransportError):
            if case .timedOut = error.reason { expired.append(error.context.timeLimit) }
            history = error.context.retryHistory
        case .failure: return false
        }
        if case .deadline(let limit) = history.stop { expired.append(limit) }
        let timeouts = pipeline.options.value.timeouts
        let shared = [
            timeouts.queue, timeouts.connect, timeouts.idle, timeouts.total, timeouts.connectivity,
            pipeline.retryPolicy.deadline,
        ]
        return expired.contains { $0 == nil || $0 == request.timeout || !shared.contains($0) }
    }
}

extension Pipeline {
    /// The numbers of times that the program has set the token of each authenticator. Until the request is sent, it is not
    /// known which one it needs.
    fileprivate var tokenGenerations: [Int] {
        get async {
            var generations: [Int] = []
            for authenticator in authentication.authenticators { generations.append(await authenticator.generation) }
            return generations
        }
    }
}

extension RequestCoalescing {
    fileprivate struct Key: Hashable, Sendable {
        let session: ObjectIdentifier
        let url: URL
        let headers: HTTPFields
        /// Where an interceptor has led the request from; elsewhere the session adds no sensitive fields.
        let home: Home?
        /// The limit on the size of the body.
        let limit: Int
        /// See ``Pipeline/tokenGenerations``.
        let tokens: [Int]
    }

    fileprivate enum Outcome: Sendable {
        case response(SharedResponse)
        case failure(any Error)
        /// The request was cancelled, or has ended because of its own time limit.
        case abandoned
        /// The program has set a token meanwhile.
        case unshared
    }
}

/// A response that several requests have.
private struct SharedResponse: Sendable {
    let head: ResponseHead
    let body: Data
    let ending: ResponseEnding
    let origin: ResponseSource?

    var open: OpenResponse {
        var body = ResponseBody(body, ending: ending)
        body.origin = origin
        return OpenResponse(head: head, body: body)
    }
}
