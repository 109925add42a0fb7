// SPDX-License-Identifier: MIT

import InMemoryTracing
import Metrics
import MetricsTestKit
import Tracing

/// The metrics, lines and spans that the backends of this program have received. A real program has backends that send
/// them to a collector.
struct InMemoryReport {
    let spans: [FinishedInMemorySpan]
    let metrics: TestMetrics

    /// The counters and the numbers of measurements.
    var figures: [String] {
        let timers = metrics.timers(label: "http.client.request.duration")
        let count = timers.reduce(0) { $0 + $1.values.count }
        return [
            "\(count) calls measured, \(timers.count) kinds",
            "\(metrics.counterTotal(label: "http.client.retries")) retry",
        ]
    }
}

extension FinishedInMemorySpan {
    var startTime: UInt64 { startInstant.nanosecondsSinceEpoch }

    /// The kind, the name and the status.
    var line: String {
        let status = attributes.get("http.response.status_code").map { status in
            switch status {
            case .int32(let code): " \(code)"
            case .int64(let code): " \(code)"
            default: ""
            }
        }
        return "\(kind) \(operationName)\(status ?? "")"
    }
}
