// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// Redirects and retries over real connections, with misbehaving servers.
@Suite(.timeLimit(.minutes(5))) struct RedirectsOverTheWireTests {
    @Test func `secrets are not sent to another port`() async throws {
        try await StubServer.with { other in
            other.fallback { _ in .text("end") }
            try await StubServer.with { server in
                server.fallback { _ in .redirect(307, to: other.url("/taken").absoluteString) }
                let token = try #require(HTTPField.Name("X-Token"))
                let manager = SessionManager(for: server) { $0.redirectPolicy.sensitiveHeaders.insert(token) }
                let headers: HTTPFields = [
                    .authorization: "Bearer secret", .cookie: "session=secret", .proxyAuthorization: "Basic secret",
                    token: "secret", .accept: "text/plain", .from: "me",
                ]
                let request = try manager.request(.put, "x", body: .string("body"), headers: headers)
                let response = try await manager.data(for: request)
                #expect(response.text == "end")
                #expect(server.activity.requests.first?.headers["X-Token"] == "secret")
                let received = try #require(other.activity.requests.first)
                #expect(!received.headers.contains { $0.value.contains("secret") })
                #expect(received.headers["Accept"] == "text/plain")
                #expect(received.headers["From"] == "me")
                #expect(received.headers["Host"] == "127.0.0.1:\(other.endpoint.port)")
                #expect(received.body == Data("body".utf8))
            }
        }
    }

    @Test func `a proxy gets its field for each origin, also to open a tunnel, and the server in the tunnel does not`()
        async throws
    {
        try await StubServer.with { proxy in
            proxy.fallback { request in
                switch request.target {
                case "http://a.invalid/": .redirect(302, to: "http://b.invalid/")
                case "http://b.invalid/": .redirect(302, to: "http://c.invalid/")
                default: request.method == "CONNECT" ? .status(200) : .text("end")
                }
            }
            let manager = SessionManager {
                $0.headers = [.proxyAuthorization: "Bearer p"]
                $0.proxy = .proxy(Proxy(.http, host: "127.0.0.1", port: Int(proxy.endpoint.port)))
                // libcurl opens a tunnel to another server than that of the URL.
                $0.connection.hostOverrides = [.init(host: "c.invalid", port: 80, address: "d.invalid")]
            }
            let request = Request(url: try url("http://a.invalid/"))
            #expect(try await manager.data(for: request).text == "end")
            #expect(
                proxy.activity.requests.map { "\($0.method) \($0.target) \($0.headers["Proxy-Authorization"] ?? "-")" }
                    == [
                        "GET http://a.invalid/ Bearer p", "GET http://b.invalid/ Bearer p",
                        "CONNECT d.invalid:80 Bearer p", "GET / -",
                    ])
        }
    }

    @Test func `a forbidden address is refused on each hop`() async throws {
        try await StubServer.with { server in
            server.route("/outer", .redirect(302, to: "/next"))
            server.route("/next", .redirect(302, to: "http://127.0.0.2:\(server.endpoint.port)/inner"))
            server.route("/inner", .text("inner"))
            let manager = SessionManager(for: server) {
                $0.connection.addresses = .publicOnly(except: ["127.0.0.1"])
                $0.retryPolicy = RetryPolicy()
            }
            let error = try await sessionError { _ = try await manager.get("outer") }
            guard case .cannotConnect(.addressForbidden) = error.reason else { throw error }
            let context = try #require(error.context)
            #expect(context.address?.host == "127.0.0.2")
            #expect(context.retryHistory.earlierAttempts.isEmpty)
            #expect(server.activity.requests.map(\.path) == ["/outer", "/next"])
        }
    }

    @Test func `the body of a redirect may be broken or endless`() async throws {
        try await StubServer.with { server in
            let location = "Location: /b\r\n"
            let broken: [Script] = [
                Script([
                    .reply(Reply(status: 302, headers: ["Location": "/b"], framing: .contentLength(declared: 1 << 40))),
                    .hang,
                ]),
                .raw("HTTP/1.1 302 Found\r\n\(location)Transfer-Encoding: chunked\r\n\r\n"),
            ]
            for script in broken {
                server.route("/a", script)
                server.route("/b", .text("end"))
                let manager = SessionManager(for: server)
                let text = try await manager.withResponse(for: manager.request(.get, "a")) { head, body in
                    #expect(head.redirectHistory.count == 1)
                    return try await body.collect(upTo: 100)
                }
                #expect(text == Data("end".utf8))
            }
        }
    }

    @Test(arguments: [401, 503])
    func `the body of an answered challenge, and of a response that is retried, may be endless`(status: Int)
        async throws
    {
        try await StubServer.with { server in
            let headers: HeaderPairs = status == 401 ? ["WWW-Authenticate": "Basic realm=x"] : [:]
            server.enqueue(
                Script([
                    .reply(Reply(status: status, headers: headers, framing: .contentLength(declared: 1 << 40))), .hang,
                ]),
                .text("end"))
            let manager = SessionManager(for: server) {
                $0.retryPolicy = RetryPolicy(limit: 1).with { $0.backoff = Backoff(base: .zero) }
            }
            var request = try manager.request(.get, "a")
            request.credential = Credential(user: "ada", password: "secret")
            let text = try await manager.withResponse(for: request) { _, body in try await body.collect(upTo: 100) }
            #expect(text == Data("end".utf8))
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct RetriesOverTheWireTests {
    /// A manager that retries without waiting.
    private func manager(
        for server: StubServer, limit: Int = 3, connections: Int = 6,
        policy: (inout RetryPolicy) -> Void = { _ in }
    ) -> SessionManager {
        SessionManager(
            SessionConfiguration(baseURL: server.url("/")) {
                $0.proxy = .none
                $0.connectionLimits.maximumConnectionsPerHost = connections
                $0.retryPolicy = RetryPolicy(limit: limit).with { $0.backoff = Backoff(base: .zero) }.with(policy)
            })
    }

    @Test func `an error whose body cannot be decoded is retried, however fast it arrives`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in
                .reply(status: 404, headers: ["Content-Encoding": "gzip"], body: .string("no gzip"))
            }
            let session = manager(for: server, limit: 2) { $0.failures.insert(.invalidResponse) }
            _ = try await sessionError { _ = try await session.data(for: session.request(.get, "x")) }
            #expect(server.activity.requests.count == 3)
        }
    }

    @Test func `requests are retried after every kind of server failure`() async throws {
        try await StubServer.with { server in
            server.enqueue(
                .close, .truncated(declared: 10, sent: 3), .status(503, headers: ["Retry-After": "soon"]),
                .text("end"))
            let response = try await manager(for: server).get("x")
            #expect(response.text == "end")
            let attempts = response.metrics.retryHistory.earlierAttempts
            #expect(attempts.count == 3)
            #expect(attempts.last?.outcome == .status(503))
            #expect(
                attempts.map { $0.metrics?.remoteAddress?.port } == Array(repeating: server.endpoint.port, count: 3))
            #expect(attempts[1].metrics?.responseBodyBytes == 3)
        }
    }

    @Test(arguments: [
        "soon", "-1", "1.5", "1e9", "Sun, 99 Nov 2026 00:00:00 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", "0", "",
        "120, 0", "0x10", "%s%n",
    ])
    func `a malformed or past Retry-After causes no wait`(value: String) async throws {
        try await StubServer.with { server in
            server.enqueue(.status(429, headers: ["Retry-After": value]), .text("end"))
            let response = try await manager(for: server).get("x")
            #expect(response.text == "end")
        }
    }

    @Test(arguments: ["3600", "99999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
    func `after a Retry-After that is too long, the response is returned`(value: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .status(503, headers: ["Retry-After": value]) }
            let manager = manager(for: server)
            let response = try await manager.data(for: manager.request(.get, "x"))
            guard case .retryAfter(let wait) = response.head.retryHistory.stop else { throw Planned() }
            #expect(wait >= .seconds(3600))
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test func `a refused connection is retried with any method`() async throws {
        // The port of a stopped server could already be used by another test.
        let manager = SessionManager(
            SessionConfiguration(baseURL: URL(string: "http://127.0.0.1:1/")) {
                $0.proxy = .none
                $0.retryPolicy = RetryPolicy(limit: 2).with { $0.backoff = Backoff(base: .zero) }
            })
        let error = try await sessionError { _ = try await manager.post("x", parameters: ["a": 1]) }
        guard case .cannotConnect(.refused) = error.reason else { throw error }
        #expect(error.retryHistory.earlierAttempts.count == 2)
        #expect(error.retryHistory.stop == .limit(2))
    }

    @Test func `bodies from files and streams are sent again completely after the server has read a part`() async throws
    {
        let bytes = StubServer.generatedBytes(300_000)
        let directory = try TemporaryDirectory()
        let bodies = [
            RequestBody.bytes(bytes), .file(try directory.write(bytes, to: "body")),
            .stream(AsyncStreamOf([bytes.prefix(100_000), bytes.dropFirst(100_000)]), isReplayable: true),
        ]
        for body in bodies {
            try await StubServer.with { server in
                server.enqueue(
                    Script([.readBody(upTo: 50_000), .end(.reset)], readsBodyFirst: false), .text("end"))
                let manager = manager(for: server)
                let response = try await manager.data(for: manager.request(.put, "x", body: body))
                #expect(response.text == "end")
                #expect(server.activity.requests.last?.body == bytes)
            }
        }
    }

    @Test func `a wait holds no connection, and cancelling ends it`() async throws {
        try await StubServer.with { server in
            server.route("/x", .status(503, headers: ["Retry-After": "50"]))
            server.route("/y", .text("y"))
            let manager = manager(for: server, connections: 1)
            let task = Task { try await manager.get("x") }
            try await server.requests(count: 1)
            #expect(try await manager.get("y").text == "y")
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(manager.tasks.isEmpty)
        }
    }
}
