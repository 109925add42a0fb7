// SPDX-License-Identifier: MIT

/// How far one direction of a transfer has come: a snapshot, not a live object.
public struct TransferProgress: Hashable, Sendable {
    /// Body bytes moved so far, as they travel on the wire (before decompression).
    public var completedBytes: Int64
    /// All body bytes, where that is known for certain; nil for chunked and unknown lengths.
    public var totalBytes: Int64?
    /// The present speed, in which recent moments count more than early ones; nil where it was not measured, as in the
    /// events of one exchange.
    public var bytesPerSecond: Double?

    /// Creates a snapshot.
    public init(completedBytes: Int64, totalBytes: Int64?) {
        self.completedBytes = completedBytes
        self.totalBytes = totalBytes
    }

    /// The part that is done, from 0 to 1; nil while the total is unknown.
    public var fraction: Double? {
        guard let totalBytes else { return nil }
        return totalBytes <= 0 ? 1 : max(0, min(1, Double(completedBytes) / Double(totalBytes)))
    }

    /// The time until the end at the present speed; nil while the total or the speed is unknown, or above 100 hours.
    public var timeLeft: Duration? {
        guard let totalBytes, let bytesPerSecond, bytesPerSecond >= 1 else { return nil }
        let seconds = (Double(totalBytes) - Double(completedBytes)) / bytesPerSecond
        return seconds < 360_000 ? .seconds(max(0, seconds)) : nil
    }
}
