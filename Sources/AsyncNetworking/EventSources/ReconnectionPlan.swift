// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import HTTPTypes

/// The state of an ``EventSource``'s reconnections. Decides about them without side effects.
struct ReconnectionPlan {
    private let request: Request
    private let policy: RetryPolicy
    /// The shortest wait before a reconnection.
    var reconnectionTime: Duration
    /// The number of attempts that ended since something was received.
    private(set) var failures = 0

    init(_ request: Request, _ policy: RetryPolicy, reconnectionTime: Duration) {
        self.request = request
        self.policy = policy
        self.reconnectionTime = reconnectionTime
    }

    /// The end of an attempt.
    enum Ending {
        /// The response was accepted and has ended.
        case completed
        /// The response is one that is not accepted, or the attempt failed with an error.
        case failed(RetryPlan.AttemptResult)

        /// Creates the ending of an attempt that failed with an error, which may be that of a rejected response.
        init(_ error: any Error) {
            let head = (error as? SessionError)?.rejection?.head
            self = .failed(head.map { .success($0) } ?? .failure(SessionError.lowering(error)))
        }
    }

    /// The step after an attempt.
    enum Step: Equatable {
        /// The source ends: without an error if the response is complete, otherwise with the attempt's error.
        case finish
        /// Another attempt is made after a wait.
        case reconnect(after: Duration)
    }

    /// Records that a part of a response arrived.
    mutating func receive() {
        failures = 0
    }

    /// Returns the step after an attempt, of whose requests servers may have seen some.
    mutating func step(after ending: Ending, seen: SeenRequests, at timing: RetryPlan.Timing) -> Step {
        failures += 1
        switch ending {
        case .completed:
            // A complete response to another method, such as POST, is the whole answer.
            guard request.method == .get, failures <= policy.limit else { return .finish }
            return reconnect(after: policy.backoff.wait(beforeRetry: failures, unit: timing.unit))
        case .failed(let result):
            let plan = RetryPlan(policy, attempt: failures, isLongLived: true)
            switch plan.step(after: result, of: request, seen: seen, decision: .followPolicy, at: timing) {
            case .finish, .stop: return .finish
            case .retry(let wait): return reconnect(after: wait)
            }
        }
    }

    private func reconnect(after wait: Duration) -> Step {
        .reconnect(after: min(reconnectionTime + wait, .longestSleep))
    }
}
