// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// Sessions that use HTTP/3 because the server offered it, and do without it if it fails.
@Suite(.http3, .servers(.nginxTLS, .nginxHTTP3, .pki, .proxy), .timeLimit(.minutes(5)))
struct AlternativeServicesTests {
    /// Loads an alternative service of a server, as a program does at its start.
    private func offer(
        _ alternativePort: Int, of server: RealServer, host: String = "localhost", to manager: SessionManager
    ) throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/services"
        let port = try #require(try server.url().port)
        let line = "h2 \(host) \(port) h3 \(host) \(alternativePort) \"20991231 23:59:59\" 0 0"
        try Data(line.utf8).write(to: URL(filePath: path))
        #expect(try manager.alternativeServices.load(from: path) == 1)
    }

    private func versions(_ manager: SessionManager, count: Int) async throws -> [HTTPVersion] {
        var versions: [HTTPVersion] = []
        for _ in 0..<count { versions.append(try await manager.get("small.json").head.version) }
        return versions
    }

    private func port(_ server: RealServer) throws -> Int {
        try #require(try server.url().port)
    }

    @Test func `a server that offers HTTP 3 is reached over it from the second request on`() async throws {
        let manager = try SessionManager(for: .nginxHTTP3)
        #expect(try await versions(manager, count: 3) == [.http2, .http3, .http3])
        let port = try port(.nginxHTTP3)
        #expect(manager.alternativeServices.entries.map(\.alternativePort) == [port])
        let metrics = try await manager.get("small.json").metrics
        #expect(metrics.isConnectionReused)
        #expect(metrics.remoteAddress?.port == port)
        manager.alternativeServices.removeAll()
        #expect(try await versions(manager, count: 2) == [.http2, .http3])
    }

    @Test func `a session that does not use alternatives stays with HTTP 2`() async throws {
        let manager = try SessionManager(for: .nginxHTTP3) { $0.usesAlternativeServices = false }
        #expect(try await versions(manager, count: 3) == [.http2, .http2, .http2])
        #expect(manager.alternativeServices.entries.isEmpty)
    }

    @Test func `concurrent requests move to HTTP 3 together, and none fails`() async throws {
        let manager = try SessionManager(for: .nginxHTTP3)
        _ = try await manager.get("small.json")
        for round in 0..<3 {
            let versions = try await withThrowingTaskGroup { group in
                for _ in 0..<30 { group.addTask { try await manager.get("small.json").head.version } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            if round > 0 { #expect(versions.allSatisfy { $0 == .http3 }) }
        }
    }

    @Test func `an alternative on another port is used, and told its name`() async throws {
        let manager = try SessionManager(for: .nginxTLS)
        try offer(port(.nginxHTTP3), of: .nginxTLS, to: manager)
        #expect(try await versions(manager, count: 2) == [.http3, .http3])
        let port = try port(.nginxHTTP3)
        #expect(try await manager.get("small.json").metrics.remoteAddress?.port == port)
        try await StubServer.with { server in
            server.fallback { _ in .echo }
            let echo = try await manager.get(
                "stub/\(server.endpoint.port)/echo", as: .decodable(RequestEcho.self)
            ).value
            #expect(echo.headers.contains { $0[0].lowercased() == "alt-used" && $0[1] == "localhost:\(port)" })
        }
    }

    @Test(arguments: ["same", "other"], ["closed", "silent"])
    func `an alternative that cannot be reached fails no request`(place: String, manner: String) async throws {
        let manager = try SessionManager(for: .nginxTLS)
        let origin = try port(.nginxTLS)
        let silent = manner == "silent" ? try UDPPort(place == "same" ? origin : 0) : nil
        defer { withExtendedLifetime(silent) {} }
        let number = silent?.number ?? (place == "same" ? origin : 1)
        try offer(number, of: .nginxTLS, to: manager)
        // A connection over TCP is open.
        var first = try manager.request(.get, "small.json")
        first.changeOptions { $0.httpVersion = .http1 }
        _ = try await manager.data(for: first)
        #expect(try await !versions(manager, count: 1).contains(.http3))
        // It is not tried again for some time.
        let start = ContinuousClock.now
        #expect(try await !versions(manager, count: 5).contains(.http3))
        #expect(start.duration(to: .now) < .seconds(1))
        #expect(manager.alternativeServices.entries.map(\.alternativePort) == [number])
    }

    @Test func `requests that may not be repeated stay with TCP`() async throws {
        let manager = try SessionManager(for: .nginxTLS)
        try offer(port(.nginxHTTP3), of: .nginxTLS, to: manager)
        #expect(try await versions(manager, count: 2) == [.http3, .http3])
        let chunks = PatternedChunks(bytes: patternedBytes(100_000), chunkSize: 10_000)
        let requests = [
            (HTTPRequest.Method.put, RequestBody.bytes(patternedBytes(100)), HTTPVersion.http3),
            (.put, .stream(chunks), .http2), (.post, .bytes(Data()), .http2), (.patch, .bytes(Data()), .http2),
        ]
        for (method, body, version) in requests {
            let response = try await manager.data(for: manager.request(method, "sink", body: body))
            #expect(response.head.version == version)
            #expect(response.text == "{\"received\": true}\n")
        }
    }

    @Test func `many requests that are sent to a silent alternative all succeed`() async throws {
        let manager = try SessionManager(for: .nginxTLS)
        let silent = try UDPPort()
        try offer(silent.number, of: .nginxTLS, to: manager)
        let versions = try await withThrowingTaskGroup { group in
            for _ in 0..<30 { group.addTask { try await manager.get("small.json").head.version } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(versions.allSatisfy { $0 == .http2 })
        withExtendedLifetime(silent) {}
    }

    @Test func `a short limit leaves time for the origin`() async throws {
        let manager = try SessionManager(for: .nginxTLS) {
            $0.timeouts.connect = .seconds(1)
            $0.timeouts.total = .milliseconds(800)
        }
        let silent = try UDPPort()
        try offer(silent.number, of: .nginxTLS, to: manager)
        #expect(try await versions(manager, count: 1) == [.http2])
        withExtendedLifetime(silent) {}
    }

    @Test func `an alternative with a certificate for another name is not used`() async throws {
        let port = try port(.pki)
        var configuration = SessionConfiguration(baseURL: URL(string: "https://good.pki.test:\(port)/"))
        configuration.proxy = .none
        configuration.tls.trustRoots = .file(try RealServer.directory() + "/pki/root.pem")
        configuration.connection.hostOverrides = [.init(host: "good.pki.test", port: port, address: "127.0.0.1")]
        let manager = SessionManager(configuration)
        // The options above apply to TCP only; over QUIC the server has a certificate of another authority.
        var request = try manager.request(.get, "/")
        request.changeOptions { $0.httpVersion = .http3 }
        #expect(try await manager.data(for: request).head.version == .http3)

        let other = try SessionManager(for: .pki) {
            $0.tls.trustRoots = configuration.tls.trustRoots
        }
        // The alternative has a certificate for localhost, of another authority.
        try offer(self.port(.nginxHTTP3), of: .pki, host: "127.0.0.1", to: other)
        for _ in 0..<2 { #expect(try await other.get("").head.version == .http2) }
    }

    @Test func `requests through a proxy do not use an alternative`() async throws {
        let proxy = try RealServer.proxy.proxy(.http)
        let manager = try SessionManager(for: .nginxHTTP3) { $0.proxy = .proxy(proxy) }
        #expect(try await versions(manager, count: 3) == [.http2, .http2, .http2])
        // What was learned through the proxy is used without it.
        var request = try manager.request(.get, "small.json")
        request.changeOptions { $0.proxy = .none }
        #expect(try await manager.data(for: request).head.version == .http3)
    }

    @Test func `a server that loses its connections over HTTP 3 is reached over TCP`() async throws {
        let manager = try SessionManager(for: .nginxTLS)
        let silent = try UDPPort()
        try offer(port(.nginxHTTP3), of: .nginxTLS, to: manager)
        #expect(try await versions(manager, count: 2) == [.http3, .http3])
        // The server offers another port, where HTTP/3 does not work.
        try offer(silent.number, of: .nginxTLS, to: manager)
        #expect(try await versions(manager, count: 2) == [.http2, .http2])
        withExtendedLifetime(silent) {}
    }
}
