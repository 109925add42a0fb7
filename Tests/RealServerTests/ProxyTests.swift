// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

private let right = Credential(user: "user", password: "secret")
private let wrong = Credential(user: "user", password: "wrong")

extension SessionManager {
    /// Creates a manager for a server behind a proxy.
    fileprivate init(for server: RealServer, behind proxy: Proxy) throws {
        try self.init(for: server) { $0.proxy = .proxy(proxy) }
    }

    /// The remote port of a small request: the proxy's or the server's.
    fileprivate var connectedPort: Int? {
        get async throws { try await get("small.json").metrics.remoteAddress?.port }
    }
}

/// Returns the reason for which a request failed at the proxy.
private func proxyFailure(_ manager: SessionManager) async throws -> TransportError.ProxyFailure? {
    let error = try await sessionError { _ = try await manager.get("small.json") }
    #expect(error.isConnectionFailure)
    guard case .proxy(let failure) = error.reason else { throw error }
    return failure
}

@Suite(.servers(.nginx, .nginxTLS, .plainWebSocket, .proxy, .proxyWithCredentials, .proxyTLS), .timeLimit(.minutes(5)))
struct HTTPProxyTests {
    @Test func `http requests are forwarded by the proxy`() async throws {
        let proxy = try RealServer.proxy.proxy(.http)
        let response = try await SessionManager(for: .nginx, behind: proxy).get("small.json")
        #expect(response.metrics.remoteAddress?.port == proxy.port)
        #expect(response.headers[.via]?.contains("tinyproxy") == true)
        #expect(response.value.count == 59)
    }

    @Test func `TLS is tunnelled by the proxy, with HTTP 2`() async throws {
        let proxy = try RealServer.proxy.proxy(.http)
        let manager = try SessionManager(for: .nginxTLS, behind: proxy)
        let response = try await manager.get("small.json", options: { $0.httpVersion = .http2 })
        #expect(response.metrics.remoteAddress?.port == proxy.port)
        #expect(response.metrics.httpVersion == .http2)
        #expect(response.metrics.tlsVersion == "TLSv1.3")
        #expect(response.headers[.via] == nil)
    }

    @Test(arguments: [RealServer.nginx, .nginxTLS])
    func `the proxy accepts the right credentials`(server: RealServer) async throws {
        let proxy = try RealServer.proxyWithCredentials.proxy(.http, credential: right)
        #expect(try await SessionManager(for: server, behind: proxy).connectedPort == proxy.port)
    }

    // tinyproxy responds with 407 to missing credentials, and to wrong ones with 401 or, since 1.11.2, with 407.

    @Test func `missing credentials for a tunnel are an error`() async throws {
        let proxy = try RealServer.proxyWithCredentials.proxy(.http)
        let manager = try SessionManager(for: .nginxTLS, behind: proxy)
        #expect(try await proxyFailure(manager) == .authenticationRequired)
    }

    @Test func `wrong credentials for a tunnel are an error`() async throws {
        let proxy = try RealServer.proxyWithCredentials.proxy(.http, credential: wrong)
        let manager = try SessionManager(for: .nginxTLS, behind: proxy)
        #expect([.tunnelRefused(status: 401), .authenticationRequired].contains(try await proxyFailure(manager)))
    }

    @Test(arguments: [(nil, [407]), (wrong, [401, 407])])
    func `wrong or missing credentials without a tunnel are a response`(credential: Credential?, statuses: [Int])
        async throws
    {
        let proxy = try RealServer.proxyWithCredentials.proxy(.http, credential: credential)
        let manager = try SessionManager(for: .nginx, behind: proxy)
        let status = try await sessionError { _ = try await manager.get("small.json") }.statusCode
        #expect(statuses.contains(status ?? 0))
    }

    @Test(arguments: [RealServer.nginx, .nginxTLS])
    func `the proxy may be connected to over TLS`(server: RealServer) async throws {
        let proxy = try RealServer.proxyTLS.proxy(.https)
        #expect(try await SessionManager(for: server, behind: proxy).connectedPort == proxy.port)
    }

    @Test func `an untrusted certificate of the proxy is a proxy error`() async throws {
        let proxy = try RealServer.proxyTLS.proxy(.https)
        let manager = try SessionManager(for: .nginx) {
            $0.proxy = .proxy(proxy)
            $0.tls.trustRoots = .system
        }
        #expect(try await proxyFailure(manager) == .tls(.unknownAuthority))
    }

    @Test func `bypassed hosts are connected to directly`() async throws {
        let server = try RealServer.nginx.url()
        for bypass in [["127.0.0.1"], ["other.example", "127.0.0.0/8"], ["*"], ["other.example", "*"]] {
            let proxy = try RealServer.proxy.proxy(.http, bypass: bypass)
            #expect(try await SessionManager(for: .nginx, behind: proxy).connectedPort == server.port)
        }
        let proxy = try RealServer.proxy.proxy(.http, bypass: ["other.example", "10.0.0.0/8"])
        #expect(try await SessionManager(for: .nginx, behind: proxy).connectedPort == proxy.port)
    }

    @Test func `a request may have another proxy than its session`() async throws {
        let proxy = try RealServer.proxy.proxy(.http)
        let manager = try SessionManager(for: .nginx)
        var request = try manager.request(.get, "small.json")
        request.options = manager.configuration.transfer.with { $0.proxy = .proxy(proxy) }
        #expect(try await manager.data(for: request).metrics.remoteAddress?.port == proxy.port)
        #expect(try await manager.connectedPort == RealServer.nginx.url().port)
    }

