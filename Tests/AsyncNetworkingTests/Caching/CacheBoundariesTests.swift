// SPDX-License-Identifier: MIT

import ANCache
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

/// The limits of storing and reusing responses.
@Suite(.timeLimit(.minutes(5))) struct CacheBoundariesTests {
    private let origin = Origin()

    init() {
        origin.fields = [.cacheControl: "public, max-age=60", .eTag: "\"a\""]
    }

    // MARK: Users

    @Test func `user information in a URL separates users`() async throws {
        let (one, two) = (origin.manager(), origin.manager())
        let path = "http://ada:secret@a.example/v1/x"
        #expect(try await origin.get(path, from: one) == "1 200 network")
        #expect(try await origin.get(path, from: two) == "1 200 cache")
        #expect(try await origin.get(from: two) == "2 200 network")
        #expect(try await origin.get("http://eve:secret@a.example/v1/x", from: two) == "3 200 network")
    }

    @Test func `a response to a request that an attempt interceptor may have signed stays in its session`() async throws
    {
        struct Signer: Interceptor {
            func intercept(
                _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
            ) async throws {
                var request = interception.request
                request.headers[.authorization] = "Bearer a"
                try await interception.proceed(with: request, respond)
            }
        }
        let signing = origin.manager { $0.attemptInterceptors = [Signer()] }
        #expect(try await origin.get(from: signing) == "1 200 network")
        #expect(try await origin.get(from: signing) == "1 200 cache")
        #expect(try await origin.get(from: origin.manager()) == "2 200 network")
    }

    @Test func `sessions that trust other servers do not share responses`() async throws {
        let careless = origin.manager { $0.tls.policy.validatesDomainName = false }
        let privateRoots = origin.manager { $0.tls.trustRoots = .pem(Data()) }
        #expect(try await origin.get(from: careless) == "1 200 network")
        #expect(try await origin.get(from: origin.manager()) == "2 200 network")
        #expect(try await origin.get(from: privateRoots) == "3 200 network")
        #expect(try await origin.get(from: careless) == "1 200 cache")
    }

    @Test func `a response to a request with a client certificate is not used for another certificate`() async throws {
        let manager = origin.manager { $0.tls.hostIdentities["b.example"] = .pkcs12(.file("host.p12")) }
        func get(_ identity: ClientIdentity?, _ path: String = "x") async throws -> String {
            var request = try manager.request(.get, path)
            request.changeOptions { $0.tls.identity = identity }
            let response = try await manager.data(for: request)
            return "\(response.text) \(response.metrics.source)"
        }
        let ada = ClientIdentity.pem(certificates: .file("ada.pem"), key: .file("key.pem"))
        let identities: [ClientIdentity?] = [
            nil, ada, .pem(certificates: .file("eve.pem"), key: .file("key.pem")), .pkcs12(.file("ada.pem")),
            .pkcs12(.data(Data("ada".utf8))), .pkcs12(.data(Data("eve".utf8))),
        ]
        for (number, identity) in identities.enumerated() {
            #expect(try await get(identity) == "\(number + 1) network")
        }
        for (number, identity) in identities.enumerated() { #expect(try await get(identity) == "\(number + 1) cache") }
        // The certificate for the host takes precedence.
        #expect(try await get(ada, "http://b.example/x") == "7 network")
        #expect(try await get(nil, "http://b.example/x") == "7 cache")
    }

    @Test func `a response to which a 304 adds a cookie is not used in another session`() async throws {
        let (one, two) = (origin.manager(), origin.manager())
        #expect(try await origin.get(from: one) == "1 200 network")
        origin.advance(60)
        origin.notModified = true
        origin.fields[.setCookie] = "a=b"
        #expect(try await origin.get(from: one) == "1 200 validated")
        #expect(try await origin.get(from: one) == "1 200 cache")
        origin.notModified = false
        #expect(try await origin.get(from: two) == "3 200 network")
    }

    @Test func `a response that varies by a field an attempt interceptor may set is validated`() async throws {
        struct Tenant: Interceptor {
            func intercept(
                _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
            ) async throws {
                try await interception.proceed(respond)
            }
        }
        let manager = origin.manager { $0.attemptInterceptors = [Tenant()] }
        origin.fields[.vary] = "Accept, X-Tenant"
        #expect(try await origin.get(from: manager) == "1 200 network")
        #expect(try await origin.get(from: manager) == "2 200 network")
        origin.fields[.vary] = "Accept"
        #expect(try await origin.get("y", from: manager) == "3 200 network")
        #expect(try await origin.get("y", from: manager) == "3 200 cache")
    }

    @Test func `caches know credentials by different checksums`() async throws {
        let directories = [try TemporaryDirectory(), try TemporaryDirectory()]
        origin.fields[.vary] = "X-Key"
        var caches: [ResponseCache] = []
        for path in [nil, nil, directories[0].path, directories[1].path, directories[0].path] {
            origin.cache = path.map { .disk($0) } ?? .memory()
            caches.append(origin.cache)
            let key = try #require(HTTPField.Name("X-Key"))
            _ = try await origin.get(from: origin.manager(), [.authorization: "Bearer a", key: "secret"])
        }
        let stored = try caches.map { try #require($0.entries(CacheKey(target: "http://a.example/v1/x")).first) }
        #expect(Set(stored.map(\.response.owner)).count == 4)
        #expect(Set(stored.map(\.response.variant)).count == 4)
        #expect(stored[2].response.owner == stored[4].response.owner)
        #expect(origin.requests.count == 4)
        let salt = try FileManager.default.attributesOfItem(atPath: directories[0].path + "/salt")
        #expect(salt[.posixPermissions] as? Int == 0o600)
    }

    // MARK: Incomplete and partial responses

    @Test func `a truncated body fails as without a cache, and is not stored`() async throws {
        try await StubServer.with { server in
            let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"
            server.route("/", .raw(head + "Content-Length: 10\r\n\r\nabc"), .raw(head + "Content-Length: 3\r\n\r\nabc"))
            let cache = ResponseCache.memory()
            let manager = SessionManager(for: server) { $0.cache = cache }
            await #expect(throws: SessionError.self) { _ = try await origin.get("/", from: manager) }
            #expect(cache.usage.entries == 0)
            var responses: [String] = []
            for _ in 0..<2 { responses.append(try await origin.get("/", from: manager)) }
            #expect(responses == ["abc 200 network", "abc 200 cache"])
        }
    }

    @Test func `neither a part of a response nor a response to HEAD is stored`() async throws {
        let manager = origin.manager()
        origin.respond { _, number in
            MockResponse(
                status: .partialContent,
                headers: [.cacheControl: "max-age=60", .contentRange: "bytes 0-0/9", .eTag: "\"a\""],
                chunks: [Data("\(number)".utf8)])
        }
        #expect(try await origin.get(from: manager, [.range: "bytes=0-0"]) == "1 206 network")
        #expect(try await origin.get(from: manager, [.range: "bytes=0-0"]) == "2 206 network")
        origin.respond { _, _ in .status(.ok, headers: [.cacheControl: "max-age=60"]) }
        _ = try await manager.data(for: try manager.request(.head, "x"))
        #expect(origin.cache.usage.entries == 0)
    }

    @Test func `If-Range with another tag is answered by the whole stored response`() async throws {
        let manager = origin.manager()
        origin.body = { _ in "0123456789" }
        #expect(try await origin.get(from: manager) == "0123456789 200 network")
        let range: HTTPFields = [.range: "bytes=2-4", .ifRange: "\"a\""]
        #expect(try await origin.get(from: manager, range) == "234 206 cache")
        let other: HTTPFields = [.range: "bytes=2-4", .ifRange: "\"b\""]
        #expect(try await origin.get(from: manager, other) == "0123456789 200 cache")
        #expect(try await origin.get(from: manager, [.range: "bytes=0-1,3-4"]) == "0123456789 200 network")
    }

    @Test func `a 304 to the program's own condition is passed on without a stored response`() async throws {
        let manager = origin.manager()
        origin.notModified = true
        #expect(try await origin.get(from: manager, [.ifNoneMatch: "\"a\""]) == " 304 network")
        #expect(origin.cache.usage.entries == 0)
    }

    // MARK: Time

    @Test func `a response is validated if the clock was set back`() async throws {
        let manager = origin.manager()
        #expect(try await origin.get(from: manager) == "1 200 network")
        origin.advance(-10)
        origin.notModified = true
        #expect(try await origin.get(from: manager) == "1 200 validated")
        #expect(try await origin.get(from: manager) == "1 200 cache")
    }

    // MARK: Directories

    @Test func `a removal in one session is a miss in another one on the same directory`() async throws {
        let directory = try TemporaryDirectory()
        origin.body = { number in String(repeating: "\(number)", count: 100_000) }
        origin.cache = .disk(directory.path, memory: 0)
        let one = origin.manager()
        _ = try await origin.get(from: one)
        let first = origin.cache
        origin.cache = .disk(directory.path, memory: 0)
        let two = origin.manager()
        #expect(try await origin.get(from: two).hasSuffix("200 cache"))
        _ = try await origin.get("y", from: one)
        #expect(try await origin.get("y", from: one).hasSuffix("200 cache"))
        // The second cache has not read the directory since.
        origin.cache.removeAll()
        #expect(try await origin.get("y", from: one).hasSuffix("200 network"))
        #expect(try await origin.get(from: one).hasSuffix("200 network"))
        #expect(first.usage.entries == 2)
    }

    @Test func `a directory that disappears costs the responses, and fails no request`() async throws {
        let directory = try TemporaryDirectory()
        origin.body = { number in String(repeating: "\(number % 10)", count: 100_000) }
        origin.cache = .disk(directory.path)
        let manager = origin.manager()
        _ = try await origin.get(from: manager)
        try FileManager.default.removeItem(atPath: directory.path + "/v1")
        for _ in 0..<2 { #expect(try await origin.get(from: manager).hasSuffix("200 network")) }
        try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: true)
    }

    // MARK: Changes while a request is sent

    @Test func `a response requested before an unsafe request is not used after it`() async throws {
        let manager = origin.manager()
        let gate = try ScriptGate()
        let fields = origin.fields
        origin.respond { request, number in
            let body = request.method == .get ? Data("\(number)".utf8) : Data()
            let steps: [MockResponse.Step] = [.head(.ok, fields), .chunk(body)]
            return MockResponse(number == 1 ? [.wait(gate)] + steps : steps)
        }
        let early = Task { try await origin.get(from: manager) }
        try await origin.transport.requests(count: 1)
        _ = try await manager.data(for: try manager.request(.post, "x", body: .string("a")))
        gate.open()
        #expect(try await early.value == "1 200 network")
        #expect(try await origin.get(from: manager) == "3 200 network")
        #expect(try await origin.get(from: manager) == "3 200 cache")
    }

    @Test func `a response validated before an unsafe request is not used after it`() async throws {
        let manager = origin.manager()
        let gate = try ScriptGate()
        let fields = origin.fields
        origin.respond { request, number in
            switch number {
            case 2: MockResponse([.wait(gate), .head(.notModified, fields)])
            case 3: .status(.ok)
            default: .data(Data("\(number)".utf8), headers: fields)
            }
        }
        #expect(try await origin.get(from: manager) == "1 200 network")
        origin.advance(60)
        let early = Task { try await origin.get(from: manager) }
        try await origin.transport.requests(count: 2)
        _ = try await manager.data(for: try manager.request(.post, "x", body: .string("a")))
        gate.open()
        #expect(try await early.value == "1 200 validated")
        #expect(try await origin.get(from: manager) == "4 200 network")
    }

    @Test func `a 304 with no-store removes the response that it validates, and no other`() async throws {
        let manager = origin.manager()
        let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\"", .vary: "Accept-Language"]
        origin.respond { _, number in
            number == 3
                ? .status(.notModified, headers: [.cacheControl: "no-store", .eTag: "\"a\""])
                : .data(Data("\(number)".utf8), headers: fields)
        }
        #expect(try await origin.get(from: manager, [.acceptLanguage: "de"]) == "1 200 network")
        origin.advance(50)
        #expect(try await origin.get(from: manager, [.acceptLanguage: "en"]) == "2 200 network")
        origin.advance(20)
        #expect(try await origin.get(from: manager, [.acceptLanguage: "de"]) == "1 200 validated")
        #expect(try await origin.get(from: manager, [.acceptLanguage: "en"]) == "2 200 cache")
        #expect(try await origin.get(from: manager, [.acceptLanguage: "de"]) == "4 200 network")
    }

    @Test func `a request with no-store leaves the stored response as it is`() async throws {
        let manager = origin.manager()
        #expect(try await origin.get(from: manager) == "1 200 network")
        origin.advance(60)
        origin.notModified = true
        #expect(try await origin.get(from: manager, [.cacheControl: "no-store"]) == "1 200 validated")
        #expect(origin.cache.usage.entries == 1)
        #expect(try await origin.get(from: manager) == "1 200 validated")
    }

    @Test func `a retry is not answered by the stored failure`() async throws {
        let manager = origin.manager {
            $0.retryPolicy = RetryPolicy(limit: 1).with { $0.backoff = Backoff(base: .zero) }
        }
        let fields = origin.fields
        origin.respond { _, number in
            MockResponse(
                status: number < 3 ? .serviceUnavailable : .ok, headers: fields, chunks: [Data("\(number)".utf8)])
        }
        #expect(try await origin.get(from: manager) == "2 503 network")
        #expect(try await origin.get(from: manager) == "3 200 network")
        #expect(try await origin.get(from: manager) == "3 200 cache")
    }

    @Test func `a range of a stale response is validated in the background as a whole`() async throws {
        let manager = origin.manager()
        origin.fields[.cacheControl] = "max-age=60, stale-while-revalidate=60"
        origin.body = { number in "\(number)123456789" }
        #expect(try await origin.get(from: manager) == "1123456789 200 network")
        origin.advance(60)
        #expect(try await origin.get(from: manager, [.range: "bytes=0-1"]) == "11 206 stale")
        try await eventually { try await origin.get(from: manager, [.range: "bytes=0-1"]) == "21 206 cache" }
        #expect(origin.requests.count == 2)
        #expect(origin.requests.last?.headers[.range] == nil)
        #expect(origin.requests.last?.headers[.ifNoneMatch] == "\"a\"")
        await manager.shutdown()
    }

    // MARK: The program's decision

    @Test func `a body that willCache changes has its own length`() async throws {
        let manager = origin.manager {
            $0.willCache = { proposal in
                var proposal = proposal
                proposal.body += Data("23".utf8)
                return proposal
            }
        }
        origin.fields[.contentLength] = "1"
        #expect(try await origin.get(from: manager) == "1 200 network")
        let second = try await manager.data(for: try manager.request(.get, "x"))
        #expect(second.text == "123")
        #expect(second.headers[.contentLength] == "3")
    }

    // MARK: Shared transfers

    @Test func `a request within the reading of an identical stream does not wait for it`() async throws {
        let manager = origin.manager { $0.sharesTransfers = true }
        try await manager.withResponse(for: try manager.request(.get, "x")) { _, body in
            #expect(try await origin.get(from: manager) == "2 200 network")
            for try await _ in body {}
        }
    }

    @Test func `after the first of identical requests is cancelled, only one of the others is sent`() async throws {
        let manager = origin.manager { $0.sharesTransfers = true }
        let gate = try ScriptGate()
        origin.hold(at: gate)
        let first = Task { try await origin.get(from: manager) }
        try await origin.transport.requests(count: 1)
        let others = (0..<5).map { _ in Task { try await origin.get(from: manager) } }
        others[0].cancel()
        await #expect(throws: CancellationError.self) { _ = try await others[0].value }
        first.cancel()
        await #expect(throws: CancellationError.self) { _ = try await first.value }
        try await origin.transport.requests(count: 2)
        gate.open()
        for other in others.dropFirst() { #expect(try await other.value.hasPrefix("2 200")) }
        #expect(origin.requests.count == 2)
    }

    @Test func `a waiting request ends with its own timeout, and the one it waited for continues`() async throws {
        let clock = ManualClock()
        let manager = origin.manager {
            $0.sharesTransfers = true
            $0.clock = clock
        }
        let gate = try ScriptGate()
        origin.hold(at: gate)
        let first = Task { try await origin.get(from: manager) }
        try await origin.transport.requests(count: 1)
        let second = Task {
            try await manager.data(for: try manager.request(.get, "x", timeout: .seconds(5)))
        }
        #expect(try await clock.sleepers(count: 1) == [.seconds(5)])
        clock.advance(by: .seconds(5))
        let error = try await sessionError { _ = try await second.value }
        #expect(error.isTimeout)
        #expect(error.context?.timeLimit == .seconds(5))
        gate.open()
        #expect(try await first.value == "1 200 network")
        #expect(origin.requests.count == 1)
    }

    @Test func `an interceptor can send the request that it intercepts`() async throws {
        let nesting = Nesting { _ in "x" }
        let manager = origin.manager {
            $0.sharesTransfers = true
            $0.attemptInterceptors = [nesting]
        }
        nesting.session.withLock { $0 = manager }
        #expect(try await origin.get(from: manager) == "2 200 network")
        #expect(origin.requests.count == 2)
    }

    @Test func `two interceptors can send each other's requests`() async throws {
        let (x, xBegan) = AsyncStream.makeStream(of: Void.self)
        let (y, yBegan) = AsyncStream.makeStream(of: Void.self)
        // Both transfers have begun before either interceptor sends the other's request.
        let nesting = Nesting { path in
            (path == "x" ? xBegan : yBegan).finish()
            for await _ in path == "x" ? y : x {}
            return path == "x" ? "y" : "x"
        }
        let manager = origin.manager {
            $0.sharesTransfers = true
            $0.attemptInterceptors = [nesting]
        }
        nesting.session.withLock { $0 = manager }
        async let one = origin.get("x", from: manager)
        async let two = origin.get("y", from: manager)
        let results = try await [one, two]
        #expect(results.allSatisfy { $0.hasSuffix(" 200 network") })
    }

    @Test func `responses that are not stored are not waited for`() async throws {
        let manager = origin.manager { $0.sharesTransfers = true }
        origin.fields = [.cacheControl: "no-store"]
        async let one = origin.get(from: manager)
        async let two = origin.get(from: manager)
        #expect(try await Set([one, two]) == ["1 200 network", "2 200 network"])
    }
}

/// Sends another request before the intercepted one, unless it was sent by this interceptor.
private final class Nesting: Interceptor {
    let session = Lock<SessionManager?>(nil)
    /// Returns the path to request, for the last component of the intercepted path.
    private let path: @Sendable (String) async -> String

    init(path: @escaping @Sendable (String) async -> String) {
        self.path = path
    }

    func intercept(
        _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        if !Self.isNested, let session = session.withLock(\.self) {
            let path = await path(interception.request.url.lastPathComponent)
            _ = try await Self.$isNested.withValue(true) { try await session.get(path) }
        }
        try await interception.proceed(respond)
    }

    @TaskLocal private static var isNested = false
}
