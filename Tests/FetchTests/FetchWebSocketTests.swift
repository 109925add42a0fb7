// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

/// The built executable with `wss` URLs.
@Suite(.timeLimit(.minutes(5))) struct FetchWebSocketTests {
    /// Starts a server with TLS, and passes the options and the URL for it.
    private func with(
        _ script: Script, _ body: (FetchTool, StubServer, _ trust: [String], _ url: String) async throws -> Void
    ) async throws {
        let authority = try TestCertificateAuthority()
        try await FetchTool.with { tool in
            try authority.write(to: tool.directory + "/ca.pem")
            try await StubServer.with(.init(tls: .init(authority.issue()))) { server in
                server.route("/chat", script)
                try await body(
                    tool, server, ["--cacert", tool.directory + "/ca.pem"],
                    "wss://127.0.0.1:\(server.endpoint.port)/chat")
            }
        }
    }

    @Test func `lines are sent as messages, and messages are printed until the server closes the connection`()
        async throws
    {
        let script = Script([.acceptWebSocket(), .echoMessages(2), .closeWebSocket(code: 1001, reason: "bye")])
        try await with(script) { tool, server, trust, url in
            let outcome = try await tool.run(["-v"] + trust + [url], input: "one\ntwo €\n")
            #expect(outcome.text == "one\ntwo €\n")
            #expect(outcome.errors.contains("* closed with code 1001 bye\n"))
            #expect(outcome.status == 0)
            #expect(server.activity.requests.first?.tls != nil)
        }
    }

    @Test func `a line of several MiB is a message`() async throws {
        try await with(Script([.acceptWebSocket(), .echoMessages(1), .closeWebSocket(code: 1000)])) {
            tool, _, trust, url in
            let outcome = try await tool.run(trust + [url], input: String(repeating: "x", count: 3 << 20))
            #expect(outcome.output.count == 3 << 20 + 1)
            #expect(outcome.status == 0)
        }
    }

    @Test func `an error of the input ends the connection`() async throws {
        try await with(.webSocketEcho) { tool, _, trust, url in
            let outcome = try await tool.run(trust + [url], input: String(repeating: "x", count: 17 << 20))
            #expect(outcome.status == 63)
        }
    }

    @Test func `messages after which the server closes the connection are no error`() async throws {
        try await with(Script([.acceptWebSocket(), .echoMessages(1), .closeWebSocket(code: 1000)])) {
            tool, _, trust, url in
            let outcome = try await tool.run(trust + [url], input: String(repeating: "line\n", count: 100_000))
            #expect(outcome.text == "line\n")
            #expect(outcome.errors == "")
            #expect(outcome.status == 0)
        }
    }

    @Test func `binary messages are not printed on a terminal`() async throws {
        try await with(Script([.acceptWebSocket(), .message(.binary(Data([27, 0]))), .echoMessages()])) {
            tool, _, trust, url in
            let outcome = try await tool.runOnTerminal(trust + [url], at: nil, typing: "")
            #expect(outcome.status == 23)
        }
    }

    @Test func `the end of input on a terminal closes the connection`() async throws {
        try await with(Script([.acceptWebSocket(), .message(.text("welcome")), .echoMessages()])) {
            tool, server, trust, url in
            let outcome = try await tool.runOnTerminal(trust + [url], at: "welcome", typing: "hello\n\u{4}")
            #expect(outcome.text.hasPrefix("welcome\r\n"))
            #expect(outcome.status == 0)
            try await server.activity { $0.webSocketClosures.map(\.code) == [1000] }
        }
    }

    @Test func `a connection closed because of an error fails`() async throws {
        try await with(Script([.acceptWebSocket(), .closeWebSocket(code: 4001, reason: "kicked")])) {
            tool, _, trust, url in
            let outcome = try await tool.run(trust + [url])
            #expect(outcome.text == "")
            #expect(
                outcome.errors == "fetch: The WebSocket connection was closed with code 4001: “kicked”.\n")
            #expect(outcome.status == 72)
        }
    }

    @Test func `a refused upgrade fails`() async throws {
        try await with(.text("members only", status: 403)) { tool, _, trust, url in
            let outcome = try await tool.run(trust + [url], input: "one\n")
            #expect(outcome.text == "")
            #expect(outcome.errors.contains("status 403 Forbidden, expected 101. The body begins with “members only”."))
            #expect(outcome.status == 22)
        }
    }

    @Test func `an untrusted server fails`() async throws {
        try await with(.webSocketEcho) { tool, server, _, url in
            let outcome = try await tool.run([url])
            #expect(outcome.status == 60)
            #expect(server.activity.requests.isEmpty)
        }
    }
}
