// SPDX-License-Identifier: MIT

// Follows a feed of changes over lost connections, and prints the states of the connection:
//
//     swift run ChangeFeed            a server in this process, which loses each connection after three changes
//     swift run ChangeFeed URL [ID]   an event stream, continued after the event with this ID

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

func follow(_ url: URL, after id: String?) async throws {
    var request = Request(url: url)
    request.headers[.lastEventID] = id
    try await withSession { api in
        let feed = api.events(for: request)
        async let reported: Void = report(feed.statuses)
        for try await event in feed {
            // A program that stores the ID with the change continues here after a restart.
            print("\(event.type) \(event.id): \(event.data)")
        }
        await reported
    }
}

func report(_ statuses: BroadcastStream<EventSource.Status>) async {
    for await status in statuses {
        switch status {
        case .connecting: print("connecting")
        case .open: print("open")
        case .waiting(let date, let error): print("waiting until \(date):", error.map { "\($0)" } ?? "complete")
        case .closed: print("closed")
        @unknown default: break
        }
    }
}

/// Sends three of ten changes after the last one that the client has, and loses the connection.
func changes(_ request: RecordedRequest) -> Script {
    let last = request.headers["Last-Event-ID"].flatMap { Int($0) } ?? 0
    guard last < 10 else { return .status(204) }
    let events = (last + 1...min(last + 3, 10)).map { number in
        ServerSentEvent(type: "change", data: #"{"row": \#(number)}"#, id: "\(number)")
    }
    return .events(events, retry: .milliseconds(100), then: .drop)
}

do {
    let words = CommandLine.arguments
    if words.count > 1 {
        guard let url = URL(string: words[1]) else { throw CancellationError() }
        try await follow(url, after: words.count > 2 ? words[2] : nil)
    } else {
        try await StubServer.with { server in
            server.route("/changes", changes)
            try await follow(server.url("/changes"), after: nil)
        }
    }
} catch {
    print(error)
}
