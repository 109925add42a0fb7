// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite struct ProxyPolicyTests {
    private static let proxy = "https://proxy.example:8443"

    @Test func `a request reaches the host of its URL unless a proxy, a socket or another host takes its place`() throws
    {
        let proxy = Proxy(.http, host: "proxy.example", port: 3128, bypass: ["b.example"])
        func reaches(_ host: String, _ change: (inout TransferOptions) -> Void) throws -> Bool {
            var request = try Request(url: #require(URL(string: "https://\(host)/")))
            request.options = TransferOptions().with {
                $0.proxy = .none
                change(&$0)
            }
            return try CurlTransport().features.reachesHost(request)
        }
        func override(_ host: String) -> ConnectionOptions.HostOverride {
            .init(host: host, port: 443, address: "127.0.0.1")
        }
        #expect(try reaches("a.example") { _ in })
        #expect(try !reaches("a.example") { $0.proxy = .proxy(proxy) })
        #expect(try reaches("b.example") { $0.proxy = .proxy(proxy) })
        #expect(try !reaches("a.example") { $0.connection.unixSocketPath = "/run/server" })
        #expect(try !reaches("a.example") { $0.connection.hostOverrides = [override("a.example")] })
        #expect(try reaches("a.example") { $0.connection.hostOverrides = [override("b.example")] })
    }

    @Test(
        arguments: [
            ([:], false, false), ([:], true, false), (["http_proxy": proxy], false, true),
            (["http_proxy": proxy], true, false), (["HTTP_PROXY": proxy], false, false),
            (["https_proxy": proxy], false, false), (["https_proxy": proxy], true, true),
            (["HTTPS_PROXY": proxy], true, true), (["all_proxy": proxy], false, true),
            (["ALL_PROXY": proxy], true, true),
            (["all_proxy": "HTTPS://proxy.example"], true, true), (["all_proxy": "http://proxy.example"], true, false),
            (["all_proxy": "proxy.example"], true, false), (["all_proxy": ""], true, false),
            // The first variable that is not empty counts.
            (["https_proxy": "http://proxy.example", "all_proxy": proxy], true, false),
            (["https_proxy": proxy, "HTTPS_PROXY": "http://proxy.example"], true, true),
            (["https_proxy": "", "ALL_PROXY": proxy], true, true),
        ] as [([String: String], Bool, Bool)])
    func `the environment may name a proxy over TLS`(environment: [String: String], isSecure: Bool, expected: Bool) {
        #expect(ProxyPolicy.environment.mayUseTLS(isSecure: isSecure) { environment["\($0)"] } == expected)
    }

    @Test(
        arguments: [
            ([:], nil), (["https_proxy": ""], nil), (["http_proxy": "http://other"], nil),
            (["https_proxy": "https://user:secret@proxy.example"], "https proxy.example 443"),
            (["https_proxy": "proxy.example:8080", "all_proxy": "http://other:1"], "http proxy.example 8080"),
            (["ALL_PROXY": "SOCKS5h://proxy.example"], "socks5h proxy.example 1080"),
            (["HTTPS_PROXY": "http://[::1]:3128"], "http ::1 3128"), (["https_proxy": "ftp://proxy.example"], nil),
        ] as [([String: String], String?)])
    func `errors name the proxy of the environment`(environment: [String: String], expected: String?) {
        let proxy = ProxyPolicy.environment.proxy(isSecure: true) { environment["\($0)"] }
        #expect(proxy.map { "\($0.kind.rawValue) \($0.host) \($0.port)" } == expected)
        #expect(proxy?.credential == nil)
    }

    @Test(
        arguments: [
            ("http://user:secret@proxy.example:3128", "http://proxy.example:3128"),
            ("user@proxy.example", "proxy.example"), ("https://a:b@c@proxy.example/", "https://proxy.example/"),
            ("http://proxy.example", nil), ("proxy.example/a@b", nil), ("", nil),
        ] as [(String, String?)])
    func `the user information of a proxy of the environment can be left out`(proxy: String, expected: String?) {
        let address = ProxyPolicy.environment.addressWithoutUser(isSecure: true) { _ in proxy }
        #expect(address == expected)
        #expect(ProxyPolicy.none.addressWithoutUser(isSecure: true) { _ in proxy } == nil)
    }

    /// In processes of their own, because of the environment.
    @Test(.exitTest) func `an untrusted or closed proxy of the environment is named`() async {
        await #expect(processExitsWith: .success) {
            let certificate = try TestCertificate.selfSigned()
            try await StubServer.with(.init(tls: StubServer.TLS(certificate))) { server in
                unsafe setenv("https_proxy", "https://localhost:\(server.endpoint.port)", 1)
                let url = try #require(URL(string: "https://origin.invalid/"))
                var error = try await CurlTransport().failure(Request(url: url))
                guard case .proxy(.tls) = error.reason else { throw error }
                try #require(error.context.host == "localhost")
                unsafe setenv("https_proxy", "https://127.0.0.1:9", 1)
                error = try await CurlTransport().failure(Request(url: url))
                try #require(error.reason == .cannotConnect(.refused))
                try #require(error.context.host == "127.0.0.1")
            }
        }
    }

    @Test(.exitTest) func `a resolver behind a proxy over TLS is refused`() async {
        await #expect(processExitsWith: .success) {
            let certificate = try TestCertificate.selfSigned()
            try await StubServer.with(.init(tls: StubServer.TLS(certificate))) { proxy in
                unsafe setenv("https_proxy", "https://localhost:\(proxy.endpoint.port)", 1)
                let request = Request(
                    url: try #require(URL(string: "http://origin.invalid/")),
                    options: .with {
                        $0.proxy = .none
                        $0.connection.dnsOverHTTPS = URL(string: "https://resolver.invalid/dns-query")
                    })
                let error = try await CurlTransport().failure(request)
                try #require(error.reason == .unsupported("DNS over HTTPS through a proxy over TLS"))
                try #require(proxy.activity.requests.isEmpty)
            }
        }
    }

    @Test(.exitTest) func `an empty variable hides no exceptions, and HTTP 2 is spoken with a server of theirs`() async
    {
        await #expect(processExitsWith: .success) {
            try await StubServer.with { server in
                server.fallback { _ in .http2([.head(1, length: "2"), .data(1, "ok", endsStream: true)]) }
                unsafe setenv("http_proxy", "http://127.0.0.1:9", 1)
                unsafe setenv("no_proxy", "", 1)
                unsafe setenv("NO_PROXY", "127.0.0.1", 1)
                let request = server.request(
                    options: .with {
                        $0.proxy = .environment
                        $0.httpVersion = .http2PriorKnowledge
                        $0.timeouts.total = .seconds(30)
                    })
                let (head, body) = try await CurlTransport().collect(request)
                try #require(head.version == .http2)
                try #require(body == Data("ok".utf8))
            }
        }
    }

    @Test(arguments: [(Proxy.Kind.http, false), (.https, true), (.socks5h, false)])
    func `a given proxy is connected to over TLS if its protocol says so`(kind: Proxy.Kind, expected: Bool) {
        let policy = ProxyPolicy.proxy(Proxy(kind, host: "proxy.example", port: 1))
        #expect(policy.mayUseTLS(isSecure: true) { _ in Self.proxy } == expected)
        #expect(!ProxyPolicy.none.mayUseTLS(isSecure: true) { _ in Self.proxy })
    }

    @Test(
        arguments: [
            ([:], true, false), (["http_proxy": proxy], true, false), (["http_proxy": proxy], false, true),
            (["https_proxy": "proxy.example"], true, true), (["HTTPS_PROXY": proxy], true, true),
            (["HTTPS_PROXY": ""], true, false), (["https_proxy": proxy], false, false),
            (["all_proxy": "socks5://proxy.example"], true, true), (["ALL_PROXY": proxy], true, true),
        ] as [([String: String], Bool, Bool)])
    func `the environment may name a proxy`(environment: [String: String], isSecure: Bool, expected: Bool) {
        #expect(ProxyPolicy.environment.mayBeUsed(isSecure: isSecure) { environment["\($0)"] } == expected)
        #expect(!ProxyPolicy.none.mayBeUsed(isSecure: isSecure) { environment["\($0)"] })
        let proxy = Proxy(.socks5h, host: "proxy.example", port: 1, bypass: ["*"])
        #expect(ProxyPolicy.proxy(proxy).mayBeUsed(isSecure: isSecure) { environment["\($0)"] })
    }
}
