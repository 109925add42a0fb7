// SPDX-License-Identifier: MIT

package import AsyncNetworking

/// A table of the metrics of an exchange.
package enum TraceTable {
    /// Returns the table: each step with its duration and the time since the start, then bytes and the connection.
    package static func text(_ metrics: TransferMetrics, title: String) -> String {
        var rows: [(String, String, String)] = []
        var last = Duration.zero
        func add(_ name: String, until time: Duration?) {
            guard let time else { return }
            rows.append((name, Quantity.time(time - last), Quantity.time(time)))
            last = time
        }
        add("queue", until: metrics.queued)
        if !metrics.isConnectionReused {
            add("name look-up", until: metrics.nameLookup)
            add("connect", until: metrics.connect)
            add("TLS", until: metrics.tlsHandshake)
        }
        add("first byte", until: metrics.firstByte)
        add("rest", until: metrics.total)

        var text = title + "\n" + row("", "step", "total")
        for (name, step, total) in rows { text += row(name, step, total) }
        text += "  sent        \(Quantity.bytes(metrics.requestHeadBytes)) head, "
        text += "\(Quantity.bytes(metrics.requestBodyBytes)) body\n"
        text += "  received    \(Quantity.bytes(metrics.responseHeadBytes)) head, "
        text += "\(Quantity.bytes(metrics.responseBodyBytes)) body\n"
        text += "  connection  \(connection(metrics))\n"
        return text
    }

    private static func connection(_ metrics: TransferMetrics) -> String {
        var words: [String] = []
        if let local = metrics.localAddress, let remote = metrics.remoteAddress { words.append("\(local) → \(remote)") }
        words.append(metrics.isConnectionReused ? "reused" : "new")
        if let version = metrics.httpVersion { words.append("\(version)") }
        if let version = metrics.tlsVersion { words.append(version) }
        if let cipher = metrics.cipher { words.append(cipher) }
        if metrics.sendCount > 1 { words.append("\(metrics.sendCount) attempts") }
        return words.joined(separator: ", ")
    }

    private static func row(_ name: String, _ step: String, _ total: String) -> String {
        "  " + name + spaces(14 - name.count) + spaces(10 - step.count) + step + spaces(12 - total.count) + total + "\n"
    }

    private static func spaces(_ count: Int) -> String {
        String(repeating: " ", count: max(0, count))
    }
}
