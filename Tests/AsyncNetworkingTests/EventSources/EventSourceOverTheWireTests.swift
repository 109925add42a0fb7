// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct EventSourceOverTheWireTests {
    /// A policy that reconnects without a wait.
    private static let immediate = RetryPolicy(limit: .max).with { $0.backoff = Backoff(base: .zero) }

    @Test func `no event is lost or doubled although the connection is lost 100 times`() async throws {
        let last = 2000
        let server = try StubServer()
        // Each response is cut after a number of bytes, most of them within an event.
        server.route("/feed") { request in
            let first = (request.headers["Last-Event-ID"].flatMap { Int($0) } ?? 0) + 1
            guard first <= last else { return .status(204) }
            // More bytes than are sent: with all events, the server would encode 1,000 for each of 14 received.
            let events = (first...min(first + 40, last)).map {
                ServerSentEvent(type: "change", data: "number \($0)\nof \(last)", id: "\($0)")
            }
            return .resetAfter(bytes: Int64(200 + first * 37 % 900), of: .events(events))
        }
        var request = Request(url: server.url("/feed"))
        request.retryPolicy = Self.immediate
        var received: [String] = []
        for try await event in SessionManager(for: server).events(for: request, reconnectionTime: .zero) {
            #expect(event.data == "number \(event.id)\nof \(last)")
            received.append(event.id)
        }
        #expect(received == (1...last).map(String.init))
        // The server was asked to continue exactly after the last event of each connection.
        let continued = server.activity.requests.compactMap { $0.headers["Last-Event-ID"].flatMap { Int($0) } }
        #expect(continued == continued.sorted())
        #expect(continued.count >= 100)
        #expect(Set(continued).isSubset(of: Set(1...last)))
    }

    /// A response with an event of a size, compressed by gzip.
    private static func compressed(_ size: Int, _ change: (inout Data) -> Void = { _ in }) throws -> Script {
        let text = Array("id: 1\ndata: \(String(repeating: "a", count: size))\n\n".utf8)
        var deflater = try Deflater(format: .gzip)
        var output = [UInt8](repeating: 0, count: text.count + 100)
        var span = output.mutableSpan
        var room = unsafe span.mutableBytes
        let step = try unsafe deflater.step(text.span.bytes, isEnd: true, into: &room)
        var data = Data(output.prefix(step.produced))
        change(&data)
        return .reply(
            headers: ["Content-Type": "text/event-stream", "Content-Encoding": "gzip"], body: .bytes(data))
    }

    /// Returns the sizes of the events of a source, with the error that ended it.
    private static func sizes(
        _ script: Script, _ change: (inout Request) -> Void = { _ in }
    ) async throws -> (sizes: [Int], reason: TransportError.Reason?) {
        try await StubServer.with { server in
            server.route("/feed", script, .status(204))
            var request = Request(url: server.url("/feed"))
            request.retryPolicy = immediate
            change(&request)
            var sizes: [Int] = []
            do {
                let source = SessionManager(for: server).events(for: request, reconnectionTime: .zero)
                for try await event in source { sizes.append(event.data.utf8.count) }
            } catch let error as SessionError {
                return (sizes, error.reason)
            }
            return (sizes, nil)
        }
    }

    @Test func `a compressed source has the limit of the request, and none by default`() async throws {
        let size = 4 << 20
        let unlimited = try await Self.sizes(Self.compressed(size))
        #expect(unlimited.sizes == [size])
        #expect(unlimited.reason == nil)
        let limited = try await Self.sizes(Self.compressed(size)) {
            $0.changeOptions { $0.decompressionLimit.maximumSize = 1 << 20 }
        }
        #expect(limited.sizes == [])
        guard case .responseTooLarge? = limited.reason else { throw Planned() }
    }

    @Test func `a source goes on after a response without the end of its content coding`() async throws {
        // The checksum and the length are missing.
        let truncated = try await Self.sizes(Self.compressed(10) { $0.removeLast(8) })
        #expect(truncated.sizes == [10])
        #expect(truncated.reason == nil)
        let malformed = try await Self.sizes(Self.compressed(10) { $0[$0.count - 8] ^= 1 })
        #expect(malformed.reason == .invalidContentEncoding)
    }

    @Test func `a rejection whose body is cut is not a lost connection`() async throws {
        try await StubServer.with { server in
            let head = "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n"
            server.route("/feed", Script([.send(Data("\(head)cut".utf8)), .end(.close)]), .status(204))
            var request = Request(url: server.url("/feed"))
            request.retryPolicy = Self.immediate
            let source = SessionManager(for: server).events(for: request, reconnectionTime: .zero)
            let error = await #expect(throws: SessionError.self) { for try await _ in source {} }
            #expect(error?.statusCode == 404)
            #expect(error?.responseBody == Data("cut".utf8))
        }
    }

    @Test func `events arrive as they are sent`() async throws {
        let server = try StubServer()
        let gate = try ScriptGate()
        var script = Script.stream(["data: a\n\n", "data: b\n\n"], type: "text/event-stream", then: .hang)
        script.actions.insert(.wait(gate), at: 2)
        server.route("/feed", script)
        for try await event in SessionManager(for: server).events(for: Request(url: server.url("/feed"))) {
            guard event.data == "a" else { break }
            gate.open()
        }
    }

    @Test func `a session can be shut down by the loop over its source`() async throws {
        let server = try StubServer()
        server.route("/feed", .events([ServerSentEvent(data: "a")], then: .hang))
        let session = SessionManager(for: server)
        await #expect(throws: CancellationError.self) {
            for try await _ in session.events(for: Request(url: server.url("/feed"))) {
                await session.shutdown(draining: .zero)
            }
        }
        try await server.connections(open: 0)
    }

    @Test(arguments: [nil, "application/json, text/event-stream"])
    func `seven open feeds leave the connections of other requests to these`(accepted: String?) async throws {
        let server = try StubServer()
        server.route("/feed", .events([ServerSentEvent(data: "a")], then: .hang))
        server.fallback { _ in .text("ok") }
        let session = SessionManager(for: server) {
            $0.connectionLimits.maximumConnectionsPerHost = 1
            $0.timeouts.queue = .seconds(20)
        }
        var request = Request(url: server.url("/feed"))
        request.headers[.accept] = accepted
        var feeds: [EventSource.Iterator] = []
        for _ in 0..<7 {
            var feed = session.events(for: request).makeAsyncIterator()
            #expect(try await feed.next()?.data == "a")
            feeds.append(feed)
        }
        #expect(try await session.get(server.url("/"), as: .string).value == "ok")
        // Until here, all are open.
        feeds.removeAll()
        await session.shutdown(draining: .zero)
    }

    @Test func `a question by POST is answered by events`() async throws {
        let server = try StubServer()
        server.route("/chat", .events(["Hel", "lo"].map { ServerSentEvent(data: $0) }))
        let request = Request(method: .post, url: server.url("/chat"), body: .string("Hi"))
        var answer = ""
        for try await event in SessionManager(for: server).events(for: request) { answer += event.data }
        #expect(answer == "Hello")
        #expect(server.activity.requests.map(\.body) == [Data("Hi".utf8)])
    }
}
