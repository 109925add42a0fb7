// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
import HTTPTypes

/// The state of one request's retries. Decides about further attempts without side effects.
package struct RetryPlan {
    package private(set) var policy: RetryPolicy
    package private(set) var history = RetryHistory()
    /// The number of attempts before the last one that made progress.
    private var attemptsBeforeProgress = 0
    /// Whether the current attempt made progress.
    private var hasProgress = false

    private let firstAttempt: Int
    private let isLongLived: Bool

    /// Creates the state before the attempt with the given number, by default the first.
    ///
    /// - Parameter isLongLived: Whether the request is one of something that goes on for long, such as an event source,
    ///   and outlasts times in which requests are not sent; see `isUnsentForNow`.
    package init(_ policy: RetryPolicy, attempt: Int = 1, isLongLived: Bool = false) {
        self.policy = policy
        firstAttempt = attempt
        self.isLongLived = isLongLived
    }

    /// The number of the current attempt, starting at 1.
    package var attempt: Int { firstAttempt + history.earlierCount }

    /// Whether the policy permits retries at all.
    package var isActive: Bool { policy.limit > 0 }

    /// The budget on which a retry of the current attempt draws; `nil` for none.
    ///
    /// The rest of a response asks for nothing that the server has sent before.
    package var budget: RetryPolicy.Budget? { isActive && !hasProgress ? policy.budget : nil }

    /// Records that the current attempt made progress, as for a download whose rest is requested next: the waits begin
    /// anew, and its retry does not draw on the budget. All attempts count towards the limit.
    package mutating func noteProgress() {
        hasProgress = true
        attemptsBeforeProgress = history.earlierCount
    }

    /// The result of an attempt: the head of the response, or an error.
    package typealias AttemptResult = Result<ResponseHead, any Error>

    /// The step after an attempt.
    package enum Step: Equatable {
        /// The attempt is the result, because it succeeded or failed in a way that is not retriable.
        case finish
        /// The attempt is the result although it is retriable, for this reason.
        case stop(RetryHistory.StopReason)
        /// The request is sent again after a wait, if the budget permits.
        case retry(after: Duration)
    }

    /// The time of a decision, and a random number for it.
    package struct Timing {
        /// The time since the first attempt started.
        package var elapsed: Duration
        /// The time left for the call; `nil` without a limit.
        package var left: Duration?
        /// The current time in seconds since 1970.
        package var now: Int64
        /// A random number from 0 to 1, for jitter.
        package var unit: Double

        package init(elapsed: Duration = .zero, left: Duration? = nil, now: Int64 = 0, unit: Double = 1) {
            (self.elapsed, self.left) = (elapsed, left)
            self.now = now
            self.unit = unit
        }
    }

    /// Whether the policy considers a result retriable.
    package func isRetriable(_ result: AttemptResult) -> Bool {
        switch result {
        case .success(let head): policy.statuses.contains(head.status.code)
        case .failure(let error):
            RetryPolicy.Failure(error).map(policy.failures.contains) ?? (isLongLived && error.isUnsentForNow)
        }
    }

    /// Returns the step after an attempt.
    ///
    /// - Parameters:
    ///   - result: The result of the attempt.
    ///   - request: The request.
    ///   - seen: The requests of the attempt that servers may have seen.
    ///   - decision: The decision of the program.
    ///   - timing: The time of the decision, and a random number for it.
    package func step(
        after result: AttemptResult, of request: Request, seen: SeenRequests, decision: RetryPolicy.Decision,
        at timing: Timing
    ) -> Step {
        let isRetriable = isRetriable(result)
        var wait: Duration?
        switch decision {
        case .stop:
            return isRetriable ? .stop(.decision) : .finish
        case .followPolicy:
            guard isRetriable else { return .finish }
            guard mayBeRepeated(request, after: result, seen) else { return .stop(.method) }
        case .retry(let chosen):
            wait = chosen
        }
        guard request.body.isReplayable else { return .stop(.body) }
        guard attempt <= policy.limit else { return .stop(.limit(max(0, policy.limit))) }
        let retryAfter = retryAfter(result, at: timing)
        if wait == nil, case .success = result, let retryAfter, let maximum = policy.maximumRetryAfter,
            retryAfter > maximum
        {
            return .stop(.retryAfter(retryAfter))
        }
        let proposed =
            wait
            ?? max(
                policy.backoff.wait(beforeRetry: attempt - attemptsBeforeProgress, unit: timing.unit),
                retryAfter ?? .zero)
        let delay = max(.zero, proposed.bounded)
        let deadline = [policy.deadline, timing.left.map { timing.elapsed + $0 }].compactMap(\.self).min()
        if let deadline, timing.elapsed + delay >= deadline { return .stop(.deadline(deadline)) }
        return .retry(after: delay)
    }

    private func mayBeRepeated(_ request: Request, after result: AttemptResult, _ seen: SeenRequests) -> Bool {
        var seen = seen
        // The result may be that of an interceptor, without an exchange.
        seen.note(request, result)
        return policy.permitsRepeating(seen)
    }

    private func retryAfter(_ result: AttemptResult, at timing: Timing) -> Duration? {
        switch result {
        case .success(let head): head.retryAfter(now: timing.now)
        case .failure(SessionError.circuitOpen(_, let retryAfter)): retryAfter
        case .failure: nil
        }
    }

    /// Whether the policy's `decision` is called for a result: for errors and for statuses of 400 and above, except for
    /// the response to a request that accepts only stored ones.
    package static func mayBeDecided(_ result: AttemptResult) -> Bool {
        if case .success(let head) = result { head.status.code >= 400 } else { true }
    }

    /// Adds an attempt that is followed by another one to the history, and returns its entry.
    package mutating func note(
        _ result: AttemptResult, _ metrics: TransferMetrics?, wait: Duration
    ) -> RetryHistory.Attempt {
        let outcome: RetryHistory.Outcome =
            switch result {
            case .success(let head): .status(head.status.code)
            case .failure(let error): .failure("\(error)")
            }
        let label: ErrorLabel? = if case .failure(let error) = result { ErrorLabel(error) } else { nil }
        let attempt = RetryHistory.Attempt(outcome: outcome, label: label, metrics: metrics, wait: wait)
        history.earlierAttempts.append(attempt)
        hasProgress = false
        return attempt
    }

    /// Records why there is no further attempt.
    package mutating func stop(because reason: RetryHistory.StopReason) {
        history.stop = reason
    }

    /// Records that the caller makes another attempt nevertheless, of a request with this policy. The attempts are counted
    /// on.
    package mutating func goOn(by policy: RetryPolicy) {
        self.policy = policy
        history.stop = nil
    }
}

