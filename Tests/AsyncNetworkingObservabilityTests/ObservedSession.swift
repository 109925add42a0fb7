// SPDX-License-Identifier: MIT

#if Observability
    import AsyncNetworking
    import AsyncNetworkingObservability
    import AsyncNetworkingTesting
    import CoreMetrics
    import FoundationEssentials
    import HTTPTypes
    import InMemoryLogging
    import InMemoryTracing
    import Logging
    import MetricsTestKit
    import Tracing

    /// The backends of a session, and what they have received as text.
    struct Backends {
        let logs: InMemoryLogHandler
        let logger: Logger
        let metrics = TestMetrics()
        let tracer = InMemoryTracer(idGenerator: .incrementing)

        init(level: Logger.Level = .debug) {
            (logs, logger) = InMemoryLogHandler.makeLogger(logLevel: level)
        }

        /// Creates a session with a mock transport and all backends.
        func session(
            on transport: any Transport, configure: (inout SessionConfiguration) -> Void = { _ in }
        ) -> SessionManager {
            SessionManager(
                SessionConfiguration(baseURL: URL(string: "http://a.example/v1/")) {
                    $0.transport = transport
                    $0.sendsDefaultHeaders = false
                    $0.randomUnit = { 1 }
                    configure(&$0)
                    $0.logRequests(to: logger)
                    $0.recordMetrics(by: metrics)
                    $0.traceRequests(by: tracer)
                })
        }

        /// Makes a call that is retried after half a second of a manual clock, and ends after a second.
        func makeRetriedCall(_ method: HTTPRequest.Method, on transport: MockTransport) async throws {
            let clock = ManualClock()
            let session = session(on: transport) {
                $0.clock = clock
                $0.retryPolicy = RetryPolicy(limit: 1)
            }
            let body = method == .put ? RequestBody.string("body") : .none
            var request = try session.request(method, "users/7?key=secret", body: body)
            request.routeTemplate = "/v1/users/{id}"
            let response = Task { [request] in try await session.data(for: request) }
            _ = try await clock.sleepers(count: 1)
            clock.advance(by: .seconds(1))
            _ = try await response.value
        }

        /// The lines of the log, with their metadata except for the number of the call.
        var lines: [String] {
            logs.entries.map { entry in
                let pairs = entry.metadata.filter { $0.key != "http.call" }.map { "\($0.key)=\($0.value)" }.sorted()
                return "\(entry.level) \(entry.message)" + (pairs.isEmpty ? "" : " [\(pairs.joined(separator: " "))]")
            }
        }

        /// The spans in the order in which they ended, with their kinds, parents, attributes and events.
        var spans: [String] {
            tracer.finishedSpans.map { span in
                var pairs: [String] = []
                span.attributes.forEach { key, value in pairs.append("\(key)=\(value.text)") }
                let parent = span.parentSpanID.map { " in \($0)" } ?? ""
                let status = span.status.map { $0.code == .error ? " error" : " ok" } ?? ""
                let events = span.events.map { " +\($0.name)" }.joined()
                return "\(span.spanID)\(parent) \(span.operationName) \(span.kind)\(status)\(events): "
                    + pairs.sorted().joined(separator: " ")
            }
        }

        /// Whether each span that began has ended, and the parents of the spans in the order in which they ended.
        var isComplete: Bool { tracer.activeSpans.isEmpty }
        var parents: [String?] { tracer.finishedSpans.map(\.parentSpanID) }
        /// The times at which the spans ended.
        var ends: [UInt64] { tracer.finishedSpans.map(\.endInstant.nanosecondsSinceEpoch) }

        /// All that the spans contain besides their names and attributes.
        var details: [String] { tracer.finishedSpans.map { "\($0.errors) \($0.events) \($0.links)" } }

        /// Runs a closure in a span.
        func inSpan(_ name: String, _ body: () async throws -> Void) async throws {
            try await tracer.withSpan(name) { _ in try await body() }
        }

        /// The values of all metrics with their dimensions, except durations, which are named only.
        var values: [String] {
            func key(_ label: String, _ dimensions: [(String, String)]) -> String {
                "\(label){\(dimensions.map { "\($0)=\($1)" }.sorted().joined(separator: ","))}"
            }
            return
                (metrics.counters.map { "\(key($0.label, $0.dimensions)) \($0.totalValue)" }
                + metrics.meters.map { "\(key($0.label, $0.dimensions)) \($0.values)" }
                + metrics.recorders.map { "\(key($0.label, $0.dimensions)) \($0.values)" }
                + metrics.timers.map { "\(key($0.label, $0.dimensions)) \($0.values.count) times" }).sorted()
        }
    }

    extension SpanAttribute {
        var text: String {
            switch self {
            case .int32(let value): "\(value)"
            case .int64(let value): "\(value)"
            case .string(let value): value
            default: "\(self)"
            }
        }
    }

    extension InMemoryLogHandler {
        /// Creates a logger, and the handler with its entries.
        static func makeLogger(logLevel: Logger.Level) -> (InMemoryLogHandler, Logger) {
            let handler = InMemoryLogHandler()
            var logger = Logger(label: "test") { _ in handler }
            logger.logLevel = logLevel
            return (handler, logger)
        }
    }

    /// A status without a body.
    func head(_ code: Int) -> MockResponse { .status(.init(code: code)) }
#endif
