// SPDX-License-Identifier: MIT

/// Limits the bytes that are sent next, according to a pace and an ending after a number of bytes.
///
/// The meter is pure: ``next(_:)`` returns what to do with bytes that are ready, and the caller does it.
package struct OutputMeter {
    private var pace: Script.Pace?
    /// The number of bytes left before the next pause.
    private var leftBeforePause = 0
    private var cut: (left: Int64, ending: Script.Ending)?

    /// Creates a meter without limits.
    package init() {}

    /// Sets or removes the pace of the following bytes; the first piece is sent without a pause.
    package mutating func setPace(_ pace: Script.Pace?) {
        self.pace = pace
        leftBeforePause = pace?.bytes ?? 0
    }

    /// Ends the connection after the given number of further bytes.
    package mutating func setCut(after bytes: Int64, by ending: Script.Ending) {
        cut = (max(0, bytes), ending)
    }

    /// The ending that was set, due at the end of the script at the latest; `nil` without one.
    package var pendingEnding: Script.Ending? { cut?.ending }

    /// Returns what to do with `count` bytes that are ready, at least one.
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

    /// An instruction for the sender.
    package enum Step: Hashable {
        /// Send the given number of bytes.
        case send(Int)
        /// Wait, and call ``OutputMeter/next(_:)`` again.
        case wait(Duration)
        /// End the connection.
        case end(Script.Ending)
    }
}
