// SPDX-License-Identifier: MIT

import ANHTTP
package import ANReachability
import FoundationEssentials

/// A source of information about network routes: the system's, or a test's.
package protocol RouteSource: Sendable {
    /// Whether there certainly is no route to a target at present.
    func isUnreachable(_ target: ReachabilityTarget) async -> Bool
    /// Returns when there may be a route to a target.
    func waitForRoute(to target: ReachabilityTarget) async throws(CancellationError)
}

extension ReachabilityMonitor: RouteSource {
    /// Whether the system reports that there is no route; `false` if the status is unknown.
    package func isUnreachable(_ target: ReachabilityTarget) async -> Bool {
        (try? await status(of: target)) == .notReachable
    }
}

extension Pipeline {
    /// Sends a request, and again whenever a route appears, as long as it fails for lack of a route.
    ///
    /// The request is sent first and the route checked after its failure, because only an attempt shows whether the
    /// host can be reached. An interceptor may have sent others before.
    func whenConnected(_ request: Request, _ call: inout Call, _ next: Next) async throws -> OpenResponse {
        let stopwatch = Stopwatch(clock)
        var (request, waits) = (request, 0)
        let earlier = call.seen
        call.seen = SeenRequests()
        defer { call.seen.formUnion(earlier) }
        while true {
            do {
                return try await next(request, &call)
            } catch let error as TransportError {
                request.adoptTimeout(of: call)
                try await waitForRoute(after: error, of: request, &call, since: stopwatch, earlierWaits: waits)
                waits += 1
            }
        }
    }

    /// Waits for a route, for lack of which a request failed.
    ///
    /// - Throws: The error, if it has another reason or the request must not be repeated.
    @inline(never)
    private func waitForRoute(
        after error: TransportError, of request: Request, _ call: inout Call, since stopwatch: Stopwatch,
        earlierWaits: Int
    ) async throws {
        guard request.body.isReplayable, (request.retryPolicy ?? retryPolicy).permitsRepeating(call.seen),
            case let targets = try await missingRoutes(of: request, after: error), !targets.isEmpty
        else { throw error }
        report(.waitingForConnectivity(error), of: &call)
        // Prevents a busy loop if routes appear and vanish quickly, or do not help.
        if earlierWaits > 0 {
            let wait = Backoff().wait(beforeRetry: earlierWaits, unit: 1)
            try await pause(min(wait, waitLeft(for: request, since: stopwatch) ?? wait))
        }
        try await waitForRoute(to: targets, because: error, request, since: stopwatch)
    }

    /// Returns the targets to none of which there is a route, for which reason a request failed; none if it failed for
    /// another reason.
    ///
    /// - Throws: The errors of ``isUnreachable(_:for:)``.
    func missingRoutes(of request: Request, after error: any Error) async throws -> [ReachabilityTarget] {
        guard let error = error as? TransportError else { return [] }
        let targets = neededRoutes(request, after: error)
        for target in targets {
            guard try await isUnreachable(target, for: request) else { return [] }
        }
        return targets
    }

    /// Returns the targets of which one must be reachable before a request can succeed; none if a route would not help.
    private func neededRoutes(_ request: Request, after error: TransportError) -> [ReachabilityTarget] {
        let needsName = error.reason == .cannotResolve
        guard needsName || error.reason == .cannotConnect(.unreachable) else { return [] }
        let context = error.context
        var failed = request
        // That of a redirect, for an interceptor around calls.
        if let url = URL(string: context.url), url.host() != nil { failed.url = url }
        let proxy = context.host.flatMap { $0 == failed.url.host() ? nil : HostName($0) }
        let name = proxy ?? lookedUpName(failed)
        // A name of a network without a default route may become known.
        if needsName { return [.defaultRoute] + (name.map { [.host($0.zonedText)] } ?? []) }
        if let name { return [.host(name.zonedText)] }
        guard let address = context.address, let tried = IPAddress(address.host) else { return [.defaultRoute] }
        // A name may have other addresses than the one that was tried last.
        let overrides = request.options(inheriting: options).value.connection.hostOverrides
        let isFixed = overrides.contains { HostName($0.address) == HostName(address.host) }
        return isFixed ? [.address(tried)] : [.address(tried), .defaultRoute]
    }

