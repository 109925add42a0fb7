// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

// The samples of the article "WebSockets".

func joinRoom(_ session: SessionManager) async throws {
    // snippet.a-connection
    guard let room = URL(string: "wss://chat.example.com/rooms/7") else { return }
    try await session.withWebSocket(Request(url: room)) { socket in
        try await socket.send(.text("Hello"))
        for try await message in socket {
            guard case .text(let text) = message else { continue }
            print(text)
        }
    }
    // snippet.end
}

struct Note: Decodable {
    let number: Int
    let text: String
}

func joinByPath(token: String) async throws {
    // snippet.base-url
    let api = SessionManager(baseURL: URL(string: "https://chat.example.com/"))
    try await api.withWebSocket("rooms/7", headers: [.authorization: "Bearer \(token)"]) { socket in
        for try await message in socket {
            print(try message.decoded(as: Note.self).text)
        }
    }
    // snippet.end
}

func stayInRoom(_ api: SessionManager) async throws {
    // snippet.reconnecting
    var last = 0
    try await api.withWebSockets(for: api.request(.get, "rooms/7")) { socket in
        try await socket.send(.text("since \(last)"))
        for try await message in socket {
            last = try message.decoded(as: Note.self).number
        }
    }
    // snippet.end
}

func converse(_ session: SessionManager, room: URL, lines: AsyncStream<String>) async throws {
    // snippet.both-directions
    try await session.withWebSocket(Request(url: room)) { socket in
        try await withThrowingTaskGroup { group in
            group.addTask {
                for await line in lines { try await socket.send(.text(line)) }
                try await socket.close()
            }
            for try await message in socket { print(message) }
            // The connection is closed: there is no reason to wait for more lines.
            group.cancelAll()
        }
    }
    // snippet.end
}

func configure(_ session: SessionManager, room: URL, token: String) async throws {
    // snippet.options
    var options = WebSocketOptions()
    options.subprotocols = ["chat.v2", "chat"]
    options.maximumMessageSize = 1 << 20
    options.pingInterval = .seconds(10)
    options.offersCompression = true

    var request = Request(url: room)
    request.headers[.authorization] = "Bearer \(token)"
    try await session.withWebSocket(request, options: options) { socket in
        print(socket.subprotocol ?? "no subprotocol")
    }
    // snippet.end
}

func explain(_ session: SessionManager, room: URL) async throws {
    // snippet.errors
    do {
        try await session.withWebSocket(Request(url: room)) { socket in
            for try await message in socket { print(message) }
            print("closed:", socket.closure?.reason ?? "")
        }
    } catch let error as SessionError {
        if let status = error.statusCode {
            print("The server refused the connection with status \(status).")
        } else if case .webSocketClosed(let closure) = error.reason {
            print("The server closed the connection with code \(closure?.code ?? 1006).")
        } else {
            throw error
        }
    }
    // snippet.end
}

func testRoom() async throws {
    // snippet.tests
    try await StubServer.with { server in
        server.route(
            "/room",
            Script([.acceptWebSocket(), .message(.text("welcome")), .echoMessages(1), .closeWebSocket(code: 1001)]))
        let session = SessionManager()
        try await session.withWebSocket(Request(url: server.url("/room"))) { socket in
            try await socket.send(.text("hello"))
            for try await message in socket { print(message) }
        }
    }
    // snippet.end
}

func testRoomWithoutNetwork(room: URL) async throws {
    // snippet.tests-without-a-network
    let script = Script([
        .acceptWebSocket(), .message(.text("welcome")), .delay(.seconds(60)), .closeWebSocket(code: 4001),
    ])
    let clock = ManualClock()
    let session = SessionManager { $0.transport = MockTransport(script: script, clock: clock) }
    do {
        try await session.withWebSocket(Request(url: room)) { socket in
            for try await message in socket {
                print(message)
                try await clock.sleepers(count: 1)
                clock.advance(by: .seconds(60))
            }
        }
    } catch let error as SessionError {
        print(error)
    }
    // snippet.end
}
