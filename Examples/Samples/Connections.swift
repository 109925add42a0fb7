// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Timeouts, proxies and TLS".

func changeOptions(url: URL) async throws -> (Request, Int) {
    // snippet.options
    let api = SessionManager { $0.timeouts.idle = .seconds(20) }
    let status = try await api.get("status", options: { $0.timeouts.idle = .seconds(5) })
    var request = Request(url: url)
    request.changeOptions { $0.timeouts.idle = .seconds(5) }
    // snippet.end
    return (request, status.statusCode)
}

func configureTimeouts() -> SessionManager {
    // snippet.timeouts
    let api = SessionManager {
        $0.timeouts.connect = .seconds(3)
        $0.timeouts.idle = .seconds(30)
        $0.timeouts.total = .seconds(120)
    }
    // snippet.end
    return api
}

func configureProxy() -> SessionManager {
    // snippet.proxies
    let api = SessionManager {
        $0.proxy = .proxy(
            Proxy(
                .socks5h, host: "127.0.0.1", port: 9050, credential: Credential(user: "ada", password: "secret"),
                bypass: ["localhost", ".internal.example"]))
    }
    // snippet.end
    return api
}

func configureTLS() -> SessionManager {
    // snippet.tls
    let api = SessionManager {
        $0.tls.trustRoots = .file("/etc/ssl/private-ca.pem")
        $0.tls.minimumVersion = .v1_3
    }
    // snippet.end
    return api
}

func configureConnections() -> SessionManager {
    // snippet.connections
    let api = SessionManager {
        $0.connectionLimits.maximumConnectionsPerHost = 4
        $0.connectionLimits.maximumIdleAge = .seconds(30)
        $0.httpVersion = .http2PriorKnowledge
        $0.connection.unixSocketPath = "/run/docker.sock"
        $0.connection.hostOverrides = [.init(host: "api.example.com", port: 443, address: "10.0.0.7")]
    }
    // snippet.end
    return api
}

func readMetrics(_ api: SessionManager) async throws {
    // snippet.metrics
    let metrics = try await api.get("users/7").metrics
    print(metrics.total, metrics.isConnectionReused, metrics.httpVersion ?? .http1_1, metrics.tlsVersion ?? "no TLS")
    // snippet.end
}
