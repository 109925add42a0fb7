// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
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
    /// The session's response cache; `nil` if it has none.
    let cache: SessionCache?
    /// The hosts that require https.
    let strictTransport: StrictTransportStore
    let usesStrictTransport: Bool
    /// The alternative services that servers have offered.
    let alternativeServices: AlternativeServiceStore
    let usesAlternativeServices: Bool
    /// Whether they are used, and the transport can use them.
    let triesAlternativeServices: Bool
    let waitsForConnectivity: Bool
    let routes: any RouteSource
    /// The registry whose cancellation ends waits.
    let registry: TaskRegistry
    let clock: any Clock<Duration>
    let randomUnit: @Sendable () -> Double
    /// The retry budget left for each host; times are measured by `uptime`.
    let ledger = RetryLedger()
    let uptime: Stopwatch
    /// The header fields of requests that do not have their own.
    let headers: HTTPFields
    /// A request that carries the session's transfer options, inherited by requests without options.
    let template: Request
    private let jsonDecoder: JSONDecoder

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
        cache = SessionCache(configuration, jar: transport.storedCookies)
        let now: @Sendable () -> Date = { [now = configuration.now] in
            Date(timeIntervalSince1970: Double(now().milliseconds) / 1_000)
        }
        strictTransport = StrictTransportStore(now: now)
        usesStrictTransport = configuration.usesStrictTransport
        alternativeServices = AlternativeServiceStore(now: now)
        usesAlternativeServices = configuration.usesAlternativeServices
        triesAlternativeServices = configuration.usesAlternativeServices && transport.usesAlternativeRoutes
        waitsForConnectivity = configuration.waitsForConnectivity
        routes = configuration.routes
        self.registry = registry
        clock = configuration.clock
        randomUnit = configuration.randomUnit
        uptime = Stopwatch(clock)
        self.headers = headers
        jsonDecoder = configuration.json.decoder
        template = Request(url: URL(filePath: "/"), options: configuration.transfer)
    }

    /// The steps, in order.
    ///
    /// A new step is one entry at its place in this list: a closure that changes the request, or a condition and a
    /// function. The function passes the call on by ``perform(_:respond:)``, which performs the steps after its own; it
    /// may do so once, several times or not at all.
    private static let steps: [Step] = [
        // The interceptors around the whole call.
        Step(if: { pipeline, _ in !pipeline.interceptors.isEmpty }) {
            try await $0.intercept($1, by: $0.interceptors[...], respond: $2)
        },
        // Adds the session's header fields and transfer options where the request has none.
        Step {
            $0.fillDefaults(of: &$1)
            try $1.limitToTimeLeft(on: $0.clock)
        },
        // Retries failed attempts, and sends the further requests of downloads.
        Step(if: { ($1.request.retryPolicy?.limit ?? $0.retryPolicy.limit) > 0 || $1.continuation != nil }) {
            try await $0.retry($1, respond: $2)
        },
        // Replaces `http` by `https` for hosts that require it.
        Step { $1.url = $0.strictURL($1.url) },
        // Follows redirects.
        Step(if: { $1.request.redirectPolicy?.isEnabled ?? $0.redirectPolicy.isEnabled }) {
            try await $0.followRedirects(of: $1, respond: $2)
        },
        // Adds credentials and answers challenges.
        Step(if: { $0.isAuthenticating || $1.request.hasOwnAuthentication }) {
            try await $0.authenticate($1, respond: $2)
        },
        // Answers from the response cache, and stores responses.
        Step(if: { $0.cache != nil && $1.request.webSocketUpgrade == nil }) {
            try await $0.answerFromCache($1, respond: $2)
        },
        // Adds `Cache-Control` from the cache policy.
        Step { try ($1.cachePolicy ?? $0.cachePolicy).apply(to: &$1) },
        // Waits for a route if the host is unreachable.
        Step(if: { $1.request.waitsForConnectivity ?? $0.waitsForConnectivity }) {
            try await $0.whenConnected($1, respond: $2)
        },
        // The interceptors around each exchange.
        Step(if: { !$0.attemptInterceptors.isEmpty || !$1.request.attemptInterceptors.isEmpty }) {
            let interceptors = $0.attemptInterceptors + $1.request.attemptInterceptors
            try await $0.intercept($1, by: interceptors[...], respond: $2)
        },
        // Uses alternative services, and notes those that servers offer and which hosts require https.
        Step(if: { $0.learns(from: $1.request) }) { try await $0.performAndLearn($1, respond: $2) },
    ]

    /// Performs a task's request and returns the value that `body` returns. The response's body is valid only while
    /// `body` runs, as for ``ANHTTP/Transport``.
    @inline(never)
    func perform<Value>(
        _ task: AnyTransferTask, _ request: Request, delivery: BodyDelivery,
        reporting events: (any TransferEventSink)?, continuation: Continuation?,
        body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        var call = PipelineCall(
            request: request, delivery: delivery, events: events, record: request.record, continuation: continuation)
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
            try await perform(call) { head, responseBody in
                value = try await body(head.decoding(by: jsonDecoder), responseBody.decoding(by: jsonDecoder))
            }
        } catch {
            throw call.request.namingTimeout(error)
        }
        guard let value else {
            throw TransportError(.internalInconsistency("No step of the pipeline responded."))
        }
        return value
    }

    /// Performs the remaining steps of a call and the exchange, and runs `respond` once with the response.
    @inline(never)
    func perform(
        _ call: PipelineCall, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        var call = call
        if let step = try advance(&call) { return try await step(self, call, respond) }
        if let record = call.record { return try await exchange(call, notingIn: record, respond: respond) }
        try await transport.perform(call.request, delivery: call.delivery, reporting: call.events, body: respond)
    }

    /// Performs the exchange, and records whether a server may have seen its request.
    @inline(never)
    private func exchange(
        _ call: PipelineCall, notingIn record: AttemptRecord,
        respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        do {
            try await transport.perform(call.request, delivery: call.delivery, reporting: call.events) { head, body in
                record.note(call.request, .success(head))
                try await respond(head, body)
            }
        } catch {
            record.note(call.request, .failure(error))
            throw error
        }
    }

    /// Performs the next steps that only change the request. Returns the next step that runs around others; `nil` if
    /// only the exchange is left.
    @inline(never)
    private func advance(_ call: inout PipelineCall) throws -> Step.Function? {
        while call.nextStep < Self.steps.count {
            let step = Self.steps[call.nextStep]
            call.nextStep += 1
            if try step.prepare(self, &call) { return step.function }
        }
        try call.request.limitToTimeLeft(on: clock)
        call.events?.receive(.started(call.request))
        return nil
    }

    /// Sleeps for a duration.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, `TransportError.Reason.shutDown` if the session cancels
    ///   its requests.
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

    /// A step of the pipeline: a change of the request, or a function around the remaining steps.
    private struct Step: Sendable {
        typealias Function =
            @Sendable (
                Pipeline, PipelineCall, (ResponseHead, ResponseBody) async throws -> Void
            ) async throws -> Void

        /// Changes the request, and returns whether ``function`` has something to do for the call.
        let prepare: @Sendable (Pipeline, inout PipelineCall) throws -> Bool
        let function: Function?

        /// Creates a step that only changes the request.
        init(_ change: @escaping @Sendable (Pipeline, inout Request) throws -> Void) {
            prepare = { pipeline, call in
                try change(pipeline, &call.request)
                return false
            }
            function = nil
        }

        /// Creates a step that runs around the remaining ones, for calls that it applies to.
        init(if applies: @escaping @Sendable (Pipeline, PipelineCall) -> Bool, _ function: @escaping Function) {
            prepare = { applies($0, $1) }
            self.function = function
        }
    }

    private enum WaitEnd {
        case over, limit, sessionEnds
    }

    private func fillDefaults(of request: inout Request) {
        request.inheritOptions(from: template)
        request.headers.fill(from: headers)
    }
}

