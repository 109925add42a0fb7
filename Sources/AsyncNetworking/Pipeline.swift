// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes

/// The life of a request, from the session's functions to the transport and back: one ordered list.
///
/// Each step gets the call and what to do with the response; it passes both on, changed or not, once, again, or not at all.
/// A step with nothing to do is not entered, so it costs a comparison.
///
/// The frame of an asynchronous function is on the heap as long as the request is under way, and what is inlined into it has
/// its places there. What looks at options, policies and errors, which are large, is therefore not inlined.
final class Pipeline: Sendable {
    let transport: any Transport
    let interceptors: [any Interceptor]
    let attemptInterceptors: [any Interceptor]
    let monitors: [any EventMonitor]
    let retries: RetryPolicy
    let redirects: RedirectPolicy
    let authentication: AuthenticationPolicy
    private let isAuthenticating: Bool
    let credentialMemory = CredentialMemory()
    let cachePolicy: CachePolicy
    let waitsForConnectivity: Bool
    let routes: any RouteSource
    /// Ends waits when the session cancels its requests.
    let registry: TaskRegistry
    let clock: any Clock<Duration>
    let randomUnit: @Sendable () -> Double
    /// The retries that each host may have, by the time since the session's start.
    let ledger = RetryLedger()
    let uptime: Stopwatch
    private let headers: HTTPFields
    /// Carries the session's transfer options to requests without any.
    let template: Request

    init(
        transport: any Transport, configuration: SessionConfiguration, headers: HTTPFields, registry: TaskRegistry
    ) {
        self.transport = transport
        interceptors = configuration.interceptors
        attemptInterceptors = configuration.attemptInterceptors
        monitors = configuration.eventMonitors
        retries = configuration.retries
        redirects = configuration.redirects
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

    /// The steps, in their order.
    enum Step: Int {
        /// The program's interceptors for the whole call.
        case interceptors
        /// The session's header fields and transfer options fill what the request leaves open.
        case defaults
        /// What goes wrong is sent again from here on, redirects included.
        case retries
        /// Redirects are followed, each from here on.
        case redirects
        /// The request shows who makes it, and challenges are answered, each time from here on.
        case authentication
        /// The place of the cache: what the request wants of caches is put into words.
        case cache
        /// What fails for want of a route is sent again from here on, when a route appears.
        case connectivity
        /// The program's interceptors for what is really sent.
        case attemptInterceptors
        /// The transport performs one exchange.
        case exchange
    }

    /// Performs a task's request and returns what `body` makes of the response; the scope is that of
    /// ``ANHTTP/Transport``.
    func perform<Value>(
        _ task: SessionTask, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        let call = PipelineCall(request: task.request, delivery: delivery, events: events)
        guard !monitors.isEmpty else { return try await perform(call, body: body) }
        return try await monitor(call, of: task) { call in try await perform(call, body: body) }
    }

    @inline(never)
    private func perform<Value>(
        _ call: PipelineCall, body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        var value: Value?
        try await perform(call, from: .interceptors) { head, responseBody in
            value = try await body(head, responseBody)
        }
        guard let value else {
            throw TransportError.internalInconsistency("No step of the pipeline responded.", TransferFacts())
        }
        return value
    }

    /// Performs a call from one step on, and runs `respond` once with the response that comes back to that step.
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

    /// Takes the steps that only change the request, from one on; returns the first of the others that has something to do.
    @inline(never)
    private func advance(_ call: inout PipelineCall, from first: Step) throws -> Step {
        if first <= .interceptors, !interceptors.isEmpty { return .interceptors }
        if first <= .defaults { fillDefaults(of: &call.request) }
        if first <= .retries, (call.request.retries ?? retries).limit > 0 { return .retries }
        if first <= .redirects, (call.request.redirects ?? redirects).isEnabled { return .redirects }
        if first <= .authentication, isAuthenticating || call.request.hasOwnAuthentication { return .authentication }
        if first <= .cache { try (call.request.cachePolicy ?? cachePolicy).apply(to: &call.request) }
        if first <= .connectivity, call.request.waitsForConnectivity ?? waitsForConnectivity { return .connectivity }
        if first <= .attemptInterceptors, !attemptInterceptors.isEmpty || !call.request.attemptInterceptors.isEmpty {
            return .attemptInterceptors
        }
        call.events?.receive(.started(call.request))
        return .exchange
    }

    /// Waits; ends early with an error when the task is cancelled, or when the session cancels its requests.
    func pause(_ duration: Duration) async throws {
        _ = try await waiting { [clock] in try await clock.sleep(for: duration) }
    }

    /// Runs a wait that ends when the session cancels its requests, as an exchange would; false when it takes longer than
    /// `limit`.
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
                throw TransportError.shutDown
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

/// What goes down the pipeline.
struct PipelineCall: Sendable {
    var request: Request
    /// How the body of the response will be read.
    let delivery: BodyDelivery
    /// The number of the attempt, from 1.
    var attempt = 1
    /// Told what happens in each exchange.
    var events: (any TransferEventSink)?
    /// Told what happens between exchanges, where the session has monitors.
    var monitor: CallMonitor?
}
