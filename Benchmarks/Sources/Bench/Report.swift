// SPDX-License-Identifier: MIT

import Foundation

/// The medians of all rounds, as a table and as JSON.
struct Report {
    let entries: [Entry]

    struct Entry {
        let workload: Workload
        let client: Client
        let median: Sample
    }

    var table: String {
        let header =
            cell("workload", 16, left: true) + cell("client", 16, left: true)
            + ["CPU/request", "requests/s", "wall s", "peak MB", "× raw C", "× AHC", "× curl", "× aria2", "× ours"].map
        {
            cell($0, 11)
        }
        .joined()
        var lines = [header]
        var previous: String?
        for entry in entries {
            let workload = entry.workload
            if workload.name != previous {
                lines += ["", "\(workload.title) (ratios of \(workload.figure.name))"]
                previous = workload.name
            }
            let median = entry.median
            lines.append(
                cell(workload.name, 16, left: true) + cell(entry.client.rawValue, 16, left: true)
                    + cell(time(median.processorMicrosecondsPerRequest), 11)
                    + cell(number(median.requestsPerSecond, digits: median.requestsPerSecond < 10 ? 2 : 0), 11)
                    + cell(number(median.wallSeconds, digits: 3), 11)
                    + cell(number(median.peakMemoryKilobytes / 1024, digits: 1), 11)
                    + [Client.rawCurl, .asyncHTTPClient, .curlTool, .aria2, .ours].map {
                        cell(ratio(of: entry, to: $0), 11)
                    }
                    .joined())
        }
        return lines.joined(separator: "\n")
    }

    func json() throws -> Data {
        let rows = entries.map { entry in
            Row(
                workload: entry.workload.name, client: entry.client.rawValue,
                cpu_us_per_request: entry.median.processorMicrosecondsPerRequest,
                requests_per_second: entry.median.requestsPerSecond,
                wall_s: entry.median.wallSeconds, peak_rss_kb: entry.median.peakMemoryKilobytes)
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        return try encoder.encode(rows)
    }

    private func ratio(of entry: Entry, to client: Client) -> String {
        let figure = entry.workload.figure.path
        guard let other = entries.first(where: { $0.workload.name == entry.workload.name && $0.client == client })
        else {
            return "–"
        }
        return number(entry.median[keyPath: figure] / other.median[keyPath: figure], digits: 2)
    }

    private func time(_ microseconds: Double) -> String {
        let isShort = microseconds < 10_000
        return isShort ? number(microseconds, digits: 1) + " µs" : number(microseconds / 1_000, digits: 0) + " ms"
    }

    private func number(_ value: Double, digits: Int) -> String {
        String(format: "%.\(digits)f", value)
    }

    private func cell(_ text: String, _ width: Int, left: Bool = false) -> String {
        let padding = String(repeating: " ", count: max(0, width - text.count))
        return left ? text + padding : padding + text
    }

    private struct Row: Encodable {
        var workload: String
        var client: String
        var cpu_us_per_request: Double
        var requests_per_second: Double
        var wall_s: Double
        var peak_rss_kb: Double
    }
}
