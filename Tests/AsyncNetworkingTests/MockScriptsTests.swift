// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

/// Scripts that a mock transport performs, compared with the same ones on a connection.
@Suite(.timeLimit(.minutes(5))) struct MockScriptsTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let script: Script
        let expected: Outcome
    }

    /// The course of a request: its interim responses, and its response or the reason of its failure.
    enum Outcome: Equatable, Sendable {
        case response(interim: [Int] = [], Int, String)
        case failure(interim: [Int] = [], TransportError.Reason)
    }

    private static func reply(
        _ status: Int = 200, _ headers: HeaderPairs = [:], _ body: String = "0123456789",
        _ framing: Reply.Framing = .contentLength
    ) -> Script.Action {
        .reply(Reply(status: status, headers: headers, body: .string(body), framing: framing))
    }

    private static let lost = TransportError.Reason.connectionLost(.inBody(received: 10, expected: 100))

    private static let rows = [
        Row(
            testDescription: "an interim reply", script: Script([reply(103), reply(200)]),
            expected: .response(interim: [103], 200, "0123456789")),
        Row(
            testDescription: "an interim reply and the end", script: Script([reply(103), .end(.close)]),
            expected: .failure(interim: [103], .invalidResponse(.noFinalResponse))),
        Row(
            testDescription: "an interim response and the end", script: Script([.informational(103), .end(.close)]),
            expected: .failure(interim: [103], .invalidResponse(.noFinalResponse))),
        Row(
            testDescription: "another protocol", script: Script([reply(101), .end(.close)]),
            expected: .failure(interim: [101], .invalidResponse(.noFinalResponse))),
        Row(
            testDescription: "a length of its own",
            script: Script([reply(200, ["Content-Length": "100"], "0123456789", .asGiven), .end(.close)]),
            expected: .failure(lost)),
        Row(
            testDescription: "a length of its own on a connection that is closed",
            script: Script([
                reply(200, ["Content-Length": "100", "Connection": "close"], "0123456789", .asGiven)
            ]), expected: .failure(lost)),
        Row(
            testDescription: "a length and the end of the connection",
            script: Script([reply(200, ["Content-Length": "100"], "0123456789", .untilClose)]),
            expected: .failure(lost)),
        Row(
            testDescription: "two lengths", script: Script([reply(200, ["Content-Length": "5"])]),
            expected: .failure(.invalidResponse(.contentLength))),
        Row(
            testDescription: "twice the same length", script: Script([reply(200, ["content-length": "10"])]),
            expected: .response(200, "0123456789")),
        Row(
            testDescription: "no length",
            script: Script([reply(200, ["Content-Length": "x"], "0123456789", .asGiven), .end(.close)]),
            expected: .failure(.invalidResponse(.contentLength))),
        Row(
            testDescription: "a longer body",
            script: Script([reply(200, ["Content-Length": "5"], "0123456789", .asGiven), .end(.close)]),
            expected: .response(200, "01234")),
        Row(
            testDescription: "another transfer coding", script: Script([reply(200, ["Transfer-Encoding": "gzip"])]),
            expected: .failure(.invalidResponse(.framing))),
        Row(
            testDescription: "chunks and a length",
            script: Script([reply(200, ["Content-Length": "5"], "0123456789", .chunked)]),
            expected: .response(200, "0123456789")),
        Row(
            testDescription: "bytes after the chunks",
            script: Script([reply(200, [:], "0123456789", .chunked), .send(Data("abc".utf8)), .end(.close)]),
            expected: .response(200, "0123456789")),
        Row(
            testDescription: "a reset after the chunks",
            script: Script([reply(200, [:], "0123456789", .chunked), .end(.reset)]),
            expected: .response(200, "0123456789")),
        Row(
            testDescription: "a hang after the body", script: Script([reply(200), .hang]),
            expected: .response(200, "0123456789")),
        Row(
            testDescription: "a hang after the chunks",
            script: Script([reply(200, [:], "0123456789", .chunked), .hang]),
            expected: .response(200, "0123456789")),
        Row(
            testDescription: "the end of a body without a length",
            script: Script([reply(200, [:], "0123456789", .asGiven), .end(.close)]),
            expected: .response(200, "0123456789")),
        Row(
            testDescription: "a reset of a body without a length",
            script: Script([reply(200, [:], "0123456789", .asGiven), .end(.reset)]),
            expected: .failure(.connectionLost(.inBody(received: 10, expected: nil)))),
        Row(
            testDescription: "a reset of a body that ends with the connection",
            script: Script([reply(200, [:], "0123456789", .untilClose), .end(.reset)]),
            expected: .failure(.connectionLost(.inBody(received: 10, expected: nil)))),
    ]

    @Test(arguments: rows)
    func `a script has the same outcome as on a connection`(row: Row) async throws {
        try await StubServer.with { server in
            server.route("/", row.script)
            let transport = try SessionConfiguration { $0.proxy = .none }.makeTransport()
            #expect(try await outcome(on: transport, server.url("/")) == row.expected)
            await transport.shutdown()
        }
        let mocked = try await outcome(on: MockTransport(script: row.script), url("http://a.example/"))
        #expect(mocked == row.expected)
    }

    private func outcome(on transport: any Transport, _ url: URL) async throws -> Outcome {
        let events = EventRecorder()
        var interim: [Int] {
            events.events.compactMap { if case .informational(let head) = $0 { head.status.code } else { nil } }
        }
        do {
            return try await transport.withResponse(
                for: Request(url: url), delivery: .collected(upTo: 1000), reporting: events
            ) { head, body in
                let text = String(decoding: try await body.collect(upTo: 1000), as: UTF8.self)
                return .response(interim: interim, head.status.code, text)
            }
        } catch let error as TransportError {
            return .failure(interim: interim, error.reason)
        }
    }

    @Test func `a body that its own fields frame needs a connection`() async throws {
        let reply = Self.reply(200, ["Transfer-Encoding": "chunked"], "3\r\nabc\r\n0\r\n\r\n", .asGiven)
        let mocked = try await outcome(on: MockTransport(script: Script([reply])), url("http://a.example/"))
        #expect(mocked == .failure(.invalidResponse(.notHTTP)))
    }

    @Test func `a body that is shorter than its own length waits for the rest`() async throws {
        let clock = ManualClock()
        let reply = Self.reply(200, ["Content-Length": "100"], "0123456789", .asGiven)
        var request = Request(url: try url("http://a.example/"))
        request.options = TransferOptions()
        request.options?.timeouts.idle = .seconds(10)
        let transport = MockTransport(script: Script([reply]), clock: clock)
        let task = Task { [request] in
            try await transport.open(request, delivery: .collected(upTo: 1000), reporting: nil)
        }
        #expect(try await clock.sleepers(count: 1) == [.seconds(10)])
        clock.advance(by: .seconds(10))
        await #expect { _ = try await task.value } throws: { error in
            (error as? TransportError)?.reason == .timedOut(.responseBody)
        }
    }
}
