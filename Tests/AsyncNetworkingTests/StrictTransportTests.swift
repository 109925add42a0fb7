// SPDX-License-Identifier: MIT

import ANCache
import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

/// The field `Strict-Transport-Security`, by RFC 6797 §6.1.
@Suite struct StrictTransportFieldTests {
    @Test(arguments: [
        ("max-age=31536000", 31_536_000, false),
        ("max-age=15768000 ; includeSubDomains", 15_768_000, true),
        ("max-age=\"31536000\"", 31_536_000, false),
        ("max-age=0", 0, false),
        ("max-age=0; includeSubDomains", 0, true),
        ("INCLUDESUBDOMAINS;MAX-AGE=5", 5, true),
        ("max-age = 5", 5, false),
        ("\t max-age=5 \t;\t includeSubDomains \t", 5, true),
        (";; max-age=5;;", 5, false),
        ("max-age=5; preload; other=\"a;b\"; third=x", 5, false),
        ("max-age=00000000000000000000005", 5, false),
        ("max-age=99999999999999999999999", .max, false),
    ])
    func `a well-formed field has a maximum age`(value: String, age: Int64, includesSubdomains: Bool) throws {
        let field = try #require(StrictTransportField(value))
        #expect(field.maximumAge == age)
        #expect(field.includesSubdomains == includesSubdomains)
    }

    @Test(arguments: [
        "", ";", "includeSubDomains", "max-age", "max-age=", "max-age=\"\"", "max-age=-1", "max-age=+1", "max-age=1.5",
        "max-age=5s", "max-age=٥", "max-age=5; max-age=5", "max-age=5; includeSubDomains; includesubdomains",
        "max-age=5; includeSubDomains=1", "max-age=5; includeSubDomains=", "max-age=5, includeSubDomains",
        "max-age=5 includeSubDomains", "=5", "max-age=5; =x", "max-age=5; a; A=1", "max-age==5", "max-age=5 5",
    ])
    func `a malformed field is ignored`(value: String) {
        #expect(StrictTransportField(value) == nil)
    }
}

/// The known hosts, by RFC 6797 §8.
@Suite struct StrictTransportTableTests {
    private static let start = Date(timeIntervalSince1970: 1_800_000_000)

