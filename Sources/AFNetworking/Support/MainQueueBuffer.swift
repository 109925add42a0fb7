// SPDX-License-Identifier: MIT

import ANSystem
import Dispatch

/// A buffer of notifications for the main queue. Notifications that are sent before the main queue runs are posted
/// together, because waking the queue costs more than posting.
///
/// They are posted by an operation of `OperationQueue.main`, not by a block on `DispatchQueue.main`. Under
/// `dispatchMain()` and an asynchronous `main`, the main queue runs on threads other than the main thread, so
/// `OperationQueue.current` is `nil` in such a block. Foundation would then dispatch an observer's block to the main
/// queue and wait for it there: on the main queue, forever.
final class MainQueueBuffer: Sendable {
    static let shared = MainQueueBuffer()

    private let waiting = Lock<[@Sendable () -> Void]>([])

    /// Runs a block on the main queue, after the blocks sent before.
    func send(_ block: @escaping @Sendable () -> Void) {
        let isFirst = waiting.withLock { waiting in
            waiting.append(block)
            return waiting.count == 1
        }
        guard isFirst else { return }
        OperationQueue.main.addOperation { [self] in
            for block in waiting.set(\.self, to: []) { block() }
        }
    }
}

/// The queue on which completion handlers are called, and their dispatch group.
struct CompletionQueue: Sendable {
    /// The queue; `nil` for the main queue, where handlers run as operations (see ``MainQueueBuffer``).
    private let queue: DispatchQueue?
    /// The group that a handler enters when it is scheduled and leaves when it has returned.
    private let group: DispatchGroup?

    /// Creates the queue of handlers from that of the program; `nil` is the main queue.
    init(queue: DispatchQueue?, group: DispatchGroup? = nil) {
        self.queue = queue?.getSpecific(key: Self.mainQueueKey) == nil ? queue : nil
        self.group = group
    }

    /// The key by which the main queue is recognized: on Linux, `DispatchQueue.main` is a new object each time.
    private static let mainQueueKey: DispatchSpecificKey<Void> = {
        let key = DispatchSpecificKey<Void>()
        DispatchQueue.main.setSpecific(key: key, value: ())
        return key
    }()

    /// Schedules a completion handler, and then `afterwards` on the main queue.
    func call(_ handler: @escaping @Sendable () -> Void, afterwards: (@Sendable () -> Void)? = nil) {
        if let queue {
            return queue.async(group: group) {
                handler()
                if let afterwards { MainQueueBuffer.shared.send(afterwards) }
            }
        }
        group?.enter()
        // One operation per handler keeps the order with blocks that the program dispatched to the main queue before.
        OperationQueue.main.addOperation { [group] in
            handler()
            group?.leave()
            afterwards?()
        }
    }
}
