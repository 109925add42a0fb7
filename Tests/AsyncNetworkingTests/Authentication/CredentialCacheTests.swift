// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// The requests that include an accepted answer from the start, and the handling of its refusal.
@Suite struct CredentialCacheTests {
    private static let basic = #"Basic realm="b""#
    private static let digest = #"Digest realm="d", nonce="n", qop="auth""#

    /// A transport whose challenges depend on the start of the path; other paths are not protected.
    private static func server(_ protection: [String: String]) -> MockTransport {
        MockTransport { request in
            let path = request.url.path
            guard let challenge = protection.first(where: { path.hasPrefix($0.key) })?.value else {
                return .text("open")
            }
            let isAccepted =
                switch challenge.prefix(while: { $0 != " " }) {
                case "Basic": request.headers[.authorization] == adasField
                default: request.transportAuthentication?.server?.scheme == .digest
                }
            return isAccepted ? .text("welcome") : .status(.unauthorized, headers: [.wwwAuthenticate: challenge])
        }
    }

    private func manager(on transport: MockTransport) throws -> SessionManager {
        let base = try url("http://a.example/")
        return SessionManager(on: transport) { $0.authentication.credentials[base] = ada }
    }

    /// Performs requests such as `GET /x`, all of which must succeed, and returns the schemes that were sent.
    private func schemes(_ lines: [String], on transport: MockTransport) async throws -> [String] {
        let manager = try manager(on: transport)
        var schemes: [String] = []
        for line in lines {
            let count = transport.requests.count
            let words = line.split(separator: " ")
            let method = try #require(words.first.flatMap { HTTPRequest.Method(rawValue: String($0)) })
            let target = try url("http://a.example\(try #require(words.last))")
            let body: RequestBody = method == .get || method == .head ? .none : .string("abc")
            let response = try await manager.data(for: Request(method: method, url: target, body: body))
            #expect(response.statusCode == 200, "\(line)")
            schemes.append(
                transport.requests.dropFirst(count).map { Self.scheme(of: $0.request) }.joined(separator: " "))
        }
        return schemes
    }

    private static func scheme(of request: Request) -> String {
        if let answer = request.transportAuthentication?.server { return answer.scheme.description }
        return request.headers[.authorization] == nil ? "-" : "Basic"
    }