    @Test(arguments: [
        ("a.example", true), ("A.Example.", true), ("b.a.example", false), ("example", false), ("ba.example", false),
        ("all.example", true), ("x.all.example", true), ("x.y.ALL.example", true), ("xall.example", false),
        ("expired.example", false), ("x.expired.example", false), ("127.0.0.1", false), ("::1", false), ("", false),
    ])
    func `§8.2 a host is known by its name, or by a superdomain that includes it`(host: String, isKnown: Bool) throws {
        var table = HostTable<StrictTransportHost>()
        table.note(try #require(StrictTransportField("max-age=100")), from: HostName("a.example"), at: Self.start)
        table.note(
            try #require(StrictTransportField("max-age=100; includeSubDomains")), from: HostName("All.example."),
            at: Self.start)
        table.note(
            try #require(StrictTransportField("max-age=9; includeSubDomains")), from: HostName("expired.example"),
            at: Self.start)
        #expect(table.requiresTLS(HostName(host), at: Self.start.addingTimeInterval(10)) == isKnown)
    }

    @Test func `§8.1 each response renews, changes or removes its host`() throws {
        var table = HostTable<StrictTransportHost>()
        let host = HostName("a.example")
        let note = { (value: String, seconds: TimeInterval) in
            let field = try #require(StrictTransportField(value))
            table.note(field, from: host, at: Self.start.addingTimeInterval(seconds))
            return table.current(at: Self.start.addingTimeInterval(seconds)).map(\.fileLine)
        }
        #expect(try note("max-age=60; includeSubDomains", 0) == [#".a.example "20270115 08:01:00""#])
        #expect(try note("max-age=60", 30) == [#"a.example "20270115 08:01:30""#])
        #expect(try note("max-age=99999999999999999999", 30) == [#"a.example "unlimited""#])
        #expect(try note("max-age=0", 30) == [])
        #expect(table.isEmpty)
    }

    @Test(arguments: ["127.0.0.1", "[::1]", "127.1", "1.2.3.4.", "", "b\u{FC}cher.example", "a b", "a\"b"])
    func `§8.1.1 an address or an invalid name is not stored`(host: String) throws {
        var table = HostTable<StrictTransportHost>()
        table.note(try #require(StrictTransportField("max-age=100")), from: HostName(host), at: Self.start)
        #expect(table.isEmpty)
        #expect(StrictTransportHost(host: host) == nil)
    }

    @Test func `the first host to expire makes room for another one`() throws {
        var table = HostTable<StrictTransportHost>()
        for number in 0...HostTable<StrictTransportHost>.maximumCount {
            // The third is the first to expire.
            let age = number == 2 ? 50 : 100 + number
            table.note(
                try #require(StrictTransportField("max-age=\(age)")), from: HostName("\(number).example"),
                at: Self.start)
        }
        #expect(table.current(at: Self.start).count == HostTable<StrictTransportHost>.maximumCount)
        let long = String(repeating: "a.", count: 200_000) + "3.example"
        #expect(!table.requiresTLS(HostName(long), at: Self.start), "No such host exists.")
        #expect(!table.requiresTLS(HostName("2.example"), at: Self.start))
        #expect(table.requiresTLS(HostName("\(HostTable<StrictTransportHost>.maximumCount).example"), at: Self.start))
    }

    @Test func `hosts of servers make room for each other only, and not those of the program`() throws {
        var table = HostTable<StrictTransportHost>()
        let most = HostTable<StrictTransportHost>.maximumCount
        for number in 0..<most {
            // Each expires before those of servers.
            table.set(
                try #require(StrictTransportHost(host: "\(number).a.example", expiry: Self.start.addingTimeInterval(9)))
            )
        }
        func learn(_ host: String, _ age: Int) throws {
            table.note(
                try #require(StrictTransportField("max-age=\(age)")), from: HostName(host), at: Self.start)
        }
        for number in 0...most { try learn("\(number).b.example", 10 + number) }
        try learn("0.a.example", 1)
        #expect(table.current(at: Self.start).count == 2 * most)
        #expect(table.requiresTLS(HostName("0.a.example"), at: Self.start))
        #expect(!table.requiresTLS(HostName("0.b.example"), at: Self.start))
        // One that the program adds leaves its place to another.
        table.set(try #require(StrictTransportHost(host: "1.b.example", expiry: Self.start.addingTimeInterval(9))))
        try learn("c.example", 10)
        #expect(table.current(at: Self.start).count == 2 * most + 1)
        #expect(table.requiresTLS(HostName("2.b.example"), at: Self.start))
        table.remove(HostName("c.example"))
        try learn("d.example", 10)
        #expect(table.requiresTLS(HostName("2.b.example"), at: Self.start))
    }

    @Test func `lines of curl's file are read and written`() throws {
        for line in [#"a.example "20301231 23:59:59""#, #".a.example "unlimited""#] {
            #expect(StrictTransportHost(fileLine: line[...])?.fileLine == line)
        }
        let host = try #require(StrictTransportHost(fileLine: "\tA.example  \"19700101 00:00:10\""))
        #expect(host.expiry == Date(timeIntervalSince1970: 10))
        #expect(!host.includesSubdomains)
        for line in [
            "", "# a.example \"unlimited\"", "a.example", "a.example \"\"", "a.example \"soon\"", "a.example unlimited",
            "\"unlimited\"", "1.2.3.4 \"unlimited\"", ". \"unlimited\"", "a.example \"20301331 23:59:59\"",
            "a.example \"unlimited",
        ] {
            #expect(StrictTransportHost(fileLine: line[...]) == nil, "\(line)")
        }
    }
}

/// Sessions with hosts that require https.
@Suite(.timeLimit(.minutes(5))) struct StrictTransportTests {
    /// Returns a transport whose responses over https have the field.
    private func transport(_ value: String = "max-age=100") throws -> MockTransport {
        let name = HTTPField.Name.strictTransportSecurity
        return MockTransport { request in
            request.url.path() == "/plain" ? .text("") : .status(.ok, headers: [name: value])
        }
    }

    private func urls(_ transport: MockTransport) -> [String] {
        transport.requests.map(\.request.url.absoluteString)
    }

    @Test func `after a response over https, requests to the host are sent over https`() async throws {
        let transport = try transport()
        let manager = SessionManager(on: transport)
        for text in ["http://a.example/1", "https://a.example/2", "http://a.example:80/3", "HTTP://A.example:81/4?q#f"]
        {
            _ = try await manager.get(url(text))
        }
        #expect(
            urls(transport) == [
                "http://a.example/1", "https://a.example/2", "https://a.example/3", "https://A.example:81/4?q#f",
            ])
        #expect(manager.strictTransport.entries.map(\.host) == ["a.example"])
    }

    @Test(arguments: [true, false])
    func `a request that an interceptor sends to a known host over http is sent over https`(isAttempt: Bool)
        async throws
    {
        struct Plain: Interceptor {
            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                var request = request
                request.url = try url("http://a.example/plain")
                return try await next(request)
            }
        }
        let transport = try transport()
        let manager = SessionManager(on: transport) {
            if isAttempt { $0.attemptInterceptors = [Plain()] } else { $0.interceptors = [Plain()] }
        }
        manager.strictTransport.set(try #require(StrictTransportHost(host: "a.example")))
        _ = try await manager.get(url("https://b.example/"))
        #expect(urls(transport) == ["https://a.example/plain"])
    }

    @Test(
        arguments: [
            ("http://a.example/", "http://a.example/", true), ("http://a.example/", "https://a.example/", true),
            ("http://a.example:443/", "https://a.example/", true),
            ("http://a.example:81/", "http://a.example:81/", true),
            ("http://a.example/", "http://a.example:81/", false), ("http://a.example:81/", "https://a.example/", false),
            ("http://a.example/", "https://a.example:80/", false), ("http://b.example/", "https://b.example/", false),
        ], ["policy", "request", "token"])
    func `a credential for http is used over https for the same port of a known host`(
        scope: (origin: String, target: String, isUsed: Bool), kind: String
    ) async throws {
        let transport = try transport()
        let origin = try url(scope.origin)
        let ada = Credential(user: "ada", password: "lovelace", schemes: [.basic])
        let token = Authenticator(for: [origin], token: .init("1")) { _ in throw Planned() }
        let manager = SessionManager(on: transport) {
            if kind == "policy" { $0.authentication.credentials[origin] = ada }
            if kind == "token" { $0.authentication.authenticators = [token] }
        }
        manager.strictTransport.set(try #require(StrictTransportHost(host: "a.example")))
        var request = Request(url: origin)
        if kind == "request" { request.credential = ada }
        request.url = try url(scope.target)
        _ = try await manager.data(for: request)
        // The credential of a request belongs to its URL, which the program has changed to one over https.
        let isUsed = scope.isUsed && (kind != "request" || request.url.scheme == "http")
        #expect(transport.authorizations == [isUsed ? kind == "token" ? "Bearer 1" : adasField : nil])
        #expect(try transport.onlyRequest.request.url.scheme == "https")
    }

    @Test func `an interceptor that names a known host by http keeps its credentials`() async throws {
        let transport = try transport()
        let base = try url("https://a.example/")
        let manager = SessionManager(on: transport) {
            $0.authentication.credentials[base] = Credential(user: "ada", password: "lovelace", schemes: [.basic])
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    var request = request
                    request.url = try url("http://a.example/other")
                    return try await next(request)
                }
            ]
        }
        manager.strictTransport.set(try #require(StrictTransportHost(host: "a.example")))
        _ = try await manager.get(base)
        #expect(urls(transport) == ["https://a.example/other"])
        #expect(transport.requests.map(\.request.headers[.authorization]) == [adasField])
    }

    @Test func `limits count the requests to a known host together`() async throws {
        let transport = MockTransport(.status(.serviceUnavailable))
        let manager = SessionManager(on: transport) { $0.interceptors = [CircuitBreaker(failures: 2)] }
        manager.strictTransport.set(try #require(StrictTransportHost(host: "a.example")))
        for text in ["http://a.example/", "https://a.example/"] {
            _ = try await manager.data(for: Request(url: url(text)))
        }
        guard case .circuitOpen = try await sessionError({ _ = try await manager.get(url("http://a.example/")) }) else {
            throw Planned()
        }
    }

    @Test func `the field is ignored over http, from addresses, and of unverified servers`() async throws {
        for (policy, hostPolicies, known) in verifiedHosts {
            let manager = SessionManager(on: try transport()) {
                $0.tls.policy = policy
                $0.tls.hostPolicies = hostPolicies
            }
            for text in ["http://a.example/", "https://127.0.0.1/", "https://a.example/", "https://b.example/"] {
                _ = try await manager.get(url(text))
            }
            #expect(manager.strictTransport.entries.map(\.host) == known)
        }
    }

    @Test func `a request over a Unix socket concerns another server than the host of its URL`() async throws {
        let offer = HTTPField.Name(constant: "Alt-Svc")
        let transport = MockTransport { request in
            request.url.path() == "/first"
                ? .redirect(.found, to: "http://a.example/second")
                : .status(.ok, headers: [.strictTransportSecurity: "max-age=100", offer: "h3=\":443\""])
        }
        for isOfSession in [true, false] {
            let manager = SessionManager(on: transport) {
                if isOfSession { $0.connection.unixSocketPath = "/run/a.sock" }
                $0.headers[.authorization] = "Bearer a"
                $0.interceptors = [
                    Intercepting { request, next in
                        var request = request
                        request.url.append(queryItems: [URLQueryItem(name: "b", value: nil)])
                        return try await next(request)
                    }
                ]
            }
            manager.strictTransport.set(try #require(StrictTransportHost(host: "a.example")))
            for text in ["http://a.example/first", "https://b.example/third"] {
                var request = Request(url: try url(text))
                if !isOfSession { request.changeOptions { $0.connection.unixSocketPath = "/run/a.sock" } }
                _ = try await manager.data(for: request)
            }
            #expect(manager.strictTransport.entries.map(\.host) == ["a.example"])
            #expect(manager.alternativeServices.entries.isEmpty)
        }
        let expected = ["http://a.example/first?b", "http://a.example/second", "https://b.example/third?b"]
        #expect(urls(transport) == expected + expected)
        #expect(transport.requests.allSatisfy { $0.request.headers[.authorization] == "Bearer a" })
    }

    @Test func `a session that does not use it neither learns hosts nor changes URLs`() async throws {
        let transport = try transport()
        let manager = SessionManager(on: transport) { $0.usesStrictTransport = false }
        manager.strictTransport.set(try #require(StrictTransportHost(host: "b.example")))
        for text in ["https://a.example/", "http://a.example/", "http://b.example/"] {
            _ = try await manager.get(url(text))
        }
        #expect(urls(transport) == ["https://a.example/", "http://a.example/", "http://b.example/"])
        #expect(manager.strictTransport.entries.map(\.host) == ["b.example"])
    }

    @Test func `a redirect to http is followed over https, with its credentials`() async throws {
        let transport = MockTransport(
            .redirect(.found, to: "http://a.example/2"), .redirect(.found, to: "/3"), .text("end"),
            .redirect(.found, to: "http://b.example/"))
        let manager = SessionManager(on: transport)
        manager.strictTransport.set(try #require(StrictTransportHost(host: "a.example")))
        let request = try Request(url: url("http://a.example/1"), headers: [.authorization: "secret"])
        #expect(try await manager.data(for: request).text == "end")
        #expect(urls(transport) == (1...3).map { "https://a.example/\($0)" })
        #expect(transport.requests.map(\.request.headers[.authorization]) == ["secret", "secret", "secret"])
        let error = try await sessionError { _ = try await manager.get(url("https://a.example/")) }
        #expect(error.redirectFailure == .downgrade(to: "http://b.example/"))
    }

    @Test func `a redirect that the program decides about is sent over https, too`() async throws {
        let transport = MockTransport(.redirect(.found, to: "/2"), .text("end"))
        let target = try url("http://b.example/")
        let manager = SessionManager(on: transport) {
            $0.redirectPolicy.decision = { redirection in
                var next = redirection.proposed
                next.url = target
                return next
            }
        }
        manager.strictTransport.set(try #require(StrictTransportHost(host: "b.example")))
        _ = try await manager.get(url("http://a.example/"))
        #expect(urls(transport) == ["http://a.example/", "https://b.example/"])
    }

    @Test func `entries expire, and can be removed`() async throws {
        let transport = try transport("max-age=0")
        let time = Lock(CacheTime(seconds: 1_800_000_000))
        let manager = SessionManager(on: transport) { $0.now = { time.withLock { $0 } } }
        let store = manager.strictTransport
        let expiry = Date(timeIntervalSince1970: 1_800_000_010)
        store.set(try #require(StrictTransportHost(host: "a.example", expiry: expiry, includesSubdomains: true)))
        store.set(try #require(StrictTransportHost(host: "B.example")))
        store.set(try #require(StrictTransportHost(host: "c.example")))
        _ = try await manager.get(url("http://x.a.example/"))
        time.withLock { $0 = CacheTime(seconds: 1_800_000_010) }
        _ = try await manager.get(url("http://x.a.example/"))
        #expect(store.entries.map(\.host) == ["b.example", "c.example"])
        store.remove("b.Example.")
        #expect(store.entries.map(\.host) == ["c.example"])
        // The server removes itself.
        _ = try await manager.get(url("http://c.example/"))
        #expect(urls(transport) == ["https://x.a.example/", "http://x.a.example/", "https://c.example/"])
        #expect(store.entries == [])
        store.set(try #require(StrictTransportHost(host: "d.example")))
        store.removeAll()
        #expect(store.entries == [])
    }

    @Test func `a stored response does not renew its host`() async throws {
        let time = Lock(CacheTime(seconds: 1_800_000_000))
        let transport = MockTransport(
            .status(.ok, headers: [.strictTransportSecurity: "max-age=100", .cacheControl: "max-age=1000"]))
        let manager = SessionManager(on: transport) {
            $0.cache = .memory()
            $0.now = { time.withLock { $0 } }
        }
        for second in [0, 50] {
            time.withLock { $0 = CacheTime(seconds: 1_800_000_000 + Int64(second)) }
            _ = try await manager.get(url("http\(second == 0 ? "s" : "")://a.example/"))
        }
        #expect(urls(transport) == ["https://a.example/"])
        #expect(manager.strictTransport.entries.map { $0.expiry.timeIntervalSince1970 } == [1_800_000_100])
    }

    @Test func `files are those of curl, and private`() async throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/hosts"
        // 2001-09-09 01:46:40.
        let store = SessionManager { $0.now = { CacheTime(seconds: 1_000_000_000) } }.strictTransport
        #expect(try store.load(from: path) == 0)
        try Data("# comment\r\n.a.example \"20010909 01:46:41\"\nb.example \"20010909 01:46:40\"\nnonsense".utf8)
            .write(to: URL(filePath: path))
        #expect(try store.load(from: path) == 1)
        store.set(try #require(StrictTransportHost(host: "c.example")))
        try store.save(to: path)
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text == "# HSTS cache\n.a.example \"20010909 01:46:41\"\nc.example \"unlimited\"\n")
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(throws: SessionError.self) { try store.save(to: "\(directory.path)/missing/hosts") }
        #expect(throws: SessionError.self) { try store.load(from: directory.path) }
    }

    @Test(.enabled(if: HostName("bücher.test").ascii != nil))
    func `an internationalized host is known by its ASCII form`() async throws {
        var profile = TestCertificate.Profile.localhost
        profile.dnsNames = ["xn--bcher-kva.test"]
        let root = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(root.issue(profile)))) { server in
            server.route("/", Script([.reply(Reply(headers: ["Strict-Transport-Security": "max-age=100"]))]))
            let port = server.endpoint.port
            let manager = SessionManager {
                $0.proxy = .none
                $0.tls.trustRoots = .pem(root.pemData)
                $0.connection.hostOverrides = [.init(host: "", port: port, address: "127.0.0.1", addressPort: port)]
            }
            _ = try await manager.get(url("https://b%C3%BCcher.test:\(port)/"))
            #expect(manager.strictTransport.entries.map(\.host) == ["xn--bcher-kva.test"])
            for host in ["b%C3%BCcher.test", "B%C3%9CCHER.test", "xn--bcher-kva.test"] {
                let response = try await manager.get(url("http://\(host):\(port)/"))
                #expect(response.head.url.isHTTPS)
            }
            #expect(
                server.activity.requests.map { $0.headers["Host"] }
                    == Array(repeating: "xn--bcher-kva.test:\(port)", count: 4))
        }
    }

    @Test func `the server sees TLS on the port of the URL, also for WebSockets`() async throws {
        let root = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(root.issue()))) { server in
            server.route("/", Script([.reply(Reply(headers: ["Strict-Transport-Security": "max-age=100"]))]))
            server.route("/socket", Script([.acceptWebSocket(), .echoMessages()]))
            let manager = SessionManager {
                $0.proxy = .none
                $0.tls.trustRoots = .pem(root.pemData)
            }
            let port = server.endpoint.port
            _ = try await manager.get(url("https://localhost:\(port)/"))
            let response = try await manager.get(url("http://localhost:\(port)/"))
            #expect(response.head.url.absoluteString == "https://localhost:\(port)/")
            let message = try await manager.withWebSocket(Request(url: url("ws://localhost:\(port)/socket"))) {
                socket in
                try await socket.send(.text("over TLS"))
                return try await socket.first { _ in true }
            }
            #expect(message == .text("over TLS"))
            #expect(server.activity.requests.count == 3)
        }
    }
}
