// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Budgets".

func limitTheRate(_ url: URL) -> SessionManager {
    // snippet.rate
    let api = SessionManager(baseURL: url) {
        $0.attemptInterceptors = [RequestRateLimit(10, per: .seconds(1), burst: 20)]
    }
    // snippet.end
    return api
}

func breakCircuits(_ url: URL) async throws {
    // snippet.circuit
    let api = SessionManager(baseURL: url) {
        $0.attemptInterceptors = [CircuitBreaker(failures: 5, cooldown: .seconds(30))]
    }
    do {
        _ = try await api.get("users")
    } catch SessionError.circuitOpen(let host, let wait) {
        print("\(host) does not work; the next attempt is in \(wait).")
    }
    // snippet.end
}

func hedge(_ url: URL) -> SessionManager {
    // snippet.hedging
    let api = SessionManager(baseURL: url) {
        $0.attemptInterceptors = [Hedging(percentile: 0.95, maximumShare: 0.05)]
    }
    // snippet.end
    return api
}

func coalesce(_ url: URL) -> SessionManager {
    // snippet.coalescing
    let api = SessionManager(baseURL: url) {
        $0.interceptors = [RequestCoalescing()]
    }
    // snippet.end
    return api
}

func limitTheMemory(_ url: URL) -> SessionManager {
    // snippet.memory
    let api = SessionManager(baseURL: url) {
        $0.connectionLimits.maximumConnectionsPerHost = 1_000
        $0.connectionLimits.memoryBudget = 16 << 20
    }
    // snippet.end
    return api
}

func combine(_ url: URL) -> SessionManager {
    // snippet.together
    let api = SessionManager(baseURL: url) {
        $0.retryPolicy = RetryPolicy(limit: 2)
        $0.attemptInterceptors = [CircuitBreaker(), Hedging(), RequestRateLimit(50, per: .seconds(1))]
    }
    // snippet.end
    return api
}
