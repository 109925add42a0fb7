// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct CookiesTests {
    /// A manager that uses libcurl, for which the stub server is every host of this domain.
    private func manager(
        for server: StubServer, hosts: [String] = [], configure: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        SessionManager(
            SessionConfiguration(baseURL: server.url("/")) {
                $0.proxy = .none
                $0.connection.hostOverrides = hosts.map {
                    ConnectionOptions.HostOverride(
                        host: $0, port: 80, address: "127.0.0.1", addressPort: Int(server.endpoint.port))
                }
                configure(&$0)
            })
    }

    /// The `Cookie` fields of the requests, each as a sorted list.
    private func cookies(_ server: StubServer) -> [[String]] {
        server.activity.requests.map { request in
            request.headers.values("Cookie").flatMap { $0.replacing("; ", with: ";").split(separator: ";") }
                .map(String.init).sorted()
        }
    }

    /// Sets these cookies in the response to the first request.
    private func serve(_ server: StubServer, _ lines: String...) {
        server.enqueue(.reply(headers: HeaderPairs(lines.map { HeaderPair("Set-Cookie", $0) })))
        server.fallback { _ in .text("end") }
    }

    @Test func `a server's cookies are sent back, in one field`() async throws {
        try await StubServer.with { server in
            // Without a path, a cookie belongs to the directory of the URL (RFC 6265 §5.1.4).
            serve(server, "a=1", "b=2; Path=/x", "c=3; Max-Age=0", "d=\"4 5\"; Path=/; HttpOnly; SameSite=Strict")
            let manager = manager(for: server)
            for path in ["x/y/first", "other", "x/z", "x/y/z?q"] { _ = try await manager.get(path) }
            #expect(cookies(server) == [[], ["d=\"4 5\""], ["b=2", "d=\"4 5\""], ["a=1", "b=2", "d=\"4 5\""]])
            #expect(server.activity.requests.allSatisfy { $0.headers.values("Cookie").count <= 1 })
        }
    }

    @Test func `cookies whose bytes are no UTF-8 are sent and removed, and not saved`() async throws {
        try await StubServer.with { server in
            let fields = ["n\u{E9}=1", "v=M\u{FC}ller", "p=1; Path=/\u{E9}", "plain=1"].map { "Set-Cookie: \($0)\r\n" }
            let latin1 = fields.joined().unicodeScalars.map { UInt8($0.value) }
            server.enqueue(
                Script([
                    .send(Data("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n".utf8) + latin1 + Data("\r\n".utf8)),
                    .end(.close),
                ]))
            server.fallback { _ in .text("end") }
            let manager = manager(for: server)
            for _ in 0..<2 { _ = try await manager.get("x") }
            #expect(cookies(server)[1] == ["n\u{E9}=1", "plain=1", "v=M\u{FC}ller"])
            #expect(
                await manager.cookies.export().split(separator: "\n").dropFirst().map { $0.suffix(7) } == ["plain\t1"])
            let names = Set(await manager.cookies.all().map(\.name))
            #expect(names == ["n\u{FFFD}", "v", "p", "plain"])
            await manager.cookies.removeAll { $0.name != "plain" }
            #expect(await manager.cookies.all().map(\.name) == ["plain"])
            _ = try await manager.get("x")
            #expect(cookies(server)[2] == ["plain=1"])
            await #expect(throws: SessionError.self) {
                try await manager.cookies.set(Cookie(name: "a", value: "M\u{FFFD}ller", domain: "example.com"))
            }
        }
    }

    @Test func `a host with a dot at its end has cookies of its own`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in
                .reply(headers: ["Set-Cookie": "a=1; Path=/", "Set-Cookie": "b=2; Domain=site.test."])
            }
            let manager = manager(for: server, hosts: ["site.test.", "site.test"])
            for url in ["http://site.test./", "http://site.test./", "http://site.test/"] {
                _ = try await manager.get(url)
            }
            #expect(cookies(server) == [[], ["a=1", "b=2"], []])
            let url = try #require(URL(string: "http://site.test./"))
            #expect(await Set(manager.cookies.cookies(for: url).map(\.name)) == ["a", "b"])
        }
    }

    @Test func `a transport that wraps another one and returns its features has its cookies`() async throws {
        struct Wrapper: Transport {
            let base: any Transport

            func open(
                _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
            ) async throws -> OpenResponse {
                try await base.open(request, delivery: delivery, reporting: events)
            }
            func shutdown() async { await base.shutdown() }
            var features: TransportFeatures { base.features }
        }
        try await StubServer.with { server in
            serve(server, "a=1")
            var configuration = SessionConfiguration(baseURL: server.url("/")) { $0.proxy = .none }
            configuration.transport = Wrapper(base: try configuration.makeTransport())
            let manager = SessionManager(configuration)
            _ = try await manager.get("x")
            #expect(await manager.cookies.all().map(\.name) == ["a"])
        }
    }

    @Test func `each manager has its own cookies`() async throws {
        try await StubServer.with { server in
            serve(server, "a=1; Path=/")
            let first = manager(for: server)
            _ = try await first.get("x")
            _ = try await first.get("x")
            _ = try await manager(for: server).get("x")
            #expect(cookies(server) == [[], ["a=1"], []])
        }
    }

    @Test func `cookies can be disabled for a request or a manager`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .reply(headers: ["Set-Cookie": "a=1; Path=/"]) }
            let without = manager(for: server) { $0.handlesCookies = false }
            for _ in 0..<2 { _ = try await without.get("x") }
            #expect(await without.cookies.all().isEmpty)
            var request = try without.request(.get, "x")
            request.handlesCookies = true
            for _ in 0..<2 { _ = try await without.data(for: request) }

            let with = manager(for: server)
            request.handlesCookies = false
            _ = try await with.data(for: request)
            #expect(await with.cookies.all().isEmpty)
            _ = try await with.get("x")
            _ = try await with.data(for: request)
            _ = try await with.get("x")
            #expect(cookies(server) == [[], [], [], ["a=1"], [], [], [], ["a=1"]])
        }
    }

    @Test func `an explicit Cookie field is sent after stored cookies, and alone if cookies are disabled`() async throws
    {
        try await StubServer.with { server in
            serve(server, "a=1; Path=/")
            let manager = manager(for: server)
            let headers: HTTPFields = [.cookie: "own=2; more=3", .cookie: "last=4"]
            for _ in 0..<2 { _ = try await manager.get("x", headers: headers) }
            _ = try await manager.get("x")
            var request = try manager.request(.get, "x", headers: headers)
            request.handlesCookies = false
            _ = try await manager.data(for: request)
            #expect(
                server.activity.requests.map { $0.headers.values("Cookie") } == [
                    ["own=2; more=3; last=4"], ["a=1; own=2; more=3; last=4"], ["a=1"], ["own=2; more=3", "last=4"],
                ])
        }
    }

    @Test func `redirects set cookies, and send those that match the next host`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                switch request.path {
                case "/start":
                    return .reply(status: 302, headers: ["Location": "/set", "Set-Cookie": "start=1; Path=/"])
                case "/set":
                    return .reply(
                        status: 302,
                        headers: [
                            "Location": "http://b.example/other", "Set-Cookie": "set=1; Path=/; Domain=a.example",
                        ])
                case "/other":
                    return .reply(
                        status: 302, headers: ["Location": "http://sub.a.example/end", "Set-Cookie": "other=1; Path=/"])
                default: return .text("end")
                }
            }
            let manager = manager(for: server, hosts: ["a.example", "b.example", "sub.a.example"])
            let request = try Request(url: url("http://a.example/start"), headers: [.cookie: "own=1"])
            let response = try await manager.data(for: request)
            #expect(response.text == "end")
            #expect(cookies(server) == [["own=1"], ["own=1", "start=1"], [], ["set=1"]])
        }
    }

    @Test(arguments: [
        ("a.example.com", "Domain=example.com", true), ("a.example.com", "Domain=.example.com", true),
        ("a.example.com", "Domain=com", false), ("a.example.co.uk", "Domain=co.uk", false),
        ("a.example.co.uk", "Domain=example.co.uk", true), ("a.github.io", "Domain=github.io", false),
        ("a.example.com", "Domain=b.example.com", false), ("a.example.com", "Domain=example.org", false),
        ("example.com", "Domain=a.example.com", false), ("bexample.com", "Domain=example.com", false),
    ])
    func `a host can set cookies for its own domain, but not for a public suffix`(
        host: String, domain: String, isKept: Bool
    ) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .reply(headers: ["Set-Cookie": "a=1; Path=/; \(domain)"]) }
            let manager = manager(for: server, hosts: [host])
            _ = try await manager.get("http://\(host)/")
            #expect(await manager.cookies.all().count == (isKept ? 1 : 0))
        }
    }

    @Test func `a secure cookie is neither set nor sent over http, except on the local machine`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .reply(headers: ["Set-Cookie": "a=1; Path=/; Secure"]) }
            let manager = manager(for: server, hosts: ["a.example"])
            _ = try await manager.get("http://a.example/")
            #expect(await manager.cookies.all().isEmpty)
            try await manager.cookies.set(Cookie(name: "b", value: "2", domain: "a.example", isSecure: true))
            _ = try await manager.get("http://a.example/")
            #expect(cookies(server) == [[], []])
        }
    }

    @Test(arguments: [
        "", "=", ";", "=value", "a=1\u{1}2; Path=/", "a=" + String(repeating: "x", count: 5000),
        "__Secure-a=1; Path=/", "__Host-a=1; Path=/; Domain=a.example",
        "a=1; Path=/; Expires=Thu, 01 Jan 1970 00:00:01 GMT", "a=1; Path=/; Max-Age=-5",
    ])
    func `an invalid Set-Cookie field sets no cookie`(line: String) async throws {
        try await StubServer.with { server in
            let manager = manager(for: server)
            serve(server, line)
            let response = try await manager.data(for: manager.request(.get, "x"))
            #expect(response.statusCode == 200)
            #expect(await manager.cookies.all() == [])
        }
    }

    @Test(arguments: [
        ("a=1; Path=/; Expires=nonsense", "a=1"), ("a=1; Path=nonsense", "a=1"), ("a=1;;;; Path=/;=;x=", "a=1"),
        ("a=1; Path=/; Max-Age=99999999999999999999", "a=1"), ("  a  =  1  ;Path=/", "a=1"), ("a=ä; Path=/", "a=ä"),
        ("a=1=2=3; Path=/", "a=1=2=3"), ("a=1, b=2; Path=/", "a=1, b=2"),
    ])
    func `malformed attributes are ignored`(line: String, expected: String) async throws {
        try await StubServer.with { server in
            let manager = manager(for: server)
            serve(server, line)
            for _ in 0..<2 { _ = try await manager.get("x") }
            #expect(cookies(server).last == [expected])
        }
    }

    @Test func `the number of cookies that a server can set is limited`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                .reply(
                    headers: HeaderPairs(
                        (0..<200).map { HeaderPair("Set-Cookie", "\(request.path.dropFirst())-\($0)=1; Path=/") }))
            }
            let manager = manager(for: server)
            for number in 0..<10 { _ = try await manager.get("\(number)") }
            #expect(await manager.cookies.all().count <= 500)
            #expect(server.activity.requests.allSatisfy { ($0.headers["Cookie"] ?? "").utf8.count <= 8190 })
        }
    }

    @Test func `concurrent requests set and send cookies`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                .reply(headers: ["Set-Cookie": "c\(request.path.dropFirst())=1; Path=/"])
            }
            let manager = manager(for: server)
            try await withThrowingTaskGroup { group in
                for number in 0..<40 { group.addTask { _ = try await manager.get("\(number)") } }
                for _ in 0..<20 { group.addTask { _ = await manager.cookies.all() } }
                try await group.waitForAll()
            }
            #expect(await manager.cookies.all().count == 40)
        }
    }
}

