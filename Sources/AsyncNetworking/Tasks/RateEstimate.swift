// SPDX-License-Identifier: MIT

/// The present speed of a transfer: recent moments count more than early ones.
///
/// It forgets by time and not by reports: after 1.5 seconds half of it is new, however often it was told.
package struct RateEstimate: Hashable, Sendable {
    /// The speed; nil before anything was measured.
    package private(set) var bytesPerSecond: Double?
    /// What was moved when it was last looked at; nil when the next look only sets a mark.
    private var mark: Mark?

    private struct Mark: Hashable {
        var bytes: Int64
        var time: Duration
    }

    /// Creates an estimate of nothing yet.
    package init() {}

    /// Takes note of how far the transfer has come at a time.
    package mutating func update(bytes: Int64, at time: Duration) {
        guard let mark, bytes >= mark.bytes else {
            // Less than before: another transfer has begun.
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

    /// The transfer pauses: the time until the next look does not count.
    package mutating func interrupt() {
        mark = nil
    }
}
