// SPDX-License-Identifier: MIT

/// An estimate of the current speed of a transfer: a moving average with more weight on recent measurements.
package struct RateEstimate {
    /// The speed; `nil` before the first measurement.
    package private(set) var bytesPerSecond: Double?
    private var bytes: Int64 = 0
    private var time = Duration.zero

    package init() {}

    /// Adds a measurement: the bytes transferred at a time since the start.
    package mutating func update(bytes newBytes: Int64, at newTime: Duration) {
        let elapsed = (newTime - time) / .seconds(1)
        guard elapsed >= 0.01 else { return }
        // Fewer bytes than before: the transfer has restarted.
        let moved = newBytes >= bytes ? Double(newBytes - bytes) : 0
        let weight = elapsed / (elapsed + 1.5)
        bytesPerSecond = bytesPerSecond.map { $0 + ((moved / elapsed) - $0) * weight } ?? moved / elapsed
        bytes = newBytes
        time = newTime
    }

    /// Returns the time for the given number of bytes; `nil` if it cannot be estimated.
    package func timeLeft(for bytes: Int64) -> Duration? {
        guard let bytesPerSecond, bytesPerSecond >= 1 else { return nil }
        let seconds = Double(max(0, bytes)) / bytesPerSecond
        return seconds < 360_000 ? .seconds(seconds) : nil
    }
}
