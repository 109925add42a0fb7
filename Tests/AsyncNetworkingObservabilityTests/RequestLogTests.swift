// SPDX-License-Identifier: MIT

#if Observability
    import AsyncNetworking
    import AsyncNetworkingObservability
    import AsyncNetworkingTesting
    import FoundationEssentials
    import HTTPTypes
    import InMemoryLogging
    import Logging
    import Testing

    @Suite struct RequestLogTests {
        @Test func `a call has one line with its figures, and details at the level debug`() async throws {
            let backends = Backends()
            let transport = MockTransport(
                head(503), .redirect(.temporaryRedirect, to: "/b?token=secret"), .text("end"))
            try await backends.makeRetriedCall(.put, on: transport)
            let line = "PUT http://a.example/v1/users/7?key=…"
            #expect(
                backends.lines == [
                    "debug \(line) sends PUT http://a.example/v1/users/7?key=…",
                    "debug \(line) waits 500 ms for a retry, because of status 503",
                    "debug \(line) sends PUT http://a.example/v1/users/7?key=…",
                    "debug \(line) is redirected by 307 to http://a.example/b?token=…",
                    "debug \(line) sends PUT http://a.example/b?token=…",
                    "info \(line) ended with 200 after 1.00 s [http.attempts=2 http.duration_ms=1000.0 http.exchanges=3 "
                        + "http.method=PUT http.received_bytes=3 http.route=/v1/users/{id} http.sent_bytes=12 "
                        + "http.source=network http.status=200 http.url=http://a.example/v1/users/7?key=…]",
                ])
        }

        @Test func `a failure has its label, and its timeline at the level debug`() async throws {
            let backends = Backends()
            let session = backends.session(on: MockTransport(.failure(TransportError(.cannotConnect(.refused))))) {
                $0.clock = ManualClock()
            }
            _ = try? await session.get("a")
            #expect(
                backends.lines == [
                    "debug GET http://a.example/v1/a sends GET http://a.example/v1/a",
                    "error GET http://a.example/v1/a failed with connection_refused after 0 ms [http.attempts=1 "
                        + "http.duration_ms=0.0 http.error=connection_refused http.exchanges=1 http.method=GET "
                        + "http.received_bytes=0 http.sent_bytes=0 http.url=http://a.example/v1/a]",
                    """
                    debug GET http://a.example/v1/a connection_refused: no request was sent
                      0 ms  begins
                      0 ms  No connection could be made: the port is closed; check that the server is running
                    """,
                ])
        }

        @Test(arguments: [(200, Logger.Level.info), (404, .warning), (503, .error)])
        func `the level depends on the status`(status: Int, level: Logger.Level) async throws {
            let backends = Backends(level: .info)
            let session = backends.session(on: MockTransport(head(status)))
            _ = try await session.data(for: session.request(.get, "a"))
            _ = try? await session.get("a")
            #expect(backends.logs.entries.map(\.level) == [level, level])
        }

        @Test func `a call fails at the level error if another call or a status below 400 is the reason`() async throws
        {
            let backends = Backends(level: .info)
            let tokens = SessionManager { $0.transport = MockTransport(head(401)) }
            let origin = try #require(URL(string: "http://a.example/"))
            let session = backends.session(on: MockTransport(head(204))) {
                $0.authentication.authenticators = [
                    Authenticator(for: [origin]) { _ in
                        _ = try await tokens.get("http://b.example/token")
                        return Authenticator.Token("1")
                    }
                ]
            }
            let validation = ResponseValidation(statuses: [200])
            for authentication in [nil, AuthenticationPolicy.none] {
                var request = try session.request(.get, "a")
                request.authentication = authentication
                let error = await #expect(throws: SessionError.self) {
                    try await session.withResponse(for: request, validating: validation) { _, _ in }
                }
                #expect(error?.label == "status_rejected")
            }
            #expect(backends.logs.entries.map(\.level) == [.error, .error])
            #expect(backends.spans.filter { $0.contains("error.type=status_rejected") }.count == 2)
        }

        @Test func `a level that is off writes nothing`() async throws {
            let backends = Backends(level: .critical)
            _ = try? await backends.session(on: MockTransport(head(500))).get("a")
            #expect(backends.lines == [])
        }

        @Test func `without a logger, the lines go to that of the task that makes the request`() async throws {
            let session = SessionManager(baseURL: URL(string: "http://a.example/")) {
                $0.transport = MockTransport(.redirect(.found, to: "/b"), .text("end"))
                $0.logRequests()
            }
            let (logs, logger) = InMemoryLogHandler.makeLogger(logLevel: .debug)
            try await withLogger(logger) { logger in
                var logger = logger
                logger[metadataKey: "request"] = "7"
                try await withLogger(logger) { _ in _ = try await session.get("a") }
            }
            #expect(logs.entries.count == 4)
            #expect(logs.entries.allSatisfy { $0.metadata["request"] == "7" })
        }
    }
#endif
