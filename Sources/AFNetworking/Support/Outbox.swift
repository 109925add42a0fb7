// SPDX-License-Identifier: MIT

import ANSystem
import Dispatch

/// Notifications on their way to the main queue. All that are sent before the queue gets to them are posted at once: waking
/// the queue costs more than posting.
///
/// They are posted by an operation of `OperationQueue.main`, not by a block on `DispatchQueue.main`. Under `dispatchMain()`
/// and an asynchronous `main` the main queue runs on other threads than the main one, so that in a block
/// `OperationQueue.current` is nil: Foundation would then send an observer's block to the main queue and wait for it there,
/// on the main queue, forever.
final class Outbox: Sendable {
    static let main = Outbox()

    private let waiting = Lock<[@Sendable () -> Void]>([])

    /// Runs a block on the main queue, after those that were sent before.
    func send(_ block: @escaping @Sendable () -> Void) {
        let isFirst = waiting.withLock { waiting in
            waiting.append(block)
            return waiting.count == 1
        }
        guard isFirst else { return }
        OperationQueue.main.addOperation { [self] in
            let blocks = waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            for block in blocks { block() }
        }
    }
}

/// Where completion handlers are called.
struct CompletionQueue: Sendable {
    /// The queue; `nil` for the main queue, whose handlers are operations: see ``Outbox``.
    let queue: DispatchQueue?
    /// The group that a handler belongs to until it has returned.
    var group: DispatchGroup?

    /// Calls a completion handler, and then `afterwards` on the main queue.
    func call(_ handler: @escaping @Sendable () -> Void, afterwards: (@Sendable () -> Void)? = nil) {
        if let queue {
            return queue.async(group: group) {
                handler()
                if let afterwards { Outbox.main.send(afterwards) }
            }
        }
        group?.enter()
        // An operation for each handler: blocks that a program has sent to the main queue before come before it.
        OperationQueue.main.addOperation { [group] in
            handler()
            group?.leave()
            afterwards?()
        }
    }
}
