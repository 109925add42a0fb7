// SPDX-License-Identifier: MIT

// Sends lines over a WebSocket connection and prints the answers:
//
//     swift run EchoSocket                   a server in this process, which sends every message back
//     swift run EchoSocket wss://… LINE…     another server, and the lines to send

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc

func converse(with server: URL, _ lines: [String]) async throws {
    var options = WebSocketOptions()
    options.offersCompression = true
    try await withSession { session in
        try await session.withWebSocket(Request(url: server), options: options) { socket in
            // Sent while the answers arrive; the scope waits for both.
            async let sending: Void = {
                for line in lines { try await socket.send(.text(line)) }
            }()
            var answers = 0
            for try await message in socket {
                switch message {
                case .text(let text): print(text)
                case .binary(let data): print("\(data.count) bytes")
                }
                answers += 1
                if answers == lines.count { break }
            }
            try await sending
            try await socket.close(reason: "That was all.")
            print("closed with code", socket.closure?.code.map(String.init) ?? "none")
        }
    }
}

do {
    let words = Array(CommandLine.arguments.dropFirst())
    if let first = words.first {
        guard words.count > 1, let url = URL(string: first) else {
            print("usage: EchoSocket [wss://… LINE…]")
            exit(2)
        }
        try await converse(with: url, Array(words.dropFirst()))
    } else {
        try await StubServer.with { server in
            server.route("/echo", .webSocketEcho)
            try await converse(with: server.url("/echo"), ["first", "second", "third"])
        }
    }
} catch {
    print(error)
}
