// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Retries".

func retryThreeTimes() -> SessionManager {
    // snippet.overview
    let api = SessionManager {
        $0.retryPolicy = RetryPolicy(limit: 3)
    }
    // snippet.end
    return api
}

func shapeRetries() -> SessionManager {
    let api = SessionManager {
        // snippet.waits
        $0.retryPolicy = RetryPolicy(limit: 5).with {
            $0.backoff = Backoff(base: .milliseconds(200), maximum: .seconds(10))
            $0.statuses.remove(500)
            $0.failures.insert(.queue)
            $0.deadline = .seconds(30)
            $0.budget = RetryPolicy.Budget(capacity: 20, perRequest: 0.1)
        }
        // snippet.end
    }
    return api
}

func retriesOfOneRequest(_ api: SessionManager, order: RequestBody) async throws {
    // snippet.conditions
    var request = try api.request(.post, "orders", body: order)
    request.headers[.idempotencyKey] = "5f2c4d1e"
    request.retryPolicy = RetryPolicy(limit: 2)
    // snippet.end
    _ = try await api.data(for: request)

    request.retryPolicy = RetryPolicy.none
    _ = try await api.data(for: request)
}

func decideRetries() -> SessionManager {
    let api = SessionManager {
        $0.retryPolicy = RetryPolicy(limit: 4).with {
            // snippet.waits-2
            $0.decision = { context in
                guard case .success(let head) = context.result, head.status == .conflict else { return .followPolicy }
                return .retry(after: .milliseconds(100))
            }
            // snippet.end
        }
    }
    return api
}

func waitForRoutes() -> SessionManager {
    // snippet.waiting-for-connectivity
    let api = SessionManager {
        $0.waitsForConnectivity = true
        $0.timeouts.connectivity = .seconds(600)
    }
    // snippet.end
    return api
}

func readHistory(_ api: SessionManager) async throws {
    // snippet.retry-history
    do {
        let response = try await api.get("users/7")
        for attempt in response.metrics.retryHistory.earlierAttempts {
            print(attempt.outcome, attempt.metrics?.total ?? .zero, "then a wait of", attempt.wait)
        }
    } catch let error as SessionError {
        print(error.retryHistory.earlierAttempts.count + 1, "attempts")
        if let reason = error.retryHistory.stopReason { print("not retried because", reason) }
    }
    // snippet.end
}