    @Test(arguments: [Proxy.Kind.http, .socks5h])
    func `an unreachable proxy is named in the error`(kind: Proxy.Kind) async throws {
        // Port 1 (tcpmux) is closed on any current machine.
        let manager = try SessionManager(for: .nginx, behind: Proxy(kind, host: "localhost", port: 1))
        let error = try await sessionError { _ = try await manager.get("small.json") }
        #expect(error.isConnectionFailure)
        #expect(error.context?.host == "localhost")
    }

    @Test func `a proxy that cannot be resolved is named in the error`() async throws {
        let manager = try SessionManager(for: .nginx, behind: Proxy(.http, host: "proxy.invalid", port: 1))
        let error = try await sessionError { _ = try await manager.get("small.json") }
        guard error.reason == .cannotResolve, error.context?.host == "proxy.invalid" else { throw error }
    }

    @Test(.exitTest) func `the environment sets the proxy and the hosts to bypass`() async {
        // In a separate process: the environment is shared by all tests.
        await #expect(processExitsWith: .success) {
            let proxy = try RealServer.proxy.url()
            let server = try RealServer.nginx.url()
            for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "NO_PROXY"] { unsafe unsetenv(name) }
            func port(_ policy: ProxyPolicy) async throws -> Int? {
                try await SessionManager(for: .nginx) { $0.proxy = policy }.connectedPort
            }
            try #require(try await port(.environment) == server.port)
            unsafe setenv("http_proxy", proxy.absoluteString, 1)
            try #require(try await port(.environment) == proxy.port)
            try #require(try await port(.none) == server.port)
            unsafe setenv("no_proxy", "other.example,127.0.0.1", 1)
            try #require(try await port(.environment) == server.port)
            unsafe setenv("no_proxy", "other.example", 1)
            try #require(try await port(.environment) == proxy.port)
            unsafe setenv("http_proxy", "http://127.0.0.1:1", 1)
            let manager = try SessionManager(for: .nginx) { $0.proxy = .environment }
            try #require(try await sessionError { _ = try await manager.get("small.json") }.isConnectionFailure)
        }
    }

    @Test(.exitTest) func `the environment may name a proxy over TLS`() async {
        await #expect(processExitsWith: .success) {
            let proxy = try RealServer.proxyTLS.url()
            for name in ["all_proxy", "no_proxy", "NO_PROXY"] { unsafe unsetenv(name) }
            for name in ["http_proxy", "https_proxy"] { unsafe setenv(name, proxy.absoluteString, 1) }
            let manager = try SessionManager(for: .nginxTLS) {
                $0.proxy = .environment
                $0.httpVersion = .http2
            }
            for _ in 1...2 {
                let response = try await manager.get("small.json")
                try #require(response.metrics.httpVersion == .http2)
                try #require(response.metrics.remoteAddress?.port == proxy.port)
            }
            let upgrade = try Request(url: RealServer.plainWebSocket.url("/echo"))
            try await manager.withWebSocket(upgrade) { socket in
                try await socket.send(.text("message"))
                try #require(try await socket.first { _ in true } == .text("message"))
            }
        }
    }
}

@Suite(.servers(.nginx, .nginxTLS, .socks, .socksWithCredentials), .timeLimit(.minutes(5)))
struct SOCKSProxyTests {
    @Test(arguments: [Proxy.Kind.socks5, .socks5h], [RealServer.nginx, .nginxTLS])
    func `requests are sent through the proxy`(kind: Proxy.Kind, server: RealServer) async throws {
        let proxy = try RealServer.socks.proxy(kind)
        #expect(try await port(for: server, behind: proxy) == proxy.port)
    }

    @Test(arguments: [Proxy.Kind.socks5, .socks5h], [RealServer.nginx, .nginxTLS])
    func `the proxy accepts the right credentials`(kind: Proxy.Kind, server: RealServer) async throws {
        let proxy = try RealServer.socksWithCredentials.proxy(kind, credential: right)
        #expect(try await port(for: server, behind: proxy) == proxy.port)
    }

    /// Returns the port to which a connection is made for a server. For `socks5`, libcurl resolves `localhost` itself and
    /// passes on the first address only, which may be that of IPv6, on which the servers do not listen.
    private func port(for server: RealServer, behind proxy: Proxy) async throws -> Int? {
        try await SessionManager(for: server) {
            $0.proxy = .proxy(proxy)
            $0.connection.ipVersion = .v4
        }.connectedPort
    }

    @Test(arguments: [wrong, nil])
    func `wrong or missing credentials are a proxy error`(credential: Credential?) async throws {
        let proxy = try RealServer.socksWithCredentials.proxy(.socks5h, credential: credential)
        let failure = try await proxyFailure(SessionManager(for: .nginx, behind: proxy))
        #expect(failure == .authenticationRequired)
    }

    @Test func `a server behind the proxy that refuses connections is an error`() async throws {
        let proxy = try RealServer.socks.proxy(.socks5h)
        let manager = try SessionManager(for: .nginx, behind: proxy)
        let error = try await sessionError { _ = try await manager.get("http://127.0.0.1:1/") }
        #expect(error.isConnectionFailure)
    }
}
