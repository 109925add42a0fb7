// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct ConnectionsTests {
    private func options(_ change: (inout ConnectionOptions) -> Void) -> TransferOptions {
        .with { change(&$0.connection) }
    }

    // MARK: Where to

    @Test func `a Unix-domain socket takes the place of host and port`() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("an-\(UUID()).sock").path
        try await StubServer.with(.init(.unix(path: path))) { server in
            server.fallback { _ in .text("ok") }
            let transport = try CurlTransport()
            let request = Request(
                url: try #require(URL(string: "http://example.test/path")),
                options: options { $0.unixSocketPath = path })
            #expect(try await transport.text(request) == "ok")
            let received = try await server.requests(count: 1)[0]
            #expect(received.target == "/path")
            #expect(received.headers["Host"] == "example.test")
            // A policy for addresses does not concern it, also on a reused connection.
            let guarded = Request(
                url: request.url,
                options: options {
                    $0.unixSocketPath = path
                    $0.addresses = .publicOnly()
                })
            for _ in 0..<2 { #expect(try await transport.text(guarded) == "ok") }
        }
        let missing = Request(
            url: try #require(URL(string: "http://localhost/")), options: options { $0.unixSocketPath = path })
        let error = try await CurlTransport().failure(missing)
        guard case .cannotConnect(.refused) = error.reason else { throw error }
    }

    @Test func `an early response over a Unix-domain socket is received although the server closes the connection`()
        async throws
    {
        let path = "/tmp/an-socket-\(UInt64.random(in: 0 ... .max))"
        try await StubServer.with(.init(.unix(path: path))) { server in
            let script = Script(
                [
                    .readBody(upTo: 100_000), .reply(Reply(status: 413, body: .string("too large"))),
                    .end(.closeWithoutReading),
                ], readsBodyFirst: false)
            server.fallback { _ in script }
            let transport = try CurlTransport()
            let options = options { $0.unixSocketPath = path }
            let count = rounds(400, few: 100)
            var outcomes: [String: Int] = [:]
            try await withThrowingTaskGroup { group in
                for _ in 0..<count {
                    group.addTask {
                        let body = RequestBody.stream(Generated(count: 1 << 20))
                        let request = server.request(method: .post, body: body, options: options)
                        do { return try await transport.text(request) } catch let error as TransportError {
                            return "\(error.reason)"
                        }
                    }
                }
                for try await outcome in group { outcomes[outcome, default: 0] += 1 }
            }
            #expect(outcomes == ["too large": count])
        }
    }

    @Test func `requests over one Unix-domain socket do not disturb each other`() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("an-\(UUID()).sock").path
        try await StubServer.with(.init(.unix(path: path))) { server in
            server.route("/large", .generated(8 << 20))
            server.fallback { _ in .text("ok") }
            let options = options { $0.unixSocketPath = path }
            let transport = try CurlTransport()
            try await transport.stream(server.request("/large", options: options)) { _, body in
                // The response waits in its socket, which must not be taken for that of another request.
                for _ in 0..<5 { #expect(try await transport.text(server.request(options: options)) == "ok") }
                var count = 0
                for try await chunk in body { count += chunk.count }
                #expect(count == 8 << 20)
            }
            #expect(server.activity.connectionsAccepted == 6)
        }
    }

    @Test func `a host override leads a name to an address, and no other port`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let connection = options {
                $0.hostOverrides = [
                    .init(host: "one.test", port: 80, address: "127.0.0.1", addressPort: server.endpoint.port),
                    .init(host: "two.test", port: 8080, address: "127.0.0.1", addressPort: server.endpoint.port),
                ]
            }
            let transport = try CurlTransport()
            for text in ["http://one.test/1", "http://two.test:8080/2"] {
                let request = Request(url: try #require(URL(string: text)), options: connection)
                #expect(try await transport.text(request) == "ok")
            }
            let received = try await server.requests(count: 2)
            #expect(received.map { $0.headers["Host"] } == ["one.test", "two.test:8080"])
            // The same handle without the override resolves the name.
            let error = try await transport.failure(
                Request(url: try #require(URL(string: "http://three.invalid/")), options: options { _ in }))
            guard case .cannotResolve = error.reason else { throw error }
        }
    }

    @Test(arguments: [nil, 1])
    func `names are resolved by DNS over HTTPS if a server is given`(limit: Int?) async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            try await StubServer.with(.init(tls: .init(try authority.issue()))) { resolver in
                resolver.route("/dns-query", method: "POST") { Self.answer(to: $0.body) }
                let connection = options { $0.dnsOverHTTPS = resolver.url("/dns-query") }
                let request = Request(
                    url: server.url(host: "name.invalid"),
                    options: connection.with { $0.tls.trustRoots = .pem(authority.pemData) })
                var limits = ConnectionLimits()
                limits.maximumConnections = limit
                let transport = try CurlTransport(limits: limits)
                #expect(try await transport.text(request) == "ok")
                let names = resolver.activity.requests.map { $0.body.dropFirst(12).prefix(14) }
                #expect(!names.isEmpty)
                #expect(names.allSatisfy { $0 == Data("\u{4}name\u{7}invalid\0".utf8) })
            }
        }
    }

    /// Policies are not applied to the resolver's connections, which libcurl keeps with those of requests.
    @Test func `a request to the resolver itself has a connection of its own`() async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            try await StubServer.with(.init(tls: .init(try authority.issue()))) { resolver in
                resolver.route("/dns-query", method: "POST") { Self.answer(to: $0.body) }
                resolver.fallback { _ in .text("not DNS") }
                let options = options { $0.dnsOverHTTPS = resolver.url("/dns-query") }
                    .with { $0.tls.trustRoots = .pem(authority.pemData) }
                let transport = try CurlTransport()
                #expect(
                    try await transport.text(Request(url: server.url(host: "name.invalid"), options: options)) == "ok")
                for _ in 0..<2 {
                    let other = Request(url: resolver.url("/other"), options: options)
                    #expect(try await transport.text(other) == "not DNS")
                }
                let (queries, others) = resolver.activity.requests.reduce(into: (Set<Int>(), Set<Int>())) {
                    if $1.path == "/other" { $0.1.insert($1.connection) } else { $0.0.insert($1.connection) }
                }
                #expect(!queries.isEmpty)
                #expect(others.count == 1)
                #expect(queries.isDisjoint(with: others))
            }
        }
    }

    /// Only 127.0.0.1 accepts connections; in whatever order libcurl tries the addresses, another one is tried before.
    @Test func `a connection to a further address of a name is kept, too`() async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            try await StubServer.with(.init(tls: .init(try authority.issue()))) { resolver in
                resolver.route("/dns-query", method: "POST") {
                    Self.answer(to: $0.body, addresses: [2, 1, 3].map(Self.local))
                }
                let options = options { $0.dnsOverHTTPS = resolver.url("/dns-query") }
                    .with { $0.tls.trustRoots = .pem(authority.pemData) }
                let request = Request(url: server.url(host: "name.invalid"), options: options)
                let transport = try CurlTransport()
                let first = try await transport.ending(of: request).metrics
                #expect(first.remoteAddress?.host == "127.0.0.1")
                #expect(!first.isConnectionReused)
                #expect(first.sendCount == 1)
                for _ in 0..<2 { #expect(try await transport.ending(of: request).metrics.isConnectionReused) }
                #expect(server.activity.connectionsAccepted == 1)
            }
        }
    }

    /// In whatever order libcurl tries the addresses, a silent one is tried before 127.0.0.1, and then two that cannot
    /// be reached, which the system says at once.
    @Test func `a silent address of a name does not hide the next ones`() async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let silent = try [2, 3].map { try DeafPort(.full, end: $0, port: server.endpoint.port) }
            try await StubServer.with(.init(tls: .init(try authority.issue()))) { resolver in
                let unreachable = [[127, 255, 255, 255], [255, 255, 255, 255]] as [[UInt8]]
                resolver.route("/dns-query", method: "POST") {
                    Self.answer(
                        to: $0.body,
                        addresses: [Self.local(2)] + unreachable + [Self.local(1)] + unreachable + [Self.local(3)])
                }
                let options = options { $0.dnsOverHTTPS = resolver.url("/dns-query") }.with {
                    $0.tls.trustRoots = .pem(authority.pemData)
                    $0.timeouts.connect = .seconds(4)
                }
                let request = Request(url: server.url(host: "name.invalid"), options: options)
                let transport = try CurlTransport()
                #expect(try await transport.text(request) == "ok")
            }
            withExtendedLifetime(silent) {}
        }
    }

    /// An address of this machine.
    private static func local(_ end: UInt8) -> [UInt8] { [127, 0, 0, end] }

    /// Answers a DNS query for IPv4 addresses with 127.0.0.1 or other ones, and another one with no record. See RFC 1035
    /// §4.1.
    private static func answer(to query: Data, addresses: [[UInt8]] = [local(1)]) -> Script {
        let isForIPv4 = query.dropFirst(26).prefix(2) == Data([0, 1])
        let addresses = isForIPv4 ? addresses : []
        let header: [UInt8] = [0, 0, 0x81, 0x80, 0, 1, 0, UInt8(addresses.count), 0, 0, 0, 0]
        let records = addresses.flatMap { ([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4] as [UInt8]) + $0 }
        let question = query.dropFirst(12).prefix(18)
        return .data(Data(header) + question + Data(records), headers: ["Content-Type": "application/dns-message"])
    }

    @Test func `IPv6 works, and the version of IP can be chosen`() async throws {
        try await StubServer.with(.init(.ipv6)) { server in
            server.fallback { _ in .text("ok") }
            let transport = try CurlTransport()
            let metrics = try await transport.ending(of: server.request(options: options { $0.ipVersion = .v6 }))
                .metrics
            #expect(metrics.remoteAddress == SocketAddress(host: "::1", port: server.endpoint.port))
            let error = try await transport.failure(server.request(options: options { $0.ipVersion = .v4 }))
            switch error.reason {
            case .cannotResolve, .cannotConnect: break
            default: throw error
            }
        }
    }

    @Test func `the local address can be chosen, and one that is not here is an error`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let transport = try CurlTransport()
            let here = server.request(options: options { $0.localInterface = "host!127.0.0.2" })
            #expect(try await transport.ending(of: here).metrics.localAddress?.host == "127.0.0.2")
            let elsewhere = server.request(options: options { $0.localInterface = "host!192.0.2.1" })
            let error = try await transport.failure(elsewhere)
            guard case .cannotConnect(.localAddress) = error.reason else { throw error }
        }
    }

    // MARK: Proxies

    private func proxied(_ kind: Proxy.Kind, _ proxy: StubServer, bypass: [String] = []) -> TransferOptions {
        proxied(kind, port: proxy.endpoint.port, bypass: bypass)
    }

    private func proxied(_ kind: Proxy.Kind, port: Int, bypass: [String] = []) -> TransferOptions {
        TransferOptions().with {
            $0.proxy = .proxy(
                Proxy(
                    kind, host: "127.0.0.1", port: port,
                    credential: Credential(user: "user", password: "pass:word"), bypass: bypass))
        }
    }

    @Test func `an HTTP proxy gets the whole URL and the credentials`() async throws {
        try await StubServer.with { proxy in
            proxy.fallback { _ in .text("from the proxy") }
            let url = try #require(URL(string: "http://origin.invalid:81/path?q"))
            let request = Request(url: url, options: proxied(.http, proxy))
            #expect(try await CurlTransport().text(request) == "from the proxy")
            let received = try await proxy.requests(count: 1)[0]
            #expect(received.target == "http://origin.invalid:81/path?q")
            #expect(received.headers["Host"] == "origin.invalid:81")
            #expect(received.headers["Proxy-Authorization"] == "Basic dXNlcjpwYXNzOndvcmQ=")
        }
    }

    private static func authorizations(_ server: StubServer) -> [String] {
        server.activity.requests.map {
            "\($0.connection) \($0.method) \($0.headers.values("Proxy-Authorization").joined(separator: ", "))"
        }
    }

    @Test func `the request's own field for a proxy replaces the credential`() async throws {
        try await StubServer.with { proxy in
            proxy.fallback { _ in .text("from the proxy") }
            let url = try #require(URL(string: "http://origin.invalid/"))
            let transport = try CurlTransport()
            let options = proxied(.http, proxy)
            for headers in [[.proxyAuthorization: "Bearer a"], [.proxyAuthorization: ""], [:]] as [HTTPFields] {
                let request = Request(url: url, headers: headers, options: options)
                #expect(try await transport.text(request) == "from the proxy")
            }
            #expect(
                Self.authorizations(proxy) == [
                    "0 GET Bearer a", "0 GET ", "0 GET Basic dXNlcjpwYXNzOndvcmQ=",
                ])
        }
    }

    @Test(arguments: [AuthenticationScheme.digest, .ntlm, .basic])
    func `the request's own field for a proxy replaces a credential by any scheme`(scheme: AuthenticationScheme)
        async throws
    {
        try await StubServer.with { proxy in
            let challenge = scheme == .digest ? "Digest realm=\"x\", nonce=\"n\", qop=\"auth\"" : "NTLM"
            proxy.fallback { _ in .reply(status: 407, headers: ["Proxy-Authenticate": challenge]) }
            let url = try #require(URL(string: "http://origin.invalid/"))
            let options = TransferOptions.with {
                let credential = Credential(user: "user", password: "password", schemes: [scheme])
                $0.proxy = .proxy(
                    Proxy(.http, host: "127.0.0.1", port: proxy.endpoint.port, credential: credential))
            }
            let request = Request(url: url, headers: [.proxyAuthorization: "Bearer a"], options: options)
            _ = try? await CurlTransport().text(request)
            #expect(Self.authorizations(proxy) == ["0 GET Bearer a"])
        }
    }

    @Test func `a proxy opens a tunnel for the request's own field, which the server does not get`() async throws {
        try await StubServer.with { proxy in
            proxy.fallback { $0.method == "CONNECT" ? .status(200) : .text("from the server") }
            let url = try #require(URL(string: "http://origin.invalid/"))
            let transport = try CurlTransport()
            let options = proxied(.http, proxy).with {
                $0.connection.hostOverrides = [.init(host: "", port: 80, address: "other.invalid")]
            }
            for value in ["Bearer a", "Bearer a", "Bearer b"] {
                let request = Request(url: url, headers: [.proxyAuthorization: value], options: options)
                #expect(try await transport.text(request) == "from the server")
            }
            #expect(
                Self.authorizations(proxy) == [
                    "0 CONNECT Bearer a", "0 GET ", "0 GET ", "1 CONNECT Bearer b", "1 GET ",
                ])
        }
    }

    @Test func `a field for a proxy is not sent without an HTTP proxy`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("direct") }
            let transport = try CurlTransport()
            let bypassed = TransferOptions.with {
                $0.proxy = .proxy(Proxy(.http, host: "127.0.0.1", port: 1, bypass: ["127.0.0.1"]))
            }
            for options in [.with { $0.proxy = .none }, bypassed] {
                let request = server.request(headers: [.proxyAuthorization: "Bearer a"], options: options)
                #expect(try await transport.text(request) == "direct")
            }
            #expect(Self.authorizations(server) == ["0 GET ", "0 GET "])
        }
    }

    @Test func `a connection to a proxy over TLS serves no request that does not trust the proxy`() async throws {
        let authority = try TestCertificateAuthority()
        let other = try TestCertificateAuthority(name: "Other")
        try await StubServer.with(.init(tls: .init(try authority.issue()))) { proxy in
            proxy.fallback { _ in .text("from the proxy") }
            let transport = try CurlTransport()
            let url = try #require(URL(string: "http://origin.invalid/"))
            func request(_ roots: TestCertificateAuthority) -> Request {
                Request(url: url, options: proxied(.https, proxy).with { $0.tls.trustRoots = .pem(roots.pemData) })
            }
            for _ in 0..<2 { #expect(try await transport.text(request(authority)) == "from the proxy") }
            let failure = try await transport.failure(request(other))
            guard case .proxy(.tls(.unknownAuthority)) = failure.reason else { throw failure }
            // libcurl 8.21 uses no such connection again.
            #expect(proxy.activity.requests.count == 2)
        }
    }

    @Test func `a proxy that forwards a request is spoken to by HTTP 1, also if the server is known to speak HTTP 2`()
        async throws
    {
        try await StubServer.with { proxy in
            proxy.fallback { _ in
                Script([.send(Data("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".utf8)), .hang])
            }
            let url = try #require(URL(string: "http://origin.invalid/"))
            let options = proxied(.http, proxy).with {
                $0.httpVersion = .http2PriorKnowledge
                $0.timeouts.idle = .seconds(5)
            }
            #expect(try await CurlTransport().text(Request(url: url, options: options)) == "hello")
        }
    }

    @Test(arguments: [true, false], [true, false])
    func `the trusted authorities hold for a proxy over TLS, too`(isTrusted: Bool, isText: Bool) async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(try authority.issue()))) { proxy in
            proxy.fallback { _ in .text("from the proxy") }
            let trusted = isTrusted ? authority : try TestCertificateAuthority(name: "Other")
            let roots = isText ? trusted.pemData : try #require(PEM.certificates(in: trusted.pemData).first)
            let request = Request(
                url: try #require(URL(string: "http://origin.invalid/")),
                options: proxied(.https, proxy).with { $0.tls.trustRoots = .pem(roots) })
            let transport = try CurlTransport()
            if isTrusted {
                #expect(try await transport.text(request) == "from the proxy")
            } else {
                let failure = try await transport.failure(request)
                guard case .proxy(.tls(.unknownAuthority)) = failure.reason else { throw failure }
                #expect(proxy.activity.requests.isEmpty)
            }
        }
    }

    @Test(arguments: [TrustRoots.pem(Data("no roots".utf8)), .file("/missing")])
    func `roots for a proxy over TLS that cannot be read fail the request`(roots: TrustRoots) async throws {
        try await StubServer.with(.init(tls: .init(try TestCertificate.selfSigned()))) { proxy in
            let request = Request(
                url: try #require(URL(string: "http://origin.invalid/")),
                options: proxied(.https, proxy).with { $0.tls.trustRoots = roots })
            #expect(try await CurlTransport().failure(request).reason == .tls(.badTrustRoots))
        }
    }

    @Test(arguments: [0, 1])
    func `a challenge whose answer has no connection is not the response`(length: Int) async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(try authority.issue()))) { proxy in
            proxy.greet(.serve, .end(.reset))
            proxy.fallback { _ in
                let headers: HeaderPairs = [
                    "Proxy-Authenticate": "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"", "Connection": "close",
                ]
                let body = String(repeating: "x", count: length)
                return Script([.reply(Reply(status: 407, headers: headers, body: .string(body)))])
            }
            let options = TransferOptions.with {
                $0.tls.trustRoots = .pem(authority.pemData)
                $0.proxy = .proxy(
                    Proxy(
                        .https, host: "127.0.0.1", port: proxy.endpoint.port,
                        credential: Credential(user: "user", password: "pass", schemes: [.digest])))
            }
            let request = Request(url: try #require(URL(string: "http://origin.invalid/")), options: options)
            let failure = try await CurlTransport().failure(request)
            switch failure.reason {
            case .proxy, .cannotConnect: break
            default: throw failure
            }
        }
    }

    @Test(arguments: [
        (TestCertificate.Profile.expired, TransportError.TLSFailure.certificateExpired), (.wrongHost, .wrongHost),
    ])
    func `a proxy over TLS whose certificate is not good is refused`(
        profile: TestCertificate.Profile, expected: TransportError.TLSFailure
    ) async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(try authority.issue(profile)))) { proxy in
            let request = Request(
                url: try #require(URL(string: "http://origin.invalid/")),
                options: proxied(.https, proxy).with { $0.tls.trustRoots = .pem(authority.pemData) })
            let error = try await CurlTransport().failure(request)
            #expect(error.reason == .proxy(.tls(expected)))
            #expect(error.context.host == "127.0.0.1")
        }
    }

    @Test func `hosts can bypass the proxy`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("direct") }
            try await StubServer.with { proxy in
                let request = server.request(options: proxied(.http, proxy, bypass: ["127.0.0.1"]))
                let text = try await CurlTransport().text(request)
                #expect(text == "direct")
                #expect(proxy.activity.connectionsAccepted == 0)
            }
        }
    }

    @Test func `proxies of different exchanges do not mix`() async throws {
        try await StubServer.with { server in
            try await StubServer.with { proxy in
                server.fallback { _ in .text("direct") }
                proxy.fallback { _ in .text("proxied") }
                let transport = try CurlTransport()
                for _ in 0..<3 {
                    #expect(try await transport.text(server.request(options: .with { _ in })) == "direct")
                    #expect(try await transport.text(server.request(options: proxied(.http, proxy))) == "proxied")
                }
                #expect(try await server.requests(count: 3)[0].headers["Proxy-Authorization"] == nil)
            }
        }
    }

    @Test(arguments: [407, 403, 502])
    func `a refused tunnel is the proxy's error`(status: Int) async throws {
        try await StubServer.with { proxy in
            proxy.fallback { _ in .reply(status: status, headers: ["Proxy-Authenticate": "Basic realm=\"x\""]) }
            let url = try #require(URL(string: "https://origin.invalid/"))
            let error = try await CurlTransport().failure(Request(url: url, options: proxied(.http, proxy)))
            guard case .proxy(let failure) = error.reason else { throw error }
            let context = error.context
            #expect(failure == (status == 407 ? .authenticationRequired : .tunnelRefused(status: status)))
            #expect(context.host == "127.0.0.1")
            #expect(try await proxy.requests(count: 1)[0].method == "CONNECT")
        }
    }

    @Test(arguments: [Script.close, Script([.end(.reset)]), .raw("HTTP/1.1 200 O")])
    func `a proxy that ends the connection instead of opening a tunnel is the proxy's error`(end: Script) async throws {
        try await StubServer.with { proxy in
            proxy.fallback { _ in end }
            let url = try #require(URL(string: "https://origin.invalid/"))
            let error = try await CurlTransport().failure(
                Request(method: .post, url: url, body: .bytes(Data("a".utf8)), options: proxied(.http, proxy)))
            #expect(error.reason == .proxy(.handshake))
            #expect(error.context.host == "127.0.0.1")
        }
    }

    /// libcurl before 8.8 decodes credentials for proxies.
    @Test(arguments: ["p%41ss%zz+100%25", "%00", "%"], [true, false])
    func `credentials for a proxy are sent as they are`(password: String, isRequests: Bool) async throws {
        try await StubServer.with { proxy in
            proxy.fallback { .text($0.headers["Proxy-Authorization"] ?? "none") }
            let credential = Credential(user: "us%41er", password: password)
            let options = TransferOptions.with {
                $0.proxy = .proxy(
                    Proxy(
                        .http, host: "127.0.0.1", port: proxy.endpoint.port,
                        credential: isRequests ? nil : credential))
            }
            var request = Request(url: try #require(URL(string: "http://origin.invalid/")), options: options)
            if isRequests {
                var authentication = TransportAuthentication()
                authentication.proxy = .init(credential, by: .basic)
                request.transportAuthentication = authentication
            }
            let text = Data("us%41er:\(password)".utf8).base64EncodedString()
            #expect(try await CurlTransport().text(request) == "Basic \(text)")
        }
    }

    @Test func `a challenge of a proxy is answered with the credential as it is`() async throws {
        try await StubServer.with { proxy in
            proxy.fallback { request in
                guard let answer = request.headers["Proxy-Authorization"], answer.hasPrefix("Digest") else {
                    return .reply(status: 407, headers: ["Proxy-Authenticate": "Digest realm=\"x\", nonce=\"n\""])
                }
                return .text(answer)
            }
            let options = TransferOptions.with {
                $0.proxy = .proxy(
                    Proxy(
                        .http, host: "127.0.0.1", port: proxy.endpoint.port,
                        credential: Credential(user: "us%41er", password: "p", schemes: [.digest])))
            }
            let url = try #require(URL(string: "http://origin.invalid/"))
            let text = try await CurlTransport().text(Request(url: url, options: options))
            #expect(text.contains("username=\"us%41er\""))
        }
    }

    @Test(arguments: [Proxy.Kind.http, .socks4a, .socks5, .socks5h])
    func `a proxy that refuses connections is named`(kind: Proxy.Kind) async throws {
        let port = try DeafPort(.closed)
        let url = try #require(URL(string: "http://127.0.0.1:9/"))
        let request = Request(url: url, options: proxied(kind, port: port.number))
        let error = try await CurlTransport().failure(request)
        guard case .cannotConnect(.refused) = error.reason else { throw error }
        let context = error.context
        #expect(context.host == "127.0.0.1")
        #expect(context.address?.port == port.number)
    }

    @Test func `a host that is an exception from the proxy is named itself`() async throws {
        let port = try DeafPort(.closed)
        let options = TransferOptions().with {
            $0.proxy = .proxy(Proxy(.http, host: "proxy.invalid", port: 3128, bypass: ["127.0.0.1"]))
        }
        let url = try #require(URL(string: "http://127.0.0.1:\(port.number)/"))
        let error = try await CurlTransport().failure(Request(url: url, options: options))
        guard case .cannotConnect(.refused) = error.reason else { throw error }
        #expect(error.context.host == "127.0.0.1")
    }

    @Test func `a proxy without an address is named`() async throws {
        let options = TransferOptions().with { $0.proxy = .proxy(Proxy(.http, host: "proxy.invalid", port: 3128)) }
        let url = try #require(URL(string: "http://127.0.0.1/"))
        let error = try await CurlTransport().failure(Request(url: url, options: options))
        guard error.reason == .cannotResolve, error.context.host == "proxy.invalid" else { throw error }
    }

    @Test(arguments: [Proxy.Kind.socks4a, .socks5, .socks5h])
    func `what does not speak SOCKS fails the handshake`(kind: Proxy.Kind) async throws {
        try await StubServer.with { proxy in
            let url = try #require(URL(string: "http://127.0.0.1:9/"))
            let request = Request(
                url: url, options: proxied(kind, proxy).with { $0.timeouts.connect = .milliseconds(500) })
            proxy.greet(.end(.close))
            let error = try await CurlTransport().failure(request)
            guard case .proxy(.handshake) = error.reason else { throw error }
        }
    }

    @Test(arguments: [Proxy.Kind.socks5, .socks5h])
    func `a SOCKS 5 proxy is offered a password, and no Kerberos ticket`(kind: Proxy.Kind) async throws {
        let port = try DeafPort(.silent)
        let url = try #require(URL(string: "http://127.0.0.1:9/"))
        let request = Request(url: url, options: proxied(kind, port: port.number))
        async let greeting = onThread { port.received() }
        let error = try await CurlTransport().failure(request)
        guard case .proxy(.handshake) = error.reason else { throw error }
        // The version, the number of methods, and the methods: none, and user name and password.
        #expect(try await greeting == [5, 2, 0, 2])
    }

    @Test(arguments: [(413, 65_536, 2), (413, 65_535, 1), (200, 65_536, 1), (503, 100_000, 2)])
    func `a connection whose server refused a large body takes no other request`(
        status: Int, size: Int, connections: Int
    ) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .status(status) }
            let transport = try CurlTransport()
            let body = RequestBody.bytes(Data(repeating: 1, count: size))
            for _ in 0..<2 { _ = try await transport.collect(server.request(method: .post, body: body)) }
            #expect(server.activity.connectionsAccepted == connections)
        }
    }
}
