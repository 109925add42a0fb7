// SPDX-License-Identifier: MIT

// Keeps a WebSocket connection: connects again, after waits that grow, and asks for the messages that were missed.

import AsyncNetworking
import FoundationEssentials
import Glibc

struct Note: Decodable {
    let number: Int
    let text: String
}

guard CommandLine.arguments.count == 2 else {
    print("usage: https://…")
    exit(2)
}
let api = SessionManager(baseURL: URL(string: CommandLine.arguments[1]))
var request = try api.request(.get, "rooms/7")
// Gives up after ten repetitions in a row that have failed; without a policy, it never does.
request.retryPolicy = RetryPolicy(limit: 10)

var last = 0
try await api.withWebSockets(for: request) { socket in
    // What was sent before the loss of a connection may not have arrived.
    try await socket.send(.text("since \(last)"))
    for try await message in socket {
        let note = try message.decoded(as: Note.self)
        print(note.text)
        last = note.number
    }
}
