// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import ANSerialization
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The ordered list of steps that a request passes on its way from the session's functions to the transport, and its
/// response on the way back.
///
/// Each step receives a request, asks the next one for a response, and returns a response. It may change either, and may
/// ask once, several times, or not at all. A step with nothing to do is skipped at the cost of a comparison.
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
    let cachePolicy: CachePolicy
    /// The session's response cache; `nil` if it has none.
    let cache: SessionCache?
    let state: Lock<SessionState>
    let usesStrictTransport: Bool
    let usesAlternativeServices: Bool
    /// Whether alternative services are used, and the transport can use them.
    let triesAlternativeServices: Bool
    let waitsForConnectivity: Bool
    let routes: any RouteSource
    /// The registry whose cancellation ends waits.
    var registry: TaskRegistry { TaskRegistry(state: state) }
    let clock: any Clock<Duration>
    /// The clock if it is not the system's.
    let ownClock: (any Clock<Duration>)?
    /// The current date.
    let now: @Sendable () -> Date
    let randomUnit: @Sendable () -> Double
    /// Measures the times of retry budgets.
    let uptime: Stopwatch
    /// The header fields of requests that do not have their own.
    let headers: HTTPFields
    /// The session's transfer options, which requests without options inherit.
    let options: SharedTransferOptions
    let json: JSONCoding

    init(
        transport: any Transport, configuration: SessionConfiguration, headers: HTTPFields, state: Lock<SessionState>
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
        options = SharedTransferOptions(configuration.transfer)
        cache = SessionCache(configuration, options, state, jar: transport.features.cookies)
        let now: @Sendable () -> Date = { [now = configuration.date] in
            Date(timeIntervalSince1970: Double(now().milliseconds) / 1_000)
        }
        self.now = now
        usesStrictTransport = configuration.usesStrictTransport
        usesAlternativeServices = configuration.usesAlternativeServices
        triesAlternativeServices = configuration.usesAlternativeServices && transport.features.usesAlternativeRoutes
        waitsForConnectivity = configuration.waitsForConnectivity
        routes = configuration.routes
        self.state = state
        clock = configuration.clock
        ownClock = clock is ContinuousClock ? nil : clock
        randomUnit = configuration.randomUnit
        uptime = Stopwatch(clock)
        self.headers = headers
        json = configuration.json
    }

    /// The steps, in order.
    ///
    /// A new step is one entry at its place in this list: a closure that changes the request, or a condition and a
    /// function that asks for a response by its ``Next`` and returns one.
    private static let steps: [Step] = [
        // Encodes JSON and forms.
        Step { try $1.encodeBody(with: $0.json.encoder) },
        // The interceptors around the whole call.
        Step(if: { pipeline, _ in !pipeline.interceptors.isEmpty }) {
            try await $0.intercept($1, &$2, by: $0.interceptors[...], $3)
        },
        // Adds the session's header fields and transfer options where the request has none.
        Step {
            try $1.headers.checkCount()
            $0.fillDefaults(of: &$1)
            try $0.limitToTimeLeft(&$1)
        },
        // Retries failed attempts.
        Step(if: { ($1.retryPolicy?.limit ?? $0.retryPolicy.limit) > 0 }) { try await $0.retry($1, &$2, $3) },
        // Replaces `http` by `https` for hosts that require it.
        Step { $0.requireTLS(of: &$1) },
        // Follows redirects.
        Step(if: { $1.redirectPolicy?.isEnabled ?? $0.redirectPolicy.isEnabled }) {
            try await $0.followRedirects($1, &$2, $3)
        },
        // Adds credentials and answers challenges.
        Step(if: { $0.isAuthenticating || $1.hasOwnAuthentication }) { try await $0.authenticate($1, &$2, $3) },
        // Answers from the response cache, and stores responses.
        Step(if: { $0.cache != nil && $1.webSocketOptions == nil }) { try await $0.answerFromCache($1, &$2, $3) },
        // Adds `Cache-Control` from the cache policy.
        Step { try ($1.cachePolicy ?? $0.cachePolicy).apply(to: &$1) },
        // Refreshes a token that is due.
        Step(if: { $1.token?.standing == .due }) { try await $0.refreshToken($1, &$2, $3) },
        // Waits for a route if the host is unreachable.
        Step(if: { $1.waitsForConnectivity ?? $0.waitsForConnectivity }) { try await $0.whenConnected($1, &$2, $3) },
        // The interceptors around each exchange.
        Step(if: { !$0.attemptInterceptors.isEmpty || !$1.attemptInterceptors.isEmpty }) {
            try await $0.intercept($1, &$2, by: ($0.attemptInterceptors + $1.attemptInterceptors)[...], $3)
        },
        // Uses alternative services, and notes those that servers offer and which hosts require https.
        Step(if: { $0.learns(from: $1) }) { try await $0.learn($1, &$2, $3) },
    ]

    /// Runs a closure that may ask for any number of responses, one after the other. All exchanges have ended when this
    /// function returns.
    @inline(never)
    func call<Value>(
        _ task: AnySessionTask, _ request: Request, delivery: BodyDelivery,
        reporting events: (any CallEventSink)?, _ work: (Request, inout Call) async throws -> Value
    ) async throws -> Value {
        var request = request
        var call = begin(&request, of: task, delivery: delivery, reporting: events)
        do {
            let value = try await work(request, &call)
            _ = await end(&call, of: request, failing: nil)
            return value
        } catch {
            throw await end(&call, of: request, failing: error) ?? error
        }
    }

    /// Begins a call, which has one time limit, one limit of retries, and one pair of the events `began` and `ended`,
    /// however often it asks for a response. The request may be that of an exchange of another call, whose attributes it
    /// loses.
    @inline(never)
    func begin(
        _ request: inout Request, of task: AnySessionTask, delivery: BodyDelivery,
        reporting events: (any CallEventSink)?
    ) -> Call {
        request.callAttributes = RequestAttributes()
        request.startTimeout(on: clock)
        let isObserved = !monitors.isEmpty || task.core != nil || events != nil
        let monitor = isObserved ? CallMonitor(task, monitors: monitors, sink: events) : nil
        monitor?.receive(.began)
        return Call(of: task, delivery: delivery, monitor: monitor, start: uptime.elapsed)
    }

    /// Ends a call: closes its exchanges. Returns the error that the caller receives.
    @inline(never)
    func end(_ call: inout Call, of request: Request, failing error: (any Error)?) async -> (any Error)? {
        await call.exchanges.close()
        guard error != nil || call.monitor != nil else { return nil }
        call.history.duration = uptime.elapsed - call.start
        let error = error.map { SessionError.lifting(call.adding(courseTo: $0)) }
        call.monitor?.end(error.map { TaskOutcome($0) } ?? .succeeded, of: call)
        return error
    }

    /// Reports an event between two exchanges of a call, which is noted in its history.
    @inline(never)
    func report(_ event: TaskEvent, of call: inout Call) {
        if let step = event.step { call.history.steps.append(.init(at: uptime.elapsed - call.start, step)) }
        call.monitor?.receive(event)
    }

    /// Returns the error of a request for the error with which its exchange ends: `CancellationError` if the session
    /// cancels its requests, and the limit of the call or its attempts in place of the time that was left. A transport that
    /// was shut down elsewhere has failed.
    ///
    /// Not inlined: errors are large, and inlining would reserve space for them in the frame of every request.
    @inline(never)
    func failure(of request: Request, by error: any Error) -> any Error {
        if (error as? TransportError)?.reason == .shutDown, registry.isCancelling { return CancellationError() }
        return request.namingTimeout(error)
    }

    /// Throws `CancellationError` if the call is cancelled: with its task, or by the session. Called before each exchange,
    /// and after each closure of the program that may have waited, whose result is then none.
    func checkCancellation() throws {
        if registry.isCurrentCallCancelled { throw CancellationError() }
    }

    /// Returns the response to a request of a call. Its body can be read until the call asks again, or ends.
    @inline(never)
    func respond(to request: Request, _ call: inout Call) async throws -> OpenResponse {
        call.answer = nil
        // Before any step waits, perhaps for the connection.
        await call.exchanges.close()
        // What the program requests before it has the response, which a flight may wait for, belongs to the flight.
        var response =
            if cache?.flights == nil {
                try await perform(request, &call, from: 0)
            } else {
                try await WaitGraph.keeping { try await perform(request, &call, from: 0) }
            }
        note(&response, in: &call)
        return response
    }

    /// Runs a closure that reads the response to a request of a call.
    @inline(never)
    func respond<Value>(
        to request: Request, _ call: inout Call, _ body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        let response = try await respond(to: request, &call)
        return try await read(response, of: call, body)
    }

    /// Notes the response that a call has led to.
    @inline(never)
    private func note(_ response: inout OpenResponse, in call: inout Call) {
        response.head.jsonDecoder = json.decoder
        response.body.jsonDecoder = json.decoder
        if call.monitor != nil {
            call.answer = Shared(
                Call.Answer(status: response.head.status.code, version: response.head.version, body: response.body))
        }
        if !call.history.steps.isEmpty || response.head.status.code >= 400 {
            // For the error of a response that is rejected.
            call.history.duration = uptime.elapsed - call.start
            response.head.callHistory = call.history
        }
    }

    /// Runs a closure that reads a response. Cancelling the task ends the exchange, even while the closure does not
    /// read.
    @inline(never)
    func read<Value>(
        _ response: OpenResponse, of call: Call, _ body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        do {
            guard !response.body.isWhole else { return try await body(response.head, response.body) }
            let exchanges = call.exchanges
            return try await withTaskCancellationHandler {
                try await body(response.head, response.body)
            } onCancel: {
                exchanges.cancel()
            }
        } catch {
            throw naming(error, of: response.head)
        }
    }

    /// Returns an error of reading a response, with the URL in that of a stream of values.
    @inline(never)
    private func naming(_ error: any Error, of head: ResponseHead) -> any Error {
        guard let error = error as? SerializationError, error.isOfStream else { return error }
        return error.naming(head.url.redactedDescription)
    }

    /// Performs the steps from an index on, and the exchange.
    @inline(never)
    private func perform(_ request: Request, _ call: inout Call, from first: Int) async throws -> OpenResponse {
        let (request, index, step) = try advance(request, from: first)
        if let step { return try await step(self, request, &call, Next(pipeline: self, index: index)) }
        await call.exchanges.close()
        guard let token = request.token else { return try await exchange(request, &call) }
        return try await exchange(request, updating: token, &call)
    }

    /// Opens an exchange with the current token.
    @inline(never)
    private func exchange(
        _ request: Request, updating token: SentToken, _ call: inout Call
    ) async throws -> OpenResponse {
        var request = request
        try await updateToken(token, of: &request, &call)
        return try await exchange(request, &call)
    }

    /// Opens an exchange.
    @inline(never)
    private func exchange(_ request: Request, _ call: inout Call) async throws -> OpenResponse {
        try checkCancellation()
        if call.scope?.isOver == true { throw CancellationError() }
        let (events, number) = call.beginExchange(of: request)
        let sending = cache?.beginSending()
        var request = request
        if let sending { request[ResponseHead.Sending.self] = sending }
        do {
            // The events, which the task keeps, have the request without a reference to the task.
            var response =
                if let task = call.task {
                    try await transport.open(task.gating(request), delivery: call.delivery, reporting: events)
                } else {
                    try await transport.open(request, delivery: call.delivery, reporting: events)
                }
            if let sending { response.head.sending = sending }
            accept(&response, to: request, number, &call)
            return response
        } catch {
            let error = failure(of: request, by: error)
            call.seen.note(request, .failure(error))
            throw error
        }
    }

    /// Makes the response to an exchange that of its call.
    @inline(never)
    private func accept(_ response: inout OpenResponse, to request: Request, _ number: Int?, _ call: inout Call) {
        if response.head.status == .unauthorized, let token = request.token {
            token.noteRefusal(of: request.headers[.authorization])
        }
        if !response.body.isWhole {
            response.body = response.body.reading(ExchangeBodySource(base: response.body, request, on: self))
        }
        (response.body.origin, response.body.exchange, response.body.isReplaced) = (.network, number, false)
        call.exchanges.own(response.body)
        call.seen.note(request, .success(response.head))
    }

    /// Performs the steps from an index on that only change the request. Returns the changed request, and the next step,
    /// which asks for a response, with the index of the one after it; no step if only the exchange is left.
    @inline(never)
    private func advance(
        _ request: Request, from first: Int
    ) throws -> (request: Request, index: Int, step: Step.Function?) {
        var (request, index) = (request, first)
        while index < Self.steps.count {
            let step = Self.steps[index]
            index += 1
            if try step.prepare(self, &request) { return (request, index, step.function) }
        }
        // A redirect policy, for example, may have set another body.
        try request.encodeBody(with: json.encoder)
        try limitToTimeLeft(&request)
        if TaskRegistry.isCleaningUp { request.cleansUp = true }
        return (request, index, nil)
    }

    /// The steps after a step, and the exchange: `try await next(request, &call)` returns their response.
    struct Next: Sendable {
        fileprivate let pipeline: Pipeline
        fileprivate let index: Int

        func callAsFunction(_ request: Request, _ call: inout Call) async throws -> OpenResponse {
            try await pipeline.perform(request, &call, from: index)
        }
    }

    /// Sleeps for a duration.
    ///
    /// - Throws: `CancellationError` if the call is cancelled.
    func pause(_ duration: Duration) async throws {
        _ = try await waiting { [clock] in try await clock.sleep(for: duration.bounded) }
    }

    /// Runs a wait that ends early if the session cancels its requests, as an exchange would.
    ///
    /// - Returns: The value that `wait` returns; `nil` if it exceeds `limit`.
    /// - Throws: The error that `wait` throws, or `CancellationError` if the call is cancelled.
    func waiting<Value: Sendable>(
        upTo limit: Duration? = nil, _ wait: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        try Task.checkCancellation()
        return try await withThrowingTaskGroup(of: WaitEnd<Value>.self) { group in
            group.addTask { .over(try await wait()) }
            group.addTask { [registry] in
                await registry.waitUntilCancelling()
                return .sessionEnds
            }
            if let limit {
                group.addTask { [clock] in
                    try await clock.sleep(for: limit.bounded)
                    return .limit
                }
            }
            defer { group.cancelAll() }
            switch try await group.next() {
            case .over(let value): return value
            case .limit: return nil
            case .sessionEnds, nil: throw CancellationError()
            }
        }
    }

    /// A step of the pipeline: a change of the request, or a function around the remaining steps.
    private struct Step: Sendable {
        typealias Function = @Sendable (Pipeline, Request, inout Call, Next) async throws -> OpenResponse

        /// Changes the request, and returns whether ``function`` has something to do for it.
        let prepare: @Sendable (Pipeline, inout Request) throws -> Bool
        let function: Function?

        /// Creates a step that only changes the request.
        init(_ change: @escaping @Sendable (Pipeline, inout Request) throws -> Void) {
            prepare = { pipeline, request in
                try change(pipeline, &request)
                return false
            }
            function = nil
        }

        /// Creates a step that asks for responses, for requests that it applies to.
        init(if applies: @escaping @Sendable (Pipeline, Request) -> Bool, _ function: @escaping Function) {
            prepare = { applies($0, $1) }
            self.function = function
        }
    }

    private enum WaitEnd<Value: Sendable>: Sendable {
        case over(Value), limit, sessionEnds
    }

    private func fillDefaults(of request: inout Request) {
        request.inheritOptions(options)
        var headers = headers
        if let home = request[Home.self] {
            let other = self.home(of: request)
            let policy = request.redirectPolicy ?? redirectPolicy
            var removed = home.origin == other.origin ? [] : policy.sensitiveFields(leaving: home, for: other)
            if home.proxy != other.proxy { removed.insert(.proxyAuthorization) }
            headers.removeAll { removed.contains($0.name) }
        }
        request.headers.fill(from: headers)
    }
}

