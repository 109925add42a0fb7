// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

/// Autobahn's cases about `permessage-deflate`, sections 12 and 13, with fewer messages.
@Suite(.timeLimit(.minutes(5))) struct AutobahnCompressionTests {
    /// A case: the sizes of the messages and of their fragments, and the parameters that the server chooses.
    struct Row: Sendable, CustomTestStringConvertible {
        let number: String
        var size = 1024
        /// The size of a fragment; `nil` for messages of one frame.
        var fragment: Int?
        var parameters = ""

        var testDescription: String { number }

        var accept: Script.Action {
            .acceptWebSocket(headers: ["Sec-WebSocket-Extensions": "permessage-deflate" + parameters])
        }

        /// Ten different messages that share most of their content.
        var messages: [String] {
            (0..<10).map { number in
                var text = ""
                for index in number... where text.utf8.count < size {
                    text += "{\"id\":\(index),\"tags\":[\(index % 7),\(index * 7919 % 1000)]},"
                    guard text.utf8.count < size else { break }
                }
                return String(text.prefix(size))
            }
        }
    }

    private static let sizes = [16, 64, 256, 1024, 4096, 8192, 16_384, 32_768, 65_536, 131_072]
    private static let fragments = [
        (8192, 256), (16_384, 256), (32_768, 256), (65_536, 256), (131_072, 256), (131_072, 1024), (131_072, 4096),
        (131_072, 32_768),
    ]

    private static let rows: [Row] =
        sizes.enumerated().map { Row(number: "12.1.\($0 + 1)", size: $1) }
        + fragments.enumerated().map { Row(number: "12.1.\($0 + 11)", size: $1.0, fragment: $1.1) }
        // The client does not offer to limit its window, so that servers cannot ask for it as in the other cases.
        + [
            Row(number: "13.1.4"), Row(number: "13.2.4", parameters: "; client_no_context_takeover"),
            Row(number: "13.2.4, both", parameters: "; client_no_context_takeover; server_no_context_takeover"),
            Row(number: "13.4.4, server", parameters: "; server_max_window_bits=15"),
            Row(
                number: "13.6.4, server",
                parameters: "; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=15"),
        ]

    private func withSocket<Value: Sendable>(
        _ actions: [Script.Action], _ options: WebSocketOptions = WebSocketOptions(),
        _ body: (WebSocket) async throws -> Value
    ) async throws -> Value {
        try await StubServer.with { server in
            server.route("/", Script(actions))
            var options = options
            options.offersCompression = true
            return try await SessionManager(for: server).withWebSocket(
                Request(url: server.url()), options: options, body)
        }
    }

    @Test(arguments: rows)
    func `compressed messages of the client come back unchanged`(row: Row) async throws {
        let received = try await withSocket([row.accept, .echoMessages()]) { socket in
            var received: [WebSocketMessage] = []
            var iterator = socket.makeAsyncIterator()
            for text in row.messages {
                try await socket.send(.text(text))
                received.append(try #require(await iterator.next()))
            }
            return received
        }
        #expect(received == row.messages.map { .text($0) })
    }

    @Test(arguments: rows)
    func `compressed messages of a server are received, in one or several frames`(row: Row) async throws {
        let deflater = try MessageDeflater(resets: row.parameters.contains("server_no_context_takeover"))
        let frames = try row.messages.flatMap { text in
            let payload = try deflater.deflate(Array(text.utf8))
            return [[UInt8]].fragments(0x41, payload, size: row.fragment ?? payload.count)
        }
        let received = try await withSocket(
            [row.accept, .send(Data(frames.flatMap(\.self))), .closeWebSocket(code: 1000)]
        ) { socket in
            var received: [WebSocketMessage] = []
            for try await message in socket { received.append(message) }
            return received
        }
        #expect(received == row.messages.map { .text($0) })
    }

    /// The first message of ``Row/messages``, compressed by zlib with a window of 512 bytes.
    private static let smallWindow = """
        TM87SgVAEETRvbx4gul/t1sRA0EQY80e7l0w6Kr0Ruc+H18fj5d7Hj/vn9+Pl9d77tvvef5X2SpnZLbrdj1tvd2226mo7b7dT1Zu\
        j+1xYmJ7bs8T4tuLlG62vclpoduHnFqCr0tQGRoWksrFsShRFcdiRB3HsjhZO/EsQdhqTEuSti6upUibim1p0objW4a0nhjXS1xr\
        jKsQVwfjqsRVwbkaccVwrk7cwLgGaacwrknaHoxrkbYF49qkLcO4DmkzMG6XtFEYNyGtN8ZNiesX42bENcW4OXHVcW5BXEmcWxK3\
        MW5FWmxbk3UU2zZkbce2X7JWYtt3+w8=
        """

    @Test(arguments: [
        Row(number: "13.3.4, server", parameters: "; server_max_window_bits=9"),
        Row(number: "13.5.4, server", parameters: "; server_no_context_takeover; server_max_window_bits=9"),
    ])
    func `compressed messages of a server with a small window are received`(row: Row) async throws {
        let payload = [UInt8](try #require(Data(base64Encoded: Self.smallWindow)))
        let message = try await withSocket(
            [row.accept, .send(Data([UInt8].frame(0xC1, payload))), .closeWebSocket(code: 1000)]
        ) { try await $0.first { _ in true } }
        #expect(message == .text(row.messages[0]))
    }

    @Test(arguments: [nil, 4096])
    func `a message of the maximum size is received although compression makes it larger`(fragment: Int?) async throws {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<100_000).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        let payload = try MessageDeflater(resets: false).deflate(bytes)
        #expect(payload.count > bytes.count)
        let frames = [[UInt8]].fragments(0x42, payload, size: fragment ?? payload.count)
        var options = WebSocketOptions()
        options.maximumMessageSize = bytes.count
        let message = try await withSocket(
            [Row(number: "").accept, .send(Data(frames.flatMap(\.self))), .closeWebSocket(code: 1000)], options
        ) { try await $0.first { _ in true } }
        #expect(message == .binary(Data(bytes)))
    }

    @Test func `a server that asks for a smaller window of the client is refused`() async throws {
        let row = Row(number: "13.3", parameters: "; client_max_window_bits=9")
        let error = try await sessionError { try await withSocket([row.accept, .hang]) { _ in } }
        guard case .invalidResponse = error.reason else { throw error }
    }

    @Test func `a server that accepts no extension receives messages that are not compressed`() async throws {
        let text = String(repeating: "x", count: 1024)
        let answer = try await withSocket([.acceptWebSocket(), .echoMessages()]) { socket in
            try await socket.send(.text(text))
            return try await socket.first { _ in true }
        }
        #expect(answer == .text(text))
    }
}
