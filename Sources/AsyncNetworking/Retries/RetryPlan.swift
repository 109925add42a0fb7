// SPDX-License-Identifier: MIT

package import ANHTTP
import HTTPTypes

/// Where the retries of one request stand: decides, and touches nothing.
package struct RetryPlan {
    package let policy: RetryPolicy
    package private(set) var history = RetryHistory()

    package init(_ policy: RetryPolicy) {
        self.policy = policy
    }

    /// The number of the attempt that is under way, from 1.
    package var attempt: Int { history.earlierAttempts.count + 1 }

    /// What came of an attempt.
    package typealias AttemptResult = Result<ResponseHead, any Error>

    /// What follows an attempt.
    package enum Step: Equatable {
        /// It is the result: it went well, or in a way that is not retried.
        case finish
        /// It is the result, although it could have been retried.
        case stop(RetryHistory.Stop)
        /// The request is sent again after a wait, if the budget allows it.
        case retry(after: Duration)
    }

    /// The moment of a decision.
    package struct Moment {
        /// The time since the first attempt began.
        package var elapsed: Duration
        /// Seconds since 1970.
        package var now: Int64
        /// A random number from 0 to 1.
        package var unit: Double

        package init(elapsed: Duration = .zero, now: Int64 = 0, unit: Double = 1) {
            self.elapsed = elapsed
            self.now = now
            self.unit = unit
        }
    }

    /// Whether the policy holds a result for worth another attempt.
    package func isRetriable(_ result: AttemptResult) -> Bool {
        switch result {
        case .success(let head): policy.statuses.contains(head.status.code)
        case .failure(let error): RetryPolicy.Failure(error).map(policy.failures.contains) ?? false
        }
    }

    /// What follows an attempt of `request` with this result, given what the program says.
    package func step(
        after result: AttemptResult, of request: Request, verdict: RetryPolicy.Verdict, at moment: Moment
    ) -> Step {
        let isRetriable = isRetriable(result)
        var wait: Duration?
        switch verdict {
        case .stop:
            return isRetriable ? .stop(.decision) : .finish
        case .followPolicy:
            guard isRetriable else { return .finish }
            guard mayBeRepeated(request, after: result) else { return .stop(.method) }
        case .retry(let chosen):
            wait = chosen
        }
        guard request.body.isReplayable else { return .stop(.body) }
        guard attempt <= policy.limit else { return .stop(.limit(max(0, policy.limit))) }
        let retryAfter = retryAfter(result, at: moment)
        if wait == nil, let retryAfter, let maximum = policy.maximumRetryAfter, retryAfter > maximum {
            return .stop(.retryAfter(retryAfter))
        }
        let proposed = wait ?? max(policy.backoff.wait(beforeRetry: attempt, unit: moment.unit), retryAfter ?? .zero)
        let delay = max(.zero, min(proposed, .longestSleep))
        if let deadline = policy.deadline, moment.elapsed + delay >= deadline { return .stop(.deadline(deadline)) }
        return .retry(after: delay)
    }

    private func mayBeRepeated(_ request: Request, after result: AttemptResult) -> Bool {
        if case .failure(let error) = result, RetryPolicy.Failure(error)?.mayHaveReachedServer == false { return true }
        if policy.methods.contains(request.method) { return true }
        return policy.idempotencyKeyField.map { request.headers.contains($0) } ?? false
    }

    private func retryAfter(_ result: AttemptResult, at moment: Moment) -> Duration? {
        if case .success(let head) = result { head.retryAfter(now: moment.now) } else { nil }
    }

    /// Whether the program is asked about a result: not about a response that is none of an error.
    package static func mayBeDecided(_ result: AttemptResult) -> Bool {
        if case .success(let head) = result { head.status.code >= 400 } else { true }
    }

    /// Notes that an attempt is followed by another one.
    package mutating func note(
        _ result: AttemptResult, _ metrics: TransferMetrics?, wait: Duration
    ) -> RetryHistory.Attempt {
        let outcome: RetryHistory.Outcome =
            switch result {
            case .success(let head): .status(head.status.code)
            case .failure(let error): .failure("\(error)")
            }
        let attempt = RetryHistory.Attempt(outcome: outcome, metrics: metrics, wait: wait)
        history.earlierAttempts.append(attempt)
        return attempt
    }

    /// Notes why there is no further attempt.
    package mutating func stop(because reason: RetryHistory.Stop) {
        history.stop = reason
    }

    /// What is left of the time for all attempts; nil where there is no limit.
    package func timeLeft(after elapsed: Duration) -> Duration? {
        policy.deadline.map { $0 > elapsed ? $0 - elapsed : .zero }
    }
}
