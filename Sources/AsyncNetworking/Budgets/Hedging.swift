// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes
import Synchronization

/// Sends a request a second time if its response takes longer than most, and uses the first response.
///
/// ```swift
/// let api = SessionManager {
///     $0.attemptInterceptors = [Hedging()]
/// }
/// ```
///
/// The second request is sent when the first one has taken longer than 95 % of the recent requests to its origin (scheme,
/// host and port), of which at least 20 must be known. The request that loses is cancelled. If one fails, the response of
/// the other is used; a failure before the second request is sent is one of the call.
///
/// Only requests with a safe or idempotent method (RFC 9110 §9.2), or with an `Idempotency-Key`, and with a replayable
/// body are repeated, and at most 5 % of them, so that a server that is slow because of its load gets little more.
/// The time includes the body if it is collected in memory, and otherwise ends with the head. The events of both
/// requests are reported. Interceptors inside this one run in child tasks, which do not share the isolation of the task that
/// makes the request. Copies, and the sessions that have one, share the statistics.
public struct Hedging: Interceptor, FieldPreservingInterceptor {
    private let statistics: Statistics

    /// Creates an interceptor without statistics.
    ///
    /// - Parameters:
    ///   - percentile: The share of the recent requests that were faster than the wait before the second request; 0.95
    ///     by default, and between 0 and 1.
    ///   - maximumShare: The maximum share of requests that are repeated; 0.05 by default, and between 0 and 1.
    public init(percentile: Double = 0.95, maximumShare: Double = 0.05) {
        statistics = Statistics(HedgingPlan(percentile: percentile, maximumShare: maximumShare))
    }

    /// Sends the request, and a second time if necessary.
    public func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        guard Self.mayBeRepeated(request) else { return try await next(request) }
        let origin = next.pipeline.origin(of: request)
        let stopwatch = Stopwatch(next.pipeline.clock)
        let response: OpenResponse
        if let wait = await statistics.begin(origin) {
            response = try await race(request, next, origin, after: wait)
        } else {
            response = try await next(request)
        }
        // The time of a stored response says nothing of the server.
        if await next.hasSent { await statistics.record(stopwatch.elapsed, origin) }
        return response
    }

    private func race(
        _ request: Request, _ next: Chain, _ origin: Origin, after wait: Duration
    ) async throws -> OpenResponse {
        let finish = Finish()
        func entrant(isHedge: Bool) -> Request {
            var entrant = request
            if isHedge { entrant.isHedge = true }
            entrant[Supersession.self] = { finish.isLost(byHedge: isHedge) }
            return entrant
        }
        return try await withTaskGroup(of: Event.self) { group in
            group.addTask { [request = entrant(isHedge: false)] in await .sending(request, next, isHedge: false) }
            group.addTask { [clock = next.pipeline.clock] in
                try? await clock.sleep(for: wait.bounded)
                return .due
            }
            var (running, failure): (Int, (any Error)?) = (1, nil)
            var winner: OpenResponse?
            while running > 0, let event = await group.next() {
                switch event {
                case .due:
                    guard winner == nil, failure == nil, !Task.isCancelled, await statistics.spend(origin) else {
                        continue
                    }
                    running += 1
                    group.addTask { [hedge = entrant(isHedge: true)] in await .sending(hedge, next, isHedge: true) }
                case .ended(.success(let response), let isHedge):
                    running -= 1
                    finish.note(isHedge: isHedge)
                    // Of the request that was cancelled.
                    if winner != nil { await response.close() } else { winner = response }
                    group.cancelAll()
                case .ended(.failure(let error), let isHedge):
                    running -= 1
                    // The hedge may have failed before it was sent, as by a limit that it exceeds.
                    let isFirst = !isHedge && !(failure is CancellationError)
                    if failure == nil || isFirst || error is CancellationError { failure = error }
                }
            }
            group.cancelAll()
            return winner.map { .success($0) }
                ?? Result<OpenResponse, any Error>.failure(failure ?? CancellationError())
        }
        .get()
    }

    /// Which of the two requests was answered first.
    private final class Finish: Sendable {
        /// 0 before that, 1 for the given request, 2 for the hedge.
        private let winner = Atomic(0)

        func note(isHedge: Bool) {
            _ = winner.compareExchange(expected: 0, desired: isHedge ? 2 : 1, ordering: .acquiringAndReleasing)
        }

        func isLost(byHedge isHedge: Bool) -> Bool { winner.load(ordering: .acquiring) == (isHedge ? 1 : 2) }
    }

    private enum Event: Sendable {
        /// The wait is over.
        case due
        case ended(Result<OpenResponse, any Error>, isHedge: Bool)

        static func sending(_ request: Request, _ next: Chain, isHedge: Bool) async -> Event {
            do {
                return .ended(.success(try await next(request, besideOthers: isHedge)), isHedge: isHedge)
            } catch {
                return .ended(.failure(error), isHedge: isHedge)
            }
        }
    }

    private static func mayBeRepeated(_ request: Request) -> Bool {
        (RetryPolicy().methods.contains(request.method) || request.headers.contains(.idempotencyKey))
            && request.body.isReplayable && request.webSocketOptions == nil
    }

    private actor Statistics {
        private var plans: OriginTable<Origin, HedgingPlan>

        init(_ plan: HedgingPlan) { plans = OriginTable(plan) }

        func begin(_ origin: Origin) -> Duration? { update(origin) { $0.begin() } }
        func spend(_ origin: Origin) -> Bool { update(origin) { $0.spend() } }
        func record(_ time: Duration, _ origin: Origin) { update(origin) { $0.record(time) } }

        private func update<Value>(_ origin: Origin, _ change: (inout HedgingPlan) -> Value) -> Value {
            plans.update(origin, isIdle: { _, isUsed in !isUsed }, change)
        }
    }
}

