// SPDX-License-Identifier: MIT

import Synchronization

/// A log of words in the order in which they were added.
final class EventLog: Sendable {
    private let words = Mutex([String]())

    var entries: [String] { words.withLock { $0 } }

    func append(_ word: String) {
        words.withLock { $0.append(word) }
    }
}
