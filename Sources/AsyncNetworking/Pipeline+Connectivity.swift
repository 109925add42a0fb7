// SPDX-License-Identifier: MIT

import ANHTTP
package import ANReachability
import FoundationEssentials

/// Tells whether there is a way for packets: the monitor of the system's routes, or a test's own.
package protocol RouteSource: Sendable {
    /// Whether there is certainly no route to a target now.
    func isUnreachable(_ target: ReachabilityTarget) async -> Bool
    /// Returns when there may be a route.
    func waitForRoute(to target: ReachabilityTarget) async throws(CancellationError)
}

extension ReachabilityMonitor: RouteSource {
    /// Whether the system says that there is no route; not so where it says nothing.
    package func isUnreachable(_ target: ReachabilityTarget) async -> Bool {
        (try? await status(of: target)) == .notReachable
    }
}

extension Pipeline {
    /// Performs a call, and again each time that a route appears, as long as it fails for want of one.
    ///
    /// Only the attempt can tell whether there is a way, so it comes first and the question after it.
    func whenConnected(
        _ call: PipelineCall, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        let stopwatch = Stopwatch(clock)
        var waits = 0
        while true {
            var hasResponse = false
            do {
                return try await perform(call, from: .afterConnectivity) { head, body in
                    hasResponse = true
                    try await respond(head, body)
                }
            } catch let error as TransportError {
                guard !hasResponse, call.request.body.isReplayable, let target = error.missingRoute(call.request),
                    await routes.isUnreachable(target)
                else { throw error }
                call.monitor?.receive(.waitingForConnectivity(error))
                // Routes that come and go, or that are no use, must not make a busy loop.
                if waits > 0 { try await pause(Backoff().wait(beforeRetry: waits, unit: 1)) }
                try await waitForRoute(to: target, because: error, call.request, since: stopwatch)
                waits += 1
            }
        }
    }

    private func waitForRoute(
        to target: ReachabilityTarget, because error: TransportError, _ request: Request, since stopwatch: Stopwatch
    ) async throws {
        let limit = request.options?.timeouts.connectivity
        let left = limit.map { max(.zero, $0 - stopwatch.elapsed) }
        let isInTime = try await waiting(upTo: left) { [routes] in try await routes.waitForRoute(to: target) }
        guard isInTime else {
            throw TransportError.timedOut(.connectivity, limit: limit ?? .zero, error.facts ?? TransferFacts())
        }
    }
}

extension Pipeline.Step {
    /// Where each try begins.
    fileprivate static let afterConnectivity = Pipeline.Step.attemptInterceptors
}

extension TransportError {
    /// What must be reachable before a request that failed by this error can go well; nil where a route would not help.
    fileprivate func missingRoute(_ request: Request) -> ReachabilityTarget? {
        switch self {
        case .cannotResolve: .defaultRoute
        case .cannotConnect(.unreachable, let facts): (facts.host ?? request.url.host()).map { .host($0) }
        default: nil
        }
    }
}

extension Request {
    /// Whether this request waits for a route to its host where there is none, rather than fail; nil, the default, means
    /// as the session says. See ``AsyncNetworking/SessionConfiguration/waitsForConnectivity``.
    public var waitsForConnectivity: Bool? {
        get { self[WaitsForConnectivity.self] }
        set { self[WaitsForConnectivity.self] = newValue }
    }
}

private enum WaitsForConnectivity: RequestAttribute {
    static var defaultValue: Bool? { nil }
}
