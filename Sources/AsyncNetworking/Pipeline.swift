// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes

/// The ordered list of steps that a request passes on its way from the session's functions to the transport, and its
/// response on the way back.
///
/// Each step receives the call and a closure for the response. It may change either, and may continue with the next
/// steps once, several times, or not at all. A step with nothing to do is skipped at the cost of a comparison.
///
/// The frame of an asynchronous function stays on the heap while the request runs, and includes the locals of all
/// functions inlined into it. Functions that handle options, policies and errors, which are large, are therefore not
/// inlined.
final class Pipeline: Sendable {
    let transport: any Transport
    let interceptors: [any Interceptor]
    let attemptInterceptors: [any Interceptor]
    let monitors: [any EventMonitor]
    let retryPolicy: RetryPolicy
    let redirectPolicy: RedirectPolicy
    let authentication: AuthenticationPolicy
    private let isAuthenticating: Bool
    let credentialCache = CredentialCache()
    let cachePolicy: CachePolicy
    let waitsForConnectivity: Bool
    let routes: any RouteSource
    /// The registry whose cancellation ends waits.
    let registry: TaskRegistry
    let clock: any Clock<Duration>
    let randomUnit: @Sendable () -> Double
    /// The retry budget left for each host; times are measured by `uptime`.
    let ledger = RetryLedger()
    let uptime: Stopwatch
    private let headers: HTTPFields
    /// A request that carries the session's transfer options, inherited by requests without options.
    let template: Request

    init(
        transport: any Transport, configuration: SessionConfiguration, headers: HTTPFields, registry: TaskRegistry
    ) {
        self.transport = transport
        interceptors = configuration.interceptors
        attemptInterceptors = configuration.attemptInterceptors
        monitors = configuration.eventMonitors
        retryPolicy = configuration.retryPolicy
        redirectPolicy = configuration.redirectPolicy
        authentication = configuration.authentication
        isAuthenticating = configuration.authentication.isActive
        cachePolicy = configuration.cachePolicy
        waitsForConnectivity = configuration.waitsForConnectivity
        routes = configuration.routes
        self.registry = registry
        clock = configuration.clock
        randomUnit = configuration.randomUnit
        uptime = Stopwatch(clock)
        self.headers = headers
        template = Request(url: URL(filePath: "/"), options: configuration.transfer)
    }

    /// The steps, in order.
    enum Step: Int {
        /// The interceptors around the whole call.
        case interceptors
        /// Adds the session's header fields and transfer options where the request has none.
        case defaults
        /// Retries failed attempts; each attempt starts after this step.
        case retries
        /// Follows redirects; each request of a chain starts after this step.
        case redirects
        /// Adds credentials and answers challenges; each authenticated request starts after this step.
        case authentication
        /// Adds `Cache-Control` from the cache policy.
        case cache
        /// Waits for a route if the host is unreachable; the request is sent again from after this step.
        case connectivity
        /// The interceptors around each exchange.
        case attemptInterceptors
        /// One exchange, performed by the transport.
        case exchange
    }

    /// Performs a task's request and returns the value that `body` returns. The response's body is valid only while
    /// `body` runs, as for ``ANHTTP/Transport``.
    func perform<Value>(
        _ task: AnyTransferTask, _ request: Request, delivery: BodyDelivery,
        reporting events: (any TransferEventSink)?,
        body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        var call = PipelineCall(request: request, delivery: delivery, events: events)
        call.request.startTimeout(on: clock)
        guard !monitors.isEmpty else { return try await perform(call, body: body) }
        return try await monitor(call, of: task) { call in try await perform(call, body: body) }
    }

    @inline(never)
    private func perform<Value>(
        _ call: PipelineCall, body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        var value: Value?
        do {
            try await perform(call, from: .interceptors) { head, responseBody in
                value = try await body(head, responseBody)
            }
        } catch {
            throw call.request.namingTimeout(error)
        }
        guard let value else {
            throw TransportError(.internalInconsistency("No step of the pipeline responded."))
        }
        return value
    }

