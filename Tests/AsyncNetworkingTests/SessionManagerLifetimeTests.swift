// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import Testing

/// The system resources held by managers.
///
/// Each test runs in a process of its own, in which nothing else opens or closes descriptors; a test that hangs is
/// ended by SIGALRM. The tests are serialized, because each blocks a thread of the pool while it waits for its process.
@Suite(.serialized, .timeLimit(.minutes(3))) struct SessionManagerLifetimeTests {
    @Test func `a released manager frees its thread and descriptors`() async {
        await #expect(processExitsWith: .success) {
            alarm(100)
            try await StubServer.with { server in
                server.route("/", .text("x"))
                let before = try await stateAfterFirstUse(of: server)
                for _ in 0..<20 { try await useManager(server) }
                try await server.connections(open: 0)
                try await eventually { try ProcessState().isWithin(before) }
            }
        }
    }

    @Test func `a manager that was shut down explicitly or by its scope frees its thread and descriptors`() async {
        await #expect(processExitsWith: .success) {
            alarm(100)
            try await StubServer.with { server in
                server.route("/", .text("x"))
                let before = try await stateAfterFirstUse(of: server)
                for _ in 0..<10 {
                    try await withSession(baseURL: server.url("/")) { configuration in
                        configuration.proxy = .none
                    } _: { manager in
                        _ = try await manager.get("/")
                        await manager.shutdown()
                    }
                }
                try await server.connections(open: 0)
                try await eventually { try ProcessState().isWithin(before) }
            }
        }
    }

    @Test func `a manager released with a running request is freed after the request`() async {
        await #expect(processExitsWith: .success) {
            alarm(100)
            try await StubServer.with { server in
                let before = try ProcessState()
                let gate = try ScriptGate()
                server.route("/", Script([.wait(gate), .reply(Reply(body: .string("late")))]))
                let upload = SessionManager(for: server).upload("/", body: .string("a"))
                try await server.requests(count: 1)
                try #require(try ProcessState().threads == before.threads + 1)
                gate.open()
                try #require(try await upload.value.text == "late")
                // The task's handle still exists, the manager does not.
                try await eventually { try ProcessState().threads == before.threads }
                try await server.connections(open: 0)
                upload.cancel()
            }
        }
    }

    @Test func `10,000 requests cancelled at random moments leak nothing`() async {
        await #expect(processExitsWith: .success) {
            alarm(100)
            try await StubServer.with { server in
                server.route("/quick", .text("quick"))
                server.route("/silent", .hang)
                server.route("/long", .generated(300_000))
                server.route("/redirect", .redirect(302, to: "/quick"))
                server.route("/reset", .resetAfter(bytes: 60))
                let before = try await stateAfterFirstUse(of: server)
                try await storm(on: server, seed: 1)
                try await server.connections(open: 0)
                try await eventually { try ProcessState().isWithin(before) }
            }
        }
    }
}

/// Returns the process's state after the first use of a manager, which creates resources that are kept: OpenSSL's
/// tables, the thread pool, the clock's descriptors.
private func stateAfterFirstUse(of server: StubServer) async throws -> ProcessState {
    try await Task.sleep(for: .milliseconds(1))
    let threads = try ProcessState().threads
    try await useManager(server)
    try await server.connections(open: 0)
    try await eventually { try ProcessState().threads == threads }
    return try ProcessState()
}

/// Creates a manager, uses it and releases it.
private func useManager(_ server: StubServer) async throws {
    let manager = SessionManager(for: server)
    async let first = manager.get("/")
    async let second = manager.get("/")
    _ = try? await (first, second)
}

/// Starts 10,000 requests, 100 at a time, and cancels each after a random number of yields.
private func storm(on server: StubServer, seed: UInt64) async throws {
    let manager = SessionManager(for: server) { $0.connectionLimits.maximumConnectionsPerHost = 20 }
    var random = SplitMix64(seed: seed)
    let paths = ["quick", "silent", "long", "redirect", "reset"]
    try await withThrowingTaskGroup(of: Bool.self) { group in
        var cancelled = 0
        for number in 0..<10_000 {
            if number >= 100, try await group.next() == true { cancelled += 1 }
            let path = paths[Int.random(in: 0..<paths.count, using: &random)]
            let turns = Int.random(in: 0..<(number % 3 == 0 ? 2 : 200), using: &random)
            group.addTask { try await cancelledRequest(manager, path, afterTurns: turns) }
        }
        for try await isCancelled in group where isCancelled { cancelled += 1 }
        // Some requests ended before they were cancelled, others did not.
        try #require(2000...9900 ~= cancelled)
    }
    try #require(manager.tasks.isEmpty)
    // The manager still works.
    try await #require(manager.get("quick").text == "quick")
}

/// Performs a request that is cancelled unless it has ended by then, and checks its outcome. Returns whether it was
/// cancelled.
private func cancelledRequest(
    _ manager: SessionManager, _ path: String, afterTurns turns: Int
) async throws -> Bool {
    let task = Task { try await manager.data(for: manager.request(.get, path)) }
    for _ in 0..<turns { await Task.yield() }
    task.cancel()
    do {
        let response = try await task.value
        try #require(response.statusCode == 200 && path != "silent")
        return false
    } catch is CancellationError {
        return true
    } catch let error as SessionError {
        guard path == "reset", case .connectionLost = error.reason else { throw error }
        return false
    }
}

/// The resources held by this process.
private struct ProcessState {
    /// The open descriptors, except for timers, which the runtime creates when its clocks are first used.
    var descriptors: Int
    /// The threads of the managers' loops.
    var threads: Int

    init() throws {
        descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { number in
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
            return target != "anon_inode:[timerfd]"
        }
        threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count { task in
            let name = try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8)
            return name == "ANCurl\n"
        }
    }

    /// Whether the process holds no more than in another state. It may hold less, because resources closed shortly
    /// before may have been counted in the other.
    func isWithin(_ before: ProcessState) -> Bool {
        descriptors <= before.descriptors && threads <= before.threads
    }
}
