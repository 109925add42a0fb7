// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// Sessions whose servers offer alternative services.
@Suite(.timeLimit(.minutes(5))) struct AlternativeServicesTests {
    private static let field = HTTPField.Name(constant: "Alt-Svc")

    /// Returns a transport whose responses have the field, except those for `/plain`.
    private func transport(_ value: String = #"h3=":444""#, status: HTTPResponse.Status = .ok) -> MockTransport {
        MockTransport { request in
            request.url.path() == "/plain" ? .text("") : .status(status, headers: [Self.field: value])
        }
    }

    /// Returns the alternatives of requests, with `?` for those that are not proven; `nil` for requests without one.
    private func routes(_ transport: MockTransport) -> [String?] {
        transport.requests.map { recorded in
            recorded.request[AlternativeRoute.self].map { "\($0.port)\($0.isProven ? "" : "?")" }
        }
    }

    private func services(_ manager: SessionManager) -> [String] {
        manager.alternativeServices.entries.map { "\($0.host):\($0.port) \($0.alternativePort)" }
    }

    private func get(_ manager: SessionManager, _ texts: String...) async throws {
        for text in texts { _ = try await manager.data(for: Request(url: url(text))) }
    }

    @Test func `a request after the offer uses the alternative`() async throws {
        let transport = transport()
        let manager = SessionManager(on: transport)
        try await get(
            manager, "https://a.example/", "https://A.example:443/plain", "https://a.example:444/plain",
            "https://b.example/plain", "http://a.example/plain")
        #expect(routes(transport) == [nil, "444?", nil, nil, nil])
        #expect(services(manager) == ["a.example:443 444"])
    }

    @Test func `an alternative that works is used by all requests, and one that fails by none`() async throws {
        for hasWorked in [true, false] {
            let transport = MockTransport { request in
                request[AlternativeRoute.self]?.report(hasWorked)
                return .status(.ok, headers: [Self.field: #"h3=":444""#])
            }
            let manager = SessionManager(on: transport)
            try await get(manager, "https://a.example/", "https://a.example/", "https://a.example/")
            #expect(routes(transport) == [nil, "444?", hasWorked ? "444" : nil])
            #expect(services(manager) == ["a.example:443 444"])
        }
    }

    @Test func `one request at a time tries an alternative`() async throws {
        let requests = Lock<[String?]>([])
        let manager = Lock<SessionManager?>(nil)
        let transport = MockTransport { request in
            requests.withLock { $0.append(request[AlternativeRoute.self].map { "\($0.port)" }) }
            // The second request is sent while the first one tries.
            if request.url.path() == "/first", let manager = manager.withLock({ $0 }) {
                _ = try await manager.get("https://a.example/second")
            }
            return .status(.ok, headers: [Self.field: #"h3=":444""#])
        }
        let own = SessionManager(on: transport)
        manager.withLock { $0 = own }
        defer { manager.withLock { $0 = nil } }
        try await get(own, "https://a.example/", "https://a.example/first", "https://a.example/third")
        #expect(requests.withLock { $0 } == [nil, "444", nil, "444"])
    }

    @Test func `a request that cannot use an alternative does not keep others from trying it`() async throws {
        let routes = Lock<[String?]>([])
        let manager = Lock<SessionManager?>(nil)
        let transport = MockTransport { request in
            routes.withLock { $0.append(request[AlternativeRoute.self].map { "\($0.port)" }) }
            if request.method == .post, let manager = manager.withLock({ $0 }) {
                _ = try await manager.get("https://a.example/second")
            }
            return .status(.ok, headers: [Self.field: #"h3=":444""#])
        }
        let own = SessionManager(on: transport)
        manager.withLock { $0 = own }
        defer { manager.withLock { $0 = nil } }
        try await get(own, "https://a.example/")
        _ = try await own.post("https://a.example/first", body: .string("x"))
        #expect(routes.withLock { $0 } == [nil, nil, "444"])
    }

    @Test func `the offer is ignored over http, and of unverified servers`() async throws {
        for (policy, hostPolicies, verified) in verifiedHosts {
            let manager = SessionManager(on: transport()) {
                $0.tls.policy = policy
                $0.tls.hostPolicies = hostPolicies
                $0.usesStrictTransport = false
            }
            try await get(manager, "http://a.example/", "https://a.example/", "https://b.example/")
            #expect(services(manager) == verified.map { "\($0):443 444" })
        }
    }

    @Test func `only requests that leave the version open use an alternative`() async throws {
        let policies: [HTTPVersionPolicy] = [.http1, .http2PriorKnowledge, .http3, .http3Only]
        for policy in policies {
            let transport = transport()
            let manager = SessionManager(on: transport) { $0.httpVersion = policy }
            try await get(manager, "https://a.example/", "https://a.example/")
            #expect(routes(transport) == [nil, nil])
            #expect(services(manager) == ["a.example:443 444"])
        }
    }

    @Test func `a session that does not use alternatives neither learns nor uses them`() async throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/services"
        try Data(#"h2 b.example 443 h3 b.example 443 "20991231 23:59:59" 0 0"#.utf8).write(to: URL(filePath: path))
        let transport = transport()
        let manager = SessionManager(on: transport) { $0.usesAlternativeServices = false }
        #expect(try manager.alternativeServices.load(from: path) == 1)
        try await get(manager, "https://a.example/", "https://a.example/", "https://b.example/")
        #expect(routes(transport) == [nil, nil, nil])
        #expect(services(manager) == ["b.example:443 443"])
    }

    @Test func `offers are withdrawn by the server, and forgotten when asked`() async throws {
        let value = Lock(#"h3=":444""#)
        let transport = MockTransport { _ in .status(.ok, headers: [Self.field: value.withLock { $0 }]) }
        let manager = SessionManager(on: transport)
        try await get(manager, "https://a.example/", "https://b.example/", "https://c.example:1/")
        #expect(services(manager) == ["a.example:443 444", "b.example:443 444", "c.example:1 444"])
        value.withLock { $0 = "nonsense" }
        try await get(manager, "https://a.example/")
        #expect(services(manager).count == 3)
        value.withLock { $0 = "clear" }
        try await get(manager, "https://a.example/")
        #expect(services(manager) == ["b.example:443 444", "c.example:1 444"])
        manager.alternativeServices.remove("B.Example.")
        #expect(services(manager) == ["c.example:1 444"])
        manager.alternativeServices.removeAll()
        #expect(services(manager) == [])
    }

    @Test func `several fields are one list`() async throws {
        var fields = HTTPFields()
        for value in [#"h2=":1""#, #"h3=":2""#] { fields.append(HTTPField(name: Self.field, value: value)) }
        let transport = MockTransport(.status(.ok, headers: fields))
        let manager = SessionManager(on: transport)
        try await get(manager, "https://a.example/")
        #expect(services(manager) == ["a.example:443 2"])
    }

    @Test func `a misdirected request over HTTP 2 does not concern the alternative`() async throws {
        let transport = MockTransport(
            .status(.ok, headers: [Self.field: #"h3=":444""#]),
            .status(.misdirectedRequest, headers: [Self.field: "clear"]))
        let manager = SessionManager(on: transport)
        try await get(manager, "https://a.example/", "https://a.example/")
        #expect(services(manager) == ["a.example:443 444"])
    }

    /// A transport that uses alternative services, whose servers answer 421.
    private struct Misdirecting: Transport {
        let base = MockTransport { request in
            .status(request[AlternativeRoute.self] == nil ? .ok : .misdirectedRequest)
        }

        func open(
            _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
        ) async throws -> OpenResponse {
            var response = try await base.open(request, delivery: delivery, reporting: events)
            if request[AlternativeRoute.self] != nil { response.head.version = .http3 }
            return response
        }

        func shutdown() async { await base.shutdown() }
    }

    /// RFC 7838 §6.
    @Test(arguments: [false, true])
    func `an alternative that answers 421 is left, also if an evaluator decides about servers`(
        hasEvaluator: Bool
    ) async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(
            Data("h2 a.example 443 h3 a.example 443 \"20991231 23:59:59\" 0 0\n".utf8), to: "services")
        let manager = SessionManager {
            $0.transport = Misdirecting()
            if hasEvaluator { $0.tls.policy.evaluator = { _ in .followPolicy } }
        }
        _ = try manager.alternativeServices.load(from: path)
        #expect(services(manager) == ["a.example:443 443"])
        try await get(manager, "https://a.example/")
        #expect(services(manager) == [])
    }

    @Test func `the age of a response counts, and a stored response renews nothing`() async throws {
        let time = Lock(CacheTime(seconds: 1_800_000_000))
        let transport = MockTransport(
            .status(
                .ok, headers: [Self.field: #"h3=":444"; ma=100"#, .age: "30", .cacheControl: "max-age=1000"]))
        let manager = SessionManager(on: transport) {
            $0.cache = .memory()
            $0.now = { time.withLock { $0 } }
        }
        for second in [0, 50] {
            time.withLock { $0 = CacheTime(seconds: 1_800_000_000 + Int64(second)) }
            try await get(manager, "https://a.example/")
        }
        #expect(transport.requests.count == 1)
        #expect(
            manager.alternativeServices.entries.map { $0.expiry.timeIntervalSince1970 } == [1_800_000_070])
        time.withLock { $0 = CacheTime(seconds: 1_800_000_070) }
        #expect(services(manager) == [])
    }

    @Test func `files are those of curl, and private`() async throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/services"
        let store = SessionManager().alternativeServices
        #expect(try store.load(from: path) == 0)
        let lines = [
            #"h2 a.example 443 h3 a.example 444 "20991231 23:59:59" 1 0"#,
            #"h2 b.example 443 h3 b.example 444 "20001231 23:59:59" 0 0"#,
        ]
        try Data("# comment\r\n\(lines[0])\n\(lines[1])\nnonsense".utf8).write(to: URL(filePath: path))
        #expect(try store.load(from: path) == 1)
        try store.save(to: path)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "# Alt-Svc cache\n\(lines[0])\n")
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(throws: SessionError.self) { try store.save(to: "\(directory.path)/missing/services") }
        #expect(throws: SessionError.self) { try store.load(from: directory.path) }
    }
}
