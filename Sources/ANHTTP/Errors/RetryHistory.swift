// SPDX-License-Identifier: MIT

/// The attempts that a session made for a request, for logs and messages.
///
/// Contains the attempts before the last one, and why a failed last attempt was not retried. A session with a retry
/// policy sets it in ``ResponseHead/retryHistory``, ``FailureContext/retryHistory`` and the
/// ``TransferMetrics/retryHistory`` of a `Response`; `SessionError.retryHistory` returns that of a failed exchange
/// or a rejected response, and is empty for other errors.
public struct RetryHistory: Hashable, Sendable {
    /// The attempts before the last one, in order; empty if the request was sent once. Of more than 256, only the first 16
    /// and the latest 240.
    public var earlierAttempts: [Attempt] = [] {
        didSet { omitted += earlierAttempts.removeMiddle().count }
    }
    /// The number of attempts that are left out.
    private var omitted = 0
    /// The number of attempts before the last one.
    package var earlierCount: Int { omitted + earlierAttempts.count }
    /// The reason why a last attempt that failed was not retried, as a clause for messages, such as
    /// `there were 2 retries`; `nil` if the attempt succeeded or its failure is not one that the retry policy retries.
    public var stopReason: String? { stop?.description }
    /// The reason why a last attempt that failed was not retried.
    package var stop: StopReason?

    /// Creates the history of a request that was sent once.
    package init() {}

    /// An attempt that was followed by another one: its outcome, its metrics, and the delay after it.
    public struct Attempt: Hashable, Sendable {
        /// The result because of which another attempt was made: a status or an error.
        public var outcome: Outcome
        /// The metrics of the attempt's last exchange, which is that of the last redirect or challenge; `nil` if no
        /// exchange began.
        public var metrics: TransferMetrics?
        /// The delay after this attempt, before the next one, at least zero: that of the retry policy, of the server's
        /// `Retry-After`, or of the program's own decision.
        public var wait: Duration
        /// The label of the error; `nil` for a status.
        package var label: ErrorLabel?

        /// The status in the form `status 503`, or the label of the error, whose description may have texts of the server
        /// or the program.
        package var reason: String {
            switch outcome {
            case .status: "\(outcome)"
            case .failure: (label ?? .other).rawValue
            }
        }

        /// Creates an attempt, by default without metrics and delay.
        package init(
            outcome: Outcome, label: ErrorLabel? = nil, metrics: TransferMetrics? = nil, wait: Duration = .zero
        ) {
            self.outcome = outcome
            self.label = label
            self.metrics = metrics
            self.wait = wait
        }
    }

    /// The outcome of an attempt, because of which another one was made.
    public enum Outcome: Hashable, Sendable {
        /// A response with the given status, such as 503, which was discarded.
        case status(Int)
        /// An error with the given description.
        case failure(String)
    }

    /// The reason why a failed attempt was not retried.
    package enum StopReason: Hashable, Sendable {
        /// The maximum number of retries was reached.
        case limit(Int)
        /// The server may have processed the request, and its method is not idempotent.
        case method
        /// The body cannot be sent again. See ``RequestBody/isReplayable``.
        case body
        /// The server requested a longer delay than the policy allows.
        case retryAfter(Duration)
        /// The time limit for all attempts would be exceeded.
        case deadline(Duration)
        /// Too large a part of the requests to this host are retries.
        case budget
        /// The program's own decision function declined a retry.
        case decision
    }
}

extension Array {
    /// Removes and returns all but the first 16 and the last 240 elements.
    mutating func removeMiddle() -> [Element] {
        guard count > 256 else { return [] }
        let middle = 16..<count - 240
        defer { removeSubrange(middle) }
        return Array(self[middle])
    }
}

extension RetryHistory.StopReason: CustomStringConvertible {
    /// The reason as a clause that can end a sentence.
    package var description: String {
        switch self {
        case .limit(let limit): limit == 1 ? "there was 1 retry" : "there were \(limit) retries"
        case .method: "the server may have processed it and its method is not idempotent"
        case .body: "its body can be read only once"
        case .retryAfter(let wait): "the server asks to wait \(wait.rounded)"
        case .deadline(let deadline): "the time limit for all attempts is \(deadline.rounded)"
        case .budget: "too many of the requests to the host are retries, see RetryPolicy.budget"
        case .decision: "the program declined it"
        }
    }
}

extension RetryHistory.Outcome: CustomStringConvertible {
    /// The status in the form `status 503`, or the description of the error.
    public var description: String {
        switch self {
        case .status(let status): "status \(status)"
        case .failure(let words): words
        }
    }
}

extension RetryHistory: CustomStringConvertible {
    /// A clause such as `attempt 3, not retried because there were 2 retries`; only `attempt 3` if ``stopReason`` is
    /// `nil`.
    public var description: String {
        "attempt \(earlierCount + 1)" + (stopReason.map { ", not retried because \($0)" } ?? "")
    }
}
