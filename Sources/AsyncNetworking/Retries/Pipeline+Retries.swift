// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import Synchronization

/// The retries of a call. They go on after its response was returned, because reading the body may fail, too.
struct Retries: Sendable {
    fileprivate(set) var plan: RetryPlan
    /// Whether the program has decided that there is no further attempt.
    fileprivate var isStopped = false
    /// Measures the time since the first attempt.
    fileprivate let stopwatch: Stopwatch

    /// The attempts so far.
    var history: RetryHistory { plan.history }

    /// Whether a further attempt is possible.
    fileprivate var isOpen: Bool { !isStopped && history.stop == nil }

    /// Whether the program decides about a further attempt after a result.
    fileprivate func mayDecide(_ result: RetryPlan.AttemptResult) -> Bool {
        isOpen && plan.policy.decision != nil && RetryPlan.mayBeDecided(result)
    }
}

extension Pipeline {
    /// Sends a request, and again as long as it fails and the retry policy permits another attempt.
    func retry(_ request: Request, _ call: inout Call, _ next: Next) async throws -> OpenResponse {
        var request = request
        beginRetries(of: &request, &call)
        // The caller may repeat the request as well, and asks whether any attempt was seen.
        var earlier = call.seen
        defer { call.seen.formUnion(earlier) }
        while true {
            earlier.formUnion(call.seen)
            call.beginAttempt()
            var response: OpenResponse
            do {
                response = try await next(request, &call)
            } catch {
                request.adoptTimeout(of: call)
                try await waitForRetry(after: error, of: request, &call)
                continue
            }
            request.adoptTimeout(of: call)
            let isDecided = call.retries?.mayDecide(.success(response.head)) == true
            let ahead = isDecided ? readAhead(&response, to: request, &call) : nil
            let wait = try await decide(.success(response.head), on: request, &call)
            await ahead?.stop()
            if let wait {
                try await pause(after: .success(response.head), for: wait, of: request, &call)
                continue
            }
            do {
                try await response.receiveBody(call.delivery)
            } catch {
                try await waitForRetry(after: error, of: request, &call)
                continue
            }
            response.head.retryHistory = call.retries?.history ?? RetryHistory()
            return response
        }
    }

    /// Returns after the wait before the next attempt of a call that failed.
    ///
    /// - Parameter hasProgress: Whether more of the response was received than by any attempt before.
    /// - Throws: The error, with the history of the call's attempts, if there must be no further attempt.
    @inline(never)
    func waitForRetry(
        after error: any Error, hasProgress: Bool = false, of request: Request, _ call: inout Call
    ) async throws {
        guard !(error is CancellationError) else { throw error }
        // The request of a refresh is one of a session, and so is that of an interceptor to another one.
        let error = SessionError.lowering(error)
        // The program's decision may make requests.
        await call.exchanges.close()
        if hasProgress { call.retries?.plan.noteProgress() }
        guard let wait = try await decide(.failure(error), on: request, &call) else {
            throw call.adding(historyTo: error)
        }
        try await pause(after: .failure(error), for: wait, of: request, &call)
    }

    /// Begins to count the attempts of a call, unless that has begun, and limits their time.
    @inline(never)
    private func beginRetries(of request: inout Request, _ call: inout Call) {
        var policy = request.retryPolicy ?? retryPolicy
        // Those of a segment are among the attempts of its download.
        if let left = request.attemptsTimeLeft {
            let end = (call.retries?.stopwatch.elapsed ?? .zero) + left
            policy.deadline = min(policy.deadline ?? end, end)
        }
        if call.retries == nil {
            let plan = RetryPlan(policy)
            if let budget = plan.budget {
                let (url, now) = (strictURL(request.url, for: request), uptime.elapsed)
                state.withLock { $0.retryBudgets.deposit(url, budget, now: now) }
            }
            call.retries = Retries(plan: plan, stopwatch: Stopwatch(clock))
        } else {
            // An interceptor around the call asks again, perhaps with another policy.
            call.retries?.plan.goOn(by: policy)
            call.retries?.isStopped = false
        }
        limitAttempts(of: &request, call)
    }

    /// Limits the time of a request's attempts to what the policy leaves for those of a call.
    @inline(never)
    func limitAttempts(of request: inout Request, _ call: Call) {
        if let retries = call.retries, let deadline = retries.plan.policy.deadline {
            request.limitAttempts(to: deadline, since: retries.stopwatch)
        }
    }

