// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

/// `ada` and `lovelace`, RFC 7617 §2.
let adasField = "Basic YWRhOmxvdmVsYWNl"
let ada = Credential(user: "ada", password: "lovelace")

extension MockTransport {
    /// A transport that accepts one value of `Authorization`, and otherwise answers with `challenge`.
    static func protected(by field: String = adasField, challenge: String = #"Basic realm="users""#)
        -> MockTransport
    {
        MockTransport { request in
            guard request.headers[.authorization] != field else { return .text("welcome") }
            return MockResponse(
                status: .unauthorized, headers: [.wwwAuthenticate: challenge],
                chunks: [Data("who are you?".utf8)])
        }
    }

    /// The received values of `Authorization`.
    var authorizations: [String?] { requests.map { $0.request.headers[.authorization] } }
}

@Suite struct ChallengesTests {
    private let transport = MockTransport.protected()

    /// A manager with Ada's credential for its server.
    private func manager(
        on transport: MockTransport, _ credential: Credential = ada,
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionManager {
        let base = try url("http://a.example/v1/")
        return SessionManager(
            .on(transport) {
                $0.authentication.credentials[base] = credential
                configure(&$0)
            })
    }

    @Test func `a 401 without a credential is returned as the response`() async throws {
        let manager = SessionManager(on: transport)
        let response = try await manager.data(for: manager.request(.get, "x"))
        #expect(response.statusCode == 401)
        #expect(response.text == "who are you?")
        #expect(transport.requests.count == 1)
    }

    @Test func `a credential answers the challenge, and no part of the 401 is in the result`() async throws {
        let manager = try manager(on: transport)
        #expect(try await manager.get("x").text == "welcome")
        #expect(transport.authorizations == [nil, adasField])
        let streamed = try await manager.withResponse(for: manager.request(.get, "x")) { _, body in
            try await body.collect(upTo: 100)
        }
        #expect(streamed == Data("welcome".utf8))
    }

    @Test func `an accepted credential is sent with subsequent requests immediately`() async throws {
        let manager = try manager(on: transport)
        for path in ["x", "y", "z/w?q"] { #expect(try await manager.get(path).text == "welcome") }
        #expect(transport.authorizations == [nil, adasField, adasField, adasField])
    }

    @Test func `a credential for Basic alone is sent with the first request`() async throws {
        let manager = try manager(on: transport, Credential(user: "ada", password: "lovelace", schemes: [.basic]))
        #expect(try await manager.get("x").text == "welcome")
        #expect(transport.authorizations == [adasField])
    }

    @Test func `a user's name and password are sent as UTF-8`() async throws {
        // RFC 7617 §2.1 has this example.
        let transport = MockTransport.protected(by: "Basic dGVzdDoxMjPCow==")
        let manager = try manager(on: transport, Credential(user: "test", password: "123£"))
        #expect(try await manager.get("x").text == "welcome")
    }

    @Test func `a refused credential is not sent again, and the 401 is returned`() async throws {
        let manager = try manager(on: transport, Credential(user: "ada", password: "byron"))
        for count in [2, 4] {
            let response = try await manager.data(for: manager.request(.get, "x"))
            #expect(response.statusCode == 401)
            #expect(response.text == "who are you?")
            #expect(transport.requests.count == count)
        }
    }

    @Test func `a credential that is no longer accepted is forgotten`() async throws {
        let taken = EventList<Bool>()
        let transport = MockTransport { request in
            let isTaken = await taken.values.isEmpty && request.headers[.authorization] != nil
            return isTaken
                ? .text("welcome")
                : .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=users"])
        }
        let manager = SessionManager(on: transport) {
            $0.authentication.challengeHandler = { $0.previousFailureCount == 0 ? .use(ada) : .performDefaultHandling }
        }
        #expect(try await manager.get("x").text == "welcome")
        await taken.append(false)
        #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 401)
        #expect(transport.authorizations == [nil, adasField, adasField])
        #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 401)
        #expect(transport.authorizations.dropFirst(3) == [nil, adasField])
    }

    @Test(arguments: ["Bearer realm=x", "Unknown", "", "Digest2 a=b"])
    func `a challenge with another scheme is returned as the response`(challenge: String) async throws {
        let manager = try manager(on: .protected(challenge: challenge)) {
            $0.authentication.challengeHandler = { challenge in
                Issue.record("asked about \(challenge.protectionSpace)")
                return .cancel
            }
        }
        #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 401)
    }

    @Test func `a challenge by Digest with an algorithm that the system lacks is not answered`() async throws {
        struct Lacking: Transport {
            let base: MockTransport

            var features: TransportFeatures {
                var features = TransportFeatures()
                features.answersDigest = { $0.algorithm != .md5 }
                return features
            }

            func open(
                _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
            ) async throws -> OpenResponse {
                try await base.open(request, delivery: delivery, reporting: events)
            }

            func shutdown() async { await base.shutdown() }
        }
        let transport = MockTransport.protected(challenge: #"Digest realm="d", nonce="n", Basic realm="b""#)
        let base = try url("http://a.example/")
        let manager = SessionManager(on: Lacking(base: transport)) { $0.authentication.credentials[base] = ada }
        #expect(try await manager.get("x").text == "welcome")
        #expect(transport.authorizations == [nil, adasField])
    }

    @Test func `a credential is used only with its own schemes`() async throws {
        let manager = try manager(
            on: .protected(challenge: "NTLM"),
            Credential(user: "a", password: "b", schemes: [.digest, .basic]))
        #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 401)
    }

    @Test(arguments: [("a:b", "x"), ("ada", "love\nlace"), ("ada\u{7F}", "x")])
    func `a credential that Basic cannot represent is an error, and is not sent`(user: String, password: String)
        async throws
    {
        let manager = try manager(on: transport, Credential(user: user, password: password))
        let error = try await sessionError { _ = try await manager.get("x") }
        guard case .invalidRequest = error.reason else { throw error }
        #expect(transport.authorizations == [nil])
    }

    @Test func `an explicit Authorization field is sent unchanged`() async throws {
        let manager = try manager(on: transport) {
            $0.authentication.challengeHandler = { _ in .use(ada) }
        }
        let request = try manager.request(.get, "x", headers: [.authorization: "Own"])
        #expect(try await manager.data(for: request).statusCode == 401)
        #expect(transport.authorizations == ["Own"])
    }

    @Test func `bodies are sent again completely`() async throws {
        let transport = transport
        let manager = try manager(on: transport)
        let chunks = AsyncStreamOf([Data("ab".utf8), Data("c".utf8)])
        let directory = try TemporaryDirectory()
        let path = try directory.write(Data("abc".utf8), to: "body")
        for (index, body) in [
            RequestBody.string("abc"), .file(path), .stream(chunks, isReplayable: true),
        ].enumerated() {
            var request = try manager.request(.post, "x", body: body)
            request.credential = Credential(user: "user\(index)", password: "")
            request.authentication = AuthenticationPolicy.none
            #expect(try await manager.data(for: request).statusCode == 401)
        }
        #expect(transport.requests.map(\.body) == Array(repeating: Data("abc".utf8), count: 6))
    }

    @Test
    func `a request whose body is not replayable fails if it would have to be sent again`() async throws {
        let body = RequestBody.stream(AsyncStreamOf([Data("abc".utf8)]))
        let manager = try manager(on: transport)
        let error = try await sessionError {
            _ = try await manager.data(for: manager.request(.post, "x", body: body))
        }
        guard case .authentication(.bodyNotReplayable) = error else { throw error }
        #expect(transport.requests.count == 1)
        let stranger = SessionManager(on: transport)
        #expect(try await stranger.data(for: stranger.request(.post, "x", body: body)).statusCode == 401)
    }

    @Test func `retries and redirects use the accepted credential`() async throws {
        let transport = MockTransport { request in
            guard request.headers[.authorization] == adasField else {
                return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=users"])
            }
            return request.url.path == "/v1/end" ? .text("end") : .redirect(.found, to: "/v1/end")
        }
        let manager = try manager(on: transport)
        #expect(try await manager.get("x").text == "end")
        #expect(transport.requests.map { $0.request.url.path } == ["/v1/x", "/v1/x", "/v1/end"])
        #expect(transport.authorizations == [nil, adasField, adasField])
    }

    @Test func `a monitor receives events for challenges`() async throws {
        let log = EventLines()
        let manager = try manager(on: transport) { $0.eventMonitors = [log] }
        _ = try await manager.get("x")
        let lines = await log.close().map { $0.replacing(#/ after .*/#, with: "") }
        #expect(
            lines.filter { !$0.contains("finished") && !$0.contains("bytes") } == [
                "began", "sends GET http://a.example/v1/x", "received 401 over HTTP/1.1",
                "answers a challenge by Basic at server a.example",
                "sends GET http://a.example/v1/x",
                "received 200 over HTTP/1.1", "ended with 200",
            ])
        #expect(!lines.joined().contains("lovelace"))
    }
}

/// The origins to which credentials are sent.
@Suite struct CredentialScopesTests {
    @Test(arguments: [
        "https://a.example/", "http://b.example/", "http://a.example:8080/", "http://sub.a.example/",
        "http://a.example.b.example/",
    ])
    func `a credential is not sent to another origin`(other: String) async throws {
        let transport = MockTransport.protected()
        let base = try url("http://a.example/v1/")
        let manager = SessionManager(on: transport) {
            $0.authentication.credentials[base] = Credential(user: "ada", password: "lovelace", schemes: [.basic])
        }
        #expect(try await manager.data(for: Request(url: url(other))).statusCode == 401)
        #expect(transport.authorizations == [nil])
    }

    @Test(arguments: [
        ("http://a.example./", "http://a.example/x"), ("http://a.example", "http://A.Example.:80/"),
        ("http://[::1]/", "http://[0:0:0::1]/"), ("http://127.0.0.1/", "http://127.1/"),
    ])
    func `a credential is sent to its origin in every spelling`(origin: String, target: String) async throws {
        let transport = MockTransport.protected()
        let base = try url(origin)
        let manager = SessionManager(on: transport) { $0.authentication.credentials[base] = ada }
        #expect(try await manager.data(for: Request(url: url(target))).text == "welcome")
    }

    @Test func `redirects to another origin do not send the credential`() async throws {
        let transport = MockTransport { request in
            request.url.host() == "a.example"
                ? .redirect(.found, to: "http://b.example/x")
                : .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=users"])
        }
        let base = try url("http://a.example/v1/")
        let basic = Credential(user: "ada", password: "lovelace", schemes: [.basic])
        let manager = SessionManager(on: transport) { $0.authentication.credentials[base] = basic }
        #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 401)
        #expect(transport.authorizations == [adasField, nil])

        let stranger = SessionManager(on: transport)
        var request = try stranger.request(.get, "x")
        request.credential = basic
        #expect(try await stranger.data(for: request).statusCode == 401)
        #expect(transport.authorizations.dropFirst(2) == [adasField, nil])
    }

    @Test func `a request can have a credential of its own, for its original origin`() async throws {
        let transport = MockTransport.protected()
        let base = try url("http://a.example/v1/")
        let manager = SessionManager(on: transport) {
            $0.authentication.credentials[base] = Credential(user: "eve", password: "else")
        }
        var request = try manager.request(.get, "x")
        request.credential = ada
        #expect(request.credential == ada)
        #expect(try await manager.data(for: request).text == "welcome")
        #expect(transport.authorizations == [nil, adasField])
        request.url = try url("http://b.example/")
        #expect(request.credential == nil)
        #expect(try await manager.data(for: request).statusCode == 401)
        #expect(transport.authorizations.last == .some(nil))
    }

    @Test func `the accepted credential of a request is sent only with requests that have it, too`() async throws {
        let other = Credential(user: "eve", password: "else")
        let transport = MockTransport { request in
            request.headers[.authorization] == nil
                ? MockResponse(status: .unauthorized, headers: [.wwwAuthenticate: #"Basic realm="x""#])
                : .text("welcome")
        }
        let manager = SessionManager(on: transport) {
            $0.authentication.challengeHandler = { _ in .use(other) }
        }
        var request = try manager.request(.get, "x")
        request.credential = ada
        for _ in 0..<2 { _ = try await manager.data(for: request) }
        #expect(transport.authorizations == [nil, adasField, adasField])
        // The session's own credential is stored beside that of the request.
        for _ in 0..<2 { _ = try await manager.get("x") }
        _ = try await manager.data(for: request)
        let field = "Basic " + Data("eve:else".utf8).base64EncodedString()
        #expect(transport.authorizations.dropFirst(3) == [nil, field, field, adasField])
    }

    @Test(arguments: [("http://a.example/", ProxyPolicy.none), ("https://a.example/", .environment)])
    func `a server cannot ask for the credential of a proxy`(address: String, proxy: ProxyPolicy) async throws {
        let transport = MockTransport(
            .status(.proxyAuthenticationRequired, headers: [.proxyAuthenticate: "Basic realm=x"]))
        let asked = EventList<String?>()
        let manager = SessionManager(on: transport) {
            $0.proxy = proxy
            $0.authentication.challengeHandler = { challenge in
                await asked.append(challenge.protectionSpace.realm)
                return .use(ada)
            }
        }
        #expect(try await manager.data(for: Request(url: url(address))).statusCode == 407)
        #expect(await asked.values.isEmpty)
    }

    @Test(.exitTest) func `a server cannot ask for the credential of a proxy if the environment names none for it`()
        async
    {
        // In a separate process: the environment is shared by all tests.
        await #expect(processExitsWith: .success) {
            for name in ["http_proxy", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"] { unsafe unsetenv(name) }
            try await StubServer.with { server in
                server.fallback { _ in .status(407, headers: ["Proxy-Authenticate": "Basic realm=x"]) }
                let asked = EventList<Bool>()
                let manager = SessionManager {
                    $0.authentication.challengeHandler = {
                        await asked.append($0.protectionSpace.isProxy)
                        return .rejectProtectionSpace
                    }
                }
                for url in [nil, "http://127.0.0.1:\(server.endpoint.port)"] {
                    if let url { unsafe setenv("http_proxy", url, 1) }
                    try #require(try await manager.data(for: Request(url: server.url("/"))).statusCode == 407)
                    try #require(await asked.values == (url == nil ? [] : [true]))
                }
                unsafe setenv("no_proxy", "127.0.0.1", 1)
                try #require(try await manager.data(for: Request(url: server.url("/"))).statusCode == 407)
                try #require(await asked.values == [true])
            }
        }
    }

    @Test func `a refusal by a proxy without a challenge is the response`() async throws {
        let transport = MockTransport(.status(.proxyAuthenticationRequired))
        let manager = SessionManager(on: transport) {
            $0.proxy = .proxy(Proxy(.http, host: "proxy.example", port: 3128))
            $0.authentication.challengeHandler = { _ in .use(ada) }
        }
        #expect(try await manager.data(for: Request(url: url("http://a.example/"))).statusCode == 407)
        #expect(transport.requests.count == 1)
    }

    @Test func `a credential that the environment's proxy for http accepted is not sent to the one for https`()
        async throws
    {
        let transport = MockTransport { request in
            request.transportAuthentication?.proxy == nil && request.url.scheme == "http"
                ? MockResponse(
                    status: .proxyAuthenticationRequired, headers: [.proxyAuthenticate: #"Digest realm="x", nonce="n""#]
                )
                : .text("welcome")
        }
        let manager = SessionManager(on: transport) {
            $0.transfer.proxy = .environment
            $0.authentication.challengeHandler = { _ in .use(ada) }
        }
        for path in ["http://a.example/", "https://a.example/", "http://b.example/"] { _ = try await manager.get(path) }
        let sent = transport.requests.map { $0.request.transportAuthentication?.proxy?.credential }
        #expect(sent == [nil, ada, nil, ada])
    }

    @Test(arguments: [true, false])
    func `an accepted credential is not sent to another server for the same URL`(isSocket: Bool) async throws {
        let transport = MockTransport.protected()
        let base = try url("http://a.example/v1/")
        let manager = SessionManager(on: transport) { $0.authentication.credentials[base] = ada }
        _ = try await manager.get("x")
        let change: (inout TransferOptions) -> Void = {
            if isSocket {
                $0.connection.unixSocketPath = "/run/b.sock"
            } else {
                $0.connection.hostOverrides = [.init(host: "", port: 80, address: "10.0.0.1")]
            }
        }
        _ = try await manager.get("x", options: change)
        #expect(transport.authorizations == [nil, adasField, nil, adasField])
    }

    @Test func `a response of another server does not accept a credential`() async throws {
        let transport = MockTransport { request in
            if request.url.host() == "b.example" { return .text("mirror") }
            let isFirst = request.headers[.authorization] == nil
            return isFirst
                ? .status(.unauthorized, headers: [.wwwAuthenticate: #"Basic realm="r""#])
                : .status(.serviceUnavailable)
        }
        let manager = SessionManager(on: transport) {
            $0.authentication.challengeHandler = { _ in .use(ada) }
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    let response = try await next(request)
                    guard response.head.status == .serviceUnavailable else { return response }
                    return try await next(Request(url: url("http://b.example/v1/x")))
                }
            ]
        }
        for _ in 0..<2 { #expect(try await manager.get("x").text == "mirror") }
        #expect(transport.authorizations == [nil, adasField, nil, nil, adasField, nil])
    }

    @Test func `a request can disable authentication`() async throws {
        let transport = MockTransport.protected()
        let base = try url("http://a.example/v1/")
        let manager = SessionManager(on: transport) { $0.authentication.credentials[base] = ada }
        _ = try await manager.get("x")
        var request = try manager.request(.get, "x")
        request.authentication = AuthenticationPolicy.none
        #expect(try await manager.data(for: request).statusCode == 401)
        #expect(transport.authorizations.last == .some(nil))
    }

    @Test func `descriptions contain no passwords`() throws {
        var credentials = AuthenticationPolicy.Credentials()
        credentials[try url("http://a.example/x")] = ada
        #expect("\(credentials)" == "http://a.example:80: Credential(user: ada, password: …)")
        var request = try Request(url: url("http://a.example/"))
        request.credential = ada
        let configuration = SessionConfiguration { $0.authentication.credentials = credentials }
        for value in [request, configuration, credentials] as [Any] {
            var text = "\(value)" + String(reflecting: value)
            dump(value, to: &text)
            #expect(!text.contains("lovelace"))
        }
    }
}

/// The answers of challenge handlers.
@Suite struct ChallengeHandlerTests {
    private static let offers =
        #"Negotiate, Basic realm="b", NTLM, Digest realm="d", nonce="n", Digest realm="e""#

    private func manager(
        on transport: MockTransport,
        _ handler:
            @escaping @Sendable (AuthenticationChallenge) async throws -> AuthenticationChallenge.Disposition
    ) -> SessionManager {
        SessionManager(on: transport) { $0.authentication.challengeHandler = handler }
    }

    @Test func `it receives the protection space, and its credential is used`() async throws {
        let transport = MockTransport.protected()
        let seen = EventList<AuthenticationChallenge>()
        let manager = manager(on: transport) { challenge in
            await seen.append(challenge)
            return .use(ada)
        }
        #expect(try await manager.get("x").text == "welcome")
        let challenge = try #require(await seen.values.first)
        #expect(await seen.values.count == 1)
        #expect(
            challenge.protectionSpace
                == ProtectionSpace(
                    host: "a.example", port: 80, isSecure: false, scheme: .basic, realm: "users"))
        #expect(challenge.head?.status == .unauthorized)
        #expect(challenge.request.url.absoluteString == "http://a.example/v1/x")
        #expect(challenge.previousFailureCount == 0)
        #expect(try await manager.get("y").text == "welcome")
        #expect(transport.authorizations == [nil, adasField, adasField])
    }

    @Test func `it can carry on without a credential`() async throws {
        let transport = MockTransport.protected()
        let manager = manager(on: transport) { _ in .performDefaultHandling }
        let response = try await manager.data(for: manager.request(.get, "x"))
        #expect(response.statusCode == 401)
        #expect(response.text == "who are you?")
        #expect(transport.requests.count == 1)
    }

    @Test func `it can cancel the request`() async throws {
        let manager = manager(on: .protected()) { _ in .cancel }
        await #expect(throws: CancellationError.self) { _ = try await manager.get("x") }
    }

    @Test func `an error that it throws is passed on unchanged`() async throws {
        let manager = manager(on: .protected()) { _ in throw Planned(number: 7) }
        await #expect(throws: Planned(number: 7)) { _ = try await manager.get("x") }
    }

    @Test func `it can reject a scheme, and is called for the next one`() async throws {
        let seen = EventList<String>()
        let transport = MockTransport.protected(challenge: Self.offers)
        let manager = manager(on: transport) { challenge in
            await seen.append("\(challenge.protectionSpace)")
            return challenge.protectionSpace.scheme == .basic ? .use(ada) : .rejectProtectionSpace
        }
        #expect(try await manager.get("x").text == "welcome")
        #expect(
            await seen.values == [
                "Digest for “d” at server a.example", "NTLM at server a.example",
                "Basic for “b” at server a.example",
            ])
    }

    @Test func `if it rejects all schemes, the 401 is returned`() async throws {
        let seen = EventList<AuthenticationScheme>()
        let transport = MockTransport.protected(challenge: Self.offers)
        let manager = manager(on: transport) { challenge in
            await seen.append(challenge.protectionSpace.scheme)
            return .rejectProtectionSpace
        }
        #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 401)
        #expect(await seen.values == [.digest, .ntlm, .basic, .negotiate])
        #expect(transport.requests.count == 1)
    }

    @Test(arguments: [
        (ada, AuthenticationScheme.digest),
        (Credential(user: "a", password: "b", schemes: [.ntlm, .basic]), .ntlm),
        (.systemTicket, .negotiate),
    ])
    func `the transport receives the credential and scheme`(
        credential: Credential, scheme: AuthenticationScheme
    ) async throws {
        let transport = MockTransport.protected(challenge: Self.offers)
        let manager = manager(on: transport) {
            $0.previousFailureCount == 0 ? .use(credential) : .performDefaultHandling
        }
        #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 401)
        let sent = transport.requests.map(\.request.transportAuthentication)
        var expected = TransportAuthentication()
        expected.server = TransportAuthentication.SchemeCredential(credential, by: scheme)
        #expect(sent == [nil, expected])
        #expect(transport.authorizations == [nil, nil])
    }

    @Test func `it is called again after a refused credential`() async throws {
        let seen = EventList<String>()
        let transport = MockTransport.protected()
        let base = try url("http://a.example/")
        let manager = SessionManager(on: transport) {
            $0.authentication.credentials[base] = Credential(user: "old", password: "x")
            $0.authentication.challengeHandler = { challenge in
                await seen.append("\(challenge.previousFailureCount) \(challenge.refusedCredential?.user ?? "-")")
                return challenge.previousFailureCount == 1
                    ? .use(Credential(user: "wrong", password: "x")) : .use(ada)
            }
        }
        #expect(try await manager.get("x").text == "welcome")
        #expect(await seen.values == ["1 old", "2 wrong"])
        #expect(transport.requests.count == 4)
    }

    @Test func `it is called only a limited number of times if the server refuses every credential`() async throws {
        let transport = MockTransport.protected(by: "never")
        let manager = manager(on: transport) {
            .use(Credential(user: "\($0.previousFailureCount)", password: ""))
        }
        #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 401)
        #expect(transport.requests.count == 6)
        let stubborn = self.manager(on: .protected(by: "never")) { _ in .use(ada) }
        #expect(try await stubborn.data(for: stubborn.request(.get, "x")).statusCode == 401)
    }

    @Test func `it is called for proxies as well`() async throws {
        let transport = MockTransport { request in
            guard request.transportAuthentication?.proxy?.credential == ada else {
                return .status(.proxyAuthenticationRequired, headers: [.proxyAuthenticate: "Basic realm=office"])
            }
            return .text("welcome")
        }
        let seen = EventList<ProtectionSpace>()
        let manager = SessionManager(on: transport) {
            $0.proxy = .proxy(Proxy(.http, host: "proxy.example", port: 3128))
            $0.authentication.challengeHandler = { challenge in
                await seen.append(challenge.protectionSpace)
                return .use(ada)
            }
        }
        #expect(try await manager.get("x").text == "welcome")
        #expect(try await manager.get("y").text == "welcome")
        let space = ProtectionSpace(
            isProxy: true, host: "proxy.example", port: 3128, isSecure: false, scheme: .basic,
            realm: "office")
        #expect(await seen.values == [space])
        #expect(transport.authorizations == [nil, nil, nil])
    }

    @Test func `a credential for a proxy is not sent to another one that an interceptor chooses`() async throws {
        let transport = MockTransport { request in
            request.transportAuthentication?.proxy == nil
                ? .status(.proxyAuthenticationRequired, headers: [.proxyAuthenticate: "Basic realm=office"])
                : .text("welcome")
        }
        let manager = SessionManager(on: transport) {
            $0.proxy = .proxy(Proxy(.http, host: "proxy.example", port: 3128))
            $0.authentication.challengeHandler = { _ in .use(ada) }
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    guard request.url.lastPathComponent == "y" else { return try await next(request) }
                    var request = request
                    request.changeOptions { $0.proxy = .proxy(Proxy(.http, host: "other.example", port: 3128)) }
                    return try await next(request)
                }
            ]
        }
        #expect(try await manager.get("x").text == "welcome")
        #expect(try await manager.data(for: manager.request(.get, "y")).statusCode == 407)
        let sent = transport.requests.filter { $0.request.url.lastPathComponent == "y" }
        #expect(!sent.isEmpty && sent.allSatisfy { $0.request.transportAuthentication?.proxy == nil })
    }

    @Test func `a credential that a proxy no longer accepts is not sent again`() async throws {
        let transport = MockTransport { request in
            guard request.transportAuthentication?.proxy?.credential == ada, request.url.lastPathComponent == "x" else {
                return .status(.proxyAuthenticationRequired, headers: [.proxyAuthenticate: "Basic realm=office"])
            }
            return .text("welcome")
        }
        let manager = SessionManager(on: transport) {
            $0.proxy = .proxy(Proxy(.http, host: "proxy.example", port: 3128))
            $0.authentication.challengeHandler = { challenge in
                challenge.previousFailureCount == 0 && challenge.request.url.lastPathComponent == "x"
                    ? .use(ada) : .performDefaultHandling
            }
        }
        #expect(try await manager.get("x").text == "welcome")
        for _ in 0..<2 {
            #expect(try await manager.data(for: manager.request(.get, "y")).statusCode == 407)
        }
        let sent = transport.requests.map { $0.request.transportAuthentication?.proxy?.credential }
        #expect(sent == [nil, ada, ada, nil])
    }

    /// The proxy's schemes, those of its credential, and the number of refusals that the handler learns of.
    @Test(
        arguments: [
            ("Basic realm=office", nil, 1), ("Digest realm=office, nonce=n", nil, 0),
            ("Digest realm=office, nonce=n", [.digest], 1),
        ] as [(String, Set<AuthenticationScheme>?, Int)])
    func `the credential of a proxy that is sent without a challenge counts if it is refused`(
        challenge: String, schemes: Set<AuthenticationScheme>?, count: Int
    ) async throws {
        let transport = MockTransport { _ in
            .status(.proxyAuthenticationRequired, headers: [.proxyAuthenticate: challenge])
        }
        let seen = EventList<String>()
        let own = Credential(user: "own", password: "x", schemes: schemes)
        let manager = SessionManager(on: transport) {
            $0.proxy = .proxy(Proxy(.http, host: "proxy.example", port: 3128, credential: own))
            $0.authentication.challengeHandler = { challenge in
                await seen.append("\(challenge.previousFailureCount) \(challenge.refusedCredential?.user ?? "-")")
                return .use(own)
            }
        }
        #expect(try await manager.data(for: manager.request(.get, "x")).statusCode == 407)
        #expect(await seen.values.first == "\(count) \(count == 0 ? "-" : "own")")
        // The same one is not sent again if it was refused.
        #expect(transport.requests.count == (count == 0 ? 2 : 1))
    }

    @Test func `the user of a URL, sent without a challenge, counts if it is refused`() async throws {
        let seen = EventList<String>()
        let manager = manager(on: .protected()) { challenge in
            await seen.append("\(challenge.previousFailureCount) \(challenge.refusedCredential?.user ?? "-")")
            return .use(ada)
        }
        #expect(try await manager.get("http://own:x@a.example/").text == "welcome")
        #expect(await seen.values == ["1 own"])
    }

    @Test func `it is called if a proxy refuses a tunnel`() async throws {
        let transport = MockTransport { request in
            guard request.transportAuthentication?.proxy?.scheme == .digest else {
                var context = FailureContext()
                context.proxySchemes = [.basic, .digest]
                throw TransportError(.proxy(.authenticationRequired), context: context)
            }
            return .text("welcome")
        }
        let manager = manager(on: transport) { challenge in
            #expect(challenge.head == nil)
            #expect(challenge.protectionSpace.isProxy)
            return .use(ada)
        }
        #expect(try await manager.get("x").text == "welcome")
        let refusing = self.manager(on: transport) { _ in .performDefaultHandling }
        let error = try await sessionError { _ = try await refusing.get("x") }
        #expect(error.isConnectionFailure)
    }
}

/// The events of a session as lines.
final class EventLines: EventMonitor {
    private let stream: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream()
    }

    func receive(_ event: TaskEvent, of task: AnySessionTask) {
        continuation.yield("\(event)")
    }

    /// Ends the list and returns it.
    func close() async -> [String] {
        continuation.finish()
        return await stream.reduce(into: []) { $0.append($1) }
    }
}