    /// Returns the name of a URL's host if the request is sent to the addresses that the system's resolver has for it.
    private func lookedUpName(_ request: Request) -> HostName? {
        let name = HostName(request.url)
        var request = request
        request.inheritOptions(options)
        let isLookedUp =
            transport.features.reachesHost(request) && request.options?.connection.dnsOverHTTPS == nil
        // libcurl converts the others.
        return isLookedUp && !name.isInternational ? name : nil
    }

    /// Whether there certainly is no route to the host of a request, which is sent to that itself.
    ///
    /// - Throws: The errors of ``isUnreachable(_:for:)``.
    func lacksRoute(_ request: Request) async throws -> Bool {
        guard let name = lookedUpName(request) else { return false }
        // The name of the host is looked up only without a default route.
        guard try await isUnreachable(.defaultRoute, for: request) else { return false }
        return try await isUnreachable(.host(name.zonedText), for: request)
    }

    /// Whether there certainly is no route to a target, which may take as long as the lookup of a name.
    ///
    /// - Throws: `TransportError.timedOut` if the time of the request is over before that is known, and the errors of
    ///   ``waiting(upTo:_:)``.
    private func isUnreachable(_ target: ReachabilityTarget, for request: Request) async throws -> Bool {
        let result = try await waiting(upTo: request.timeLeft) { [routes] in await routes.isUnreachable(target) }
        // A check that is cancelled has found out nothing.
        try Task.checkCancellation()
        guard let result else {
            throw TransportError.timedOut(.connectivity, request.expiredTimeout, FailureContext(request.url))
        }
        return result
    }

    private func waitForRoute(
        to targets: [ReachabilityTarget], because error: TransportError, _ request: Request, since stopwatch: Stopwatch
    ) async throws {
        let left = waitLeft(for: request, since: stopwatch)
        let end: Void? = try await waiting(upTo: left) { [routes] in
            try await withThrowingTaskGroup { group in
                for target in targets { group.addTask { try await routes.waitForRoute(to: target) } }
                try await group.next()
                group.cancelAll()
            }
        }
        guard end != nil else {
            let limit = request.expiredTimeout ?? request.options?.timeouts.connectivity
            throw TransportError.timedOut(.connectivity, limit, error.context)
        }
    }

    /// Returns the time left for waits for a route, at least zero; `nil` without a limit.
    private func waitLeft(for request: Request, since stopwatch: Stopwatch) -> Duration? {
        let left = request.options?.timeouts.connectivity.map { max(.zero, $0 - stopwatch.elapsed) }
        return [left, request.timeLeft].compactMap(\.self).min()
    }
}

extension Request {
    /// Whether this request, if it fails because there is no route to its host or proxy, waits for one and is then sent
    /// again; `nil`, the default, uses ``AsyncNetworking/SessionConfiguration/waitsForConnectivity``.
    ///
    /// It also waits if the host name cannot be resolved while there is no default route.
    /// ``ANHTTP/Timeouts/connectivity`` limits the wait, and so do `timeout` and the deadline of the retry policy; by
    /// default there is no limit. A request for which there is a stored response that may be used if the server fails does
    /// not wait, nor does a validation in the background. A request whose body is not replayable fails without waiting, as
    /// does one that an interceptor has sent before if its method may not be repeated, and any request if the system's
    /// routes cannot be read.
    public var waitsForConnectivity: Bool? {
        get { self[WaitsForConnectivity.self] }
        set { self[WaitsForConnectivity.self] = newValue }
    }
}

private enum WaitsForConnectivity: RequestAttribute {
    static var defaultValue: Bool? { nil }
}
