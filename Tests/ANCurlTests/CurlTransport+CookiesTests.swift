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
}
