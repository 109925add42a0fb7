// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

extension TaskEvent {
    /// A short name of the event.
    var words: String {
        switch self {
        case .created: "created"
        case .resumed: "resumed"
        case .suspended: "suspended"
        case .cancelled: "cancelled"
        case .exchange(_, .started(let request)): "request \(request.url.lastPathComponent)"
        case .exchange(_, .informational(let head)): "informational \(head.status.code)"
        case .exchange(_, .head): "head"
        case .exchange(_, .finished): "metrics"
        case .response(let head): "response \(head.status.code)"
        case .continued(let offset, let total): "continued \(offset) of \(total.map(String.init) ?? "?")"
        case .uploadProgress, .downloadProgress: "progress"
        case .redirected(let head, _): "redirected \(head.status.code)"
        case .exchange, .omittingLastEventID, .refreshingToken, .answeringChallenge, .waitingForConnectivity, .retrying:
            "\(self)"
        case .began: "began"
        case .ended(.succeeded, _): "succeeded"
        case .ended(.failed, _): "failed"
        case .ended(.cancelled, _): "was cancelled"
        @unknown default: "?"
        }
    }
}

extension AnySessionTask {
    /// The short names of all events except for those of progress, whose number depends on timing, and those that precede
    /// a request and a response.
    var allEvents: [String] {
        get async {
            let all = await events.reduce(into: []) { $0.append($1.words) }
            return all.filter { !["progress", "began", "head"].contains($0) }
        }
    }
}

extension SessionTask {
    /// The short names of all events.
    var allEvents: [String] { get async { await erased.allEvents } }

    /// Waits until the task has a state.
    func reaches(_ state: TaskState) async throws {
        try await eventually { erased.status.state == state }
    }
}

