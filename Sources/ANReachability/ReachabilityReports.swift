// SPDX-License-Identifier: MIT

/// What a subscriber hears.
enum ReachabilityReport: Hashable, Sendable {
    /// A target's status, and whether there may be a route to it.
    case status(ReachabilityStatus, mayHaveRoute: Bool)
    /// Nothing more is to be known.
    case failed(ReachabilityError)
}

/// One reader's reports, from its beginning to its last copy; one that is not read is replaced by a newer one.
struct ReachabilityReports {
    private let subscription: Subscription
    private var iterator: AsyncStream<ReachabilityReport>.Iterator

    init(on target: ReachabilityTarget, from monitor: ReachabilityMonitor) {
        let (reports, continuation) = AsyncStream.makeStream(
            of: ReachabilityReport.self, bufferingPolicy: .bufferingNewest(1))
        subscription = Subscription(monitor: monitor, id: monitor.subscribe(to: target, continuation))
        iterator = reports.makeAsyncIterator()
    }

    /// The next report; nil when the task is cancelled.
    mutating func next(isolation actor: isolated (any Actor)?) async -> ReachabilityReport? {
        await iterator.next(isolation: actor)
    }

    /// Ends with its last reference.
    private final class Subscription: Sendable {
        private let monitor: ReachabilityMonitor
        private let id: Int

        init(monitor: ReachabilityMonitor, id: Int) {
            self.monitor = monitor
            self.id = id
        }

        deinit {
            monitor.unsubscribe(id)
        }
    }
}
