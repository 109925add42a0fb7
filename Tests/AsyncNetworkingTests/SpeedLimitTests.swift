// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct SpeedLimitTests {
    private static let bytes = StubServer.generatedBytes(3_000_000)

    /// Limits that stop transfers after the first bytes, by where they are set.
    enum Place: CaseIterable {
        case session
        case host
        case request
    }

    private static func request(_ server: StubServer, _ limit: SpeedLimit, _ place: Place) -> Request {
        var request = Request(url: server.url("/file"))
        if place == .request { request.changeOptions { $0.speedLimits = [limit] } }
        return request
    }

    @Test(arguments: Place.allCases) func `a limited response waits, and goes on when the limit is removed`(
        place: Place
    ) async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes))
            let limit = SpeedLimit(bytesReceivedPerSecond: 1, host: place == .host ? "127.0.0.1" : nil)
            let manager = SessionManager(for: server) { if place != .request { $0.speedLimits = [limit] } }
            try await manager.withResponse(for: Self.request(server, limit, place)) { _, body in
                var (iterator, count) = (body.makeAsyncIterator(), 0)
                count += try #require(await iterator.next()).count
                #expect(count <= 4 << 10)
                limit.bytesReceivedPerSecond = nil
                while let chunk = try await iterator.next() { count += chunk.count }
                #expect(count == Self.bytes.count)
            }
        }
    }

    @Test(arguments: Place.allCases) func `a limited body waits, and goes on when the limit is removed`(
        place: Place
    ) async throws {
        try await StubServer.with { server in
            let limit = SpeedLimit(bytesSentPerSecond: 1, host: place == .host ? "127.0.0.1" : nil)
            let manager = SessionManager(for: server) { if place != .request { $0.speedLimits = [limit] } }
            var request = Self.request(server, limit, place)
            (request.method, request.body) = (.put, .bytes(Self.bytes.prefix(900_000)))
            let task = manager.upload(request)
            for await progress in task.uploadProgress where progress.completedBytes > 0 {
                #expect(progress.completedBytes == 4 << 10)
                break
            }
            limit.bytesSentPerSecond = nil
            _ = try? await task.value
            #expect(server.activity.requests.last?.body.count == 900_000)
        }
    }

    @Test func `a limit for another host has no effect`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes))
            let manager = SessionManager(for: server) {
                $0.speedLimits = [SpeedLimit(bytesReceivedPerSecond: 1, bytesSentPerSecond: 1, host: "*.example.com")]
            }
            let data = try await manager.data(for: Request(url: server.url("/file"))).value
            #expect(data == Self.bytes)
        }
    }

    @Test func `a limit with an invalid host fails requests`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server) { $0.speedLimits = [SpeedLimit(host: "a b")] }
            let error = try await sessionError { _ = try await manager.data(for: Request(url: server.url("/file"))) }
            guard case .invalidRequest = error.reason else {
                Issue.record("\(error)")
                return
            }
        }
    }

    @Test func `a limited transfer can be cancelled, and its share goes to another one`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes))
            let limit = SpeedLimit(bytesReceivedPerSecond: 1)
            let manager = SessionManager(for: server) { $0.speedLimits = [limit] }
            let tasks = (0..<4).map { _ in manager.makeDataTask(for: Request(url: server.url("/file"))) }
            for task in tasks { task.resume() }
            try await server.activity { $0.requests.count == 4 }
            for task in tasks.dropLast() {
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
            }
            limit.bytesReceivedPerSecond = 100_000_000
            #expect(try await tasks[3].value.value == Self.bytes)
        }
    }

    @Test func `a transformation may wait`() async throws {
        let manager = SessionManager(on: MockTransport(.text("abc")))
        try await manager.withResponse(for: Request(url: url("http://a.example/"))) { _, body in
            let upper = body.transforming { chunk in
                await Task.yield()
                return Data(String(decoding: chunk, as: UTF8.self).uppercased().utf8)
            }
            let text = try await upper.collect(upTo: 10)
            #expect(text == Data("ABC".utf8))
        }
    }
}
