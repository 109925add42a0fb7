// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import Glibc
import TestSupport
import Testing

/// The lifetime of managers, and that each completion handler is called exactly once. Each test that counts resources
/// runs in its own process; one that hangs is terminated by SIGALRM.
@Suite(.timeLimit(.minutes(5))) struct ManagerLifetimeTests {
    /// Slow, because each manager has an engine with a thread of its own, and leaks show only in some hundred of them.
    @Test(.exitTest, arguments: [false, true])
    func `300 managers leak nothing, with and without invalidation`(invalidates: Bool) async {
        if invalidates {
            await #expect(processExitsWith: .success) { try await useManagers(invalidating: true) }
        } else {
            await #expect(processExitsWith: .success) { try await useManagers(invalidating: false) }
        }
    }

    @Test(.exitTest) func `a manager may invalidate its session when it is freed`() async {
        await #expect(processExitsWith: .success) {
            alarm(200)
            try await StubServer.with { server in
                server.route("/", .json("{}"))
                for isUsed in [true, false] { try await free(Leaving(for: server), isUsed: isUsed) }
            }
        }
    }

    @Test func `a manager is freed when its last task has ended`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/", Script([.wait(gate), .reply(Reply(body: .string("{}")))]))
            weak var manager: AFHTTPSessionManager?
            // The result retains the task, which does not retain the manager.
            async let result = { () async -> Callback in
                let made = AFHTTPSessionManager(for: server)
                made.responseSerializer = AFHTTPResponseSerializer()
                manager = made
                return await made.fetch("")
            }()
            try await server.requests(count: 1)
            gate.open()
            #expect(await result.error == nil)
            try await eventually { manager == nil }
            #expect(await result.task?.state == .completed)
        }
    }

    @Test func `a manager that is released while a task runs calls the handler exactly once`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route(
                "/",
                Script([.wait(gate), .reply(Reply(headers: ["Content-Type": "application/json"], body: .string("{}")))])
            )
            let log = Log<String>()
            let result = await callback { done in
                AFHTTPSessionManager(for: server).get(
                    "", parameters: nil, headers: nil, progress: nil,
                    success: { task, object in
                        log.add("success")
                        done(Callback(task: task, object: object))
                    }, failure: { _, _ in log.add("failure") })
                gate.open()
            }
            #expect(result.object is [String: Any])
            _ = await AFHTTPSessionManager(for: server).fetch("")
            #expect(log.entries == ["success"])
        }
    }

    @Test func `each of 2,000 tasks that end in different ways at once calls its handler once`() async throws {
        try await StubServer.with { server in
            server.route("/quick", .json("{}"))
            server.route("/silent", .hang)
            server.route("/reset", .resetAfter(bytes: 60))
            server.route("/redirect", .redirect(302, to: "/quick"))
            let log = Log<Int>()
            let group = DispatchGroup()
            for round in 0..<20 {
                let manager = AFHTTPSessionManager(for: server) { $0.httpMaximumConnectionsPerHost = 20 }
                for number in 0..<100 {
                    group.enter()
                    let path = ["quick", "silent", "reset", "redirect"][number % 4]
                    let task = manager.dataTask(with: URLRequest(url: server.url("/" + path))) { _, _, _ in
                        log.add(round * 100 + number)
                        group.leave()
                    }
                    if number % 7 != 0 { task.resume() }
                    if number % 3 == 0 { task.suspend() }
                    if number % 5 == 0 { DispatchQueue.global().async { task.cancel() } }
                    if number % 3 == 0 { task.resume() }
                    if number % 7 == 0 { DispatchQueue.global().async { task.cancel() } }
                }
                manager.invalidateSessionCancelingTasks(true, resetSession: round % 2 == 0)
            }
            await withCheckedContinuation { done in group.notify(queue: .global()) { done.resume() } }
            #expect(log.entries.count == 2_000)
            #expect(Set(log.entries).count == 2_000)
        }
    }
}

/// Creates, uses and releases 300 managers. Afterwards the process must have the same resources as after the first
/// ones.
private func useManagers(invalidating: Bool) async throws {
    alarm(200)
    try await StubServer.with { server in
        server.route("/", .json("{}"))
        for _ in 0..<20 { try await useManager(server, invalidating: invalidating) }
        try await server.connections(open: 0)
        try await eventually { try ProcessResources().engineThreads == 0 }
        let before = try ProcessResources()
        for _ in 0..<300 { try await useManager(server, invalidating: invalidating) }
        try await server.connections(open: 0)
        try await eventually { try ProcessResources().isWithin(before) && Counted.alive.value == 0 }
    }
}

private func useManager(_ server: StubServer, invalidating: Bool) async throws {
    let manager = Counted(baseURL: server.url("/"))
    manager.completionQueue = DispatchQueue(label: "completion")
    manager.setTaskDidCompleteBlock { _, _, _ in }
    let result = await manager.fetch("")
    try #require(result.error == nil)
    if invalidating { manager.invalidateSessionCancelingTasks(true, resetSession: false) }
}

/// A manager that counts its instances.
private final class Counted: AFHTTPSessionManager, @unchecked Sendable {
    static let alive = Counter()

    override init(baseURL url: URL?, sessionConfiguration configuration: URLSessionConfiguration?) {
        Counted.alive.add(1)
        super.init(baseURL: url, sessionConfiguration: configuration)
    }

    required init?(coder: NSCoder) { nil }

    deinit { Counted.alive.add(-1) }
}

/// A manager that invalidates its session when it is freed.
private final class Leaving: AFHTTPSessionManager, @unchecked Sendable {
    deinit { invalidateSessionCancelingTasks(true) }
}

/// Uses a manager, releases it and waits for the end of its session.
private func free(_ manager: consuming Leaving, isUsed: Bool) async throws {
    let ends = AsyncStream<Void>.makeStream()
    manager.setSessionDidBecomeInvalidBlock { _, _ in ends.continuation.yield() }
    if isUsed { try #require(await manager.fetch("").error == nil) }
    _ = consume manager
    var iterator = ends.stream.makeAsyncIterator()
    _ = await iterator.next()
}

/// A number that several threads may change.
final class Counter: Sendable {
    private let log = Log<Int>()

    func add(_ number: Int) { log.add(number) }
    var value: Int { log.entries.reduce(0, +) }
}