@Suite(.timeLimit(.minutes(5))) struct SessionTaskTests {
    private let transport = MockTransport(.text("x"))

    /// A response of three chunks, with gates before the second and the third.
    private static func gated(_ first: ScriptGate, _ second: ScriptGate) -> MockResponse {
        MockResponse([
            .head(.ok, [.contentLength: "3"]), .chunk(Data("a".utf8)), .wait(first), .chunk(Data("b".utf8)),
            .wait(second), .chunk(Data("c".utf8)),
        ])
    }

    @Test func `a new task sends nothing before it is resumed`() async throws {
        let manager = SessionManager(on: transport)
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        #expect(task.status.state == .suspended)
        #expect(manager.tasks.map(\.id) == [task.id])
        // Another task, created later, is performed in the meantime.
        _ = try await manager.get("other")
        #expect(transport.requests.map(\.request.url.lastPathComponent) == ["other"])
        task.resume()
        #expect(try await task.value.text == "x")
        #expect(transport.requests.count == 2)
        #expect(task.status.state == .finished)
        #expect(manager.tasks.isEmpty)
    }

    @Test func `events are received in order from the first one on, also by late readers`() async throws {
        let transport = MockTransport { request in
            request.url.lastPathComponent == "a"
                ? .redirect(.found, to: "b") : .text("x").informational(.init(code: 103))
        }
        let manager = SessionManager(on: transport)
        let task = try manager.makeDataTask(for: manager.request(.get, "a"))
        async let early = task.allEvents
        task.resume()
        _ = try await task.value
        let expected = [
            "created", "resumed", "request a", "metrics", "redirected 302", "request b", "informational 103",
            "response 200", "metrics", "succeeded",
        ]
        #expect(await early == expected)
        #expect(await task.allEvents == expected)
    }

    @Test func `progress is among the events, in its place, and late readers receive only the latest`() async throws {
        let gates = [try ScriptGate(), try ScriptGate()]
        let manager = SessionManager(on: MockTransport(Self.gated(gates[0], gates[1])))
        let task = try manager.makeDataTask(for: manager.request(.post, "x", body: .string("12345")))
        task.resume()
        var received: [TaskEvent] = []
        for await event in task.events {
            received.append(event)
            guard case .downloadProgress(let progress) = event, progress.completedBytes < 3 else { continue }
            gates[Int(progress.completedBytes) - 1].open()
        }
        let counts = received.compactMap {
            if case .downloadProgress(let progress) = $0 { progress.completedBytes } else { nil }
        }
        #expect(counts == [1, 2, 3])
        let late = await task.events.reduce(into: []) { $0.append($1.words) }
        #expect(
            late == [
                "created", "resumed", "began", "request x", "progress", "head", "response 200", "progress", "metrics",
                "succeeded",
            ])
    }

    @Test func `only changes of state are events`() async throws {
        let manager = SessionManager(on: MockTransport(.hang))
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        task.suspend()
        task.resume()
        task.resume()
        task.suspend()
        task.suspend()
        task.cancel()
        task.cancel()
        task.resume()
        await #expect(throws: CancellationError.self) { try await task.value }
        let events = await task.allEvents.filter { !$0.hasPrefix("request") && $0 != "metrics" }
        #expect(events == ["created", "resumed", "suspended", "cancelled", "was cancelled"])
    }

    @Test func `a task that is suspended often does not keep all of its events`() async throws {
        let manager = SessionManager(on: MockTransport(.hang))
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        for _ in 0..<1_000 {
            task.resume()
            task.suspend()
        }
        task.cancel()
        let events = await task.events.reduce(into: []) { $0.append($1) }
        #expect(events.count < 600)
        guard case .created? = events.first, case .ended? = events.last else { throw Planned() }
    }

    @Test func `a suspended task stops reading, and continues where it was`() async throws {
        let gates = [try ScriptGate(), try ScriptGate()]
        let manager = SessionManager(on: MockTransport(Self.gated(gates[0], gates[1])))
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        task.resume()
        for await progress in task.downloadProgress where progress.completedBytes == 1 { break }
        task.suspend()
        #expect(task.status.state == .suspended)
        for gate in gates { gate.open() }
        // Other tasks run, but the suspended one does not.
        for _ in 0..<100 { await Task.yield() }
        #expect(task.status.outcome == nil)
        #expect(task.status.downloadProgress?.completedBytes ?? 0 < 3)
        task.resume()
        #expect(try await task.value.text == "abc")
    }

    @Test(arguments: [false, true])
    func `a suspended task does not end by a response without content`(isDownload: Bool) async throws {
        let (gate, directory) = (try ScriptGate(), try TemporaryDirectory())
        let transport = MockTransport(MockResponse([.wait(gate), .head(.noContent)]))
        let manager = SessionManager(on: transport)
        let request = try manager.request(.get, "x")
        let file = manager.makeDownloadTask(for: request, to: .file(directory.path + "/x"))
        let data = manager.makeDataTask(for: request)
        let task = isDownload ? file.erased : data.erased
        task.resume()
        try await transport.requests(count: 1)
        task.suspend()
        gate.open()
        for await case .response in task.events { break }
        // Other tasks end meanwhile.
        for _ in 0..<20 { _ = try await manager.data(for: request) }
        #expect(task.status.state == .suspended)
        task.resume()
        if isDownload { _ = try await file.value } else { #expect(try await data.value.statusCode == 204) }
    }

    @Test func `the status is a snapshot`() async throws {
        let gates = [try ScriptGate(), try ScriptGate()]
        let manager = SessionManager(on: MockTransport(Self.gated(gates[0], gates[1])))
        let request = try manager.request(.post, "x", body: .string("12345"))
        let task = manager.makeDataTask(for: request)
        #expect(task.status.response == nil)
        task.resume()
        #expect(try await task.response.status == .ok)
        for await progress in task.downloadProgress where progress.completedBytes == 1 { break }
        let status = task.status
        #expect(status.state == .running)
        #expect(status.response?.status == .ok)
        #expect(status.uploadProgress?.counts == TransferProgress(completedBytes: 5, totalBytes: 5))
        #expect(status.downloadProgress?.counts == TransferProgress(completedBytes: 1, totalBytes: 3))
        #expect(status.outcome == nil)
        for gate in gates { gate.open() }
        _ = try await task.value
        #expect(task.status.downloadProgress?.counts == TransferProgress(completedBytes: 3, totalBytes: 3))
        guard case .succeeded = task.status.outcome else { throw Planned() }
    }

    @Test func `a body that an interceptor wraps has progress`() async throws {
        struct Wrapped: ResponseBodySource {
            let base: ResponseBody

            func next() async throws -> Data? {
                var iterator = base.makeAsyncIterator()
                return try await iterator.next()
            }
            var ending: ResponseEnding? { base.ending }
            func close() async { await base.close() }
        }
        let gates = [try ScriptGate(), try ScriptGate()]
        let manager = SessionManager(on: MockTransport(Self.gated(gates[0], gates[1]))) {
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    let response = try await next(request)
                    return OpenResponse(head: response.head, body: ResponseBody(source: Wrapped(base: response.body)))
                }
            ]
        }
        let task = manager.makeDataTask(for: try manager.request(.get, "x"))
        task.resume()
        defer { for gate in gates { gate.open() } }
        try await eventually { task.status.downloadProgress?.completedBytes == 1 }
    }

    @Test func `the response is available before the value, or throws its error`() async throws {
        let manager = SessionManager(on: MockTransport(MockResponse([.head(.created), .hang])))
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        task.resume()
        #expect(try await task.response.status == .created)
        task.cancel()
        let failing = try SessionManager(on: MockTransport(.failure(Planned(number: 3))))
            .makeDataTask(for: manager.request(.get, "x"))
        failing.resume()
        await #expect(throws: Planned(number: 3)) { try await failing.response }
        guard case .failed(let error) = failing.status.outcome else { throw Planned() }
        #expect(error as? Planned == Planned(number: 3))
    }

    @Test func `cancelling a Swift task that awaits the response does not cancel the transfer`() async throws {
        let gate = try ScriptGate()
        let manager = SessionManager(on: MockTransport(MockResponse([.wait(gate), .head(.ok)])))
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        task.resume()
        let reader = Task.immediate { try await task.response }
        reader.cancel()
        await #expect(throws: CancellationError.self) { try await reader.value }
        gate.open()
        #expect(try await task.value.statusCode == 200)
    }

    @Test func `a serializer creates the value, and a rejected status is an error`() async throws {
        let manager = SessionManager(on: MockTransport(.json(#"{"a": 1}"#), .json("{}", status: .notFound)))
        let request = try manager.request(.get, "x")
        let first = manager.makeDataTask(for: request, as: .decodable([String: Int].self))
        first.resume()
        #expect(try await first.value.value == ["a": 1])
        let second = manager.makeDataTask(for: request, as: .decodable([String: Int].self))
        second.resume()
        let error = try await sessionError { _ = try await second.value }
        #expect(error.statusCode == 404)
        #expect(error.responseBody == Data("{}".utf8))
    }

    @Test(arguments: [["1234"], ["12", "34"], ["12345"], ["1234", "5"]])
    func `a body above the limit is an error, a body of exactly the limit is not`(chunks: [String]) async throws {
        let response = MockResponse(chunks: chunks.map { Data($0.utf8) })
        let manager = SessionManager(on: MockTransport(response)) { $0.maximumBodySize = 4 }
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        task.resume()
        guard chunks.joined().count > 4 else {
            #expect(try await task.value.text == "1234")
            return
        }
        let error = try await sessionError { _ = try await task.value }
        guard case .responseTooLarge(.body(limit: 4)) = error.reason else { throw error }
    }

    @Test func `label, tags and priority can be set`() async throws {
        let manager = SessionManager(on: transport)
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        #expect(task.label == nil)
        #expect(task.tags.isEmpty)
        #expect(task.priority == .normal)
        task.label = "portrait"
        task.tags.insert("images")
        task.priority = .high
        let found = try #require(manager.taskGroup(tagged: "images").tasks.first)
        #expect(found.id == task.id)
        #expect(found.label == "portrait")
        #expect(found.priority == .high)
        #expect(found.kind == .data)
        #expect(found.request?.url.lastPathComponent == "x")
        #expect(manager.taskGroup(tagged: "other").tasks.isEmpty)
    }

    @Test func `releasing a task that was never started ends it, and releasing a running one does not`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport(MockResponse([.wait(gate), .head(.ok)]))
        let manager = SessionManager(on: transport)
        do { _ = try manager.makeDataTask(for: manager.request(.get, "dropped")) }
        try await eventually { manager.tasks.isEmpty }
        do { try manager.makeDataTask(for: manager.request(.get, "running")).resume() }
        try await transport.requests(count: 1)
        #expect(manager.tasks.count == 1)
        let found = try #require(manager.taskGroup().tasks.first)
        gate.open()
        #expect(await found.allEvents.last == "succeeded")
    }

    @Test func `an invalidated manager creates tasks that fail at once`() async throws {
        let manager = SessionManager(on: transport)
        await manager.invalidate(cancellingTasks: false)
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        #expect(try await sessionError { _ = try await task.value }.isInvalidated)
        #expect(manager.tasks.isEmpty)
    }

    @Test func `invalidating lets tasks finish, including those not started, or cancels them all`() async throws {
        let manager = SessionManager(on: transport)
        let patient = try manager.makeDataTask(for: manager.request(.get, "x"))
        await manager.invalidate(cancellingTasks: false)
        #expect(patient.status.state == .suspended)
        patient.resume()
        #expect(try await patient.value.text == "x")

        let other = SessionManager(on: MockTransport(.hang))
        let made = try other.makeDataTask(for: other.request(.get, "made"))
        let running = try other.makeDataTask(for: other.request(.get, "running"))
        running.resume()
        await other.invalidate(cancellingTasks: true)
        await #expect(throws: CancellationError.self) { try await made.value }
        await #expect(throws: CancellationError.self) { try await running.value }
        #expect(other.tasks.isEmpty)
    }

    @Test func `shutting down cancels suspended tasks, which would never end`() async throws {
        let manager = SessionManager(on: transport)
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        await manager.shutdown()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `requests of async functions are listed, but only their callers control them`() async throws {
        let transport = MockTransport(.hang)
        let manager = SessionManager(on: transport)
        let function = Task { try await manager.get("x") }
        try await transport.requests(count: 1)
        let task = try manager.makeDataTask(for: manager.request(.get, "y"))
        #expect(manager.tasks.map(\.kind) == [.data, .data])
        let listed = try #require(manager.tasks.first)
        #expect(listed.request?.url.lastPathComponent == "x")
        listed.suspend()
        listed.cancel()
        listed.label = "x"
        #expect(listed.status.state == .running)
        #expect(listed.label == nil)
        #expect(await listed.allEvents.isEmpty)
        #expect(manager.taskGroup().tasks == [task.erased])
        function.cancel()
        await #expect(throws: CancellationError.self) { try await function.value }
    }

    @Test func `tasks work on libcurl as they do on a mock`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route(
                "/x",
                Script([
                    .reply(Reply(framing: .contentLength(declared: 2_000_000))), .generate(1_000_000),
                    .wait(gate), .generate(1_000_000),
                ]))
            let manager = SessionManager(for: server)
            let task = try manager.makeDataTask(for: manager.request(.get, "x"))
            task.resume()
            for await progress in task.downloadProgress where progress.completedBytes > 0 { break }
            task.suspend()
            gate.open()
            for _ in 0..<100 { await Task.yield() }
            #expect(task.status.outcome == nil)
            task.resume()
            let bytes = try await task.value.value
            #expect(bytes.count == 2_000_000)
        }
    }

    @Test func `a task that has ended is freed with the body of its request`() async throws {
        final class Chunk: Sendable {}
        weak var chunk: Chunk?
        do {
            let first = Chunk()
            chunk = first
            let body = RequestBody.writer(length: 300_000) { [first] writer in
                try await writer.write(Data(count: 300_000))
                withExtendedLifetime(first) {}
            }
            let manager = SessionManager(on: MockTransport(.text("abc")))
            _ = try await manager.upload("up", body: body).value
        }
        try await eventually { chunk == nil }
    }

    @Test func `a task that ended before it could be stopped does not keep its work`() async throws {
        final class Value: Sendable {}
        let manager = SessionManager(on: MockTransport(.text("abc")))
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        task.resume()
        _ = try await task.value
        weak var value: Value?
        do {
            let work = Value()
            value = work
            task.core.begin { _ = work }
        }
        #expect(value == nil)
    }
}

