// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials

/// A breaker for each origin (scheme, host and port) that fails requests at once while a server does not work, so that
/// callers do not wait for it, and it can recover.
///
/// ```swift
/// let api = SessionManager {
///     $0.attemptInterceptors = [CircuitBreaker(failures: 5, cooldown: .seconds(30))]
/// }
/// ```
///
/// | state | requests | changes |
/// |---|---|---|
/// | closed | are sent | to open, after a number of failures without a success in between |
/// | open | fail with ``SessionError/circuitOpen(host:retryAfter:)`` | to half-open, with the first request after the cooldown |
/// | half-open | one is sent in each cooldown, the others fail | to closed if one succeeds, to open if one fails |
///
/// Some ends of a request say nothing of the server, and are neither: it was cancelled, or not sent, because a stored
/// response answers it, its time was over or its token could not be refreshed; a stale response replaces a failure; or
/// the system has no route to the host. Responses to requests that were sent before the last change are ignored.
/// Requests that the interceptors of a request in the half-open state send to the same origin are sent, too. Copies, and
/// the sessions that have one, share the state; the time is that of the clock of the session that used it first.
public struct CircuitBreaker: Interceptor, FieldPreservingInterceptor {
    private let states: States
    private let isFailure: @Sendable (Result<ResponseHead, any Error>) -> Bool

    /// Creates a breaker whose circuits are closed.
    ///
    /// - Parameters:
    ///   - failures: The number of successive failures that open a circuit; 5 by default. A value below 1 counts as 1.
    ///   - cooldown: The time for which a circuit stays open; 30 s by default.
    ///   - isFailure: Whether a response, or an error other than `CancellationError`, shows that the server does not
    ///     work; by default statuses 500, 502, 503 and 504, and the errors of ``RetryPolicy/Failure/transient``. It is not
    ///     asked if the session has sent no request, as when a cache or an interceptor inside this one has answered.
    public init(
        failures: Int = 5, cooldown: Duration = .seconds(30),
        isFailure: (@Sendable (Result<ResponseHead, any Error>) -> Bool)? = nil
    ) {
        states = States(Circuit(threshold: max(1, failures), cooldown: cooldown))
        self.isFailure = isFailure ?? Self.isServerFailure
    }

    /// Whether a response has the status 500, 502, 503 or 504, or an error is one of ``RetryPolicy/Failure/transient``.
    @Sendable private static func isServerFailure(_ result: Result<ResponseHead, any Error>) -> Bool {
        switch result {
        case .success(let head): [500, 502, 503, 504].contains(head.status.code)
        case .failure(let error): RetryPolicy.Failure(error).map(RetryPolicy.Failure.transient.contains) ?? false
        }
    }

    /// Sends the request unless the circuit is open.
    ///
    /// - Throws: ``SessionError/circuitOpen(host:retryAfter:)`` if it is.
    public func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        let origin = next.pipeline.origin(of: request)
        let pass: Circuit.Pass
        switch await states.admit(origin, next.pipeline.clock) {
        case .pass(let number): pass = number
        case .refusal(let retryAfter):
            // Otherwise the trial would wait for itself, and could never succeed.
            if WaitGraph.isWithin({ ($0 as? Trial)?.isOf(states, origin) ?? false }) { return try await next(request) }
            throw SessionError.circuitOpen(host: origin.host, retryAfter: retryAfter)
        }
        do {
            let response =
                if pass.isTrial {
                    try await WaitGraph.leading(Trial(states: states, origin: origin)) { try await next(request) }
                } else {
                    try await next(request)
                }
            let isServers = await next.hasSent && response.body.origin != .stale
            let outcome: Circuit.Outcome =
                !isServers ? .unknown : isFailure(.success(response.head)) ? .failure : .success
            await states.record(outcome, of: pass, origin)
            return response
        } catch {
            var (outcome, failure) = (Circuit.Outcome.unknown, error)
            if await next.hasSent, !next.pipeline.registry.isOfCancellation(error), isFailure(.failure(error)) {
                do {
                    let routes = try await next.pipeline.missingRoutes(of: request, after: error)
                    if routes.isEmpty { outcome = .failure }
                } catch {
                    // The call ends before it is known whether there is a route.
                    failure = error
                }
            }
            await states.record(outcome, of: pass, origin)
            throw failure
        }
    }

    /// A request whose outcome decides, to which other requests may belong.
    private final class Trial: Sendable {
        private let states: States
        private let origin: Origin

        init(states: States, origin: Origin) { (self.states, self.origin) = (states, origin) }

        func isOf(_ states: States, _ origin: Origin) -> Bool { self.states === states && self.origin == origin }
    }

    private actor States {
        private var circuits: OriginTable<Origin, Circuit>
        private var stopwatch: Stopwatch?

        init(_ circuit: Circuit) { circuits = OriginTable(circuit) }

        func admit(_ origin: Origin, _ clock: any Clock<Duration>) -> Circuit.Admission {
            let stopwatch = stopwatch ?? Stopwatch(clock)
            self.stopwatch = stopwatch
            let now = stopwatch.elapsed
            return circuits.update(origin, isIdle: { $0.isIdle(at: now, isUsed: $1) }) { $0.admit(at: now) }
        }

        func record(_ outcome: Circuit.Outcome, of pass: Circuit.Pass, _ origin: Origin) {
            let now = stopwatch?.elapsed ?? .zero
            circuits.update(origin, isIdle: { $0.isIdle(at: now, isUsed: $1) }) {
                $0.record(outcome, of: pass, at: now)
            }
        }
    }
}

