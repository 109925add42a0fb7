// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

/// The system resources held by managers.
///
/// Each test runs in a process of its own, in which nothing else opens or closes descriptors; a test that hangs is
/// ended by SIGALRM.
@Suite(.timeLimit(.minutes(5))) struct SessionManagerLifetimeTests {
    @Test(.exitTest) func `a released manager frees its thread and descriptors`() async {
        await #expect(processExitsWith: .success) {
            alarm(200)
            try await StubServer.with { server in
                server.route("/", .text("x"))
                let before = try await stateAfterFirstUse(of: server)
                for _ in 0..<20 { try await useManager(server) }
                try await server.connections(open: 0)
                try await eventually { try ProcessResources().isWithin(before) }
            }
        }
    }

    @Test(.exitTest) func `a manager that was shut down explicitly or by its scope frees its thread and descriptors`()
        async
    {
        await #expect(processExitsWith: .success) {
            alarm(200)
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
                try await eventually { try ProcessResources().isWithin(before) }
            }
        }
    }

    @Test(.exitTest) func `a manager released with a running request is freed after the request`() async {
        await #expect(processExitsWith: .success) {
            alarm(200)
            try await StubServer.with { server in
                let before = try ProcessResources()
                let gate = try ScriptGate()
                server.route("/", Script([.wait(gate), .reply(Reply(body: .string("late")))]))
                let upload = SessionManager(for: server).upload("/", body: .string("a"))
                try await server.requests(count: 1)
                try #require(try ProcessResources().engineThreads == before.engineThreads + 1)
                gate.open()
                try #require(try await upload.value.text == "late")
                // The task's handle still exists, the manager does not.
                try await eventually { try ProcessResources().engineThreads == before.engineThreads }
                try await server.connections(open: 0)
                upload.cancel()
            }
        }
    }

    @Test(.exitTest) func `10,000 requests cancelled at random moments leak nothing`() async {
        await #expect(processExitsWith: .success) {
            alarm(200)
            try await StubServer.with { server in
                server.route("/quick", .text("quick"))
                server.route("/silent", .hang)
                server.route("/long", .generated(300_000))
                server.route("/redirect", .redirect(302, to: "/quick"))
                server.route("/reset", .resetAfter(bytes: 60))
                let before = try await stateAfterFirstUse(of: server)
                try await storm(on: server, seed: 1)
                try await server.connections(open: 0)
                try await eventually { try ProcessResources().isWithin(before) }
            }
        }
    }
}

/// Returns the process's state after the first use of a manager, which creates resources that are kept: OpenSSL's
/// tables, the thread pool, the clock's descriptors.
private func stateAfterFirstUse(of server: StubServer) async throws -> ProcessResources {
    try await Task.sleep(for: .milliseconds(1))
    let threads = try ProcessResources().engineThreads
    try await useManager(server)
    try await server.connections(open: 0)
    try await eventually { try ProcessResources().engineThreads == threads }
    return try ProcessResources()
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
