// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@Suite struct TokenBucketTests {
    @Test func `tokens are there at once up to the capacity, and then at the rate`() {
        var bucket = TokenBucket(capacity: 3, interval: .seconds(2))
        #expect((0..<5).map { _ in bucket.take(at: .zero)?.wait } == [.zero, .zero, .zero, .seconds(2), .seconds(4)])
        #expect(bucket.take(at: .seconds(3))?.wait == .seconds(3))
        #expect(!bucket.isFull(at: .seconds(11)) && bucket.isFull(at: .seconds(12)))
        #expect((0..<4).map { _ in bucket.take(at: .seconds(100))?.wait } == [.zero, .zero, .zero, .seconds(2)])
    }

    @Test func `a token that is given back is the next one that is taken`() throws {
        var bucket = TokenBucket(capacity: 1, interval: .seconds(1))
        #expect(bucket.take(at: .zero)?.wait == .zero)
        let taken = bucket.take(at: .zero)
        let second = try #require(taken)
        #expect(second.wait == .seconds(1))
        bucket.giveBack(second)
        let retaken = bucket.take(at: .zero)
        let again = try #require(retaken)
        #expect(again.wait == .seconds(1))
        #expect(bucket.take(at: .zero)?.wait == .seconds(2))
        bucket.giveBack(again)
        #expect(bucket.take(at: .zero)?.wait == .seconds(1))
        #expect(bucket.take(at: .zero)?.wait == .seconds(3))
    }

    @Test(arguments: [false, true])
    func `tokens that are given back in any order are as good as never taken`(isReversed: Bool) {
        var bucket = TokenBucket(capacity: 1, interval: .seconds(1))
        #expect(bucket.take(at: .zero)?.wait == .zero)
        let taken = (0..<1_000).compactMap { _ in bucket.take(at: .zero) }
        for turn in isReversed ? taken.reversed() : taken { bucket.giveBack(turn) }
        #expect((0..<3).map { _ in bucket.take(at: .zero)?.wait } == [1, 2, 3].map { .seconds($0) })
    }

    @Test func `a token that is given back is lost when the bucket is full without it`() throws {
        var bucket = TokenBucket(capacity: 1, interval: .seconds(1))
        _ = bucket.take(at: .zero)
        let taken = bucket.take(at: .zero)
        _ = bucket.take(at: .zero)
        bucket.giveBack(try #require(taken))
        #expect(bucket.take(at: .milliseconds(2_500))?.wait == .milliseconds(500))
    }

    @Test func `the last token that is given back leaves the bucket as it was`() throws {
        var bucket = TokenBucket(capacity: 1, interval: .seconds(1))
        _ = bucket.take(at: .zero)
        let taken = bucket.take(at: .zero)
        bucket.giveBack(try #require(taken))
        #expect(bucket.isFull(at: .seconds(1)))
        #expect(bucket.take(at: .milliseconds(1_001))?.wait == .zero)
    }

    @Test func `no token is taken that is not there within a limit, and no size of a limit is too large`() {
        var bucket = TokenBucket(capacity: 1, interval: .seconds(1))
        #expect(bucket.take(at: .zero, within: .zero)?.wait == .zero)
        #expect(bucket.take(at: .zero, within: .seconds(1)) == nil)
        #expect(bucket.take(at: .zero, within: .seconds(2))?.wait == .seconds(1))
        var large = TokenBucket(capacity: .max, interval: .longestSleep)
        #expect(large.take(at: .zero)?.wait == .zero)
    }

    @Test func `without an interval there is no limit`() {
        var bucket = TokenBucket(capacity: 1, interval: .zero)
        #expect((0..<3).map { _ in bucket.take(at: .zero)?.wait } == [.zero, .zero, .zero])
    }

    @Test func `in any period of any walk, no more tokens are there than the capacity and those of the rate`() {
        for seed in 0..<200 as Range<UInt64> {
            var random = SeededGenerator(seed: seed)
            let capacity = Int.random(in: 1...5, using: &random)
            var bucket = TokenBucket(capacity: capacity, interval: .seconds(1))
            var now = Duration.zero
            var times: [Duration] = []
            var waiting: [(turn: TokenBucket.Turn, time: Duration)] = []
            for _ in 0..<60 {
                now += .milliseconds(Int.random(in: 0...1500, using: &random))
                times += waiting.map(\.time).filter { $0 <= now }
                waiting.removeAll { $0.time <= now }
                if let index = waiting.indices.randomElement(using: &random), Bool.random(using: &random) {
                    bucket.giveBack(waiting.remove(at: index).turn)
                }
                if let turn = bucket.take(at: now) { waiting.append((turn, now + turn.wait)) }
            }
            times = (times + waiting.map(\.time)).sorted()
            for (index, start) in times.enumerated() {
                let count = times[index...].count { $0 < start + .seconds(10) }
                #expect(count <= capacity + 10, "seed \(seed)")
            }
        }
    }
}

@Suite struct CircuitTests {
    private static func admit(_ circuit: inout Circuit, at seconds: Int) -> Circuit.Pass? {
        if case .pass(let pass) = circuit.admit(at: .seconds(seconds)) { pass } else { nil }
    }

    @Test func `successive failures open it, and one request decides after the cooldown`() throws {
        var circuit = Circuit(threshold: 2, cooldown: .seconds(10))
        for outcome in [Circuit.Outcome.failure, .success, .failure, .unknown, .failure] {
            let pass = try #require(Self.admit(&circuit, at: 0))
            circuit.record(outcome, of: pass, at: .seconds(1))
        }
        #expect(circuit.admit(at: .seconds(4)) == .refusal(retryAfter: .seconds(7)))
        let probe = try #require(Self.admit(&circuit, at: 11))
        #expect(circuit.admit(at: .seconds(12)) == .refusal(retryAfter: .seconds(9)))
        circuit.record(.failure, of: probe, at: .seconds(13))
        #expect(circuit.admit(at: .seconds(20)) == .refusal(retryAfter: .seconds(3)))
        let second = try #require(Self.admit(&circuit, at: 23))
        circuit.record(.unknown, of: second, at: .seconds(24))
        let third = try #require(Self.admit(&circuit, at: 24), "a cancelled request decides nothing")
        circuit.record(.success, of: third, at: .seconds(25))
        #expect(Self.admit(&circuit, at: 25) != nil && Self.admit(&circuit, at: 25) != nil)
    }

    /// Of two trials in one half-open state, the outcome of the first one, and whether the circuit is then closed.
    @Test(arguments: [(Circuit.Outcome.success, true), (.failure, false)])
    func `while a trial lasts, there is another one after each cooldown, and the first outcome decides`(
        outcome: Circuit.Outcome, isClosed: Bool
    ) throws {
        for isFirst in [true, false] {
            var circuit = Circuit(threshold: 1, cooldown: .seconds(10))
            circuit.record(.failure, of: try #require(Self.admit(&circuit, at: 0)), at: .zero)
            let trials = [try #require(Self.admit(&circuit, at: 10)), try #require(Self.admit(&circuit, at: 20))]
            #expect(trials[0].isTrial && trials[1].isTrial)
            #expect(circuit.admit(at: .seconds(21)) == .refusal(retryAfter: .seconds(9)))
            circuit.record(outcome, of: trials[isFirst ? 0 : 1], at: .seconds(22))
            circuit.record(.failure, of: trials[isFirst ? 1 : 0], at: .seconds(23))
            #expect((Self.admit(&circuit, at: 24) != nil) == isClosed)
            if !isClosed { #expect(circuit.admit(at: .seconds(24)) == .refusal(retryAfter: .seconds(8))) }
        }
    }

    @Test func `of many origins only the idle ones begin anew`() {
        var table = OriginTable<Int, Int>(0)
        func update(_ origin: Int) -> Int {
            table.update(origin, isIdle: { value, isUsed in value == 0 || value < 10 && !isUsed }) { value in
                defer { if origin % 10 != 0 { value += 1 } }
                return value
            }
        }
        table.update(-1, isIdle: { _, _ in false }) { $0 = 10 }
        for origin in 0..<100_000 {
            #expect(update(origin) == 0)
            // It is in use all the time.
            if origin % 100 == 0 { #expect(update(-9) == origin / 100) }
        }
        #expect(table.count < 3_000)
        #expect(update(-1) == 10)
        for origin in 200_000..<205_000 { table.update(origin, isIdle: { _, _ in false }) { $0 = 1 } }
        #expect((200_000..<205_000).allSatisfy { update($0) == 1 }, "None that is in use is removed.")
    }

    @Test func `a circuit that is open is in use, and one that lets requests through only if it was used`() {
        var circuit = Circuit(threshold: 1, cooldown: .seconds(10))
        #expect(circuit.isIdle(at: .zero, isUsed: true))
        guard case .pass(let pass) = circuit.admit(at: .zero) else {
            Issue.record("It is closed.")
            return
        }
        circuit.record(.failure, of: pass, at: .zero)
        #expect(!circuit.isIdle(at: .seconds(9), isUsed: false))
        #expect(circuit.isIdle(at: .seconds(10), isUsed: false))
        #expect(!circuit.isIdle(at: .seconds(10), isUsed: true))
    }

    @Test func `a trial that decides nothing does not outdate another one`() throws {
        var circuit = Circuit(threshold: 1, cooldown: .seconds(10))
        circuit.record(.failure, of: try #require(Self.admit(&circuit, at: 0)), at: .zero)
        let early = try #require(Self.admit(&circuit, at: 10))
        let (lasting, cancelled) = (Self.admit(&circuit, at: 20), Self.admit(&circuit, at: 30))
        circuit.record(.unknown, of: early, at: .seconds(31))
        #expect(Self.admit(&circuit, at: 31) == nil, "The newest trial decides.")
        circuit.record(.unknown, of: try #require(cancelled), at: .seconds(31))
        circuit.record(.success, of: try #require(lasting), at: .seconds(22))
        #expect(Self.admit(&circuit, at: 22)?.isTrial == false)
    }

    @Test func `requests that were sent before the last change decide nothing`() throws {
        var circuit = Circuit(threshold: 1, cooldown: .seconds(10))
        let early = try #require(Self.admit(&circuit, at: 0))
        let other = try #require(Self.admit(&circuit, at: 0))
        circuit.record(.failure, of: early, at: .seconds(1))
        circuit.record(.success, of: other, at: .seconds(2))
        #expect(Self.admit(&circuit, at: 3) == nil)
        let probe = try #require(Self.admit(&circuit, at: 11))
        circuit.record(.failure, of: early, at: .seconds(12))
        circuit.record(.success, of: probe, at: .seconds(12))
        circuit.record(.failure, of: other, at: .seconds(13))
        #expect(Self.admit(&circuit, at: 13) != nil)
    }
}

@Suite struct HedgingPlanTests {
    @Test func `the wait is the percentile of the recent times`() {
        var plan = HedgingPlan(percentile: 0.95, maximumShare: 0.05)
        for time in 1...19 { plan.record(.milliseconds(time)) }
        #expect(plan.begin() == nil)
        plan.record(.milliseconds(20))
        #expect(plan.begin() == .milliseconds(19))
        for time in 21...150 { plan.record(.milliseconds(time)) }
        #expect(plan.begin() == .milliseconds(145), "of the last hundred times")
    }

    @Test func `at most the share of the requests is repeated`() {
        var plan = HedgingPlan(percentile: 0.5, maximumShare: 0.05)
        var repeated = 0
        for number in 1...10_000 {
            _ = plan.begin()
            if plan.spend() { repeated += 1 }
            #expect(repeated <= number / 20)
        }
        #expect(repeated == 500)
    }

    @Test func `what is not used accumulates only up to a limit`() {
        var plan = HedgingPlan(percentile: 0.5, maximumShare: 0.05)
        for _ in 1...10_000 { _ = plan.begin() }
        #expect((0..<20).count { _ in plan.spend() } == 10)
    }
}

@Suite(.timeLimit(.minutes(2))) struct BudgetsTests {
    private let clock = ManualClock()

    private func manager(
        _ interceptors: [any Interceptor], on transport: MockTransport = MockTransport(.text("x"))
    ) -> SessionManager {
        SessionManager(on: transport) {
            $0.clock = clock
            $0.attemptInterceptors = interceptors
        }
    }

    // MARK: Rate

    @Test func `requests to a host wait for their turn, and those to another one do not`() async throws {
        let transport = MockTransport(.text("x"))
        let manager = manager([RequestRateLimit(2, per: .seconds(1))], on: transport)
        for _ in 0..<2 { _ = try await manager.get("x") }
        async let third = manager.get("third")
        #expect(try await clock.sleepers(count: 1) == [.milliseconds(500)])
        async let fourth = manager.get("fourth")
        #expect(try await clock.sleepers(count: 2) == [.milliseconds(500), .seconds(1)])
        _ = try await manager.get("http://b.example/")
        #expect(transport.requests.count == 3)
        clock.advance(by: .milliseconds(500))
        _ = try await third
        #expect(transport.requests.count == 4)
        clock.advance(by: .milliseconds(500))
        _ = try await fourth
    }

    @Test(arguments: [("expires", ["first", "refreshed 1"]), ("is set", ["second"]), ("is removed", ["refreshed 1"])])
    func `a request that waits for its turn is sent with the token of then`(change: String, sent: [String]) async throws
    {
        let transport = MockTransport(.text("x"))
        let (manager, authenticator) = try limited(on: transport, tokenLifetime: change == "expires" ? 30 : 3_600)
        _ = try await manager.get("x")
        async let second = manager.get("y")
        try await clock.sleepers(count: 1)
        if change == "is set" { await authenticator.setToken(Authenticator.Token("second")) }
        if change == "is removed" { await authenticator.setToken(nil) }
        // A request with another user's token passes the steps again, but does not wait again, even if it is late.
        clock.advance(by: .seconds(61))
        _ = try await second
        let tokens = transport.requests.map { String($0.request.headers[.authorization]?.dropFirst(7) ?? "") }
        #expect(tokens == (change == "expires" ? sent : ["first"] + sent))
    }

    /// Replaces each error, or answers in place of a failed request.
    private struct Translator: Interceptor {
        let answers: Bool

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            do {
                return try await next(request)
            } catch  where answers {
                return OpenResponse(
                    head: ResponseHead(status: .ok, url: request.url), body: ResponseBody(Data("fallback".utf8)))
            } catch {
                throw Planned()
            }
        }
    }

    @Test(arguments: [true, false])
    func `a request is authorized again although an interceptor hides that it was not sent`(answers: Bool) async throws
    {
        let transport = MockTransport(.text("x"))
        let (manager, authenticator) = try limited(
            on: transport, tokenLifetime: 3_600, around: Translator(answers: answers))
        _ = try await manager.get("x")
        async let second = manager.get("y")
        try await clock.sleepers(count: 1)
        await authenticator.setToken(Authenticator.Token("second"))
        _ = try await clock.passWaits(1)
        #expect(try await second.text == "x")
        #expect(transport.requests.map { $0.request.headers[.authorization] } == ["Bearer first", "Bearer second"])
    }

    @Test func `a token that is refreshed before the exchange takes its time from the request`() async throws {
        let transport = MockTransport(.text("x"))
        let (manager, _) = try limited(on: transport, tokenLifetime: 30) { [clock] in clock.advance(by: .seconds(20)) }
        _ = try await manager.get("x")
        async let second = manager.get("y", timeout: .seconds(100))
        _ = try await clock.passWaits(1)
        _ = try await second
        #expect(transport.requests.last?.request.options?.timeouts.total == .seconds(20))
    }

    /// A session that sends a request a minute, with a token that it refreshes.
    private func limited(
        on transport: MockTransport, tokenLifetime: TimeInterval, around outer: (any Interceptor)? = nil,
        refreshing: @escaping @Sendable () -> Void = {}
    ) throws -> (SessionManager, Authenticator) {
        let refreshes = Lock(0)
        let token = Authenticator.Token("first", expires: clock.date + tokenLifetime)
        let authenticator = Authenticator(for: [try url("http://a.example/")], token: token) { _ in
            refreshing()
            return Authenticator.Token("refreshed \(refreshes.withLock { $0 += 1; return $0 })")
        }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.authentication.authenticators = [authenticator]
            $0.attemptInterceptors = (outer.map { [$0] } ?? []) + [RequestRateLimit(1, per: .seconds(60))]
        }
        return (manager, authenticator)
    }

    @Test func `a token that replaced another one in the queue is refreshed if it is refused`() async throws {
        let transport = MockTransport { request in
            request.headers[.authorization] == "Bearer refreshed 1" ? .status(.unauthorized) : .text("x")
        }
        let (manager, _) = try limited(on: transport, tokenLifetime: 30)
        _ = try await manager.get("x")
        async let second = manager.get("y")
        _ = try await clock.passWaits(2)
        #expect(try await second.text == "x")
        #expect(
            transport.requests.map { $0.request.headers[.authorization] } == [
                "Bearer first", "Bearer refreshed 1", "Bearer refreshed 2",
            ])
    }

    @Test func `a cancelled request gives its turn back`() async throws {
        let manager = manager([RequestRateLimit(1, per: .seconds(1))])
        _ = try await manager.get("x")
        let task = Task { try await manager.get("y") }
        try await clock.sleepers(count: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        async let next = manager.get("z")
        #expect(try await clock.passWaits(1) == [.seconds(1)])
        _ = try await next
    }

    @Test(arguments: [true, false])
    func `a request that is cancelled before it is sent takes no turn`(isEarly: Bool) async throws {
        let transport = MockTransport(.text("x"))
        let cancelling = Intercepting { request, next in
            if request.url.path == "/v1/cancelled" { cancelCurrentTask() }
            return try await next(request)
        }
        let limit = RequestRateLimit(1, per: .seconds(60))
        let manager = manager(isEarly ? [cancelling, limit] : [limit, cancelling], on: transport)
        await #expect(throws: CancellationError.self) {
            try await Task { try await manager.get("cancelled") }.value
        }
        #expect(try await manager.get("x", timeout: .seconds(30)).text == "x")
        #expect(transport.requests.count == 1)
    }

    @Test func `requests whose token is set while they wait keep their turns`() async throws {
        let transport = MockTransport(.text("x"))
        let (manager, authenticator) = try limited(on: transport, tokenLifetime: 3_600)
        _ = try await manager.get("x")
        async let first = manager.get("first")
        #expect(try await clock.sleepers(count: 1) == [.seconds(60)])
        async let second = manager.get("second")
        #expect(try await clock.sleepers(count: 2) == [.seconds(60), .seconds(120)])
        await authenticator.setToken(Authenticator.Token("second"))
        clock.advance(by: .seconds(61))
        _ = try await first
        #expect(clock.sleepers == [.seconds(59)])
        clock.advance(by: .seconds(60))
        _ = try await second
        #expect(transport.requests.map(\.request.url.lastPathComponent) == ["x", "first", "second"])
    }

    @Test func `a request that fails before it is sent gives its turn back`() async throws {
        let transport = MockTransport(.text("x"))
        let failing = Intercepting { request, next in
            if request.url.lastPathComponent == "failing" { throw Planned() }
            return try await next(request)
        }
        let manager = manager([RequestRateLimit(1, per: .seconds(60)), failing], on: transport)
        await #expect(throws: Planned.self) { try await manager.get("failing") }
        #expect(try await manager.get("x", timeout: .seconds(30)).text == "x")
    }

    @Test func `a request whose time would expire before its turn fails at once`() async throws {
        let late = Intercepting { [clock] request, next in
            if request.timeout != nil { clock.advance(by: .seconds(5)) }
            return try await next(request)
        }
        let manager = manager([late, RequestRateLimit(1, per: .seconds(65))])
        _ = try await manager.get("x")
        let error = try await sessionError { _ = try await manager.get("x", timeout: .seconds(30)) }
        #expect(error.reason == .timedOut(.queue))
        #expect(error.context?.timeLimit == .seconds(30))
        #expect(error.context?.host == "a.example")
        // The turn was given back.
        async let next = manager.get("x")
        #expect(try await clock.passWaits(1) == [.seconds(60)])
        _ = try await next
    }

    // MARK: Circuit

    @Test func `failures open the circuit of one host, and a success closes it`() async throws {
        let isBroken = Lock(true)
        let transport = MockTransport { request in
            isBroken.withLock(\.self) && request.url.host() == "a.example" ? .status(.badGateway) : .text("x")
        }
        let manager = manager([CircuitBreaker(failures: 2, cooldown: .seconds(30))], on: transport)
        for _ in 0..<2 { _ = try await sessionError { _ = try await manager.get("x") } }
        clock.advance(by: .seconds(10))
        let error = try await sessionError { _ = try await manager.get("x") }
        guard case .circuitOpen("a.example", .seconds(20)) = error else { throw error }
        #expect(transport.requests.count == 2)
        _ = try await manager.get("http://b.example/")
        isBroken.set(\.self, to: false)
        clock.advance(by: .seconds(20))
        for _ in 0..<3 { _ = try await manager.get("x") }
    }

    @Test func `statuses of the client and cancelled requests are not failures, and the predicate decides`()
        async throws
    {
        let transport = MockTransport(.status(.notFound))
        let plain = manager([CircuitBreaker(failures: 1)], on: transport)
        for _ in 0..<3 { _ = try await sessionError { _ = try await plain.get("x") } }
        let strict = manager(
            [CircuitBreaker(failures: 1) { (try? $0.get())?.status.code != 200 }], on: transport)
        _ = try await sessionError { _ = try await strict.get("x") }
        guard case .circuitOpen = try await sessionError({ _ = try await strict.get("x") }) else { throw Planned() }
    }

    @Test func `a cancelled request says nothing of the server, whatever its error is`() async throws {
        let transport = MockTransport(.hang, .text("x"))
        let replacing = Intercepting { request, next in
            do {
                return try await next(request)
            } catch is CancellationError {
                throw TransportError(.connectionLost(.beforeResponse))
            }
        }
        let manager = manager([CircuitBreaker(failures: 1), replacing], on: transport)
        let task = Task { try await manager.get("x") }
        try await transport.requests(count: 1)
        task.cancel()
        _ = await task.result
        #expect(try await manager.get("x").text == "x")
    }

    @Test func `the end of another session says nothing of the server`() async throws {
        let hanging = MockTransport(.hang)
        let breaker = CircuitBreaker(failures: 1) { (try? $0.get())?.status.code != 200 }
        let (first, second) = (manager([breaker], on: hanging), manager([breaker]))
        let request = Task { try await first.get("x") }
        try await hanging.requests(count: 1)
        await first.invalidate(cancellingTasks: true)
        await #expect(throws: CancellationError.self) { try await request.value }
        #expect(try await second.get("x").text == "x")
    }

    @Test func `a request that accepts only a stored response says nothing of the server`() async throws {
        let manager = SessionManager(on: MockTransport(.text("x"))) {
            $0.cache = .memory()
            $0.interceptors = [CircuitBreaker(failures: 1) { (try? $0.get())?.status != .ok }]
        }
        let request = try manager.request(.get, "x", headers: [.cacheControl: "only-if-cached"])
        for _ in 0..<2 { #expect(try await manager.data(for: request).statusCode == 504) }
        var stored = try manager.request(.get, "x")
        stored.cachePolicy = .returnCacheDontLoad
        for _ in 0..<2 {
            guard case .notCached = try await sessionError({ _ = try await manager.data(for: stored) }) else {
                throw Planned()
            }
        }
        #expect(try await manager.get("x").text == "x")
    }

    @Test func `a request that is not sent says nothing of the server`() async throws {
        let isRefreshed = Lock(false)
        let authenticator = Authenticator(for: [try url("http://a.example/")]) { _ in
            guard isRefreshed.withLock(\.self) else { throw TransportError(.cannotConnect(.refused)) }
            return Authenticator.Token("1")
        }
        let manager = SessionManager(on: MockTransport(.text("x"))) {
            $0.interceptors = [CircuitBreaker(failures: 1)]
            $0.authentication.authenticators = [authenticator]
        }
        let error = try await sessionError { _ = try await manager.get("x", timeout: .zero) }
        #expect(error.reason == .timedOut(.request))
        #expect(try await sessionError { _ = try await manager.get("x") }.reason == .cannotConnect(.refused))
        isRefreshed.set(\.self, to: true)
        #expect(try await manager.get("x").text == "x")
    }

    @Test func `a stored response is no success of the server`() async throws {
        let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\""]
        let isBroken = Lock(false)
        let transport = MockTransport { _ in
            isBroken.withLock(\.self) ? .status(.badGateway) : .data(Data("x".utf8), headers: fields)
        }
        let manager = SessionManager(on: transport) {
            $0.cache = .memory()
            $0.interceptors = [CircuitBreaker(failures: 2)]
        }
        _ = try await manager.get("stored")
        isBroken.set(\.self, to: true)
        _ = try await sessionError { _ = try await manager.get("x") }
        #expect(try await manager.get("stored").metrics.source == .cache)
        let validated: HTTPFields = [.cacheControl: "no-cache, stale-if-error=60"]
        #expect(try await manager.get("stored", headers: validated).text == "x")
        _ = try await sessionError { _ = try await manager.get("x") }
        guard case .circuitOpen = try await sessionError({ _ = try await manager.get("x") }) else { throw Planned() }
    }

    @Test func `a retry waits for nothing when the circuit is open`() async throws {
        let manager = SessionManager(on: MockTransport(.status(.badGateway))) {
            ($0.clock, $0.randomUnit) = (clock, { 1 })
            $0.retryPolicy = RetryPolicy(limit: 5)
            $0.attemptInterceptors = [CircuitBreaker(failures: 2)]
        }
        async let result = sessionError { _ = try await manager.get("x") }
        #expect(try await clock.passWaits(2) == [.milliseconds(500), .seconds(1)])
        guard case .circuitOpen = try await result else { throw Planned() }
    }

    @Test func `a request within the interceptors of a trial is sent, and later ones are not part of it`() async throws
    {
        let session = Lock<SessionManager?>(nil)
        let leftover = Lock<Task<Response<Data>, any Error>?>(nil)
        let gate = try ScriptGate()
        let isBroken = Lock(true)
        let transport = MockTransport { _ in isBroken.withLock(\.self) ? .status(.badGateway) : .text("x") }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.interceptors = [
                CircuitBreaker(failures: 1, cooldown: .seconds(30)),
                Intercepting { request, next in
                    if request.url.path == "/v1/outer", let manager = session.withLock(\.self) {
                        _ = try await manager.get("inner")
                        leftover.set(
                            \.self,
                            to: Task {
                                try await gate.wait()
                                return try await manager.get("late")
                            })
                    }
                    return try await next(request)
                },
            ]
        }
        _ = try await sessionError { _ = try await manager.get("x") }
        isBroken.set(\.self, to: false)
        session.set(\.self, to: manager)
        defer { session.set(\.self, to: nil) }
        clock.advance(by: .seconds(30))
        #expect(try await manager.get("outer").text == "x")
        isBroken.set(\.self, to: true)
        _ = try await sessionError { _ = try await manager.get("x") }
        gate.open()
        let found = leftover.withLock { $0 }
        let late = try #require(found)
        guard case .circuitOpen = try await sessionError({ _ = try await late.value }) else { throw Planned() }
    }

    @Test func `WebSocket connections and resumable uploads outlast an open circuit`() async throws {
        let refusals = Lock(1)
        let transport = MockTransport { request in
            if request.method == .patch || request.webSocketOptions != nil,
                refusals.withLock({
                    $0 -= 1; return $0 >= 0
                })
            {
                return .failure(TransportError(.connectionLost(.beforeResponse)))
            }
            switch request.method {
            case .head: return .status(.ok, headers: [.uploadOffset: "0"])
            case .patch: return .status(.noContent, headers: [.uploadOffset: "3"])
            default: return .status(.created, headers: [.location: "/u/1"])
            }
        }
        let manager = SessionManager(on: transport) {
            ($0.clock, $0.randomUnit) = (clock, { 0 })
            $0.attemptInterceptors = [CircuitBreaker(failures: 1, cooldown: .seconds(300))]
        }
        let options = UploadOptions.resumable.with { $0.uploadProtocol = .tus }
        let upload = manager.upload("up", body: .bytes(Data("abc".utf8)), options: options)
        #expect(try await clock.passWaits(1) == [.seconds(300)])
        #expect(try await upload.value.statusCode == 204)
        refusals.set(\.self, to: 1)
        let request = try manager.request(.get, "http://b.example/")
        let sockets = Task { try await manager.withWebSockets(for: request) { _ in } }
        #expect(try await clock.passWaits(2) == [.seconds(1), .seconds(300)])
        #expect(try await sessionError { try await sockets.value }.statusCode == 201)
    }

    // MARK: Hedging

    /// A transport whose first requests take 10 ms, and whose others are held until they are cancelled, except those
    /// that are given.
    private func hedged(answering answered: Set<Int>) -> (MockTransport, Lock<Int>) {
        let count = Lock(0)
        let transport = MockTransport(clock: clock) { _ in
            let number = count.withLock {
                $0 += 1; return $0
            }
            if number <= 20 { return MockResponse([.pause(.milliseconds(10)), .head(.ok)]) }
            return answered.contains(number) ? .text("\(number)") : .hang
        }
        return (transport, count)
    }

    private func warmUp(_ manager: SessionManager) async throws {
        for _ in 0..<20 {
            async let response = manager.get("x")
            _ = try await clock.passWaits(1)
            _ = try await response
        }
    }

    @Test func `a slow request is sent again, the first answer wins, and the loser is cancelled`() async throws {
        let (transport, count) = hedged(answering: [22])
        let manager = manager([Hedging()], on: transport)
        try await warmUp(manager)
        async let response = manager.get("x")
        #expect(try await clock.passWaits(1) == [.milliseconds(10)])
        #expect(try await response.text == "22")
        #expect(count.withLock(\.self) == 22)
        #expect(clock.sleepers.isEmpty)
    }

    @Test(arguments: [true, false])
    func `a second request is sent although identical ones are sent once`(withCache: Bool) async throws {
        let (transport, count) = hedged(answering: [22])
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.interceptors = withCache ? [Hedging()] : [Hedging(), RequestCoalescing()]
            if withCache { ($0.cache, $0.coalescesRequests) = (.memory(), true) }
        }
        try await warmUp(manager)
        async let response = manager.get("x")
        #expect(try await clock.passWaits(1) == [.milliseconds(10)])
        try await transport.requests(count: 22)
        #expect(try await response.text == "22")
        #expect(count.withLock(\.self) == 22)
    }

    @Test func `the first request may still win`() async throws {
        let gate = try ScriptGate()
        let count = Lock(0)
        let transport = MockTransport(clock: clock) { _ in
            let number = count.withLock {
                $0 += 1; return $0
            }
            if number <= 20 { return MockResponse([.pause(.milliseconds(10)), .head(.ok)]) }
            return number == 21 ? MockResponse([.wait(gate), .head(.ok), .chunk(Data("first".utf8))]) : .hang
        }
        let manager = manager([Hedging()], on: transport)
        try await warmUp(manager)
        async let response = manager.get("x")
        _ = try await clock.passWaits(1)
        try await transport.requests(count: 22)
        gate.open()
        #expect(try await response.text == "first")
    }

    @Test func `without credit, and for methods that may not be repeated, nothing is sent again`() async throws {
        let (transport, count) = hedged(answering: [22])
        let manager = manager([Hedging()], on: transport)
        try await warmUp(manager)
        async let first = manager.get("x")
        _ = try await clock.passWaits(1)
        _ = try await first
        // The credit of twenty requests is spent.
        let second = Task { try await manager.get("x") }
        #expect(try await clock.passWaits(1) == [.milliseconds(10)])
        try await transport.requests(count: 23)
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        let post = Task { try await manager.post("x", body: .string("a")) }
        try await transport.requests(count: 24)
        #expect(clock.sleepers.isEmpty)
        post.cancel()
        _ = await post.result
        #expect(count.withLock(\.self) == 24)
    }

    @Test func `a failure before the second request is that of the call, and one after it is not`() async throws {
        let gate = try ScriptGate()
        let count = Lock(0)
        let transport = MockTransport(clock: clock) { _ in
            let number = count.withLock {
                $0 += 1; return $0
            }
            switch number {
            case ...20: return MockResponse([.pause(.milliseconds(10)), .head(.ok)])
            case 21: throw Planned(number: 1)
            case 22: return MockResponse([.wait(gate), .fail(Planned(number: 2))])
            default: return MockResponse([.wait(gate), .head(.ok), .chunk(Data("second".utf8))])
            }
        }
        let manager = manager([Hedging()], on: transport)
        try await warmUp(manager)
        await #expect(throws: Planned(number: 1)) { try await manager.get("x") }
        async let response = manager.get("x")
        _ = try await clock.passWaits(1)
        try await transport.requests(count: 23)
        gate.open()
        #expect(try await response.text == "second")
    }

    @Test func `if both requests fail, the error is that of the first one, whichever fails first`() async throws {
        let (gate, refused, count) = (try ScriptGate(), Lock(0), Lock(0))
        let loss = TransportError(.connectionLost(.beforeResponse))
        let transport = MockTransport(clock: clock) { _ in
            let number = count.withLock {
                $0 += 1; return $0
            }
            return MockResponse(number <= 20 ? [.pause(.milliseconds(10)), .head(.ok)] : [.wait(gate), .fail(loss)])
        }
        let full = Intercepting { request, next in
            let number = refused.withLock {
                $0 += 1; return $0
            }
            guard number == 22 else { return try await next(request) }
            gate.open()
            throw TransportError(.timedOut(.queue))
        }
        let manager = manager([Hedging(), full], on: transport)
        try await warmUp(manager)
        let request = Task { try await manager.get("x") }
        _ = try await clock.passWaits(1)
        #expect(try await sessionError { _ = try await request.value }.label == SessionError.label(of: loss))
        #expect(count.withLock(\.self) == 21)
    }

    @Test func `a call that is cancelled after the first request has failed is cancelled`() async throws {
        let (gate, ends) = (try ScriptGate(), EventList<Int>())
        let count = Lock(0)
        let transport = MockTransport(clock: clock) { _ in
            let number = count.withLock {
                $0 += 1; return $0
            }
            switch number {
            case ...20: return MockResponse([.pause(.milliseconds(10)), .head(.ok)])
            case 21: return MockResponse([.wait(gate), .fail(Planned())])
            default: return .hang
            }
        }
        let end = Intercepting { request, next in
            do {
                return try await next(request)
            } catch let error as Planned {
                await ends.append(21)
                throw error
            }
        }
        let manager = manager([Hedging(), end], on: transport)
        try await warmUp(manager)
        let request = Task { try await manager.get("x") }
        _ = try await clock.passWaits(1)
        try await transport.requests(count: 22)
        gate.open()
        try await eventually { await ends.values == [21] }
        request.cancel()
        await #expect(throws: CancellationError.self) { try await request.value }
    }

    @Test(arguments: [21, 22])
    func `the progress of an upload is that of the request that wins`(winner: Int) async throws {
        let gate = try ScriptGate()
        let count = Lock(0)
        let transport = MockTransport(
            receiving: { received in
                if received.number <= 20 { return MockResponse([.pause(.milliseconds(10)), .head(.ok)]) }
                return received.body.count == 5 ? MockResponse([.wait(gate), .head(.ok)]) : .hang
            },
            reception: { _ in
                let number = count.withLock {
                    $0 += 1; return $0
                }
                return number <= 20 || number == winner ? .complete : .answered(after: 2)
            }, clock: clock)
        let manager = manager([Hedging()], on: transport)
        try await warmUp(manager)
        let upload = manager.upload("x", body: .string("12345"), method: .put)
        #expect(try await clock.passWaits(1) == [.milliseconds(10)])
        try await transport.requests(count: 22)
        gate.open()
        _ = try await upload.value
        #expect(upload.status.uploadProgress?.counts == TransferProgress(completedBytes: 5, totalBytes: 5))
    }

    @Test func `streams are raced to their heads`() async throws {
        let (transport, _) = hedged(answering: [22])
        let manager = manager([Hedging()], on: transport)
        try await warmUp(manager)
        let request = Request(url: try url("http://a.example/v1/x"))
        async let text = manager.withResponse(for: request) { _, body in
            String(decoding: try await body.collect(upTo: 100), as: UTF8.self)
        }
        _ = try await clock.passWaits(1)
        #expect(try await text == "22")
    }

    // MARK: Coalescing

    @Test func `identical requests in flight are sent once, and others are not waited for`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { _ in MockResponse([.wait(gate), .head(.ok), .chunk(Data("shared".utf8))]) }
        let manager = SessionManager(on: transport) { ($0.clock, $0.interceptors) = (clock, [RequestCoalescing()]) }
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<5 { group.addTask { try await manager.get("x", timeout: .seconds(60)).text } }
            // Those of the four that wait; the limit of the one that is sent is the transport's.
            #expect(try await clock.sleepers(count: 4).count == 4)
            group.addTask { try await manager.get("x", headers: [.accept: "text/plain"]).text }
            group.addTask { try await manager.post("x", body: .string("a")).text }
            group.addTask {
                try await manager.withResponse(for: manager.request(.get, "x")) { _, body in
                    String(decoding: try await body.collect(upTo: 100), as: UTF8.self)
                }
            }
            try await transport.requests(count: 4)
            gate.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(texts == Array(repeating: "shared", count: 8))
        #expect(transport.requests.count == 4)
        #expect(try await manager.get("x").text == "shared")
        #expect(transport.requests.count == 5, "nothing is stored")
    }

    @Test(.timeLimit(.minutes(1)))
    func `a request that an interceptor has led to another origin is not shared with one to its own`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { request in
            let user = request.headers[.authorization] ?? "nobody"
            return MockResponse([.wait(gate), .head(.ok), .chunk(Data(user.utf8))])
        }
        let manager = SessionManager(on: transport) {
            $0.headers = [.authorization: "secret"]
            $0.interceptors = [
                Intercepting { request, next in
                    var request = request
                    request.url = try url("http://b.example/x")
                    return try await next(request)
                },
                RequestCoalescing(),
            ]
        }
        async let own = manager.get("http://b.example/x").text
        try await transport.requests(count: 1)
        async let led = manager.get("http://a.example/x").text
        try await transport.requests(count: 2)
        gate.open()
        #expect(try await own == "secret")
        #expect(try await led == "nobody")
    }

    @Test func `a response is not shared between users, nor with a request after a change`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { request in
            guard request.method == .get else { return .status(.ok) }
            return MockResponse([.wait(gate), .head(.ok), .chunk(Data((request.headers[.authorization] ?? "").utf8))])
        }
        let url = try #require(URL(string: "http://a.example/"))
        let authenticator = Authenticator(for: [url], token: Authenticator.Token("A")) { _ in
            Authenticator.Token("none")
        }
        let manager = SessionManager(on: transport) {
            $0.interceptors = [RequestCoalescing()]
            $0.authentication.authenticators = [authenticator]
        }
        async let first = manager.get(url).text
        try await transport.requests(count: 1)
        await authenticator.setToken(Authenticator.Token("B"))
        async let second = manager.get(url).text
        try await transport.requests(count: 2)
        _ = try await manager.post(url)
        async let third = manager.get(url).text
        try await transport.requests(count: 4)
        gate.open()
        #expect(try await [first, second, third] == ["Bearer A", "Bearer B", "Bearer B"])
    }

    @Test func `requests that wait while a token is set share another one`() async throws {
        let (gate, last) = (try ScriptGate(), try ScriptGate())
        let transport = MockTransport { request in
            let gate = request.headers[.authorization] == "Bearer A" ? gate : last
            return MockResponse([.wait(gate), .head(.ok), .chunk(Data("x".utf8))])
        }
        let url = try #require(URL(string: "http://a.example/"))
        let authenticator = Authenticator(for: [url], token: Authenticator.Token("A")) { _ in
            Authenticator.Token("none")
        }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.interceptors = [RequestCoalescing()]
            $0.authentication.authenticators = [authenticator]
        }
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<5 { group.addTask { try await manager.get(url, timeout: .seconds(60)).text } }
            #expect(try await clock.sleepers(count: 4).count == 4)
            await authenticator.setToken(Authenticator.Token("B"))
            gate.open()
            try await transport.requests(count: 2)
            try await eventually { clock.sleepers.count == 3 }
            last.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(texts == Array(repeating: "x", count: 5))
        #expect(transport.requests.map { $0.request.headers[.authorization] } == ["Bearer A", "Bearer B"])
    }

    @Test func `requests whose responses set tokens are not sent one after the other`() async throws {
        let gates = try (0..<3).map { _ in try ScriptGate() }
        let count = Lock(0)
        let transport = MockTransport { _ in
            let number = count.withLock {
                $0 += 1; return $0
            }
            return MockResponse([.wait(gates[min(number, 3) - 1]), .head(.ok), .chunk(Data("x".utf8))])
        }
        let url = try #require(URL(string: "http://a.example/"))
        let authenticator = Authenticator(for: [url], token: Authenticator.Token("A")) { _ in
            Authenticator.Token("none")
        }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.interceptors = [RequestCoalescing()]
            $0.authentication.authenticators = [authenticator]
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    let response = try await next(request)
                    await authenticator.setToken(Authenticator.Token("A"))
                    return response
                }
            ]
        }
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<6 { group.addTask { try await manager.get(url, timeout: .seconds(60)).text } }
            #expect(try await clock.sleepers(count: 5).count == 5)
            gates[0].open()
            try await transport.requests(count: 2)
            try await eventually { clock.sleepers.count == 4 }
            gates[1].open()
            // None of the others waits for another one.
            try await transport.requests(count: 6)
            gates[2].open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(texts == Array(repeating: "x", count: 6))
    }

    @Test func `a request without a token within a refresh is not shared with others`() async throws {
        let session = Lock<SessionManager?>(nil)
        let gate = try ScriptGate()
        let transport = MockTransport { request in
            guard let field = request.headers[.authorization] else {
                return MockResponse([.wait(gate), .head(.ok), .chunk(Data("nobody".utf8))])
            }
            return .text(field)
        }
        let base = try url("http://a.example/")
        let authenticator = Authenticator(for: [base]) { _ in
            Authenticator.Token(try await session.withLock(\.self)?.get("x").text == "nobody" ? "t" : "")
        }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.interceptors = [RequestCoalescing()]
            $0.authentication.authenticators = [authenticator]
        }
        session.set(\.self, to: manager)
        defer { session.set(\.self, to: nil) }
        async let first = manager.get("y").text
        try await transport.requests(count: 1)
        async let second = manager.get("x", timeout: .seconds(60)).text
        #expect(try await clock.sleepers(count: 1) == [.seconds(60)])
        gate.open()
        #expect(try await [first, second] == ["Bearer t", "Bearer t"])
    }

    @Test(arguments: [
        MockResponse.Step.head(.serviceUnavailable), .fail(TransportError(.connectionLost(.beforeResponse))),
    ])
    func `a failure that may be due to the time limit of one request is not that of others`(
        failure: MockResponse.Step
    ) async throws {
        let gate = try ScriptGate()
        let count = Lock(0)
        let transport = MockTransport(clock: clock) { _ in
            let isFirst = count.withLock {
                $0 += 1; return $0 == 1
            }
            return isFirst ? MockResponse([.wait(gate), failure]) : .text("end")
        }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.retryPolicy = RetryPolicy(limit: 5).with {
                $0.backoff = Backoff(base: .seconds(3), isJittered: false)
            }
            $0.interceptors = [RequestCoalescing()]
        }
        let hasty = Task { try await manager.get("x", timeout: .seconds(2)) }
        try await transport.requests(count: 1)
        async let patient = manager.get("x", timeout: .seconds(60)).text
        try await eventually { clock.sleepers.contains(.seconds(60)) }
        gate.open()
        #expect(try await patient == "end")
        _ = try await sessionError { _ = try await hasty.value }
        #expect(transport.requests.count == 2)
    }

    @Test(arguments: [MockResponse.hang, .status(.serviceUnavailable)])
    func `a failure by a time limit of the session is one of all that wait`(response: MockResponse) async throws {
        let gate = try ScriptGate()
        let transport = MockTransport(clock: clock) { _ in MockResponse([.wait(gate)] + response.steps) }
        let manager = SessionManager(on: transport) {
            ($0.clock, $0.timeouts.idle) = (clock, .seconds(5))
            $0.retryPolicy = RetryPolicy(limit: 5).with {
                ($0.backoff, $0.deadline) = (Backoff(base: .seconds(30), isJittered: false), .seconds(10))
                $0.failures = []
            }
            $0.interceptors = [RequestCoalescing()]
        }
        let tasks = (0..<3).map { _ in
            Task { try await manager.data(for: manager.request(.get, "x", timeout: .seconds(60))).statusCode }
        }
        try await transport.requests(count: 1)
        try await eventually { clock.sleepers.count { $0 == .seconds(60) } == 2 }
        gate.open()
        if case .hang? = response.steps.first {
            try await eventually { clock.sleepers.contains(.seconds(5)) }
            clock.advance(by: .seconds(5))
        }
        for task in tasks { _ = await task.result }
        #expect(transport.requests.count == 1)
    }

    @Test(.timeLimit(.minutes(1)), arguments: [false, true])
    func `a change that fails, or is repeated, may have been redirected to any origin`(isRepeated: Bool) async throws {
        let gate = try ScriptGate()
        let changes = Lock(0)
        let transport = MockTransport { request in
            guard request.method != .get else { return MockResponse([.wait(gate), .head(.ok)]) }
            changes.withLock { $0 += 1 }
            switch changes.withLock(\.self) {
            case 1: return .status(.temporaryRedirect, headers: [.location: "http://b.example/y"])
            case 2: return .failure(TransportError(.connectionLost(.beforeResponse)))
            default: return .status(.ok)
            }
        }
        let manager = SessionManager(on: transport) {
            $0.interceptors = [RequestCoalescing()]
            $0.retryPolicy = RetryPolicy(limit: isRepeated ? 1 : 0).with { $0.backoff = Backoff(base: .zero) }
        }
        async let before = manager.get("http://b.example/x")
        try await transport.requests(count: 1)
        let change = Task { try await manager.put("http://a.example/y", body: .string("a")) }
        if isRepeated {
            _ = try await change.value
        } else {
            _ = try await sessionError { _ = try await change.value }
        }
        async let after = manager.get("http://b.example/x")
        try await transport.requests(count: isRepeated ? 5 : 4)
        gate.open()
        _ = try await (before, after)
    }

    @Test func `a change that was redirected to another origin is one there, too`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { request in
            switch (request.method, request.url.host()) {
            case (.get, _): MockResponse([.wait(gate), .head(.ok)])
            case (_, "a.example"): .status(.temporaryRedirect, headers: [.location: "http://b.example/y"])
            default: .status(.ok)
            }
        }
        let manager = SessionManager(on: transport) { $0.interceptors = [RequestCoalescing()] }
        async let before = manager.get("http://b.example/x")
        try await transport.requests(count: 1)
        _ = try await manager.post("http://a.example/y", body: .string("a"))
        async let after = manager.get("http://b.example/x")
        try await transport.requests(count: 4)
        gate.open()
        _ = try await (before, after)
    }

    @Test func `an open circuit permits a stale response`() async throws {
        let isBroken = Lock(false)
        let transport = MockTransport { _ in
            if isBroken.withLock(\.self) { return .failure(TransportError(.cannotConnect(.refused))) }
            return MockResponse(
                status: .ok, headers: [.cacheControl: "max-age=0, stale-if-error=1000"], chunks: [Data("x".utf8)])
        }
        let manager = SessionManager(on: transport) {
            $0.cache = ResponseCache.memory()
            $0.attemptInterceptors = [CircuitBreaker(failures: 1)]
        }
        _ = try await manager.get("http://a.example/")
        isBroken.set(\.self, to: true)
        for _ in 0..<3 {
            let response = try await manager.get("http://a.example/")
            #expect(response.metrics.source == ResponseSource.stale)
        }
        #expect(transport.requests.count == 2)
    }

    @Test func `a failure is one of all that wait`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { _ in MockResponse([.wait(gate), .fail(Planned())]) }
        let manager = SessionManager(on: transport) { ($0.clock, $0.interceptors) = (clock, [RequestCoalescing()]) }
        let first = Task { try await manager.get("x") }
        try await transport.requests(count: 1)
        let others = (0..<3).map { _ in Task { try await manager.get("x", timeout: .seconds(9)) } }
        #expect(try await clock.sleepers(count: 3) == [.seconds(9), .seconds(9), .seconds(9)])
        gate.open()
        for task in [first] + others { await #expect(throws: Planned.self) { try await task.value } }
        #expect(transport.requests.count == 1)
    }

    @Test func `the limit of the request that is sent is its own, even if it is as long as one of the session`()
        async throws
    {
        let gate = try ScriptGate()
        let count = Lock(0)
        let limiting = Intercepting { request, next in
            let isFirst = count.withLock {
                $0 += 1; return $0 == 1
            }
            let response = try await next(request)
            if isFirst { throw TransportError.timedOut(.queue, .seconds(60), FailureContext(request.url)) }
            return response
        }
        let transport = MockTransport { _ in MockResponse([.wait(gate), .head(.ok), .chunk(Data("x".utf8))]) }
        let manager = SessionManager(on: transport) {
            ($0.clock, $0.timeouts.idle) = (clock, .seconds(60))
            ($0.interceptors, $0.attemptInterceptors) = ([RequestCoalescing()], [limiting])
        }
        let first = Task { try await manager.get("x", timeout: .seconds(60)) }
        try await transport.requests(count: 1)
        let second = Task.immediate { try await manager.get("x").text }
        gate.open()
        #expect(try await sessionError { _ = try await first.value }.isTimeout)
        #expect(try await second.value == "x")
    }

    @Test(arguments: [false, true])
    func `after a cancellation the next request is sent`(isReplaced: Bool) async throws {
        let count = Lock(0)
        let transport = MockTransport { _ in
            let number = count.withLock {
                $0 += 1; return $0
            }
            return number == 1 ? .hang : .text("\(number)")
        }
        let replacing = Intercepting { request, next in
            do {
                return try await next(request)
            } catch is CancellationError where isReplaced {
                throw Planned()
            }
        }
        let manager = SessionManager(on: transport) { $0.interceptors = [RequestCoalescing(), replacing] }
        let first = Task { try await manager.get("x") }
        try await transport.requests(count: 1)
        let second = Task.immediate { try await manager.get("x").text }
        first.cancel()
        let error = await #expect(throws: (any Error).self) { try await first.value }
        #expect((error is Planned) == isReplaced)
        #expect(try await second.value == "2")
    }

    @Test func `a request that waits ends by its own time limit and its own cancellation`() async throws {
        let manager = SessionManager(on: MockTransport(.hang)) {
            $0.clock = clock
            $0.interceptors = [RequestCoalescing()]
        }
        let first = Task { try await manager.get("x") }
        let transport = try #require(manager.configuration.transport as? MockTransport)
        try await transport.requests(count: 1)
        async let limited = sessionError { _ = try await manager.get("x", timeout: .seconds(5)) }
        #expect(try await clock.passWaits(1) == [.seconds(5)])
        #expect(try await limited.isTimeout)
        let second = Task.immediate { try await manager.get("x") }
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(transport.requests.count == 1)
        first.cancel()
        _ = await first.result
    }

    @Test func `a request within the interceptors of an identical one is sent`() async throws {
        let session = Lock<SessionManager?>(nil)
        let depth = Lock(0)
        let transport = MockTransport(.text("x"))
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                RequestCoalescing(),
                Intercepting { request, next in
                    if depth.withLock({
                        $0 += 1; return $0
                    }) == 1 {
                        _ = try await session.withLock(\.self)?.get("x")
                    }
                    return try await next(request)
                },
            ]
        }
        session.set(\.self, to: manager)
        #expect(try await manager.get("x").text == "x")
        #expect(transport.requests.count == 2)
        session.set(\.self, to: nil)
    }
}
