// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// Bodies of responses after which the session sends another request, while the caller collects the body.
@Suite(.timeLimit(.minutes(2))) struct DiscardedBodiesTests {
    /// Bodies without an end, after which only the session can go on.
    enum Endless: CaseIterable {
        case declared, silent, flood, atLimit

        func script(_ status: Int, _ headers: HeaderPairs) -> Script {
            switch self {
            case .declared:
                Script([
                    .reply(Reply(status: status, headers: headers, framing: .contentLength(declared: 1 << 40))), .hang,
                ])
            case .silent:
                Script([
                    .reply(
                        Reply(
                            status: status,
                            headers: HeaderPairs(headers + [HeaderPair("Transfer-Encoding", "chunked")]),
                            body: .string("5\r\nfirst\r\n"), framing: .asGiven)), .hang,
                ])
            case .flood:
                Script([
                    .reply(Reply(status: status, headers: headers, framing: .untilClose)), .generate(1 << 50),
                ])
            case .atLimit:
                Script([
                    .reply(Reply(status: status, headers: headers, framing: .untilClose)), .generate(1 << 16), .hang,
                ])
            }
        }
    }

    private func manager(for server: StubServer, _ change: sending (inout SessionConfiguration) -> Void = { _ in })
        -> SessionManager
    {
        SessionManager(for: server) {
            $0.retryPolicy = RetryPolicy(limit: 1).with { $0.backoff = Backoff(base: .zero) }
            change(&$0)
        }
    }

    private func expectEnd(_ manager: SessionManager, times: Int = 1) async throws {
        for _ in 0..<times { #expect(try await manager.data(for: manager.request(.get, "a")).text == "end") }
    }

    @Test(arguments: [302, 401, 503], Endless.allCases)
    func `an endless body of a redirect, an answered challenge or a retried response is not read`(
        status: Int, body: Endless
    ) async throws {
        try await StubServer.with { server in
            let headers: HeaderPairs =
                switch status {
                case 302: ["Location": "/b"]
                case 401: ["WWW-Authenticate": "Basic realm=x"]
                default: [:]
                }
            server.enqueue(body.script(status, headers), .text("end"))
            var request = try manager(for: server).request(.get, "a")
            request.credential = Credential(user: "ada", password: "secret")
            #expect(try await manager(for: server).data(for: request).text == "end")
            #expect(server.activity.requests.map(\.connection) == [0, 1])
        }
    }

    @Test func `a response that must not be retried yet is not retried because its body is lost`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.enqueue(
                Script([
                    .reply(
                        Reply(
                            status: 503, headers: ["Retry-After": "3600"],
                            framing: .contentLength(declared: 100))), .wait(gate), .end(.close),
                ]), .text("end"))
            let manager = manager(for: server) {
                $0.retryPolicy.decision = { _ in
                    gate.open()
                    return .followPolicy
                }
            }
            let error = try await sessionError { _ = try await manager.data(for: manager.request(.get, "a")) }
            #expect(error.retryHistory.stop == .retryAfter(.seconds(3600)))
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test(arguments: Endless.allCases)
    func `an endless body of a proxy's answered challenge is not read`(body: Endless) async throws {
        try await StubServer.with { proxy in
            proxy.enqueue(body.script(407, ["Proxy-Authenticate": "Basic realm=x"]), .text("end"))
            let manager = SessionManager {
                $0.proxy = .proxy(Proxy(.http, host: "127.0.0.1", port: proxy.endpoint.port))
                $0.authentication.challengeHandler = { _ in .use(Credential(user: "ada", password: "secret")) }
            }
            let request = Request(url: try #require(URL(string: "http://origin.invalid/")))
            #expect(try await manager.data(for: request).text == "end")
        }
    }

    @Test(arguments: Endless.allCases)
    func `an endless body of a 401 for which a token is refreshed is not read`(body: Endless) async throws {
        try await StubServer.with { server in
            server.enqueue(body.script(401, ["WWW-Authenticate": "Bearer"]), .text("end"))
            let authenticator = Authenticator(for: [server.url("/")], token: Authenticator.Token("1")) { _ in
                Authenticator.Token("2")
            }
            let manager = manager(for: server) { $0.authentication.authenticators = [authenticator] }
            try await expectEnd(manager)
        }
    }

    @Test(arguments: Endless.allCases)
    func `an endless body of a redirect that may be stored is not read`(body: Endless) async throws {
        try await StubServer.with { server in
            server.enqueue(body.script(301, ["Location": "/b", "Cache-Control": "max-age=60"]), .text("end"))
            let manager = manager(for: server) { $0.cache = .memory() }
            try await expectEnd(manager)
        }
    }

    @Test(arguments: [false, true])
    func `an endless response to a request whose body is held back for Digest is not read`(isStreamed: Bool)
        async throws
    {
        try await StubServer.with { server in
            server.enqueue(Endless.flood.script(200, [:]), .text("end"))
            var request = try manager(for: server).request(.post, "a", body: .string("content"))
            request.credential = Credential(user: "ada", password: "secret", schemes: [.digest])
            let manager = manager(for: server)
            let response =
                isStreamed
                ? try await manager.upload(request, as: .string).value.value : try await manager.data(for: request).text
            #expect(response == "end")
            #expect(server.activity.requests.map(\.text) == ["", "content"])
        }
    }

    @Test func `a late challenge by Digest is answered, and an overloaded server is not sent the body`() async throws {
        let challenge: HeaderPairs = ["WWW-Authenticate": #"Digest realm="x", nonce="n", qop="auth""#]
        try await StubServer.with { server in
            server.enqueue(.status(415), .status(401, headers: challenge), .text("end"))
            var request = try manager(for: server).request(.post, "a", body: .string("content"))
            request.credential = Credential(user: "ada", password: "secret", schemes: [.digest])
            #expect(try await manager(for: server).data(for: request).text == "end")
            #expect(server.activity.requests.map(\.text) == ["", "content", "content"])
        }
        try await StubServer.with { server in
            server.enqueue(.status(503))
            var request = try SessionManager(for: server).request(.post, "a", body: .string("content"))
            request.credential = Credential(user: "ada", password: "secret", schemes: [.digest])
            request.retryPolicy = RetryPolicy(limit: 0)
            #expect(try await SessionManager(for: server).data(for: request).statusCode == 503)
            #expect(server.activity.requests.map(\.text) == [""])
        }
    }

    @Test func `Basic is used if no challenge by Digest can be answered`() async throws {
        let challenge: HeaderPairs = [
            "WWW-Authenticate": #"Digest realm="a", nonce="n", algorithm=SHA-512, Basic realm="b""#
        ]
        try await StubServer.with { server in
            server.enqueue(.status(401, headers: challenge), .text("end"))
            var request = try manager(for: server).request(.get, "a")
            request.credential = Credential(user: "ada", password: "secret")
            #expect(try await manager(for: server).data(for: request).text == "end")
            #expect(server.activity.requests.last?.headers["Authorization"]?.hasPrefix("Basic ") == true)
        }
    }

    @Test func `coded bytes without content do not escape the limit of a collected error`() async throws {
        // Empty stored blocks of Deflate, in a gzip member.
        let member: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3]
        let blocks = Data(member + Array(repeating: [0, 0, 0, 0xFF, 0xFF], count: 200_000).flatMap(\.self))
        try await StubServer.with { server in
            server.fallback { _ in
                .reply(status: 404, headers: ["Content-Encoding": "gzip"], body: .bytes(blocks))
            }
            let manager = manager(for: server) { $0.maximumBodySize = 100_000 }
            do {
                _ = try await manager.data(for: manager.request(.get, "a"))
                Issue.record("nothing was thrown")
            } catch let error as SessionError {
                guard case .responseTooLarge(.body(limit: 100_000)) = error.reason else { throw error }
            }
        }
    }

    @Test func `a long error that may be stored is shared by the requests that wait for it`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in
                .reply(
                    status: 404, headers: ["Cache-Control": "max-age=60"],
                    body: .string(String(repeating: "x", count: 200_000)))
            }
            let manager = manager(for: server) {
                $0.cache = .memory()
                $0.coalescesRequests = true
            }
            let sizes = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<8 {
                    group.addTask { try await manager.data(for: manager.request(.get, "a")).value.count }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(sizes == Array(repeating: 200_000, count: 8))
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test func `the program's decision about a head holds for its body`() async throws {
        try await StubServer.with { server in
            server.enqueue(
                .reply(
                    status: 503, body: .generated(70_000), framing: .contentLength(declared: 1 << 20)
                ).thenClose, .text("end"))
            let manager = manager(for: server) {
                $0.retryPolicy.decision = { context in
                    if case .success = context.result { .stop } else { .followPolicy }
                }
            }
            await #expect(throws: SessionError.self) { try await manager.data(for: manager.request(.get, "a")) }
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test func `a redirect with a short body is stored`() async throws {
        try await StubServer.with { server in
            server.route(
                "/a",
                .reply(status: 301, headers: ["Location": "/b", "Cache-Control": "max-age=60"], body: .string("x")))
            server.route("/b", .text("end"))
            let manager = manager(for: server) { $0.cache = .memory() }
            try await expectEnd(manager, times: 2)
            #expect(server.activity.requests.map(\.path) == ["/a", "/b", "/b"])
            #expect(Set(server.activity.requests.map(\.connection)) == [0])
        }
    }

    @Test(arguments: [false, true])
    func `the limit of a body does not apply to one that is discarded`(isCached: Bool) async throws {
        try await StubServer.with { server in
            let fields: HeaderPairs = ["Location": "/b", "Cache-Control": "max-age=60"]
            server.enqueue(
                .reply(status: 301, headers: fields, body: .generated(2_000)),
                .reply(status: 503, headers: fields, body: .generated(2_000)), .text("end"))
            let manager = manager(for: server) {
                $0.transfer.maximumBodySize = 1_000
                if isCached { $0.cache = .memory() }
            }
            try await expectEnd(manager)
        }
    }

    @Test(arguments: [301, 503])
    func `a discarded body need not be decodable, also if it may be stored`(status: Int) async throws {
        try await StubServer.with { server in
            let broken = Script([
                .reply(
                    Reply(
                        status: status,
                        headers: ["Location": "/b", "Cache-Control": "max-age=60", "Content-Encoding": "gzip"],
                        body: .string("no gzip")))
            ])
            server.enqueue(broken, .text("end"))
            let manager = manager(for: server) {
                $0.cache = .memory()
                $0.coalescesRequests = true
            }
            try await expectEnd(manager)
            server.fallback { _ in broken }
            // Of the response itself, the body must be decodable.
            var request = try manager.request(.get, "c")
            (request.redirectPolicy, request.retryPolicy) = (RedirectPolicy.none, RetryPolicy.none)
            let error = try await sessionError { _ = try await manager.data(for: request) }
            guard case .invalidContentEncoding = error.reason else { throw error }
            // Nothing is stored, and nobody waits.
            await #expect(throws: SessionError.self) { try await manager.data(for: request) }
            #expect(server.activity.requests.count == 4)
        }
    }

    @Test func `the limit of a body applies to an error that is the response`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .reply(status: 404, body: .generated(2_000)) }
            let manager = manager(for: server) { $0.transfer.maximumBodySize = 1_000 }
            let error = try await sessionError { _ = try await manager.data(for: manager.request(.get, "a")) }
            #expect(error.reason == .responseTooLarge(.body(limit: 1_000)))
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test(arguments: [302, 401, 503])
    func `the connection of a discarded response with a short body is used again`(status: Int) async throws {
        try await StubServer.with { server in
            let headers: HeaderPairs =
                status == 302 ? ["Location": "/b"] : status == 401 ? ["WWW-Authenticate": "Basic realm=x"] : [:]
            server.enqueue(.reply(status: status, headers: headers, body: .generated(3_000)), .text("end"))
            let manager = manager(for: server)
            var request = try manager.request(.get, "a")
            request.credential = Credential(user: "ada", password: "secret")
            #expect(try await manager.data(for: request).text == "end")
            #expect(server.activity.requests.map(\.connection) == [0, 0])
        }
    }

    @Test(arguments: [302, 401, 404, 503], [0, 1])
    func `a long body of an error that is the response is complete`(status: Int, retries: Int) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .reply(status: status, body: .generated(300_000)) }
            let manager = SessionManager(for: server) {
                $0.retryPolicy = RetryPolicy(limit: retries).with { $0.backoff = Backoff(base: .zero) }
            }
            let response = try await manager.data(for: manager.request(.get, "a"))
            #expect(response.statusCode == status)
            #expect(response.value.count == 300_000)
            #expect(response.metrics.responseBodyBytes == 300_000)
        }
    }

    @Test func `an error whose long body is cut is a failed attempt`() async throws {
        try await StubServer.with { server in
            let cut = Script([
                .reply(Reply(status: 404, body: .generated(200_000), framing: .contentLength(declared: 300_000))),
                .end(.close),
            ])
            server.enqueue(cut, .text("end"))
            try await expectEnd(manager(for: server))
            server.fallback { _ in cut }
            let other = SessionManager(for: server)
            let error = try await sessionError { _ = try await other.data(for: other.request(.get, "a")) }
            #expect(error.reason == .connectionLost(.inBody(received: 200_000, expected: 300_000)))
        }
    }

    // MARK: Decisions

    @Test func `a cancelled reader ends, whatever the source of a body that was read ahead does`() async throws {
        /// Has no bytes, and ends only if the task that reads is cancelled.
        struct Silence: ResponseBodySource {
            let ending: ResponseEnding? = nil

            func next() async throws -> Data? {
                let (stream, continuation) = AsyncStream<Void>.makeStream()
                defer { continuation.finish() }
                for await _ in stream {}
                throw CancellationError()
            }
        }
        struct Silent: Transport {
            func open(
                _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
            ) async throws -> OpenResponse {
                OpenResponse(
                    head: ResponseHead(status: .serviceUnavailable, url: request.url),
                    body: ResponseBody(source: Silence()))
            }

            func shutdown() async {}
        }
        let manager = SessionManager(on: Silent()) {
            $0.retryPolicy = RetryPolicy(limit: 1).with { $0.decision = { _ in .stop } }
        }
        let (begun, continuation) = AsyncStream<Void>.makeStream()
        let task = Task {
            try await manager.withResponse(for: manager.request(.get, "a")) { _, body in
                continuation.yield()
                for try await _ in body {}
            }
        }
        for await _ in begun { break }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    /// Runs a test with a session of one connection, whose decisions about responses first request the path `other`, and
    /// a server whose path `long` has 1,000,000 bytes at first.
    private func withDecisions(
        about status: Int, goingOn goesOn: Bool, maximumBodySize: Int = 128 << 20,
        _ body: (SessionManager, _ decisions: @escaping @Sendable () -> Int) async throws -> Void
    ) async throws {
        try await StubServer.with { server in
            let headers: HeaderPairs =
                switch status {
                case 302: ["Location": "/long"]
                case 401: ["WWW-Authenticate": "Basic realm=x"]
                default: [:]
                }
            server.route(
                "/long", .reply(status: status, headers: headers, body: .generated(1_000_000)), .text("end"))
            server.route("/other", .text("other"))
            let session = Lock<SessionManager?>(nil)
            let count = Lock(0)
            let request: @Sendable () async throws -> Void = {
                let manager = session.withLock(\.self)
                _ = try await #require(manager).get("other")
                count.withLock { $0 += 1 }
            }
            let manager = manager(for: server) {
                $0.connectionLimits.maximumConnectionsPerHost = 1
                $0.maximumBodySize = maximumBodySize
                $0.authentication.challengeHandler = { _ in
                    try await request()
                    return goesOn ? .use(Credential(user: "ada", password: "secret")) : .performDefaultHandling
                }
                $0.redirectPolicy.decision = {
                    try await request()
                    return goesOn ? $0.proposed : nil
                }
                $0.retryPolicy.decision = { _ in
                    try await request()
                    return goesOn ? .retry() : .stop
                }
            }
            session.set(\.self, to: manager)
            defer { session.set(\.self, to: nil) }
            try await body(manager) { count.withLock(\.self) }
        }
    }

    @Test(arguments: [302, 401, 503], [false, true])
    func `a decision about a long response can use its connection, and the response is complete`(
        status: Int, goesOn: Bool
    ) async throws {
        for isStreamed in [false, true] {
            try await withDecisions(about: status, goingOn: goesOn) { manager, decisions in
                let request = try manager.request(.get, "long")
                let size =
                    isStreamed
                    ? try await manager.withResponse(for: request) { try await $1.collect(upTo: 2_000_000).count }
                    : try await manager.data(for: request).value.count
                #expect(size == (goesOn ? 3 : 1_000_000))
                // A refusal that is the response is one of the attempt, too.
                #expect(decisions() == (status == 401 && !goesOn ? 2 : 1))
            }
        }
    }

    @Test func `a response that is too long to be kept during a decision ends with an error`() async throws {
        try await withDecisions(about: 503, goingOn: false, maximumBodySize: 500_000) { manager, _ in
            let sizes = Lock(0)
            let error = try await sessionError {
                try await manager.withResponse(for: manager.request(.get, "long")) { head, body in
                    #expect(head.status == .serviceUnavailable)
                    for try await chunk in body { sizes.withLock { $0 += chunk.count } }
                }
            }
            #expect(error.reason == .responseTooLarge(.body(limit: 500_000)))
            #expect((200_000...500_000).contains(sizes.withLock(\.self)))
        }
    }

    @Test func `a decision about a failure can use the connection of the response that failed`() async throws {
        try await withDecisions(about: 302, goingOn: false) { manager, decisions in
            var request = try manager.request(.get, "long")
            request.redirectPolicy = RedirectPolicy().with { $0.maximum = 0 }
            let error = try await sessionError { try await manager.withResponse(for: request) { _, _ in } }
            guard case .redirect(.tooMany(limit: 0, _)) = error else { throw error }
            #expect(decisions() == 1)
        }
    }
}
