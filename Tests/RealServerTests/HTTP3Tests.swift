// SPDX-License-Identifier: MIT

import ANCurl
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// HTTP/3 with nginx. ``NginxTests`` and ``TrustHandshakesTests`` also run over it.
@Suite(
    .http3, .servers(.nginx, .nginxTLS, .nginxHTTP3, .mutualHTTP3, .caddyTLS, .caddyMutual, .proxy),
    .timeLimit(.minutes(5)))
struct HTTP3Tests {
    private func manager(
        _ server: RealServer = .nginxHTTP3, _ policy: HTTPVersionPolicy = .http3Only,
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionManager {
        SessionManager(
            try .using(server) {
                $0.httpVersion = policy
                configure(&$0)
            })
    }

    // MARK: Versions

    @Test func `a server over TCP only is reached if HTTP 3 is preferred, and not if it is required`() async throws {
        let response = try await manager(.nginxTLS, .http3).get("small.json")
        #expect(response.head.version == .http2)
        #expect(response.metrics.httpVersion == .http2)
        let only = try manager(.nginxTLS, .http3Only)
        let error = try await sessionError { _ = try await only.get("small.json") }
        #expect(error.isConnectionFailure)
    }

    @Test func `preferred HTTP 3 is used if the server has it, on one connection`() async throws {
        let manager = try manager(.nginxHTTP3, .http3)
        var metrics: [TransferMetrics] = []
        for _ in 0..<3 { metrics.append(try await manager.get("small.json").metrics) }
        #expect(metrics.map(\.httpVersion) == [.http3, .http3, .http3])
        #expect(metrics.map(\.isConnectionReused) == [false, true, true])
    }

    @Test func `required HTTP 3 is refused where QUIC cannot be used`() async throws {
        let proxy = try RealServer.proxy.proxy(.http)
        let socks = Proxy(.socks5h, host: "127.0.0.1", port: 1)
        let cases: [(RealServer, @Sendable (inout SessionConfiguration) -> Void)] = [
            (.nginx, { _ in }), (.nginxHTTP3, { $0.proxy = .proxy(proxy) }),
            (.nginxHTTP3, { $0.proxy = .proxy(socks) }),
            (.nginxHTTP3, { $0.connection.unixSocketPath = "/nonexistent" }),
        ]
        for (server, change) in cases {
            let manager = try manager(server) { change(&$0) }
            let error = try await sessionError { _ = try await manager.get("small.json") }
            guard case .unsupported = error.reason else { throw error }
        }
    }

    @Test func `preferred HTTP 3 gives way without TLS and through a proxy`() async throws {
        #expect(try await manager(.nginx, .http3).get("small.json").head.version == .http1_1)
        let proxy = try RealServer.proxy.proxy(.http)
        let proxied = try manager(.nginxHTTP3, .http3) { $0.proxy = .proxy(proxy) }
        #expect(try await proxied.get("small.json").head.version == .http2)
    }

    @Test func `50 concurrent requests share few connections`() async throws {
        let manager = try manager()
        let metrics = try await withThrowingTaskGroup { group in
            for _ in 0..<50 { group.addTask { try await manager.get("1m.bin").metrics } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(metrics.allSatisfy { $0.httpVersion == .http3 && $0.responseBodyBytes == 1 << 20 })
        #expect(Set(metrics.map(\.localAddress)).count <= 2)
    }

    // MARK: Trust. Certificates, pins and policies are in TrustHandshakesTests.

    @Test func `an authority that is not in the trust store is rejected`() async throws {
        let manager = try manager { $0.tls.trustRoots = .system }
        let error = try await sessionError { _ = try await manager.get("small.json") }
        #expect(error.reason == .tls(.unknownAuthority))
        #expect(error.context?.serverTrust?.host == "localhost")
    }

    @Test func `a client certificate is sent, and chosen when the server asks for it`() async throws {
        let folder = try RealServer.directory() + "/pki/"
        for name in ["client", "stranger"] {
            let manager = try manager(.mutualHTTP3) {
                $0.tls.identity = .pem(
                    certificates: .file("\(folder)\(name).pki.test.pem"), key: .file("\(folder)\(name).pki.test.key"))
            }
            let response = try await manager.data(for: manager.request(.get, "/"))
            #expect(response.statusCode == (name == "client" ? 200 : 400))
            if name == "client" { #expect(response.text == "CN=client.pki.test\n") }
        }
        let anonymous = try manager(.mutualHTTP3)
        #expect(try await anonymous.data(for: anonymous.request(.get, "/")).statusCode == 400)
    }

    @Test func `a server that ends the connection without a client certificate is named`() async throws {
        let folder = try RealServer.directory() + "/pki/"
        for name in ["client", "stranger", nil] {
            let manager = try manager(.caddyMutual) {
                guard let name else { return }
                $0.tls.identity = .pem(
                    certificates: .file("\(folder)\(name).pki.test.pem"), key: .file("\(folder)\(name).pki.test.key"))
            }
            guard name != "client" else {
                #expect(try await manager.get("small.json").head.version == .http3)
                continue
            }
            let error = try await sessionError { _ = try await manager.get("small.json") }
            switch error.reason {
            case .tls(.clientCertificateRefused): break
            // An alert ends a QUIC connection, and libcurl does not pass it on.
            case .connectionLost where name != nil: break
            default: throw error
            }
        }
    }

    @Test func `a connection is used only by requests with the same policy`() async throws {
        let manager = try manager()
        _ = try await manager.get("small.json")
        var request = try manager.request(.get, "small.json")
        request.changeOptions { $0.tls.trustRoots = .system }
        let error = try await sessionError { _ = try await manager.data(for: request) }
        #expect(error.reason == .tls(.unknownAuthority))
    }

    @Test func `secrets are written to the file that the options name`() async throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/keys"
        let manager = try manager { $0.tls.keyLogPath = path }
        _ = try await manager.get("small.json")
        #expect(try String(contentsOfFile: path, encoding: .utf8).contains("CLIENT_TRAFFIC_SECRET_0"))
    }

    @Test func `forbidden addresses are not connected to`() async throws {
        let manager = try manager { $0.connection.addresses = .publicOnly() }
        let error = try await sessionError { _ = try await manager.get("small.json") }
        #expect(error.reason == .cannotConnect(.addressForbidden))
        #expect(error.context?.address?.host == "127.0.0.1" || error.context?.address?.host == "::1")
        // Nor is an open connection to one used.
        let open = try self.manager()
        _ = try await open.get("small.json")
        var request = try open.request(.get, "small.json")
        request.changeOptions { $0.connection.addresses = .publicOnly() }
        #expect(
            try await sessionError { _ = try await open.data(for: request) }.reason == .cannotConnect(.addressForbidden)
        )
    }

    // MARK: Transfers. Bodies in both directions are in NginxTests.

    @Test func `limits of time and size hold`() async throws {
        let slow = try manager { $0.timeouts.total = .milliseconds(500) }
        let late = try await sessionError { _ = try await slow.get("slow/16m.bin") }
        #expect(late.reason == .timedOut(.responseBody))
        let small = try manager { $0.maximumBodySize = 1_000 }
        let large = try await sessionError { _ = try await small.get("1m.bin") }
        #expect(large.reason == .responseTooLarge(.body(limit: 1_000)))
        let silent = try UDPPort()
        let patient = try manager {
            $0.timeouts.connect = .milliseconds(300)
            $0.connection.hostOverrides = [
                .init(host: "localhost", port: $0.baseURL?.port ?? 0, address: "127.0.0.1", addressPort: silent.number)
            ]
        }
        let unreached = try await sessionError { _ = try await patient.get("small.json") }
        #expect(unreached.reason == .timedOut(.connect))
    }

    @Test func `a reader that pauses receives everything`() async throws {
        let manager = try manager()
        let request = try manager.request(.get, "64m.bin")
        let received = try await manager.withResponse(for: request) { _, body in
            var whole = Data()
            for try await chunk in body {
                if whole.isEmpty { try await Task.sleep(for: .milliseconds(300)) }
                whole += chunk
            }
            return whole
        }
        #expect(received == (try Data(contentsOf: URL(filePath: RealServer.directory() + "/www/64m.bin"))))
    }

    @Test func `cancelling ends a request, and others keep their connection`() async throws {
        let manager = try manager()
        let other = Task { try await manager.get("slow/1m.bin").value.count }
        let request = try manager.request(.get, "slow/16m.bin")
        let (chunks, continuation) = AsyncStream<Int>.makeStream()
        let task = Task {
            try await manager.withResponse(for: request) { _, body in
                for try await chunk in body { continuation.yield(chunk.count) }
            }
        }
        for await _ in chunks { break }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        let metrics = try await manager.get("small.json").metrics
        #expect(metrics.httpVersion == .http3)
        #expect(metrics.isConnectionReused)
        #expect(try await other.value == 1 << 20)
    }

    // MARK: Conformance

    /// The cases about a server that notices the end of an exchange. nginx does not notice it as long as it has nothing to
    /// send, Caddy does.
    private static let ends: Set = [
        "leaving the scope early ends the exchange", "an error of the caller is rethrown",
        "cancelling while waiting for the head throws CancellationError",
        "cancelling while reading the body throws CancellationError",
    ]

    /// The other cases whose scripts nginx can forward. It changes the place of cookies among the fields, and answers 502
    /// for a connection that ends without a response. Recent versions forward trailers and interim responses.
    private static let cases: [TransportConformanceCase] = {
        var excluded = ends.union([
            "method, target and fields are sent as given", "a connection that ends without a response fails",
        ])
        let directives = ProcessInfo.processInfo.environment["AN_NGINX_DIRECTIVES"] ?? ""
        if !directives.contains("proxy_pass_trailers") {
            excluded.insert("trailers are available at the end of the body")
        }
        if !directives.contains("early_hints") { excluded.insert("interim heads are reported before the final one") }
        return TransportConformanceCase.all.filter { !excluded.contains($0.name) }
    }()

    @Test(arguments: cases) func `the engine is a transport`(_ testCase: TransportConformanceCase) async throws {
        try await run(testCase, through: .nginxHTTP3)
    }

    @Test(arguments: TransportConformanceCase.all.filter { ends.contains($0.name) })
    func `a server notices the end of an exchange`(_ testCase: TransportConformanceCase) async throws {
        // In about one of ten exchanges libcurl (8.23) does not send the packet that cancels the stream: ngtcp2 delays
        // it if another packet was sent just before, and the timer for it is removed together with the transfer.
        for _ in 0..<3 {
            guard (try? await run(testCase, through: .caddyTLS)) == nil else { return }
        }
        try await run(testCase, through: .caddyTLS)
    }

    /// Runs a case through a server that forwards requests to the scripted one.
    private func run(_ testCase: TransportConformanceCase, through server: RealServer) async throws {
        let authority = try RealServer.authority()
        let base = try server.url("/stub")
        try await testCase.run(
            transfer: TransferOptions().with {
                $0.proxy = .none
                $0.httpVersion = .http3Only
                $0.tls.trustRoots = .file(authority)
            },
            at: { base.appending(path: "\($0.endpoint.port)/conformance") },
            makeTransport: { try CurlTransport() })
    }
}
