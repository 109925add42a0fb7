// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct JSONLinesOverTheWireTests {
    private struct Change: Codable, Hashable, Sendable {
        var row: Int
    }

    @Test func `a value is received before the next one is sent`() async throws {
        let server = try StubServer()
        let (values, continuation) = AsyncStream.makeStream(of: Change.self)
        let line = Int64("{\"row\":1}\n".utf8.count)
        server.route(
            "/",
            Script([.readBody(upTo: line), .informational(103), .readBody(), .reply(Reply())], readsBodyFirst: false))
        let hints = HintSink { continuation.finish() }
        var request = Request(method: .post, url: server.url("/"), body: .jsonLines(values))
        request.headers[.contentType] = "application/jsonl"
        continuation.yield(Change(row: 1))
        // The body ends only after the server has received the first line.
        try await SessionManager(for: server).withResponse(for: request, reporting: hints) { head, _ in
            #expect(head.status == .ok)
        }
        #expect(server.activity.requests.map(\.body) == [Data("{\"row\":1}\n".utf8)])
    }

    @Test func `a line is received before the next one is sent`() async throws {
        let server = try StubServer()
        let gate = try ScriptGate()
        var script = Script.stream(["{\"row\":1}\n", "{\"row\":2}\n"], type: "application/jsonl", then: .hang)
        script.actions.insert(.wait(gate), at: 2)
        server.route("/", script)
        var rows: [Int] = []
        try await SessionManager(for: server).withResponse(for: Request(url: server.url("/"))) { _, body in
            for try await change in body.jsonLines(of: Change.self) {
                rows.append(change.row)
                guard rows.count < 2 else { break }
                gate.open()
            }
        }
        #expect(rows == [1, 2])
    }

    @Test func `a line of 64 MB is refused`() async throws {
        let server = try StubServer()
        server.route("/", .data(Data(repeating: UInt8(ascii: "1"), count: 64_000_000)))
        let error = try await sessionError {
            try await SessionManager(for: server).withResponse(for: Request(url: server.url("/"))) { _, body in
                for try await _ in body.jsonLines(of: Change.self, maximumSize: 1 << 20) {}
            }
        }
        guard case .serialization(.jsonStream(let failure)) = error, case .tooLong(1_048_576) = failure.reason else {
            throw error
        }
        #expect("\(error)".contains(" of the stream of \(server.url("/").absoluteString) is longer"))
    }

    /// Calls a closure for an interim response.
    private struct HintSink: ExchangeEventSink {
        let handle: @Sendable () -> Void

        func receive(_ event: ExchangeEvent) {
            if case .informational = event { handle() }
        }
    }
}
