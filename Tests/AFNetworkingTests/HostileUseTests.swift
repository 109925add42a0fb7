// SPDX-License-Identifier: MIT

import AFNetworking
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import Glibc
import TestSupport
import Testing

/// Unusual and hostile input from users and servers must not cause traps, hangs, lost callbacks, or files outside a
/// directory.
@Suite(.timeLimit(.minutes(5))) struct HostileUseTests {
    @Test(arguments: [TimeInterval.infinity, .greatestFiniteMagnitude, .nan, -1, 0])
    func `a timeout may be any number`(limit: TimeInterval) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let manager = AFHTTPSessionManager(for: server) {
                $0.timeoutIntervalForRequest = limit
                $0.timeoutIntervalForResource = limit
            }
            manager.requestSerializer.timeoutInterval = limit
            let result = await manager.call {
                manager.post(
                    "", parameters: ["a": 1], headers: nil,
                    constructingBodyWith: { $0.throttleBandwidth(withPacketSize: 1000, delay: limit > 0 ? 0 : limit) },
                    progress: nil, success: $0, failure: $1)
            }
            #expect(result.error == nil)
        }
    }

    @Test func `a suggested file name stays in its directory`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                guard request.target.hasPrefix("/named") else { return .text("x") }
                let name =
                    request.target.hasSuffix("dots") ? ".." : request.target.hasSuffix("dot") ? "." : "../../up"
                return .reply(headers: ["Content-Disposition": "attachment; filename=\"\(name)\""])
            }
            let manager = AFHTTPSessionManager(for: server)
            manager.responseSerializer = AFHTTPResponseSerializer()
            for path in [
                "x/..%2F..%2Fup", "x/%2E%2E", "named", "named/dots", "named/dot", "x/%2E", "x/a%00b", "x/%2F", "x/_",
            ] {
                let name = try #require(await manager.fetch(path).response?.suggestedFilename)
                #expect(!name.contains("/") && name != ".." && name != "." && !name.isEmpty, "\(path)")
            }
            #expect(await manager.fetch("x/report.pdf").response?.suggestedFilename == "report.pdf")
        }
    }

    @Test(arguments: [
        ("x/a.part.json", "Unknown"), ("named/b", "b"), ("x/a.part", "Unknown"), ("x/a.parts", "a.parts"),
    ])
    func `a suggested file name is not that of an unfinished durable download`(path: String, name: String)
        async throws
    {
        try await StubServer.with { server in
            server.fallback { request in
                request.target.hasPrefix("/named")
                    ? .reply(headers: ["Content-Disposition": "attachment; filename=a.part.json"]) : .text("x")
            }
            let manager = AFHTTPSessionManager(for: server)
            manager.responseSerializer = AFHTTPResponseSerializer()
            #expect(await manager.fetch(path).response?.suggestedFilename == name)
        }
    }

    @Test func `a task that waits for an answer to a challenge can be cancelled`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .status(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""]) }
            let manager = AFHTTPSessionManager(for: server)
            let kept = Lock<Kept?>(nil)
            let asked = AsyncStream<Void>.makeStream()
            manager.setAuthenticationChallengeHandler { _, _, _, answer in
                kept.withLock { $0 = Kept(answer: answer) }
                asked.continuation.yield()
                return nil
            }
            async let result = manager.fetch("")
            var iterator = asked.stream.makeAsyncIterator()
            _ = await iterator.next()
            manager.tasks.first?.cancel()
            #expect(await result.error?.code == -999)
            kept.withLock { $0 }?.answer(.useCredential, nil)
        }
    }

    /// The completion handler of a challenge, to be called late.
    private struct Kept: @unchecked Sendable {
        let answer: (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    }

    @Test func `a verb whose response becomes a download calls back with its data task`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json(#"{"a": 1}"#) }
            let manager = AFHTTPSessionManager(for: server)
            // Foundation deprecates `.becomeDownload` (raw value 2), because its own sessions do not support it.
            manager.setDataTaskDidReceiveResponseBlock { _, _, _ in .init(rawValue: 2) ?? .cancel }
            let result = await manager.fetch("")
            #expect(result.error == nil)
            #expect(result.task?.originalRequest?.url == server.url("/"))
        }
    }

    /// An object that uses its managers in `deinit`.
    private final class Owner: @unchecked Sendable {
        let manager: AFHTTPSessionManager
        let reachability: AFNetworkReachabilityManager

        init(_ manager: AFHTTPSessionManager, _ reachability: AFNetworkReachabilityManager) {
            self.manager = manager
            self.reachability = reachability
        }

        deinit {
            _ = manager.tasks
            _ = manager.requestSerializer.timeoutInterval
            reachability.stopMonitoring()
        }
    }

    @Test func `an owner may be freed together with the block that retains it`() {
        let manager = AFHTTPSessionManager()
        let reachability = AFNetworkReachabilityManager.manager()
        func owner() -> Owner { Owner(manager, reachability) }
        manager.setTaskDidCompleteBlock { [owner = owner()] _, _, _ in withExtendedLifetime(owner) {} }
        manager.setTaskDidComplete(nil)
        manager.setAuthenticationChallengeHandler { [owner = owner()] _, _, _, _ in owner.manager }
        manager.setAuthenticationChallengeHandler(nil)
        manager.setSessionDidReceiveAuthenticationChallenge { [owner = owner()] _, _, _ in
            withExtendedLifetime(owner) { .performDefaultHandling }
        }
        manager.setSessionDidReceiveAuthenticationChallenge(nil)
        reachability.setReachabilityStatusChange { [owner = owner()] _ in withExtendedLifetime(owner) {} }
        reachability.setReachabilityStatusChange(nil)
        manager.requestSerializer.setQueryStringSerializationWith { [owner = owner()] _, _, _ in "\(owner)" }
        manager.requestSerializer.setQueryStringSerializationWith(nil)
        #expect(manager.tasks.isEmpty)
    }

    @Test func `a task that is resumed and suspended from many threads completes after the last resume`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let manager = AFHTTPSessionManager(for: server)
            for _ in 0..<100 {
                let result = await callback { done in
                    let task = manager.dataTask(with: URLRequest(url: server.url("/"))) {
                        done(Callback(response: $0, object: $1, error: $2 as NSError?))
                    }
                    DispatchQueue.concurrentPerform(iterations: 8) { $0 % 2 == 0 ? task.resume() : task.suspend() }
                    task.resume()
                }
                #expect(result.error == nil)
            }
        }
    }

    @Test func `reading the properties of a suspended task does not change it`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let manager = AFHTTPSessionManager(for: server)
            let log = Log<String>()
            let result = await callback { done in
                let task = manager.dataTask(with: URLRequest(url: server.url("/"))) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }
                task.priority = 0.9
                manager.setDataTaskDidReceiveResponseBlock { _, _, _ in
                    log.add("asked")
                    return .allow
                }
                task.resume()
                #expect(task.priority == 0.9)
            }
            #expect(result.error == nil)
            #expect(log.entries == ["asked"])
            let looked = manager.dataTask(with: URLRequest(url: server.url("/"))) { _, _, _ in }
            let transfer = try #require(looked.coreTask)
            looked.cancel()
            var last: TaskOutcome?
            for await event in transfer.events { if case .ended(let outcome, _) = event { last = outcome } }
            #expect(last != nil)
        }
    }

    @Test func `a suspended task that was read and released is kept until its session ends`() async throws {
        let manager = AFHTTPSessionManager(baseURL: URL(string: "http://127.0.0.1:1/"))
        manager.completionQueue = DispatchQueue(label: "completion")
        let log = Log<Int>()
        let ends = AsyncStream<Void>.makeStream()
        var task: URLSessionDataTask? = manager.dataTask(with: URLRequest(url: URL(filePath: "/"))) { _, _, error in
            log.add((error as NSError?)?.code ?? 0)
            ends.continuation.yield()
        }
        weak let dropped = task
        let transfer = try #require(task?.coreTask)
        task = nil
        #expect(dropped?.state == .suspended)
        #expect(manager.tasks.count == 1)
        manager.invalidateSessionCancelingTasks(true)
        var iterator = ends.stream.makeAsyncIterator()
        _ = await iterator.next()
        for await _ in transfer.events {}
        #expect(transfer.status.state == .finished)
        #expect(manager.tasks.isEmpty)
        #expect(manager.coreSession.tasks.isEmpty)
        #expect(log.entries == [NSURLErrorCancelled])
        try await eventually { dropped == nil }
    }

    @Test func `a task that was resumed by its core task completes after it was released`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let manager = AFHTTPSessionManager(for: server)
            var task: URLSessionDataTask? = manager.dataTask(with: URLRequest(url: server.url("/"))) { _, _, _ in }
            let transfer = try #require(task?.coreTask)
            transfer.resume()
            task = nil
            var last: TaskOutcome?
            for await event in transfer.events { if case .ended(let outcome, _) = event { last = outcome } }
            guard case .succeeded = last else {
                Issue.record("\(String(describing: last))")
                return
            }
            // The events end before the task does.
            try await eventually { manager.tasks.isEmpty }
        }
    }

    @Test func `a completion handler runs after blocks that were dispatched to the main queue before`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let manager = AFHTTPSessionManager(for: server)
            manager.completionQueue = nil
            let log = Log<String>()
            _ = await callback { done in
                DispatchQueue.main.async {
                    manager.get(
                        "", parameters: nil, headers: nil, progress: nil,
                        success: { _, _ in
                            log.add("success")
                            done(Callback())
                        }, failure: { _, _ in done(Callback()) })
                    DispatchQueue.main.async { log.add("sent") }
                    // Keep the queue busy until the request ends. Its end can only be observed on this queue.
                    while !manager.tasks.isEmpty { usleep(100) }
                }
            }
            #expect(log.entries == ["sent", "success"])
        }
    }

    @Test func `a task that was resumed by its core task calls its completion handler`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let manager = AFHTTPSessionManager(for: server)
            let held = Log<URLSessionDataTask>()
            let result = await callback { done in
                let task = manager.dataTask(with: URLRequest(url: server.url("/"))) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }
                held.add(task)
                task.coreTask?.resume()
            }
            #expect(result.error == nil)
            #expect(manager.tasks.isEmpty)
        }
    }

    @Test func `a cancellation handler of a request may read its task and cancel tasks`() async throws {
        struct Waiting: Interceptor {
            let began: AsyncStream<Void>.Continuation
            let held: Log<URLSessionDataTask>
            let managers: Log<AFHTTPSessionManager>
            let seen: Log<String>

            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                try await withTaskCancellationHandler {
                    began.yield()
                    try await Task.sleep(for: .seconds(3600))
                } onCancel: {
                    for task in held.entries {
                        seen.add(task.currentRequest?.url?.path ?? "")
                        if task.coreTask != nil { seen.add("core") }
                        task.cancel()
                        task.suspend()
                        task.resume()
                    }
                    for task in managers.entries.flatMap(\.tasks) { task.cancel() }
                }
                return try await next(request)
            }
        }
        let (beginnings, began) = AsyncStream.makeStream(of: Void.self)
        let held = Log<URLSessionDataTask>()
        let managers = Log<AFHTTPSessionManager>()
        let seen = Log<String>()
        let session = SessionManager(
            SessionConfiguration(baseURL: URL(string: "http://127.0.0.1/")) {
                $0.interceptors = [Waiting(began: began, held: held, managers: managers, seen: seen)]
            })
        let manager = AFHTTPSessionManager(session: session)
        managers.add(manager)
        manager.completionQueue = DispatchQueue(label: "completion")
        async let result = callback { done in
            manager.get(
                "path", parameters: nil, headers: nil, progress: nil, success: { _, _ in done(Callback()) },
                failure: { done(Callback(task: $0, error: $1 as NSError)) })
        }
        for await _ in beginnings {
            for task in manager.dataTasks {
                held.add(task)
                task.cancel()
            }
            break
        }
        #expect(await result.error?.code == NSURLErrorCancelled)
        #expect(seen.entries == ["/path", "core"])
    }
}
