// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import FoundationNetworking
import Testing

@Suite struct ResponseCacheTests {
    private static let fresh = Script.data(
        Data(#"{"number": 1}"#.utf8), headers: ["Cache-Control": "max-age=60", "Content-Type": "application/json"])

    private func manager(for server: StubServer) -> AFHTTPSessionManager {
        AFHTTPSessionManager(for: server) {
            $0.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        }
    }

    private func number(_ manager: AFHTTPSessionManager) async -> Int? {
        await manager.fetch("").dictionary?["number"] as? Int
    }

    @Test func `a URLCache of the configuration gives the manager a cache`() async throws {
        try await StubServer.with { server in
            server.route("/", Self.fresh)
            let manager = manager(for: server)
            #expect(await number(manager) == 1)
            #expect(await number(manager) == 1)
            let sent1 = try await server.requests(count: 1)
            #expect(sent1.count == 1)
            manager.requestSerializer.cachePolicy = .reloadIgnoringLocalCacheData
            #expect(await number(manager) == 1)
            let sent2 = try await server.requests(count: 2)
            #expect(sent2.count == 2)
        }
    }

    @Test func `the cache survives a reset of the session, and is that of all managers with its URLCache`()
        async throws
    {
        try await StubServer.with { server in
            server.route("/", Self.fresh)
            let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
            let manager = AFHTTPSessionManager(for: server) { $0.urlCache = cache }
            #expect(await number(manager) == 1)
            manager.invalidateSessionCancelingTasks(true, resetSession: true)
            #expect(await number(manager) == 1)
            let other = AFHTTPSessionManager(for: server) { $0.urlCache = cache }
            #expect(await number(other) == 1)
            let sent1 = try await server.requests(count: 1)
            #expect(sent1.count == 1)
            #expect(await number(self.manager(for: server)) == 1)
            let sent2 = try await server.requests(count: 2)
            #expect(sent2.count == 2)
        }
    }

    @Test(arguments: [false, true])
    func `resetting the session of a manager empties its cache, but not that of a shared session`(isShared: Bool)
        async throws
    {
        try await StubServer.with { server in
            server.route("/", Self.fresh)
            let core = SessionManager(baseURL: server.url("/")) { $0.cache = .memory() }
            let manager = isShared ? AFHTTPSessionManager(session: core) : manager(for: server)
            manager.completionQueue = DispatchQueue(label: "completion")
            #expect(await number(manager) == 1)
            await withCheckedContinuation { done in manager.session.reset { done.resume() } }
            #expect(await number(manager) == 1)
            #expect(server.activity.requests.count == (isShared ? 1 : 2))
        }
    }

    @Test func `a block that is set while a task is running decides about the storage of its response`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            let headers: HeaderPairs = ["Cache-Control": "max-age=60", "Content-Type": "application/json"]
            server.route("/", Script([.wait(gate), .reply(Reply(headers: headers, body: .string(#"{"number": 1}"#)))]))
            let manager = manager(for: server)
            async let first = number(manager)
            try await server.requests(count: 1)
            manager.setDataTaskWillCacheResponseBlock { _, _, _ in nil }
            gate.open()
            #expect(await first == 1)
            #expect(await number(manager) == 1)
            try await server.requests(count: 2)
        }
    }

    @Test func `the default configuration gives the manager no cache`() async throws {
        try await StubServer.with { server in
            server.route("/", Self.fresh)
            let manager = AFHTTPSessionManager(for: server)
            for _ in 0..<2 { #expect(await number(manager) == 1) }
            let sent2 = try await server.requests(count: 2)
            #expect(sent2.count == 2)
        }
    }

    @Test func `the block for cached responses changes or refuses them`() async throws {
        try await StubServer.with { server in
            server.route("/", Self.fresh)
            let manager = manager(for: server)
            let log = Log<String>()
            manager.setDataTaskWillCacheResponseBlock { _, task, response in
                log.add("\(task.originalRequest?.url?.path ?? "") \(response.data.count)")
                return nil
            }
            for _ in 0..<2 { #expect(await number(manager) == 1) }
            let sent2 = try await server.requests(count: 2)
            #expect(sent2.count == 2)
            manager.setDataTaskWillCacheResponseBlock { _, _, response in
                CachedURLResponse(response: response.response, data: Data(#"{"number": 2}"#.utf8))
            }
            #expect(await number(manager) == 1)
            #expect(await number(manager) == 2)
            let sent3 = try await server.requests(count: 3)
            #expect(sent3.count == 3)
            #expect(log.entries == ["/ 13", "/ 13"])
        }
    }

    @Test func `a cached response is reported as complete`() async throws {
        try await StubServer.with { server in
            server.route("/", Self.fresh)
            let manager = manager(for: server)
            #expect(await number(manager) == 1)
            let transfers = Log<AnySessionTask>()
            _ = await callback { done in
                let task = manager.dataTask(with: URLRequest(url: server.url("/"))) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }
                if let transfer = task.coreTask { transfers.add(transfer) }
                task.resume()
            }
            #expect(transfers.entries.map { $0.status.downloadProgress?.completedBytes } == [13])
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test func `a response for memory only is not stored`() async throws {
        try await StubServer.with { server in
            server.route("/", Self.fresh)
            let manager = manager(for: server)
            manager.setDataTaskWillCacheResponseBlock { _, _, response in
                CachedURLResponse(
                    response: response.response, data: response.data, userInfo: nil, storagePolicy: .allowedInMemoryOnly
                )
            }
            for _ in 0..<2 { #expect(await number(manager) == 1) }
            let sent = try await server.requests(count: 2)
            #expect(sent.count == 2)
        }
    }

    @Test(arguments: [false, true])
    func `the decision of a shared session about its cache applies to the manager's tasks`(
        hasBlock: Bool
    ) async throws {
        try await StubServer.with { server in
            server.route("/", Self.fresh)
            let core = SessionManager(baseURL: server.url("/")) {
                $0.cache = .memory(1 << 20)
                $0.willCache = { _ in nil }
            }
            let manager = AFHTTPSessionManager(session: core)
            manager.setTaskDidCompleteBlock { _, _, _ in }
            if hasBlock { manager.setDataTaskWillCacheResponseBlock { _, _, response in response } }
            for _ in 0..<2 { #expect(await number(manager) == 1) }
            let sent = try await server.requests(count: 2)
            #expect(sent.count == 2)
        }
    }
}
