// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import Testing

/// WebSocket connections to Python's websockets.
@Suite(.servers(.webSocket, .plainWebSocket, .freshWebSocket, .proxy), .timeLimit(.minutes(5)))
struct PythonWebSocketTests {
    private static let messages: [WebSocketMessage] = {
        let text = (0..<2000).map { "line \($0) of the text\n" }.joined()
        let sizes = [0, 1, 125, 126, 1000, 65_535, 65_536, 3_000_000]
        return [.text(""), .text("€😀"), .text(text), .text(text)]
            + sizes.map { .binary(Data((0..<$0).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) })) } + [.text(text)]
    }()

    private func session(
        _ server: RealServer, configure: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionManager {
        SessionManager(try .using(server, configure: configure))
    }

    private func expectEchoes(on session: SessionManager, _ url: URL, compression: Bool) async throws {
        var options = WebSocketOptions()
        options.offersCompression = compression
        let closure = try await session.withWebSocket(Request(url: url), options: options) { socket in
            async let sending: Void = {
                for message in Self.messages { try await socket.send(message) }
            }()
            var received: [WebSocketMessage] = []
            for try await message in socket {
                received.append(message)
                if received.count == Self.messages.count { break }
            }
            try await sending
            #expect(received == Self.messages)
            try await socket.close(code: 4001, reason: "enough")
            return socket.closure
        }
        #expect(closure?.code == 4001)
    }

    @Test(
        arguments: [RealServer.webSocket, .plainWebSocket, .freshWebSocket], [true, false])
    func `messages return unchanged, compressed or not`(server: RealServer, compression: Bool) async throws {
        try await expectEchoes(on: session(server), server.url("/echo"), compression: compression)
    }

    @Test(arguments: [true, false])
    func `messages return in fragments`(compression: Bool) async throws {
        var options = WebSocketOptions()
        options.offersCompression = compression
        let text = (0..<300).map { "€\($0)" }.joined()
        let request = try Request(url: RealServer.webSocket.url("/fragments"))
        let answers = try await session(.webSocket).withWebSocket(request, options: options) { socket in
            try await socket.send(.text(text))
            try await socket.send(.text("next"))
            return [try await socket.first { _ in true }, try await socket.first { _ in true }]
        }
        #expect(answers == [.text(text), .text("next")])
    }

    @Test func `pings are answered`() async throws {
        let request = try Request(url: RealServer.webSocket.url("/count"))
        try await session(.webSocket).withWebSocket(request) { socket in
            for number in 1...3 {
                try await socket.send(.text("x"))
                #expect(try await socket.first { _ in true } == .text("\(number)"))
            }
        }
    }

    @Test func `the server's code and reason are received`() async throws {
        let request = try Request(url: RealServer.webSocket.url("/close/4321"))
        let error = try await sessionError {
            try await session(.webSocket).withWebSocket(request) { socket in for try await _ in socket {} }
        }
        guard case .webSocketClosed(let closure?) = error.reason else { throw error }
        #expect(closure.code == 4321)
        #expect(closure.reason == "by request")
    }

    @Test func `messages pass through a proxy`() async throws {
        let proxy = try RealServer.proxy.proxy(.http)
        let session = try session(.webSocket) { $0.proxy = .proxy(proxy) }
        try await expectEchoes(on: session, RealServer.webSocket.url("/echo"), compression: true)
    }

    @Test func `1200 idle connections are open at once, and all work`() async throws {
        let count = 1200
        let session = try session(.plainWebSocket) { $0.connectionLimits.maximumLongLivedPerHost = count }
        let request = try Request(url: RealServer.plainWebSocket.url("/echo"))
        let opened = AsyncStream.makeStream(of: Void.self)
        let gate = AsyncStream.makeStream(of: Void.self)
        let release = Task { for await _ in gate.stream {} }
        let answers = try await withThrowingTaskGroup(of: WebSocketMessage?.self) { group in
            for number in 0..<count {
                group.addTask {
                    try await session.withWebSocket(request) { socket in
                        opened.continuation.yield()
                        await release.value
                        try await socket.send(.text("\(number)"))
                        return try await socket.first { _ in true }
                    }
                }
            }
            var left = count
            for await _ in opened.stream {
                left -= 1
                if left == 0 { break }
            }
            gate.continuation.finish()
            var answers: Set<WebSocketMessage> = []
            for try await answer in group { if let answer { answers.insert(answer) } }
            return answers
        }
        #expect(answers.count == count)
    }
}