/// The state of the circuit to one server.
package struct Circuit: Sendable {
    private let threshold: Int
    private let cooldown: Duration
    private var state = State.closed(failures: 0)
    /// The number of changes between the states.
    private var generation = 0

    /// Creates a closed circuit.
    package init(threshold: Int, cooldown: Duration) {
        (self.threshold, self.cooldown) = (threshold, cooldown.bounded)
    }

    private enum State: Sendable {
        /// Requests are sent. So many have failed since the last success.
        case closed(failures: Int)
        /// Requests are refused until a time.
        case open(until: Duration)
        /// A request has been sent, whose outcome decides. Until a time, others are refused; then another one is sent
        /// that may decide, because the first one may last long.
        case halfOpen(until: Duration)
    }

    /// The right to send one request.
    package struct Pass: Hashable, Sendable {
        fileprivate let generation: Int
        /// The time from which another request may decide; `nil` if this one is not one whose outcome alone decides.
        fileprivate let trialEnd: Duration?

        /// Whether the outcome of this request alone decides.
        package var isTrial: Bool { trialEnd != nil }
    }

    /// The answer to a request.
    package enum Admission: Hashable, Sendable {
        case pass(Pass)
        /// The request is not sent. Another one may be after this time.
        case refusal(retryAfter: Duration)
    }

    /// The meaning of a request's end for the state of the circuit.
    package enum Outcome: Sendable {
        case success, failure, unknown
    }

    /// Whether the circuit is like a new one, or lets requests through and was not used for long.
    package func isIdle(at now: Duration, isUsed: Bool) -> Bool {
        switch state {
        case .closed(let failures): failures == 0 || !isUsed
        case .open(let end), .halfOpen(let end): !isUsed && end <= now
        }
    }

    /// Returns whether a request is sent.
    package mutating func admit(at now: Duration) -> Admission {
        switch state {
        case .closed: return .pass(Pass(generation: generation, trialEnd: nil))
        case .open(let end), .halfOpen(let end):
            guard now >= end else { return .refusal(retryAfter: end - now) }
            if case .open = state { generation += 1 }
            state = .halfOpen(until: now + cooldown)
            return .pass(Pass(generation: generation, trialEnd: now + cooldown))
        }
    }

    /// Records the end of a request.
    package mutating func record(_ outcome: Outcome, of pass: Pass, at now: Duration) {
        guard pass.generation == generation else { return }
        switch (state, outcome) {
        case (.closed(let failures), .failure):
            if failures + 1 >= threshold {
                change(to: .open(until: now + cooldown))
            } else {
                state = .closed(failures: failures + 1)
            }
        case (.closed, .success): state = .closed(failures: 0)
        case (.halfOpen, .success): change(to: .closed(failures: 0))
        case (.halfOpen, .failure): change(to: .open(until: now + cooldown))
        // The next request decides in its place, unless one does already.
        case (.halfOpen(pass.trialEnd), .unknown): state = .halfOpen(until: now)
        case (.halfOpen, .unknown), (.closed, .unknown), (.open, _): break
        }
    }

    private mutating func change(to next: State) {
        state = next
        generation += 1
    }
}