/// A request on its way through the pipeline.
struct PipelineCall: Sendable {
    var request: Request
    /// The index of the next step in the list of the pipeline.
    fileprivate(set) var nextStep = 0
    /// How the caller reads the response's body.
    var delivery: BodyDelivery
    /// The number of the attempt, starting at 1.
    var attempt = 1
    /// Receives the events of each exchange.
    var events: (any TransferEventSink)?
    /// Records the exchanges; `nil` if nothing repeats the call.
    var record: AttemptRecord?
    /// The origin for which credentials were added to the request; `nil` if none were added.
    var credentialOrigin: Origin?
    /// How the call goes on after a response; `nil` if the response is the result.
    var continuation: Continuation?
    /// Receives the events between exchanges; `nil` if the session has no monitors.
    var monitor: CallMonitor?
}

extension HTTPFields {
    /// Adds the fields whose names are missing.
    mutating func fill(from others: HTTPFields) {
        guard !isEmpty else { return self = others }
        let own = self
        for field in others where !own.contains(field.name) { append(field) }
    }
}

extension ResponseHead {
    /// Returns the head with the decoder of a session.
    @inline(never)
    fileprivate func decoding(by decoder: JSONDecoder) -> ResponseHead {
        var head = self
        head.jsonDecoder = decoder
        return head
    }
}

extension ResponseBody {
    /// Returns the body with the decoder of a session.
    @inline(never)
    fileprivate func decoding(by decoder: JSONDecoder) -> ResponseBody {
        var body = self
        body.jsonDecoder = decoder
        return body
    }
}
