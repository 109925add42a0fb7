// SPDX-License-Identifier: MIT

import ANCache
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct EventLoopExecutorTests {
    @Test func `requests of tasks on the event loop resume on its thread`() async throws {
        try await StubServer.with { server in
            server.route("/", .text("x"))
            let session = SessionManager(for: server)
            let threads = try await withTaskExecutorPreference(session.eventLoopExecutor) {
                try await withThrowingTaskGroup(of: [UInt].self, returning: Set<UInt>.self) { group in
                    for _ in 0..<40 {
                        group.addTask {
                            let before = thread()
                            let text = try await session.get("/").text
                            #expect(text == "x")
                            return [before, thread()]
                        }
                    }
                    return try await group.reduce(into: []) { $0.formUnion($1) }
                }
            }
            #expect(threads.count == 1)
            await session.shutdown()
        }
    }

    @Test func `bodies are streamed in both directions on the event loop`() async throws {
        try await StubServer.with { server in
            let size = 3 << 20
            server.route("/", .generated(Int64(size)))
            let session = SessionManager(for: server)
            try await withTaskExecutorPreference(session.eventLoopExecutor) {
                let body = RequestBody.writer { writer in
                    for _ in 0..<(size / 4096) { try await writer.write(Data(repeating: 7, count: 4096)) }
                }
                var count = 0
                try await session.withResponse(
                    for: Request(method: .post, url: server.url("/"), body: body)
                ) { _, response in
                    for try await chunk in response { count += chunk.count }
                }
                #expect(count == size)
            }
            #expect(try await server.requests(count: 1)[0].bodyLength == Int64(size))
            await session.shutdown()
        }
    }

    @Test func `a request on the event loop can be cancelled, and the session shut down`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.hang]))
            let session = SessionManager(for: server)
            try await withTaskExecutorPreference(session.eventLoopExecutor) {
                try await withThrowingTaskGroup { group in
                    group.addTask { try await session.get("/") }
                    try await server.requests(count: 1)
                    group.cancelAll()
                    await #expect(throws: CancellationError.self) { () async throws in try await group.waitForAll() }
                }
                await session.shutdown()
                await #expect(throws: SessionError.self) { () async throws in try await session.get("/") }
            }
        }
    }

    @Test func `a task goes on running on the event loop of a session that is released`() async throws {
        try await StubServer.with { server in
            server.route("/", .text("x"))
            let other = SessionManager(for: server)
            let executor = try #require(SessionManager(for: server).eventLoopExecutor)
            let text = try await Task(executorPreference: executor) { try await other.get("/").text }.value
            #expect(text == "x")
            await other.shutdown()
        }
    }

    @Test func `a session is freed by a task on its own event loop that has the last reference`() async throws {
        try await StubServer.with { server in
            server.route("/", .text("x"))
            let task = {
                let session = SessionManager(for: server)
                return Task(executorPreference: session.eventLoopExecutor) { try await session.get("/").text }
            }()
            #expect(try await task.value == "x")
            try await server.connections(open: 0)
        }
    }

    @Test func `the files of a cache are not read on the event loop`() async throws {
        try await StubServer.with { server in
            let directory = try TemporaryDirectory()
            let size = 1 << 20
            server.route("/", .data(Data(count: size), headers: ["Cache-Control": "max-age=60"]))
            for number in 0..<20 {
                server.route("/\(number)", .data(Data(count: 20_000), headers: ["Cache-Control": "max-age=60"]))
            }
            let session = SessionManager(for: server) {
                $0.cache = .disk(directory.path, memory: 0)
                $0.willCache = { $0 }
            }
            try await withTaskExecutorPreference(session.eventLoopExecutor) {
                let before = try bytesRead()
                #expect(try await session.get("/").value.count == size)
                #expect(try await session.get("/").metrics.source == .cache)
                for number in 0..<20 { _ = try await session.get("/\(number)") }
                #expect(await ResponseCache.disk(directory.path, memory: 0).entries().count == 21)
                // What libcurl receives is read by recv(2), which does not count.
                #expect(try bytesRead() - before < 8_192)
            }
            await session.shutdown()
        }
    }

    @Test func `a session whose transport has no event loop has no executor`() async throws {
        let session = SessionManager(on: MockTransport { _ in .text("x") })
        #expect(session.eventLoopExecutor == nil)
        // Without an executor, there is no preference.
        let text = try await withTaskExecutorPreference(session.eventLoopExecutor) { try await session.get("/").text }
        #expect(text == "x")
    }
}

private func thread() -> UInt {
    UInt(pthread_self())
}

/// Returns the number of bytes that the calling thread has read from files; see proc_pid_io(5).
private func bytesRead() throws -> Int {
    let text = try String(contentsOfFile: "/proc/thread-self/io", encoding: .utf8)
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("rchar: ") })
    return try #require(Int(line.dropFirst("rchar: ".count)))
}