/// The body of an exchange, with the errors of its request.
private final class ExchangeBodySource: FileBodySource {
    let base: ResponseBody
    private let request: Request
    private let pipeline: Pipeline

    init(base: ResponseBody, _ request: Request, on pipeline: Pipeline) {
        (self.base, self.request, self.pipeline) = (base, request, pipeline)
    }

    func next() async throws -> Data? {
        do {
            return try await base.next()
        } catch {
            throw pipeline.failure(of: request, by: error)
        }
    }

    func collect(upTo limit: Int) async throws -> Data {
        do {
            return try await base.collect(upTo: limit)
        } catch {
            throw pipeline.failure(of: request, by: error)
        }
    }
}

/// A call of a session: what its steps share, and its exchanges.
///
/// A call owns its exchanges: the open ones are closed before the next one is opened, and none is left when the call
/// ends. There is at most one, unless an interceptor sends requests concurrently. The
/// segments of a download have calls of their own.
struct Call: Sendable {
    /// The identifier of the call's task.
    let taskID: UInt64
    /// The task whose suspension stops the sending of bodies; `nil` for an async function.
    let task: TaskCore?
    /// How the caller reads the response's body.
    let delivery: BodyDelivery
    /// Receives the events; `nil` for an async function of a session without monitors that has no receiver of its own.
    let monitor: CallMonitor?
    /// The requests of the current attempt that servers may have seen.
    var seen = SeenRequests()
    /// The metrics of the attempt's last exchange; `nil` before it, and if the request is not retried.
    var metrics: ExchangeMetrics?
    /// The state of the step that retries; `nil` before it, and if the policy permits none.
    var retries: Retries? {
        get { sharedRetries?.value }
        set { sharedRetries = newValue.map(Shared.init) }
    }
    /// Outside of the call, because most calls have none, and it is large.
    private var sharedRetries: Shared<Retries>?
    /// The number of exchanges that have begun; of those that an interceptor makes concurrently, at least one.
    var exchangeCount = 0
    /// The origin for which credentials were added to the request; `nil` before that.
    var credentialOrigin: Origin?
    /// The session's uptime at the beginning.
    let start: Duration
    /// Measures a time limit that an interceptor or a redirect sets; `nil` before the first one.
    var limitStart: Stopwatch?
    /// The time limit of the request that an interceptor or a redirect has sent last; `nil` without one.
    var limit: TimeLimit?
    /// The events between the exchanges.
    var history = CallHistory()
    /// The response that was returned last; `nil` if a further request has failed, and without a monitor.
    var answer: Shared<Answer>?
    /// The exchanges that are open.
    var exchanges = OpenExchanges()
    /// The scope of the innermost interceptor that has sent the request; `nil` for none.
    var scope: InterceptorScope?

