// SPDX-License-Identifier: MIT

import ANCurl
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// The schemes that libcurl implements, with well-behaved and misbehaving servers.
@Suite(.timeLimit(.minutes(5))) struct AuthenticationOverTheWireTests {
    private static let digest = #"Digest realm="users", qop="auth", nonce="abc", algorithm=SHA-256"#

    /// A manager with Ada's credential for the server.
    private func manager(
        for server: StubServer, schemes: Set<AuthenticationScheme>? = nil,
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        SessionManager(
            SessionConfiguration(baseURL: server.url("/")) {
                $0.proxy = .none
                $0.authentication.credentials[server.url("/")] = Credential(
                    user: "ada", password: "lovelace", schemes: schemes)
                configure(&$0)
            })
    }

    /// Sends a Digest challenge until a request has a digest.
    private func protect(_ server: StubServer, by challenge: String = digest) {
        server.fallback { request in
            guard request.headers["Authorization"]?.hasPrefix("Digest ") == true else {
                return .reply(status: 401, headers: ["WWW-Authenticate": challenge], body: .string("who are you?"))
            }
            return .text("welcome")
        }
    }

    private func authorizations(_ server: StubServer) -> [String?] {
        server.activity.requests.map {
            $0.headers["Authorization"]?.split(separator: " ").first.map(String.init)
        }
    }

    @Test func `a Digest challenge is answered, streamed and collected, and the 401 is not visible`() async throws {
        try await StubServer.with { server in
            protect(server)
            let manager = manager(for: server)
            #expect(try await manager.get("x?q=1").text == "welcome")
            #expect(authorizations(server) == [nil, nil, "Digest"])
            let streamed = try await manager.withResponse(for: manager.request(.get, "y")) { head, body in
                #expect(head.status == .ok)
                return try await body.collect(upTo: 100)
            }
            #expect(streamed == Data("welcome".utf8))
            // The next request also uses Digest: it asks for the server's nonce, without a body.
            #expect(authorizations(server).dropFirst(3) == [nil, "Digest"])
            let field = try #require(server.activity.requests[2].headers["Authorization"])
            for part in [#"username="ada""#, #"realm="users""#, #"nonce="abc""#, #"uri="/x?q=1""#, "qop=auth"] {
                #expect(field.contains(part), "\(field)")
            }
            #expect(!field.contains("lovelace"))
        }
    }

    /// The bytes of the realm are hashed and sent back as they came, which `Script.raw` cannot send.
    @Test(
        arguments: [
            ([0xFC], "5487da46ecb454d9c2fabaec06c5752b"), (Array("ü".utf8), "d9cfca691e7848fb618541816c24ab54"),
        ] as [([UInt8], String)])
    func `a Digest challenge that is no UTF-8 is answered`(letter: [UInt8], response: String) async throws {
        try await StubServer.with { server in
            let head = Data("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nWWW-Authenticate: Digest realm=\"B".utf8)
            server.fallback { request in
                if request.headers["Authorization"]?.contains("response=\"\(response)\"") == true { return .text("in") }
                return Script([.send(head + letter + Data("ro\", nonce=n\r\n\r\n".utf8)), .end(.close)])
            }
            let text = try await manager(for: server).get("a").text
            #expect(text == "in")
        }
    }

    @Test(arguments: ["z?#f", "z?", "z?a#f", "z#?"])
    func `the target that a Digest answer names is the one that is sent`(target: String) async throws {
        try await StubServer.with { server in
            protect(server)
            let url = try #require(URL(string: server.url("/").absoluteString + target))
            #expect(try await manager(for: server).data(for: Request(url: url)).text == "welcome")
            let answer = try #require(server.activity.requests.last)
            #expect(answer.headers["Authorization"]?.contains("uri=\"\(answer.target)\"") == true)
        }
    }

    @Test func `requests to Basic and Digest paths of one origin succeed, with their bodies`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                let challenge: String? =
                    request.path.hasPrefix("/basic")
                    ? "Basic realm=b" : request.path.hasPrefix("/digest") ? Self.digest : nil
                let scheme = challenge?.prefix { $0 != " " } ?? ""
                guard let challenge, request.headers["Authorization"]?.hasPrefix(scheme) != true else {
                    return .text("\(request.method) \(request.text)")
                }
                return .status(401, headers: ["WWW-Authenticate": challenge])
            }
            let manager = manager(for: server)
            for _ in 0..<2 {
                for path in ["basic", "digest", "open"] {
                    #expect(try await manager.get(path).text == "GET ")
                    for method in [HTTPRequest.Method.post, .put, .patch, .get] {
                        let request = try manager.request(method, path, body: .string("abc"))
                        #expect(try await manager.data(for: request).text == "\(method) abc")
                    }
                }
            }
            #expect(server.activity.requests.filter { $0.path == "/open" && $0.text.isEmpty }.count == 2)
        }
    }

    @Test func `with a credential for Digest only, the body is sent once, and need not be replayable`() async throws {
        try await StubServer.with { server in
            protect(server)
            let manager = manager(for: server, schemes: [.digest])
            let once = RequestBody.stream(AsyncStreamOf([Data("ab".utf8), Data("c".utf8)]))
            for body in [RequestBody.string("abc"), .stream(AsyncStreamOf([Data("abc".utf8)]), length: 3), once] {
                let response = try await manager.data(for: manager.request(.post, "x", body: body))
                #expect(response.text == "welcome")
            }
            let bodies = server.activity.requests.map(\.text)
            #expect(bodies == ["", "abc", "", "abc", "", "abc"])
            #expect(authorizations(server) == [nil, "Digest", nil, "Digest", nil, "Digest"])
        }
    }

    @Test func `bodies of files and streams are sent completely after the challenge`() async throws {
        let bytes = StubServer.generatedBytes(300_000)
        let directory = try TemporaryDirectory()
        let bodies = [
            RequestBody.bytes(bytes), .file(try directory.write(bytes, to: "body")),
            .stream(
                AsyncStreamOf([bytes.prefix(100_000), bytes.dropFirst(100_000)]), isReplayable: true),
        ]
        for body in bodies {
            try await StubServer.with { server in
                protect(server)
                let manager = manager(for: server)
                let response = try await manager.data(for: manager.request(.put, "x", body: body))
                #expect(response.text == "welcome")
                #expect(server.activity.requests.map(\.bodyLength) == [300_000, 0, 300_000])
                #expect(server.activity.requests.last?.body == bytes)
            }
        }
    }

    @Test func `a refused digest results in the 401 with its body`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                let number = request.headers["Authorization"] == nil ? "first" : "second"
                return .reply(
                    status: 401, headers: ["WWW-Authenticate": Self.digest, "X-Number": number],
                    body: .string(number))
            }
            let manager = manager(for: server, schemes: [.digest])
            let response = try await manager.data(for: manager.request(.get, "x"))
            #expect(response.statusCode == 401)
            #expect(response.text == "second")
            #expect(response.headers[try #require(HTTPField.Name("X-Number"))] == "second")
            let streamed = try await manager.withResponse(for: manager.request(.get, "x")) { head, body in
                #expect(head.status == .unauthorized)
                return try await body.collect(upTo: 100)
            }
            #expect(streamed == Data("second".utf8))
        }
    }

    @Test func `a 401 without an answer is returned, even without a body`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                request.path == "/empty" ? .status(401) : .text("no challenge", status: 401)
            }
            let manager = manager(for: server, schemes: [.digest])
            let response = try await manager.data(for: manager.request(.get, "x"))
            #expect(response.statusCode == 401)
            #expect(response.text == "no challenge")
            try await manager.withResponse(for: manager.request(.get, "empty")) { head, body in
                #expect(head.status == .unauthorized)
                let rest = try await body.collect(upTo: 100)
                #expect(rest.isEmpty)
            }
        }
    }

    @Test func `the exchange ends if nonces are always stale`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                .reply(
                    status: 401, headers: ["WWW-Authenticate": Self.digest + ", stale=true"],
                    body: .string("stale"))
            }
            let manager = manager(for: server, schemes: [.digest])
            let response = try await manager.data(for: manager.request(.post, "x", body: .string("abc")))
            #expect(response.statusCode == 401)
            #expect(response.text == "stale")
            #expect(server.activity.requests.map(\.text) == ["", "abc"])
        }
    }

    @Test(arguments: [
        (#", nonce="2", stale=true"#, ["1", "2"]), (#", nonce="2", stale=TRUE, realm=b"#, ["1", "2"]),
        (#", nonce="1", stale=true"#, ["1"]), (#", nonce="2", stale=false"#, ["1"]), (#", nonce="2""#, ["1"]),
    ])
    func `an answer to a nonce that has expired is repeated once`(challenge: String, nonces: [String]) async throws {
        for body in [RequestBody.none, .string("abc")] {
            try await StubServer.with { server in
                server.fallback { request in
                    let authorization = request.headers["Authorization"]
                    guard let authorization, authorization.contains(#"nonce="2""#) else {
                        let parameters = authorization == nil ? #", nonce="1""# : challenge
                        return .status(
                            401, headers: ["WWW-Authenticate": #"Digest realm="a", qop="auth"\#(parameters)"#])
                    }
                    return .text("welcome")
                }
                let manager = manager(for: server, schemes: [.digest])
                let response = try await manager.data(for: manager.request(.put, "x", body: body))
                #expect(response.statusCode == (nonces.count > 1 ? 200 : 401))
                let requests = server.activity.requests
                #expect(authorizations(server) == [nil] + nonces.map { _ in "Digest" })
                for (request, nonce) in zip(requests.dropFirst(), nonces) {
                    #expect(request.headers["Authorization"]?.contains(#"nonce="\#(nonce)""#) == true)
                    #expect(request.text == (body.length == 0 ? "" : "abc"))
                }
            }
        }
    }

    @Test func `a server whose nonces always expire is answered twice`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                let number = server.activity.requests.count
                let challenge = #"Digest realm="a", qop="auth", nonce="\#(number)", stale=true"#
                return .reply(status: 401, headers: ["WWW-Authenticate": challenge], body: .string("\(number)"))
            }
            let manager = manager(for: server, schemes: [.digest])
            let response = try await manager.data(for: manager.request(.get, "x"))
            #expect(response.statusCode == 401)
            #expect(authorizations(server) == [nil, "Digest", "Digest"])
        }
    }

    @Test func `a body that can be read once is not sent to a second nonce`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                let nonce = request.headers["Authorization"] == nil ? "1" : "2"
                let challenge = #"Digest realm="a", qop="auth", nonce="\#(nonce)", stale=true"#
                return .status(401, headers: ["WWW-Authenticate": challenge])
            }
            let manager = manager(for: server, schemes: [.digest])
            let body = RequestBody.stream(AsyncStreamOf([Data("abc".utf8)]), isReplayable: false)
            let response = try await manager.data(for: manager.request(.put, "x", body: body))
            #expect(response.statusCode == 401)
            #expect(server.activity.requests.map(\.text) == ["", "abc"])
        }
    }

    @Test func `a connection closed between the messages is replaced`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                guard request.headers["Authorization"] == nil else { return .text("welcome") }
                return Script([
                    .reply(
                        Reply(
                            status: 401, headers: ["WWW-Authenticate": Self.digest, "Connection": "close"],
                            body: .string("who?"))), .end(.close),
                ])
            }
            let manager = manager(for: server, schemes: [.digest])
            let response = try await manager.data(for: manager.request(.post, "x", body: .string("abc")))
            #expect(response.text == "welcome")
            #expect(server.activity.requests.map(\.connection) == [0, 1])
            #expect(server.activity.requests.map(\.text) == ["", "abc"])
        }
    }

    @Test(arguments: [StubEnd.close, .cutHead, .cutBody])
    func `a server that fails after the challenge fails the request`(end: StubEnd) async throws {
        try await StubServer.with { server in
            server.fallback { request in
                guard request.headers["Authorization"] != nil else {
                    return .status(401, headers: ["WWW-Authenticate": Self.digest])
                }
                return end.script
            }
            let manager = manager(for: server, schemes: [.digest])
            let error = try await sessionError {
                _ = try await manager.data(for: manager.request(.post, "x", body: .string("abc")))
            }
            guard case .connectionLost = error.reason else { throw error }
        }
    }

    /// The ways in which a server can fail.
    enum StubEnd: CaseIterable {
        case close, cutHead, cutBody

        var script: Script {
            switch self {
            case .close: .close
            case .cutHead: .raw("HTTP/1.1 200 OK\r\nContent-Le")
            case .cutBody: .truncated(declared: 10, sent: 3)
            }
        }
    }

    @Test(arguments: [
        "Digest", "Digest realm=x", "Digest nonce=", #"Digest nonce="a", algorithm=UNKNOWN"#,
        #"Digest realm="x", nonce="y", qop="auth-int""#,
    ])
    func `a challenge that cannot be answered is returned as the response`(challenge: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in
                .reply(status: 401, headers: ["WWW-Authenticate": challenge], body: .string("who are you?"))
            }
            let manager = manager(for: server)
            let response = try await manager.data(for: manager.request(.get, "x"))
            #expect(response.statusCode == 401)
            #expect(server.activity.requests.count <= 4)
        }
    }

    @Test(.enabled(if: (try? CurlLibrary.current.get().authenticationSchemes.contains(.ntlm)) == true))
    func `NTLM authenticates its connection, and sends the body with the last message`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                let field = request.headers["Authorization"] ?? ""
                let message = Data(base64Encoded: String(field.dropFirst(5))) ?? Data()
                switch message.count > 8 ? message[8] : 0 {
                case 1: return .status(401, headers: ["WWW-Authenticate": "NTLM \(Self.ntlmChallenge)"])
                case 3: return .text("welcome")
                default: return .status(401, headers: ["WWW-Authenticate": "NTLM"])
                }
            }
            let manager = manager(for: server)
            let response = try await manager.data(for: manager.request(.post, "x", body: .string("abc")))
            #expect(response.text == "welcome")
            #expect(server.activity.requests.map(\.text) == ["abc", "", "abc"])
            #expect(authorizations(server) == [nil, "NTLM", "NTLM"])
            #expect(Set(server.activity.requests.map(\.connection)) == [0])
        }
    }

    /// A message of type 2: NTLM, Unicode, a challenge of eight bytes.
    private static let ntlmChallenge = Data(
        Array("NTLMSSP\0".utf8) + [2, 0, 0, 0] + [0, 0, 0, 0, 32, 0, 0, 0] + [1, 2, 0, 0]
            + [1, 35, 69, 103, 137, 171, 205, 239]
    ).base64EncodedString()

    @Test func `Negotiate without a ticket returns the 401`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .status(401, headers: ["WWW-Authenticate": "Negotiate"]) }
            let manager = SessionManager(for: server) {
                $0.authentication.credentials[server.url("/")] = .systemTicket
            }
            let response = try await manager.data(for: manager.request(.get, "x"))
            #expect(response.statusCode == 401)
        }
    }

    @Test func `credentials of one exchange are not used for the next one`() async throws {
        try await StubServer.with { server in
            protect(server)
            let manager = manager(for: server, schemes: [.digest])
            #expect(try await manager.get("x").text == "welcome")
            var request = try manager.request(.get, "y")
            request.authentication = AuthenticationPolicy.none
            #expect(try await manager.data(for: request).statusCode == 401)
            #expect(authorizations(server) == [nil, "Digest", nil])
        }
    }

    @Test func `a redirect to another port sends no credential`() async throws {
        try await StubServer.with { other in
            protect(other)
            try await StubServer.with { server in
                server.fallback { request in
                    guard request.headers["Authorization"] != nil else {
                        return .status(401, headers: ["WWW-Authenticate": Self.digest])
                    }
                    return .redirect(307, to: other.url("/taken").absoluteString)
                }
                let manager = manager(for: server)
                let response = try await manager.data(for: manager.request(.post, "x", body: .string("abc")))
                #expect(response.statusCode == 401)
                #expect(response.text == "who are you?")
                #expect(authorizations(other) == [nil])
            }
        }
    }

    @Test(arguments: [AuthenticationScheme.basic, .digest])
    func `a proxy's challenge is answered, when forwarding and when tunnelling`(scheme: AuthenticationScheme)
        async throws
    {
        let challenge = scheme == .basic ? "Basic realm=office" : Self.digest
        try await StubServer.with { server in
            server.fallback { request in
                guard request.headers["Proxy-Authorization"]?.hasPrefix(scheme.description) == true else {
                    return .reply(status: 407, headers: ["Proxy-Authenticate": challenge], body: .string("pay"))
                }
                return request.method == "CONNECT" ? .status(403) : .text("welcome")
            }
            let manager = SessionManager {
                $0.proxy = .proxy(Proxy(.http, host: "127.0.0.1", port: Int(server.endpoint.port)))
                $0.authentication.challengeHandler = { challenge in
                    #expect(challenge.protectionSpace.isProxy)
                    #expect(challenge.protectionSpace.scheme == scheme)
                    return .use(Credential(user: "ada", password: "lovelace"))
                }
            }
            let plain = try await manager.data(
                for: Request(method: .post, url: url("http://a.example/x"), body: .string("abc")))
            #expect(plain.text == "welcome")
            #expect(server.activity.requests.last?.text == "abc")
            // A refusal of the tunnel for another reason shows that the credential was accepted.
            let tunnel = SessionManager(manager.configuration)
            let error = try await sessionError {
                _ = try await tunnel.data(for: Request(url: url("https://a.example/x")))
            }
            guard case .proxy(.tunnelRefused(status: 403)) = error.reason else { throw error }
        }
    }

    @Test func `a proxy with known schemes is authenticated with these`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                guard request.headers["Proxy-Authorization"]?.hasPrefix("Digest") == true else {
                    return .reply(status: 407, headers: ["Proxy-Authenticate": Self.digest], body: .string("pay"))
                }
                return .text("welcome")
            }
            let manager = SessionManager {
                $0.proxy = .proxy(
                    Proxy(
                        .http, host: "127.0.0.1", port: Int(server.endpoint.port),
                        credential: Credential(user: "ada", password: "lovelace", schemes: [.digest])))
            }
            for _ in 0..<2 {
                let request = try Request(method: .post, url: url("http://a.example/x"), body: .string("abc"))
                #expect(try await manager.data(for: request).text == "welcome")
            }
            #expect(server.activity.requests.map(\.text) == ["", "abc", "", "abc"])
        }
    }
}
