// SPDX-License-Identifier: MIT

#if Observability
    import AsyncNetworking
    import AsyncNetworkingObservability
    import AsyncNetworkingTesting
    import CoreMetrics
    import FoundationEssentials
    import HTTPTypes
    import MetricsTestKit
    import Synchronization
    import Testing

    @Suite struct RequestMetricsTests {
        private let backends = Backends()

        @Test func `a call records its time, sizes, retries and queue, with bounded dimensions`() async throws {
            try await backends.makeRetriedCall(.put, on: MockTransport(head(503), .text("end")))
            let call = "http.request.method=PUT,server.address=a.example,server.port=80,url.template=/v1/users/{id}"
            let ended =
                "http.request.method=PUT,http.response.status_code=200,network.protocol.version=1.1,"
                + "server.address=a.example,server.port=80,url.template=/v1/users/{id}"
            #expect(
                backends.values == [
                    "http.client.active_requests{\(call)} [1.0, 0.0]",
                    "http.client.request.body.size{\(ended)} [8.0]",
                    "http.client.request.duration{\(ended)} 1 times",
                    "http.client.request.time_in_queue{\(call)} 2 times",
                    "http.client.response.body.size{\(ended)} [3.0]",
                    "http.client.retries{\(call)} 1",
                ])
            #expect(
                backends.metrics.timers(label: "http.client.request.duration").map(\.values) == [[1_000_000_000]])
        }

        @Test func `the calls of all sessions are counted together`() async throws {
            func active() -> Double? { backends.metrics.meters.first?.lastValue }
            let gate = try ScriptGate()
            let waiting = backends.session(on: MockTransport(MockResponse([.head(.ok), .wait(gate)])))
            let other = backends.session(on: MockTransport(head(200)))
            async let first = waiting.get("a")
            while active() != 1 { await Task.yield() }
            _ = try await other.get("a")
            #expect(active() == 1)
            gate.open()
            _ = try await first
            #expect(active() == 0)
        }

        @Test func `no meter is kept for a host without calls`() async throws {
            let factory = MeterFactory()
            let session = SessionManager(
                SessionConfiguration(baseURL: URL(string: "http://a.example/")) {
                    $0.transport = MockTransport(.status(.ok))
                    $0.recordMetrics(by: factory)
                })
            for number in 1...3 { _ = try await session.get("http://\(number).example/") }
            #expect(factory.meters.count == 3)
            #expect(factory.meters.allSatisfy { $0.object == nil })
        }

        @Test func `a failure has its label as the type of the error, and a status from 400 on its number`()
            async throws
        {
            let session = backends.session(
                on: MockTransport(.failure(TransportError(.timedOut(.connect))), head(404)))
            _ = try? await session.get("a")
            let brew = try #require(HTTPRequest.Method("BREW"))
            let url = try #require(URL(string: "https://b.example/"))
            _ = try? await session.data(for: Request(method: brew, url: url))
            let durations = backends.values.filter { $0.hasPrefix("http.client.request.duration") }
            #expect(
                durations == [
                    "http.client.request.duration{error.type=404,http.request.method=_OTHER,"
                        + "http.response.status_code=404,network.protocol.version=1.1,server.address=b.example,"
                        + "server.port=443} 1 times",
                    "http.client.request.duration{error.type=timeout_connect,http.request.method=GET,"
                        + "server.address=a.example,server.port=80} 1 times",
                ])
        }

        @Test func `open connections are recorded by their state`() async throws {
            let gate = try ScriptGate()
            try await StubServer.with { server in
                server.route("/a", .text("end"))
                server.route("/b", Script([.wait(gate), .reply(Reply())]))
                let session = SessionManager(baseURL: server.url("/")) { $0.proxy = .none }
                async let slow = session.get("b")
                _ = try await server.requests(count: 1)
                _ = try await session.get("a")
                await session.recordConnections(by: backends.metrics)
                gate.open()
                _ = try await slow
            }
            #expect(
                backends.values == [
                    "http.client.open_connections{http.connection.state=active} [1.0]",
                    "http.client.open_connections{http.connection.state=idle} [1.0]",
                ])
        }

        @Test func `responses of the cache are counted by their source`() async throws {
            let stored = MockResponse(
                status: .ok, headers: [.cacheControl: "max-age=60", .contentLength: "3"], chunks: [Data("end".utf8)])
            let session = backends.session(on: MockTransport(stored)) { $0.cache = .memory() }
            _ = try await session.get("a")
            _ = try await session.get("a")
            #expect(
                backends.values.filter { $0.hasPrefix("http.client.cache") } == [
                    "http.client.cache.results{http.request.method=GET,server.address=a.example,server.port=80,"
                        + "source=cache} 1"
                ])
        }
    }

    /// A factory that retains none of its meters.
    private final class MeterFactory: MetricsFactory {
        private let state = Mutex([Weak]())

        var meters: [Weak] { state.withLock { $0 } }

        struct Weak: Sendable {
            private(set) weak var object: MeterOfTest?
        }

        func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
            let meter = MeterOfTest()
            state.withLock { $0.append(Weak(object: meter)) }
            return meter
        }

        func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
            NOOPMetricsHandler.instance
        }
        func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
            NOOPMetricsHandler.instance
        }
        func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
            NOOPMetricsHandler.instance
        }
        func destroyCounter(_ handler: any CounterHandler) {}
        func destroyMeter(_ handler: any MeterHandler) {}
        func destroyRecorder(_ handler: any RecorderHandler) {}
        func destroyTimer(_ handler: any TimerHandler) {}
    }

    private final class MeterOfTest: MeterHandler {
        func set(_ value: Int64) {}
        func set(_ value: Double) {}
        func increment(by amount: Double) {}
        func decrement(by amount: Double) {}
    }
#endif
