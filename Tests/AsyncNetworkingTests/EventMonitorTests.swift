// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@Suite struct EventMonitorTests {
    /// An ordered list of lines that can be appended from any thread.
    private struct Lines: Sendable {
        private let stream: AsyncStream<String>
        private let continuation: AsyncStream<String>.Continuation

        init() {
            (stream, continuation) = AsyncStream.makeStream()
        }

        func append(_ line: String) {
            continuation.yield(line)
        }

        /// Returns all lines and ends the list.
        func close() async -> [String] {
            continuation.finish()
            return await stream.reduce(into: []) { $0.append($1) }
        }
    }

    /// Records a line for each event, without durations, which differ between runs.
    private struct Log: EventMonitor {
        var name = ""
        let lines: Lines

        func receive(_ event: TaskEvent, of task: AnySessionTask) {
            let line = "\(event)"
            lines.append(name + (line.firstRange(of: " after ").map { String(line[..<$0.lowerBound]) } ?? line))
        }
    }

    private let lines = Lines()

    @Test func `the events of a request are a tree, in order`() async throws {
        let transport = MockTransport(
            .redirect(.found, to: "/b?token=secret"),
            MockResponse(status: .ok, headers: [.contentLength: "3"], chunks: [Data("end".utf8)])
                .informational(.init(code: 103)))
        let manager = SessionManager(on: transport) { $0.eventMonitors = [Log(lines: lines)] }
        _ = try await manager.data(
            for: manager.request(.put, "x", body: .string("body"), headers: [.authorization: "secret"]))
        #expect(
            await lines.close() == [
                "began",
                "sends PUT http://a.example/v1/x", "sent 4 of 4 bytes", "received 302 over HTTP/1.1",
                "exchange finished",
                "is redirected by 302 to PUT http://a.example/b?token=…",
                "sends PUT http://a.example/b?token=…", "sent 4 of 4 bytes", "received an interim 103",
                "received 200 over HTTP/1.1", "received 3 of 3 bytes", "exchange finished",
                "ended with 200",
            ])
    }

    @Test func `exchanges that overlap have numbers, also those of a task`() async throws {
        struct Numbers: EventMonitor {
            let lines: Lines

            func receive(_ event: TaskEvent, of task: AnySessionTask) {
                guard case .exchange(let number, let event) = event else { return }
                switch event {
                case .started(let request): lines.append("\(number) \(request.url.path())")
                case .head(let head): lines.append("\(number) \(head.status.code)")
                case .finished: lines.append("\(number) finished")
                default: break
                }
            }
        }
        let gate = try ScriptGate()
        let transport = MockTransport { request in
            request.url.path() == "/slow" ? MockResponse([.wait(gate), .head(.notFound)]) : .text("x")
        }
        let manager = SessionManager(on: transport) {
            $0.attemptInterceptors = [Overlapping(transport: transport, gate: gate)]
            $0.eventMonitors = [Numbers(lines: lines)]
        }
        let task = manager.upload(try manager.request(.get, "x"))
        _ = try await task.value
        let all = await lines.close()
        #expect(all.filter { $0.hasPrefix("1") } == ["1 /slow", "1 404", "1 finished"])
        #expect(all.filter { $0.hasPrefix("2") } == ["2 /v1/x", "2 200", "2 finished"])
        let own = await task.events.reduce(into: [Int]()) { numbers, event in
            if case .exchange(let number, .head) = event { numbers.append(number) }
        }
        #expect(own == [2, 1])
    }

    @Test func `a failed request ends with its error`() async throws {
        let manager = SessionManager(on: MockTransport(.failure(Planned(number: 4)))) {
            $0.eventMonitors = [Log(lines: lines)]
        }
        _ = try? await manager.get("x")
        #expect(
            await lines.close() == [
                "began", "sends GET http://a.example/v1/x", "exchange finished", "failed: Planned",
            ])
    }

    @Test func `all monitors receive each event, in order, and so does the caller's sink`() async throws {
        let recorder = EventRecorder()
        let manager = SessionManager(on: MockTransport(.status(.noContent))) {
            $0.eventMonitors = [Log(name: "1 ", lines: lines), Log(name: "2 ", lines: lines)]
        }
        try await manager.withResponse(for: manager.request(.get, "x"), reporting: recorder) { _, _ in }
        let sent = "sends GET http://a.example/v1/x"
        let all = await lines.close()
        #expect(all.prefix(4) == ["1 began", "2 began", "1 \(sent)", "2 \(sent)"])
        #expect(all.suffix(2) == ["1 ended with 204", "2 ended with 204"])
        #expect(recorder.events.count == 3)
    }

    @Test func `events identify their request by its task`() async throws {
        struct Numbers: EventMonitor {
            let lines: Lines

            func receive(_ event: TaskEvent, of task: AnySessionTask) {
                guard case .began = event else { return }
                lines.append("\(task.id) \(task.kind) \(task.request?.url.lastPathComponent ?? "")")
            }
        }
        let manager = SessionManager(on: MockTransport(.text("x"))) { $0.eventMonitors = [Numbers(lines: lines)] }
        _ = try await manager.get("one")
        try await manager.withResponse(for: manager.request(.get, "two")) { _, _ in }
        let all = await lines.close().map { $0.split(separator: " ", maxSplits: 1) }
        #expect(all.map(\.last) == ["data one", "stream two"])
        // The identifiers are unique within the process, which runs other tests as well.
        let ids = try all.map { try #require(UInt64($0[0])) }
        #expect(ids[0] < ids[1])
    }

    @Test func `a task reports the same events, and ends once, with the outcome of its serializer`() async throws {
        let transport = MockTransport(.redirect(.found, to: "/b"), .json("{"))
        let manager = SessionManager(on: transport) { $0.eventMonitors = [Log(lines: lines)] }
        let task = manager.upload(try manager.request(.put, "a", body: .string("x")), as: .json)
        _ = try? await task.value
        let observed = await lines.close().filter { !$0.hasSuffix("bytes") }
        let read = await task.events.reduce(into: [String]()) { $0.append("\($1)") }
        #expect(observed.first == "began")
        #expect(observed.last?.hasPrefix("failed: ") == true)
        #expect(observed.count { $0.hasPrefix("ended") || $0.hasPrefix("failed") } == 1)
        let own = ["created", "resumed", "has "]
        let shared = read.filter { line in !own.contains { line.hasPrefix($0) } }
        #expect(shared.map { $0.prefix(17) } == observed.map { $0.prefix(17) })
        #expect(read.prefix(2) == ["created", "resumed"])
        #expect(read.contains { $0.hasPrefix("is redirected by 302") })
    }

    @Test func `a task that has ended does not keep the monitors`() async throws {
        final class Keeper: EventMonitor {
            let tasks = Lock([AnySessionTask]())

            func receive(_ event: TaskEvent, of task: AnySessionTask) { tasks.withLock { $0.append(task) } }
        }
        weak var kept: Keeper?
        do {
            let keeper = Keeper()
            kept = keeper
            let manager = SessionManager(on: MockTransport(.text("x"))) { $0.eventMonitors = [keeper] }
            _ = try await manager.upload(try manager.request(.get, "x")).value
            #expect(!keeper.tasks.withLock(\.isEmpty))
        }
        try await eventually { kept == nil }
    }

    @Test func `monitors do not see a task that never ran`() async throws {
        let manager = SessionManager(on: MockTransport(.text("x"))) { $0.eventMonitors = [Log(lines: lines)] }
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        task.cancel()
        _ = try? await task.value
        #expect(await lines.close().isEmpty)
    }

    @Test func `over a real connection the events have the same order`() async throws {
        try await StubServer.with { server in
            server.route("/a", .redirect(302, to: "/b"))
            server.route("/b", .text("end"))
            let manager = SessionManager(for: server) { $0.eventMonitors = [Log(lines: lines)] }
            _ = try await manager.get("a")
            let origin = "http://127.0.0.1:\(server.endpoint.port)"
            // The number of progress events depends on timing.
            let all = await lines.close().filter { !$0.hasSuffix("bytes") }
            #expect(
                all == [
                    "began",
                    "sends GET \(origin)/a", "received 302 over HTTP/1.1", "exchange finished",
                    "is redirected by 302 to GET \(origin)/b",
                    "sends GET \(origin)/b", "received 200 over HTTP/1.1", "exchange finished",
                    "ended with 200",
                ])
        }
    }
}
