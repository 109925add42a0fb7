// SPDX-License-Identifier: MIT

/// What a session's retries have done for a request.
public struct RetryHistory: Hashable, Sendable {
    /// The attempts before the last one, in their order.
    public var earlierAttempts: [Attempt] = []
    /// Why the last attempt was the last, although it went wrong in a way that is retried; nil where it did not.
    public var stop: Stop?

    /// Creates the history of a request that was sent once.
    public init() {}

    /// An attempt that was followed by another.
    public struct Attempt: Hashable, Sendable {
        /// What came of it.
        public var outcome: Outcome
        /// What its last exchange cost; nil where none began.
        public var metrics: TransferMetrics?
        /// How long the next attempt had to wait.
        public var wait: Duration

        /// Creates a description of an attempt.
        public init(outcome: Outcome, metrics: TransferMetrics? = nil, wait: Duration = .zero) {
            self.outcome = outcome
            self.metrics = metrics
            self.wait = wait
        }
    }

    /// What came of an attempt.
    public enum Outcome: Hashable, Sendable {
        /// A response with this status.
        case status(Int)
        /// An error, with its description.
        case failure(String)
    }

    /// Why there was no further attempt.
    public enum Stop: Hashable, Sendable {
        /// There were so many retries already.
        case limit(Int)
        /// The server may have acted on the request, and its method is not idempotent.
        case method
        /// The body can be read only once. See ``RequestBody/isReplayable``.
        case body
        /// The server asks to wait longer than this side wants to.
        case retryAfter(Duration)
        /// The time for all attempts together would be over.
        case deadline(Duration)
        /// Too many requests to this host are retries already.
        case budget
        /// The program's own decision.
        case decision
    }
}

extension RetryHistory.Stop: CustomStringConvertible {
    /// The reason, as the end of a sentence.
    public var description: String {
        switch self {
        case .limit(let limit): "there were \(limit) retries"
        case .method: "the server may have acted on it and its method is not idempotent"
        case .body: "its body can be read only once"
        case .retryAfter(let wait): "the server asks to wait \(wait)"
        case .deadline(let deadline): "the time for all attempts is \(deadline)"
        case .budget: "too many requests to the host are retries"
        case .decision: "the program decided so"
        }
    }
}

extension RetryHistory.Outcome: CustomStringConvertible {
    /// The status, or the error's description.
    public var description: String {
        switch self {
        case .status(let status): "status \(status)"
        case .failure(let words): words
        }
    }
}

extension RetryHistory: CustomStringConvertible {
    /// A clause such as `attempt 3, not again because there were 2 retries`.
    public var description: String {
        "attempt \(earlierAttempts.count + 1)" + (stop.map { ", not again because \($0)" } ?? "")
    }
}