    /// Closes the exchange, and waits before the next attempt.
    @inline(never)
    private func pause(
        after result: RetryPlan.AttemptResult, for wait: Duration, of request: Request, _ call: inout Call
    ) async throws {
        await call.exchanges.close()
        let (budget, metrics) = (call.retries?.plan.budget, call.metrics?.value)
        if let noted = call.retries?.plan.note(result, metrics, wait: wait) {
            report(.retrying(after: noted), of: &call)
        }
        try await pause(wait, beforeRetryOf: request, from: budget)
    }

    /// Returns the wait before the next attempt, or `nil` if there must be no further attempt.
    @inline(never)
    private func decide(
        _ result: RetryPlan.AttemptResult, on request: Request, _ call: inout Call
    ) async throws -> Duration? {
        // After the head of a response that must not be followed by another attempt, its body may be lost.
        guard let retries = call.retries, retries.isOpen else { return nil }
        let plan = retries.plan
        // The usual case, without a look at clocks and counts.
        guard plan.policy.decision != nil || plan.isRetriable(result) else { return nil }
        // The next attempt would have the same response.
        if case .success = result, acceptsOnlyStored(request) { return nil }
        var decision = RetryPolicy.Decision.followPolicy
        if let makeDecision = plan.policy.decision, RetryPlan.mayBeDecided(result) {
            try checkCancellation()
            decision = try await makeDecision(
                RetryPolicy.Context(
                    request: request, attempt: plan.attempt, result: result, isRetriable: plan.isRetriable(result)))
            try checkCancellation()
            if case .stop = decision { call.retries?.isStopped = true }
        }
        let timing = RetryPlan.Timing(
            elapsed: retries.stopwatch.elapsed, left: request.callTimeLeft, now: Int64(now().timeIntervalSince1970),
            unit: randomUnit())
        switch plan.step(after: result, of: request, seen: call.seen, decision: decision, at: timing) {
        case .finish:
            return nil
        case .stop(let reason):
            call.retries?.plan.stop(because: reason)
            return nil
        case .retry(let wait):
            if let budget = plan.budget, !withdrawRetry(of: request, from: budget) {
                call.retries?.plan.stop(because: .budget)
                return nil
            }
            return wait
        }
    }
}

extension Pipeline {
    /// The time of a decision about a reconnection, with the uptime of the session as the time elapsed.
    var timing: RetryPlan.Timing {
        RetryPlan.Timing(elapsed: uptime.elapsed, now: Int64(now().timeIntervalSince1970), unit: randomUnit())
    }

    /// Takes a retry from the budget of a request's host; returns `false` if none is left.
    func withdrawRetry(of request: Request, from budget: RetryPolicy.Budget) -> Bool {
        let (url, now) = (strictURL(request.url, for: request), uptime.elapsed)
        return state.withLock { $0.retryBudgets.withdraw(url, budget, now: now) }
    }

    /// Sleeps before a retry, which is given back to the budget from which it was taken if the wait fails.
    func pause(
        _ wait: Duration, beforeRetryOf request: Request, from budget: RetryPolicy.Budget?
    ) async throws {
        do {
            try await pause(wait)
        } catch {
            if let budget {
                let (url, now) = (strictURL(request.url, for: request), uptime.elapsed)
                state.withLock { $0.retryBudgets.giveBack(url, budget, now: now) }
            }
            throw error
        }
    }
}

extension OpenResponse {
    /// Receives the rest of a body that is collected, if its end was not awaited: the transport hands a response that might
    /// be discarded over before, and one of the program's own, or an interceptor, may return any as a stream, or change it
    /// while it is read. That end may have come since, but not yet been decoded.
    fileprivate mutating func receiveBody(_ delivery: BodyDelivery) async throws {
        let isDecoded = head.status.code < 300 || !head.headers.contains(.contentEncoding)
        guard case .collected(let limit) = delivery, !body.isWhole || body.isReplaced || !isDecoded else { return }
        body = body.collected(as: try await body.collect(upTo: limit))
    }
}

extension Call {
    /// Returns an error with the history of the call's attempts.
    @inline(never)
    fileprivate func adding(historyTo error: any Error) -> any Error {
        guard let retries, var error = error as? TransportError else { return error }
        error.context.retryHistory = retries.history
        return error
    }
}

/// The metrics of an exchange, which the transport reports once, on the thread of its end.
final class ExchangeMetrics: ExchangeEventSink {
    private let reported = AtomicLazyReference<Shared<TransferMetrics>>()

    /// The metrics; `nil` until the exchange has ended.
    var value: TransferMetrics? { reported.load()?.value }

    func receive(_ event: ExchangeEvent) {
        if case .finished(let metrics) = event { _ = reported.storeIfNil(Shared(metrics)) }
    }
}
