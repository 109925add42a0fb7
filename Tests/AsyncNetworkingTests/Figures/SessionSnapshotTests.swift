// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@Suite struct SessionSnapshotTests {
    private static let address = SocketAddress(host: "192.0.2.7", port: 443)

    private func connection(
        _ id: Int32, _ origin: String, _ version: HTTPVersion = .http1_1, age: Duration, sinceLastEnd: Duration? = nil
    ) -> TransportSnapshot.Connection {
        .init(id: id, origin: origin, address: Self.address, version: version, age: age, sinceLastEnd: sinceLastEnd)
    }

    private func exchange(
        _ text: String, on connection: Int32?, _ phase: TransportError.TimeoutPhase, _ elapsed: Duration,
        sent: TransferProgress = .init(completedBytes: 0, totalBytes: nil),
        received: TransferProgress = .init(completedBytes: 0, totalBytes: nil)
    ) throws -> TransportSnapshot.Exchange {
        let url = try url(text)
        return .init(
            Request(url: url), origin: "https://" + (url.host() ?? ""), connection: connection, phase: phase,
            elapsed: elapsed, sent: sent, received: received)
    }

    @Test func `a snapshot is a tree of hosts, connections and exchanges`() throws {
        var transport = TransportSnapshot()
        transport.connections = [
            connection(7, "https://b.example", .http2, age: .seconds(2)),
            connection(8, "https://a.example", age: .milliseconds(1_500), sinceLastEnd: .milliseconds(250)),
            connection(9, "https://a.example", age: .seconds(125), sinceLastEnd: .seconds(20)),
        ]
        transport.exchanges = [
            try exchange(
                "https://b.example/down?key=secret", on: 7, .responseBody, .seconds(1),
                received: .init(completedBytes: 12, totalBytes: 40)),
            try exchange(
                "https://b.example/up", on: 7, .request, .milliseconds(1_100),
                sent: .init(completedBytes: 7, totalBytes: nil)),
            try exchange("https://a.example/slow", on: 9, .responseHead, .milliseconds(90)),
            try exchange("https://a.example/next", on: nil, .queue, .milliseconds(20)),
            try exchange("https://c.example/", on: 11, .connect, .milliseconds(8)),
        ]
        let snapshot = SessionSnapshot(transport, tasks: [], cache: nil)
        #expect(
            snapshot.description == """
                session: 0 tasks, 3 connections, 2 exchanges wait
                ├── https://a.example
                │   ├── 192.0.2.7:443, HTTP/1.1, busy, 2 min 5 s old
                │   │   └── GET https://a.example/slow: response head, after 90 ms
                │   ├── 192.0.2.7:443, HTTP/1.1, idle for 250 ms, 1.50 s old
                │   └── GET https://a.example/next: queue, after 20 ms
                ├── https://b.example
                │   └── 192.0.2.7:443, HTTP/2, busy, 2.00 s old
                │       ├── GET https://b.example/up: request, 7 bytes, after 1.10 s
                │       └── GET https://b.example/down?key=…: response body, 12 of 40 bytes, after 1.00 s
                └── https://c.example
                    └── GET https://c.example/: connect, after 8.0 ms
                """)
    }

    @Test func `a session that does nothing is one line`() async {
        #expect(
            await SessionManager(on: MockTransport(.text("x"))).snapshot().description
                == "session: 0 tasks, 0 connections")
    }

    @Test func `a running request is shown on its connection, and an idle connection afterwards`() async throws {
        let gate = try ScriptGate()
        try await StubServer.with { server in
            server.route("/a", Script([.wait(gate), .reply(Reply(body: .string("end")))]))
            let session = SessionManager(for: server) {
                $0.connectionLimits.maximumConnectionsPerHost = 1
                $0.cache = .memory()
            }
            let task = try session.makeDataTask(for: session.request(.get, "a?key=secret"))
            task.resume()
            async let second = session.get("a")
            try await eventually { await session.snapshot().hosts.first?.waiting.count == 1 }
            try await server.requests(count: 1)
            let running = await session.snapshot()
            let host = try #require(running.hosts.first)
            #expect(host.origin == "http://127.0.0.1:\(server.endpoint.port)")
            #expect(host.connections.map(\.address.port) == [server.endpoint.port])
            #expect(host.connections.map(\.idle) == [nil])
            #expect(host.connections.first?.exchanges.map(\.phase) == [.responseHead])
            #expect(host.waiting.map(\.phase) == [.queue])
            #expect(running.tasks.map(\.state) == [.running, .running])
            #expect(running.cache?.entries == 0)
            #expect(!running.description.contains("secret"))
            gate.open()
            _ = try await (task.value, second)
            let idle = await session.snapshot()
            #expect(idle.tasks.isEmpty)
            #expect(idle.hosts.first?.connections.first?.idle != nil)
            #expect(idle.hosts.first?.waiting.isEmpty == true)
        }
    }

    @Test func `a snapshot has all exchanges, which are copied in several turns of the loop`() async throws {
        try await StubServer.with { server in
            server.route("/a", Script([.hang]))
            let session = SessionManager(for: server) { $0.connectionLimits.maximumConnectionsPerHost = 1 }
            let tasks = try (0..<200).map { _ in try session.makeDataTask(for: session.request(.get, "a")) }
            for task in tasks { task.resume() }
            try await eventually { await session.snapshot().hosts.first?.waiting.count == 199 }
            let connections = try #require(await session.snapshot().hosts.first?.connections)
            #expect(connections.map(\.exchanges.count) == [1])
            session.taskGroup().cancel()
        }
    }

    @Test func `tasks are shown with their state and progress`() async throws {
        let gate = try ScriptGate()
        let slow = MockResponse([.head(.ok, [.contentLength: "6"]), .chunk(Data("end".utf8)), .wait(gate)])
        let session = SessionManager(on: MockTransport(slow)) { $0.maximumConcurrentTasks = 1 }
        let tasks = try ["a", "b", "c"].map { try session.makeDataTask(for: session.request(.get, $0)) }
        tasks[0].resume()
        tasks[1].resume()
        for await progress in tasks[0].downloadProgress where progress.completedBytes == 3 { break }
        let lines = await session.snapshot().description.replacing(/#[0-9]+/, with: "#")
        #expect(
            lines == """
                session: 3 tasks, 0 connections
                └── tasks
                    ├── # GET http://a.example/v1/a: running, 3 of 6 bytes
                    ├── # GET http://a.example/v1/b: waiting
                    └── # GET http://a.example/v1/c: suspended
                """)
        gate.open()
        session.taskGroup().cancel()
    }
}
