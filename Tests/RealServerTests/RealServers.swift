// SPDX-License-Identifier: MIT

import ANCurl
import AsyncNetworking
import FoundationEssentials
import Testing

/// The servers that `scripts/servers/servers` starts, with their addresses in environment variables:
///
///     scripts/servers/servers setup
///     scripts/servers/servers run .build/servers -- swift test
///
/// Suites whose servers are not running are skipped with a message.
enum RealServer: String, CaseIterable {
    /// nginx without TLS, HTTP/1.1.
    case nginx = "AN_NGINX_HTTP"
    /// nginx with TLS, HTTP/2 and HTTP/1.1 by ALPN.
    case nginxTLS = "AN_NGINX_TLS"
    /// nginx without TLS, HTTP/2 with prior knowledge.
    case nginxH2C = "AN_NGINX_H2C"
    /// nginx with TLS and a certificate for each requested host name.
    case pki = "AN_NGINX_PKI"
    /// nginx with TLS, HTTP/2, and HTTP/3 on the same port, which it offers. Not running if nginx lacks HTTP/3.
    case nginxHTTP3 = "AN_NGINX_HTTP3"
    /// nginx with a certificate for each requested host name, also over HTTP/3.
    case pkiHTTP3 = "AN_NGINX_HTTP3_PKI"
    /// nginx that requires a client certificate, also over HTTP/3.
    case mutualHTTP3 = "AN_NGINX_HTTP3_MUTUAL"
    /// openssl-s_server(1) with a stapled OCSP response: the certificate is good.
    case stapleGood = "AN_STAPLE_GOOD"
    /// openssl-s_server(1) with a stapled OCSP response: the certificate is revoked.
    case stapleRevoked = "AN_STAPLE_REVOKED"
    /// openssl-s_server(1) with a stapled OCSP response of another authority: the certificate is good.
    case stapleForeign = "AN_STAPLE_FOREIGN"
    /// openssl-s_server(1) that requests a client certificate.
    case mutual = "AN_MUTUAL"
    /// mitmproxy.
    case mitm = "AN_MITM"
    /// httpbin.
    case httpbin = "AN_HTTPBIN"
    /// Python's websockets, with permessage-deflate.
    case webSocket = "AN_WEBSOCKET"
    /// Python's websockets without extensions.
    case plainWebSocket = "AN_WEBSOCKET_PLAIN"
    /// Python's websockets with permessage-deflate that resets its contexts.
    case freshWebSocket = "AN_WEBSOCKET_FRESH"
    /// A tus server: resumable-upload.
    case tus = "AN_TUS"
    /// The same behind a proxy that cuts each connection after at most 40,000 bytes of the client.
    case tusCut = "AN_TUS_CUT"
    /// tinyproxy.
    case proxy = "AN_PROXY"
    /// tinyproxy behind TLS.
    case proxyTLS = "AN_PROXY_TLS"
    /// tinyproxy that requires the credential `user`, `secret`.
    case proxyWithCredentials = "AN_PROXY_AUTH"
    /// tinyproxy behind TLS that requires the credential `user`, `secret`.
    case proxyWithCredentialsTLS = "AN_PROXY_AUTH_TLS"
    /// microsocks.
    case socks = "AN_SOCKS"
    /// microsocks that requires the credential `user`, `secret`.
    case socksWithCredentials = "AN_SOCKS_AUTH"
    /// Apache without TLS.
    case apache = "AN_APACHE_HTTP"
    /// Apache with TLS.
    case apacheTLS = "AN_APACHE_TLS"
    /// Apache with TLS, closing connections after a second without requests.
    case apacheIdle = "AN_APACHE_IDLE"
    /// Apache with TLS, closing HTTP/1.1 connections after 10 requests.
    case apacheLimit = "AN_APACHE_LIMIT10"
    /// HAProxy without TLS.
    case haproxy = "AN_HAPROXY_HTTP"
    /// HAProxy with TLS.
    case haproxyTLS = "AN_HAPROXY_TLS"
    /// HAProxy with TLS, closing connections after a second without requests.
    case haproxyIdle = "AN_HAPROXY_IDLE"
    /// Caddy without TLS.
    case caddy = "AN_CADDY_HTTP"
    /// Caddy with TLS.
    case caddyTLS = "AN_CADDY_TLS"
    /// Caddy with TLS, closing connections after a second without requests.
    case caddyIdle = "AN_CADDY_IDLE"
    /// Caddy with TLS that ends the handshake without a client certificate.
    case caddyMutual = "AN_CADDY_MUTUAL"
    /// nginx without TLS, forwarding requests.
    case nginxFront = "AN_NGINX_FRONT_HTTP"
    /// nginx with TLS, forwarding requests.
    case nginxFrontTLS = "AN_NGINX_FRONT_TLS"
    /// nginx with TLS, closing connections after a second without requests.
    case nginxFrontIdle = "AN_NGINX_FRONT_IDLE"
    /// nginx with TLS, closing connections after 10 requests.
    case nginxFrontLimit = "AN_NGINX_FRONT_LIMIT10"

