// SPDX-License-Identifier: MIT

import ANCache
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@Suite struct SharedCacheTests {
    private let origin = Origin()

    /// Fetches a path, and returns `BODY STATUS SOURCE`.
    private func get(_ path: String = "x", from manager: SessionManager, _ headers: HTTPFields = [:]) async throws
        -> String
    {
        try await origin.get(path, from: manager, headers)
    }

    // MARK: Users

    @Test func `a response to a request with credentials is not used for another user`() async throws {
        let (one, two) = (origin.manager(), origin.manager())
        origin.fields = [.cacheControl: "public, max-age=60"]
        #expect(try await get(from: one, [.authorization: "Bearer a"]) == "1 200 network")
        #expect(try await get(from: two, [.authorization: "Bearer b"]) == "2 200 network")
        #expect(try await get(from: two) == "3 200 network")
        #expect(try await get(from: two, [.authorization: "Bearer a"]) == "1 200 cache")
        #expect(try await get(from: one, [.cookie: "a=b"]) == "4 200 network")
        #expect(try await get(from: two, [.cookie: "a=c"]) == "5 200 network")
    }

    @Test(arguments: ["Cookie", "X-Language"])
    func `values that are no UTF-8 are different ones if their bytes are`(name: String) async throws {
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60", .vary: "X-Language"]
        let name = try #require(HTTPField.Name(name))
        func get(_ byte: UInt8) async throws -> String {
            var fields = HTTPFields()
            fields.append(HTTPField(name: name, lenientValue: [0x61, byte]))
            return try await self.get(from: manager, fields)
        }
        #expect(try await get(0xE8) == "1 200 network")
        #expect(try await get(0xE9) == "2 200 network")
        #expect(try await get(0xE8) == "1 200 cache")
    }

    /// Adds a field with another value to each request, as a trace does.
    private struct Tracing: FieldPreservingInterceptor {
        let count = Lock(0)
        var addsFields: Bool { true }

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            var request = request
            request.headers[try #require(HTTPField.Name("X-Trace"))] = "\(count.withLock { $0 += 1; return $0 })"
            return try await next(request)
        }
    }

    @Test(arguments: [("X-Language", "1 200 cache"), ("X-Trace", "2 200 network")])
    func `an interceptor that adds the fields of a trace adds no credentials`(
        field: String, second: String
    ) async throws {
        let (one, two) = (
            origin.manager { $0.attemptInterceptors = [Tracing()] },
            origin.manager { $0.attemptInterceptors = [Tracing()] }
        )
        origin.fields = [.cacheControl: "max-age=60", .vary: field]
        let fields: HTTPFields = [try #require(HTTPField.Name("X-Language")): "de"]
        #expect(try await get(from: one, fields) == "1 200 network")
        #expect(try await get(from: two, fields) == second)
    }

    @Test func `a response that sets a cookie is not used in another session`() async throws {
        let (one, two) = (origin.manager(), origin.manager())
        origin.fields = [.cacheControl: "public, max-age=60", .setCookie: "a=b"]
        #expect(try await get(from: one) == "1 200 network")
        #expect(try await get(from: one) == "1 200 cache")
        #expect(try await get(from: two) == "2 200 network")
    }

    @Test func `sessions of the same partition share their responses`() async throws {
        let managers = (0..<2).map { _ in origin.manager { $0.cachePartition = "ada" } }
        origin.fields = [.cacheControl: "public, max-age=60", .setCookie: "a=b"]
        #expect(try await get(from: managers[0]) == "1 200 network")
        #expect(try await get(from: managers[1]) == "1 200 cache")
    }

    @Test func `a request with cookies of libcurl is not answered for another session`() async throws {
        try await StubServer.with { server in
            server.route("/", .data(Data("a".utf8), headers: ["Cache-Control": "max-age=60"]))
            let cache = ResponseCache.memory()
            let (one, two) = (
                SessionManager(for: server) { $0.cache = cache }, SessionManager(for: server) { $0.cache = cache }
            )
            let cookie = Cookie(name: "a", value: "b", domain: try #require(server.url("/").host()))
            try await one.cookies.set(cookie)
            #expect(try await get("/", from: one).hasSuffix("network"))
            #expect(try await get("/", from: one).hasSuffix("cache"))
            #expect(try await get("/", from: two).hasSuffix("network"))
            #expect(try await get("/", from: two).hasSuffix("cache"))
        }
    }

    @Test func `the time for which a request waits for a connection is no age of its response`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.enqueue(Script([.wait(gate), .reply(Reply())]))
            server.fallback { _ in
                .data(Data("a".utf8), headers: ["Cache-Control": "max-age=10"])
            }
            let (seconds, begun) = (Lock(Int64(1_000)), Lock(0))
            let manager = SessionManager(for: server) {
                $0.cache = .memory()
                $0.now = { CacheTime(seconds: seconds.withLock(\.self)) }
                $0.connectionLimits.maximumConnectionsPerHost = 1
                $0.attemptInterceptors = [
                    Intercepting { request, next in
                        begun.withLock { $0 += 1 }
                        return try await next(request)
                    }
                ]
            }
            let slow = Task { try await manager.get("slow") }
            try await server.requests(count: 1)
            let waiting = Task { try await get("/", from: manager) }
            try await eventually { begun.withLock { $0 } == 2 }
            seconds.set(\.self, to: 1_060)
            gate.open()
            _ = try await slow.value
            #expect(try await waiting.value.hasSuffix("network"))
            #expect(try await get("/", from: manager).hasSuffix("cache"))
        }
    }

    @Test func `a request without cookies is not answered by a response to one with them`() async throws {
        try await StubServer.with { server in
            server.route("/", .data(Data("a".utf8), headers: ["Cache-Control": "max-age=60"]))
            let manager = SessionManager(for: server) { $0.cache = .memory() }
            try await manager.cookies.set(Cookie(name: "a", value: "b", domain: #require(server.url("/").host())))
            #expect(try await get("/", from: manager).hasSuffix("network"))
            var request = try manager.request(.get, "/")
            request.handlesCookies = false
            #expect(try await manager.data(for: request).metrics.source != .cache)
            #expect(server.activity.requests.map { $0.headers["Cookie"] } == ["a=b", nil])
        }
    }

    // MARK: The program's decision

    @Test func `willCache changes or refuses a response`() async throws {
        let manager = origin.manager {
            $0.willCache = { proposal in
                var proposal = proposal
                proposal.body = Data("changed".utf8)
                proposal.head.headers[.cacheControl] = "max-age=10"
                return proposal.request.url.path.hasSuffix("x") ? proposal : nil
            }
        }
        origin.fields = [.cacheControl: "max-age=60"]
        #expect(try await get("x", from: manager) == "1 200 network")
        #expect(try await get("x", from: manager) == "changed 200 cache")
        origin.advance(10)
        #expect(try await get("x", from: manager) == "2 200 network")
        #expect(try await get("y", from: manager) == "3 200 network")
        #expect(try await get("y", from: manager) == "4 200 network")
    }

    @Test func `willCache may give a response its lifetime`() async throws {
        let manager = origin.manager {
            $0.willCache = { proposal in
                var proposal = proposal
                if proposal.request.url.path.hasSuffix("x") { proposal.head.headers[.cacheControl] = "max-age=10" }
                return proposal
            }
        }
        #expect(try await get("x", from: manager) == "1 200 network")
        #expect(try await get("x", from: manager) == "1 200 cache")
        // Without a lifetime and validators, a stored response would be of no use.
        #expect(try await get("y", from: manager) == "2 200 network")
        #expect(origin.cache.usage.entries == 1)
    }

    // MARK: Shared transfers

    @Test func `identical requests in flight share one transfer`() async throws {
        let manager = origin.manager { $0.coalescesRequests = true }
        origin.fields = [.cacheControl: "max-age=60"]
        let gate = try ScriptGate()
        origin.hold(at: gate)
        let results = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<10 { group.addTask { try await get(from: manager) } }
            try await origin.transport.requests(count: 1)
            gate.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(origin.requests.count == 1)
        #expect(Set(results).isSubset(of: ["1 200 network", "1 200 cache"]))
    }

    /// Makes bodies whose end is not known.
    private static let hidingEnd = Intercepting { request, next in
        struct Hidden: ResponseBodySource {
            let base: ResponseBody

            func next() async throws -> Data? {
                var iterator = base.makeAsyncIterator()
                return try await iterator.next()
            }
            var ending: ResponseEnding? { base.ending }
            func close() async {}
        }
        let response = try await next(request)
        return OpenResponse(head: response.head, body: ResponseBody(source: Hidden(base: response.body)))
    }

    @Test(.timeLimit(.minutes(1)))
    func `an interceptor that sends its request twice at once has both responses`() async throws {
        let gate = try ScriptGate()
        origin.respond { _, number in
            let text = MockResponse.Step.chunk(Data("\(number)".utf8))
            let head = MockResponse.Step.head(.notFound, [.cacheControl: "max-age=60"])
            return MockResponse(number == 1 ? [.wait(gate), head, text] : [head, text])
        }
        let clock = ManualClock()
        let manager = origin.manager {
            ($0.coalescesRequests, $0.clock) = (true, clock)
            $0.attemptInterceptors = [Self.hidingEnd]
            $0.interceptors = [
                Intercepting { [origin] request, next in
                    async let first = next(request)
                    try await origin.transport.requests(count: 1)
                    var limited = request
                    // The second request waits when its limit is measured.
                    limited.changeOptions { $0.timeouts.total = .seconds(5) }
                    async let second = next(limited)
                    try await clock.sleepers(count: 1)
                    gate.open()
                    let responses = try await [first, second]
                    let bodies = responses.map(\.body)
                    return OpenResponse(
                        head: responses[0].head,
                        body: ResponseBody(try await bodies[0].collect(upTo: 9) + bodies[1].collect(upTo: 9)))
                }
            ]
        }
        #expect(try await get(from: manager).hasPrefix("12 404"))
    }

    @Test(.timeLimit(.minutes(1)))
    func `an interceptor that sends its request again does not wait for the response that it has`() async throws {
        let session = Lock<SessionManager?>(nil)
        origin.respond { _, number in
            MockResponse(
                status: .notFound, headers: [.cacheControl: "max-age=60"], chunks: [Data("\(number)".utf8)])
        }
        let manager = origin.manager {
            $0.coalescesRequests = true
            $0.attemptInterceptors = [Self.hidingEnd]
            $0.interceptors = [
                Intercepting { request, next in
                    let response = try await next(request)
                    if request.headers[.userAgent] == "once" { return response }
                    if let manager = session.withLock(\.self), session.withLock({ $0.take() }) != nil {
                        _ = try await manager.data(for: request)
                    }
                    return response
                }
            ]
        }
        session.withLock { $0 = manager }
        #expect(try await get(from: manager).hasPrefix("1 404"))
    }

    @Test(.timeLimit(.minutes(1)), arguments: [404, 301])
    func `a decision about a response that sends its request again does not wait for that response`(
        status: Int
    ) async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            let head =
                "HTTP/1.1 \(status) S\r\nLocation: /y\r\nCache-Control: max-age=60\r\nContent-Length: 200001\r\n\r\n"
            let beginning = Data(head.utf8) + Data(count: 200_000)
            server.route("/", Script([.send(beginning), .wait(gate), .send(Data(count: 1))]), .text("again"))
            server.route("/y", .text("y"))
            let session = Lock<SessionManager?>(nil)
            let again: @Sendable (Request) async throws -> Void = { request in
                guard let manager = session.withLock({ $0.take() }) else { return }
                let response = try await manager.data(for: request)
                #expect(response.text == "again")
                gate.open()
            }
            let manager = SessionManager(for: server) {
                ($0.cache, $0.coalescesRequests) = (.memory(), true)
                $0.retryPolicy = RetryPolicy(limit: 1).with {
                    $0.decision = { context in
                        try await again(context.request)
                        return .followPolicy
                    }
                }
                $0.redirectPolicy.decision = { context in
                    try await again(context.original)
                    return context.proposed
                }
            }
            session.withLock { $0 = manager }
            let response = try await manager.data(for: manager.request(.get, "/"))
            #expect(response.statusCode == (status == 404 ? 404 : 200))
            #expect(session.withLock(\.self) == nil)
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: [true, false])
    func `requests with another patience do not share a transfer`(isTimeout: Bool) async throws {
        let manager = origin.manager { $0.coalescesRequests = true }
        origin.fields = [.cacheControl: "max-age=60"]
        let gate = try ScriptGate()
        origin.hold(at: gate)
        var request = try manager.request(.get, "x", options: isTimeout ? { $0.timeouts.idle = .seconds(5) } : nil)
        if !isTimeout { request.waitsForConnectivity = true }
        async let first = get(from: manager)
        try await origin.transport.requests(count: 1)
        async let second = manager.data(for: request)
        try await origin.transport.requests(count: 2)
        gate.open()
        #expect(try await first == "1 200 network")
        #expect(try await second.text == "2")
    }

    @Test(.timeLimit(.minutes(1)))
    func `a request waits for the transfer of another one no longer than for its own`() async throws {
        let clock = ManualClock()
        let manager = origin.manager { ($0.coalescesRequests, $0.clock) = (true, clock) }
        origin.fields = [.cacheControl: "max-age=60"]
        let gate = try ScriptGate()
        origin.hold(at: gate)
        async let first = get(from: manager)
        try await origin.transport.requests(count: 1)
        let request = try manager.request(.get, "x") { $0.timeouts.total = .seconds(5) }
        async let second = manager.data(for: request)
        #expect(try await clock.passWaits(1) == [.seconds(5)])
        try await origin.transport.requests(count: 2)
        gate.open()
        #expect(try await first == "1 200 network")
        #expect(try await second.text == "2")
    }

    // MARK: In the background

    private static let staleWhileRevalidate: HTTPFields = [.cacheControl: "max-age=1, stale-while-revalidate=60"]

    @Test(arguments: ["no-store", "max-age=60"])
    func `a validation in the background does not read what is not stored, nor more than is collected`(
        cacheControl: String
    ) async throws {
        let manager = origin.manager { $0.maximumBodySize = 4 }
        origin.fields = Self.staleWhileRevalidate
        _ = try await get(from: manager)
        origin.advance(30)
        let endless = MockResponse([.head(.ok, [.cacheControl: cacheControl]), .chunk(Data("12345".utf8)), .hang])
        origin.respond { _, _ in endless }
        #expect(try await get(from: manager) == "1 200 stale")
        try await origin.transport.requests(count: 2)
        try await eventually { manager.tasks.isEmpty }
    }

    @Test(arguments: [500, 502, 503, 504])
    func `a stored response stays if the server fails in the background`(status: Int) async throws {
        let manager = origin.manager()
        origin.fields = Self.staleWhileRevalidate
        #expect(try await get(from: manager) == "1 200 network")
        origin.advance(30)
        let failure = MockResponse(status: .init(code: status), headers: [.cacheControl: "max-age=60"])
        origin.respond { _, _ in failure }
        #expect(try await get(from: manager) == "1 200 stale")
        try await eventually { origin.requests.count == 2 && manager.tasks.isEmpty }
        #expect(try await get(from: manager) == "1 200 stale")
        await manager.shutdown()
    }

    @Test func `after a token was refused in the background, the next use refreshes it`() async throws {
        let authenticator = Authenticator(for: [try url("http://a.example/")], token: Authenticator.Token("0")) { _ in
            Authenticator.Token("1")
        }
        let manager = origin.manager { $0.authentication.authenticators = [authenticator] }
        let isRevoked = Lock(false)
        origin.respond { request, number in
            if request.headers[.authorization] == "Bearer 0", isRevoked.withLock(\.self) {
                return .status(.unauthorized, headers: [.wwwAuthenticate: "Bearer"])
            }
            return .data(Data("\(number)".utf8), headers: Self.staleWhileRevalidate)
        }
        #expect(try await get(from: manager) == "1 200 network")
        isRevoked.withLock { $0 = true }
        origin.advance(30)
        #expect(try await get(from: manager) == "1 200 stale")
        try await eventually { origin.requests.count == 2 && manager.tasks.isEmpty }
        #expect(try await get(from: manager) == "4 200 network")
        #expect(try await get(from: manager) == "4 200 cache")
    }

    /// Stores a response from February whose validation in the background is answered by 401, and later ones by
    /// `response`.
    private func refuseInBackground(
        from manager: SessionManager, then response: @escaping @Sendable (Int) -> MockResponse
    ) async throws {
        let february = "Tue, 01 Feb 1994 00:00:00 GMT"
        var fields = Self.staleWhileRevalidate
        (fields[.eTag], fields[.lastModified]) = ("\"a\"", february)
        origin.respond { [fields] _, number in
            switch number {
            case 1: .data(Data("1".utf8), headers: fields)
            case 2: .status(.unauthorized)
            default: response(number)
            }
        }
        #expect(try await get(from: manager) == "1 200 network")
        origin.advance(30)
        #expect(try await get(from: manager) == "1 200 stale")
        try await eventually { origin.requests.count == 2 && manager.tasks.isEmpty }
    }

    private static let january = "Sat, 01 Jan 1994 00:00:00 GMT"

    @Test(
        arguments: [
            ([.ifModifiedSince: january], nil, january), ([.ifNoneMatch: "\"b\""], "\"b\", \"a\"", nil),
            ([.range: "bytes=0-0"], nil, nil),
        ] as [(HTTPFields, String?, String?)])
    func `after a refusal in the background, a request has its own conditions`(
        own: HTTPFields, tags: String?, time: String?
    ) async throws {
        let manager = origin.manager()
        try await refuseInBackground(from: manager) { .data(Data("\($0)".utf8)) }
        #expect(try await get(from: manager, own) == "3 200 network")
        let sent = origin.requests[2].headers
        #expect([sent[.ifNoneMatch], sent[.ifModifiedSince], sent[.range]] == [tags, time, own[.range]])
    }

    @Test(arguments: [MockResponse.status(.serviceUnavailable), .failure(TransportError(.cannotConnect(.refused)))])
    func `after a refusal in the background, the stored response is used if the server fails`(failure: MockResponse)
        async throws
    {
        let manager = origin.manager()
        try await refuseInBackground(from: manager) { _ in failure }
        #expect(try await get(from: manager) == "1 200 stale")
        #expect(try await get(from: manager, [.cacheControl: "only-if-cached"]) == "1 200 stale")
        #expect(origin.requests.count == 3)
    }

    @Test func `a refusal in the background is one for the user of the response`() async throws {
        let manager = origin.manager()
        origin.respond { _, number in
            number == 3
                ? .status(.unauthorized) : .data(Data("\(number)".utf8), headers: Self.staleWhileRevalidate)
        }
        let (ada, bob): (HTTPFields, HTTPFields) = ([.authorization: "ada"], [.authorization: "bob"])
        #expect(try await get(from: manager, ada) == "1 200 network")
        #expect(try await get(from: manager, bob) == "2 200 network")
        origin.advance(30)
        #expect(try await get(from: manager, ada) == "1 200 stale")
        try await eventually { origin.requests.count == 3 && manager.tasks.isEmpty }
        #expect(try await get(from: manager, bob) == "2 200 stale")
        try await eventually { origin.requests.count == 4 && manager.tasks.isEmpty }
        #expect(try await get(from: manager, bob) == "4 200 cache")
        #expect(try await get(from: manager, ada) == "5 200 network")
    }

    @Test func `a refusal for a caller is none in the background`() async throws {
        let manager = origin.manager()
        origin.respond { _, number in
            number == 2
                ? .status(.unauthorized) : .data(Data("\(number)".utf8), headers: Self.staleWhileRevalidate)
        }
        #expect(try await get(from: manager) == "1 200 network")
        origin.advance(30)
        #expect(try await get(from: manager, [.cacheControl: "no-cache"]) == " 401 network")
        #expect(try await get(from: manager) == "1 200 stale")
        await manager.shutdown()
        #expect(origin.requests.count == 3)
    }

    @Test func `a validation in the background is repeated without conditions after a 304 that refers to nothing`()
        async throws
    {
        let manager = origin.manager()
        origin.respond { request, number in
            if request.headers.contains(.ifNoneMatch) { return .status(.notModified, headers: [.eTag: "\"b\""]) }
            return .data(
                Data("\(number)".utf8),
                headers: [.cacheControl: "max-age=10, stale-while-revalidate=60", .eTag: "\"a\""])
        }
        #expect(try await get(from: manager) == "1 200 network")
        origin.advance(30)
        #expect(try await get(from: manager) == "1 200 stale")
        try await eventually { origin.requests.count == 3 && manager.tasks.isEmpty }
        #expect(try await get(from: manager) == "3 200 cache")
    }

    @Test func `the limits of a call are not those of the validation that outlives it`() async throws {
        let manager = origin.manager {
            $0.timeouts.total = .seconds(60)
            $0.retryPolicy = RetryPolicy(limit: 1).with { $0.deadline = .seconds(20) }
        }
        origin.fields = Self.staleWhileRevalidate
        _ = try await get(from: manager)
        origin.advance(30)
        #expect(try await manager.get("x", timeout: .seconds(10)).metrics.source == .stale)
        try await origin.transport.requests(count: 2)
        #expect(origin.requests[1].options?.timeouts.total == .seconds(60))
    }

    @Test func `cancelling the first of several identical requests does not cancel the others`() async throws {
        let manager = origin.manager { $0.coalescesRequests = true }
        origin.fields = [.cacheControl: "max-age=60"]
        let gate = try ScriptGate()
        origin.hold(at: gate)
        let first = Task { try await get(from: manager) }
        try await origin.transport.requests(count: 1)
        let second = Task.immediate { try await get(from: manager) }
        first.cancel()
        try await origin.transport.requests(count: 2)
        gate.open()
        #expect(try await second.value == "2 200 network")
        await #expect(throws: CancellationError.self) { _ = try await first.value }
    }

    @Test
    func `if the first of several identical requests is cancelled while its error is read, one is sent for the others`()
        async throws
    {
        /// Counts the responses.
        struct Counting: Interceptor {
            let count: Lock<Int>

            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                let response = try await next(request)
                count.withLock { $0 += 1 }
                return response
            }
        }
        try await StubServer.with { server in
            let gate = try ScriptGate()
            let head = "HTTP/1.1 404 Not Found\r\nCache-Control: max-age=60\r\nContent-Length: 200001\r\n\r\n"
            server.route(
                "/", Script([.send(Data(head.utf8) + Data(count: 200_000)), .wait(gate), .send(Data(count: 1))]))
            let heads = Lock(0)
            let manager = SessionManager(for: server) {
                ($0.cache, $0.coalescesRequests) = (.memory(), true)
                $0.attemptInterceptors = [Counting(count: heads)]
            }
            let request = try manager.request(.get, "/")
            let first = Task { try await manager.data(for: request) }
            try await eventually(within: .seconds(20)) { heads.withLock(\.self) == 1 }
            let others = (0..<10).map { _ in Task { try await manager.data(for: request).statusCode } }
            try await eventually(within: .seconds(20)) { manager.tasks.count == 11 }
            first.cancel()
            await #expect(throws: CancellationError.self) { _ = try await first.value }
            gate.open()
            for other in others { #expect(try await other.value == 404) }
            #expect(server.activity.requests.count == 2)
        }
    }
}
