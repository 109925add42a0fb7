// SPDX-License-Identifier: MIT

import ANSystem
import Dispatch

/// What is on its way to the main queue. All that comes before the queue gets to it goes there at once: to wake the queue
/// costs more than to post a notification.
final class Outbox: Sendable {
    static let main = Outbox()

    private let waiting = Lock<[@Sendable () -> Void]>([])

    /// Has a block run on the main queue, after those that were sent before.
    func send(_ block: @escaping @Sendable () -> Void) {
        let isFirst = waiting.withLock { waiting in
            waiting.append(block)
            return waiting.count == 1
        }
        guard isFirst else { return }
        DispatchQueue.theMain.async { [self] in
            let blocks = waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            for block in blocks { block() }
        }
    }
}

extension DispatchQueue {
    /// The main queue, without another object for it each time.
    static let theMain = DispatchQueue.main
}
