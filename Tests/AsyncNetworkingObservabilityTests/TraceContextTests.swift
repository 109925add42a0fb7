// SPDX-License-Identifier: MIT

#if Observability
    import AsyncNetworking
    import AsyncNetworkingObservability
    import AsyncNetworkingTesting
    import FoundationEssentials
    import HTTPTypes
    import InMemoryTracing
    import Testing
    import Tracing

    @Suite struct TraceContextTests {
        private let tracer = TraceContextTracer()

        @Test func `each exchange carries its own span in traceparent, and two services continue the trace`()
            async throws
        {
            let stocks = service("stocks") { [tracer] _ in
                tracer.spans.finishedSpans.contains { $0.operationName == "stocks" } ? .text("3") : head(503)
            }
            let asking = session(on: stocks) {
                $0.retryPolicy = RetryPolicy(limit: 1).with { $0.backoff = Backoff(base: .zero) }
            }
            let prices = service("prices") { request in
                guard request.url.path() == "/new" else { return .redirect(.found, to: "/new") }
                return .text(try await asking.get("stock", as: .string).value)
            }
            let session = session(on: prices)
            #expect(try await session.get("old", as: .string).value == "3")
            #expect(
                tree(below: nil) == [
                    "client GET 200",
                    "  client GET 302",
                    "    server prices",
                    "  client GET 200",
                    "    server prices",
                    "      client GET 200",
                    "        client GET 503",
                    "          server stocks",
                    "        client GET 200",
                    "          server stocks",
                ])
            let fields = (prices.requests + stocks.requests).compactMap { $0.request.headers[.traceparent] }
            let spans = tracer.spans.finishedSpans
            let servers = spans.filter { $0.kind == .server }.sorted { $0.start < $1.start }
            let trace = try #require(Set(spans.map(\.traceID)).first)
            #expect(Set(spans.map(\.traceID)).count == 1)
            #expect(trace.wholeMatch(of: /[0-9a-f]{32}/) != nil)
            #expect(fields == servers.map { "00-\(trace)-\($0.parentSpanID ?? "none")-01" })
            #expect(Set(fields).count == 4)
        }

        private func session(
            on transport: MockTransport, configure: (inout SessionConfiguration) -> Void = { _ in }
        ) -> SessionManager {
            SessionManager(
                SessionConfiguration(baseURL: URL(string: "http://a.example/")) {
                    $0.transport = transport
                    configure(&$0)
                    $0.traceRequests(by: tracer)
                })
        }

        /// A service that continues the traces of its requests.
        private func service(
            _ name: String, answer: @escaping @Sendable (Request) async throws -> MockResponse
        ) -> MockTransport {
            MockTransport { [tracer] request in
                var context = ServiceContext.topLevel
                tracer.extract(request.headers, into: &context, using: FieldExtractor())
                let span = tracer.startSpan(name, context: context, ofKind: .server)
                defer { span.end() }
                return try await ServiceContext.$current.withValue(span.context) { try await answer(request) }
            }
        }

        /// The spans below another one, in the order in which they began.
        private func tree(below parent: String?) -> [String] {
            tracer.spans.finishedSpans.filter { $0.parentSpanID == parent }.sorted { $0.start < $1.start }
                .flatMap { span in
                    let status = span.attributes.get("http.response.status_code").map { " \($0.text)" } ?? ""
                    return ["\(span.kind) \(span.operationName)\(status)"] + tree(below: span.spanID).map { "  \($0)" }
                }
        }
    }

    extension FinishedInMemorySpan {
        fileprivate var start: UInt64 { startInstant.nanosecondsSinceEpoch }
    }

    private struct FieldExtractor: Extractor {
        func extract(key: String, from fields: HTTPFields) -> String? { HTTPField.Name(key).flatMap { fields[$0] } }
    }

    extension HTTPField.Name {
        fileprivate static let traceparent = HTTPField.Name("traceparent") ?? .te
    }

    /// A tracer that keeps spans in memory, and passes their contexts on as W3C Trace Context defines.
    private struct TraceContextTracer: Tracer {
        let spans = InMemoryTracer(idGenerator: .random)

        func startSpan(
            _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
            at instant: @autoclosure () -> some TracerInstant, function: String, file fileID: String, line: UInt
        ) -> InMemorySpan {
            spans.startSpan(
                operationName, context: context(), ofKind: kind, at: instant(), function: function, file: fileID,
                line: line)
        }

        func inject<Carrier, Inject: Injector>(
            _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
        ) where Inject.Carrier == Carrier {
            guard let span = context.inMemorySpanContext else { return }
            injector.inject("00-\(span.traceID)-\(span.spanID)-01", forKey: "traceparent", into: &carrier)
        }

        func extract<Carrier, Extract: Extractor>(
            _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
        ) where Extract.Carrier == Carrier {
            guard let parts = extractor.extract(key: "traceparent", from: carrier)?.split(separator: "-"),
                parts.count == 4
            else { return }
            context.inMemorySpanContext = InMemorySpanContext(
                traceID: String(parts[1]), spanID: String(parts[2]), parentSpanID: nil)
        }

        func forceFlush() {}
    }

    extension InMemoryTracer.IDGenerator {
        /// Trace IDs of 16 bytes and span IDs of 8, in hexadecimal digits.
        fileprivate static let random = Self(nextTraceID: { hexadecimal() + hexadecimal() }, nextSpanID: hexadecimal)
    }

    @Sendable private func hexadecimal() -> String {
        let digits = String(UInt64.random(in: 1 ... .max), radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
#endif
