// SPDX-License-Identifier: MIT

/// A report to a subscriber.
enum ReachabilityReport: Hashable, Sendable {
    /// The target's status, and whether an attempt to reach it may succeed.
    case status(ReachabilityStatus, mayHaveRoute: Bool)
    /// The last report: the network can no longer be observed.
    case failed(ReachabilityError)
}

/// The reports of one subscription, which lasts as long as any copy of this value. A report that was not read is
/// replaced by a newer one.
struct ReachabilityReports {
    private let subscription: Subscription
    private var iterator: AsyncStream<ReachabilityReport>.Iterator

    init(on target: ReachabilityTarget, from monitor: ReachabilityMonitor) {
        let (reports, continuation) = AsyncStream.makeStream(
            of: ReachabilityReport.self, bufferingPolicy: .bufferingNewest(1))
        subscription = Subscription(monitor: monitor, id: monitor.subscribe(to: target, continuation))
        iterator = reports.makeAsyncIterator()
    }

    /// Returns the next report; `nil` if the task is cancelled.
    mutating func next(isolation actor: isolated (any Actor)?) async -> ReachabilityReport? {
        await iterator.next(isolation: actor)
    }

    /// A subscription that ends with its last reference.
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
