// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

// The samples of the article "Simulation".

// snippet.client
/// Loads a document once, however often it is asked for. That is the intention.
actor DocumentStore {
    private let api: SessionManager
    private var document: Data?

    init(api: SessionManager) {
        self.api = api
    }

    func load() async throws -> Data {
        if let document { return document }
        // While this task waits, another one finds no document, either, and sends a second request.
        let loaded = try await api.get("document").value
        document = loaded
        return loaded
    }
}
// snippet.end

func simulateDocumentStore() async throws {
    // snippet.simulation
    let simulation = Simulation { world in
        let requests = Counter()
        let server = world.transport { _ in
            await requests.increment()
            return .text("A document.")
        }
        let api = SessionManager(baseURL: URL(string: "https://example.com/")) {
            $0.transport = server
            $0.clock = world.clock
        }
        let store = DocumentStore(api: api)
        try await withThrowingTaskGroup { group in
            for _ in 0..<2 {
                group.addTask {
                    try await world.pause()
                    _ = try await store.load()
                }
            }
            try await group.waitForAll()
        }
        guard await requests.count == 1 else { throw SentTwice() }
    }
    try await simulation.explore(seeds: 1...500)  // throws SimulationFailure
    // snippet.end
}

actor Counter {
    private(set) var count = 0

    func increment() {
        count += 1
    }
}

struct SentTwice: Error {}

func simulateBadNetwork() async throws {
    // snippet.network
    var network = SimulatedNetwork()
    network.latency = .milliseconds(1) ... .seconds(2)
    network.lossRate = 0.3
    let simulation = Simulation { [network] world in
        let server = world.transport(network) { _ in .json(#"{"id": 7}"#) }
        let api = SessionManager(baseURL: URL(string: "https://example.com/")) {
            $0.transport = server
            $0.clock = world.clock
            $0.retryPolicy = RetryPolicy(limit: 10).with { $0.budget = nil }
        }
        let begin = world.clock.now
        _ = try await api.get("user", timeout: .seconds(3_600))
        world.note("ended after \(begin.duration(to: world.clock.now))")
    }
    try await simulation.explore()
    // snippet.end
}
