// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

/// Issues the tokens `1`, `2`, `3`, …, and counts them.
private actor Issuer {
    private(set) var refreshes: [String?] = []
    private var failure: (any Error)?
    private let gate: Gate?

    init(gate: Gate? = nil) {
        self.gate = gate
    }

    func fail(_ error: (any Error)?) {
        failure = error
    }

    func refresh(_ old: Authenticator.Token?) async throws -> Authenticator.Token {
        refreshes.append(old?.value)
        let number = refreshes.count
        try await gate?.wait()
        if let failure { throw failure }
        return Authenticator.Token("\(number)")
    }
}

/// A gate that is closed until it is opened.
private final class Gate: Sendable {
    private let isOpen = Lock(false)

    func open() {
        isOpen.set(\.self, to: true)
    }

    func wait() async throws {
        try await eventually { isOpen.withLock(\.self) }
    }
}

@Suite(.timeLimit(.minutes(5))) struct AuthenticatorTests {
    private let issuer = Issuer()

    /// Returns a transport that accepts only certain tokens.
    private static func server(taking tokens: Set<String>) -> MockTransport {
        MockTransport { request in
            let token = request.headers[.authorization]?.dropFirst("Bearer ".count)
            return tokens.contains(String(token ?? "")) ? .text("welcome") : .text("no", status: .unauthorized)
        }
    }

    private func authenticator(
        _ issuer: Issuer, token: Authenticator.Token? = Authenticator.Token("0"), limit: Int = 5,
        now: Date = Date(timeIntervalSince1970: 0),
        clock: any Clock<Duration> = ContinuousClock()
    ) throws -> Authenticator {
        Authenticator(
            for: [try url("http://a.example/")], token: token, refreshLimit: limit, now: { now }, clock: clock
        ) { try await issuer.refresh($0) }
    }

    private func manager(on transport: MockTransport, _ authenticator: Authenticator) -> SessionManager {
        SessionManager(on: transport) { $0.authentication.authenticators = [authenticator] }
    }

    // MARK: Other origins

    /// Sends each request to another host, and adds a field to it.
    private struct Detour: Interceptor {
        var field: String?

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            var request = request
            request.url = try url("http://b.example/")
            if let field { request.headers[.authorization] = field }
            return try await next(request)
        }
    }

    @Test(arguments: ["bearer", "basic", "digest"])
    func `an interceptor cannot send credentials to another origin`(scheme: String) async throws {
        let transport = MockTransport(.text("x"))
        let base = try url("http://a.example/")
        let authenticator = try authenticator(issuer)
        let manager = SessionManager(on: transport) {
            $0.attemptInterceptors = [Detour()]
            switch scheme {
            case "bearer": $0.authentication.authenticators = [authenticator]
            case "basic":
                $0.authentication.credentials[base] = Credential(user: "ada", password: "p", schemes: [.basic])
            default: $0.authentication.credentials[base] = Credential(user: "ada", password: "p", schemes: [.digest])
            }
        }
        _ = try await manager.get("x")
        let sent = try transport.onlyRequest.request
        #expect(sent.url.host() == "b.example")
        #expect(sent.headers[.authorization] == nil)
        #expect(sent.transportAuthentication?.server == nil)
    }

    @Test(arguments: ["bearer", "basic", "digest"])
    func `a validation in the background sends no credential to another origin`(scheme: String) async throws {
        let transport = MockTransport { _ in
            .data(Data("x".utf8), headers: [.cacheControl: "max-age=60, stale-while-revalidate=60"])
        }
        let clock = ManualClock()
        let base = try url("http://a.example/")
        let authenticator = try authenticator(issuer)
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.cache = .memory()
            $0.cachePartition = "ada"
            $0.attemptInterceptors = [Detour()]
            switch scheme {
            case "bearer": $0.authentication.authenticators = [authenticator]
            case "basic":
                $0.authentication.credentials[base] = Credential(user: "ada", password: "p", schemes: [.basic])
            default: $0.authentication.credentials[base] = Credential(user: "ada", password: "p", schemes: [.digest])
            }
        }
        _ = try await manager.get("x")
        clock.advance(by: .seconds(100))
        _ = try await manager.get("x")
        try await transport.requests(count: 2)
        for sent in transport.requests.map(\.request) {
            #expect(sent.url.host() == "b.example")
            #expect(sent.headers[.authorization] == nil)
            #expect(sent.transportAuthentication?.server == nil)
        }
    }

    @Test(arguments: [true, false])
    func `a server to which an interceptor has sent a request refuses neither token nor credential`(hasToken: Bool)
        async throws
    {
        let transport = MockTransport { _ in
            .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=x"])
        }
        let base = try url("http://a.example/")
        let authenticator = try authenticator(issuer)
        let manager = SessionManager(on: transport) {
            $0.attemptInterceptors = [Detour()]
            if hasToken {
                $0.authentication.authenticators = [authenticator]
            } else {
                $0.authentication.credentials[base] = Credential(user: "ada", password: "p")
            }
        }
        #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 401)
        #expect(await issuer.refreshes.isEmpty)
        #expect(transport.authorizations == [nil])
    }

    @Test func `an interceptor may set a credential for another origin itself`() async throws {
        let transport = MockTransport(.text("x"))
        let authenticator = try authenticator(issuer)
        let manager = SessionManager(on: transport) {
            $0.authentication.authenticators = [authenticator]
            $0.attemptInterceptors = [Detour(field: "Bearer b")]
        }
        _ = try await manager.get("x")
        #expect(transport.authorizations == ["Bearer b"])
    }

    /// Sends each request a second time if the first response is a failure.
    private struct Again: Interceptor {
        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            let response = try await next(request)
            return response.head.status.code < 400 ? response : try await next(request)
        }
    }

    @Test(arguments: [true, false])
    func `a field of the program is sent again by an interceptor, after a redirect to another origin`(
        isOfCall: Bool
    ) async throws {
        let transport = MockTransport { request in
            request.url.host() == "a.example"
                ? .redirect(.found, to: "http://b.example/") : .status(.serviceUnavailable)
        }
        let authenticator = try authenticator(issuer)
        let manager = SessionManager(on: transport) {
            $0.authentication.authenticators = [authenticator]
            if isOfCall { $0.interceptors = [Again()] } else { $0.attemptInterceptors = [Again()] }
        }
        let request = try manager.request(.get, "x", headers: [.authorization: "Own"])
        #expect(try await manager.data(for: request).statusCode == 503)
        #expect(transport.authorizations == (isOfCall ? ["Own", nil, "Own", nil] : ["Own", nil, nil]))
    }

    // MARK: Waits

    @Test func `a token that is removed when its refresh ends is refreshed before the requests are sent`() async throws
    {
        let transport = MockTransport { request in
            request.headers[.authorization] == nil ? .text("none", status: .badRequest) : .text("welcome")
        }
        for _ in 0..<20 {
            let authenticator = try authenticator(Issuer(), token: nil, limit: 100)
            let manager = manager(on: transport, authenticator)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<20 { group.addTask { _ = try await manager.get("x") } }
                group.addTask {
                    while await authenticator.token == nil { await Task.yield() }
                    await authenticator.setToken(nil)
                }
                try await group.waitForAll()
            }
        }
        #expect(!transport.authorizations.contains(nil))
    }

    @Test func `two authenticators whose refreshes need each other fail`() async throws {
        let (a, b) = (try url("http://a.example/"), try url("http://b.example/"))
        let session = Lock<SessionManager?>(nil)
        @Sendable func token(_ path: String) async throws -> Authenticator.Token {
            guard let manager = session.withLock(\.self) else { throw Planned() }
            return Authenticator.Token(try await manager.get(path).text)
        }
        let (atOne, atTwo) = (Gate(), Gate())
        let one = Authenticator(for: [a]) { _ in
            atOne.open()
            try await atTwo.wait()
            return try await token("http://b.example/token")
        }
        let two = Authenticator(for: [b]) { _ in
            atTwo.open()
            try await atOne.wait()
            return try await token("http://a.example/token")
        }
        let manager = SessionManager(on: MockTransport(.text("t"))) { $0.authentication.authenticators = [one, two] }
        session.withLock { $0 = manager }
        defer { session.withLock { $0 = nil } }
        async let first = manager.get("http://a.example/x")
        async let second = manager.get("http://b.example/x")
        var failures: [String] = []
        do { _ = try await first } catch { failures.append("\(error)") }
        do { _ = try await second } catch { failures.append("\(error)") }
        #expect(failures.contains { $0.contains("need a token of each other") })
    }

    @Test func `a wait for a token obeys the time limit of the call`() async throws {
        let clock = ManualClock()
        let gate = Gate()
        let authenticator = try authenticator(Issuer(gate: gate), token: nil)
        let manager = SessionManager(on: MockTransport(.text("x"))) {
            $0.clock = clock
            $0.authentication.authenticators = [authenticator]
        }
        let task = Task { try await manager.get("x", timeout: .seconds(2)) }
        #expect(try await clock.passWaits(1) == [.seconds(2)])
        let error = try await sessionError { _ = try await task.value }
        #expect(error.isTimeout)
        gate.open()
    }

    @Test func `the refresh of a running request is sent while the session drains`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { request in
            if request.url.path != "/v1/x" { return .text("1") }
            return request.headers[.authorization] == "Bearer 1"
                ? .text("welcome") : MockResponse([.wait(gate), .head(.unauthorized)])
        }
        let session = Lock<SessionManager?>(nil)
        let authenticator = Authenticator(for: [try url("http://a.example/")], token: Authenticator.Token("0")) { _ in
            Authenticator.Token(try await #require(session.withLock(\.self)).get("token").text)
        }
        let manager = manager(on: transport, authenticator)
        session.withLock { $0 = manager }
        defer { session.withLock { $0 = nil } }
        async let response = manager.get("x")
        try await transport.requests(count: 1)
        async let drained: Void = manager.shutdown(draining: .seconds(60))
        while await (try? manager.get("y")) != nil { await Task.yield() }
        gate.open()
        #expect(try await response.text == "welcome")
        await drained
    }

    @Test func `a token is sent with each request`() async throws {
        let transport = Self.server(taking: ["0"])
        let manager = manager(on: transport, try authenticator(issuer))
        #expect(try await manager.get("x").text == "welcome")
        #expect(try await manager.get("y").text == "welcome")
        #expect(transport.authorizations == ["Bearer 0", "Bearer 0"])
        #expect(await issuer.refreshes.isEmpty)
    }

    @Test func `a refused token is refreshed, and the request sent again`() async throws {
        let transport = Self.server(taking: ["1"])
        let manager = manager(on: transport, try authenticator(issuer))
        #expect(try await manager.post("x", parameters: ["a": 1]).text == "welcome")
        #expect(transport.authorizations == ["Bearer 0", "Bearer 1"])
        #expect(transport.requests.map(\.body) == [Data("a=1".utf8), Data("a=1".utf8)])
        #expect(await issuer.refreshes == ["0"])
    }

    @Test func `without a token, one is obtained first`() async throws {
        let transport = Self.server(taking: ["1"])
        let manager = manager(on: transport, try authenticator(issuer, token: nil))
        #expect(try await manager.get("x").text == "welcome")
        #expect(transport.authorizations == ["Bearer 1"])
        #expect(await issuer.refreshes == [nil])
    }

    @Test(arguments: [(400, 369, false), (400, 371, true), (60, 53, false), (60, 55, true), (60, 61, true)])
    func `a token that is about to expire is refreshed first`(life: Int, age: Int, isRefreshed: Bool) async throws {
        let transport = Self.server(taking: ["0", "1"])
        let now = Lock(Date(timeIntervalSince1970: 0))
        let token = Authenticator.Token("0", expires: Date(timeIntervalSince1970: Double(life)))
        let authenticator = Authenticator(
            for: [try url("http://a.example/")], token: token, now: { now.withLock { $0 } }, clock: ContinuousClock()
        ) { [issuer] in try await issuer.refresh($0) }
        let manager = manager(on: transport, authenticator)
        now.withLock { $0 += Double(age) }
        #expect(try await manager.get("x").text == "welcome")
        #expect(transport.authorizations == [isRefreshed ? "Bearer 1" : "Bearer 0"])
    }

    @Test func `a token that arrives expired, as by a clock that is ahead, is refreshed once for each exchange`()
        async throws
    {
        let count = Lock(0)
        let now = Date(timeIntervalSince1970: 1_000)
        let authenticator = Authenticator(
            for: [try url("http://a.example/")], now: { now }, clock: ContinuousClock()
        ) { _ in
            let number = count.withLock {
                $0 += 1; return $0
            }
            return Authenticator.Token("\(number)", expires: now.addingTimeInterval(-60))
        }
        let transport = Self.server(taking: ["1", "2"])
        let manager = manager(on: transport, authenticator)
        for _ in 0..<2 { #expect(try await manager.get("x").text == "welcome") }
        #expect(transport.authorizations == ["Bearer 1", "Bearer 2"])
    }

    @Test func `tokens that live for a few seconds are used until the last tenth of their life`() async throws {
        let transport = Self.server(taking: ["0", "1"])
        let token = Authenticator.Token("0", expires: Date(timeIntervalSince1970: 5))
        let manager = manager(on: transport, try authenticator(issuer, token: token))
        for _ in 0..<10 { #expect(try await manager.get("x").text == "welcome") }
        #expect(await issuer.refreshes.isEmpty)
    }

    @Test func `the refresh token is passed to the closure and never printed`() async throws {
        let token = Authenticator.Token("0", expires: Date(timeIntervalSince1970: -1), refreshToken: "r3fresh")
        let transport = Self.server(taking: ["r3fresh"])
        let authenticator = Authenticator(
            for: [try url("http://a.example/")], token: token,
            refresh: { old in Authenticator.Token(try #require(old?.refreshToken)) })
        #expect(try await manager(on: transport, authenticator).get("x").text == "welcome")
        #expect(!"\(token) \(String(reflecting: token))".contains("r3fresh"))
    }

    /// An authenticator whose token, which lives for 400 s, has been set some seconds before.
    private func authenticator(_ issuer: Issuer, ofAge age: Double) throws -> Authenticator {
        let time = Lock(Date(timeIntervalSince1970: 0))
        defer { time.withLock { $0 += age } }
        return Authenticator(
            for: [try url("http://a.example/")],
            token: Authenticator.Token("0", expires: Date(timeIntervalSince1970: 400)), now: { time.withLock { $0 } },
            clock: ContinuousClock()
        ) { try await issuer.refresh($0) }
    }

    @Test(arguments: [true, false], [Planned(), CancellationError()] as [any Error & Sendable])
    func `while a token is valid, a failed refresh does not fail the request`(
        isValid: Bool, failure: any Error & Sendable
    ) async throws {
        await issuer.fail(failure)
        let transport = Self.server(taking: ["0"])
        let manager = manager(on: transport, try authenticator(issuer, ofAge: isValid ? 390 : 400))
        if isValid {
            #expect(try await manager.get("x").text == "welcome")
        } else {
            let error = await #expect(throws: (any Error).self) { _ = try await manager.get("x") }
            #expect(error.map { type(of: $0) == type(of: failure) } == true)
            #expect(transport.requests.isEmpty)
        }
        #expect(await issuer.refreshes == ["0"])
    }

    @Test func `a request that is cancelled while its token is refreshed is not sent, although the token is valid`()
        async throws
    {
        let issuer = Issuer(gate: Gate())
        let transport = Self.server(taking: ["0"])
        let manager = manager(on: transport, try authenticator(issuer, ofAge: 390))
        let request = Task { try await manager.get("x") }
        try await eventually { await issuer.refreshes.count == 1 }
        request.cancel()
        await #expect(throws: CancellationError.self) { try await request.value }
        #expect(transport.requests.isEmpty)
    }

    // MARK: Stored responses

    /// A server whose responses are stored, which is reached with a token that has been set 390 s before, and that cannot be
    /// refreshed.
    private func storing(
        _ fields: HTTPFields, tokenLife: Double?, time: Lock<Date> = Lock(Date(timeIntervalSince1970: 0)),
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) async throws -> (origin: Origin, manager: SessionManager) {
        let origin = Origin()
        origin.fields = fields
        let authenticator = Authenticator(
            for: [try url("http://a.example/")], token: Authenticator.Token("0"), now: { time.withLock { $0 } },
            clock: ContinuousClock()
        ) { [issuer] in try await issuer.refresh($0) }
        await issuer.fail(SessionError.transport(TransportError(.cannotConnect(.refused))))
        let manager = origin.manager {
            $0.authentication.authenticators = [authenticator]
            $0.cachePartition = "ada"
            configure(&$0)
        }
        #expect(try await origin.get(from: manager) == "1 200 network")
        let date = Date(timeIntervalSince1970: tokenLife ?? 0)
        await authenticator.setToken(tokenLife.map { _ in Authenticator.Token("0", expires: date) })
        time.withLock { $0 += 390 }
        return (origin, manager)
    }

    @Test(arguments: [true, false])
    func `a 304 for nothing stored is followed by one request with the same token`(isRefreshed: Bool) async throws {
        let (origin, manager) = try await storing([.cacheControl: "no-cache", .eTag: #""a""#], tokenLife: 400)
        if isRefreshed { await issuer.fail(nil) }
        let sent = isRefreshed ? "Bearer 1" : "Bearer 0"
        origin.respond { request, number in
            guard number < 10 else { return .status(.internalServerError) }
            return request.headers.contains(.ifNoneMatch)
                ? .status(.notModified, headers: [.eTag: #""b""#]) : .text("whole")
        }
        #expect(try await origin.get(from: manager) == "whole 200 network")
        #expect(origin.requests.map { $0.headers[.ifNoneMatch] } == [nil, #""a""#, nil])
        #expect(origin.requests.map { $0.headers[.authorization] } == ["Bearer 0", sent, sent])
    }

    @Test(arguments: [nil, Planned(), CancellationError()] as [(any Error & Sendable)?])
    func `a stored response replaces one that needs a token, however the refresh fails`(
        failure: (any Error & Sendable)?
    ) async throws {
        let fields: HTTPFields = [.cacheControl: "max-age=10, stale-if-error=60", .eTag: #""a""#]
        let (origin, manager) = try await storing(fields, tokenLife: -1)
        if let failure { await issuer.fail(failure) }
        origin.advance(30)
        // After the fifth one, there are too many refreshes.
        for _ in 0..<7 { #expect(try await origin.get(from: manager) == "1 200 stale") }
        #expect(origin.requests.count == 1)
    }

    /// Stores a response, and returns when it is stale; the token expires while a further request waits in an interceptor
    /// around its exchange, and cannot be refreshed.
    private func storingUntilTokenExpires(
        _ interceptor: @escaping Intercepting.Body
    ) async throws -> (origin: Origin, manager: SessionManager) {
        let fields: HTTPFields = [.cacheControl: "max-age=10, stale-if-error=60", .eTag: #""a""#]
        let (time, wait) = (Lock(Date(timeIntervalSince1970: 0)), Lock(0.0))
        let (origin, manager) = try await storing(fields, tokenLife: 4_000, time: time) {
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    time.withLock { $0 += wait.withLock(\.self) }
                    return try await interceptor(request, next)
                }
            ]
        }
        await issuer.fail(Planned())
        wait.set(\.self, to: 5_000)
        origin.advance(30)
        return (origin, manager)
    }

    @Test func `a stored response replaces one whose token expires while the request waits`() async throws {
        let (origin, manager) = try await storingUntilTokenExpires { request, next in try await next(request) }
        #expect(try await origin.get(from: manager) == "1 200 stale")
        #expect(origin.requests.count == 1)
    }

    @Test func `a stored response does not replace one that is refused after a refresh has failed`() async throws {
        let (origin, manager) = try await storingUntilTokenExpires { request, next in
            do {
                return try await next(request)
            } catch is Planned {
                var anonymous = request
                anonymous.headers[.authorization] = nil
                return try await next(anonymous)
            }
        }
        let refusal = TransportError(.tls(.selfSigned))
        origin.respond { _, _ in MockResponse([.fail(refusal)]) }
        let error = try await sessionError { _ = try await origin.get(from: manager) }
        #expect(error.label == SessionError.label(of: refusal))
    }

    @Test func `a response that varies by the token is used with a refreshed one`() async throws {
        let (origin, manager) = try await storing(
            [.cacheControl: "max-age=60", .vary: "Authorization"], tokenLife: 400)
        await issuer.fail(nil)
        #expect(try await origin.get("y", from: manager) == "2 200 network")
        #expect(origin.requests.last?.headers[.authorization] == "Bearer 1")
        #expect(try await origin.get(from: manager) == "1 200 cache")
    }

    @Test func `requests that have waited for a transfer are sent together, while a refresh is due but fails`()
        async throws
    {
        let (origin, manager) = try await storing([:], tokenLife: 400) { $0.coalescesRequests = true }
        let (first, others) = (try ScriptGate(), try ScriptGate())
        origin.respond { _, number in
            var response = MockResponse.text("x")
            response.steps.insert(.wait(number == 2 ? first : others), at: 0)
            return response
        }
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<5 { group.addTask { try await manager.get("y").text } }
            try await origin.transport.requests(count: 2)
            first.open()
            // None waits for the response to another one.
            try await origin.transport.requests(count: 6)
            others.open()
            for try await text in group { #expect(text == "x") }
        }
    }

    /// The life of a token that was set 390 s before, and what a request with a policy or a field has for a response that
    /// was stored 30 s before.
    @Test(arguments: [
        ("max-age=60", -1.0, CachePolicy?.none, "", "1 200 cache"), ("max-age=60", nil, nil, "", "refresh"),
        ("max-age=60", 400, nil, "", "1 200 cache"), ("max-age=60", -1, .reload, "", "refresh"),
        ("max-age=10", -1, nil, "", "refresh"), ("max-age=10", -1, .returnCacheElseLoad, "", "1 200 stale"),
        ("max-age=10", -1, .returnCacheDontLoad, "", "1 200 stale"),
        ("max-age=10", nil, .returnCacheDontLoad, "", "1 200 stale"),
        ("max-age=60", -1, nil, "only-if-cached", "1 200 cache"),
        ("max-age=10", -1, nil, "only-if-cached", " 504 cache"),
        ("max-age=60", nil, nil, "only-if-cached", "1 200 cache"),
        ("max-age=10, stale-if-error=60", -1, nil, "", "1 200 stale"),
        ("max-age=10, stale-while-revalidate=60", -1, nil, "", "1 200 stale"),
    ])
    func `a token is refreshed only for a request that is sent`(
        stored: String, life: Double?, policy: CachePolicy?, field: String, result: String
    ) async throws {
        let (origin, manager) = try await storing([.cacheControl: stored, .eTag: #""a""#], tokenLife: life)
        origin.advance(30)
        var request = try manager.request(.get, "x")
        request.cachePolicy = policy
        if !field.isEmpty { request.headers[.cacheControl] = field }
        do {
            let response = try await manager.data(for: request)
            #expect("\(response.text) \(response.statusCode) \(response.metrics.source)" == result)
        } catch let error as SessionError {
            #expect(result == "refresh")
            #expect(error.reason == .cannotConnect(.refused))
        }
        #expect(origin.requests.count == 1)
    }

    @Test func `a token is refreshed before the interceptors around an exchange`() async throws {
        let seen = EventList<String?>()
        let (origin, manager) = try await storing([.cacheControl: "no-cache"], tokenLife: 400) {
            $0.attemptInterceptors = [
                Noting { await seen.append($0.headers[.authorization]) }
            ]
        }
        await issuer.fail(nil)
        #expect(try await origin.get(from: manager) == "2 200 network")
        #expect(await seen.values == ["Bearer 0", "Bearer 1"])
        #expect(origin.requests.map { $0.headers[.authorization] } == ["Bearer 0", "Bearer 1"])
    }

    /// Passes each request to a closure.
    private struct Noting: Interceptor {
        let note: @Sendable (Request) async -> Void

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            await note(request)
            return try await next(request)
        }
    }

    @Test func `one refresh serves all waiting requests`() async throws {
        let gate = Gate()
        let issuer = Issuer(gate: gate)
        let transport = Self.server(taking: ["1"])
        let manager = manager(on: transport, try authenticator(issuer))
        try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<200 { group.addTask { try await manager.get("\(number)").text } }
            try await transport.requests(count: 200)
            gate.open()
            for try await text in group { #expect(text == "welcome") }
        }
        #expect(await issuer.refreshes == ["0"])
        #expect(transport.authorizations.count { $0 == "Bearer 0" } == 200)
        #expect(transport.authorizations.count { $0 == "Bearer 1" } == 200)
    }

    @Test func `a refusal of an older token does not cause a refresh`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { request in
            if request.url.path == "/v1/slow", request.headers[.authorization] == "Bearer 0" {
                return MockResponse([.wait(gate), .head(.unauthorized)])
            }
            return request.headers[.authorization] == "Bearer 1" ? .text("welcome") : .status(.unauthorized)
        }
        let manager = manager(on: transport, try authenticator(issuer))
        async let slow = manager.get("slow").text
        try await transport.requests(count: 1)
        #expect(try await manager.get("quick").text == "welcome")
        gate.open()
        #expect(try await slow == "welcome")
        #expect(await issuer.refreshes == ["0"])
    }

    /// Sends a request, waits, sends it again, and returns the first response.
    private struct Twice: Interceptor {
        let meanwhile: @Sendable () async throws -> Void

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            let first = try await next(request)
            try await meanwhile()
            let second = try await next(request)
            return first.head.status == .unauthorized
                ? OpenResponse(head: first.head, body: ResponseBody(Data())) : second
        }
    }

    @Test func `a token that was sent later than the refused one is not refreshed`() async throws {
        let authenticator = try authenticator(issuer)
        let transport = Self.server(taking: ["1"])
        let other = SessionManager(on: transport) { $0.authentication.authenticators = [authenticator] }
        let manager = SessionManager(on: transport) {
            $0.authentication.authenticators = [authenticator]
            $0.attemptInterceptors = [Twice { _ = try await other.get("other") }]
        }
        #expect(try await manager.get("x").text == "welcome")
        #expect(await issuer.refreshes == ["0"])
    }

    @Test func `a failed refresh fails all waiting requests once, and the next request starts a new one`() async throws
    {
        let gate = Gate()
        let issuer = Issuer(gate: gate)
        await issuer.fail(Planned(number: 3))
        let authenticator = try authenticator(issuer)
        let manager = manager(on: Self.server(taking: ["2"]), authenticator)
        try await withThrowingTaskGroup { group in
            for number in 0..<20 {
                group.addTask {
                    await #expect(throws: Planned(number: 3)) { _ = try await manager.get("\(number)") }
                }
            }
            try await eventually { await authenticator.waitingCount == 20 }
            gate.open()
            try await group.waitForAll()
        }
        #expect(await issuer.refreshes == ["0"])
        await issuer.fail(nil)
        #expect(try await manager.get("x").text == "welcome")
        #expect(await issuer.refreshes == ["0", "0"])
    }

    @Test func `a refusal by a host that has become known to require TLS meanwhile refreshes the token`() async throws {
        let transport = MockTransport { request in
            if request.url.path() == "/known" {
                return .status(.ok, headers: [.strictTransportSecurity: "max-age=100"])
            }
            return request.headers[.authorization] == "Bearer 1" ? .text("welcome") : .status(.unauthorized)
        }
        let issuer = issuer
        let authenticator = Authenticator(
            for: [try url("http://a.example/"), try url("https://a.example/")], token: Authenticator.Token("0")
        ) { try await issuer.refresh($0) }
        let manager = SessionManager(on: transport) {
            $0.authentication.authenticators = [authenticator]
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    _ = try await next(Request(url: url("https://a.example/known")))
                    return try await next(request)
                }
            ]
        }
        #expect(try await manager.get("http://a.example/x").text == "welcome")
    }

    @Test func `if the new token is refused as well, the 401 is returned`() async throws {
        let transport = Self.server(taking: [])
        let manager = manager(on: transport, try authenticator(issuer))
        let response = try await manager.data(for: manager.request(.get, "x"))
        #expect(response.statusCode == 401)
        #expect(response.text == "no")
        #expect(transport.authorizations == ["Bearer 0", "Bearer 1"])
    }

    @Test func `excessive refreshes are stopped, and are possible again later`() async throws {
        let transport = Self.server(taking: [])
        let clock = ManualClock()
        let manager = manager(on: transport, try authenticator(issuer, limit: 3, clock: clock))
        for _ in 0..<3 { #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 401) }
        let error = try await sessionError { _ = try await manager.get("x") }
        guard case .authentication(.excessiveRefreshes(limit: 3)) = error else { throw error }
        #expect(await issuer.refreshes.count == 3)
        clock.advance(by: .seconds(31))
        #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 401)
        #expect(await issuer.refreshes.count == 4)
    }

    @Test func `the refresh can use the same session, and does not wait for itself`() async throws {
        let transport = MockTransport { request in
            if request.url.path == "/v1/token" { return .text("new") }
            return request.headers[.authorization] == "Bearer new" ? .text("welcome") : .status(.unauthorized)
        }
        let session = EventList<SessionManager>()
        let authenticator = Authenticator(for: [try url("http://a.example/")], token: Authenticator.Token("0")) { _ in
            let manager = try #require(await session.values.first)
            let response = try await manager.get("token")
            return Authenticator.Token(response.text)
        }
        let manager = manager(on: transport, authenticator)
        await session.append(manager)
        #expect(try await manager.get("x").text == "welcome")
        #expect(transport.authorizations == ["Bearer 0", nil, "Bearer new"])
    }

    @Test func `a task within a refresh runs although a task that waits for it has the only place`() async throws {
        let transport = MockTransport { request in
            if request.url.path == "/v1/token" { return .text("new") }
            return request.headers[.authorization] == "Bearer new" ? .text("welcome") : .status(.unauthorized)
        }
        let session = EventList<SessionManager>()
        let authenticator = Authenticator(for: [try url("http://a.example/")], token: Authenticator.Token("0")) { _ in
            let manager = try #require(await session.values.first)
            return Authenticator.Token(try await manager.upload(manager.request(.get, "token")).value.text)
        }
        let manager = SessionManager(on: transport) {
            $0.authentication.authenticators = [authenticator]
            $0.maximumConcurrentTasks = 1
        }
        await session.append(manager)
        #expect(try await manager.upload(manager.request(.get, "x")).value.text == "welcome")
    }

    @Test func `cancelling one request does not cancel the refresh for others`() async throws {
        let gate = Gate()
        let issuer = Issuer(gate: gate)
        let authenticator = try authenticator(issuer)
        let manager = manager(on: Self.server(taking: ["1"]), authenticator)
        let first = Task { try await manager.get("x").text }
        let second = Task { try await manager.get("y").text }
        try await eventually { await authenticator.waitingCount == 2 }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        gate.open()
        #expect(try await second.value == "welcome")
        #expect(await issuer.refreshes.count == 1)
    }

    @Test func `cancelling all requests cancels the refresh, which is not counted, and the next one starts another`()
        async throws
    {
        let gate = Gate()
        let issuer = Issuer(gate: gate)
        let manager = manager(on: Self.server(taking: ["2"]), try authenticator(issuer, limit: 1))
        let first = Task { try await manager.get("x").text }
        try await eventually { await issuer.refreshes.count == 1 }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        gate.open()
        #expect(try await manager.get("x").text == "welcome")
    }

    @Test func `a refresh that is cancelled because the program has set the token is not counted`() async throws {
        let issuer = Issuer(gate: Gate())
        let authenticator = try authenticator(issuer, limit: 1)
        let manager = manager(on: Self.server(taking: ["own"]), authenticator)
        let first = Task { try await manager.get("x").text }
        try await eventually { await issuer.refreshes.count == 1 }
        await authenticator.setToken(Authenticator.Token("own"))
        #expect(try await first.value == "welcome")
        await authenticator.setToken(nil)
        let second = Task { try await manager.get("x").text }
        try await eventually { await issuer.refreshes.count == 2 }
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
    }

    @Test func `a session that is invalidated ends the wait`() async throws {
        let issuer = Issuer(gate: Gate())
        let transport = Self.server(taking: [])
        let manager = manager(on: transport, try authenticator(issuer))
        let request = Task { try await manager.get("x").text }
        try await eventually { await issuer.refreshes.count == 1 }
        await manager.invalidate(cancellingTasks: true)
        await #expect(throws: CancellationError.self) { try await request.value }
    }

    @Test func `a token set by the program is used, also during a refresh`() async throws {
        let gate = Gate()
        let issuer = Issuer(gate: gate)
        let transport = Self.server(taking: ["own"])
        let authenticator = try authenticator(issuer)
        let manager = manager(on: transport, authenticator)
        let request = Task { try await manager.get("x").text }
        try await eventually { await issuer.refreshes.count == 1 }
        await authenticator.setToken(Authenticator.Token("own"))
        gate.open()
        #expect(try await request.value == "welcome")
        #expect(await authenticator.token == Authenticator.Token("own"))
        #expect(transport.authorizations == ["Bearer 0", "Bearer own"])
    }

    @Test func `a token that is set ends the wait for a refresh that hangs`() async throws {
        let gate = try ScriptGate()
        let issuer = Issuer()
        let authenticator = Authenticator(for: [try url("http://a.example/")]) { old in
            // Does not notice that it is cancelled.
            try await Task { try await gate.wait() }.value
            return try await issuer.refresh(old)
        }
        let transport = Self.server(taking: ["own"])
        let manager = manager(on: transport, authenticator)
        let request = Task { try await manager.get("x").text }
        try await eventually { await authenticator.waitingCount == 1 }
        await authenticator.setToken(Authenticator.Token("own"))
        #expect(try await request.value == "welcome")
        gate.open()
        try await eventually { await issuer.refreshes.count == 1 }
        #expect(try await manager.get("x").text == "welcome")
        #expect(transport.authorizations == ["Bearer own", "Bearer own"])
    }

    @Test func `a refresh that sets the token itself is not cancelled`() async throws {
        let own = Lock<Authenticator?>(nil)
        let isComplete = Lock(false)
        let authenticator = Authenticator(for: [try url("http://a.example/")]) { _ in
            await own.withLock { $0 }?.setToken(Authenticator.Token("own"))
            try Task.checkCancellation()
            isComplete.set(\.self, to: true)
            return Authenticator.Token("other")
        }
        own.set(\.self, to: authenticator)
        defer { own.set(\.self, to: nil) }
        let transport = Self.server(taking: ["own"])
        #expect(try await manager(on: transport, authenticator).get("x").text == "welcome")
        try await eventually { isComplete.withLock(\.self) }
        #expect(await authenticator.token == Authenticator.Token("own"))
    }

    @Test func `a task that a refresh has created is an ordinary one after its end`() async throws {
        let session = Lock<SessionManager?>(nil)
        let leftover = Lock<Task<String, any Error>?>(nil)
        let gate = try ScriptGate()
        let authenticator = Authenticator(for: [try url("http://a.example/")]) { _ in
            leftover.set(
                \.self,
                to: Task {
                    try await gate.wait()
                    return try await session.withLock(\.self)?.get("y").text ?? ""
                })
            return Authenticator.Token("1")
        }
        let transport = Self.server(taking: ["1"])
        let manager = manager(on: transport, authenticator)
        session.set(\.self, to: manager)
        defer { session.set(\.self, to: nil) }
        _ = try await manager.get("x")
        gate.open()
        let late = leftover.withLock { $0 }
        #expect(try await late?.value == "welcome")
        #expect(transport.authorizations == ["Bearer 1", "Bearer 1"])
    }

    @Test func `a request that waits when the token is removed is sent with a new one`() async throws {
        let gate = Gate()
        let issuer = Issuer(gate: gate)
        let transport = Self.server(taking: ["2"])
        let authenticator = try authenticator(issuer)
        let manager = manager(on: transport, authenticator)
        let request = Task { try await manager.get("x").text }
        try await eventually { await issuer.refreshes.count == 1 }
        await authenticator.setToken(nil)
        gate.open()
        #expect(try await request.value == "welcome")
        #expect(await issuer.refreshes == ["0", nil])
        #expect(transport.authorizations == ["Bearer 0", "Bearer 2"])
    }

    @Test(arguments: ["0", "0\n", " 0"])
    func `a token that is replaced before its request is sent is not sent`(value: String) async throws {
        let transport = MockTransport(.text("welcome"))
        let authenticator = Authenticator(
            for: [try url("http://a.example/")], token: Authenticator.Token(value)
        ) { _ in throw Planned() }
        let manager = SessionManager(on: transport) {
            $0.authentication.authenticators = [authenticator]
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    await authenticator.setToken(Authenticator.Token("1"))
                    return try await next(request)
                }
            ]
        }
        #expect(try await manager.get("x").text == "welcome")
        #expect(transport.authorizations == ["Bearer 1"])
    }

    @Test func `a call that is cancelled while its token is replaced ends, whatever its error`() async throws {
        let (transport, passes) = (MockTransport(.text("welcome")), Lock(0))
        let authenticator = Authenticator(for: [try url("http://a.example/")], token: Authenticator.Token("0")) { _ in
            throw Planned()
        }
        let manager = SessionManager(on: transport) {
            $0.authentication.authenticators = [authenticator]
            $0.attemptInterceptors = [
                Intercepting.replacingErrors(by: Planned()),
                Intercepting { request, next in
                    let isFirst = passes.withLock { passes in
                        passes += 1
                        return passes == 1
                    }
                    if isFirst {
                        await authenticator.setToken(Authenticator.Token("1"))
                        cancelCurrentTask()
                    }
                    return try await next(request)
                },
            ]
        }
        let task = Task { try await manager.get("x") }
        await #expect(throws: Planned.self) { try await task.value }
        #expect(passes.withLock(\.self) == 1)
        #expect(transport.requests.isEmpty)
    }

    @Test func `a refused request whose token was removed meanwhile is sent with a new one`() async throws {
        let authenticator = try authenticator(issuer)
        let transport = MockTransport { request in
            if request.headers[.authorization] == "Bearer 1" { return .text("welcome") }
            await authenticator.setToken(nil)
            return .text("no", status: .unauthorized)
        }
        #expect(try await manager(on: transport, authenticator).get("x").text == "welcome")
        #expect(transport.authorizations == ["Bearer 0", "Bearer 1"])
    }

    @Test func `a request that waits when the token is removed fails after too many refreshes`() async throws {
        let gate = Gate()
        let issuer = Issuer(gate: gate)
        let authenticator = try authenticator(issuer, limit: 1)
        let manager = manager(on: Self.server(taking: []), authenticator)
        let request = Task { try await manager.get("x").text }
        try await eventually { await issuer.refreshes.count == 1 }
        await authenticator.setToken(nil)
        gate.open()
        let error = try await sessionError { _ = try await request.value }
        guard case .authentication(.excessiveRefreshes(limit: 1)) = error else { throw error }
        #expect(await issuer.refreshes.count == 1)
    }

    @Test(arguments: ["https://a.example/", "http://b.example/", "http://a.example:81/"])
    func `the token is not sent to another origin`(other: String) async throws {
        let transport = MockTransport { request in
            request.url.path == "/v1/away" ? .redirect(.found, to: other) : .text("no", status: .unauthorized)
        }
        let manager = manager(on: transport, try authenticator(issuer))
        #expect(try await manager.data(for: manager.request(.get, "away")).statusCode == 401)
        #expect(try await manager.data(for: Request(url: url(other))).statusCode == 401)
        #expect(transport.authorizations == ["Bearer 0", nil, nil])
        #expect(await issuer.refreshes.isEmpty)
    }

    @Test func `an explicit Authorization field is sent unchanged`() async throws {
        let transport = Self.server(taking: [])
        let manager = manager(on: transport, try authenticator(issuer))
        let request = try manager.request(.get, "x", headers: [.authorization: "Own"])
        #expect(try await manager.data(for: request).statusCode == 401)
        #expect(transport.authorizations == ["Own"])
    }

    @Test func `a request whose body is not replayable fails if it would have to be sent again`() async throws {
        let manager = manager(on: Self.server(taking: ["1"]), try authenticator(issuer))
        let body = RequestBody.stream(AsyncStreamOf([Data("abc".utf8)]))
        let error = try await sessionError { _ = try await manager.data(for: manager.request(.post, "x", body: body)) }
        guard case .authentication(.bodyNotReplayable) = error else { throw error }
        // The next request has a new token.
        #expect(await issuer.refreshes.count == 1)
        #expect(try await manager.get("x").text == "welcome")
    }

    @Test func `a monitor receives events for refreshes`() async throws {
        let log = EventLines()
        let authenticator = try authenticator(issuer)
        let manager = SessionManager(on: Self.server(taking: ["1"])) {
            $0.authentication.authenticators = [authenticator]
            $0.eventMonitors = [log]
        }
        _ = try await manager.get("x")
        let lines = await log.close()
        #expect(lines.count { $0 == "waits for a new token" } == 1)
    }

    @Test func `descriptions do not contain the token`() throws {
        let token = Authenticator.Token("s3cret", expires: Date(timeIntervalSince1970: 0))
        #expect("\(token)" == "Authenticator.Token(…, until 1970-01-01T00:00:00Z)")
        let authenticator = try authenticator(issuer, token: token)
        let configuration = SessionConfiguration { $0.authentication.authenticators = [authenticator] }
        for value in [token, [token], Optional(token) as Any, configuration] as [Any] {
            var text = "\(value)" + String(reflecting: value)
            dump(value, to: &text)
            #expect(!text.contains("s3cret"))
        }
    }
}
