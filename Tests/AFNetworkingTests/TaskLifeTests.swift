// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import TestSupport
import Testing

/// Task states, order of callbacks, invalidation.
@Suite(.timeLimit(.minutes(5))) struct TaskLifeTests {
    private func request(_ server: StubServer, _ path: String = "/") -> URLRequest { URLRequest(url: server.url(path)) }

    @Test func `a task waits to be resumed and reports its state`() async throws {
        try await StubServer.with { server in
            server.route("/", .json(#"{"a": 1}"#))
            let manager = AFHTTPSessionManager(for: server)
            var task: URLSessionDataTask?
            let result = await callback { done in
                task = manager.dataTask(with: request(server), uploadProgress: nil, downloadProgress: nil) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }
                #expect(task?.state == .suspended)
                #expect(manager.dataTasks == [task])
                #expect(manager.uploadTasks.isEmpty && manager.downloadTasks.isEmpty)
                task?.resume()
            }
            #expect(result.dictionary?["a"] as? Int == 1)
            #expect(task?.state == .completed)
            #expect(task?.error == nil)
            #expect(task?.originalRequest?.url == server.url("/"))
            #expect((task?.response as? HTTPURLResponse)?.statusCode == 200)
            #expect(task?.countOfBytesReceived == 8)
            #expect(task?.countOfBytesExpectedToReceive == 8)
            #expect(task?.coreTask?.status.state == .finished)
            #expect(manager.tasks.isEmpty)
        }
    }

    @Test(arguments: [("identity", #"{"a": 1}"#, 8), ("gzip", nil, -1)] as [(String, String?, Int64)])
    func `the expected size is that of the body, and unknown for a compressed body`(
        coding: String, text: String?, expected: Int64
    ) async throws {
        // `{"a": 1}` compressed with gzip.
        let compressed = try #require(Data(base64Encoded: "H4sIAAAAAAACA6tWSlSyUjCsBQCXjqH7CAAAAA=="))
        try await StubServer.with { server in
            server.route(
                "/",
                .reply(
                    headers: ["Content-Type": "application/json", "Content-Encoding": coding],
                    body: text.map { .string($0) } ?? .bytes(compressed)))
            let result = await AFHTTPSessionManager(for: server).fetch("")
            #expect(result.dictionary?["a"] as? Int == 1)
            #expect(result.task?.countOfBytesExpectedToReceive == expected)
            #expect(result.task?.countOfBytesReceived == 8)
            #expect(result.task?.response?.expectedContentLength == expected)
        }
    }

    @Test func `notifications and their keys have the names of AFNetworking`() {
        let names: [NSNotification.Name] = [
            .AFNetworkingTaskDidResume, .AFNetworkingTaskDidSuspend, .AFNetworkingTaskDidComplete,
            .AFURLSessionDidInvalidate, .AFURLSessionDownloadTaskDidMoveFileSuccessfully,
            .AFURLSessionDownloadTaskDidFailToMoveFile,
        ]
        #expect(
            names.map(\.rawValue) == [
                "com.alamofire.networking.task.resume", "com.alamofire.networking.task.suspend",
                "com.alamofire.networking.task.complete", "com.alamofire.networking.session.invalidate",
                "com.alamofire.networking.session.download.file-manager-succeed",
                "com.alamofire.networking.session.download.file-manager-error",
            ])
        let keys = [
            AFNetworkingTaskDidCompleteResponseDataKey, AFNetworkingTaskDidCompleteSerializedResponseKey,
            AFNetworkingTaskDidCompleteResponseSerializerKey, AFNetworkingTaskDidCompleteAssetPathKey,
            AFNetworkingTaskDidCompleteErrorKey, AFNetworkingTaskDidCompleteSessionTaskMetrics,
        ]
        #expect(
            keys == [
                "com.alamofire.networking.complete.finish.responsedata",
                "com.alamofire.networking.task.complete.serializedresponse",
                "com.alamofire.networking.task.complete.responseserializer",
                "com.alamofire.networking.task.complete.assetpath", "com.alamofire.networking.task.complete.error",
                "com.alamofire.networking.complete.sessiontaskmetrics",
            ])
    }

    @Test func `hooks and progress run on one serial queue, notifications on the main queue`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(300_000))
            let manager = AFHTTPSessionManager(for: server)
            manager.responseSerializer = AFHTTPResponseSerializer()
            let log = Log<Bool>()
            let note: @Sendable () -> Void = { log.add(Callback().isOnMainQueue) }
            manager.setDataTaskDidReceiveDataBlock { _, _, _ in note() }
            manager.setTaskDidCompleteBlock { _, _, _ in note() }
            let posted = await callback { done in
                let task = manager.dataTask(
                    with: request(server), uploadProgress: nil, downloadProgress: { _ in note() },
                    completionHandler: { _, _, _ in note() })
                Observer.keep(Observer(.AFNetworkingTaskDidComplete, of: task) { _ in done(Callback()) })
                task.resume()
            }
            #expect(posted.isOnMainQueue)
            #expect(log.entries.count > 3 && !log.entries.contains(true))
        }
    }

    @Test func `hooks, completion handler and notification run in order`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let log = Log<String>()
            manager.setDataTaskDidReceiveResponseBlock { _, _, _ in
                log.add("response")
                return .allow
            }
            manager.setDataTaskDidReceiveDataBlock { _, _, data in log.add("data \(data.count)") }
            manager.setTaskDidFinishCollectingMetricsBlock { _, _, metrics in
                log.add("metrics \((metrics as? AFURLSessionTaskMetrics)?.exchanges.count ?? 0)")
            }
            manager.setTaskDidCompleteBlock { _, _, error in log.add("complete \(error == nil)") }
            let posted = await callback { done in
                let task = manager.dataTask(
                    with: request(server), uploadProgress: nil,
                    downloadProgress: { log.add("progress \($0.completedUnitCount) of \($0.totalUnitCount)") },
                    completionHandler: { _, _, _ in log.add("handler") })
                let observer = Observer(.AFNetworkingTaskDidComplete, of: task) { notification in
                    log.add("notification")
                    done(Callback(task: notification.object as? URLSessionTask, object: notification.userInfo))
                }
                task.resume()
                Observer.keep(observer)
            }
            #expect(
                log.entries == [
                    "response", "progress 2 of 2", "data 2", "metrics 1", "complete true", "handler", "notification",
                ])
            let userInfo = posted.object as? [AnyHashable: Any]
            #expect(userInfo?[AFNetworkingTaskDidCompleteResponseDataKey] as? Data == Data("{}".utf8))
            #expect(userInfo?[AFNetworkingTaskDidCompleteSerializedResponseKey] is [String: Any])
            #expect(userInfo?[AFNetworkingTaskDidCompleteResponseSerializerKey] is AFJSONResponseSerializer)
            #expect(userInfo?[AFNetworkingTaskDidCompleteErrorKey] == nil)
            #expect(userInfo?[AFNetworkingTaskDidCompleteAssetPathKey] == nil)
            #expect(userInfo?[AFNetworkingTaskDidCompleteSessionTaskMetrics] is AFURLSessionTaskMetrics)
        }
    }

    @Test func `resuming and suspending are posted once each`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/", Script([.wait(gate), .reply(Reply(body: .string("{}")))]))
            let manager = AFHTTPSessionManager(for: server)
            let log = Log<String>()
            let task = manager.dataTask(with: request(server)) { _, _, _ in }
            let events = AsyncStream<Void>.makeStream()
            let observers = [
                Observer(.AFNetworkingTaskDidResume, of: task) { _ in
                    log.add("resume"); events.continuation.yield()
                },
                Observer(.AFNetworkingTaskDidSuspend, of: task) { _ in
                    log.add("suspend"); events.continuation.yield()
                },
                Observer(.AFNetworkingTaskDidComplete, of: task) { _ in
                    log.add("complete"); events.continuation.yield()
                },
            ]
            task.suspend()
            task.resume()
            task.resume()
            #expect(task.state == .running)
            task.suspend()
            task.suspend()
            #expect(task.state == .suspended)
            task.resume()
            gate.open()
            var iterator = events.stream.makeAsyncIterator()
            for _ in 0..<4 { _ = await iterator.next() }
            #expect(log.entries == ["resume", "suspend", "resume", "complete"])
            withExtendedLifetime(observers) {}
        }
    }

    @Test func `a cancelled task fails with -999 in any state`() async throws {
        try await StubServer.with { server in
            server.route("/", .hang)
            let manager = AFHTTPSessionManager(for: server)
            for isRunning in [false, true] {
                let count = server.activity.requests.count
                var task: URLSessionDataTask?
                async let result = callback { done in
                    task = manager.dataTask(with: request(server)) {
                        done(Callback(response: $0, object: $1, error: $2 as NSError?))
                    }
                    if isRunning { task?.resume() } else { task?.cancel() }
                }
                if isRunning {
                    try await server.requests(count: count + 1)
                    manager.tasks.first?.cancel()
                }
                let error = await result.error
                #expect(error?.domain == NSURLErrorDomain)
                #expect(error?.code == -999)
            }
            #expect(manager.tasks.isEmpty)
        }
    }

    @Test func `network errors have Foundation's codes and the core error as underlying error`() async throws {
        try await StubServer.with { server in
            server.route("/reset", .resetAfter(bytes: 60))
            server.route("/slow", .hang)
            let manager = AFHTTPSessionManager(for: server)
            let impatient = AFHTTPSessionManager(for: server) { $0.timeoutIntervalForRequest = 0.2 }
            let lost = await manager.fetch("reset").error
            #expect(lost?.code == NSURLErrorNetworkConnectionLost)
            #expect(lost?.userInfo[NSUnderlyingErrorKey] is SessionError)
            #expect(lost?.userInfo[NSURLErrorFailingURLErrorKey] as? URL == server.url("/reset"))
            #expect(await impatient.fetch("slow").error?.code == NSURLErrorTimedOut)
            #expect(await manager.fetch("http://127.0.0.1:1/").error?.code == NSURLErrorCannotConnectToHost)
            #expect(await manager.fetch("http://name.invalid/").error?.code == NSURLErrorCannotFindHost)
        }
    }

    @Test func `the part of a body received before a failure is only in the notification`() async throws {
        try await StubServer.with { server in
            server.route("/", .truncated(declared: 10, sent: 4))
            let manager = AFHTTPSessionManager(for: server)
            let log = Log<Bool>()
            let posted = await callback { done in
                let task = manager.dataTask(with: request(server)) { log.add($1 == nil && $2 != nil) }
                let observer = Observer(.AFNetworkingTaskDidComplete, of: task) {
                    done(Callback(object: $0.userInfo))
                }
                task.resume()
                Observer.keep(observer)
            }
            let userInfo = posted.object as? [AnyHashable: Any]
            #expect((userInfo?[AFNetworkingTaskDidCompleteResponseDataKey] as? Data)?.count == 4)
            #expect(
                (userInfo?[AFNetworkingTaskDidCompleteErrorKey] as? NSError)?.code == NSURLErrorNetworkConnectionLost)
            #expect(userInfo?[AFNetworkingTaskDidCompleteSerializedResponseKey] == nil)
            #expect(log.entries == [true])
        }
    }

    @Test(arguments: [(["1234"], true), (["12", "34"], true), (["12345"], false), (["1234", "5"], false)])
    func `a body of exactly the session's limit is accepted, a larger one is an error`(
        chunks: [String], isTaken: Bool
    ) async {
        let session = SessionManager {
            $0.transport = MockTransport(MockResponse(chunks: chunks.map { Data($0.utf8) }))
            $0.maximumBodySize = 4
        }
        let manager = AFHTTPSessionManager(session: session)
        manager.completionQueue = DispatchQueue(label: "completion")
        manager.responseSerializer = AFHTTPResponseSerializer()
        let result = await manager.fetch("http://a.example/")
        #expect(result.text == (isTaken ? "1234" : nil))
        #expect(result.error?.code == (isTaken ? nil : NSURLErrorDataLengthExceedsMaximum))
    }

    @Test func `a response can be rejected by its head or become a download`() async throws {
        try await StubServer.with { server in
            server.route("/", .json(#"{"a": 1}"#))
            let manager = AFHTTPSessionManager(for: server)
            manager.setDataTaskDidReceiveResponseBlock { _, _, _ in .cancel }
            #expect(await manager.fetch("").error?.code == -999)
            let place = FileManager.default.temporaryDirectory.appending(path: "af-\(UUID())")
            defer { try? FileManager.default.removeItem(at: place) }
            let log = Log<String>()
            // Foundation deprecates `.becomeDownload` (raw value 2), because its own sessions do not support it.
            manager.setDataTaskDidReceiveResponseBlock { _, _, _ in .init(rawValue: 2) ?? .cancel }
            manager.setDataTaskDidBecomeDownloadTaskBlock { _, data, download in
                log.add("\(data.taskIdentifier == download.taskIdentifier)")
            }
            manager.setDownloadTaskDidWriteDataBlock { _, _, count, total, expected in
                log.add("\(count) of \(total) of \(expected)")
            }
            let modes = Log<Int?>()
            @Sendable func note(_ file: URL) {
                modes.add(
                    try? FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int)
            }
            manager.setDownloadTaskDidFinishDownloadingBlock { _, _, file in
                note(file)
                return place
            }
            let result = await callback { done in
                manager.dataTask(with: request(server)) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }.resume()
            }
            #expect(result.object as? URL == place)
            try #expect(Data(contentsOf: place) == Data(#"{"a": 1}"#.utf8))
            #expect(log.entries == ["true", "8 of 8 of 8"])
            server.route("/rejected", .text("no", status: 404))
            let rejected = await callback { done in
                manager.downloadTask(
                    with: URLRequest(url: server.url("/rejected")), progress: nil, destination: nil
                ) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }.resume()
            }
            #expect(rejected.object as? URL == place)
            #expect(modes.entries == [0o600, 0o600], "Files in the directory for temporary ones are private.")
        }
    }

    @Test func `a redirect can be changed or refused`() async throws {
        try await StubServer.with { server in
            server.route("/", .redirect(302, to: "/next"))
            server.route("/next", .json(#"{"next": true}"#))
            server.route("/other", .json(#"{"other": true}"#))
            let manager = AFHTTPSessionManager(for: server)
            #expect(await manager.fetch("").dictionary?["next"] as? Bool == true)
            let other = server.url("/other")
            manager.setTaskWillPerformHTTPRedirectionBlock { _, _, response, request in
                var request = request
                request.url = other
                request.setValue("\((response as? HTTPURLResponse)?.statusCode ?? 0)", forHTTPHeaderField: "X-From")
                return request
            }
            let changed = await manager.fetch("")
            #expect(changed.dictionary?["other"] as? Bool == true)
            #expect(changed.task?.currentRequest?.url == other)
            #expect(changed.task?.originalRequest?.url == server.url("/"))
            #expect(server.activity.requests.last?.headers["X-From"] == "302")
            manager.setTaskWillPerformHTTPRedirectionBlock { _, _, _, _ in nil }
            #expect(await manager.fetch("").error?.localizedDescription == "Request failed: found (302)")
        }
    }

    @Test(arguments: [true, false])
    func `blocks for redirects and challenges that are set while a task is running apply`(
        isShared: Bool
    ) async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/moved", Script([.wait(gate), .reply(Reply(status: 302, headers: ["Location": "/next"]))]))
            server.route("/next", .json("{}"))
            server.route("/private") { request in
                guard request.headers["Authorization"] == nil else { return .json("{}") }
                let reply = Reply(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
                return Script([.wait(gate), .reply(reply)])
            }
            let manager =
                isShared
                ? AFHTTPSessionManager(session: SessionManager(baseURL: server.url("/")))
                : AFHTTPSessionManager(for: server)
            manager.completionQueue = DispatchQueue(label: "completion")
            manager.responseSerializer.acceptableStatusCodes = nil
            async let moved = manager.fetch("moved")
            async let opened = manager.fetch("private")
            try await server.requests(count: 2)
            manager.setTaskWillPerformHTTPRedirectionBlock { _, _, _, _ in nil }
            manager.setAuthenticationChallengeHandler { _, _, _, _ in
                URLCredential(user: "ada", password: "secret", persistence: .none)
            }
            gate.open()
            #expect(await (moved.response as? HTTPURLResponse)?.statusCode == 302)
            // A shared session may have credentials of its own, and keeps those that were accepted.
            #expect(await (opened.response as? HTTPURLResponse)?.statusCode == (isShared ? 401 : 200))
        }
    }

    @Test(arguments: [("POST", 401, 1), ("GET", 200, 2)])
    func `a block for challenges that is set after a redirect repeats safe requests only`(
        method: String, status: Int, count: Int
    ) async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/form", .redirect(303, to: "/private"))
            server.route("/private") { request in
                guard request.headers["Authorization"] == nil else { return .json("{}") }
                let reply = Reply(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
                return Script([.wait(gate), .reply(reply)])
            }
            let manager = AFHTTPSessionManager(for: server)
            manager.responseSerializer.acceptableStatusCodes = nil
            async let result = callback { done in
                var request = URLRequest(url: server.url("/form"))
                request.httpMethod = method
                manager.dataTask(with: request) { done(Callback(response: $0, object: $1, error: $2 as NSError?)) }
                    .resume()
            }
            try await server.requests(count: 2)
            manager.setAuthenticationChallengeHandler { _, _, _, _ in
                URLCredential(user: "ada", password: "secret", persistence: .none)
            }
            gate.open()
            #expect(await (result.response as? HTTPURLResponse)?.statusCode == status)
            #expect(server.activity.requests.filter { $0.path == "/form" }.count == count)
        }
    }

    @Test func `a block for challenges that is set late does not repeat a request with its own authorization`()
        async throws
    {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            let reply = Reply(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
            server.route("/", Script([.wait(gate), .reply(reply)]))
            let manager = AFHTTPSessionManager(for: server)
            async let result = manager.fetch("", headers: ["Authorization": "Bearer old"])
            try await server.requests(count: 1)
            manager.setAuthenticationChallengeHandler { _, _, _, _ in URLSession.AuthChallengeDisposition.useCredential
            }
            gate.open()
            #expect(await (result.response as? HTTPURLResponse)?.statusCode == 401)
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test(arguments: [true, false])
    func `a block for challenges that is set late is asked by a server that did not receive the authorization`(
        isOfSession: Bool
    ) async throws {
        try await StubServer.with { server in
            try await StubServer.with { other in
                let gate = try ScriptGate()
                server.route("/", .redirect(302, to: other.url("/").absoluteString))
                other.fallback { request in
                    guard request.headers["Authorization"] == nil else { return .json("{}") }
                    let reply = Reply(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
                    return Script([.wait(gate), .reply(reply)])
                }
                let authorization = ["Authorization": "Bearer old"]
                let manager = AFHTTPSessionManager(for: server) {
                    if isOfSession { $0.httpAdditionalHeaders = authorization }
                }
                manager.responseSerializer.acceptableStatusCodes = nil
                async let result = manager.fetch("", headers: isOfSession ? nil : authorization)
                try await other.requests(count: 1)
                manager.setAuthenticationChallengeHandler { _, _, _, _ in
                    URLCredential(user: "ada", password: "secret", persistence: .none)
                }
                gate.open()
                #expect(await (result.response as? HTTPURLResponse)?.statusCode == 200)
                #expect(server.activity.requests.map { $0.headers["Authorization"] } == ["Bearer old", "Bearer old"])
            }
        }
    }

    @Test func `a block for challenges that is set late does not repeat a request that a redirect block authorized`()
        async throws
    {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/", .redirect(302, to: "/private"))
            let reply = Reply(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
            server.route("/private", Script([.wait(gate), .reply(reply)]))
            let manager = AFHTTPSessionManager(for: server)
            manager.setTaskWillPerformHTTPRedirectionBlock { _, _, _, request in
                var request = request
                request.setValue("Bearer old", forHTTPHeaderField: "Authorization")
                return request
            }
            async let result = manager.fetch("")
            try await server.requests(count: 2)
            manager.setAuthenticationChallengeHandler { _, _, _, _ in URLSession.AuthChallengeDisposition.useCredential
            }
            gate.open()
            #expect(await (result.response as? HTTPURLResponse)?.statusCode == 401)
            #expect(server.activity.requests.count == 2)
        }
    }

    @Test func `a block for redirects decides whether cookies are sent`() async throws {
        try await StubServer.with { server in
            server.route("/", .status(302, headers: ["Location": "/next", "Set-Cookie": "id=1"]))
            server.route("/next", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            for handlesCookies in [true, false] {
                manager.setTaskWillPerformHTTPRedirectionBlock { _, _, _, request in
                    var request = request
                    request.httpShouldHandleCookies = handlesCookies
                    return request
                }
                #expect(await manager.fetch("").error == nil)
                #expect(server.activity.requests.last?.path == "/next")
                #expect(server.activity.requests.last?.headers["Cookie"] == (handlesCookies ? "id=1" : nil))
            }
        }
    }

    @Test func `the serializer is read when the response is complete`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/", Script([.wait(gate), .reply(Reply(body: .string("text")))]))
            let manager = AFHTTPSessionManager(for: server)
            async let result = manager.fetch("")
            try await server.requests(count: 1)
            manager.responseSerializer = AFHTTPResponseSerializer()
            gate.open()
            #expect(await result.text == "text")
        }
    }

    /// More at a time than threads of Swift's pool, or of a concurrent dispatch queue, which has as many, and then one more
    /// a second.
    @Test func `serializers may wait for another request`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let manager = AFHTTPSessionManager(for: server)
            let serializer = WaitingSerializer()
            manager.responseSerializer = serializer
            let count = 4 * ProcessInfo.processInfo.activeProcessorCount
            let results = AsyncStream<Bool>.makeStream()
            for _ in 0..<count {
                manager.get(
                    "", parameters: nil, headers: nil, progress: nil,
                    success: { results.continuation.yield($1 != nil) },
                    failure: { _, _ in results.continuation.yield(false) })
            }
            var waiting = serializer.waiting.stream.makeAsyncIterator()
            for _ in 0..<count { await waiting.next() }
            #expect(await AFHTTPSessionManager(for: server).fetch("key").error == nil)
            for _ in 0..<count { serializer.key.signal() }
            var iterator = results.stream.makeAsyncIterator()
            for _ in 0..<count { #expect(await iterator.next() == true) }
        }
    }

    /// A response to a suspended task.
    enum Late: CaseIterable {
        case empty, body, download, becomesDownload
    }

    @Test(arguments: Late.allCases)
    func `a suspended task calls no block and does not end`(late: Late) async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            let reply = late == .empty || late == .download ? Reply(status: 204) : Reply(body: .string("text"))
            server.route("/", Script([.wait(gate), .reply(reply)]))
            server.route("/other", .text("other"))
            let (manager, log) = (AFHTTPSessionManager(for: server), Log<String>())
            manager.responseSerializer = AFHTTPResponseSerializer()
            manager.setDataTaskDidReceiveResponseBlock { _, _, _ in
                log.add("response")
                return late == .becomesDownload ? .init(rawValue: 2) ?? .cancel : .allow
            }
            manager.setDataTaskDidReceiveDataBlock { _, _, _ in log.add("data") }
            manager.setDownloadTaskDidWriteDataBlock { _, _, _, _, _ in log.add("written") }
            let ended = AsyncStream<Void>.makeStream()
            @Sendable func end() {
                log.add("end")
                ended.continuation.yield()
            }
            let task: URLSessionTask =
                late == .download
                ? manager.downloadTask(with: request(server), progress: nil, destination: nil) { _, _, _ in end() }
                : manager.dataTask(with: request(server), completionHandler: { _, _, _ in end() })
            task.resume()
            let core = try #require(task.coreTask)
            try await server.requests(count: 1)
            task.suspend()
            gate.open()
            for await case .response in core.events { break }
            // What would be called is called before the end of a later task.
            let other = AFHTTPSessionManager(for: server)
            for _ in 0..<20 { _ = await other.fetch("other") }
            #expect(log.entries == [])
            #expect(task.state == .suspended)
            task.resume()
            for await _ in ended.stream { break }
            let calls: [Late: [String]] = [
                .empty: ["response"], .body: ["response", "data"], .becomesDownload: ["response", "written"],
            ]
            #expect(log.entries == (calls[late] ?? []) + ["end"])
        }
    }

    @Test(arguments: [302, 401], [false, true])
    func `a suspended task asks about no redirect or challenge`(status: Int, cancels: Bool) async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            let headers: HeaderPairs = ["Location": "/other", "WWW-Authenticate": "Basic realm=\"x\""]
            server.route("/") { request in
                guard request.headers["Authorization"] == nil else { return .text("other") }
                return Script([.wait(gate), .reply(Reply(status: status, headers: headers))])
            }
            server.route("/other", .text("other"))
            let (manager, log) = (AFHTTPSessionManager(for: server), Log<String>())
            manager.responseSerializer = AFHTTPResponseSerializer()
            manager.setTaskWillPerformHTTPRedirectionBlock { _, _, _, request in
                log.add("redirect")
                return request
            }
            manager.setAuthenticationChallengeHandler { _, _, _, _ in
                log.add("challenge")
                return URLCredential(user: "ada", password: "secret", persistence: .none)
            }
            let ended = AsyncStream<NSError?>.makeStream()
            let task = manager.dataTask(with: request(server)) { ended.continuation.yield($2 as NSError?) }
            task.resume()
            try await server.requests(count: 1)
            task.suspend()
            gate.open()
            let other = AFHTTPSessionManager(for: server)
            for _ in 0..<20 { _ = await other.fetch("other") }
            #expect(log.entries == [])
            if cancels { task.cancel() } else { task.resume() }
            for await error in ended.stream {
                #expect(error?.code == (cancels ? NSURLErrorCancelled : nil))
                break
            }
            #expect(log.entries == (cancels ? [] : status == 302 ? ["redirect"] : ["challenge"]))
        }
    }

    @Test(arguments: [false, true])
    func `a block that suspends its task is the last one that is called`(byData: Bool) async throws {
        try await StubServer.with { server in
            server.route("/", .text("text"))
            server.route("/other", .text("other"))
            let (manager, log) = (AFHTTPSessionManager(for: server), Log<String>())
            manager.responseSerializer = AFHTTPResponseSerializer()
            let suspended = AsyncStream<Void>.makeStream()
            @Sendable func note(_ entry: String, _ task: URLSessionTask, suspends: Bool) {
                log.add(entry)
                guard suspends else { return }
                task.suspend()
                suspended.continuation.yield()
            }
            manager.setDataTaskDidReceiveResponseBlock { _, task, _ in
                note("response", task, suspends: !byData)
                return .allow
            }
            manager.setDataTaskDidReceiveDataBlock { _, task, _ in note("data", task, suspends: byData) }
            let ended = AsyncStream<Void>.makeStream()
            let task = manager.dataTask(with: request(server)) { _, _, _ in
                log.add("end")
                ended.continuation.yield()
            }
            task.resume()
            for await _ in suspended.stream { break }
            let other = AFHTTPSessionManager(for: server)
            for _ in 0..<20 { _ = await other.fetch("other") }
            #expect(log.entries == (byData ? ["response", "data"] : ["response"]))
            task.resume()
            for await _ in ended.stream { break }
            #expect(log.entries == ["response", "data", "end"])
        }
    }

    @Test(arguments: [false, true])
    func `invalidation cancels the tasks of the current session, not those that an earlier one let finish`(
        hasNew: Bool
    ) async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route(
                "/old",
                Script([.wait(gate), .reply(Reply(headers: ["Content-Type": "application/json"], body: .string("{}")))])
            )
            server.route("/new", .hang)
            let manager = AFHTTPSessionManager(for: server)
            async let old = manager.fetch("old")
            try await server.requests(count: 1)
            manager.invalidateSessionCancelingTasks(false, resetSession: true)
            if hasNew {
                async let new = manager.fetch("new")
                try await server.requests(count: 2)
                manager.invalidateSessionCancelingTasks(true, resetSession: true)
                #expect(await new.error?.code == -999)
            } else {
                manager.invalidateSessionCancelingTasks(true, resetSession: true)
                manager.invalidateSessionCancelingTasks(true)
                manager.invalidateSessionCancelingTasks(true)
            }
            gate.open()
            #expect(await old.error == nil)
        }
    }

    @Test(arguments: [true, false], [true, false])
    func `invalidation cancels tasks or lets them finish, and is reported after the last one`(
        cancels: Bool, resets: Bool
    ) async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route(
                "/",
                Script([.wait(gate), .reply(Reply(headers: ["Content-Type": "application/json"], body: .string("{}")))])
            )
            server.route("/next", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let log = Log<String>()
            let session = manager.session
            #expect(manager.session === session)
            let ended = AsyncStream<Void>.makeStream()
            manager.setSessionDidBecomeInvalidBlock { old, error in
                log.add("invalid \(old === session) \(error == nil)")
            }
            let observer = Observer(.AFURLSessionDidInvalidate, of: session) { _ in
                log.add("notification")
                ended.continuation.yield()
            }
            async let running = manager.fetch("")
            try await server.requests(count: 1)
            manager.invalidateSessionCancelingTasks(cancels, resetSession: resets)
            gate.open()
            #expect(await (running.error?.code == -999) == cancels)
            var iterator = ended.stream.makeAsyncIterator()
            _ = await iterator.next()
            #expect(log.entries == ["invalid true true", "notification"])
            let next = await manager.fetch("next")
            #expect((next.error == nil) == resets)
            withExtendedLifetime(observer) {}
        }
    }

    @Test func `tasks fail after an invalidation without a reset, also if one with a reset preceded it`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let manager = AFHTTPSessionManager(for: server)
            manager.invalidateSessionCancelingTasks(false, resetSession: true)
            manager.invalidateSessionCancelingTasks(false, resetSession: false)
            #expect(await manager.fetch("").error?.code == -1)
            manager.invalidateSessionCancelingTasks(false, resetSession: true)
            #expect(await manager.fetch("").error == nil)
        }
    }

    @Test func `each session ends after its own tasks, and hooks receive the session of their task`() async throws {
        try await StubServer.with { server in
            let gates = [try ScriptGate(), try ScriptGate()]
            server.route("/0", Script([.wait(gates[0]), .reply(Reply(body: .string("{}")))]))
            server.route("/1", Script([.wait(gates[1]), .reply(Reply(body: .string("{}")))]))
            let manager = AFHTTPSessionManager(for: server)
            manager.responseSerializer = AFHTTPResponseSerializer()
            let ended = AsyncStream<ObjectIdentifier>.makeStream()
            let told = Log<ObjectIdentifier>()
            manager.setSessionDidBecomeInvalidBlock { session, _ in ended.continuation.yield(ObjectIdentifier(session))
            }
            manager.setTaskDidCompleteBlock { session, _, _ in told.add(ObjectIdentifier(session)) }
            let sessions = Log<URLSession>()
            func start(_ path: String) async throws -> Task<Callback, Never> {
                sessions.add(manager.session)
                let count = server.activity.requests.count
                let task = Task { await manager.fetch(path) }
                try await server.requests(count: count + 1)
                return task
            }
            let old = try await start("0")
            manager.invalidateSessionCancelingTasks(false, resetSession: true)
            let new = try await start("1")
            #expect(sessions.entries[0] !== sessions.entries[1])
            gates[0].open()
            #expect(await old.value.error == nil)
            var iterator = ended.stream.makeAsyncIterator()
            // The task of the new session is still running.
            #expect(await iterator.next() == ObjectIdentifier(sessions.entries[0]))
            gates[1].open()
            #expect(await new.value.error == nil)
            #expect(told.entries == sessions.entries.map { ObjectIdentifier($0) })
        }
    }

    @Test func `a suspended task survives an invalidation that lets tasks finish`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let result = await callback { done in
                let task = manager.dataTask(with: request(server)) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }
                manager.invalidateSessionCancelingTasks(false)
                task.resume()
            }
            #expect(result.error == nil)
            #expect(await manager.fetch("").error != nil)
        }
    }

    @Test func `the session lists the manager's tasks`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server) { $0.httpAdditionalHeaders = ["X-A": "a"] }
            let isOver = AsyncStream<Void>.makeStream()
            manager.setTaskDidCompleteBlock { _, _, _ in isOver.continuation.yield() }
            manager.session.dataTask(with: server.url("/")).resume()
            var iterator = isOver.stream.makeAsyncIterator()
            _ = await iterator.next()
            try await #expect(server.requests(count: 1)[0].headers["X-A"] == "a")
        }
    }

    @Test func `a task that has ended is not listed any more when its end is reported`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let listed = AsyncStream<Int>.makeStream()
            manager.setTaskDidCompleteBlock { [weak manager] session, _, _ in
                listed.continuation.yield(manager?.tasks.count ?? -1)
                session.getAllTasks { listed.continuation.yield($0.count) }
            }
            var iterator = listed.stream.makeAsyncIterator()
            for _ in 0..<200 {
                #expect(await manager.fetch("").error == nil)
                for _ in 0..<2 { #expect(await iterator.next() == 0) }
            }
        }
    }

    @Test(arguments: [true, false])
    func `a session object that was replaced by a reset has its own tasks only, and ends no others`(
        cancels: Bool
    ) async throws {
        try await StubServer.with { server in
            let gates = [try ScriptGate(), try ScriptGate()]
            for (number, gate) in gates.enumerated() {
                server.route(
                    "/\(number)",
                    Script([
                        .wait(gate), .reply(Reply(headers: ["Content-Type": "application/json"], body: .string("{}"))),
                    ]))
            }
            let manager = AFHTTPSessionManager(for: server)
            let session = manager.session
            async let old = manager.fetch("0")
            try await server.requests(count: 1)
            manager.invalidateSessionCancelingTasks(false, resetSession: true)
            async let new = manager.fetch("1")
            try await server.requests(count: 2)
            func paths(_ session: URLSession) async -> [String?] {
                await withCheckedContinuation { done in
                    session.getAllTasks { done.resume(returning: $0.map { $0.originalRequest?.url?.path }) }
                }
            }
            #expect(await paths(session) == ["/0"])
            #expect(await paths(manager.session) == ["/1"])
            if cancels { session.invalidateAndCancel() } else { session.finishTasksAndInvalidate() }
            for gate in gates { gate.open() }
            #expect(await old.error?.code == (cancels ? -999 : nil))
            #expect(await new.error == nil)
            #expect(await manager.fetch("1").error == nil)
        }
    }

    @Test func `response fields whose names differ only in case are joined under the first name`() async throws {
        try await StubServer.with { server in
            let head = "HTTP/1.1 200 OK\r\nX-tag: a\r\nx-Tag: b\r\nX-TAG: c\r\nContent-Length: 0\r\n\r\n"
            server.route("/", Script([.send(Data(head.utf8))]))
            let manager = AFHTTPSessionManager(for: server)
            let fields = (await manager.fetch("").response as? HTTPURLResponse)?.allHeaderFields
            #expect(fields?["X-tag"] as? String == "a, b, c")
            #expect(fields?.count == 2)
        }
    }

    @Test func `a callback that cancels its task is not called again`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(300_000))
            let manager = AFHTTPSessionManager(for: server)
            manager.responseSerializer = AFHTTPResponseSerializer()
            let log = Log<String>()
            let result = await callback { done in
                manager.get("", parameters: nil, headers: nil, progress: nil) { task, object in
                    log.add("success")
                    task.cancel()
                    task.suspend()
                    task.resume()
                    done(Callback(task: task, object: object))
                } failure: { _, _ in
                    log.add("failure")
                }
            }
            #expect(result.task?.state == .completed)
            #expect((result.object as? Data)?.count == 300_000)
            _ = await manager.fetch("")
            #expect(log.entries == ["success"])
        }
    }

    @Test func `tasks are listed oldest first, those for data, uploads and downloads in this order`() throws {
        let manager = AFHTTPSessionManager()
        let request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:1/")))
        var made: [[URLSessionTask]] = [[], [], []]
        for _ in 0..<20 {
            made[2].append(manager.downloadTask(with: request, progress: nil, destination: nil, completionHandler: nil))
            made[0].append(manager.dataTask(with: request, completionHandler: nil))
            made[1].append(manager.uploadTask(with: request, from: Data(), progress: nil, completionHandler: nil))
        }
        #expect(manager.dataTasks == made[0])
        #expect(manager.uploadTasks == made[1])
        #expect(manager.downloadTasks == made[2])
        #expect(manager.tasks == made.flatMap(\.self))
        manager.invalidateSessionCancelingTasks(true)
    }

    @Test func `progress objects cancel and suspend their task`() async throws {
        try await StubServer.with { server in
            server.route("/", .hang)
            let manager = AFHTTPSessionManager(for: server)
            async let result = manager.fetch("")
            try await server.requests(count: 1)
            let task = try #require(manager.tasks.first)
            let progress = try #require(manager.downloadProgress(for: task))
            #expect(progress.totalUnitCount == -1)
            #expect(progress.isCancellable && progress.isPausable)
            let other = AFHTTPSessionManager(for: server)
            #expect(other.downloadProgress(for: task) == nil)
            #expect(other.uploadProgress(for: task) == nil)
            // Foundation calls the handlers on its own queue.
            progress.pause()
            try await eventually { task.state == .suspended }
            progress.resume()
            try await eventually { task.state == .running }
            progress.cancel()
            #expect(await result.error?.code == -999)
            #expect(manager.downloadProgress(for: task) == nil)
        }
    }

    @Test func `a progress object that is first read late has the numbers of bytes so far`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let result = await manager.call {
                manager.post("", parameters: ["a": 1], headers: nil, progress: nil, success: $0, failure: $1)
            }
            let progress = try #require(result.task).progress
            #expect(progress.completedUnitCount == 2)
            #expect(progress.totalUnitCount == 2)
        }
    }

    @Test func `a task runs after its progress was paused and resumed in quick succession`() async throws {
        try await StubServer.with { server in
            server.route("/", .hang)
            server.route("/quick", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            async let result = manager.fetch("")
            try await server.requests(count: 1)
            let task = try #require(manager.tasks.first)
            for _ in 0..<50 {
                for _ in 0..<50 {
                    task.progress.pause()
                    task.progress.resume()
                }
                // Foundation calls the handlers in the meantime.
                _ = await manager.fetch("quick")
                try await eventually { task.state == .running }
            }
            task.cancel()
            #expect(await result.error?.code == -999)
        }
    }

    @Test(arguments: [true, false])
    func `a completion handler is in the group until it has returned`(isOnMainQueue: Bool) async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            if isOnMainQueue { manager.completionQueue = nil }
            let group = DispatchGroup()
            manager.completionGroup = group
            let log = Log<String>()
            _ = await callback { done in
                manager.dataTask(with: request(server)) { _, _, _ in
                    log.add(group.wait(timeout: .now()) == .timedOut ? "in the group" : "not in the group")
                    group.notify(queue: .global()) {
                        log.add("left")
                        done(Callback())
                    }
                    log.add("returns")
                }.resume()
            }
            #expect(log.entries == ["in the group", "returns", "left"])
        }
    }

    @Test func `a suspended task without other references is kept until it ends`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let ends = AsyncStream<Void>.makeStream()
            var iterator = ends.stream.makeAsyncIterator()
            func make() {
                let handler: @Sendable (URLResponse, Any?, (any Error)?) -> Void = { _, _, _ in
                    ends.continuation.yield()
                }
                _ = manager.dataTask(with: request(server), completionHandler: handler)
                _ = manager.uploadTask(
                    with: request(server), from: Data(), progress: nil, completionHandler: handler)
                _ = manager.downloadTask(with: request(server), progress: nil, destination: nil) { _, _, _ in
                    ends.continuation.yield()
                }
            }
            make()
            #expect(manager.dataTasks.count == 1)
            #expect(manager.uploadTasks.count == 1)
            #expect(manager.downloadTasks.count == 1)
            weak let held = manager.dataTasks.first
            #expect(held?.state == .suspended)
            held?.resume()
            manager.uploadTasks.first?.resume()
            manager.downloadTasks.first?.cancel()
            for _ in 0..<3 { _ = await iterator.next() }
            #expect(manager.tasks.isEmpty)
            try await eventually { held == nil }
        }
    }

    @Test func `an invalidated session ends when its suspended tasks have ended`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let log = Log<String>()
            let ended = AsyncStream<Void>.makeStream()
            let first = manager.session
            manager.setSessionDidBecomeInvalidBlock { session, _ in
                log.add(session === first ? "first session" : "second session")
                ended.continuation.yield()
            }
            let task = manager.dataTask(with: request(server)) { _, _, _ in }
            manager.setTaskDidCompleteBlock { _, _, _ in log.add("task") }
            manager.invalidateSessionCancelingTasks(false)
            manager.invalidateSessionCancelingTasks(false)
            task.resume()
            var iterator = ended.stream.makeAsyncIterator()
            _ = await iterator.next()
            manager.invalidateSessionCancelingTasks(false, resetSession: true)
            _ = manager.session
            manager.invalidateSessionCancelingTasks(false)
            _ = await iterator.next()
            #expect(log.entries == ["task", "first session", "second session"])
        }
    }
}

/// An observer of a notification about one object, removed in `deinit`.
final class Observer: Sendable {
    private let token: Token

    init(_ name: NSNotification.Name, of object: AnyObject?, _ receive: @escaping @Sendable (Notification) -> Void) {
        token = Token(NotificationCenter.default.addObserver(forName: name, object: object, queue: nil, using: receive))
    }

    /// Retains an observer until the process ends.
    static func keep(_ observer: Observer) {
        kept.add(observer)
    }

    private static let kept = Log<Observer>()

    private final class Token: NSObject, @unchecked Sendable {
        let token: any NSObjectProtocol

        init(_ token: any NSObjectProtocol) {
            self.token = token
        }

        deinit {
            NotificationCenter.default.removeObserver(token)
        }
    }
}

/// A serializer that waits for something that the responses of another manager bring.
private final class WaitingSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    let waiting = AsyncStream<Void>.makeStream()
    let key = DispatchSemaphore(value: 0)

    override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
        waiting.continuation.yield()
        return key.wait(timeout: .now() + 30) == .success ? data : nil
    }
}
