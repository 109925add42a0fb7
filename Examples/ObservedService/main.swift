// SPDX-License-Identifier: MIT

// A service that asks another one, with logs, metrics, traces, and an end that loses no request:
//
//     swift run ObservedService
//
// Both services are in this process, so that their common trace can be printed.

import AsyncNetworking
import AsyncNetworkingObservability
import MetricsTestKit
import ServiceLifecycle
import Tracing

let tracer = TraceContextTracer()
let metrics = TestMetrics()
InstrumentationSystem.bootstrap(tracer)
let client = StockClient(metrics: metrics)
let visits = Visits()
let stocks = Server.stocks(visits)
let prices = Server.prices(asking: client, at: stocks.port)

// snippet.services
let group = ServiceGroup(
    configuration: ServiceGroupConfiguration(
        services: [client.session.service(draining: .seconds(20)), stocks.application, prices.application],
        gracefulShutdownSignals: [.sigterm], logger: .quiet))
// snippet.end
let running = Task { try await group.run() }

// A caller of the service.
let caller = SessionManager { $0.traceRequests() }
print(try await caller.get("http://127.0.0.1:\(prices.port.value)/prices/7", as: .string).value)

await group.triggerGracefulShutdown()
try await running.value

for field in await visits.traceparents { print("stocks received traceparent \(field)") }
let report = InMemoryReport(spans: tracer.spans.finishedSpans, metrics: metrics)
for line in report.tree + report.figures { print(line) }
