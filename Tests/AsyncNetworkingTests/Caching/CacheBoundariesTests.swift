// SPDX-License-Identifier: MIT

import ANCache
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
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

    // MARK: Owners

    /// Two sessions, or two requests, that must not share a response.
    private static let separations: [(String, @Sendable (inout SessionConfiguration) -> Void, HTTPFields, HTTPFields)] =
        [
            ("addresses", { $0.transfer.connection.addresses = .publicOnly() }, [:], [:]),
            ("a DNS server", { $0.transfer.connection.dnsOverHTTPS = URL(string: "https://dns.example/") }, [:], [:]),
            ("an interface", { $0.transfer.connection.localInterface = "tun0" }, [:], [:]),
            ("a proxy", { $0.proxy = .proxy(Proxy(.http, host: "p.example", port: 80)) }, [:], [:]),
            ("Host", { _ in }, host("b.example"), host("c.example")),
            ("Host and none", { _ in }, [:], host("c.example")),
        ]

    private static func host(_ name: String) -> HTTPFields {
        HTTPField.Name("Host").map { [$0: name] } ?? [:]
    }

    @Test(arguments: separations.indices)
    func `a response is not used where another server may have answered`(index: Int) async throws {
        let (_, configure, first, second) = Self.separations[index]
        let (one, two) = (origin.manager(), origin.manager(configure))
        #expect(try await origin.get(from: one, first) == "1 200 network")
        #expect(try await origin.get(from: two, second) == "2 200 network")
        #expect(try await origin.get(from: two, second) == "2 200 cache")
        #expect(try await origin.get(from: one, first) == "1 200 cache")
    }

    @Test func `Host with the authority of the URL makes no difference`() async throws {
        let manager = origin.manager()
        #expect(try await origin.get(from: manager) == "1 200 network")
        #expect(try await origin.get(from: manager, Self.host("a.example")) == "1 200 cache")
    }

    @Test func `all parts of a signing key count`() async throws {
        func manager(_ secret: String, _ token: String?) -> SessionManager {
            origin.manager {
                var key = AWSSignature(
                    accessKeyID: "id", secretAccessKey: secret, sessionToken: token, region: "r", service: "s")
                key.hosts = ["a.example"]
                $0.authentication.signatures = [key]
            }
        }
        #expect(try await origin.get(from: manager("a", nil)) == "1 200 network")
        #expect(try await origin.get(from: manager("b", nil)) == "2 200 network")
        #expect(try await origin.get(from: manager("a", "t")) == "3 200 network")
        #expect(try await origin.get(from: manager("a", nil)) == "1 200 cache")
    }

    @Test(arguments: [true, false])
    func `a response remains usable after its token was refreshed`(isNamed: Bool) async throws {
        let tokens = Lock(0)
        let authenticator = Authenticator(for: [try url("http://a.example/")], token: Authenticator.Token("0")) { _ in
            Authenticator.Token("\(tokens.withLock { $0 += 1; return $0 })")
        }
        origin.respond { request, number in
            if request.url.path.hasSuffix("refuse"), request.headers[.authorization] == "Bearer 0" {
                // It does not answer the request with the next token.
                return .status(.unauthorized, headers: [.cacheControl: "max-age=60"])
            }
            return .data(Data("\(number)".utf8), headers: [.cacheControl: "max-age=60", .eTag: "\"a\""])
        }
        let manager = origin.manager {
            $0.authentication.authenticators = [authenticator]
            if isNamed { $0.cachePartition = "ada" }
        }
        #expect(try await origin.get(from: manager) == "1 200 network")
        #expect(try await origin.get("refuse", from: manager) == "3 200 network")
        #expect(tokens.withLock(\.self) == 1)
        #expect(try await origin.get(from: manager) == "1 200 cache")
        // A token that the program sets may be that of another user.
        guard !isNamed else { return }
        await authenticator.setToken(Authenticator.Token("eve"))
        #expect(try await origin.get(from: manager).hasSuffix("200 network"))
    }

    @Test func `only identical requests wait for each other`() async throws {
        let gate = try ScriptGate()
        origin.respond { request, number in
            let response = MockResponse.data(
                Data("\(number)".utf8), headers: [.cacheControl: "max-age=60", .vary: "Accept"])
            return request.headers[.accept] == "a"
                ? MockResponse([.wait(gate)] + response.steps) : response
        }
        let manager = origin.manager { $0.coalescesRequests = true }
        async let slow = origin.get(from: manager, [.accept: "a"])
        try await origin.transport.requests(count: 1)
        #expect(try await origin.get(from: manager, [.accept: "b"]) == "2 200 network")
        gate.open()
        #expect(try await slow == "1 200 network")
    }

    @Test func `a cancelled task receives nothing from the cache`() async throws {
        let manager = origin.manager()
        _ = try await origin.get(from: manager)
        let result = await Task { [origin] in
            cancelCurrentTask()
            return try await origin.get(from: manager)
        }.result
        #expect(throws: CancellationError.self) { try result.get() }
    }

    @Test func `a cancelled task validates nothing in the background`() async throws {
        let manager = origin.manager()
        origin.fields[.cacheControl] = "max-age=60, stale-while-revalidate=60"
        _ = try await origin.get(from: manager)
        origin.advance(100)
        let result = await Task { [origin] in
            cancelCurrentTask()
            return try await origin.get(from: manager)
        }.result
        #expect(throws: CancellationError.self) { try result.get() }
        #expect(manager.tasks.isEmpty)
        await manager.shutdown()
        #expect(origin.requests.count == 1)
    }

    /// A body that is followed by the cancellation of the task that reads it.
    private final class LastRead: ResponseBodySource {
        private let base: ResponseBody

        init(_ base: ResponseBody) { self.base = base }

        func next() async throws -> Data? {
            var iterator = base.makeAsyncIterator()
            let chunk = try await iterator.next()
            if chunk == nil { cancelCurrentTask() }
            return chunk
        }

        var ending: ResponseEnding? { base.ending }
        func cancel() { base.cancel() }
        func close() async { await base.close() }
    }

    @Test(arguments: [true, false])
    func `a complete response is stored although its reader is cancelled then`(isAccepted: Bool) async throws {
        let directory = try TemporaryDirectory()
        origin.cache = .disk(directory.path, memory: 0)
        origin.body = { String(repeating: "\($0)", count: 200_000) }
        let isSecond = Lock(false)
        let manager = origin.manager {
            $0.willCache = { isAccepted || !isSecond.withLock(\.self) ? $0 : nil }
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    var response = try await next(request)
                    if isSecond.withLock(\.self) { response.body = ResponseBody(source: LastRead(response.body)) }
                    return response
                }
            ]
        }
        _ = try await origin.get(from: manager)
        isSecond.set(\.self, to: true)
        var request = try manager.request(.get, "x")
        request.cachePolicy = .reload
        let task = Task { [request] in
            try await manager.withResponse(for: request) { _, body in for try await _ in body {} }
        }
        _ = await task.result
        isSecond.set(\.self, to: false)
        #expect(try await origin.get(from: manager).first == (isAccepted ? "2" : "1"))
        #expect(origin.requests.count == 2)
    }

    // MARK: Order

    @Test(arguments: ["200", "304"], [false, true])
    func `an older response does not replace a newer one`(kind: String, isOnDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        if isOnDisk { origin.cache = .disk(directory.path, memory: 0) }
        let gate = try ScriptGate()
        let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"1\""]
        origin.respond { request, number in
            switch number {
            case 1: return .data(Data("v1".utf8), headers: [.cacheControl: "max-age=1", .eTag: "\"1\""])
            case 2:
                let slow: MockResponse =
                    kind == "304"
                    ? .status(.notModified, headers: fields) : .data(Data("v1".utf8), headers: fields)
                return MockResponse([.wait(gate)] + slow.steps)
            default: return .data(Data("v2".utf8), headers: [.cacheControl: "max-age=60", .eTag: "\"2\""])
            }
        }
        let manager = origin.manager()
        _ = try await origin.get(from: manager)
        origin.advance(10)
        async let slow = origin.get(from: manager)
        try await origin.transport.requests(count: 2)
        #expect(try await origin.get(from: manager, [.cacheControl: "no-cache"]) == "v2 200 network")
        gate.open()
        #expect(try await slow.hasPrefix("v1 200"))
        #expect(try await origin.get(from: manager) == "v2 200 cache")
    }

    @Test(arguments: [nil, "no-store"] as [String?])
    func `a request that waits before it is sent is newer than those that are sent meanwhile`(
        control: String?
    ) async throws {
        let gate = try ScriptGate()
        let isHeld = Lock(false)
        let manager = origin.manager {
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    if isHeld.withLock({ held in
                        defer { held = true }; return !held
                    }) {
                        try await gate.wait()
                    }
                    return try await next(request)
                }
            ]
        }
        let fields = origin.fields
        origin.respond { _, number in
            .data(Data("\(number)".utf8), headers: number == 2 ? [.cacheControl: control ?? "max-age=60"] : fields)
        }
        async let slow = origin.get(from: manager, [.cacheControl: "no-cache"])
        try await eventually { isHeld.withLock(\.self) }
        #expect(try await origin.get(from: manager) == "1 200 network")
        gate.open()
        #expect(try await slow == "2 200 network")
        #expect(try await origin.get(from: manager) == (control == nil ? "2 200 cache" : "3 200 network"))
    }

    @Test(arguments: [true, false])
    func `an update does not bring a removed response back`(isDenied: Bool) async throws {
        let gate = try ScriptGate()
        origin.respond { request, number in
            switch number {
            case 1: return .data(Data("v1".utf8), headers: [.cacheControl: "max-age=1", .eTag: "\"1\""])
            case 2:
                return MockResponse([
                    .wait(gate), .head(.notModified, [.cacheControl: "max-age=60", .eTag: "\"1\""]),
                ])
            case 3:
                return isDenied ? .status(.notFound) : .data(Data("v2".utf8), headers: [.cacheControl: "no-store"])
            default: return .data(Data("v3".utf8))
            }
        }
        let manager = origin.manager()
        _ = try await origin.get(from: manager)
        origin.advance(10)
        async let slow = origin.get(from: manager)
        try await origin.transport.requests(count: 2)
        _ = try await origin.get(from: manager, [.cacheControl: "no-cache"])
        gate.open()
        _ = try await slow
        #expect(try await origin.get(from: manager) == "v3 200 network")
    }

    @Test(arguments: ["too large", "refused", "not read"])
    func `a response that is not stored removes the one that it supersedes`(reason: String) async throws {
        origin.cache = .memory(4_000)
        let isSecond = Lock(false)
        origin.body = { $0 == 2 && reason == "too large" ? String(repeating: "x", count: 3_000) : "\($0)" }
        let manager = origin.manager {
            if reason == "refused" { $0.willCache = { isSecond.withLock(\.self) ? nil : $0 } }
        }
        #expect(try await origin.get(from: manager) == "1 200 network")
        isSecond.withLock { $0 = true }
        origin.fields[.eTag] = "\"b\""
        var request = try manager.request(.get, "x")
        request.cachePolicy = .reload
        if reason == "not read" {
            try await manager.withResponse(for: request) { _, _ in }
        } else {
            _ = try await manager.data(for: request)
        }
        #expect(try await origin.get(from: manager) == "3 200 network")
    }

    @Test func `a response that is not read to its end leaves an identical one that was stored meanwhile`() async throws
    {
        let gate = try ScriptGate()
        let old = origin.fields
        origin.respond { _, number in
            let fields = number == 1 ? old : [.cacheControl: "max-age=60", .eTag: "\"b\""]
            switch number {
            case 2: return MockResponse([.wait(gate), .head(.ok, fields), .chunk(Data("2".utf8))])
            case 3: return MockResponse([.head(.ok, fields), .hang])
            default: return .data(Data("\(number)".utf8), headers: fields)
            }
        }
        let manager = origin.manager()
        let again: HTTPFields = [.cacheControl: "no-cache"]
        _ = try await origin.get(from: manager)
        let other = Task { [origin] in try await origin.get(from: manager, again) }
        try await origin.transport.requests(count: 2)
        try await manager.withResponse(for: manager.request(.get, "x", headers: again)) { _, _ in
            gate.open()
            let stored = try await other.value
            #expect(stored == "2 200 network")
        }
        #expect(try await origin.get(from: manager) == "2 200 cache")
    }

    @Test func `a request that is cancelled leaves a response that was stored since it was sent`() async throws {
        let gate = try ScriptGate()
        let (old, new): (HTTPFields, HTTPFields) = (origin.fields, [.cacheControl: "max-age=60", .eTag: "\"b\""])
        origin.respond { _, number in
            number == 2
                ? MockResponse([.head(.ok, new), .chunk(Data("2".utf8)), .hang])
                : MockResponse([.wait(gate), .head(.ok, old), .chunk(Data("\(number)".utf8))])
        }
        let manager = origin.manager()
        async let first = origin.get(from: manager)
        try await origin.transport.requests(count: 1)
        let isReading = Lock(false)
        let second = Task {
            try await manager.withResponse(for: manager.request(.get, "x")) { _, body in
                for try await _ in body { isReading.set(\.self, to: true) }
            }
        }
        try await eventually { isReading.withLock(\.self) }
        gate.open()
        #expect(try await first == "1 200 network")
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(try await origin.get(from: manager) == "1 200 cache")
    }

    /// A server whose first response may be stored. The second one has begun when the program sends a third request, which
    /// is not answered.
    private func respondUntilThirdRequest() {
        origin.respond { _, number in
            guard number < 3 else { return .hang }
            let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"\(number)\""]
            let steps: [MockResponse.Step] = [.head(.ok, fields), .chunk(Data("\(number)".utf8))]
            return MockResponse(steps + (number == 2 ? [.hang] : []))
        }
    }

    @Test func `a reader that stops because the session ends leaves the stored response`() async throws {
        respondUntilThirdRequest()
        let manager = origin.manager()
        _ = try await origin.get(from: manager)
        let reading = Task {
            let request = try manager.request(.get, "x", headers: [.cacheControl: "no-cache"])
            try await manager.withResponse(for: request) { _, body in
                for try await _ in body {
                    await #expect(throws: CancellationError.self) { try await manager.get("y") }
                    break
                }
            }
        }
        try await origin.transport.requests(count: 3)
        await manager.invalidate(cancellingTasks: true)
        _ = await reading.result
        let other = origin.manager { $0.cachePolicy = .returnCacheDontLoad }
        #expect(try await origin.get(from: other) == "1 200 cache")
    }

    @Test func `a decision that is lost because the session ends leaves the stored response`() async throws {
        origin.respond { _, number in
            let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"\(number)\""]
            return number < 3 ? .data(Data("\(number)".utf8), headers: fields) : .hang
        }
        let own = Lock<SessionManager?>(nil)
        let manager = origin.manager {
            $0.willCache = { proposal in
                guard proposal.body == Data("2".utf8) else { return proposal }
                return (try? await own.withLock(\.self)?.get("y")).map { _ in proposal }
            }
        }
        own.set(\.self, to: manager)
        _ = try await origin.get(from: manager)
        let second = Task { [origin] in try await origin.get(from: manager, [.cacheControl: "no-cache"]) }
        try await origin.transport.requests(count: 3)
        await manager.invalidate(cancellingTasks: true)
        _ = await second.result
        let other = origin.manager { $0.cachePolicy = .returnCacheDontLoad }
        #expect(try await origin.get(from: other) == "1 200 cache")
    }

    @Test func `a response that must not be stored removes one that was stored since its request`() async throws {
        let gates = [try ScriptGate(), try ScriptGate()]
        origin.respond { _, number in
            let control = number == 2 ? "no-store" : "max-age=60"
            let response = MockResponse.data(Data("\(number)".utf8), headers: [.cacheControl: control])
            return number > 2 ? response : MockResponse([.wait(gates[number - 1])] + response.steps)
        }
        let manager = origin.manager()
        async let first = origin.get(from: manager)
        try await origin.transport.requests(count: 1)
        async let second = origin.get(from: manager)
        try await origin.transport.requests(count: 2)
        gates[0].open()
        #expect(try await first == "1 200 network")
        gates[1].open()
        #expect(try await second == "2 200 network")
        #expect(try await origin.get(from: manager) == "3 200 network")
    }

    @Test(arguments: [false, true])
    func `a request that waits for an invalidation and is sent after it is stored`(isStoredMeanwhile: Bool) async throws
    {
        origin.fields = [.cacheControl: "max-age=60"]
        let (isFirst, other) = (Lock(true), origin.manager())
        let manager = origin.manager { [origin] in
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    if isFirst.withLock({ $0 }) {
                        isFirst.set(\.self, to: false)
                        _ = try await other.data(for: Request(method: .post, url: request.url))
                        if isStoredMeanwhile { #expect(try await origin.get(from: other) == "2 200 network") }
                    }
                    return try await next(request)
                }
            ]
        }
        let number = isStoredMeanwhile ? 3 : 2
        #expect(try await origin.get(from: manager) == "\(number) 200 network")
        #expect(try await origin.get(from: manager) == "\(number) 200 cache")
    }

    @Test func `a response that comes from another session is as old as its request`() async throws {
        let other = Origin()
        let session = other.manager()
        for number in 0..<3 { _ = try await other.get("\(number)", from: session) }
        other.fields = [.cacheControl: "max-age=60"]
        let isFirst = Lock(true)
        let manager = origin.manager {
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    guard isFirst.withLock({ $0 }) else { return try await next(request) }
                    isFirst.set(\.self, to: false)
                    let response = try await session.data(for: request)
                    return OpenResponse(head: response.head, body: ResponseBody(response.value))
                }
            ]
        }
        #expect(try await origin.get(from: manager).hasPrefix("4 200"))
        #expect(try await origin.get(from: manager, [.cacheControl: "no-cache"]) == "1 200 network")
        #expect(try await origin.get(from: manager) == "1 200 cache")
    }

    @Test func `a response to HEAD with another status invalidates`() async throws {
        origin.respond { request, number in
            request.method == .head
                ? .status(.ok) : .text("\(number)", status: .notFound).with([.cacheControl: "max-age=3600"])
        }
        let manager = origin.manager()
        #expect(try await origin.get(from: manager) == "1 404 network")
        _ = try await manager.data(for: manager.request(.head, "x", headers: [.cacheControl: "no-cache"]))
        #expect(try await origin.get(from: manager) == "3 404 network")
    }

    @Test func `the digest of an empty response does not replace the stored one`() async throws {
        let digest = try ContentDigest(of: Data("1".utf8)).fieldValue
        let empty = try ContentDigest(of: Data()).fieldValue
        origin.fields = [.cacheControl: "max-age=1", .eTag: "\"a\"", .contentDigest: digest]
        let manager = origin.manager()
        _ = try await origin.get(from: manager)
        origin.advance(10)
        origin.notModified = true
        origin.fields = [.cacheControl: "max-age=60", .eTag: "\"a\"", .contentDigest: empty]
        #expect(try await origin.get(from: manager) == "1 200 validated")
        let response = try await manager.data(for: manager.request(.get, "x"))
        #expect(response.head.headers[.contentDigest] == digest)
    }

    @Test(arguments: [HTTPRequest.Method.head, .get])
    func `a response that is used without its body is not the least recently used one`(
        method: HTTPRequest.Method
    ) async throws {
        origin.cache = ResponseCache(
            CacheLimits(memoryBytes: 1 << 20, diskBytes: 0, entries: 2), directory: nil)
        origin.fields = [.cacheControl: "max-age=60", .eTag: "\"a\""]
        let manager = origin.manager()
        #expect(try await origin.get("1", from: manager) == "1 200 network")
        #expect(try await origin.get("2", from: manager) == "2 200 network")
        let headers: HTTPFields = method == .get ? [.ifNoneMatch: "\"a\""] : [:]
        let used = try await manager.data(for: manager.request(method, "1", headers: headers))
        #expect(used.metrics.source == .cache && used.value.isEmpty)
        #expect(try await origin.get("3", from: manager) == "3 200 network")
        #expect(try await origin.get("1", from: manager) == "1 200 cache")
    }

    @Test func `a 304 without a tag does not confirm the program's tag if the cache has added its own`() async throws {
        origin.fields = [.cacheControl: "max-age=1", .eTag: "\"b\""]
        let manager = origin.manager()
        _ = try await origin.get(from: manager)
        origin.advance(10)
        origin.respond { request, number in
            request.headers[.ifNoneMatch] == "\"a\", \"b\"" ? .status(.notModified) : .text("\(number)")
        }
        #expect(try await origin.get(from: manager, [.ifNoneMatch: "\"a\""]) == "3 200 network")
        #expect(origin.requests.last?.headers[.ifNoneMatch] == "\"a\"")
    }

    @Test func `a 304 with a strong tag updates all responses with it that match the request`() async throws {
        let fields: HTTPFields = [.eTag: "\"a\"", .cacheControl: "max-age=60"]
        origin.respond { _, number in
            switch number {
            case 1: .data(Data("en".utf8), headers: fields + [.vary: "Accept-Language"])
            case 2: .data(Data("any".utf8), headers: fields)
            default: .status(.notModified, headers: fields)
            }
        }
        let manager = origin.manager()
        #expect(try await origin.get(from: manager, [.acceptLanguage: "en"]) == "en 200 network")
        origin.advance(10)
        #expect(try await origin.get(from: manager, [.acceptLanguage: "de"]) == "any 200 network")
        origin.advance(100)
        #expect(try await origin.get(from: manager, [.acceptLanguage: "en"]) == "en 200 validated")
        #expect(try await origin.get(from: manager, [.acceptLanguage: "en"]) == "en 200 cache")
        #expect(try await origin.get(from: manager, [.acceptLanguage: "de"]) == "any 200 cache")
    }

    @Test func `a 304 to a request for another variant moves nothing`() async throws {
        origin.fields = [.cacheControl: "max-age=60", .eTag: "\"en\"", .vary: "Accept-Language"]
        let manager = origin.manager()
        #expect(try await origin.get(from: manager, [.acceptLanguage: "en"]) == "1 200 network")
        origin.notModified = true
        #expect(try await origin.get(from: manager, [.acceptLanguage: "de"]) == "1 200 validated")
        #expect(try await origin.get(from: manager, [.acceptLanguage: "en"]) == "1 200 cache")
    }

    @Test func `a failed handshake permits a stale response`() async throws {
        origin.fields = [.cacheControl: "max-age=1, stale-if-error=60", .eTag: "\"a\""]
        let manager = origin.manager()
        _ = try await origin.get(from: manager)
        origin.advance(10)
        origin.respond { _, _ in .failure(TransportError(.tls(.handshake))) }
        #expect(try await origin.get(from: manager) == "1 200 stale")
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
            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                var request = request
                request.headers[.authorization] = "Bearer a"
                return try await next(request)
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
        let ownPolicy = origin.manager { $0.tls.hostPolicies["a.example"] = .pinning([], backups: []) }
        #expect(try await origin.get(from: ownPolicy) == "4 200 network")
        // What is of other hosts, or protects nothing, does not matter.
        let others = origin.manager {
            $0.tls.hostPolicies["b.example"] = .pinning([], backups: [])
            $0.tls.keyLogPath = "/keys"
        }
        #expect(try await origin.get(from: others) == "2 200 cache")
    }

    @Test(arguments: [nil, "ada"])
    func `a response received by other rules for the server is not used by requests of the same session`(
        partition: String?
    ) async throws {
        let pin = try PublicKeyPin(sha256: Data(repeating: 1, count: 32))
        let manager = origin.manager {
            $0.cachePartition = partition
            $0.tls.policy = .pinning([pin], backups: [])
        }
        var (careless, accepting, refusing) = (SecurityPolicy(), SecurityPolicy(), SecurityPolicy())
        (careless.allowsInvalidCertificates, careless.validatesDomainName) = (true, false)
        accepting.evaluator = { _ in .accept }
        refusing.evaluator = { _ in .followPolicy }
        func get(_ change: @escaping @Sendable (inout TransferOptions) -> Void) async throws -> String {
            var request = Request(url: try url("https://a.example/x"))
            request.changeOptions(change)
            let response = try await manager.data(for: request)
            return "\(response.text) \(response.metrics.source)"
        }
        let changes: [@Sendable (inout TransferOptions) -> Void] = [
            { _ in }, { [careless] in $0.tls.policy = careless }, { $0.tls.policy = SecurityPolicy() },
            { [accepting] in $0.tls.policy = accepting },
            { [refusing] in $0.tls.hostPolicies["*.example"] = refusing }, { $0.tls.trustRoots = .file("own.pem") },
        ]
        for (number, change) in changes.enumerated() { #expect(try await get(change) == "\(number + 1) network") }
        for (number, change) in changes.enumerated() { #expect(try await get(change) == "\(number + 1) cache") }
        // The rules for another host, and those that replace the roots, change nothing.
        let ofOther = try await get { [careless] in $0.tls.hostPolicies["b.example"] = careless }
        #expect(ofOther == "1 cache")
        let equal = try await get {
            $0.tls.policy.trustRoots = .file("own.pem")
            $0.tls.trustRoots = .file("other.pem")
        }
        #expect(equal == "6 cache")
    }

    @Test func `a response to the owner of a system ticket stays in its session`() async throws {
        let server = try url("http://a.example/")
        let managers = (0..<2).map { _ in origin.manager { $0.authentication.credentials[server] = .systemTicket } }
        #expect(try await origin.get(from: managers[0]) == "1 200 network")
        #expect(try await origin.get(from: managers[0]) == "1 200 cache")
        #expect(try await origin.get(from: managers[1]) == "2 200 network")
        #expect(origin.requests.allSatisfy { $0.transportAuthentication?.server?.scheme == .negotiate })
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

    /// Sets a cookie after the look-up of a request in the cache.
    private final class Login: FieldPreservingInterceptor {
        let cookies = Lock<CookieStore?>(nil)

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            try await cookies.withLock { $0 }?.set(Cookie(name: "sid", value: "ada", domain: "127.0.0.1"))
            return try await next(request)
        }
    }

    @Test
    func `a response that varies by a cookie that came after the look-up is not one to a request without cookies`()
        async throws
    {
        try await StubServer.with { server in
            server.fallback { request in
                let text = request.headers["Cookie"] ?? "none"
                return .reply(headers: ["Cache-Control": "max-age=60", "Vary": "Cookie"], body: .string(text))
            }
            let (cache, login) = (ResponseCache.memory(), Login())
            func manager(_ interceptors: [any Interceptor]) -> SessionManager {
                SessionManager(for: server) {
                    ($0.cache, $0.cachePartition, $0.attemptInterceptors) = (cache, "ada", interceptors)
                }
            }
            let one = manager([login])
            login.cookies.set(\.self, to: one.cookies)
            let texts = [try await one.get("", as: .string).value, try await manager([]).get("", as: .string).value]
            #expect(texts == ["sid=ada", "none"])
        }
    }

    @Test func `a response that varies by a field an attempt interceptor may set is validated`() async throws {
        struct Tenant: Interceptor {
            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                return try await next(request)
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

    @Test func `the library's own attempt interceptors change nothing that a cache depends on`() async throws {
        let directory = try TemporaryDirectory()
        let recorder = try HARRecorder(path: directory.path + "/archive.har")
        let manager = origin.manager {
            $0.attemptInterceptors = [
                RequestRateLimit(100, per: .seconds(1)), CircuitBreaker(), Hedging(), RequestCoalescing(),
            ]
            recorder.install(in: &$0)
        }
        origin.fields[.vary] = "X-Tenant"
        #expect(try await origin.get(from: manager) == "1 200 network")
        #expect(try await origin.get(from: manager) == "1 200 cache")
        #expect(try await origin.get(from: origin.manager()) == "1 200 cache")
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
        try FileManager.default.removeItem(atPath: directory.path + "/v2")
        #expect(try await origin.get(from: manager).hasSuffix("200 network"))
        // The directory was created again.
        #expect(try await origin.get(from: manager).hasSuffix("200 cache"))
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

    @Test func `a response that is not stored removes the one that it supersedes, also after another 304`() async throws
    {
        origin.respond { request, number in
            if request.headers[.ifNoneMatch] != nil { return .status(.notModified, headers: [.eTag: "\"b\""]) }
            let isFirst = number == 1
            return .data(
                Data("\(number)".utf8),
                headers: isFirst ? [.cacheControl: "max-age=600", .eTag: "\"a\""] : [.cacheControl: "no-store"])
        }
        let manager = origin.manager()
        #expect(try await origin.get(from: manager) == "1 200 network")
        #expect(try await origin.get(from: manager, [.cacheControl: "no-cache"]) == "3 200 network")
        #expect(try await origin.get(from: manager) == "4 200 network")
    }

    @Test func `a proxy that asks for a credential is not answered by a stale response`() async throws {
        let transport = MockTransport(
            .data(Data("x".utf8), headers: [.cacheControl: "max-age=60, stale-if-error=600", .eTag: "\"a\""]),
            .failure(TransportError(.proxy(.authenticationRequired))))
        let clock = ManualClock()
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.cache = .memory()
        }
        _ = try await manager.get("x")
        clock.advance(by: .seconds(100))
        let error = try await sessionError { _ = try await manager.get("x") }
        #expect(error.reason == .proxy(.authenticationRequired))
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

    @Test(arguments: [HTTPResponse.Status.serviceUnavailable, .accepted])
    func `a retry is not answered by the stored response that is retried`(status: HTTPResponse.Status) async throws {
        let manager = origin.manager {
            $0.retryPolicy = RetryPolicy(limit: 1).with {
                $0.backoff = Backoff(base: .zero)
                $0.statuses = [status.code]
            }
        }
        let fields = origin.fields
        origin.respond { _, number in
            MockResponse(status: number < 3 ? status : .ok, headers: fields, chunks: [Data("\(number)".utf8)])
        }
        #expect(try await origin.get(from: manager) == "2 \(status.code) network")
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

    @Test func `a validation that has ended since the look-up is not repeated`() async throws {
        let seconds = Lock<Int64>(784_111_777)
        let holding = Lock<DispatchSemaphore?>(nil)
        let isHeld = Lock(false)
        let manager = origin.manager {
            $0.now = {
                // Called between the look-up and the decision: one request is held there.
                if let semaphore = holding.withLock({ $0.take() }) {
                    isHeld.set(\.self, to: true)
                    semaphore.wait()
                }
                return CacheTime(seconds: seconds.withLock(\.self))
            }
        }
        origin.fields[.cacheControl] = "max-age=60, stale-while-revalidate=60"
        #expect(try await origin.get(from: manager) == "1 200 network")
        seconds.withLock { $0 += 61 }
        let semaphore = DispatchSemaphore(value: 0)
        holding.set(\.self, to: semaphore)
        // On a thread that nothing else needs.
        let other = SessionManager()
        let executor = try #require(other.eventLoopExecutor)
        let held = Task(executorPreference: executor) { try await origin.get(from: manager) }
        try await eventually { isHeld.withLock(\.self) }
        #expect(try await origin.get(from: manager) == "1 200 stale")
        try await eventually { try await origin.get(from: manager) == "2 200 cache" }
        semaphore.signal()
        #expect(try await held.value == "1 200 stale")
        await manager.shutdown()
        await other.shutdown()
        #expect(origin.requests.count == 2)
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
        let manager = origin.manager { $0.coalescesRequests = true }
        try await manager.withResponse(for: try manager.request(.get, "x")) { _, body in
            #expect(try await origin.get(from: manager) == "2 200 network")
            for try await _ in body {}
        }
    }

    @Test func `after the first of identical requests is cancelled, only one of the others is sent`() async throws {
        let manager = origin.manager { $0.coalescesRequests = true }
        let gate = try ScriptGate()
        origin.hold(at: gate)
        let first = Task { try await origin.get(from: manager) }
        try await origin.transport.requests(count: 1)
        let others = (0..<5).map { _ in Task.immediate { try await origin.get(from: manager) } }
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
            $0.coalescesRequests = true
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
            $0.coalescesRequests = true
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
            $0.coalescesRequests = true
            $0.attemptInterceptors = [nesting]
        }
        nesting.session.withLock { $0 = manager }
        async let one = origin.get("x", from: manager)
        async let two = origin.get("y", from: manager)
        let results = try await [one, two]
        #expect(results.allSatisfy { $0.hasSuffix(" 200 network") })
    }

    @Test func `responses that are not stored are not waited for`() async throws {
        let manager = origin.manager { $0.coalescesRequests = true }
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

    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        if !Self.isNested, let session = session.withLock(\.self) {
            let path = await path(request.url.lastPathComponent)
            _ = try await Self.$isNested.withValue(true) { try await session.get(path) }
        }
        return try await next(request)
    }

    @TaskLocal private static var isNested = false
}

extension MockResponse {
    /// The response with fields added to its head.
    fileprivate func with(_ fields: HTTPFields) -> MockResponse {
        MockResponse(
            steps.map { step in
                if case .head(let status, let headers) = step { .head(status, headers + fields) } else { step }
            })
    }
}