extension Request {
    /// Whether the request was sent because another one takes long, for whose response it does not wait.
    fileprivate(set) var isHedge: Bool {
        get { self[HedgeAttribute.self] }
        set { self[HedgeAttribute.self] = newValue }
    }

    private enum HedgeAttribute: CallAttribute {
        static var defaultValue: Bool { false }
    }
}

/// The statistics of the requests to one origin, and the number of them that may be repeated.
package struct HedgingPlan: Sendable {
    private let percentile: Double
    private let maximumShare: Double
    /// The times of the recent requests, the oldest at ``next``.
    private var times: [Duration] = []
    private var next = 0
    /// The number of requests that may be repeated now.
    private var credit = 0.0

    /// Creates a plan without statistics.
    package init(percentile: Double, maximumShare: Double) {
        func share(_ number: Double) -> Double { number.isNaN ? 0 : min(max(number, 0), 1) }
        (self.percentile, self.maximumShare) = (percentile.isNaN ? 0.95 : share(percentile), share(maximumShare))
    }

    /// Counts a request, and returns the wait before it is repeated; `nil` if too little is known.
    package mutating func begin() -> Duration? {
        credit = min(credit + maximumShare, Self.maximumCredit)
        guard times.count >= Self.fewest else { return nil }
        let sorted = times.sorted()
        return sorted[max(0, Int((Double(sorted.count) * percentile).rounded(.up)) - 1)]
    }

    /// Whether a request may be repeated, which is counted.
    package mutating func spend() -> Bool {
        // A sum of twenty shares of 0.05 is less than 1 by a rounding error.
        guard credit > 1 - 1e-9 else { return false }
        credit -= 1
        return true
    }

    /// Records the time that a request took.
    package mutating func record(_ time: Duration) {
        if times.count < Self.most { return times.append(time) }
        times[next] = time
        next = (next + 1) % Self.most
    }

    private static let (fewest, most) = (20, 100)
    /// The credit that accumulates while nothing is repeated.
    private static let maximumCredit = 10.0
}
