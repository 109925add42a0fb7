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
/// Requests are identical if they have the same URL and the same header fields, and are sent by the same session. Those
/// with a body, with options, policies or credentials of their own, and streamed ones are not shared, nor is anything among
/// ``SessionConfiguration/attemptInterceptors``. A failure is one of all that wait; if the request that is sent is
/// cancelled, the next one takes its place. `Request.timeout` limits the wait.
///
/// Nothing is stored: a request that begins after the response sends another one. With a cache,
/// ``SessionConfiguration/sharesTransfers`` has the same purpose, and knows which responses may be shared.
public struct RequestCoalescing: Interceptor {
    private let flights = Flights<Key, Outcome>()

    /// Creates an interceptor.
    public init() {}

    /// Sends the request, or waits for the response to an identical one.
    public func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        guard case .collected(let limit) = next.delivery, request.method == .get, request.body.length == 0,
            request.hasOnlyTimeout
        else { return try await next(request) }
        let key = Key(
            session: ObjectIdentifier(next.pipeline), url: request.url, headers: request.headers, limit: limit)
        while true {
            let (flight, isOwn) = flights.join(key)
            if isOwn { return try await lead(flight, key, request, next, limit) }
            // A request that the transfer itself has sent would never end.
            guard let waiting = WaitGraph.begin(for: flight) else { return try await next(request) }
            defer { waiting.end() }
            let outcome = try await next.pipeline.waiting(upTo: request.timeLeft) { await flight.wait() }
            switch outcome {
            case .response(let response)??: return response.open
            case .failure(let error)??: throw error
            // The next one takes its place.
            case .abandoned??, .some(nil): try Task.checkCancellation()
            case nil: throw TransportError.timedOut(.queue, request.timeLeft ?? .zero, FailureContext())
            }
        }
    }

    /// Sends the request, and gives its response to those that wait.
    private func lead(
        _ flight: Flights<Key, Outcome>.Flight, _ key: Key, _ request: Request, _ next: Chain, _ limit: Int
    ) async throws -> OpenResponse {
        do {
            let response = try await WaitGraph.leading(flight) {
                let response = try await next(request)
                let data = try await response.body.collect(upTo: limit)
                return SharedResponse(head: response.head, body: data, ending: response.body.ending ?? ResponseEnding())
            }
            flights.end(flight, key, .response(response))
            return response.open
        } catch {
            // The time limit is this request's own.
            let isOwn = error is CancellationError || request.timeLeft.map { $0 <= .zero } == true
            flights.end(flight, key, isOwn ? .abandoned : .failure(error))
            throw error
        }
    }
}

extension RequestCoalescing {
    fileprivate struct Key: Hashable, Sendable {
        let session: ObjectIdentifier
        let url: URL
        let headers: HTTPFields
        /// The limit on the size of the body.
        let limit: Int
    }

    fileprivate enum Outcome: Sendable {
        case response(SharedResponse)
        case failure(any Error)
        /// The request was cancelled.
        case abandoned
    }
}

/// A response that several requests have.
private struct SharedResponse: Sendable {
    let head: ResponseHead
    let body: Data
    let ending: ResponseEnding

    var open: OpenResponse { OpenResponse(head: head, body: ResponseBody(body, ending: ending)) }
}
