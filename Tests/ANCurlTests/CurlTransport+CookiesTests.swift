// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(2))) struct CurlTransportCookiesTests {
    @Test(arguments: [(1, true), (2, true), (3, false)])
    func `a request's own cookies are sent beside stored ones, or it fails`(count: Int, isSent: Bool) async throws {
        try await StubServer.with { server in
            server.fallback { request in .text(request.headers.values("Cookie").joined(separator: " | ")) }
            let transport = try CurlTransport()
            await transport.features.cookies?.set(
                (0..<count).map { number in
                    Cookie(name: "c\(number)", value: String(repeating: "x", count: 3900), domain: "127.0.0.1")
                })
            let request = server.request(headers: [.cookie: "own=1"])
            if isSent {
                #expect(try await transport.text(request).hasSuffix("; own=1"))
            } else {
                let error = try await transport.failure(request)
                guard case .invalidRequest(let reason) = error.reason else { throw error }
                #expect(reason.contains("Cookie"))
                #expect(server.activity.requests.isEmpty)
            }
        }
    }

    /// The cookies, or the field after them, would be lost.
    @Test(arguments: [10, 2_990, 3_100, 9_000], [10, 4_000])
    func `cookies are sent with a URL of any length`(length: Int, size: Int) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .reply(headers: ["Set-Cookie": "new=1; Path=/"]) }
            let transport = try CurlTransport()
            let value = String(repeating: "x", count: size)
            await transport.features.cookies?.set([Cookie(name: "id", value: value, domain: "127.0.0.1")])
            let url = server.url("/?q=" + String(repeating: "q", count: length))
            let first = try #require(HTTPField.Name("X-First"))
            _ = try await transport.collect(Request(url: url, headers: [first: "1"]))
            let sent = try #require(server.activity.requests.first).headers
            #expect(sent.values("Cookie") == ["id=\(value)"])
            #expect(sent.values("X-First") == ["1"])
            #expect(await transport.features.cookies?.cookies().map(\.name).contains("new") == true)
            _ = try? await transport.collect(Request(url: url, headers: [first: "1", .cookie: "own=1"]))
            for request in server.activity.requests.dropFirst() {
                #expect(request.headers.values("Cookie") == ["new=1; id=\(value); own=1"])
                #expect(request.headers.values("X-First") == ["1"])
            }
        }
    }

    /// libcurl writes the credential, which repeats the URL, before the cookies.
    @Test func `cookies are sent with the answer to a challenge, those that came with it too`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                guard request.headers["Authorization"] == nil else { return .text("ok") }
                let challenge = "Digest realm=\"x\", nonce=\"\(String(repeating: "n", count: 300))\", qop=\"auth\""
                return .reply(status: 401, headers: ["WWW-Authenticate": challenge, "Set-Cookie": "new=1; Path=/"])
            }
            for length in [10, 2_400] {
                let transport = try CurlTransport()
                let value = String(repeating: "x", count: 3_500)
                await transport.features.cookies?.set([Cookie(name: "id", value: value, domain: "127.0.0.1")])
                let first = try #require(HTTPField.Name("X-First"))
                var request = Request(
                    url: server.url("/?q=" + String(repeating: "q", count: length)), headers: [first: "1"])
                var authentication = TransportAuthentication()
                authentication.server = .init(Credential(user: "ada", password: "secret"), by: .digest)
                request.transportAuthentication = authentication
                #expect(try await transport.text(request) == "ok")
                let answer = try #require(server.activity.requests.last).headers
                #expect(answer.values("Cookie") == ["new=1; id=\(value)"])
                #expect(answer.values("X-First") == ["1"])
            }
        }
    }

    @Test func `the engine keeps the limits of libcurl on the cookies of a response`() async throws {
        try await StubServer.with { server in
            let many = (0..<60).map { "Set-Cookie: n\($0)=1\r\n" }.joined()
            let large = "Set-Cookie: large=" + String(repeating: "x", count: 4_200) + "\r\n"
            server.fallback { _ in .raw("HTTP/1.1 200 OK\r\n\(large)\(many)Content-Length: 0\r\n\r\n") }
            for host in ["other.test", server.url("/").authority] {
                let transport = try CurlTransport()
                let name = HTTPField.Name(constant: "host")
                _ = try await transport.collect(server.request(headers: [name: host]))
                let cookies = await transport.features.cookies?.cookies() ?? []
                #expect(!cookies.contains { $0.name == "large" })
                #expect(49...50 ~= cookies.count)
            }
        }
    }

    @Test func `servers cannot set any number of cookies`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .reply(headers: ["Set-Cookie": "last=1"]) }
            let transport = try CurlTransport()
            let jar = try #require(transport.features.cookies)
            func cookies(_ range: Range<Int>) -> [Cookie] {
                range.map { Cookie(name: "n\($0)", value: "1", domain: "\($0 % 100).test") }
            }
            await jar.set(cookies(0..<3_300))
            #expect(await jar.cookies().count == 3_300)
            _ = try await transport.collect(server.request())
            #expect(await jar.cookies().filter { !$0.isExpired() }.count == 3_000)
            await jar.set(cookies(3_300..<4_000))
            #expect(await jar.cookies().filter { !$0.isExpired() }.count == 3_000)
        }
    }

    /// libcurl stores paths in any spelling, and before 8.18 tells them so.
    @Test func `cookies of any path are told as they are sent, and can be removed`() async throws {
        let paths = ["\"/app/\"", "", "x", "/app/", "/app", "/a\u{1}", "\"", "/", "//", "/a//", "\"/b"]
        try await StubServer.with { server in
            server.fallback { request in
                guard request.path == "/app/login" else {
                    return .text(request.headers.values("Cookie").joined(separator: " | "))
                }
                let lines = paths.enumerated().map { "Set-Cookie: n\($0)=1; Path=\($1)\r\n" }.joined()
                return .raw("HTTP/1.1 200 OK\r\n\(lines)Set-Cookie: own=1\r\nContent-Length: 0\r\n\r\n")
            }
            let transport = try CurlTransport()
            let jar = try #require(transport.features.cookies)
            _ = try? await transport.collect(Request(url: server.url("/app/login")))
            let told = await jar.cookies().filter { !$0.isExpired() }
            #expect(told.count == paths.count + 1)
            #expect(Set(told.map(\.path)) == ["/app", "/", "/a\u{1}", "/a/", "/b"])
            for path in ["/app", "/app/x", "/other"] {
                let url = server.url(path)
                let sent = try await transport.text(Request(url: url))
                let expected = Set(told.filter { $0.matches(url) }.map { "\($0.name)=1" })
                #expect(Set(sent.split(separator: "; ").map(String.init)) == expected)
            }
            await jar.remove(told)
            #expect(try await transport.text(Request(url: server.url("/app/x"))) == "")
            #expect(await jar.cookies().filter { !$0.isExpired() }.isEmpty)
        }
    }

    /// Returns a transport to a server with the name a.example.test, and its URL.
    private static func transport(toPlain server: StubServer) throws -> (CurlTransport, URL) {
        let port = server.endpoint.port
        let options = TransferOptions.with {
            $0.connection.hostOverrides = [
                .init(host: "a.example.test", port: port, address: "127.0.0.1", addressPort: port)
            ]
        }
        return (try CurlTransport(options: options), try #require(URL(string: "http://a.example.test:\(port)/")))
    }

    /// libcurl tells 3,000 cookies in 14 ms, which lines and interim heads must not make it do each.
    @Test(arguments: [
        "HTTP/1.1 200 OK\r\n" + String(repeating: "set-cookie:id=evil; Domain=example.test\r\n", count: 3_000),
        String(repeating: "HTTP/1.1 103\r\nset-cookie:id=evil; Domain=example.test\r\n\r\n", count: 4_000)
            + "HTTP/1.1 200 OK\r\n",
    ])
    func `a head of thousands of cookies is received beside thousands of stored ones`(head: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .raw("\(head)Content-Length: 0\r\n\r\n") }
            let (transport, url) = try Self.transport(toPlain: server)
            let secure = Cookie(name: "id", value: "mine", domain: "a.example.test", isSecure: true)
            let others = (0..<3_000).map { Cookie(name: "n\($0)", value: "1", domain: "\($0 % 100).test") }
            await transport.features.cookies?.set([secure] + others)
            _ = try await transport.collect(Request(url: url))
            let cookies = await transport.features.cookies?.cookies() ?? []
            #expect(cookies.filter { $0.name == "id" && !$0.isExpired() } == [secure])
        }
    }

    /// RFC 6265bis §5.7.
    @Test(arguments: [".", "%2E"])
    func `a response without TLS overlays no secure cookie of its site`(dot: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in
                .reply(
                    headers: [
                        "Set-Cookie": "id=evil; Path=/", "Set-Cookie": "id=evil; Domain=example.test; Path=/",
                        "Set-Cookie": "id=evil; Path=/below", "Set-Cookie": "other=fine; Path=/",
                    ])
            }
            let port = server.endpoint.port
            let options = TransferOptions.with { options in
                options.connection.hostOverrides = ["a", "b.a"].map {
                    .init(host: "\($0).example.test", port: port, address: "127.0.0.1", addressPort: port)
                }
            }
            let transport = try CurlTransport(options: options)
            let secure = Cookie(
                name: "id", value: "mine", domain: "a.example.test", includesSubdomains: true, isSecure: true)
            let foreign = Cookie(name: "id", value: "foreign", domain: "c.test")
            let sibling = Cookie(name: "id", value: "sibling", domain: "b.test", path: "/app")
            let secureSibling = Cookie(name: "id", value: "secure", domain: "b.test", isSecure: true)
            await transport.features.cookies?.set([secure, foreign, sibling, secureSibling])
            for host in ["a", "b.a"] {
                let url = try #require(URL(string: "http://\(host)\(dot)example.test:\(port)/"))
                _ = try await transport.collect(Request(url: url))
            }
            let cookies = await (transport.features.cookies?.cookies() ?? []).filter { !$0.isExpired() }
            #expect(
                Set(cookies.map { "\($0.name)=\($0.value) \($0.domain)" }) == [
                    "id=mine a.example.test", "id=foreign c.test", "id=sibling b.test", "id=secure b.test",
                    "other=fine a.example.test",
                    "other=fine b.a.example.test",
                ])
        }
    }

    @Test(.enabled(if: HostName("bücher.test").ascii != nil), arguments: [false, true])
    func `the cookies of an internationalized host are those of its ASCII form`(hasHostField: Bool) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .reply(headers: ["Set-Cookie": "id=evil; Path=/", "Set-Cookie": "new=1; Path=/"]) }
            let port = server.endpoint.port
            let options = TransferOptions.with {
                $0.connection.hostOverrides = [.init(host: "", port: port, address: "127.0.0.1", addressPort: port)]
            }
            let transport = try CurlTransport(options: options)
            let domain = "xn--bcher-kva.test"
            let secure = Cookie(
                name: "id", value: "mine", domain: "a.\(domain)", includesSubdomains: true, isSecure: true)
            await transport.features.cookies?.set([secure, Cookie(name: "old", value: "1", domain: domain)])
            let url = try #require(URL(string: "http://b%C3%BCcher.test:\(port)/"))
            let host = HTTPField.Name(constant: "host")
            for _ in 0..<2 {
                _ = try await transport.collect(Request(url: url, headers: hasHostField ? [host: "other.test"] : [:]))
            }
            let sent = server.activity.requests.map { Set(($0.headers["Cookie"] ?? "").components(separatedBy: "; ")) }
            #expect(sent == [["old=1"], ["old=1", "new=1"]])
            let cookies = await (transport.features.cookies?.cookies() ?? []).filter { !$0.isExpired() }
            #expect(
                Set(cookies.map { "\($0.name) \($0.domain)" }) == ["id a.\(domain)", "old \(domain)", "new \(domain)"])
        }
    }

    /// libcurl stores a cookie when it receives its line, whatever becomes of the head, and by laxer rules than those of
    /// `Cookie`.
    @Test(arguments: [
        "HTTP/1.1 103 Early Hints\r\nSet-Cookie: id=evil; Domain=example.test; Path=/\r\n\r\nHTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nSet-Cookie: id=evil; Domain=example.test; Path=/\r\nno field\r\n",
        "HTTP/1.1 200 OK\r\nSet-Cookie: id=evil; Domain=example.test; Path=/\r\nX-Cut",
        "HTTP/1.1 200 OK\r\nSet-Cookie: id=evil; Domain=example.test; Path=/; Secure=1\r\n",
        "HTTP/1.1 200 OK\r\nSet-Cookie: id=evil; Domain=example.test; Path=/; x=\u{1}\r\n",
        "HTTP/1.1 200 OK\r\nset-cookie: ; \t;ID =evil; Domain=example.test; Path=/\r\n",
        "HTTP/1.1 200 OK\r\nSet-Cookie: id=evil; Domain=example.test; Path=/\r\n ; Secure\r\n",
        "HTTP/1.1 200 OK\r\nSet-Cookie: =x; id=evil; Domain=example.test; Path=/\r\n",
        "HTTP/1.1 200 OK\r\nSet-Cookie: id=evil; Domain=example.test; Path=x\r\n",
        "HTTP/1.1 200 OK\r\nSet-Cookie: id=evil; Domain=example.test; Path=\"/\"\r\n",
    ])
    func `no header line without TLS overlays a secure cookie of its site`(head: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .raw(head.contains("X-Cut") ? head : head + "Content-Length: 0\r\n\r\n") }
            let (transport, url) = try Self.transport(toPlain: server)
            let secure = Cookie(name: "id", value: "mine", domain: "a.example.test", isSecure: true)
            await transport.features.cookies?.set([secure])
            _ = try? await transport.collect(Request(url: url))
            #expect(server.activity.requests.count == 1)
            // Some versions store a cookie without a name.
            let cookies = await (transport.features.cookies?.cookies() ?? [])
                .filter { !$0.isExpired() && !$0.name.isEmpty }
            #expect(cookies == [secure])
        }
    }

    /// libcurl has stored the first cookie by its list of public suffixes.
    @Test func `a cookie of a domain is replaced and removed by a response to a request with a Host field`()
        async throws
    {
        try await StubServer.with { server in
            let set = ["id=old", "id=new", "id=; Max-Age=0"].map { "\($0); Domain=example.test; Path=/" }
            for cookie in set { server.enqueue(.reply(headers: ["Set-Cookie": cookie])) }
            let port = server.endpoint.port
            let options = TransferOptions.with {
                $0.connection.hostOverrides = [
                    .init(host: "www.example.test", port: port, address: "127.0.0.1", addressPort: port)
                ]
            }
            let transport = try CurlTransport(options: options)
            let url = try #require(URL(string: "http://www.example.test:\(port)/"))
            func cookies() async -> [Cookie] {
                await (transport.features.cookies?.cookies() ?? []).filter { !$0.isExpired() }
            }
            _ = try await transport.collect(Request(url: url))
            #expect(
                await cookies() == [Cookie(name: "id", value: "old", domain: "example.test", includesSubdomains: true)])
            let request = Request(url: url, headers: [.host: "other.test"])
            _ = try await transport.collect(request)
            #expect(
                await cookies() == [Cookie(name: "id", value: "new", domain: "example.test", includesSubdomains: true)])
            _ = try await transport.collect(request)
            #expect(await cookies() == [])
        }
    }

    /// RFC 6265 §5.3 and §5.4: the host is that of the URL. For libcurl it is that of the field.
    @Test func `a Host field does not change which cookies are sent and stored`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                .reply(
                    headers: ["Set-Cookie": "new=1; Path=/"],
                    body: .string(request.headers.values("Cookie").joined(separator: " | ")))
            }
            let transport = try CurlTransport()
            let (mine, other) = (
                Cookie(name: "id", value: "mine", domain: "127.0.0.1"),
                Cookie(name: "id", value: "other", domain: "other.test")
            )
            await transport.features.cookies?.set([mine, other])
            let host = HTTPField.Name(constant: "host")
            let request = server.request(headers: [host: "other.test", .cookie: "own=1"])
            #expect(try await transport.text(request) == "id=mine; own=1")
            #expect(server.activity.requests.last?.headers.values("Host") == ["other.test"])
            let new = Cookie(name: "new", value: "1", domain: "127.0.0.1")
            #expect(Set(await (transport.features.cookies?.cookies() ?? [])) == [mine, other, new])
            #expect(try await transport.text(server.request(headers: [host: "other.test"])).contains("new=1"))
            let without = server.request(
                headers: [host: "other.test"], options: .with { $0.handlesCookies = false })
            #expect(try await transport.text(without) == "")
        }
    }
}
