// SPDX-License-Identifier: MIT

/// The status of a target as it changes: the present one first, then each that differs from the one before.
///
/// A reader that is slow skips statuses, but never the last. The first one of a host comes when its name was looked up,
/// which takes as long as resolv.conf(5) allows. The sequence ends when the task that iterates it is cancelled. Where the
/// system does not tell, ``ReachabilityStatus/unknown`` comes, and then a ``ReachabilityError``; iterating anew tries anew.
public struct ReachabilityStatuses: AsyncSequence, Sendable {
    /// What iterating throws where the system does not tell about its network.
    public typealias Failure = ReachabilityError

    let monitor: ReachabilityMonitor
    let target: ReachabilityTarget

    /// Begins to watch.
    public func makeAsyncIterator() -> Iterator {
        Iterator(ReachabilityReports(on: target, from: monitor))
    }

    /// Yields statuses; watching ends with it.
    public struct Iterator: AsyncIteratorProtocol {
        private var reports: ReachabilityReports
        private var last: ReachabilityStatus?
        /// What is thrown after the unknown status.
        private var failure: ReachabilityError?
        private var hasEnded = false

        fileprivate init(_ reports: ReachabilityReports) {
            self.reports = reports
        }

        /// The next status that differs from the last; nil when the task is cancelled.
        public mutating func next() async throws(ReachabilityError) -> ReachabilityStatus? {
            try await next(isolation: #isolation)
        }

        /// The next status that differs from the last; nil when the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(ReachabilityError) -> ReachabilityStatus? {
            if let failure {
                self.failure = nil
                throw failure
            }
            while !hasEnded, let report = await reports.next(isolation: actor) {
                switch report {
                case .status(let status, _):
                    guard status != last else { continue }
                    last = status
                    return status
                case .failed(let error):
                    hasEnded = true
                    guard last != .unknown else { throw error }
                    failure = error
                    return .unknown
                }
            }
            return nil
        }
    }
}
