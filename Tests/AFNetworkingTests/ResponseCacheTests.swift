// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import FoundationNetworking
import Glibc
import HTTPTypes
import TestSupport
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

    @Test(.exitTest) func `a cache on the disk keeps what one of a smaller capacity has no room for`() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            unsafe setenv("XDG_CACHE_HOME", directory.url.path, 1)
            try await StubServer.with { server in
                server.route("/", Self.fresh)
                for capacity in [1 << 20, 1, 1 << 20] {
                    let manager = AFHTTPSessionManager(for: server) {
                        $0.urlCache = URLCache(memoryCapacity: 0, diskCapacity: capacity, diskPath: nil)
                    }
                    try #require(await manager.fetch("").dictionary?["number"] as? Int == 1)
                }
                try #require(server.activity.requests.count == 2)
            }
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

    // MARK: Validation in the background

    /// Holds validations in the background until the gate is open.
    private struct Gated: Interceptor {
        let gate: ScriptGate

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            if request.headers.contains(.ifNoneMatch) { try await gate.wait() }
            return try await next(request)
        }
    }

    /// Serves the number of the request, on a connection of its own, in a response that is used while it is validated.
    private func numbered(_ server: StubServer) {
        let count = Counter()
        server.route("/") { _ in
            count.add(1)
            let headers: HeaderPairs = [
                "Cache-Control": "max-age=0, stale-while-revalidate=60", "Content-Type": "application/json",
                "ETag": "\"\(count.value)\"", "Connection": "close",
            ]
            return .reply(headers: headers, body: .string("{\"number\": \(count.value)}"))
        }
    }

    @Test(arguments: [("session", 2), ("task", 1), ("freed", 1)])
    func `a validation in the background opens no connection that a challenge block has not accepted`(
        kind: String, questions: Int
    ) async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(authority.issue()))) { server in
            numbered(server)
            let gate = try ScriptGate()
            let core = SessionManager(baseURL: server.url("/")) {
                $0.cache = .memory()
                $0.tls.trustRoots = .pem(authority.pemData)
                $0.attemptInterceptors = [Gated(gate: gate)]
            }
            var manager = AFHTTPSessionManager?(AFHTTPSessionManager(session: core))
            manager?.completionQueue = DispatchQueue(label: "completion")
            let asked = Counter()
            if kind == "task" {
                manager?.setAuthenticationChallengeHandler { _, _, challenge, _ in
                    asked.add(1)
                    return challenge.protectionSpace.serverTrust.map(URLCredential.init(trust:))
                }
            } else {
                manager?.setSessionDidReceiveAuthenticationChallenge { _, challenge, credential in
                    asked.add(1)
                    credential?.pointee = challenge.protectionSpace.serverTrust.map(URLCredential.init(trust:))
                    return asked.value == 1 ? .useCredential : .cancelAuthenticationChallenge
                }
            }
            for _ in 0..<2 { #expect(await manager?.fetch("").dictionary?["number"] as? Int == 1) }
            weak let released = manager
            if kind == "freed" {
                manager = nil
                try await eventually { released == nil }
            }
            gate.open()
            await core.shutdown()
            #expect(server.activity.requests.count == 1)
            #expect(asked.value == questions)
            withExtendedLifetime(manager) {}
        }
    }

    /// A manager whose override stores only the first response.
    private final class Storing: AFHTTPSessionManager, @unchecked Sendable {
        override func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
            completionHandler: @escaping (CachedURLResponse?) -> Void
        ) {
            completionHandler(proposedResponse.data.contains(UInt8(ascii: "1")) ? proposedResponse : nil)
        }
    }

    /// The response on which nobody can decide leaves the one that it would supersede.
    @Test(arguments: [("block", 1), ("override", 1), ("none", 2)])
    func `a validation in the background stores nothing that would have been decided on`(
        kind: String, stored: Int
    ) async throws {
        try await StubServer.with { server in
            numbered(server)
            let gate = try ScriptGate()
            let cache = ResponseCache.memory()
            func session() -> SessionManager {
                SessionManager(baseURL: server.url("/")) {
                    $0.cache = cache
                    $0.cachePartition = "user"
                    $0.attemptInterceptors = [Gated(gate: gate)]
                }
            }
            let core = session()
            let manager = kind == "override" ? Storing(session: core) : AFHTTPSessionManager(session: core)
            manager.completionQueue = DispatchQueue(label: "completion")
            if kind == "block" {
                manager.setDataTaskWillCacheResponseBlock { _, _, response in
                    response.data.contains(UInt8(ascii: "1")) ? response : nil
                }
            }
            for _ in 0..<2 { #expect(await number(manager) == 1) }
            gate.open()
            await core.shutdown()
            #expect(server.activity.requests.count == 2)
            let reader = AFHTTPSessionManager(session: session())
            reader.completionQueue = DispatchQueue(label: "completion")
            reader.requestSerializer.cachePolicy = .returnCacheDataDontLoad
            #expect(await number(reader) == stored)
            guard stored == 1 else { return }
            // The next use is validated for its caller, who decides.
            let next = kind == "override" ? Storing(session: session()) : AFHTTPSessionManager(session: session())
            next.completionQueue = DispatchQueue(label: "completion")
            let asked = Counter()
            if kind == "block" {
                next.setDataTaskWillCacheResponseBlock { _, _, response in
                    asked.add(1)
                    return response
                }
            }
            #expect(await number(next) == 3)
            #expect(server.activity.requests.count == 3)
            if kind == "block" { try await eventually { asked.value == 1 } }
        }
    }
}