    @Test func `Basic and Digest paths of one origin are distinguished`() async throws {
        let transport = Self.server(["/basic": Self.basic, "/digest": Self.digest])
        let schemes = try await schemes(
            [
                "GET /basic1", "GET /digest1", "GET /basic1", "GET /digest1", "GET /basic2", "GET /digest2",
                "POST /basic1", "POST /digest1", "POST /basic1", "POST /digest1",
            ], on: transport)
        #expect(
            schemes == [
                "- Basic", "Basic Digest", "Basic", "Digest", "Digest Basic", "Basic Digest",
                "Basic", "Basic Digest", "Basic", "Digest",
            ])
    }

    @Test func `Basic is sent to the directory in which it was accepted and below, but not above`() async throws {
        let transport = Self.server(["/docs/": Self.basic])
        let schemes = try await schemes(
            [
                "GET /docs/a/x", "POST /docs/a/y", "GET /docs/a/b/z", "GET /docs/x", "GET /docs/b/x", "GET /",
                "GET /docs",
            ],
            on: transport)
        #expect(schemes == ["- Basic", "Basic", "Basic", "- Basic", "Basic", "-", "-"])
    }

    @Test(arguments: ["GET /docs/a/../../x", "GET /docs/a/%2e%2E/%2e./x", "GET /docs/a/./x"])
    func `a path that leads out of a directory is not inside it`(line: String) async throws {
        let transport = Self.server(["/docs/a/y": Self.basic])
        let schemes = try await schemes(["GET /docs/a/y", line], on: transport)
        #expect(schemes == ["- Basic", "-"])
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "DELETE"])
    func `Digest is not sent with a body to a path that was not challenged`(method: String) async throws {
        let transport = Self.server(["/digest": Self.digest])
        let schemes = try await schemes(
            [
                "GET /digest1", "GET /open", "\(method) /open", "\(method) /digest1", "\(method) /digest1",
                "\(method) /open", "HEAD /digest2",
            ], on: transport)
        #expect(schemes == ["- Digest", "Digest", "-", "- Digest", "Digest", "-", "Digest"])
    }

    @Test func `a Digest challenge declares the paths of its space`() async throws {
        let domain = Self.digest + #", domain="/api http://a.example/files/ http://b.example/else /v2""#
        let transport = Self.server(["/api": domain, "/files/": domain, "/else": domain])
        let schemes = try await schemes(
            [
                "POST /api/x", "POST /api/y", "GET /api", "PUT /files/z", "GET /files", "GET /apiary", "GET /else/x",
                "GET /open",
            ], on: transport)
        #expect(schemes == ["- Digest", "Digest", "Digest", "Digest", "-", "- Digest", "- Digest", "-"])
    }

    @Test func `if a server no longer accepts a remembered scheme, the credential does not count as refused`()
        async throws
    {
        let challenge = EventList<String>()
        await challenge.append(Self.basic)
        let transport = MockTransport { request in
            let current = await challenge.values.last ?? ""
            let isAccepted = current.hasPrefix(Self.scheme(of: request))
            return isAccepted ? .text("welcome") : .status(.unauthorized, headers: [.wwwAuthenticate: current])
        }
        let manager = try manager(on: transport)
        for next in [Self.digest, Self.basic, Self.digest] {
            #expect(try await manager.data(for: manager.request(.get, "/x")).statusCode == 200)
            await challenge.append(next)
        }
        let seen = transport.requests.map { Self.scheme(of: $0.request) }
        #expect(seen == ["-", "Basic", "Basic", "Digest", "Digest", "Basic"])
    }

    @Test func `for another space, a handler is called without previous failures`() async throws {
        let transport = Self.server(["/basic": Self.basic, "/digest": Self.digest])
        let asked = EventList<AuthenticationChallenge>()
        let manager = SessionManager(on: transport) {
            $0.authentication.challengeHandler = { challenge in
                await asked.append(challenge)
                return .use(ada)
            }
        }
        for path in ["/basic1", "/digest1", "/basic1", "/digest1"] {
            #expect(try await manager.data(for: manager.request(.get, path)).statusCode == 200)
        }
        #expect(await asked.values.map(\.protectionSpace.realm) == ["b", "d"])
        #expect(await asked.values.map(\.previousFailureCount) == [0, 0])
    }

    @Test func `a credential sent to a nested realm does not count as a failure there`() async throws {
        let transport = MockTransport { request in
            let (realm, field) = request.url.path.hasPrefix("/a/b/") ? ("b", "Basic Yjpi") : ("a", adasField)
            guard request.headers[.authorization] == field else {
                return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\(realm)"])
            }
            return .text("welcome")
        }
        let counts = EventList<Int>()
        let manager = SessionManager(on: transport) {
            $0.authentication.challengeHandler = { challenge in
                await counts.append(challenge.previousFailureCount)
                return .use(challenge.protectionSpace.realm == "b" ? Credential(user: "b", password: "b") : ada)
            }
        }
        for path in ["/a/x", "/a/b/x"] { _ = try await manager.get(path) }
        #expect(await counts.values == [0, 0])
    }

    @Test func `a credential refused by another realm remains valid for its own`() async throws {
        let transport = MockTransport { request in
            guard request.headers[.authorization] == adasField, request.url.path == "/mine" else {
                let realm = request.url.path == "/mine" ? "mine" : "other"
                return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\(realm)"])
            }
            return .text("welcome")
        }
        let manager = try manager(on: transport)
        for (path, status) in [("/mine", 200), ("/other", 401), ("/mine", 200)] {
            #expect(try await manager.data(for: manager.request(.get, path)).statusCode == status)
        }
        #expect(transport.authorizations == [nil, adasField, adasField, adasField])
    }

    @Test func `the number of remembered realms of a server is limited`() async throws {
        let transport = MockTransport { request in
            guard request.headers[.authorization] == nil else { return .text("welcome") }
            return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"\(request.url.path)\""])
        }
        let manager = try manager(on: transport)
        // The 33rd space displaces the first one.
        for number in 0...32 { _ = try await manager.get("/\(number)/x") }
        let count = transport.requests.count
        _ = try await manager.get("/1/x")
        _ = try await manager.get("/0/x")
        #expect(transport.authorizations.dropFirst(count) == [adasField, nil, adasField])
    }
}
