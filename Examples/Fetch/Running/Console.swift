// SPDX-License-Identifier: MIT

import Synchronization

/// Standard error, shared by messages and the progress bars in its last lines.
final class Console: Sendable {
    /// Whether bars can be drawn.
    let isTerminal = StandardStream.error.isTerminal
    /// The number of lines of the bars on the screen.
    private let barCount = Mutex(0)

    /// Prints whole lines in place of the bars.
    func print(_ text: String) {
        barCount.withLock { count in
            StandardStream.error.print(Self.erasure(of: count) + text)
            count = 0
        }
    }

    /// Draws bars, one per line, in place of the previous ones.
    func draw(bars: (_ columns: Int, _ rows: Int) -> [String]) {
        let (columns, rows) = StandardStream.error.size
        let bars = bars(columns, rows)
        barCount.withLock { count in
            StandardStream.error.print(Self.erasure(of: max(1, count)) + bars.joined(separator: "\n"))
            count = bars.count
        }
    }

    /// Erases the bars.
    func eraseBars() {
        print("")
    }

    /// The control sequences that move the cursor to the start of the first of `count` lines and erase to the end of
    /// the line or of the screen (ECMA-48 §8.3.22, §8.3.41, §8.3.39).
    private static func erasure(of count: Int) -> String {
        switch count {
        case 0: ""
        case 1: "\r\u{1B}[K"
        default: "\r\u{1B}[\(count - 1)A\u{1B}[J"
        }
    }
}
