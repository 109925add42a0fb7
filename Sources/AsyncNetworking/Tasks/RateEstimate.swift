// SPDX-License-Identifier: MIT

/// An exponentially weighted average of the rate of a transfer.
///
/// The weight depends on time, not on the number of updates: after 1.5 s, new measurements account for half of the
/// estimate.
package struct RateEstimate: Hashable, Sendable {
    /// The estimated rate; `nil` before the first measurement.
    package private(set) var bytesPerSecond: Double?
    /// The previous update; `nil` if the next update only sets a starting point.
    private var mark: Mark?

    private struct Mark: Hashable {
        var bytes: Int64
        var time: Duration
    }

    /// Creates an estimate without measurements.
    package init() {}

    /// Adds a measurement: the number of bytes transferred by a point in time.
    package mutating func update(bytes: Int64, at time: Duration) {
        guard let mark, bytes >= mark.bytes else {
            // Fewer bytes than before: another transfer has started.
            self.mark = Mark(bytes: bytes, time: time)
            return
        }
        let elapsed = (time - mark.time) / .seconds(1)
        guard elapsed >= 0.01 else { return }
        let speed = Double(bytes - mark.bytes) / elapsed
        let weight = elapsed / (elapsed + 1.5)
        bytesPerSecond = bytesPerSecond.map { $0 + (speed - $0) * weight } ?? speed
        self.mark = Mark(bytes: bytes, time: time)
    }

    /// Excludes the time until the next update, because the transfer is suspended.
    package mutating func interrupt() {
        mark = nil
    }
}
