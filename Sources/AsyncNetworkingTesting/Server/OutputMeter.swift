// SPDX-License-Identifier: MIT

/// Decides how many bytes may leave next: it knows the pace and the byte after which the connection ends.
///
/// Pure: ``next(_:)`` says what to do with bytes that are ready, and the caller does it.
package struct OutputMeter {
    private var pace: Script.Pace?
    /// Bytes left before the next pause.
    private var leftBeforePause = 0
    private var cut: (left: Int64, ending: Script.Ending)?

    /// Creates a meter without limits.
    package init() {}

    /// Slows down what follows, or stops doing so; the first piece leaves at once.
    package mutating func setPace(_ pace: Script.Pace?) {
        self.pace = pace
        leftBeforePause = pace?.bytes ?? 0
    }

    /// Ends the connection after so many more bytes.
    package mutating func setCut(after bytes: Int64, by ending: Script.Ending) {
        cut = (max(0, bytes), ending)
    }

    /// The ending that waits for its byte; it is due at the end of the script at the latest.
    package var pendingEnding: Script.Ending? { cut?.ending }

    /// What to do when `count` bytes, at least one, are ready.
    package mutating func next(_ count: Int) -> Step {
        var count = count
        if let cut {
            guard cut.left > 0 else { return .end(cut.ending) }
            count = Int(min(Int64(count), cut.left))
        }
        if let pace {
            guard leftBeforePause > 0 else {
                leftBeforePause = pace.bytes
                return .wait(pace.interval)
            }
            count = min(count, leftBeforePause)
            leftBeforePause -= count
        }
        if let cut { self.cut = (cut.left - Int64(count), cut.ending) }
        return .send(count)
    }

    /// What to do next.
    package enum Step: Hashable {
        /// Send the first so many bytes.
        case send(Int)
        /// Wait, and ask again.
        case wait(Duration)
        /// End the connection.
        case end(Script.Ending)
    }
}
