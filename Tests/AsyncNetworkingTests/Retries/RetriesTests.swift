// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct RetriesTests {
    private let clock = ManualClock()

    /// A manager that retries twice, after 1 s and 2 s of a manual clock.
    private func manager(
        _ transport: MockTransport, policy: (inout RetryPolicy) -> Void = { _ in },
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        SessionManager(
            .on(transport) {
                $0.clock = clock
                $0.retryPolicy = RetryPolicy().with { $0.backoff = Backoff(base: .seconds(1), isJittered: false) }.with(
                    policy)
                configure(&$0)
            })
    }

    /// Advances the clock through the waits of a request, and returns them.
    private func passingWaits<Value: Sendable>(
        _ count: Int, during work: @escaping @Sendable () async throws -> Value
    ) async throws -> (value: Result<Value, any Error>, waits: [Duration]) {
        let task = Task { try await work() }
        let waits = try await clock.passWaits(count)
        return (await task.result, waits)
    }

    @Test func `a body that an interceptor changes fails within its attempt`() async throws {
        let transport = MockTransport(.text("a"), .text("b"))
        let changing = Intercepting { request, next in
            var response = try await next(request)
            response.body = response.body.transforming { bytes in
                guard bytes != Data("a".utf8) else { throw TransportError(.connectionLost(.beforeResponse)) }
                return bytes
            }
            return response
        }
        let manager = manager(transport, configure: { $0.attemptInterceptors = [changing] })
        let (value, waits) = try await passingWaits(1) { try await manager.get("x").text }
        #expect(try value.get() == "b")
        #expect(waits == [.seconds(1)])
    }

    @Test func `the program does not decide about a call that was cancelled, whatever its error`() async throws {
        let (transport, decisions) = (MockTransport(.hang), Lock(0))
        let manager = manager(transport) {
            $0.decision = { _ in
                decisions.withLock { $0 += 1 }
                return .followPolicy
            }
        } configure: {
            $0.attemptInterceptors = [
                Intercepting.replacingErrors(by: TransportError(.connectionLost(.beforeResponse)))
            ]
        }
        let task = Task { try await manager.get("x") }
        try await transport.requests(count: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(decisions.withLock(\.self) == 0)
    }

    @Test func `nothing is retried by default`() async throws {
        let transport = MockTransport(.status(.serviceUnavailable))
        let manager = SessionManager(on: transport)
        #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 503)
        #expect(transport.requests.count == 1)
    }

    @Test func `a request is retried until it succeeds, and the response contains the history`() async throws {
        let transport = MockTransport(
            .failure(TransportError(.cannotConnect(.refused))), .text("busy", status: .tooManyRequests),
            .text("end"))
        let manager = manager(transport)
        let (result, waits) = try await passingWaits(2) {
            try await manager.data(for: manager.request(.get, "x", headers: [.from: "me"]))
        }
        let response = try result.get()
        #expect(response.text == "end")
        #expect(waits == [.seconds(1), .seconds(2)])
        #expect(transport.requests.map(\.request.headers.lines) == Array(repeating: ["From: me"], count: 3))
        let history = response.metrics.retryHistory
        #expect(history == response.head.retryHistory)
        #expect(history.stop == nil)
        #expect(history.earlierAttempts.map(\.wait) == [.seconds(1), .seconds(2)])
        #expect(response.callDuration == .seconds(3))
        #expect(history.earlierAttempts.map(\.outcome).last == .status(429))
        guard case .failure(let words) = try #require(history.earlierAttempts.first).outcome else {
            throw Planned()
        }
        #expect(words.contains("the port is closed"))
        #expect(history.earlierAttempts.last?.metrics?.responseBodyBytes == 4)
    }

    @Test func `the last response is the result, with the reason why there was no further attempt`() async throws {
        let manager = manager(MockTransport(.text("down", status: .badGateway)))
        let (result, _) = try await passingWaits(2) { try await manager.data(for: manager.request(.get, "x")) }
        let response = try result.get()
        #expect(response.statusCode == 502)
        #expect(response.text == "down")
        #expect(response.head.retryHistory.stop == .limit(2))
        #expect(response.head.retryHistory.earlierAttempts.map(\.outcome) == [.status(502), .status(502)])
    }

    @Test func `the error of a rejected response contains the attempts`() async throws {
        let manager = manager(MockTransport(.text("down", status: .badGateway)))
        let (result, _) = try await passingWaits(2) { try await manager.get("x") }
        let error = try await sessionError { _ = try result.get() }
        #expect(error.statusCode == 502)
        #expect(error.retryHistory.earlierAttempts.count == 2)
        #expect(error.retryHistory.stop == .limit(2))
    }

    @Test func `the last error is the result, with the attempts in its context and its description`() async throws {
        let transport = MockTransport(.failure(TransportError(.connectionLost(.beforeResponse))))
        let manager = manager(transport)
        let (result, _) = try await passingWaits(2) { try await manager.get("x") }
        let error = try await sessionError { _ = try result.get() }
        #expect(transport.requests.count == 3)
        guard case .connectionLost(.beforeResponse) = error.reason else { throw error }
        let context = try #require(error.context)
        #expect(context.retryHistory == error.retryHistory)
        #expect(error.retryHistory.earlierAttempts.count == 2)
        #expect(error.retryHistory.stop == .limit(2))
        #expect(error.description.contains("attempt 3, not retried because there were 2 retries"))
    }

    // MARK: What servers have seen

    private static let unreached: [TransportError.Reason] = [
        .cannotConnect(.refused), .cannotResolve, .tls(.handshake), .timedOut(.connect),
    ]

    @Test(arguments: [301, 302, 303, 307, 308], unreached)
    func `a POST that was redirected is not sent again if the next host cannot be reached`(
        status: Int, failure: TransportError.Reason
    ) async throws {
        let transport = MockTransport { request in
            request.url.path == "/v1/x"
                ? .redirect(.init(code: status), to: "http://b.example/")
                : .failure(TransportError(failure))
        }
        let error = try await sessionError { _ = try await self.manager(transport).post("x") }
        #expect(error.retryHistory.stop == .method)
        #expect(transport.requests.map(\.request.url.path) == ["/v1/x", "/"])
    }

    @Test func `a GET that was redirected is sent again`() async throws {
        let transport = MockTransport { request in
            request.url.path == "/v1/x"
                ? .redirect(.found, to: "http://b.example/") : .failure(TransportError(.cannotConnect(.refused)))
        }
        let (result, waits) = try await passingWaits(2) { [manager = manager(transport)] in try await manager.get("x") }
        #expect(throws: SessionError.self) { try result.get() }
        #expect(waits.count == 2)
    }

    @Test(arguments: [true, false])
    func `a POST that an interceptor repeats counts as seen if one of its exchanges may have been`(
        isSeen: Bool
    ) async throws {
        let lost = TransportError(isSeen ? .connectionLost(.beforeResponse) : .cannotResolve)
        let transport = MockTransport { request in
            .failure(request.url.host() == "b.example" ? TransportError(.cannotConnect(.refused)) : lost)
        }
        let manager = manager(transport) {
            $0.limit = 1
        } configure: {
            $0.attemptInterceptors = [Failover()]
        }
        let (result, _) = try await passingWaits(isSeen ? 0 : 1) { try await manager.post("x") }
        let error = try await sessionError { _ = try result.get() }
        #expect(error.retryHistory.stop == (isSeen ? .method : .limit(1)))
        #expect(transport.requests.count == (isSeen ? 2 : 4))
    }

    @Test(arguments: ["the refresh takes it", "an interceptor takes it", "there is none"])
    func `a POST whose time is over before it is sent is not one that a server may have seen`(reason: String)
        async throws
    {
        let transport = MockTransport(.text("x"))
        let base = try url("http://a.example/")
        let manager = manager(transport) { _ in
        } configure: { [clock] in
            switch reason {
            case "the refresh takes it":
                $0.authentication.authenticators = [
                    Authenticator(for: [base]) { _ in
                        try await clock.sleep(for: .seconds(60))
                        return Authenticator.Token("t")
                    }
                ]
            case "an interceptor takes it":
                $0.attemptInterceptors = [
                    Intercepting { request, next in
                        clock.advance(by: .seconds(2))
                        return try await next(request)
                    }
                ]
            default: $0.retryPolicy.deadline = .zero
            }
        }
        let limit = reason == "there is none" ? Duration.zero : .seconds(1)
        let task = Task { try await manager.post("x", timeout: limit == .zero ? nil : limit) }
        if reason == "the refresh takes it" {
            try await clock.sleepers(count: 2)
            clock.advance(by: limit)
        }
        let error = try await sessionError { _ = try await task.value }
        #expect(error.reason == .timedOut(.request))
        guard case .deadline = error.retryHistory.stop else { throw error }
        #expect(transport.requests.isEmpty)
    }

    @Test(arguments: [HTTPRequest.Method.get, .post], [true, false])
    func `a refresh that fails is retried for any method, because nothing was sent`(
        method: HTTPRequest.Method, isOfSession: Bool
    ) async throws {
        let refreshes = Lock(0)
        let base = try url("http://a.example/")
        let transport = MockTransport(.text("x"))
        let manager = manager(transport) { _ in
        } configure: {
            $0.authentication.authenticators = [
                Authenticator(for: [base]) { _ in
                    let number = refreshes.withLock {
                        $0 += 1; return $0
                    }
                    let lost = TransportError(.connectionLost(.beforeResponse))
                    if number == 1 { throw isOfSession ? SessionError.transport(lost) : lost }
                    return Authenticator.Token("t")
                }
            ]
        }
        let (result, waits) = try await passingWaits(1) {
            try await manager.data(for: manager.request(method, "x"))
        }
        #expect(try result.get().text == "x")
        #expect(waits == [.seconds(1)])
        #expect(transport.requests.count == 1)
    }

    @Test func `a POST that an interceptor passes to another session counts as seen`() async throws {
        let transport = MockTransport(.failure(TransportError(.connectionLost(.beforeResponse))))
        let manager = manager(MockTransport(.text("x"))) { _ in
        } configure: {
            $0.attemptInterceptors = [
                Intercepting { request, _ in
                    _ = try await SessionManager(on: transport).data(for: request)
                    throw Planned()
                }
            ]
        }
        let error = try await sessionError { _ = try await manager.post("x") }
        #expect(error.retryHistory.stop == .method)
        #expect(transport.requests.count == 1)
    }

    /// The body of a response that an interceptor reads from somewhere else, and whose connection is lost.
    private struct BrokenBody: ResponseBodySource {
        func next() async throws -> Data? { throw TransportError(.connectionLost(.inBody(received: 0, expected: nil))) }
        var ending: ResponseEnding? { nil }
    }

    @Test func `a body that is collected is received before an attempt has succeeded, whoever streams it`() async throws
    {
        let transport = MockTransport(.text("x"))
        let manager = manager(transport) { _ in
        } configure: {
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    var response = try await next(request)
                    if next.attempt == 1 { response.body = ResponseBody(source: BrokenBody()) }
                    return response
                }
            ]
        }
        let (result, waits) = try await passingWaits(1) { try await manager.get("x") }
        #expect(try result.get().text == "x")
        #expect(waits == [.seconds(1)])
    }

    @Test func `a further request of an interceptor has its own policy, and the attempts are counted on`() async throws
    {
        let transport = MockTransport { request in
            request.url.host() == "b.example" ? .status(.notFound) : .status(.serviceUnavailable)
        }
        let manager = manager(transport) {
            ($0.limit, $0.backoff) = (1, Backoff(base: .zero))
        } configure: {
            $0.interceptors = [
                Intercepting { request, next in
                    let response = try await next(request)
                    guard response.head.status == .serviceUnavailable else { return response }
                    var mirror = request
                    mirror.url = try url("http://b.example/")
                    mirror.retryPolicy = RetryPolicy(limit: 4).with {
                        ($0.statuses, $0.backoff) = ([404], Backoff(base: .zero))
                    }
                    return try await next(mirror)
                }
            ]
        }
        let response = try await manager.data(for: manager.request(.get, "x"))
        #expect(response.head.retryHistory.stop == .limit(4))
        #expect(
            transport.requests.map { $0.request.url.host() }
                == Array(repeating: "a.example", count: 2) + Array(repeating: "b.example", count: 4))
    }

    @Test func `the result of a request that is not retried contains the reason`() async throws {
        let manager = manager(MockTransport(.status(.serviceUnavailable)))
        let post = try await manager.data(for: manager.request(.post, "x"))
        #expect(post.head.retryHistory.stop == .method)
        #expect(post.head.retryHistory.earlierAttempts.isEmpty)
        let once = RequestBody.stream(AsyncStreamOf([Data("x".utf8)]))
        let put = try await manager.data(for: manager.request(.put, "x", body: once))
        #expect(put.metrics.retryHistory.stop == .body)
        let error = try await sessionError {
            let lost = TransportError(.connectionLost(.whileSending))
            _ = try await self.manager(MockTransport(.failure(lost))).post("x")
        }
        #expect(error.retryHistory.stop == .method)
        #expect(error.description.contains("its method is not idempotent"))
    }

    @Test func `bodies are sent again completely`() async throws {
        let directory = try TemporaryDirectory()
        let bytes = Data("abc".utf8)
        let bodies = [
            RequestBody.bytes(bytes), .file(try directory.write(bytes, to: "body")),
            .stream(AsyncStreamOf([bytes]), isReplayable: true),
        ]
        for body in bodies {
            let transport = MockTransport(.status(.serviceUnavailable), .text("end"))
            let manager = manager(transport)
            let (result, _) = try await passingWaits(1) {
                try await manager.data(for: manager.request(.put, "x", body: body))
            }
            #expect(try result.get().text == "end")
            #expect(transport.requests.map(\.body) == [bytes, bytes])
        }
    }

    @Test func `a request can have a policy of its own`() async throws {
        let transport = MockTransport(.status(.serviceUnavailable))
        let manager = manager(transport)
        var request = try manager.request(.get, "x")
        request.retryPolicy = RetryPolicy.none
        _ = try await manager.data(for: request)
        #expect(transport.requests.count == 1)
        request.retryPolicy = manager.configuration.retryPolicy.with { $0.limit = 1 }
        let response = try await passingWaits(1) { [request] in try await manager.data(for: request) }.value.get()
        #expect(response.head.retryHistory.stop == .limit(1))
        #expect(transport.requests.count == 3)
    }

    @Test func `Retry-After is respected`() async throws {
        let transport = MockTransport(
            .status(.serviceUnavailable, headers: [.retryAfter: "17"]),
            .status(
                .tooManyRequests,
                headers: [
                    .date: "Sun, 06 Nov 1994 08:49:37 GMT", .retryAfter: "Sun, 06 Nov 1994 08:50:07 GMT",
                ]),
            .text("end"))
        let manager = manager(transport)
        #expect(try await passingWaits(2) { try await manager.get("x") }.waits == [.seconds(17), .seconds(30)])
    }

    @Test func `each attempt starts at the original URL`() async throws {
        let transport = MockTransport(
            .redirect(.found, to: "/b"), .status(.badGateway), .redirect(.found, to: "/c"), .text("end"))
        let manager = manager(transport)
        let response = try await passingWaits(1) { try await manager.get("x") }.value.get()
        #expect(transport.requests.map(\.request.url.path) == ["/v1/x", "/b", "/v1/x", "/c"])
        #expect(response.redirectHistory.map(\.url.path) == ["/v1/x"])
        #expect(response.head.retryHistory.earlierAttempts.count == 1)
    }

    @Test func `call interceptors see one request, attempt interceptors each attempt with its number`() async throws {
        let seen = EventList<String>()
        let manager = manager(MockTransport(.status(.badGateway), .text("end"))) { _ in
        } configure: {
            $0.interceptors = [
                Intercepting { request, next in
                    await seen.append("call")
                    return try await next(request)
                }
            ]
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    await seen.append("attempt \(next.attempt)")
                    return try await next(request)
                }
            ]
        }
        _ = try await passingWaits(1) { try await manager.get("x") }.value.get()
        #expect(await seen.values == ["call", "attempt 1", "attempt 2"])
    }

    @Test func `a monitor receives an event before the wait of each retry`() async throws {
        struct Retries: EventMonitor {
            let seen: AsyncStream<Duration>.Continuation

            func receive(_ event: TaskEvent, of task: AnySessionTask) {
                if case .retrying(let attempt) = event { seen.yield(attempt.wait) }
            }
        }
        let (stream, continuation) = AsyncStream.makeStream(of: Duration.self)
        let manager = manager(MockTransport(.status(.badGateway), .text("end"))) { _ in
        } configure: {
            $0.eventMonitors = [Retries(seen: continuation)]
        }
        _ = try await passingWaits(1) { try await manager.get("x") }.value.get()
        continuation.finish()
        #expect(await stream.reduce(into: []) { $0.append($1) } == [.seconds(1)])
    }

    @Test func `a request is not retried once the response has reached its reader`() async throws {
        let lost = TransportError(.connectionLost(.inBody(received: 1, expected: nil)))
        let transport = MockTransport(MockResponse([.head(.ok), .chunk(Data("a".utf8)), .fail(lost)]))
        let manager = manager(transport)
        let error = try await sessionError {
            try await manager.withResponse(for: manager.request(.get, "x")) { _, body in
                for try await _ in body {}
            }
        }
        #expect(error.context != nil)
        #expect(error.retryHistory == RetryHistory())
        #expect(transport.requests.count == 1)
        let own = try await sessionError {
            try await manager.withResponse(for: manager.request(.get, "x")) { _, _ in
                throw TransportError(.cannotConnect(.refused))
            }
        }
        #expect(own.retryHistory == RetryHistory())
        #expect(transport.requests.count == 2)
    }

    @Test func `a body that fails while it is collected is requested again`() async throws {
        let lost = TransportError(.connectionLost(.inBody(received: 1, expected: nil)))
        let transport = MockTransport(MockResponse([.head(.ok), .chunk(Data("a".utf8)), .fail(lost)]), .text("end"))
        let manager = manager(transport)
        #expect(try await passingWaits(1) { try await manager.get("x") }.value.get().text == "end")
    }

    @Test func `the decision is called for each failed attempt`() async throws {
        let seen = EventList<String>()
        let transport = MockTransport(.failure(Planned(number: 1)), .text("no", status: .notFound), .text("end"))
        let manager = manager(transport) {
            $0.decision = { context in
                switch context.result {
                case .success(let head): await seen.append("\(context.attempt) \(head.status.code)")
                case .failure(let error): await seen.append("\(context.attempt) \(error)")
                }
                #expect(!context.isRetriable)
                return .retry(after: .seconds(9))
            }
        }
        let (result, waits) = try await passingWaits(2) { try await manager.post("x") }
        #expect(try result.get().text == "end")
        #expect(waits == [.seconds(9), .seconds(9)])
        #expect(await seen.values == ["1 Planned(number: 1)", "2 404"])
    }

    @Test(arguments: [
        MockResponse.status(.badGateway), .failure(TransportError(.cannotResolve)),
    ])
    func `an error thrown by the decision is passed on unchanged`(response: MockResponse) async throws {
        let transport = MockTransport(response)
        let manager = manager(transport) { $0.decision = { _ in throw Planned(number: 2) } }
        await #expect(throws: Planned(number: 2)) { _ = try await manager.get("x") }
        #expect(transport.requests.count == 1)
    }

    // MARK: Limits

    /// Sends each request twice.
    private struct Twice: Interceptor {
        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            _ = try await next(request)
            return try await next(request)
        }
    }

    @Test(arguments: [404, 503])
    func `a decision to stop does not apply to the next request of an interceptor`(status: Int) async throws {
        let transport = MockTransport(
            .status(HTTPResponse.Status(code: status)), .status(.serviceUnavailable), .text("end"))
        let isFirst = Lock(true)
        let manager = manager(transport) {
            $0.decision = { _ in isFirst.set(\.self, to: false) ? .stop : .followPolicy }
        } configure: {
            $0.interceptors = [Twice()]
        }
        let (result, waits) = try await passingWaits(1) { try await manager.get("x").text }
        #expect(try result.get() == "end")
        #expect(waits == [.seconds(1)])
    }

    @Test func `a response that must come from the cache is not awaited`() async throws {
        let transport = MockTransport(.text("x"))
        let manager = manager(transport) {
            $0.decision = { _ in .retry(after: .zero) }
        } configure: {
            $0.cache = .memory()
        }
        let request = try manager.request(.get, "x", headers: [.cacheControl: "only-if-cached"])
        let response = try await manager.data(for: request)
        #expect(response.statusCode == 504)
        #expect(response.head.retryHistory == RetryHistory())
        #expect(transport.requests.isEmpty)
    }

    @Test func `the deadline applies to all attempts together`() async throws {
        let clock = clock
        let transport = MockTransport(clock: clock) { _ in
            clock.advance(by: .seconds(2))
            return .status(.badGateway)
        }
        let manager = manager(transport) {
            $0.limit = 9
            $0.deadline = .seconds(10)
        }
        // When the third attempt starts, 2 + 1 + 2 + 2 = 7 s have passed, and 9 s when it ends; a wait of 4 s more
        // exceeds the deadline.
        let (result, waits) = try await passingWaits(2) { try await manager.data(for: manager.request(.get, "x")) }
        #expect(waits == [.seconds(1), .seconds(2)])
        #expect(try result.get().head.retryHistory.stop == .deadline(.seconds(10)))
        let totals = transport.requests.map(\.request.options?.timeouts.total)
        #expect(totals == [.seconds(10), .seconds(7), .seconds(3)])
    }

    @Test func `a shorter timeout of an exchange is kept`() async throws {
        let transport = MockTransport(.text("end"))
        let manager = manager(transport) { _ in
        } configure: {
            $0.timeouts.total = .seconds(4)
            $0.retryPolicy.deadline = .seconds(10)
        }
        _ = try await manager.get("x")
        #expect(try transport.onlyRequest.request.options?.timeouts.total == .seconds(4))
    }

    @Test func `a host's retries are limited by its budget`() async throws {
        let transport = MockTransport(.status(.serviceUnavailable))
        let manager = manager(transport) {
            $0.budget = RetryPolicy.Budget(capacity: 3, perRequest: 0, perSecond: 0)
        }
        let first = try await passingWaits(2) { try await manager.data(for: manager.request(.get, "x")) }.value.get()
        #expect(first.head.retryHistory.stop == .limit(2))
        let second = try await passingWaits(1) { try await manager.data(for: manager.request(.get, "x")) }.value.get()
        #expect(second.head.retryHistory.stop == .budget)
        #expect(second.head.retryHistory.earlierAttempts.count == 1)
        let third = try await manager.data(for: manager.request(.get, "x"))
        #expect(third.head.retryHistory.stop == .budget)
        #expect(third.head.retryHistory.earlierAttempts.isEmpty)
        let other = try url("http://b.example/")
        let fourth = try await passingWaits(2) { try await manager.data(for: Request(url: other)) }.value.get()
        #expect(fourth.head.retryHistory.stop == .limit(2))
    }

    @Test func `budgets that differ have counts of their own`() async throws {
        let transport = MockTransport(.status(.serviceUnavailable))
        let manager = manager(transport) {
            ($0.limit, $0.backoff) = (1, Backoff(base: .zero))
            $0.budget = RetryPolicy.Budget(capacity: 1, perRequest: 0, perSecond: 0)
        }
        let request = try manager.request(.get, "x")
        var other = request
        other.retryPolicy = manager.configuration.retryPolicy.with {
            $0.budget = RetryPolicy.Budget(capacity: 2, perRequest: 0, perSecond: 0)
        }
        var stops: [RetryHistory.StopReason?] = []
        for request in [request, other, request, other, other] {
            stops.append(try await manager.data(for: request).head.retryHistory.stop)
        }
        #expect(stops == [.limit(1), .limit(1), .budget, .limit(1), .budget])
    }

    // MARK: Endings

    @Test func `cancelling ends a wait`() async throws {
        let transport = MockTransport(.status(.serviceUnavailable))
        let manager = manager(transport)
        let task = Task { try await manager.get("x") }
        try await clock.sleepers(count: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(manager.tasks.isEmpty)
        #expect(clock.sleepers.isEmpty)
        #expect(transport.requests.count == 1)
    }

    @Test func `a retry that is cancelled during its wait does not draw on the budget`() async throws {
        let transport = MockTransport(.status(.serviceUnavailable))
        let manager = manager(transport) {
            $0.budget = RetryPolicy.Budget(capacity: 1, perRequest: 0, perSecond: 0)
            $0.limit = 1
        }
        for _ in 0..<2 {
            let task = Task { try await manager.get("x") }
            try await clock.sleepers(count: 1)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        let (result, _) = try await passingWaits(1) { try await manager.data(for: manager.request(.get, "x")) }
        #expect(try result.get().head.retryHistory.stop == .limit(1))
    }

    @Test func `cancelling an attempt is not retried`() async throws {
        let transport = MockTransport(.hang)
        let manager = manager(transport)
        let task = Task { try await manager.get("x") }
        try await transport.requests(count: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(transport.requests.count == 1)
    }

    @Test func `a session that is invalidated ends waits`() async throws {
        let manager = manager(MockTransport(.status(.serviceUnavailable)))
        let task = Task { try await manager.get("x") }
        try await clock.sleepers(count: 1)
        await manager.invalidate(cancellingTasks: true)
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `a session that is shut down at once ends waits`() async throws {
        let manager = manager(MockTransport(.status(.serviceUnavailable)))
        let task = Task { try await manager.get("x") }
        try await clock.sleepers(count: 1)
        await manager.shutdown(draining: .zero)
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(manager.tasks.isEmpty)
    }
}