/// The requests of one attempt that servers may have seen, whose repetition may thus have an effect of its own.
///
/// An attempt may consist of several exchanges: those of redirects and challenges, and those of an interceptor that
/// repeats or replaces the request. Only if none of them may have reached a server is any method repeatable.
package struct SeenRequests: Sendable {
    // Different ones. Mostly there is one exchange.
    private var first: Seen?
    private var others: [Seen] = []

    package init() {}

    /// A request, as far as its repetition is concerned.
    package struct Seen: Hashable, Sendable {
        package let method: HTTPRequest.Method
        /// Whether a server recognizes that it was repeated, by `Idempotency-Key`.
        package let isRecognized: Bool
    }

    /// Whether no server has seen a request.
    package var isEmpty: Bool { first == nil }

    /// Returns whether all requests satisfy a predicate.
    package func allSatisfy(_ predicate: (Seen) -> Bool) -> Bool {
        (first.map(predicate) ?? true) && others.allSatisfy(predicate)
    }

    /// Adds the request of an exchange, unless its failure shows that no server has seen it.
    ///
    /// A transport that sent the request several times has lost the earlier connections, except if the method is not
    /// idempotent: it then had the server's word that the request was not processed.
    package mutating func note(_ request: Request, _ result: RetryPlan.AttemptResult) {
        if case .failure(let error as TransportError) = result, !error.mayHaveReachedServer,
            error.context.sendCount == 1 || !RetryPolicy().methods.contains(request.method)
        {
            return
        }
        if case .failure(SessionError.circuitOpen) = result { return }
        let seen = Seen(method: request.method, isRecognized: request.headers.contains(.idempotencyKey))
        note(seen)
    }

    private mutating func note(_ seen: Seen) {
        if first == nil { first = seen } else if first != seen, !others.contains(seen) { others.append(seen) }
    }

    /// Adds the requests of another value.
    package mutating func formUnion(_ other: SeenRequests) {
        if let first = other.first { note(first) }
        for seen in other.others { note(seen) }
    }
}

extension RetryPolicy {
    /// Whether requests that servers may have seen may be sent again.
    func permitsRepeating(_ seen: SeenRequests) -> Bool {
        seen.allSatisfy { methods.contains($0.method) || $0.isRecognized }
    }
}

extension Error {
    /// Whether a request was not sent for a reason that passes without it: the circuit to the server is open, or there
    /// was no route to it for too long.
    var isUnsentForNow: Bool {
        if case .circuitOpen = self as? SessionError { return true }
        return (self as? TransportError)?.reason == .timedOut(.connectivity)
    }
}
