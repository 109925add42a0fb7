// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import Testing

@Suite(.timeLimit(.minutes(5))) struct ActivityTimeoutTests {
    @Test func `a wait for requests that never arrive ends with those that did`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let api = SessionManager(baseURL: server.url())
            _ = try await api.get("/first")
            let error = try await #require(throws: ActivityTimeout.self) {
                try await server.requests(count: 2, within: .milliseconds(10))
            }
            #expect(error.limit == .milliseconds(10))
            #expect("\(error)".contains("requests: GET /first; connections: 1 accepted, 1 open"))
        }
    }

    @Test func `other waits end, too`() async throws {
        try await StubServer.with { server in
            let error = try await #require(throws: ActivityTimeout.self) {
                try await server.connections(open: 1, within: .milliseconds(10))
            }
            #expect("\(error)".contains("requests: none; connections: 0 accepted"))
            await #expect(throws: ActivityTimeout.self) {
                try await server.activity(within: .zero) { !$0.failedHandshakes.isEmpty }
            }
        }
    }
}