    /// Performs a call starting at one step, and runs `respond` once with the response that reaches that step.
    @inline(never)
    func perform(
        _ call: PipelineCall, from first: Step, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        var call = call
        switch try advance(&call, from: first) {
        case .interceptors: try await intercept(call, by: interceptors[...], before: .defaults, respond: respond)
        case .retries: try await retry(call, respond: respond)
        case .redirects: try await followRedirects(of: call, respond: respond)
        case .authentication: try await authenticate(call, respond: respond)
        case .connectivity: try await whenConnected(call, respond: respond)
        case .attemptInterceptors:
            let interceptors = attemptInterceptors + call.request.attemptInterceptors
            try await intercept(call, by: interceptors[...], before: .exchange, respond: respond)
        case .defaults, .cache, .exchange:
            try await transport.perform(
                call.request, delivery: call.delivery, reporting: call.events, body: respond)
        }
    }

    /// Performs the steps that only change the request, starting at one step. Returns the next step that must be
    /// entered because it has something to do.
    @inline(never)
    private func advance(_ call: inout PipelineCall, from first: Step) throws -> Step {
        if first <= .interceptors, !interceptors.isEmpty { return .interceptors }
        if first <= .defaults {
            fillDefaults(of: &call.request)
            try call.request.limitToTimeLeft()
        }
        if first <= .retries, (call.request.retryPolicy ?? retryPolicy).limit > 0 { return .retries }
        if first <= .redirects, (call.request.redirectPolicy ?? redirectPolicy).isEnabled { return .redirects }
        if first <= .authentication, isAuthenticating || call.request.hasOwnAuthentication { return .authentication }
        if first <= .cache { try (call.request.cachePolicy ?? cachePolicy).apply(to: &call.request) }
        if first <= .connectivity, call.request.waitsForConnectivity ?? waitsForConnectivity { return .connectivity }
        if first <= .attemptInterceptors, !attemptInterceptors.isEmpty || !call.request.attemptInterceptors.isEmpty {
            return .attemptInterceptors
        }
        try call.request.limitToTimeLeft()
        call.events?.receive(.started(call.request))
        return .exchange
    }

    /// Sleeps for a duration.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, `TransportError.Reason.shutDown` if the session cancels its
    ///   requests.
    func pause(_ duration: Duration) async throws {
        _ = try await waiting { [clock] in try await clock.sleep(for: duration) }
    }

    /// Runs a wait that ends early if the session cancels its requests, as an exchange would.
    ///
    /// - Returns: `false` if the wait exceeds `limit`.
    /// - Throws: The error that `wait` throws, `CancellationError` if the task is cancelled, or
    ///   `TransportError.Reason.shutDown` if the session cancels its requests.
    func waiting(
        upTo limit: Duration? = nil, _ wait: @escaping @Sendable () async throws -> Void
    ) async throws -> Bool {
        try Task.checkCancellation()
        return try await withThrowingTaskGroup(of: WaitEnd.self) { group in
            group.addTask {
                try await wait()
                return .over
            }
            group.addTask { [registry] in
                await registry.waitUntilCancelling()
                return .sessionEnds
            }
            if let limit {
                group.addTask { [clock] in
                    try await clock.sleep(for: min(limit, .longestSleep))
                    return .limit
                }
            }
            defer { group.cancelAll() }
            switch try await group.next() {
            case .over: return true
            case .limit: return false
            case .sessionEnds, nil:
                try Task.checkCancellation()
                throw TransportError(.shutDown)
            }
        }
    }

    private enum WaitEnd {
        case over, limit, sessionEnds
    }

    private func fillDefaults(of request: inout Request) {
        request.inheritOptions(from: template)
        let own = request.headers
        guard !own.isEmpty else { return request.headers = headers }
        for field in headers where !own.contains(field.name) { request.headers.append(field) }
    }
}

extension Pipeline.Step: Comparable {
    static func < (left: Pipeline.Step, right: Pipeline.Step) -> Bool { left.rawValue < right.rawValue }
}

/// A request on its way through the pipeline.
struct PipelineCall: Sendable {
    var request: Request
    /// How the caller reads the response's body.
    let delivery: BodyDelivery
    /// The number of the attempt, starting at 1.
    var attempt = 1
    /// Receives the events of each exchange.
    var events: (any TransferEventSink)?
    /// Receives the events between exchanges; `nil` if the session has no monitors.
    var monitor: CallMonitor?
}
