// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingObservability
import Foundation
import Logging
import Metrics
import Tracing

/// The client with which the service of prices asks that of stocks.
struct StockClient: Sendable {
    let session: SessionManager

    init(metrics: any MetricsFactory) {
        // snippet.session
        session = SessionManager {
            $0.retryPolicy = RetryPolicy(limit: 2)
            $0.logRequests()
            $0.recordMetrics(by: metrics)
            $0.traceRequests()
        }
        // snippet.end
    }

    func count(of id: String, port: Int) async throws -> Int {
        // snippet.route
        var request = try session.request(.get, "http://127.0.0.1:\(port)/stock/\(id)?key=s3cret")
        request.routeTemplate = "/stock/{id}"
        let text = try await session.value(for: request, as: .string)
        // snippet.end
        return Int(text) ?? 0
    }
}

extension InMemoryReport {
    /// The spans as a tree: those of both services, because the requests carry the context of the trace.
    var tree: [String] {
        func lines(below parent: String?, _ depth: Int) -> [String] {
            spans.filter { $0.parentSpanID == parent }.sorted { $0.startTime < $1.startTime }.flatMap { span in
                [String(repeating: "  ", count: depth) + span.line] + lines(below: span.spanID, depth + 1)
            }
        }
        return lines(below: nil, 0)
    }
}