    init(of task: AnySessionTask, delivery: BodyDelivery, monitor: CallMonitor? = nil, start: Duration) {
        taskID = task.id
        self.task = task.core
        self.delivery = delivery
        self.monitor = monitor
        self.start = start
    }

    /// A response that was returned to the caller.
    struct Answer: Sendable {
        let status: Int
        let version: HTTPVersion
        let body: ResponseBody
    }

    /// Returns an error with what happened in the call.
    @inline(never)
    func adding(courseTo error: any Error) -> any Error {
        guard var error = error as? TransportError else { return error }
        error.context.callHistory = history
        return error
    }

    /// The number of the attempt, starting at 1.
    var attempt: Int { retries?.plan.attempt ?? 1 }

    /// Forgets the exchanges of the attempt before.
    mutating func beginAttempt() { (seen, metrics) = (SeenRequests(), nil) }

    /// Counts an exchange that begins, and returns the receiver of its events, and its number if the call is observed.
    @inline(never)
    mutating func beginExchange(of request: Request) -> (events: (any ExchangeEventSink)?, number: Int?) {
        exchangeCount += 1
        metrics = sharedRetries.map { _ in ExchangeMetrics() }
        guard let events = monitor?.beginExchange(notingIn: metrics) else { return (metrics, nil) }
        events.receive(.started(request))
        return (events, events.number)
    }
}

/// The open exchanges of a call.
struct OpenExchanges: Sendable {
    private var bodies: [ResponseBody] = []

    /// Takes the ownership of an exchange, the source of whose body is given, or of a body that is read in its place.
    mutating func own(_ body: ResponseBody) { bodies.append(body) }

    /// Closes the exchanges that are open, the last one first, which may use one before it.
    mutating func close() async {
        for body in bodies.reversed() { await body.close() }
        bodies = []
    }

    /// Asks for the end of the exchanges that are open.
    func cancel() { bodies.forEach { $0.cancel() } }

    /// Gives the exchanges that are open to the caller.
    mutating func release() -> [ResponseBody] {
        defer { bodies = [] }
        return bodies
    }
}