/// Access of a program to a manager's cookies.
@Suite(.timeLimit(.minutes(5))) struct CookieStoreTests {
    private let manager = SessionManager { $0.proxy = .none }
    private let first = Cookie(name: "first", value: "1", domain: "a.example", path: "/x")
    private let second = Cookie(
        name: "second", value: "", domain: "b.example", includesSubdomains: true, isSecure: true, isHTTPOnly: true,
        expires: Date(timeIntervalSince1970: 4_000_000_000))

    @Test func `cookies are set, listed and replaced`() async throws {
        try await manager.cookies.set(second, first)
        #expect(await manager.cookies.all() == [first, second])
        var changed = first
        changed.value = "changed"
        try await manager.cookies.set(changed)
        #expect(await manager.cookies.all() == [changed, second])
        let paths = try url("http://a.example/x/y")
        #expect(await manager.cookies.cookies(for: paths) == [changed])
        let below = try url("https://sub.b.example/")
        #expect(await manager.cookies.cookies(for: below) == [second])
    }

    @Test func `cookies are removed individually, by a predicate, or all at once`() async throws {
        var third = first
        third.path = "/"
        try await manager.cookies.set(first, second, third)
        // The value is not compared, even if it cannot be stored.
        var other = first
        other.value = "a;b"
        await manager.cookies.remove(other)
        #expect(await manager.cookies.all() == [third, second])
        await manager.cookies.removeAll { $0.domain == "b.example" }
        #expect(await manager.cookies.all() == [third])
        try await manager.cookies.set(first, second)
        await manager.cookies.removeAll()
        #expect(await manager.cookies.all().isEmpty)
        try await manager.cookies.set(first)
        #expect(await manager.cookies.all() == [first])
    }

    @Test func `cookies that are set are sent, and removed ones are not`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("end") }
            let manager = SessionManager(for: server)
            let cookie = Cookie(name: "a", value: "1", domain: "127.0.0.1")
            try await manager.cookies.set(cookie)
            _ = try await manager.get("x")
            await manager.cookies.remove(cookie)
            _ = try await manager.get("x")
            #expect(server.activity.requests.map { $0.headers["Cookie"] } == ["a=1", nil])
        }
    }

    @Test func `if one cookie cannot be sent, none is set`() async throws {
        let invalid = Cookie(name: "a", value: "1\r\nX: y", domain: "a.example")
        let error = try await sessionError { try await manager.cookies.set(first, invalid) }
        guard case .invalidCookie(name: "a") = error else { throw error }
        #expect(await manager.cookies.all().isEmpty)
    }

    @Test func `a cookie is stored if it has the attributes that the prefix of its name requires`() async throws {
        let secure = Cookie(
            name: "__Secure-a", value: "1", domain: "a.example", includesSubdomains: true, isSecure: true)
        let host = Cookie(name: "__Host-b", value: "1", domain: "a.example", isSecure: true)
        try await manager.cookies.set(secure, host)
        #expect(await manager.cookies.all().map(\.name).sorted() == ["__Host-b", "__Secure-a"])
        var plain = host
        plain.isSecure = false
        let error = try await sessionError { try await manager.cookies.set(plain) }
        guard case .invalidCookie(name: "__Host-b") = error else { throw error }
    }

    @Test func `an expired cookie is not listed`() async throws {
        var ended = first
        ended.expires = Date(timeIntervalSinceNow: -10)
        try await manager.cookies.set(ended, second)
        #expect(await manager.cookies.all() == [second])
    }

    @Test func `cookies are exported and imported as text`() async throws {
        try await manager.cookies.set(first, second)
        let text = await manager.cookies.export()
        #expect(
            text == """
                # Netscape HTTP Cookie File
                a.example\tFALSE\t/x\tFALSE\t0\tfirst\t1
                #HttpOnly_.b.example\tTRUE\t/\tTRUE\t4000000000\tsecond\t

                """)
        let other = SessionManager()
        #expect(try await other.cookies.import("nonsense\n\n" + text) == 2)
        #expect(await other.cookies.all() == [first, second])
    }

    @Test func `a line break of Unicode in a cookie file is part of a value`() async throws {
        let line = "a.example\tFALSE\t/\tFALSE\t0\tname\ta\u{2028}b"
        #expect(try await manager.cookies.import("\(line)\r\n") == 1)
        #expect(await manager.cookies.all().map(\.value) == ["a\u{2028}b"])
    }

    @Test func `cookies are saved to a file that only its owner can read, and loaded`() async throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/cookies.txt"
        #expect(try await manager.cookies.load(from: path) == 0)
        try await manager.cookies.set(first, second)
        try await manager.cookies.save(to: path)
        try await manager.cookies.save(to: path)
        #expect(try directory.contents == ["cookies.txt"])
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let other = SessionManager()
        #expect(try await other.cookies.load(from: path) == 2)
        #expect(await other.cookies.all() == [first, second])
    }

    @Test func `a file that cannot be written or read is an error`() async throws {
        let unwritable = try await sessionError { try await manager.cookies.save(to: "/nowhere/at/all") }
        #expect(unwritable.fileFailure?.path == "/nowhere/at/all")
        let unreadable = try await sessionError { try await manager.cookies.load(from: "/tmp") }
        #expect(unreadable.fileFailure?.path == "/tmp")
    }

    @Test func `cookies remain available after the manager was shut down`() async throws {
        try await manager.cookies.set(first)
        await manager.shutdown()
        #expect(await manager.cookies.all() == [first])
    }

    @Test func `with a transport without cookies, the store is empty and cannot set any`() async throws {
        let mock = SessionManager(on: MockTransport(.text("x")))
        #expect(await mock.cookies.all().isEmpty)
        await mock.cookies.remove(first)
        await mock.cookies.removeAll()
        let error = try await sessionError { try await mock.cookies.set(first) }
        guard case .cookiesNotStored = error else { throw error }
    }
}
