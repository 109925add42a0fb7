// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct ConnectivityTests {
    /// A route source controlled by a test.
    private actor Routes: RouteSource {
        private var isDown: Bool
        private var waiters: [CheckedContinuation<Void, Never>] = []
        private(set) var targets: [ReachabilityTarget] = []

        init(isDown: Bool = true) {
            self.isDown = isDown
        }

        func isUnreachable(_ target: ReachabilityTarget) -> Bool {
            targets.append(target)
            return isDown
        }

        func waitForRoute(to target: ReachabilityTarget) async throws(CancellationError) {
            guard isDown else { return }
            await withTaskCancellationHandler {
                await withCheckedContinuation { waiter in
                    if Task.isCancelled { waiter.resume() } else { waiters.append(waiter) }
                }
            } onCancel: {
                Task { await self.wake() }
            }
            if Task.isCancelled { throw CancellationError() }
        }

        var waiting: Int { waiters.count }

        func comeUp() {
            isDown = false
            wake()
        }

        /// Wakes the waiting requests although there is still no route.
        func seemToComeUp() { wake() }

        private func wake() {
            for waiter in waiters { waiter.resume() }
            waiters = []
        }
    }

    /// A route source that knows no status before its caller is cancelled.
    private struct SlowRoutes: RouteSource {
        let checks = Lock(0)

        func isUnreachable(_ target: ReachabilityTarget) async -> Bool {
            checks.withLock { $0 += 1 }
            for await _ in AsyncStream<Never>.makeStream().stream {}
            return false
        }

        func waitForRoute(to target: ReachabilityTarget) async throws(CancellationError) {}
    }

    /// What a session checks a route for.
    enum RouteCheck: CaseIterable {
        case wait, circuit, validation
    }

    /// Starts a request whose failure, or whose stored response, lets the session check the route.
    private func startChecking(
        for check: RouteCheck, _ routes: SlowRoutes, timeout: Duration? = nil, on clock: any Clock<Duration>
    ) async throws -> (manager: SessionManager, task: Task<Response<Data>, any Error>) {
        let authenticator = Authenticator(for: [try url("http://a.example/")], token: Authenticator.Token("0")) { _ in
            throw Planned()
        }
        let stored = MockResponse.data(Data("stored".utf8), headers: [.cacheControl: "max-age=0, stale-if-error=60"])
        let manager = SessionManager(on: MockTransport(check == .validation ? stored : Self.unreachable)) {
            ($0.routes, $0.clock) = (routes, clock)
            switch check {
            case .wait: $0.waitsForConnectivity = true
            case .circuit: $0.attemptInterceptors = [CircuitBreaker()]
            case .validation:
                ($0.cache, $0.cachePartition) = (.memory(), "ada")
                $0.authentication.authenticators = [authenticator]
            }
        }
        if check == .validation {
            _ = try await manager.get("x")
            await authenticator.setToken(Authenticator.Token("0", expires: Date(timeIntervalSince1970: 0)))
        }
        let task = Task { try await manager.get("x", timeout: timeout) }
        try await eventually { routes.checks.withLock(\.self) == 1 }
        return (manager, task)
    }

    private static let unreachable = MockResponse.failure(TransportError(.cannotConnect(.unreachable)))

    private func manager(
        _ transport: MockTransport, _ routes: Routes, configure: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        SessionManager(
            .on(transport) {
                $0.routes = routes
                $0.waitsForConnectivity = true
                configure(&$0)
            })
    }

    @Test func `a request waits for a route, and is sent when one appears`() async throws {
        let (transport, routes) = (MockTransport(Self.unreachable, .text("end")), Routes())
        let manager = manager(transport, routes)
        let task = Task { try await manager.post("x", parameters: ["a": 1]) }
        try await eventually { await routes.waiting == 1 }
        #expect(transport.requests.count == 1)
        await routes.comeUp()
        #expect(try await task.value.text == "end")
        #expect(transport.requests.map(\.body) == [Data("a=1".utf8), Data("a=1".utf8)])
        #expect(await routes.targets == [.host("a.example")])
    }

    @Test(arguments: ["POST", "PUT"], [true, false])
    func `a request that a server may have seen waits for no route unless it may be repeated`(
        method: String, isSeen: Bool
    ) async throws {
        let lost = MockResponse.failure(TransportError(isSeen ? .connectionLost(.beforeResponse) : .cannotResolve))
        let (transport, routes) = (MockTransport(lost, Self.unreachable, .text("end")), Routes())
        let manager = manager(transport, routes) { $0.attemptInterceptors = [Failover()] }
        let request = try manager.request(#require(HTTPRequest.Method(method)), "x", body: .bytes(Data("a".utf8)))
        let task = Task { try await manager.data(for: request) }
        guard method == "PUT" || !isSeen else {
            #expect(try await sessionError { _ = try await task.value }.isConnectionFailure)
            #expect(transport.requests.count == 2)
            return
        }
        try await eventually { await routes.waiting == 1 }
        await routes.comeUp()
        #expect(try await task.value.text == "end")
        #expect(transport.requests.count == 3)
    }

    @Test func `a time limit that an interceptor of attempts sets limits the wait`() async throws {
        let clock = ManualClock()
        let (transport, routes) = (MockTransport(Self.unreachable), Routes())
        let limiting = Intercepting { request, next in
            var request = request
            request.timeout = .seconds(7)
            return try await next(request)
        }
        let manager = manager(transport, routes) {
            ($0.clock, $0.attemptInterceptors) = (clock, [limiting])
        }
        async let error = sessionError { _ = try await manager.get("x") }
        try await eventually { await routes.waiting == 1 }
        #expect(try await clock.passWaits(1) == [.seconds(7)])
        #expect(try await error.reason == .timedOut(.connectivity))
    }

    @Test func `a request that has waited for a route is sent with the current token`() async throws {
        let (transport, routes) = (MockTransport(Self.unreachable, .text("end")), Routes())
        let authenticator = Authenticator(
            for: [try #require(URL(string: "http://a.example"))], token: Authenticator.Token("first")
        ) { _ in Authenticator.Token("refreshed") }
        let manager = manager(transport, routes) { $0.authentication.authenticators = [authenticator] }
        let task = Task { try await manager.get("x") }
        try await eventually { await routes.waiting == 1 }
        await authenticator.setToken(nil)
        await routes.comeUp()
        #expect(try await task.value.text == "end")
        #expect(
            transport.requests.map { $0.request.headers[.authorization] } == ["Bearer first", "Bearer refreshed"])
    }

    @Test(arguments: [TransportError.Reason.cannotConnect(.unreachable), .cannotResolve])
    func `the lack of a route says nothing of the server`(reason: TransportError.Reason) async throws {
        let failure = MockResponse.failure(TransportError(reason))
        let (transport, routes) = (MockTransport(failure, failure, .text("end"), failure), Routes())
        let manager = manager(transport, routes) { $0.attemptInterceptors = [CircuitBreaker(failures: 1)] }
        var request = try manager.request(.get, "x")
        request.waitsForConnectivity = false
        let error = try await sessionError { [request] in _ = try await manager.data(for: request) }
        #expect(error.isConnectionFailure)
        let task = Task { try await manager.get("x") }
        try await eventually { await routes.waiting == (reason == .cannotResolve ? 2 : 1) }
        await routes.comeUp()
        #expect(try await task.value.text == "end")
        // With a route, it is the server that is missing.
        _ = try await sessionError { _ = try await manager.get("x") }
        guard case .circuitOpen = try await sessionError({ _ = try await manager.get("x") }) else { throw Planned() }
    }

    @Test func `an event source outlasts the connectivity limit`() async throws {
        let clock = ManualClock()
        let (transport, routes) = (MockTransport(Self.unreachable, .status(.noContent)), Routes())
        let manager = manager(transport, routes) {
            ($0.clock, $0.randomUnit) = (clock, { 0 })
            $0.timeouts.connectivity = .seconds(9)
        }
        let source = manager.events(for: try manager.request(.get, "x"))
        let task = Task { for try await _ in source {} }
        #expect(try await clock.passWaits(2) == [.seconds(9), .seconds(3)])
        try await task.value
    }

    @Test func `a name that cannot be resolved waits for the default route or its host`() async throws {
        let unknown = MockResponse.failure(TransportError(.cannotResolve))
        let (transport, routes) = (MockTransport(unknown, .text("end")), Routes())
        let manager = manager(transport, routes)
        let task = Task { try await manager.get("x") }
        try await eventually { await routes.waiting == 2 }
        await routes.comeUp()
        #expect(try await task.value.text == "end")
        #expect(await routes.targets == [.defaultRoute, .host("a.example")])
    }

    @Test(arguments: ["stale-if-error=60", "stale-while-revalidate=60"])
    func `a request with a stored response that may be used does not wait`(permission: String) async throws {
        let isDown = Lock(false)
        let transport = MockTransport { _ in
            if isDown.withLock(\.self) { return Self.unreachable }
            return .data(Data("stored".utf8), headers: [.cacheControl: "max-age=0, \(permission)"])
        }
        let routes = Routes()
        let manager = manager(transport, routes) { $0.cache = .memory() }
        _ = try await manager.get("x")
        isDown.set(\.self, to: true)
        let response = try await manager.get("x")
        #expect(response.text == "stored" && response.metrics.source == .stale)
        // It waits for a validation in the background.
        await manager.shutdown()
        #expect(transport.requests.count == 2)
        #expect(await routes.waiting == 0)
    }

    @Test func `a stored response that may be used does not wait for a token`() async throws {
        let routes = Routes()
        let refreshes = Lock(0)
        let authenticator = Authenticator(for: [try url("http://a.example/")], token: Authenticator.Token("0")) { _ in
            refreshes.withLock { $0 += 1 }
            throw Planned()
        }
        let transport = MockTransport(
            .data(Data("stored".utf8), headers: [.cacheControl: "max-age=0, stale-if-error=60"]))
        let manager = manager(transport, routes) {
            ($0.cache, $0.cachePartition) = (.memory(), "ada")
            $0.authentication.authenticators = [authenticator]
        }
        _ = try await manager.get("x")
        await authenticator.setToken(Authenticator.Token("0", expires: Date(timeIntervalSince1970: 0)))
        #expect(try await manager.get("x").metrics.source == .stale)
        #expect(refreshes.withLock(\.self) == 0)
    }

    /// Ways to a server that need no route to the host of the URL.
    enum Detour: CaseIterable {
        case socket, override, proxy, resolver, international
    }

    @Test(arguments: Detour.allCases)
    func `a stored response is validated without a route to its host if the request is not sent to that`(
        detour: Detour
    ) async throws {
        let base = detour == .international ? "http://b%C3%BCcher.example/" : "http://a.example/"
        let authenticator = Authenticator(for: [try url(base)], token: Authenticator.Token("0")) { _ in
            Authenticator.Token("1")
        }
        let transport = MockTransport { _ in
            .data(Data("x".utf8), headers: [.cacheControl: "max-age=0, stale-if-error=60"])
        }
        let manager = manager(transport, Routes()) {
            ($0.cache, $0.cachePartition) = (.memory(), "ada")
            $0.authentication.authenticators = [authenticator]
            switch detour {
            case .socket: $0.connection.unixSocketPath = "/run/server"
            case .override: $0.connection.hostOverrides = [.init(host: "a.example", port: 80, address: "127.0.0.1")]
            case .proxy: $0.proxy = .proxy(Proxy(.http, host: "127.0.0.1", port: 3128))
            case .resolver: $0.connection.dnsOverHTTPS = URL(string: "https://dns.example/")
            case .international: break
            }
        }
        _ = try await manager.data(for: Request(url: url("\(base)x")))
        await authenticator.setToken(Authenticator.Token("0", expires: Date(timeIntervalSince1970: 0)))
        #expect(try await manager.data(for: Request(url: url("\(base)x"))).metrics.source == .network)
        #expect(transport.authorizations == ["Bearer 0", "Bearer 1"])
    }

    @Test func `the target of a wait is the host as it is looked up`() async throws {
        let (transport, routes) = (MockTransport(Self.unreachable, .text("end")), Routes())
        let manager = manager(transport, routes)
        let request = Request(url: try #require(URL(string: "http://B%2Eexample./")))
        let task = Task { try await manager.data(for: request) }
        try await eventually { await !routes.targets.isEmpty }
        await routes.comeUp()
        _ = try await task.value
        #expect(await routes.targets == [.host("b.example")])
    }

    /// Requests whose addresses the system's resolver has under another name, or not at all.
    enum Lookup: CaseIterable {
        case usual, encoded, punycode, international, resolver, override, name, proxy
    }

    @Test(arguments: Lookup.allCases)
    func `the targets of a wait are those that the request is sent to`(lookup: Lookup) async throws {
        let tried = ReachabilityTarget.address(try #require(IPAddress("198.51.100.7")))
        let (host, text, targets): (String, String, [ReachabilityTarget]) =
            switch lookup {
            case .usual: ("a.example", "a.example", [.host("a.example")])
            case .encoded: ("B%2Eexample.", "B%2Eexample.", [.host("b.example")])
            case .punycode: ("xn--bcher-kva.example", "xn--bcher-kva.example", [.host("xn--bcher-kva.example")])
            case .international: ("b%C3%BCcher.example", "b%C3%BCcher.example", [tried, .defaultRoute])
            case .resolver, .name: ("a.example", "a.example", [tried, .defaultRoute])
            case .override: ("a.example", "a.example", [tried])
            case .proxy: ("proxy.example", "a.example", [.host("proxy.example")])
            }
        var context = FailureContext()
        (context.host, context.address) = (host, SocketAddress(host: "198.51.100.7", port: 80))
        let failure = TransportError(.cannotConnect(.unreachable), context: context)
        let (transport, routes) = (MockTransport(.failure(failure), .text("end")), Routes())
        let manager = manager(transport, routes) {
            switch lookup {
            case .usual, .encoded, .punycode, .international: break
            case .resolver: $0.connection.dnsOverHTTPS = URL(string: "https://dns.example/")
            case .override:
                $0.connection.hostOverrides = [.init(host: "a.example", port: 80, address: "198.51.100.7")]
            case .name: $0.connection.hostOverrides = [.init(host: "a.example", port: 80, address: "b.example")]
            case .proxy: $0.proxy = .proxy(Proxy(.http, host: "proxy.example", port: 3128))
            }
        }
        let request = Request(url: try url("http://\(text)/"))
        let task = Task { try await manager.data(for: request) }
        try await eventually { await routes.waiting > 0 }
        await routes.comeUp()
        #expect(try await task.value.text == "end")
        #expect(await routes.targets == targets)
    }

    @Test func `a circuit around calls checks the route to the host that a redirect led to`() async throws {
        var context = FailureContext(try url("http://b.example/x"))
        context.address = SocketAddress(host: "198.51.100.7", port: 80)
        let failure = TransportError(.cannotConnect(.unreachable), context: context)
        let (transport, routes) = (
            MockTransport(.redirect(.found, to: "http://b.example/x"), .failure(failure)), Routes()
        )
        let manager = manager(transport, routes) {
            ($0.waitsForConnectivity, $0.interceptors) = (false, [CircuitBreaker(failures: 1)])
            $0.connection.hostOverrides = [.init(host: "b.example", port: 80, address: "198.51.100.7")]
        }
        #expect(try await sessionError { _ = try await manager.get("http://a.example/") }.isConnectionFailure)
        let targets = await routes.targets
        #expect(targets == [.address(try #require(IPAddress("198.51.100.7")))])
    }

    @Test func `if there is a route, or the status is unknown, the failure is final`() async throws {
        let transport = MockTransport(Self.unreachable)
        let manager = manager(transport, Routes(isDown: false))
        #expect(try await sessionError { _ = try await manager.get("x") }.isConnectionFailure)
        #expect(transport.requests.count == 1)
    }

    @Test(arguments: [
        TransportError(.cannotConnect(.refused)), TransportError(.connectionLost(.beforeResponse)),
        TransportError(.tls(.handshake)),
    ])
    func `other failures do not wait for a route`(error: TransportError) async throws {
        let (transport, routes) = (MockTransport(.failure(error)), Routes())
        let manager = manager(transport, routes)
        _ = try await sessionError { _ = try await manager.get("x") }
        #expect(await routes.targets.isEmpty)
    }

    @Test func `by default no request waits, and a request can override that`() async throws {
        let (transport, routes) = (MockTransport(Self.unreachable), Routes())
        let waiting = manager(transport, routes)
        let failing = manager(transport, routes) {
            $0.waitsForConnectivity = SessionConfiguration().waitsForConnectivity
        }
        _ = try await sessionError { _ = try await failing.get("x") }
        var request = try waiting.request(.get, "x")
        request.waitsForConnectivity = false
        _ = try await sessionError { [request] in _ = try await waiting.data(for: request) }
        #expect(await routes.targets.isEmpty)
    }

    @Test func `a request whose body is not replayable does not wait`() async throws {
        let (transport, routes) = (MockTransport(Self.unreachable), Routes())
        let manager = manager(transport, routes)
        let once = RequestBody.stream(AsyncStreamOf([Data("x".utf8)]))
        _ = try await sessionError { _ = try await manager.data(for: manager.request(.post, "x", body: once)) }
        #expect(transport.requests.count == 1)
    }

    @Test func `the wait is limited by the connectivity timeout`() async throws {
        let clock = ManualClock()
        let (transport, routes) = (MockTransport(Self.unreachable), Routes())
        let manager = manager(transport, routes) {
            $0.clock = clock
            $0.timeouts.connectivity = .seconds(9)
        }
        let task = Task { try await manager.get("x") }
        #expect(try await clock.sleepers(count: 1) == [.seconds(9)])
        clock.advance(by: .seconds(9))
        let error = try await sessionError { _ = try await task.value }
        guard case .timedOut(.connectivity) = error.reason, error.context?.timeLimit == .seconds(9) else { throw error }
        #expect(transport.requests.count == 1)
    }

    @Test func `all waits of one request share the connectivity limit`() async throws {
        let clock = ManualClock()
        let (transport, routes) = (MockTransport(Self.unreachable), Routes())
        let manager = manager(transport, routes) {
            $0.clock = clock
            $0.timeouts.connectivity = .seconds(9)
        }
        let task = Task { try await manager.get("x") }
        #expect(try await clock.sleepers(count: 1) == [.seconds(9)])
        try await eventually { await routes.waiting == 1 }
        clock.advance(by: .seconds(5))
        await routes.seemToComeUp()
        try await transport.requests(count: 2)
        // The second wait begins after a pause.
        #expect(try await clock.sleepers(count: 1) == [.milliseconds(500)])
        clock.advance(by: .milliseconds(500))
        try await eventually { await routes.waiting == 1 }
        #expect(try await clock.sleepers(count: 1) == [.milliseconds(3500)])
        clock.advance(by: .seconds(9))
        let error = try await sessionError { _ = try await task.value }
        guard case .timedOut(.connectivity) = error.reason, error.context?.timeLimit == .seconds(9) else { throw error }
        #expect(transport.requests.count == 2)
    }

    @Test func `the timeout of a call limits the wait after a redirect`() async throws {
        let (clock, routes) = (ManualClock(), Routes())
        let transport = MockTransport(clock: clock) { request in
            guard request.url.path() != "/next" else { return Self.unreachable }
            clock.advance(by: .seconds(8))
            return .redirect(.found, to: "/next")
        }
        let manager = manager(transport, routes) { $0.clock = clock }
        let task = Task { try await manager.get("x", timeout: .seconds(10)) }
        try await eventually { await routes.waiting == 1 }
        #expect(try await clock.sleepers(count: 1) == [.seconds(2)])
        clock.advance(by: .seconds(2))
        let error = try await sessionError { _ = try await task.value }
        #expect(error.reason == .timedOut(.connectivity))
        #expect(error.context?.timeLimit == .seconds(10))
    }

    @Test func `the time limit that a redirect policy sets limits the wait for a route`() async throws {
        let (clock, routes) = (ManualClock(), Routes())
        let transport = MockTransport(clock: clock) { request in
            request.url.path() == "/next" ? Self.unreachable : .redirect(.found, to: "/next")
        }
        let manager = manager(transport, routes) {
            $0.clock = clock
            $0.redirectPolicy.decision = { redirection in
                var request = redirection.proposed
                request.timeout = .seconds(3)
                return request
            }
        }
        let task = Task { try await manager.get("x") }
        try await eventually { await routes.waiting == 1 }
        #expect(try await clock.sleepers(count: 1) == [.seconds(3)])
        clock.advance(by: .seconds(3))
        let error = try await sessionError { _ = try await task.value }
        #expect(error.reason == .timedOut(.connectivity))
        #expect(error.context?.timeLimit == .seconds(3))
    }

    @Test func `the pause before another wait ends with the connectivity limit`() async throws {
        let (clock, routes) = (ManualClock(), Routes())
        let transport = MockTransport(Self.unreachable)
        let manager = manager(transport, routes) {
            $0.clock = clock
            $0.timeouts.connectivity = .milliseconds(600)
        }
        let task = Task { try await manager.get("x") }
        #expect(try await clock.sleepers(count: 1) == [.milliseconds(600)])
        try await eventually { await routes.waiting == 1 }
        clock.advance(by: .milliseconds(400))
        await routes.seemToComeUp()
        try await transport.requests(count: 2)
        #expect(try await clock.sleepers(count: 1) == [.milliseconds(200)])
        clock.advance(by: .milliseconds(200))
        let error = try await sessionError { _ = try await task.value }
        guard case .timedOut(.connectivity) = error.reason else { throw error }
    }

    @Test(arguments: [RouteCheck.wait, .circuit])
    func `the check of a route ends with the time of the call`(check: RouteCheck) async throws {
        let clock = ManualClock()
        let (_, task) = try await startChecking(for: check, SlowRoutes(), timeout: .seconds(10), on: clock)
        #expect(try await clock.sleepers(count: 1) == [.seconds(10)])
        clock.advance(by: .seconds(10))
        let error = try await sessionError { _ = try await task.value }
        #expect(error.reason == .timedOut(.connectivity))
        #expect(error.context?.timeLimit == .seconds(10))
    }

    @Test func `a stored response replaces one whose route cannot be checked in time`() async throws {
        let clock = ManualClock()
        let (_, task) = try await startChecking(for: .validation, SlowRoutes(), timeout: .seconds(10), on: clock)
        #expect(try await clock.sleepers(count: 1) == [.seconds(10)])
        clock.advance(by: .seconds(10))
        #expect(try await task.value.metrics.source == .stale)
    }

    @Test(arguments: RouteCheck.allCases)
    func `a request that is cancelled while its route is checked ends by that`(check: RouteCheck) async throws {
        let (_, task) = try await startChecking(for: check, SlowRoutes(), on: ContinuousClock())
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test(arguments: RouteCheck.allCases)
    func `the end of a session does not wait for the check of a route`(check: RouteCheck) async throws {
        let (manager, task) = try await startChecking(for: check, SlowRoutes(), on: ContinuousClock())
        await manager.shutdown(draining: .zero)
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `cancelling the task or the session's requests ends the wait`() async throws {
        let (transport, routes) = (MockTransport(Self.unreachable), Routes())
        let manager = manager(transport, routes)
        let cancelled = Task { try await manager.get("x") }
        try await eventually { await routes.waiting == 1 }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        let ended = Task { try await manager.get("x") }
        try await eventually { await routes.waiting == 1 }
        await manager.shutdown(draining: .zero)
        await #expect(throws: CancellationError.self) { try await ended.value }
    }

    @Test func `a monitor receives an event for the wait`() async throws {
        struct Waits: EventMonitor {
            let seen: AsyncStream<String>.Continuation

            func receive(_ event: TaskEvent, of task: AnySessionTask) {
                if case .waitingForConnectivity = event { seen.yield("\(event)") }
            }
        }
        let (stream, continuation) = AsyncStream.makeStream(of: String.self)
        let (transport, routes) = (MockTransport(Self.unreachable, .text("end")), Routes())
        let manager = manager(transport, routes) { $0.eventMonitors = [Waits(seen: continuation)] }
        let task = Task { try await manager.get("x") }
        try await eventually { await routes.waiting == 1 }
        await routes.comeUp()
        _ = try await task.value
        continuation.finish()
        #expect(
            await stream.reduce(into: []) { $0.append($1) }
                == ["waits for a route: No connection could be made: there is no route to the host."])
    }
}
