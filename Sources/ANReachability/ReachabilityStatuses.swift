// SPDX-License-Identifier: MIT

/// The status of a target as it changes: the current one first, then each that differs from its predecessor.
///
/// See ``ReachabilityMonitor/statuses(for:)``.
struct ReachabilityStatuses: AsyncSequence, Sendable {
    let monitor: ReachabilityMonitor
    let target: ReachabilityTarget

    /// Creates an iterator and begins to observe the target.
    func makeAsyncIterator() -> Iterator {
        Iterator(ReachabilityReports(on: target, from: monitor))
    }

    /// An iterator over statuses; observation ends when it is released.
    struct Iterator: AsyncIteratorProtocol {
        private var reports: ReachabilityReports
        private var last: ReachabilityStatus?
        /// The error to throw after ``ReachabilityStatus/unknown`` was yielded.
        private var failure: ReachabilityError?
        private var hasEnded = false

        fileprivate init(_ reports: ReachabilityReports) {
            self.reports = reports
        }

        /// Returns the next status that differs from the last one; `nil` if the task is cancelled.
        ///
        /// - Throws: ``ReachabilityError``, after ``ReachabilityStatus/unknown``, if the network cannot be observed.
        mutating func next() async throws(ReachabilityError) -> ReachabilityStatus? {
            try await next(isolation: #isolation)
        }

        /// Returns the next status that differs from the last one; `nil` if the task is cancelled.
        ///
        /// - Parameter actor: The actor that the caller is isolated to.
        /// - Throws: ``ReachabilityError``, after ``ReachabilityStatus/unknown``, if the network cannot be observed.
        mutating func next(
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
