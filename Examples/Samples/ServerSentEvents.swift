// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

// The samples of the article "Server-sent events".

func readEvents(_ api: SessionManager, url: URL) async throws {
    // snippet.events-of-a-response
    try await api.withResponse(for: Request(url: url)) { head, body in
        for try await event in body.serverSentEvents { print(event.type, event.data) }
    }
    // snippet.end
}

struct Change: Codable, Sendable {
    let row: Int
}

func followFeed(
    _ api: SessionManager, feed: URL, save: (Change, _ id: String) async throws -> Void
) async throws {
    func store(_ change: Change, id: String) async throws { try await save(change, id) }
    // snippet.reconnecting
    for try await event in api.events(for: Request(url: feed)) {
        try await store(event.decoded(as: Change.self), id: event.id)
    }
    // snippet.end
}

func continueFeed(_ api: SessionManager, feed: URL, lastID: String) -> EventSource {
    // snippet.continuing
    var request = Request(url: feed)
    request.headers[.lastEventID] = lastID
    request.retryPolicy = RetryPolicy(limit: 10).with { $0.backoff = Backoff(maximum: .seconds(60)) }
    // snippet.end
    return api.events(for: request)
}

struct Delta: Decodable, Sendable {
    let text: String
}

func readAnswer(_ api: SessionManager, question: Request) async throws -> String {
    // snippet.answers-to-a-post
    var answer = ""
    for try await event in api.events(for: question) where event.data != "[DONE]" {
        answer += try event.decoded(as: Delta.self).text
    }
    // snippet.end
    return answer
}

func watchStatuses(of source: EventSource) async {
    // snippet.statuses
    for await status in source.statuses {
        switch status {
        case .connecting: print("connecting")
        case .open: print("open")
        case .waiting(until: let date, after: let error): print("lost:", error ?? "complete", "next:", date)
        case .closed: print("closed")
        @unknown default: break
        }
    }
    // snippet.end
}

func script(_ server: StubServer) {
    // snippet.tests
    server.enqueue(.events([ServerSentEvent(data: "a", id: "1")], retry: .zero, then: .drop))
    server.enqueue(.events([ServerSentEvent(data: "b", id: "2")]))
    server.enqueue(.status(204))
    // snippet.end
}
