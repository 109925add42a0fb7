// SPDX-License-Identifier: MIT

// Sends a request to a server that is temporarily unavailable, and prints the events:
//
//     swift run RetryWithBackoff          to a server in this process, which fails three times
//     swift run RetryWithBackoff URL      to another server

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

struct Narrator: EventMonitor {
    func receive(_ event: TaskEvent, of task: AnySessionTask) {
        switch event {
        case .exchange(_, .started), .exchange(_, .head), .retrying, .ended: print(event)
        default: break
        }
    }
}

let api = SessionManager {
    $0.eventMonitors = [Narrator()]
    $0.retryPolicy = RetryPolicy(limit: 4).with {
        $0.backoff = Backoff(base: .milliseconds(200), maximum: .seconds(2))
        $0.deadline = .seconds(20)
    }
}

func ask(_ url: URL) async throws {
    let response = try await api.data(for: Request(url: url))
    let history = response.metrics.retryHistory
    print("Status \(response.statusCode), \(response.value.count) bytes, \(history)")
}

do {
    if let argument = CommandLine.arguments.dropFirst().first {
        guard let url = URL(string: argument) else { throw CancellationError() }
        try await ask(url)
    } else {
        try await StubServer.with { server in
            server.enqueue(.close)
            server.enqueue(.status(503, headers: ["Retry-After": "1"]))
            server.enqueue(.status(502))
            server.fallback { _ in .text("available") }
            try await ask(server.url("/"))
        }
    }
} catch {
    print(error)
}
