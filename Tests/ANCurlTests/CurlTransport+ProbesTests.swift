// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

/// If libcurl answers challenges, it first sends a request with a body without the body. No answer to that is the response.
@Suite(.timeLimit(.minutes(5))) struct ProbesTests {
    private static let body = Data("the body".utf8)

    private func digestRequest(
        _ server: StubServer, _ path: String, _ method: HTTPRequest.Method = .post,
        scheme: AuthenticationScheme = .digest
    ) -> Request {
        var request = server.request(path, method: method, body: .bytes(Self.body))
        var authentication = TransportAuthentication()
        authentication.server = .init(Credential(user: "user", password: "password"), by: scheme)
        request.transportAuthentication = authentication
        return request
    }

    @Test(arguments: [HTTPRequest.Method.post, .put, .patch, .get, .delete], [200, 201, 204, 302, 403, 404, 500])
    func `a path that is not protected gets the request, and its answer is the response`(
        method: HTTPRequest.Method, status: Int
    ) async throws {
        try await StubServer.with { server in
            server.fallback { request in
                .reply(
                    status: status, headers: ["X-Length": "\(request.bodyLength)", "Location": "/other"],
                    body: .string(status == 204 ? "" : "answer"))
            }
            let transport = try CurlTransport()
            for _ in 0..<3 {
                let (head, body) = try await transport.collect(digestRequest(server, "/open", method))
                #expect(head.status.code == status)
                #expect(head.headers[try #require(HTTPField.Name("X-Length"))] == "8")
                #expect(String(decoding: body, as: UTF8.self) == (status == 204 ? "" : "answer"))
            }
            #expect(server.activity.requests.map(\.bodyLength) == [0, 8, 0, 8, 0, 8])
        }
    }

    @Test(arguments: [HTTPRequest.Method.post, .put], [200, 204, 404])
    func `a proxy that asks for no credential gets the request, and its answer is the response`(
        method: HTTPRequest.Method, status: Int
    ) async throws {
        try await StubServer.with { proxy in
            proxy.fallback { .status(status, headers: ["X-Length": "\($0.bodyLength)"]) }
            let options = TransferOptions.with {
                $0.proxy = .proxy(
                    Proxy(
                        .http, host: "127.0.0.1", port: proxy.endpoint.port,
                        credential: Credential(user: "user", password: "password", schemes: [.digest])))
            }
            let url = try #require(URL(string: "http://origin.invalid/"))
            let request = Request(method: method, url: url, body: .bytes(Self.body), options: options)
            let (head, _) = try await CurlTransport().collect(request)
            #expect(head.status.code == status)
            #expect(head.headers[try #require(HTTPField.Name("X-Length"))] == "8")
            #expect(proxy.activity.requests.map(\.bodyLength) == [0, 8])
        }
    }

    /// libcurl asks for no challenge here, and sends the body at once.
    @Test(.enabled(if: try CurlTransport().authenticationSchemes.contains(.negotiate)), arguments: [200, 302, 403])
    func `a request by Negotiate is sent once, and its answer is the response`(status: Int) async throws {
        try await StubServer.with { server in
            server.fallback { .status(status, headers: ["X-Length": "\($0.bodyLength)"]) }
            var request = server.request(method: .post, body: .bytes(Self.body))
            var authentication = TransportAuthentication()
            authentication.server = .init(.systemTicket, by: .negotiate)
            request.transportAuthentication = authentication
            let (head, _) = try await CurlTransport().collect(request)
            #expect(head.status.code == status)
            #expect(server.activity.requests.map(\.bodyLength) == [8])
        }
    }

    /// A challenge with the flags for Unicode and NTLM, and without the target's name. See MS-NLMP §2.2.1.2.
    private static let ntlmChallenge: String = {
        var message = Data("NTLMSSP\0".utf8)
        message += [2, 0, 0, 0] + [0, 0, 0, 0, 48, 0, 0, 0] + [1, 2, 0, 0] + [1, 2, 3, 4, 5, 6, 7, 8]
        message += [UInt8](repeating: 0, count: 8) + [0, 0, 0, 0, 48, 0, 0, 0]
        return "NTLM " + message.base64EncodedString()
    }()

    @Test(.enabled(if: try CurlTransport().authenticationSchemes.contains(.ntlm)))
    func `each request on a connection that is authenticated by NTLM is sent once`() async throws {
        try await StubServer.with { server in
            let authenticated = Lock(Set<Int>())
            server.fallback { request in
                let answer = request.headers["Authorization"] ?? ""
                if answer.hasPrefix("NTLM TlRMTVNTUAAD") {
                    authenticated.withLock { _ = $0.insert(request.connection) }
                }
                if authenticated.withLock({ $0.contains(request.connection) }) {
                    return .text("\(request.bodyLength) bytes")
                }
                let challenge = answer.isEmpty ? "NTLM" : Self.ntlmChallenge
                return .status(401, headers: ["WWW-Authenticate": challenge])
            }
            let transport = try CurlTransport()
            let bodies =
                [.bytes(Self.body), .bytes(Self.body), .bytes(Data()), .writer(length: 0) { _ in }] as [RequestBody]
            for body in bodies + [.bytes(Self.body)] {
                var request = digestRequest(server, "/", scheme: .ntlm)
                request.body = body
                #expect(try await transport.text(request) == "\(body.bytes?.count ?? 0) bytes")
            }
            let requests = server.activity.requests
            #expect(requests.map(\.bodyLength) == [0, 8, 8, 0, 0, 8])
            #expect(requests.map { $0.headers["Content-Length"] } == ["0", "8", "8", "0", "0", "8"])
        }
    }

    @Test(
        arguments: [
            (.init(host: "origin.invalid", port: 80, address: "other.invalid"), ["CONNECT", "POST"]),
            (.init(host: "", port: 80, address: "", addressPort: 81), ["CONNECT", "POST"]),
            // The proxy forwards the request, the first one as a probe.
            (.init(host: "", port: 80, address: "origin.invalid"), ["POST", "POST"]),
            (.init(host: "other.invalid", port: 80, address: "x.invalid"), ["POST", "POST"]),
        ] as [(ConnectionOptions.HostOverride, [String])])
    func `a request through a tunnel to another host than that of its URL is sent once`(
        override: ConnectionOptions.HostOverride, methods: [String]
    ) async throws {
        try await StubServer.with { proxy in
            proxy.fallback { $0.method == "CONNECT" ? .status(200) : .text("\($0.bodyLength) bytes") }
            let options = TransferOptions.with {
                $0.proxy = .proxy(
                    Proxy(
                        .http, host: "127.0.0.1", port: proxy.endpoint.port,
                        credential: Credential(user: "user", password: "password", schemes: [.digest])))
                $0.connection.hostOverrides = [override]
            }
            let url = try #require(URL(string: "http://origin.invalid/"))
            let request = Request(method: .post, url: url, body: .bytes(Self.body), options: options)
            #expect(try await CurlTransport().text(request) == "8 bytes")
            #expect(proxy.activity.requests.map(\.method) == methods)
        }
    }

    @Test func `a request that bypasses the proxy is sent once`() async throws {
        try await StubServer.with { server in
            server.fallback { .status(200, headers: ["X-Length": "\($0.bodyLength)"]) }
            let options = TransferOptions.with {
                $0.proxy = .proxy(
                    Proxy(
                        .http, host: "127.0.0.1", port: 1,
                        credential: Credential(user: "user", password: "password", schemes: [.digest]),
                        bypass: ["127.0.0.1"]))
            }
            let request = server.request(method: .post, body: .bytes(Self.body), options: options)
            let (head, _) = try await CurlTransport().collect(request)
            #expect(head.status == .ok)
            #expect(server.activity.requests.map(\.bodyLength) == [8])
        }
    }

    @Test(
        arguments: [
            (.digest, .basic), (.digest, .digest), (.basic, .digest), (.digest, nil), (.basic, .basic),
        ] as [(AuthenticationScheme, AuthenticationScheme?)], [200, 404])
    func `a refused probe of the server or a proxy takes no other credential`(
        schemes: (server: AuthenticationScheme, proxy: AuthenticationScheme?), status: Int
    ) async throws {
        try await StubServer.with { proxy in
            proxy.fallback { .status(status, headers: ["X-Length": "\($0.bodyLength)"]) }
            let credential = schemes.proxy.map { Credential(user: "user", password: "password", schemes: [$0]) }
            let options = TransferOptions.with {
                $0.proxy = .proxy(
                    Proxy(.http, host: "127.0.0.1", port: proxy.endpoint.port, credential: credential))
            }
            let url = try #require(URL(string: "http://origin.invalid/"))
            var request = Request(method: .post, url: url, body: .bytes(Self.body), options: options)
            var authentication = TransportAuthentication()
            authentication.server = .init(Credential(user: "ada", password: "secret"), by: schemes.server)
            request.transportAuthentication = authentication
            let (head, _) = try await CurlTransport().collect(request)
            #expect(head.status.code == status)
            #expect(head.headers[try #require(HTTPField.Name("X-Length"))] == "8")
            let requests = proxy.activity.requests
            #expect(requests.last?.bodyLength == 8)
            for received in requests {
                #expect(
                    received.headers["Proxy-Authorization"]
                        == (schemes.proxy == .basic ? "Basic dXNlcjpwYXNzd29yZA==" : nil))
                #expect(
                    received.headers["Authorization"] == (schemes.server == .basic ? "Basic YWRhOnNlY3JldA==" : nil))
            }
        }
    }

    @Test(arguments: [429, 503])
    func `a proxy that is overloaded gets neither the body nor a request without credentials`(status: Int) async throws
    {
        try await StubServer.with { proxy in
            proxy.fallback { _ in .status(status) }
            let credential = Credential(user: "user", password: "password", schemes: [.digest])
            let options = TransferOptions.with {
                $0.proxy = .proxy(
                    Proxy(.http, host: "127.0.0.1", port: proxy.endpoint.port, credential: credential))
            }
            let transport = try CurlTransport()
            let url = try #require(URL(string: "http://origin.invalid/"))
            for body in [RequestBody.bytes(Self.body), .stream(Feed())] {
                let request = Request(method: .post, url: url, body: body, options: options)
                #expect(try await transport.collect(request).head.status.code == status)
            }
            #expect(proxy.activity.requests.map(\.bodyLength) == [0, 0])
        }
    }

    @Test(arguments: [true, false], [true, false])
    func `the body is sent whoever asks for a credential, if there is one for each`(
        proxyAsks: Bool, serverAsks: Bool
    ) async throws {
        try await StubServer.with { proxy in
            let challenge = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
            proxy.fallback { request in
                func isAnswered(_ name: String) -> Bool { request.headers[name]?.contains("response=") == true }
                if proxyAsks, !isAnswered("Proxy-Authorization") {
                    return .status(407, headers: ["Proxy-Authenticate": challenge])
                }
                if serverAsks, !isAnswered("Authorization") {
                    return .status(401, headers: ["WWW-Authenticate": challenge])
                }
                return .text("\(request.bodyLength) bytes")
            }
            let user = Credential(user: "user", password: "password", schemes: [.digest])
            let options = TransferOptions.with {
                $0.proxy = .proxy(Proxy(.http, host: "127.0.0.1", port: proxy.endpoint.port, credential: user))
            }
            let url = try #require(URL(string: "http://origin.invalid/"))
            var request = Request(method: .post, url: url, body: .bytes(Self.body), options: options)
            var authentication = TransportAuthentication()
            authentication.server = .init(Credential(user: "ada", password: "secret"), by: .digest)
            request.transportAuthentication = authentication
            let transport = try CurlTransport()
            for _ in 0..<2 { #expect(try await transport.text(request) == "8 bytes") }
        }
    }

    @Test(arguments: [HTTPRequest.Method.get, .post])
    func `a server for which each answer is stale is asked no more, and its body is delivered`(
        method: HTTPRequest.Method
    ) async throws {
        try await StubServer.with { server in
            server.fallback { _ in
                .reply(
                    status: 401,
                    headers: ["WWW-Authenticate": #"Digest realm="a", nonce="b", qop="auth", stale=true"#],
                    body: .string("ten bytes."))
            }
            let (head, body) = try await CurlTransport().collect(digestRequest(server, "/", method))
            #expect(head.status.code == 401)
            #expect(String(decoding: body, as: UTF8.self) == "ten bytes.")
            // The second answer would be stale again.
            #expect(server.activity.requests.map { $0.headers["Authorization"] != nil } == [false, true])
            #expect(Set(server.activity.requests.map(\.connection)) == [0])
        }
    }

    @Test(arguments: [HTTPRequest.Method.get, .post], [BodyDelivery.streamed, .collected(upTo: 1_000)])
    func `the body of a challenge may be endless`(method: HTTPRequest.Method, delivery: BodyDelivery) async throws {
        try await StubServer.with { server in
            for framing in [Reply.Framing.contentLength(declared: 1 << 40), .untilClose] {
                let headers: HeaderPairs = ["WWW-Authenticate": #"Digest realm="a", nonce="b", qop="auth""#]
                server.enqueue(
                    Script([.reply(Reply(status: 401, headers: headers, framing: framing)), .generate(1 << 40)]),
                    .text("end"))
                let text = try await CurlTransport().withResponse(
                    for: digestRequest(server, "/", method), delivery: delivery
                ) { _, body in
                    String(decoding: try await body.collect(upTo: 100), as: UTF8.self)
                }
                #expect(text == "end")
            }
        }
    }

    /// The source, of whose bytes all were sent, fails while libcurl receives the response.
    @Test(.enabled(if: try CurlTransport().authenticationSchemes.contains(.ntlm)))
    func `a final challenge is the response although the body's source has failed`() async throws {
        try await StubServer.with { server in
            server.route("/", method: "POST") { request in
                guard request.bodyLength > 0 else {
                    return .status(401, headers: ["WWW-Authenticate": Self.ntlmChallenge])
                }
                let fields = "WWW-Authenticate: NTLM\r\nContent-Length: 0\r\n"
                let text = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 401 Unauthorized\r\n\(fields)\r\n"
                return Script([.send(Data(text.utf8))])
            }
            let barrier = Barrier { if case .informational = $0 { true } else { false } }
            var request = digestRequest(server, "/", scheme: .ntlm)
            request.body = .writer(length: 5) { writer in
                try await writer.write("hello")
                try await eventually { barrier.isReached.isRaised }
                barrier.mayPass.signal()
                throw Planned()
            }
            let transport = try CurlTransport()
            let (head, _) = try await transport.collect(request, reporting: barrier)
            #expect(head.status.code == 401)
        }
    }

    @Test func `only the events of the last exchange are reported`() async throws {
        try await StubServer.with { server in
            server.enqueue(
                .status(401, headers: ["WWW-Authenticate": #"Digest realm="a", nonce="b", qop="auth""#]), .text("end"))
            let events = EventRecorder()
            _ = try await CurlTransport().withResponse(
                for: digestRequest(server, "/"), delivery: .streamed, reporting: events
            ) { _, body in try await body.collect(upTo: 100) }
            let statuses = events.events.compactMap { if case .head(let head) = $0 { head.status.code } else { nil } }
            #expect(statuses == [200])
            let ends = events.events.filter { if case .finished = $0 { true } else { false } }
            #expect(ends.count == 1)
        }
    }

    @Test(arguments: [
        "/", "/a/../b", "/a/./b?x=1&y=%7E", "/a/%2e%2E/b", "/%41b;c=(d)?", "/.well-known/x", "?q", "",
    ])
    func `the answer names the target that is sent`(target: String) async throws {
        try await StubServer.with { server in
            server.fallback { request in
                guard let answer = request.headers["Authorization"] else {
                    return .status(401, headers: ["WWW-Authenticate": #"Digest realm="a", nonce="b", qop="auth""#])
                }
                return .text("\(answer.contains("uri=\"\(request.target)\","))")
            }
            let url = try #require(URL(string: "http://127.0.0.1:\(server.endpoint.port)\(target)"))
            var request = digestRequest(server, "/", .get)
            request.url = url
            let text = try await CurlTransport().text(request)
            #expect(text == "true")
        }
    }

    @Test(arguments: ["SHA-512-256", "MD5-sess"], ["auth", "auth-int"])
    func `a challenge that libcurl cannot answer is answered`(algorithm: String, protection: String) async throws {
        try await StubServer.with { server in
            server.fallback { request in
                guard let answer = request.headers["Authorization"] else {
                    let digest = #"realm="a", nonce="b", qop="\#(protection)""#
                    return .status(
                        401,
                        headers: [
                            "WWW-Authenticate": "Digest \(digest), algorithm=SHA-3",
                            "WWW-Authenticate": "Digest \(digest), algorithm=\(algorithm)",
                        ])
                }
                return .text("\(answer.contains("algorithm=\(algorithm)")) \(request.bodyLength)")
            }
            let text = try await CurlTransport().text(digestRequest(server, "/"))
            #expect(text == "true 8")
        }
    }

    @Test func `a server that asks for another scheme leaves the connection as it was`() async throws {
        try await StubServer.with { server in
            server.route("/basic") { _ in .status(401, headers: ["WWW-Authenticate": "Basic realm=\"r\""]) }
            server.route("/broken") { _ in .status(401, headers: ["WWW-Authenticate": "Digest realm=\"r\""]) }
            server.fallback { .text("\($0.bodyLength) bytes") }
            let transport = try CurlTransport()
            for path in ["/basic", "/broken", "/basic"] {
                #expect(try await transport.collect(digestRequest(server, path)).head.status.code == 401)
                let plain = server.request("/plain", method: .post, body: .bytes(Self.body))
                for _ in 0..<2 { #expect(try await transport.text(plain) == "8 bytes") }
            }
        }
    }

    @Test func `a challenge is answered with the body, and the connection serves others`() async throws {
        try await StubServer.with { server in
            server.route("/digest") { request in
                guard request.headers["Authorization"]?.contains("response=") == true else {
                    return .status(
                        401, headers: ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""])
                }
                return .text("\(request.bodyLength) bytes")
            }
            server.fallback { .text("\($0.bodyLength) bytes") }
            let transport = try CurlTransport()
            for _ in 0..<3 {
                #expect(try await transport.text(digestRequest(server, "/digest")) == "8 bytes")
                let plain = server.request("/plain", method: .put, body: .bytes(Self.body))
                #expect(try await transport.text(plain) == "8 bytes")
            }
        }
    }

    @Test func `protected and open paths can be mixed on many connections`() async throws {
        try await StubServer.with { server in
            server.route("/digest") { request in
                guard request.headers["Authorization"]?.contains("response=") == true else {
                    return .status(
                        401, headers: ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""])
                }
                return .text("\(request.bodyLength)")
            }
            server.route("/basic") { _ in .status(401, headers: ["WWW-Authenticate": "Basic realm=\"r\""]) }
            server.fallback { .text("\($0.bodyLength)") }
            let transport = try CurlTransport()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<240 {
                    group.addTask {
                        switch number % 4 {
                        case 0: #expect(try await transport.text(digestRequest(server, "/digest")) == "8")
                        case 1: #expect(try await transport.text(digestRequest(server, "/open", .put)) == "8")
                        case 2:
                            let head = try await transport.collect(digestRequest(server, "/basic")).head
                            #expect(head.status.code == 401)
                        default:
                            let plain = server.request("/plain", method: .patch, body: .bytes(Self.body))
                            #expect(try await transport.text(plain) == "8")
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }
}