    /// Whether the environment contains the server's address.
    var isRunning: Bool { Self.environment(rawValue) != nil }

    /// Returns the URL of a path on the server.
    func url(_ path: String = "") throws -> URL {
        let address = try #require(Self.environment(rawValue))
        return try #require(URL(string: address + path))
    }

    /// Returns the server as a proxy.
    func proxy(_ kind: Proxy.Kind, credential: Credential? = nil, bypass: [String] = []) throws -> Proxy {
        let url = try url()
        return Proxy(
            kind, host: try #require(url.host()), port: try #require(url.port), credential: credential, bypass: bypass)
    }

    /// Returns the path of the PEM file with the authority that signed the servers' certificates.
    static func authority() throws -> String {
        try #require(environment("AN_CA"))
    }

    /// Returns the directory with the servers' files.
    static func directory() throws -> String {
        try #require(environment("AN_SERVER_ROOT"))
    }

    private static func environment(_ name: String) -> String? {
        ProcessInfo.processInfo.environment[name]
    }
}

/// Whether libcurl implements HTTP/3 with ngtcp2.
let usesNGTCP2 = (try? CurlLibrary.current.get().usesNGTCP2) == true

/// Whether libcurl supports HTTP/3, and nginx was built with it.
let canTestHTTP3 = (try? CurlLibrary.current.get().hasHTTP3) == true && RealServer.nginxHTTP3.isRunning

extension Trait where Self == ConditionTrait {
    /// Skips a suite or test unless libcurl, with ngtcp2, and nginx support HTTP/3.
    static var http3: ConditionTrait {
        .enabled(
            if: canTestHTTP3 && usesNGTCP2,
            "needs libcurl and nginx with HTTP/3, such as Debian sid's; see `make matrix`")
    }

    /// Skips a suite unless these servers are running.
    static func servers(_ servers: RealServer...) -> ConditionTrait {
        .enabled(
            if: servers.allSatisfy(\.isRunning),
            "needs servers; run: scripts/servers/servers run .build/servers -- swift test")
    }
}

extension SessionConfiguration {
    /// Returns a configuration for a server. It trusts the servers' authority and ignores proxies in the environment.
    static func using(
        _ server: RealServer, configure: (inout SessionConfiguration) -> Void
    ) throws -> SessionConfiguration {
        var configuration = SessionConfiguration(baseURL: try server.url("/"))
        configuration.proxy = .none
        configuration.tls.trustRoots = .file(try RealServer.authority())
        configure(&configuration)
        return configuration
    }
}

extension SessionManager {
    /// Creates a manager for a server.
    init(for server: RealServer, configure: (inout SessionConfiguration) -> Void = { _ in }) throws {
        self.init(try .using(server, configure: configure))
    }
}

extension Response<Data> {
    /// The body as text.
    var text: String { String(decoding: value, as: UTF8.self) }
}

/// Returns the session error that `body` throws.
func sessionError(_ body: () async throws -> Void) async throws -> SessionError {
    try #require(await #expect(throws: SessionError.self) { try await body() })
}

/// Returns deterministic bytes.
func patternedBytes(_ count: Int) -> Data {
    Data((0..<count).lazy.map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
}

/// A sequence of deterministic chunks that can be iterated repeatedly.
struct PatternedChunks: AsyncSequence, Sendable {
    let bytes: Data
    let chunkSize: Int

    func makeAsyncIterator() -> Iterator {
        Iterator(rest: bytes, chunkSize: chunkSize)
    }

    struct Iterator: AsyncIteratorProtocol {
        var rest: Data
        let chunkSize: Int

        mutating func next() async throws -> Data? {
            guard !rest.isEmpty else { return nil }
            defer { rest = rest.dropFirst(chunkSize) }
            return rest.prefix(chunkSize)
        }
    }
}

/// A directory for one test, deleted in `deinit`.
final class TemporaryDirectory: Sendable {
    let path = "/tmp/an-real-\(UInt64.random(in: 0...UInt64.max))"

    init() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}
