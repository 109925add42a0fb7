// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

extension Pipeline {
    /// Performs a call, and repeats it as long as it fails and the retry policy permits another attempt. If the reader
    /// of a response has set a continuation, the next attempt asks for the rest of it.
    func retry(
        _ call: PipelineCall, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        var call = call
        let policy = policyOfRetries(for: call.request)
        var plan = RetryPlan(policy)
        let origin = Origin(call.request.url)
        let stopwatch = Stopwatch(clock)
        if let budget = plan.budget { ledger.deposit(origin, budget, now: uptime.elapsed) }
        if plan.isActive, let deadline = policy.deadline {
            call.request.limitAttempts(to: deadline, since: stopwatch)
        }
        while true {
            let record = AttemptRecord(passingTo: call.events)
            var attempt = call
            attempt.attempt = plan.attempt
            attempt.events = record
            attempt.record = record
            var failed: (result: RetryPlan.AttemptResult, wait: Duration)?
            // Errors thrown after the decision come from the program, not from the attempt.
            var isDecided = false
            do {
                try await perform(attempt) { head, body in
                    isDecided = true
                    if let wait = try await decide(
                        .success(head), on: call.request, record, &plan, stopwatch, origin)
                    {
                        failed = (.success(head), wait)
                    } else {
                        var head = head
                        head.retryHistory = plan.history
                        try await respond(head, body)
                    }
                }
                if let next = call.continuation?.take() {
                    // Nothing failed, but there is more.
                    next.prepare(&call.request)
                    continue
                }
            } catch {
                if let next = call.continuation?.take() {
                    next.prepare(&call.request)
                    if next.hasProgress { plan.noteProgress() }
                } else {
                    guard !isDecided, !(error is CancellationError) else { throw error }
                }
                guard let wait = try await decide(.failure(error), on: call.request, record, &plan, stopwatch, origin)
                else {
                    throw Self.adding(plan.history, to: call.request.namingTimeout(error))
                }
                failed = (.failure(error), wait)
            }
            guard let failed else { return }
            note(failed, record, in: &plan, monitor: call.monitor)
            try await pause(failed.wait)
        }
    }

    /// Returns the retry policy of a request, whose deadline is limited to the time left for the call.
    @inline(never)
    private func policyOfRetries(for request: Request) -> RetryPolicy {
        var policy = request.retryPolicy ?? retryPolicy
        if let left = request.timeLeft { policy.deadline = min(policy.deadline ?? left, left) }
        return policy
    }

    @inline(never)
    private func note(
        _ failed: (result: RetryPlan.AttemptResult, wait: Duration), _ record: AttemptRecord, in plan: inout RetryPlan,
        monitor: CallMonitor?
    ) {
        let noted = plan.note(failed.result, record.metrics, wait: failed.wait)
        monitor?.receive(.retrying(after: noted))
    }

    /// Returns the wait before the next attempt, or `nil` if there must be no further attempt.
    @inline(never)
    private func decide(
        _ result: RetryPlan.AttemptResult, on request: Request, _ record: AttemptRecord, _ plan: inout RetryPlan,
        _ stopwatch: Stopwatch, _ origin: Origin
    ) async throws -> Duration? {
        guard plan.isActive else { return nil }
        var decision = RetryPolicy.Decision.followPolicy
        if let makeDecision = plan.policy.decision, RetryPlan.mayBeDecided(result) {
            decision = try await makeDecision(
                RetryPolicy.Context(
                    request: request, attempt: plan.attempt, result: result, isRetriable: plan.isRetriable(result)))
        }
        let timing = RetryPlan.Timing(
            elapsed: stopwatch.elapsed, now: Int64(Date.now.timeIntervalSince1970), unit: randomUnit())
        switch plan.step(after: result, of: request, seen: record.seen, decision: decision, at: timing) {
        case .finish:
            return nil
        case .stop(let reason):
            plan.stop(because: reason)
            return nil
        case .retry(let wait):
            if let budget = plan.budget, !ledger.withdraw(origin, budget, now: uptime.elapsed) {
                plan.stop(because: .budget)
                return nil
            }
            return wait
        }
    }

    @inline(never)
    private static func adding(_ history: RetryHistory, to error: any Error) -> any Error {
        guard var error = error as? TransportError else { return error }
        error.context.retryHistory = history
        return error
    }
}

/// The exchanges of one attempt: the metrics of the last one, and the requests that servers may have seen. Forwards all
/// events.
final class AttemptRecord: TransferEventSink {
    private let next: (any TransferEventSink)?
    private let state = Lock<(metrics: TransferMetrics?, seen: SeenRequests)>((nil, SeenRequests()))

    init(passingTo next: (any TransferEventSink)? = nil) {
        self.next = next
    }

    var metrics: TransferMetrics? { state.withLock { $0.metrics } }
    var seen: SeenRequests { state.withLock { $0.seen } }

    func receive(_ event: TransferEvent) {
        if case .finished(let metrics) = event { state.withLock { $0.metrics = metrics } }
        next?.receive(event)
    }

    /// Records the result of an exchange.
    func note(_ request: Request, _ result: RetryPlan.AttemptResult) {
        state.withLock { $0.seen.note(request, result) }
    }
}

extension Request {
    /// The record of the call's exchanges, for an event source, which repeats requests itself.
    var record: AttemptRecord? {
        get { self[RecordOfExchanges.self] }
        set { self[RecordOfExchanges.self] = newValue }
    }

    private enum RecordOfExchanges: RequestAttribute {
        static var defaultValue: AttemptRecord? { nil }
    }
}
