// SPDX-License-Identifier: MIT

import Synchronization

/// A simulated reader that takes 5 ms per megabyte, regardless of the chunk sizes.
package final class SlowConsumer: Sendable {
    private static let megabyte = 1 << 20
    private let received = Mutex(0)

    package init() {}

    /// Returns how long the reader is busy with a chunk: zero for most, because it counts whole megabytes.
    package func pause(after bytes: Int) -> Duration {
        received.withLock { received in
            let before = received / Self.megabyte
            received += bytes
            return .milliseconds(5 * (received / Self.megabyte - before))
        }
    }
}
