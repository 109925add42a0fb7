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
    private let flights = Flights()

    /// Creates an interceptor.
    public init() {}

    /// Sends the request, or waits for the response to an identical one.
    public func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        guard case .collected(let limit) = next.delivery, request.method == .get, request.body.length == 0,
            request.hasOnlyTimeout
        else { return try await next(request) }
        let key = Flights.Key(
            session: ObjectIdentifier(next.pipeline), url: request.url, headers: request.headers, limit: limit)
        while true {
            let (flight, isOwn) = await flights.join(key)
            if isOwn { return try await lead(flight, key, request, next, limit) }
            // A request that the transfer itself has sent would wait for ever.
            guard let waiting = WaitGraph.begin(for: flight) else { return try await next(request) }
            defer { waiting.end() }
            let outcome = try await next.pipeline.waiting(upTo: request.timeLeft) { await flight.wait() }
            switch outcome {
            case .response(let response): return response.open
            case .failure(let error): throw error
            // The next one takes its place.
            case .abandoned: try Task.checkCancellation()
            case nil: throw TransportError.timedOut(.queue, request.timeLeft ?? .zero, FailureContext())
            }
        }
    }

    /// Sends the request, and gives its response to those that wait.
    private func lead(
        _ flight: Flight, _ key: Flights.Key, _ request: Request, _ next: Chain, _ limit: Int
    ) async throws -> OpenResponse {
        do {
            let response = try await WaitGraph.leading(flight) {
                let response = try await next(request)
                let data = try await response.body.collect(upTo: limit)
                return SharedResponse(head: response.head, body: data, ending: response.body.ending ?? ResponseEnding())
            }
            await flights.end(flight, key, .response(response))
            return response.open
        } catch {
            // The time limit is this request's own.
            let isOwn = error is CancellationError || request.timeLeft.map { $0 <= .zero } == true
            await flights.end(flight, key, isOwn ? .abandoned : .failure(error))
            throw error
        }
    }
}

/// A response that several requests have.
private struct SharedResponse: Sendable {
    let head: ResponseHead
    let body: Data
    let ending: ResponseEnding

    var open: OpenResponse { OpenResponse(head: head, body: ResponseBody(body, ending: ending)) }
}

/// The transfers that others may join.
private actor Flights {
    private var flights: [Key: Flight] = [:]

    struct Key: Hashable, Sendable {
        let session: ObjectIdentifier
        let url: URL
        let headers: HTTPFields
        /// The limit on the size of the body.
        let limit: Int
    }

    /// Returns the transfer of a request, and whether it is a new one, which the caller must end.
    func join(_ key: Key) -> (flight: Flight, isOwn: Bool) {
        if let flight = flights[key] { return (flight, false) }
        let flight = Flight()
        flights[key] = flight
        return (flight, true)
    }

    func end(_ flight: Flight, _ key: Key, _ outcome: Flight.Outcome) async {
        if flights[key] === flight { flights[key] = nil }
        await flight.end(outcome)
    }
}

/// A transfer that requests wait for.
private actor Flight {
    private var outcome: Outcome?
    private var waiting: [AsyncStream<Never>.Continuation] = []

    enum Outcome: Sendable {
        case response(SharedResponse)
        case failure(any Error)
        /// The request was cancelled.
        case abandoned
    }

    func end(_ outcome: Outcome) {
        self.outcome = outcome
        for continuation in waiting { continuation.finish() }
        waiting = []
    }

    /// Returns the outcome when there is one, or when the calling task is cancelled.
    func wait() async -> Outcome {
        if let outcome { return outcome }
        let (stream, continuation) = AsyncStream<Never>.makeStream()
        waiting.append(continuation)
        for await _ in stream {}
        return outcome ?? .abandoned
    }
}
