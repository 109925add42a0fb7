// SPDX-License-Identifier: MIT

import Synchronization

/// A reader who needs 5 ms for each megabyte, whatever the size of the chunks in which it comes.
package final class SlowConsumer: Sendable {
    private static let megabyte = 1 << 20
    private let received = Mutex(0)

    package init() {}

    /// How long the reader is busy with a chunk; zero for most, because it counts whole megabytes.
    package func pause(after bytes: Int) -> Duration {
        received.withLock { received in
            let before = received / Self.megabyte
            received += bytes
            return .milliseconds(5 * (received / Self.megabyte - before))
        }
    }
}
