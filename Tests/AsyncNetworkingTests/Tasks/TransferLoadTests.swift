// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

/// Many concurrent or consecutive transfers: none is lost, and no resources are leaked.
@Suite(.timeLimit(.minutes(5))) struct TransferLoadTests {
    /// A number that an environment variable can raise for a longer run, such as `AN_DOWNLOADS=10000`.
    private static func number(_ name: String, or usual: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? usual
    }

    // MARK: Growth

    @Test(.exitTest) func `downloads whose progress is read leak no memory, descriptors or threads`() async throws {
        let directory = try TemporaryDirectory()
        let count = Self.number("AN_DOWNLOADS", or: 1000)
        try await StubServer.with { server in
            server.route("/file", .generated(10_000))
            // In a process of its own, in which no other test uses resources.
            await #expect(processExitsWith: .success) {
                [
                    url = server.url("/").absoluteString as String, directory = directory.path as String,
                    count = count as Int
                ]
                in
                try await Self.download(count, from: url, to: directory)
            }
        }
        #expect(try directory.contents.count == 10)
    }

    private static func download(_ count: Int, from base: String, to directory: String) async throws {
        let manager = SessionManager(baseURL: URL(string: base)) { $0.proxy = .none }
        let download: @Sendable (Int) async throws -> Void = { number in
            let task = manager.download("file", to: "\(directory)/\(number % 10)")
            var last: TransferProgress?
            for await progress in task.progress { last = progress }
            try #require(last?.counts == TransferProgress(completedBytes: 10_000, totalBytes: 10_000))
            _ = try await task.value
        }
        let run: (Int) async throws -> Void = { count in
            try await withThrowingTaskGroup { group in
                for worker in 0..<10 {
                    group.addTask { for step in 0..<count / 10 { try await download(step * 10 + worker) } }
                }
                try await group.waitForAll()
            }
        }
        // The first downloads fill pools and caches.
        try await run(300)
        let before = try ProcessResources()
        let memory = try residentKilobytes()
        try await run(count)
        let after = try ProcessResources()
        try #require(after.descriptors.count <= before.descriptors.count)
        try #require(after.threads.count <= before.threads.count + 1)
        // Sanitizers retain freed memory, and need memory of their own.
        if !isSanitized { try #require(try residentKilobytes() <= memory + 3_000) }
        try #require(manager.tasks.isEmpty)
    }

    // MARK: Suspending

    @Test func `a hundred transfers suspended while their server sends can all continue`() async throws {
        let directory = try TemporaryDirectory()
        let bytes = StubServer.generatedBytes(600_000)
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.fallback { _ in
                Script([
                    .reply(Reply(body: .bytes(bytes.prefix(200_000)), framing: .contentLength(declared: 600_000))),
                    .wait(gate), .send(bytes.dropFirst(200_000)),
                ])
            }
            let manager = SessionManager(for: server) { $0.connectionLimits.maximumConnectionsPerHost = 100 }
            let tasks = try (0..<100).map { number in
                try manager.makeDownloadTask(for: manager.request(.get, "\(number)"), to: "\(directory.path)/\(number)")
            }
            let group = SessionTaskGroup(tasks)
            group.resume()
            for task in tasks {
                for await progress in task.progress where progress.completedBytes > 0 { break }
            }
            group.suspend()
            gate.open()
            try await Task.sleep(for: .seconds(Self.number("AN_SUSPENDED_SECONDS", or: 0)))
            for _ in 0..<1000 { await Task.yield() }
            #expect(tasks.allSatisfy { $0.status.state == .suspended })
            group.resume()
            for task in tasks { #expect(try await task.value.size == 600_000) }
            for number in 0..<100 { #expect(try directory.read("\(number)") == bytes) }
        }
    }

    // MARK: Cancelling

    @Test func `tasks, scopes and streams can be cancelled at any moment`() async throws {
        let directory = try TemporaryDirectory()
        let rounds = Self.number("AN_CANCELLATIONS", or: 300)
        try await StubServer.with { server in
            server.fallback { request in
                var file = ServedFile(StubServer.generatedBytes(100_000))
                if request.path.hasSuffix("7") { file.interruption = .hang(after: 50_000) }
                return file.script(for: request)
            }
            let manager = SessionManager(for: server) { $0.maximumConcurrentTasks = 20 }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for round in 0..<rounds {
                    if round >= 30 { try await group.next() }
                    group.addTask { try await Self.cancel(round, manager, "\(directory.path)/\(round)") }
                }
                try await group.waitForAll()
            }
            try await eventually { manager.tasks.isEmpty }
            await manager.shutdown(draining: .zero)
            try await server.connections(open: 0)
        }
        // Only complete files remain, and partial files with resume data, which is discarded.
        for name in try directory.contents { #expect(try directory.read(name).count == 100_000, "\(name)") }
    }

    /// Starts a transfer of a random kind, and ends it at a random moment.
    private static func cancel(_ round: Int, _ manager: SessionManager, _ path: String) async throws {
        let patience = Int.random(in: 0...200)
        let request = try manager.request(.get, "\(round)")
        let pause: @Sendable () async -> Void = { for _ in 0..<patience { await Task.yield() } }
        switch round % 6 {
        case 0:
            let task = manager.download(request, to: .file(path))
            await pause()
            task.cancel()
            _ = try? await task.value
        case 1:
            let task = manager.download(request, to: .file(path))
            await pause()
            await task.cancelProducingResumeData()?.discard()
        case 2:
            await manager.withDownload(request, to: .file(path)) { task in
                task.suspend()
                await pause()
                task.resume()
            }
        case 3:
            let stream = Task {
                try await manager.withResponse(for: request) { _, body in for try await _ in body { await pause() } }
            }
            await pause()
            stream.cancel()
            _ = try? await stream.value
        case 4:
            let body = RequestBody.stream(AsyncStreamOf([Data(count: 1000), Data(count: 1000)]))
            let task = manager.upload("\(round)", body: body, method: .get)
            let reader = Task { for await _ in task.progress {} }
            await pause()
            reader.cancel()
            SessionTaskGroup([task]).cancel()
            _ = try? await task.value
        default:
            let waiter = Task { try await manager.download(request, to: .file(path)).value }
            await pause()
            waiter.cancel()
            _ = try? await waiter.value
        }
    }
}