@Suite(.timeLimit(.minutes(5))) struct ConcurrentTransfersTests {
    /// A manager that runs two tasks concurrently, whose requests wait for the gate.
    private func manager(on gate: ScriptGate, limit: Int? = 2) -> (SessionManager, MockTransport) {
        let transport = MockTransport(MockResponse([.wait(gate), .head(.ok)]))
        return (SessionManager(on: transport) { $0.maximumConcurrentTasks = limit }, transport)
    }

    private func tasks(_ names: [String], of manager: SessionManager) throws -> [DataTask] {
        try names.map { try manager.makeDataTask(for: manager.request(.get, $0)) }
    }

    @Test func `a group of tasks keeps them`() async throws {
        let transport = MockTransport(.text("x"))
        let manager = SessionManager(on: transport)
        func group() throws -> SessionTaskGroup { SessionTaskGroup(try tasks(["a", "b"], of: manager)) }
        let group = try group()
        group.resume()
        try await group.waitForAll()
        #expect(transport.requests.count == 2)
    }

    /// The body is larger than what the system takes before the server reads.
    @Test(arguments: [TaskKind.upload, .data])
    func `a task sends its whole body to a server that answers at once and reads on`(kind: TaskKind) async throws {
        let body = RequestBody.bytes(StubServer.generatedBytes(8_000_000))
        try await StubServer.with { server in
            server.route("/", Script([.reply(Reply(body: .string("early"))), .readBody()], readsBodyFirst: false))
            let manager = SessionManager(for: server)
            if kind == .upload {
                #expect(try await manager.upload("", body: body).value.text == "early")
            } else {
                let task = try manager.makeDataTask(for: manager.request(.post, "", body: body))
                task.resume()
                #expect(try await task.value.text == "early")
            }
            try await server.activity { $0.requests.first?.isComplete == true }
            #expect(server.activity.requests.map(\.bodyLength) == [8_000_000])
        }
    }

    @Test func `the observers of a group end with their reader`() async throws {
        let manager = SessionManager(on: MockTransport(.hang))
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        let group = SessionTaskGroup([task])
        let core = try #require(group.tasks.first?.core)
        let before = core.observerCount
        for _ in 0..<1_000 { _ = group.progress }
        let progress = group.progress
        #expect(core.observerCount == before + 1)
        withExtendedLifetime(progress) {}
        task.cancel()
    }

    @Test func `at most the limit of tasks run, and the others wait in order`() async throws {
        let gate = try ScriptGate()
        let (manager, transport) = manager(on: gate)
        let tasks = try tasks(["a", "b", "c", "d"], of: manager)
        SessionTaskGroup(tasks).resume()
        #expect(tasks.map(\.status.state) == [.running, .running, .waiting, .waiting])
        try await transport.requests(count: 2)
        gate.open()
        try await SessionTaskGroup(tasks).waitForAll()
        let names = transport.requests.map(\.request.url.lastPathComponent)
        #expect(Set(names[..<2]) == ["a", "b"])
        #expect(Set(names[2...]) == ["c", "d"])
    }

    @Test func `a higher priority runs first, also if it is raised later`() async throws {
        let gate = try ScriptGate()
        let (manager, transport) = manager(on: gate, limit: 1)
        let tasks = try tasks(["first", "low", "normal", "raised"], of: manager)
        tasks[1].priority = .low
        SessionTaskGroup(tasks).resume()
        tasks[3].priority = .high
        gate.open()
        try await SessionTaskGroup(tasks).waitForAll()
        #expect(transport.requests.map(\.request.url.lastPathComponent) == ["first", "raised", "normal", "low"])
    }

    @Test func `suspending and cancelling release the slot`() async throws {
        let gate = try ScriptGate()
        let (manager, _) = manager(on: gate, limit: 1)
        let tasks = try tasks(["a", "b", "c"], of: manager)
        SessionTaskGroup(tasks).resume()
        _ = await tasks[0].events.first { if case .exchange(_, .started) = $0 { true } else { false } }
        tasks[0].suspend()
        #expect(tasks.map(\.status.state) == [.suspended, .running, .waiting])
        tasks[0].resume()
        #expect(tasks.map(\.status.state) == [.running, .running, .waiting])
        tasks[1].cancel()
        _ = try? await tasks[1].value
        #expect(tasks.map(\.status.state) == [.running, .finished, .waiting])
        tasks[0].suspend()
        #expect(tasks.map(\.status.state) == [.suspended, .finished, .running])
        tasks[0].resume()
        gate.open()
        try await SessionTaskGroup(tasks).waitForAll()
        #expect(try await tasks[0].value.statusCode == 200)
    }

    /// Its work goes on between the two slots, in an interceptor.
    @Test func `a task that waits takes a slot when its exchange begins`() async throws {
        let (opens, continuation) = AsyncStream<Void>.makeStream()
        let manager = SessionManager(on: MockTransport(.hang)) {
            $0.maximumConcurrentTasks = 1
            $0.interceptors = [
                Intercepting { request, next in
                    if request.url.lastPathComponent == "a" { for await _ in opens { break } }
                    return try await next(request)
                }
            ]
        }
        let tasks = try tasks(["a", "b"], of: manager)
        tasks[0].resume()
        _ = await tasks[0].events.first { if case .began = $0 { true } else { false } }
        tasks[0].suspend()
        tasks[1].resume()
        tasks[0].resume()
        #expect(tasks.map(\.status.state) == [.waiting, .running])
        continuation.yield()
        _ = await tasks[0].events.first { if case .exchange(_, .started) = $0 { true } else { false } }
        try await eventually { tasks.map(\.status.state) == [.running, .running] }
        SessionTaskGroup(tasks).cancel()
        for task in tasks { _ = try? await task.value }
        #expect(tasks.map(\.status.state) == [.finished, .finished])
    }

    @Test func `a group that is suspended and resumed keeps the limit`() async throws {
        let gate = try ScriptGate()
        let (manager, _) = manager(on: gate, limit: 4)
        let tasks = try tasks((0..<100).map { "\($0)" }, of: manager)
        let group = SessionTaskGroup(tasks)
        for _ in 0..<3 {
            group.resume()
            #expect(tasks.count { $0.status.state == .running } == 4)
            group.suspend()
            #expect(tasks.allSatisfy { $0.status.state == .suspended })
        }
        group.resume()
        gate.open()
        try await group.waitForAll()
    }

    /// The task that runs in place of the suspended one waits for its connection.
    @Test(.timeLimit(.minutes(2)))
    func `a task that is resumed does not wait for those that wait for its connection`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in Script([.reply(Reply(body: .generated(4 << 20)))]) }
            let manager = SessionManager {
                $0.baseURL = server.url("")
                $0.maximumConcurrentTasks = 1
                $0.connectionLimits.maximumConnectionsPerHost = 1
            }
            let tasks = try ["a", "b"].map { try manager.makeDataTask(for: manager.request(.get, $0)) }
            tasks[0].resume()
            for await progress in tasks[0].downloadProgress where progress.completedBytes > 0 { break }
            tasks[0].suspend()
            tasks[1].resume()
            #expect(tasks.map(\.status.state) == [.suspended, .running])
            tasks[0].resume()
            for task in tasks { #expect(try await task.value.value.count == 4 << 20) }
        }
    }

    @Test(arguments: ["interceptor", "redirect", "challenge", "retry", "body"])
    func `a task that a closure of a running one starts does not wait for its slot`(closure: String) async throws {
        let session = Lock<SessionManager?>(nil)
        defer { session.set(\.self, to: nil) }
        let transport = MockTransport { request in
            switch request.url.lastPathComponent {
            case "inner": .text("inner")
            case "redirect": .redirect(.found, to: "next")
            case "challenge": .status(.unauthorized, headers: [.wwwAuthenticate: #"Basic realm="a""#])
            case "retry": .status(.serviceUnavailable)
            default: .text("outer")
            }
        }
        @Sendable func runInner() async throws {
            let manager = try #require(session.withLock { $0 })
            #expect(try await manager.upload("inner", body: .string("a")).value.text == "inner")
        }
        let manager = SessionManager(on: transport) {
            $0.maximumConcurrentTasks = 1
            $0.interceptors = [
                Intercepting { request, next in
                    if request.url.lastPathComponent == "interceptor" { try await runInner() }
                    return try await next(request)
                }
            ]
            $0.redirectPolicy.decision = { _ in
                try await runInner()
                return nil
            }
            $0.authentication.challengeHandler = { _ in
                try await runInner()
                return .performDefaultHandling
            }
            $0.retryPolicy = RetryPolicy(limit: 1).with {
                $0.decision = { context in
                    if context.request.url.lastPathComponent == "retry" { try await runInner() }
                    return .stop
                }
            }
        }
        session.set(\.self, to: manager)
        let body = RequestBody.writer { writer in
            if closure == "body" { try await runInner() }
            try await writer.write(Data("a".utf8))
        }
        let task = try manager.makeDataTask(for: manager.request(.post, closure, body: body))
        task.resume()
        try await task.reaches(.finished)
        #expect(transport.requests.count { $0.request.url.lastPathComponent == "inner" } == 1)
    }

    @Test func `a task that a closure starts waits for a slot of another session, and after the end of its own task`()
        async throws
    {
        let gates = [try ScriptGate(), try ScriptGate()]
        let (other, _) = manager(on: gates[0], limit: 1)
        let blocking = other.upload("x", body: .string("a"))
        let session = Lock<SessionManager?>(nil)
        defer { session.set(\.self, to: nil) }
        let (early, late) = (Lock<UploadTask?>(nil), Lock<Task<UploadTask?, any Error>?>(nil))
        let transport = MockTransport { request in
            request.url.lastPathComponent == "blocking" ? MockResponse([.wait(gates[0]), .head(.ok)]) : .text("end")
        }
        let manager = SessionManager(on: transport) {
            $0.maximumConcurrentTasks = 1
            $0.interceptors = [
                Intercepting { request, next in
                    if request.url.lastPathComponent == "first" {
                        early.set(\.self, to: other.upload("early", body: .string("a")))
                        let left = Task {
                            try await gates[1].wait()
                            return session.withLock(\.self)?.upload("late", body: .string("a"))
                        }
                        late.set(\.self, to: left)
                    }
                    return try await next(request)
                }
            ]
        }
        session.set(\.self, to: manager)
        _ = try await manager.upload("first", body: .string("a")).value
        let second = manager.upload("blocking", body: .string("a"))
        gates[1].open()
        let tasks = [early.withLock(\.self), try await late.withLock(\.self)?.value]
        #expect(tasks.map { $0?.status.state } == [.waiting, .waiting])
        gates[0].open()
        for task in [blocking, second] + tasks.compactMap(\.self) { _ = try await task.value }
    }

    @Test func `two sessions whose closures wait for tasks of each other do not wait for slots of each other`()
        async throws
    {
        let sessions = Lock<[SessionManager]>([])
        defer { sessions.set(\.self, to: []) }
        let running = Lock(0)
        let made = (0...1).map { number in
            SessionManager(on: MockTransport(.text("end"))) {
                $0.maximumConcurrentTasks = 1
                $0.interceptors = [
                    Intercepting { request, next in
                        if request.url.lastPathComponent == "outer" {
                            running.withLock { $0 += 1 }
                            try await eventually { running.withLock(\.self) == 2 }
                            let other = sessions.withLock { $0[1 - number] }
                            _ = try await other.upload("inner", body: .string("a")).value
                        }
                        return try await next(request)
                    }
                ]
            }
        }
        sessions.set(\.self, to: made)
        let tasks = made.map { $0.upload("outer", body: .string("a")) }
        for task in tasks { #expect(try await task.value.statusCode == 200) }
    }

    @Test func `a task takes no slot where it is resumed by a closure, not where it was made`() async throws {
        let made = Lock<[DataTask]>([])
        let session = Lock<SessionManager?>(nil)
        defer { session.set(\.self, to: nil) }
        let gate = try ScriptGate()
        let transport = MockTransport { request in
            request.url.lastPathComponent == "outer" ? .text("end") : MockResponse([.wait(gate), .head(.ok)])
        }
        let manager = SessionManager(on: transport) {
            $0.maximumConcurrentTasks = 1
            $0.interceptors = [
                Intercepting { request, next in
                    if request.url.lastPathComponent == "outer", let session = session.withLock(\.self) {
                        let tasks = try ["a", "b"].map { try session.makeDataTask(for: session.request(.get, $0)) }
                        made.set(\.self, to: tasks)
                    }
                    return try await next(request)
                }
            ]
        }
        session.set(\.self, to: manager)
        let outer = try manager.makeDataTask(for: manager.request(.get, "outer"))
        outer.resume()
        _ = try await outer.value
        let tasks = made.withLock(\.self)
        for task in tasks { task.resume() }
        #expect(tasks.map(\.status.state) == [.running, .waiting])
        gate.open()
        for task in tasks { _ = try await task.value }
    }

    @Test func `without a limit, all tasks run`() async throws {
        let gate = try ScriptGate()
        let (manager, transport) = manager(on: gate, limit: nil)
        let tasks = try tasks((0..<50).map(String.init), of: manager)
        SessionTaskGroup(tasks).resume()
        try await transport.requests(count: 50)
        gate.open()
        try await SessionTaskGroup(tasks).waitForAll()
    }
}

@Suite(.timeLimit(.minutes(5))) struct SessionTaskGroupTests {
    @Test func `waiting ends when all tasks have ended, with any outcome`() async throws {
        let manager = SessionManager(
            on: MockTransport { $0.url.lastPathComponent == "bad" ? .failure(Planned()) : .text("x") })
        let good = manager.upload("good", body: .string("a"))
        let bad = manager.upload("bad", body: .string("a"))
        let cancelled = try manager.makeDataTask(for: manager.request(.get, "x"))
        cancelled.cancel()
        try await SessionTaskGroup([good, bad, cancelled]).waitForAll()
        for task in [good, bad, cancelled] { #expect(task.status.state == .finished) }
        try await SessionTaskGroup([AnySessionTask]()).waitForAll()
    }

    @Test func `a waiter that is cancelled returns, and the tasks continue`() async throws {
        let gate = try ScriptGate()
        let manager = SessionManager(on: MockTransport(MockResponse([.wait(gate), .head(.ok)])))
        let task = manager.upload("x", body: .string("a"))
        let waiter = Task.immediate { try await SessionTaskGroup([task]).waitForAll() }
        waiter.cancel()
        await #expect(throws: CancellationError.self) { try await waiter.value }
        #expect(task.status.state == .running)
        gate.open()
        _ = try await task.value
    }

    @Test func `a task without its value keeps the task`() async throws {
        let manager = SessionManager(on: MockTransport(.text("12345")))
        let group = try SessionTaskGroup(
            ["a", "b"].map { manager.makeDataTask(for: try manager.request(.get, $0)).erased })
        #expect(group.tasks.allSatisfy { $0.status.state == .suspended })
        group.resume()
        try await group.waitForAll()
        for task in group.tasks {
            guard case .succeeded = task.status.outcome else { throw Planned() }
        }
        // Released with the last one that keeps it.
        let tasks = [try manager.makeDataTask(for: manager.request(.get, "c")).erased]
        #expect(manager.tasks.count == 1)
        _ = consume tasks
        try await eventually { manager.tasks.isEmpty }
    }

    @Test func `tasks are cancelled by tag or by predicate, and no others`() async throws {
        let transport = MockTransport(.hang)
        let manager = SessionManager(on: transport)
        var tasks: [String: UploadTask] = [:]
        for name in ["a1", "a2", "b1"] {
            let task = manager.upload(name, body: .string("x"))
            task.tags = [String(name.prefix(1))]
            tasks[name] = task
        }
        manager.taskGroup(tagged: "a").cancel()
        for name in ["a1", "a2"] { await #expect(throws: CancellationError.self) { try await tasks[name]?.value } }
        #expect(tasks["b1"]?.status.state == .running)
        manager.taskGroup { $0.request?.url.lastPathComponent == "b1" }.cancel()
        await #expect(throws: CancellationError.self) { try await tasks["b1"]?.value }
    }

    @Test func `progress is the sum, in each task's direction, and ends with the last task`() async throws {
        let directory = try TemporaryDirectory()
        let manager = SessionManager(on: MockTransport(.text("12345")))
        let download = try manager.makeDownloadTask(for: manager.request(.get, "x"), to: "\(directory.path)/file")
        let upload = try manager.makeUploadTask(for: manager.request(.post, "x", body: .string("abc")))
        let group = SessionTaskGroup([download.erased, upload.erased])
        let progress = group.progress
        group.resume()
        let values = await progress.reduce(into: []) { $0.append($1) }
        #expect(values.last?.counts == TransferProgress(completedBytes: 8, totalBytes: 8))
        #expect(zip(values, values.dropFirst()).allSatisfy { $0.completedBytes <= $1.completedBytes })
        #expect(await group.progress.reduce(nil) { $1 }?.counts == TransferProgress(completedBytes: 8, totalBytes: 8))
        #expect(await SessionTaskGroup([AnySessionTask]()).progress.first { _ in true } == nil)
    }

    @Test func `no progress precedes the first report of a task`() async throws {
        let gate = try ScriptGate()
        let manager = SessionManager(
            on: MockTransport(MockResponse([.wait(gate), .head(.ok), .chunk(Data("abc".utf8))])))
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        let progress = SessionTaskGroup([task]).progress
        let first = Task { await progress.first { _ in true } }
        task.resume()
        task.suspend()
        task.resume()
        for _ in 0..<100 { await Task.yield() }
        gate.open()
        #expect(await first.value?.completedBytes == 3)
    }
}

@Suite(.timeLimit(.minutes(5))) struct ExpectedSizesTests {
    @Test func `a group knows its total before its tasks start if the program gives it`() async throws {
        let directory = try TemporaryDirectory()
        let manager = SessionManager(on: MockTransport(.text("12345")))
        let download = try manager.makeDownloadTask(for: manager.request(.get, "x"), to: "\(directory.path)/file")
        let upload = try manager.makeUploadTask(for: manager.request(.post, "x", body: .string("abc")))
        #expect(upload.expectedBytes == 3)
        download.expectedBytes = 7
        let group = SessionTaskGroup([download.erased, upload.erased])
        #expect(await group.progress.first { _ in true }?.counts == TransferProgress(completedBytes: 0, totalBytes: 10))
        group.resume()
        // What was transferred takes the place of what was expected.
        #expect(await group.progress.reduce(nil) { $1 }?.counts == TransferProgress(completedBytes: 8, totalBytes: 8))
    }

    @Test func `the sizes that are unknown are requested by HEAD`() async throws {
        let directory = try TemporaryDirectory()
        let transport = MockTransport { request in
            switch request.url.lastPathComponent {
            case "missing": .status(.notFound, headers: [.contentLength: "99"])
            case "chunked": .status(.ok)
            case "lost": .failure(Planned())
            default: .status(.ok, headers: [.contentLength: "5000000000"])
            }
        }
        let manager = SessionManager(on: transport)
        let names = ["known", "missing", "chunked", "lost"] + (1...20).map { "file\($0)" }
        let tasks = try names.map { name in
            try manager.makeDownloadTask(for: manager.request(.get, name), to: .file("\(directory.path)/\(name)"))
        }
        tasks[0].expectedBytes = 1
        await manager.requestSizes(of: SessionTaskGroup(tasks))
        #expect(tasks.map(\.expectedBytes) == [1, nil, nil, nil] + Array(repeating: 5_000_000_000, count: 20))
        #expect(transport.requests.allSatisfy { $0.request.method == .head })
        #expect(transport.requests.count == 23)
    }

    @Test func `the size of an async function's request is not requested`() async throws {
        let transport = MockTransport { $0.method == .head ? .status(.ok) : .hang }
        let manager = SessionManager(on: transport)
        try await withThrowingTaskGroup { group in
            group.addTask { _ = try await manager.get("x") }
            try await eventually { !manager.tasks.isEmpty }
            await manager.requestSizes(of: SessionTaskGroup(manager.tasks))
            #expect(transport.requests.allSatisfy { $0.request.method == .get })
            group.cancelAll()
        }
    }

    @Test func `a size that is set while it is requested is kept`() async throws {
        let directory = try TemporaryDirectory()
        let tasks = Lock<[DownloadTask]>([])
        let transport = MockTransport { request in
            tasks.withLock { $0.first { $0.request?.url == request.url }?.expectedBytes = 7 }
            return .status(.ok, headers: request.url.lastPathComponent == "known" ? [.contentLength: "5"] : [:])
        }
        let manager = SessionManager(on: transport)
        let made = try ["known", "unknown"].map { name in
            try manager.makeDownloadTask(for: manager.request(.get, name), to: .file("\(directory.path)/\(name)"))
        }
        tasks.set(\.self, to: made)
        await manager.requestSizes(of: SessionTaskGroup(made))
        #expect(made.map(\.expectedBytes) == [7, 7])
    }
}

@Suite(.timeLimit(.minutes(5))) struct ScopedTransfersTests {
    @Test func `a task that is running at the end of the scope is cancelled, and has ended`() async throws {
        let directory = try TemporaryDirectory()
        let manager = SessionManager(on: MockTransport(.hang))
        let request = try manager.request(.get, "x")
        try await manager.withDownload(request, to: "\(directory.path)/file") { task in
            try await task.reaches(.running)
        }
        #expect(manager.tasks.isEmpty)
        await #expect(throws: Planned(number: 4)) {
            try await manager.withUpload(request) { task in
                try await task.reaches(.running)
                throw Planned(number: 4)
            }
        }
        #expect(manager.tasks.isEmpty)
    }

    @Test func `the scope's value is returned`() async throws {
        let directory = try TemporaryDirectory()
        let manager = SessionManager(on: MockTransport(.text("abc")))
        let request = try manager.request(.get, "x")
        let size = try await manager.withDownload(request, to: "\(directory.path)/file") {
            try await $0.value.size
        }
        #expect(size == 3)
        let text = try await manager.withUpload(request) { try await $0.value.text }
        #expect(text == "abc")
    }

    @Test func `cancelling the Swift task of the scope ends the scope and its download`() async throws {
        let directory = try TemporaryDirectory()
        let transport = MockTransport(.hang)
        let manager = SessionManager(on: transport)
        let request = try manager.request(.get, "x")
        let around = Task {
            try await manager.withDownload(request, to: "\(directory.path)/file") { try await $0.value.size }
        }
        try await transport.requests(count: 1)
        around.cancel()
        await #expect(throws: CancellationError.self) { try await around.value }
        #expect(manager.tasks.isEmpty)
    }
}
