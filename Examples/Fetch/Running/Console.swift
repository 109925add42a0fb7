// SPDX-License-Identifier: MIT

import Synchronization

/// Standard error, shared by messages and the progress bar, which lives in its last line.
final class Console: Sendable {
    /// Whether a bar can be drawn.
    let isTerminal = StandardStream.error.isTerminal
    private let hasBar = Mutex(false)

    /// Prints whole lines; a bar gives way to them.
    func print(_ text: String) {
        hasBar.withLock { hasBar in
            StandardStream.error.print((hasBar ? Self.erasure : "") + text)
            hasBar = false
        }
    }

    /// Draws the bar, in place of the one before.
    func draw(bar: (_ columns: Int) -> String) {
        let bar = bar(StandardStream.error.columns)
        hasBar.withLock { hasBar in
            StandardStream.error.print(Self.erasure + bar)
            hasBar = true
        }
    }

    /// Takes the bar away.
    func eraseBar() {
        print("")
    }

    /// Back to the line's start, and erase to its end (ECMA-48 §8.3.41).
    private static let erasure = "\r\u{1B}[K"
}
