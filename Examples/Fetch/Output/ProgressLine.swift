// SPDX-License-Identifier: MIT

/// A line with the progress of a transfer.
package struct ProgressLine {
    /// The text before the progress: a name, or `2 of 5`.
    package var label: String
    /// The number of bytes transferred.
    package var completedBytes: Int64
    /// The total number of bytes; `nil` if unknown.
    package var totalBytes: Int64?
    /// The time since the start.
    package var elapsed: Duration
    /// The current speed.
    package var rate: RateEstimate

    package init(
        label: String, completedBytes: Int64, totalBytes: Int64?, elapsed: Duration, rate: RateEstimate
    ) {
        self.label = label
        self.completedBytes = completedBytes
        self.totalBytes = totalBytes
        self.elapsed = elapsed
        self.rate = rate
    }

    /// Returns the line for a terminal: less than `columns` wide, with a bar if it fits.
    package func bar(columns: Int) -> String {
        let details = self.details
        var shown = label
        if let fraction {
            let room = columns - details.count - 7
            while shown.count > max(8, room - 12), shown.count > 1 { shown = shown.dropLast(2) + "…" }
            let width = min(30, room - shown.count)
            if width >= 6 {
                let done = Int((fraction * Double(width)).rounded(.down))
                let filled = String(repeating: "=", count: done)
                let head = done < width ? ">" : ""
                let empty = String(repeating: " ", count: max(0, width - done - 1))
                return "\(shown)  [\(filled)\(head)\(empty)]  \(details)"
            }
        }
        let text = shown.isEmpty ? details : "\(shown)  \(details)"
        return text.count < columns ? text : String(details.prefix(max(0, columns - 1)))
    }

    /// The line for a log.
    package var plain: String {
        label.isEmpty ? details : "\(label): \(details)"
    }

    private var fraction: Double? {
        guard let totalBytes, totalBytes > 0 else { return nil }
        return min(1, max(0, Double(completedBytes) / Double(totalBytes)))
    }

    private var details: String {
        var words: [String] = []
        if let fraction, let totalBytes {
            words.append("\(Int(fraction * 100))%")
            words.append("\(Quantity.bytes(completedBytes)) of \(Quantity.bytes(totalBytes))")
        } else {
            words.append(Quantity.bytes(completedBytes))
        }
        if let speed = rate.bytesPerSecond { words.append(Quantity.rate(speed)) }
        if let totalBytes, completedBytes < totalBytes, let left = rate.timeLeft(for: totalBytes - completedBytes) {
            words.append("\(Quantity.clock(left)) left")
        } else {
            words.append(Quantity.clock(elapsed))
        }
        return words.joined(separator: "  ")
    }
}
