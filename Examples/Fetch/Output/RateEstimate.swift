// SPDX-License-Identifier: MIT

/// The present speed of a transfer: recent moments count more than early ones.
package struct RateEstimate {
    /// The speed; nil before anything was measured.
    package private(set) var bytesPerSecond: Double?
    private var bytes: Int64 = 0
    private var time = Duration.zero

    package init() {}

    /// Takes note of how far the transfer has come at a time since its start.
    package mutating func update(bytes newBytes: Int64, at newTime: Duration) {
        let elapsed = (newTime - time) / .seconds(1)
        guard elapsed >= 0.01 else { return }
        // Less than before: another transfer has begun.
        let moved = newBytes >= bytes ? Double(newBytes - bytes) : 0
        let weight = elapsed / (elapsed + 1.5)
        bytesPerSecond = bytesPerSecond.map { $0 + ((moved / elapsed) - $0) * weight } ?? moved / elapsed
        bytes = newBytes
        time = newTime
    }

    /// The time that so many bytes will take; nil when that cannot be said.
    package func timeLeft(for bytes: Int64) -> Duration? {
        guard let bytesPerSecond, bytesPerSecond >= 1 else { return nil }
        let seconds = Double(max(0, bytes)) / bytesPerSecond
        return seconds < 360_000 ? .seconds(seconds) : nil
    }
}
