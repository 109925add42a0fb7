// SPDX-License-Identifier: MIT

#if Observability
    import AsyncNetworking
    import AsyncNetworkingObservability
    import AsyncNetworkingTesting
    import FoundationEssentials
    import ServiceLifecycle
    import ServiceLifecycleTestKit
    import TestSupport
    import Testing

    @Suite struct SessionServiceTests {
        @Test func `a graceful shutdown waits for the running requests`() async throws {
            let gate = try ScriptGate()
            let transport = MockTransport { request in
                request.method == .head ? .status(.ok) : MockResponse([.wait(gate), .head(.ok)])
            }
            let session = SessionManager { $0.transport = transport }
            let request = Request(url: try #require(URL(string: "http://a.example/")))
            try await testGracefulShutdown { trigger in
                let response = Task { try await session.data(for: request) }
                _ = try await transport.requests(count: 1)
                let service = Task { try await session.service().run() }
                trigger.triggerGracefulShutdown()
                // The session rejects requests before it waits.
                let probe = Request(method: .head, url: request.url)
                while (try? await session.data(for: probe)) != nil { await Task.yield() }
                gate.open()
                #expect(try await response.value.statusCode == 200)
                try await service.value
            }
            await #expect(throws: SessionError.self) { try await session.data(for: request) }
        }

        @Test func `a request that exceeds the limit is cancelled`() async throws {
            let transport = MockTransport(.hang)
            let clock = ManualClock()
            let session = SessionManager {
                $0.transport = transport
                $0.clock = clock
            }
            let request = Request(url: try #require(URL(string: "http://a.example/")))
            try await testGracefulShutdown { trigger in
                let response = Task { try await session.data(for: request) }
                _ = try await transport.requests(count: 1)
                let service = Task { try await session.service(draining: .seconds(5)).run() }
                trigger.triggerGracefulShutdown()
                try await eventually { clock.sleepers.contains(.seconds(5)) }
                clock.advance(by: .seconds(5))
                await #expect(throws: CancellationError.self) { _ = try await response.value }
                try await service.value
            }
        }
    }
#endif
