// SPDX-License-Identifier: MIT

#if Observability
    import ANSystem
    import AsyncNetworking
    import AsyncNetworkingObservability
    import AsyncNetworkingTesting
    import FoundationEssentials
    import HTTPTypes
    import InMemoryTracing
    import Testing

    @Suite struct RequestTracesTests {
        private let backends = Backends()
        private let place = "http.request.method=GET"

        @Test func `retries and redirects are child spans of their call, whose context each request carries`()
            async throws
        {
            let transport = MockTransport(head(503), .redirect(.found, to: "/b?token=secret"), .text("end"))
            try await backends.inSpan("handler") { try await backends.makeRetriedCall(.get, on: transport) }
            let server = "server.address=a.example server.port=80"
            let first = "url.full=http://a.example/v1/users/7?key=…"
            #expect(
                backends.spans == [
                    "span-3 in span-2 GET /v1/users/{id} client error: error.type=503 \(place) "
                        + "http.response.status_code=503 network.protocol.version=1.1 \(server) \(first)",
                    "span-4 in span-2 GET /v1/users/{id} client: \(place) http.request.resend_count=1 "
                        + "http.response.status_code=302 network.protocol.version=1.1 \(server) \(first)",
                    "span-5 in span-2 GET /v1/users/{id} client: \(place) http.request.resend_count=2 "
                        + "http.response.status_code=200 network.protocol.version=1.1 \(server) "
                        + "url.full=http://a.example/b?token=…",
                    "span-2 in span-1 GET /v1/users/{id} client +http.retry: \(place) http.request.resend_count=2 "
                        + "http.response.status_code=200 \(server) \(first) url.template=/v1/users/{id}",
                    "span-1 handler internal: ",
                ])
            #expect(
                transport.requests.map { $0.request.headers[HTTPField.Name("in-memory-span-id") ?? .accept] }
                    == ["span-3", "span-4", "span-5"])
        }

        @Test func `a stored response is used by other sessions, because the fields of a trace are no credentials`()
            async throws
        {
            let version = try #require(HTTPField.Name("X-Version"))
            let fields: HTTPFields = [.cacheControl: "max-age=60", .vary: "X-Version"]
            let transport = MockTransport(.data(Data("x".utf8), headers: fields))
            let cache = ResponseCache.memory()
            for _ in 0..<2 {
                let session = backends.session(on: transport) { $0.cache = cache }
                _ = try await session.get("a", headers: [version: "1"])
            }
            #expect(transport.requests.count == 1)
        }

        @Test func `a stored response that varies by a field of a trace is not used for another request`() async throws
        {
            let fields: HTTPFields = [.cacheControl: "max-age=60", .vary: "in-memory-span-id"]
            let transport = MockTransport(.data(Data("x".utf8), headers: fields))
            let session = backends.session(on: transport) { $0.cache = .memory() }
            for _ in 0..<2 { _ = try await session.get("a") }
            #expect(transport.requests.count == 2)
        }

        @Test func `a failure ends both spans with its label`() async throws {
            let session = backends.session(on: MockTransport(.failure(TransportError(.cannotConnect(.refused)))))
            _ = try? await session.get("a")
            let server = "server.address=a.example server.port=80 url.full=http://a.example/v1/a"
            #expect(
                backends.spans == [
                    "span-2 in span-1 GET client error: error.type=connection_refused \(place) \(server)",
                    "span-1 GET client error: error.type=connection_refused \(place) \(server)",
                ])
        }

        @Test func `spans end with the body, not with the head`() async throws {
            try await StubServer.with { server in
                server.route("/a", .text("end"))
                let session = session(for: server)
                try await session.withResponse(for: session.request(.get, "a")) { _, body in
                    #expect(backends.spans == [])
                    for try await _ in body {}
                }
                let peer = "network.peer.address=127.0.0.1 network.peer.port=\(server.endpoint.port)"
                #expect(backends.spans.count == 2)
                #expect(backends.spans.first?.contains(peer) == true)
                #expect(backends.isComplete)
                #expect(backends.ends == backends.ends.sorted())
            }
        }

        /// Sends a request to the path `slow` at the same time as its own, which is answered first.
        private struct Overlapping: Interceptor {
            let server: StubServer
            let gate: ScriptGate

            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                var slow = request
                slow.url = server.url("/slow")
                async let other = next(slow)
                try await server.requests(count: 1)
                let response = try await next(request)
                gate.open()
                _ = try await other
                return response
            }
        }

        @Test func `spans of exchanges that overlap end with their own`() async throws {
            try await StubServer.with { server in
                let gate = try ScriptGate()
                server.route("/slow", Script([.wait(gate), .reply(Reply(status: 404, body: .string("slow")))]))
                server.route("/a", .text("fast"))
                let session = SessionManager(baseURL: server.url("/")) {
                    $0.proxy = .none
                    $0.attemptInterceptors = [Overlapping(server: server, gate: gate)]
                    $0.traceRequests(by: backends.tracer)
                }
                _ = try await session.get("a")
                #expect(backends.parents == ["span-1", "span-1", nil])
                #expect(backends.spans.map { $0.contains("status_code=404") } == [true, false, false])
                // The slow one ends last, although it began first.
                #expect(backends.ends[0] > backends.ends[1])
            }
        }

        /// Refuses the first request.
        private actor Refusing: Interceptor {
            private var isFirst = true

            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                defer { isFirst = false }
                if isFirst { throw TransportError(.cannotConnect(.refused)) }
                return try await next(request)
            }
        }

        /// Calls a closure when the second span begins.
        private static func tracer(onExchange act: @escaping @Sendable () -> Void) -> InMemoryTracer {
            let (traces, spans) = (InMemoryTracer.IDGenerator.incrementing, InMemoryTracer.IDGenerator.incrementing)
            return InMemoryTracer(
                idGenerator: InMemoryTracer.IDGenerator(nextTraceID: traces.nextTraceID) {
                    let id = spans.nextSpanID()
                    if id == "span-2" { act() }
                    return id
                })
        }

        /// Receives the task of a call.
        private struct TaskMonitor: EventMonitor {
            let task = Lock<AnySessionTask?>(nil)

            func receive(_ event: TaskEvent, of task: AnySessionTask) {
                if case .began = event { self.task.set(\.self, to: task) }
            }
        }

        @Test func `the span of an exchange whose call ends while it begins ends`() async throws {
            let (tasks, traces) = (TaskMonitor(), Lock<(any EventMonitor)?>(nil))
            let tracer = Self.tracer {
                guard let task = tasks.task.withLock(\.self) else { return }
                traces.withLock(\.self)?.receive(.ended(.succeeded, CallMetrics()), of: task)
            }
            let session = SessionManager(baseURL: URL(string: "http://a.example/")) {
                $0.transport = MockTransport(.text("end"))
                $0.eventMonitors = [tasks]
                $0.traceRequests(by: tracer)
                traces.set(\.self, to: $0.eventMonitors.last)
            }
            _ = try await session.get("a")
            #expect(tracer.finishedSpans.map(\.spanID).sorted() == ["span-1", "span-2"])
            #expect(tracer.activeSpans.isEmpty)
        }

        @Test func `the span of an attempt without an exchange ends with the attempt`() async throws {
            let clock = ManualClock()
            let session = SessionManager(baseURL: URL(string: "http://a.example/")) {
                $0.transport = MockTransport(.text("end"))
                $0.clock = clock
                $0.retryPolicy = RetryPolicy(limit: 1)
                $0.traceRequests(by: backends.tracer)
                $0.attemptInterceptors.append(Refusing())
            }
            let response = Task { try await session.get("a") }
            _ = try await clock.sleepers(count: 1)
            clock.advance(by: .seconds(60))
            _ = try await response.value
            #expect(backends.spans.map { $0.contains("error.type=connection_refused") } == [true, false, false])
            #expect(backends.ends[0] <= backends.ends[1])
        }

        @Test func `a failure of a body is one of its exchange`() async throws {
            try await StubServer.with { server in
                server.route("/a", .truncated(declared: 10, sent: 5))
                let session = session(for: server)
                _ = try? await session.withResponse(for: session.request(.get, "a")) { _, body in
                    for try await _ in body {}
                }
                #expect(backends.spans.count == 2)
                #expect(backends.spans.allSatisfy { $0.contains("error.type=connection_lost") })
            }
        }

        @Test func `a response of the cache has a span without an exchange`() async throws {
            let stored = MockResponse(
                status: .ok, headers: [.cacheControl: "max-age=60", .contentLength: "3"], chunks: [Data("end".utf8)])
            let session = backends.session(on: MockTransport(stored)) { $0.cache = .memory() }
            _ = try await session.get("a")
            _ = try await session.get("a")
            #expect(backends.parents == ["span-1", nil, nil])
        }

        @Test func `a cancelled call ends both spans`() async throws {
            let transport = MockTransport(.hang)
            let session = backends.session(on: transport)
            let task = Task { try await session.get("a") }
            _ = try await transport.requests(count: 1)
            task.cancel()
            _ = try? await task.value
            #expect(backends.isComplete)
            #expect(backends.spans.allSatisfy { $0.contains("error.type=cancelled") })
        }

        private func session(for server: StubServer) -> SessionManager {
            SessionManager(baseURL: server.url("/")) {
                $0.proxy = .none
                $0.traceRequests(by: backends.tracer)
            }
        }

        @Test func `the span of a WebSocket connection ends with the connection`() async throws {
            let script = Script([.acceptWebSocket(), .echoMessages()])
            let session = backends.session(on: MockTransport(script: script))
            try await session.withWebSocket(Request(url: try #require(URL(string: "ws://a.example/socket")))) {
                socket in
                try await socket.send(.text("x"))
                for try await message in socket {
                    #expect(message == .text("x"))
                    break
                }
                #expect(backends.spans == [])
            }
            #expect(backends.parents == ["span-1", nil])
            #expect(backends.spans.allSatisfy { $0.contains("http.response.status_code=101") })
        }

        @Test func `each connection of an event source is a call`() async throws {
            let events = MockResponse(
                status: .ok, headers: [.contentType: "text/event-stream"], chunks: [Data("retry: 0\ndata: 1\n\n".utf8)])
            let session = backends.session(on: MockTransport(events, events, head(204)))
            let request = try session.request(.get, "events")
            for try await _ in session.events(for: request, reconnectionTime: .zero) {}
            #expect(
                backends.parents == ["span-1", nil, "span-3", nil, "span-5", nil])
        }
    }
#endif
