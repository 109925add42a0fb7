// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import Testing

/// The verbs, URL resolution, header field precedence, and the queues of callbacks.
@Suite(.timeLimit(.minutes(5))) struct AFHTTPSessionManagerTests {
    @Test func `a GET calls success with the task and the JSON`() async throws {
        try await StubServer.with { server in
            server.route("/user", .json(#"{"name": "Ada", "age": 36}"#))
            let manager = AFHTTPSessionManager(for: server)
            let result = await manager.fetch("user")
            #expect(result.error == nil)
            #expect(result.dictionary?["name"] as? String == "Ada")
            #expect(result.dictionary?["age"] as? Int == 36)
            #expect((result.response as? HTTPURLResponse)?.statusCode == 200)
            #expect(result.task?.state == .completed)
        }
    }

    @Test func `callbacks run on the main queue unless a completion queue is set`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            #expect(await !manager.fetch("").isOnMainQueue)
            manager.completionQueue = nil
            #expect(await manager.fetch("").isOnMainQueue)
            let failed = await manager.fetch("ftp://x")
            #expect(failed.isOnMainQueue)
            #expect(failed.task == nil)
            #expect(failed.error?.code == -1000)
        }
    }

    @Test func `each verb sends its method, with the parameters in the query or the body`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .echo }
            let manager = AFHTTPSessionManager(for: server)
            let parameters = ["a": "1"]
            let headers = ["X-Call": "yes"]
            let results = [
                await manager.fetch("x", parameters: parameters, headers: headers),
                await manager.call {
                    manager.delete("x", parameters: parameters, headers: headers, success: $0, failure: $1)
                },
                await manager.call {
                    manager.post("x", parameters: parameters, headers: headers, progress: nil, success: $0, failure: $1)
                },
                await manager.call {
                    manager.put("x", parameters: parameters, headers: headers, success: $0, failure: $1)
                },
                await manager.call {
                    manager.patch("x", parameters: parameters, headers: headers, success: $0, failure: $1)
                },
                await manager.call {
                    manager.dataTask(
                        withHTTPMethod: "REPORT", urlString: "x", parameters: parameters, headers: headers,
                        uploadProgress: nil, downloadProgress: nil, success: $0, failure: $1)?.nowResumed
                },
            ]
            let lines = results.map { result in
                let echo = result.dictionary ?? [:]
                return "\(echo["method"] ?? "") \(echo["target"] ?? "") \(echo["body"] ?? "")"
            }
            #expect(
                lines == [
                    "GET /x?a=1 ", "DELETE /x?a=1 ", "POST /x a=1", "PUT /x a=1", "PATCH /x a=1", "REPORT /x a=1",
                ])
            let requests = try await server.requests(count: 6)
            #expect(requests.allSatisfy { $0.headers["X-Call"] == "yes" })
            let head = await callback { done in
                manager.head("x", parameters: nil, headers: nil) {
                    done(Callback(task: $0))
                } failure: { _, _ in
                }
            }
            #expect(head.task?.originalRequest?.httpMethod == "HEAD")
        }
    }

    @Test(arguments: [
        ("foo", "/v1/foo"), ("foo?bar=baz", "/v1/foo?bar=baz"), ("/foo", "/foo"), ("foo/", "/v1/foo/"),
        ("/foo/", "/foo/"), ("../x", "/x"), ("?a=b", "/v1/?a=b"), ("", "/v1/"),
    ])
    func `URLs are resolved against the base URL`(path: String, target: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let manager = AFHTTPSessionManager(baseURL: server.url("/v1"))
            manager.completionQueue = DispatchQueue(label: "completion")
            _ = await manager.fetch(path)
            try await #expect(server.requests(count: 1)[0].target == target)
        }
    }

    @Test(arguments: [
        ("http://example.com/v1", "http://example.com/v1/"), ("http://x.com/api?x=1", "http://x.com/api/?x=1"),
        ("http://x.com/p#f", "http://x.com/p/#f"), ("http://example.com", "http://example.com"),
        ("http://x.com/a/", "http://x.com/a/"), ("http://x.com/?", "http://x.com/?"),
    ])
    func `a missing slash is appended to the base URL`(base: String, result: String) {
        #expect(AFHTTPSessionManager(baseURL: URL(string: base)).baseURL?.absoluteString == result)
        #expect(AFHTTPSessionManager().baseURL == nil)
    }

    @Test func `fields of a call override those of the serializer, which override those of the session`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server) {
                $0.httpAdditionalHeaders = ["X-A": "session", "X-B": "session", "X-C": "session"]
            }
            manager.requestSerializer.setValue("serializer", forHTTPHeaderField: "X-A")
            manager.requestSerializer.setValue("serializer", forHTTPHeaderField: "X-B")
            _ = await manager.call {
                manager.post(
                    "", parameters: ["a": 1], headers: ["x-a": "call", "Content-Type": "text/mine"], progress: nil,
                    success: $0, failure: $1)
            }
            let headers = try await server.requests(count: 1)[0].headers
            #expect(headers["X-A"] == "call")
            #expect(headers["X-B"] == "serializer")
            #expect(headers["X-C"] == "session")
            #expect(headers["Content-Type"] == "text/mine")
        }
    }

    @Test func `an unacceptable status code fails with the body in the error and without an object`() async throws {
        try await StubServer.with { server in
            server.route("/", .json(#"{"reason": "gone"}"#, status: 410))
            let result = await AFHTTPSessionManager(for: server).fetch("")
            #expect(result.error?.domain == AFURLResponseSerializationErrorDomain)
            #expect(result.error?.code == -1011)
            #expect(result.error?.localizedDescription == "Request failed: gone (410)")
            let body = result.error?.userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] as? Data
            #expect(body == Data(#"{"reason": "gone"}"#.utf8))
            #expect(result.task != nil)
        }
    }

    @Test(arguments: [true, false])
    func `a request that cannot be created calls failure asynchronously and without a task`(isJSON: Bool) async throws {
        let manager = AFHTTPSessionManager(baseURL: URL(string: "http://example.com"))
        manager.completionQueue = DispatchQueue(label: "completion")
        if isJSON { manager.requestSerializer = AFJSONRequestSerializer() }
        let tooDeep = (0..<1_000).reduce(1 as Any) { value, _ in ["a": value] }
        let parameters: Any = isJSON ? ["a": Data()] : tooDeep
        let log = Log<String>()
        let result = await callback { done in
            let task = manager.post("x", parameters: parameters, headers: nil, progress: nil, success: nil) {
                log.add("failure")
                done(Callback(task: $0, error: $1 as NSError))
            }
            log.add(task == nil ? "nil" : "task")
        }
        #expect(result.task == nil)
        #expect(result.error?.code == -1016)
        #expect(result.error?.userInfo[AFNetworkingOperationFailingURLRequestErrorKey] is URLRequest)
        #expect(Set(log.entries) == ["nil", "failure"])
    }

    @Test func `a pinning policy requires an https base URL`() async throws {
        let policy = AFSecurityPolicy(pinningMode: .publicKey, withPinnedCertificates: [])
        let plain = AFHTTPSessionManager(baseURL: URL(string: "http://127.0.0.1:1/"))
        plain.completionQueue = DispatchQueue(label: "completion")
        #expect(throws: NSError.self) { try plain.setSecurityPolicy(policy) }
        plain.securityPolicy = policy
        let result = await plain.fetch("x")
        #expect(result.error?.domain == "Invalid Security Policy")
        #expect(
            result.error?.localizedFailureReason == """
                A security policy configured with `AFSSLPinningModePublicKey` can only be applied on a manager with a \
                secure base URL (i.e. https)
                """)
        try AFHTTPSessionManager(baseURL: URL(string: "https://example.com")).setSecurityPolicy(policy)
    }

    @Test func `a copy has copies of serializers and policy, but no hooks and queues`() throws {
        let manager = AFHTTPSessionManager(baseURL: URL(string: "https://example.com/v1"))
        manager.requestSerializer = AFJSONRequestSerializer(writingOptions: .prettyPrinted)
        manager.responseSerializer = AFHTTPResponseSerializer()
        manager.securityPolicy.validatesDomainName = false
        manager.completionQueue = DispatchQueue(label: "q")
        let copy = try #require(manager.copy() as? AFHTTPSessionManager)
        #expect(copy.baseURL == manager.baseURL)
        #expect((copy.requestSerializer as? AFJSONRequestSerializer)?.writingOptions == .prettyPrinted)
        #expect(copy.requestSerializer !== manager.requestSerializer)
        #expect(type(of: copy.responseSerializer) == AFHTTPResponseSerializer.self)
        #expect(copy.securityPolicy !== manager.securityPolicy)
        #expect(!copy.securityPolicy.validatesDomainName)
        #expect(copy.completionQueue == nil)
        #expect(manager.description.contains("baseURL: https://example.com/v1/"))
    }

    @Test func `a copy keeps the overrides of serializers and of the policy`() throws {
        final class Policy: AFSecurityPolicy, @unchecked Sendable {
            override func evaluateServerTrust(_ serverTrust: SecTrust, forDomain domain: String?) -> Bool { false }
        }
        final class Requests: AFHTTPRequestSerializer, @unchecked Sendable {}
        final class Responses: AFHTTPResponseSerializer, @unchecked Sendable {
            override func copy(with zone: NSZone? = nil) -> Any { Responses() }
        }
        let manager = AFHTTPSessionManager()
        manager.securityPolicy = Policy()
        manager.requestSerializer = Requests()
        manager.responseSerializer = Responses()
        let copy = try #require(manager.copy() as? AFHTTPSessionManager)
        #expect(copy.securityPolicy === manager.securityPolicy)
        #expect(copy.requestSerializer === manager.requestSerializer)
        #expect(copy.responseSerializer is Responses && copy.responseSerializer !== manager.responseSerializer)
    }

    @Test func `a manager can share a core session`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let session = SessionManager(baseURL: server.url("/api/")) { $0.headers[.accept] = "text/x" }
            let manager = AFHTTPSessionManager(session: session)
            manager.completionQueue = DispatchQueue(label: "completion")
            #expect(await manager.fetch("users").error == nil)
            _ = try await session.get("users")
            let requests = try await server.requests(count: 2)
            #expect(requests.map(\.target) == ["/api/users", "/api/users"])
            #expect(requests.allSatisfy { $0.headers["Accept"] == "text/x" && $0.connection == 0 })
            manager.invalidateSessionCancelingTasks(true, resetSession: false)
            _ = try await session.get("users")
        }
    }

    @Test func `a subclass can override properties`() async throws {
        final class Reader: AFJSONResponseSerializer, @unchecked Sendable {
            override var acceptableContentTypes: Set<String>? {
                get { nil }
                set {}
            }
            override var readingOptions: JSONSerialization.ReadingOptions {
                get { .fragmentsAllowed }
                set {}
            }
        }
        final class Tools: AFHTTPSessionManager, @unchecked Sendable {
            let queue = DispatchQueue(label: "tools")
            let base = Log<URL>()
            override var baseURL: URL? { base.entries.last }
            override var completionQueue: DispatchQueue? {
                get { queue }
                set {}
            }
            override var responseSerializer: AFHTTPResponseSerializer {
                get { Reader() }
                set {}
            }
        }
        try await StubServer.with { server in
            server.route("/api/x", .text("5"))
            let tools = Tools()
            tools.base.add(server.url("/api/"))
            let result = await tools.fetch("x")
            #expect(result.object as? Int == 5)
            #expect(!result.isOnMainQueue)
        }
    }

    /// Uses a configuration of its own.
    private final class Replacing: AFHTTPSessionManager, @unchecked Sendable {
        override init(baseURL url: URL?, sessionConfiguration configuration: URLSessionConfiguration?) {
            let own = URLSessionConfiguration.default
            own.httpAdditionalHeaders = ["X-Client": "1"]
            super.init(baseURL: url, sessionConfiguration: own)
        }

        required init?(coder: NSCoder) { super.init(coder: coder) }
    }

    /// Adds a header field to the configuration.
    private final class Merging: AFHTTPSessionManager, @unchecked Sendable {
        override init(baseURL url: URL?, sessionConfiguration configuration: URLSessionConfiguration?) {
            configuration?.httpAdditionalHeaders?["X-Client"] = "1"
            super.init(baseURL: url, sessionConfiguration: configuration)
        }

        required init?(coder: NSCoder) { super.init(coder: coder) }
    }

    @Test(arguments: [Replacing.self, Merging.self] as [AFHTTPSessionManager.Type])
    func `a subclass that changes the configuration shares the session, and its header fields are sent`(
        type: AFHTTPSessionManager.Type
    ) async throws {
        try await StubServer.with { server in
            server.route("/api/x", .json("{}"))
            let session = SessionManager(baseURL: server.url("/api/"))
            let manager = type == Replacing.self ? Replacing(session: session) : Merging(session: session)
            manager.completionQueue = DispatchQueue(label: "completion")
            #expect(manager.coreSession === session)
            #expect(manager.session.configuration.httpAdditionalHeaders as? [String: String] == ["X-Client": "1"])
            #expect(await manager.fetch("x").error == nil)
            #expect(server.activity.requests.last?.headers["X-Client"] == "1")
            var request = URLRequest(url: server.url("/api/x"))
            request.setValue("2", forHTTPHeaderField: "X-Client")
            await withCheckedContinuation { continuation in
                manager.dataTask(with: request, completionHandler: { _, _, _ in continuation.resume() }).resume()
            }
            #expect(server.activity.requests.last?.headers.values("X-Client") == ["2"])
        }
    }

    @Test(arguments: [true, false])
    func `an override may be called back before it has returned its task`(isOnMainQueue: Bool) async throws {
        final class Eager: AFHTTPSessionManager, @unchecked Sendable {
            override func dataTask(
                with request: URLRequest, uploadProgress: (@Sendable (Progress) -> Void)?,
                downloadProgress: (@Sendable (Progress) -> Void)?,
                completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)?
            ) -> URLSessionDataTask {
                let isOver = DispatchSemaphore(value: 0)
                let task = super.dataTask(
                    with: request, uploadProgress: uploadProgress, downloadProgress: downloadProgress
                ) { response, object, error in
                    completionHandler?(response, object, error)
                    isOver.signal()
                }
                task.resume()
                isOver.wait()
                return task
            }
        }
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = Eager(for: server)
            if isOnMainQueue { manager.completionQueue = nil }
            let result = await manager.fetchFromOwnThread("")
            #expect(result.error == nil)
            #expect(result.isOnMainQueue == isOnMainQueue)
            #expect(result.task?.state == .completed)
        }
    }

    @Test func `cancelling by an invalidation ends the other requests of the manager's own session`() async throws {
        try await StubServer.with { server in
            server.route("/", .hang)
            let manager = AFHTTPSessionManager(for: server)
            let response = Task { [core = manager.coreSession] in try await core.get("") }
            try await server.requests(count: 1)
            manager.invalidateSessionCancelingTasks(true)
            try await server.connections(open: 0)
            await #expect(throws: CancellationError.self) { try await response.value }
        }
    }

    @Test(arguments: [true, false])
    func `an invalidated manager's core session accepts no requests`(resets: Bool) async {
        let manager = AFHTTPSessionManager(baseURL: nil)
        let core = manager.coreSession
        manager.invalidateSessionCancelingTasks(true, resetSession: resets)
        // The core session is invalidated by a task.
        var last: (any Error)?
        for _ in 0..<200 {
            do { _ = try await core.get("http://127.0.0.1:1/") } catch { last = error }
            if case SessionError.invalidated? = last { break }
            await Task.yield()
        }
        guard case SessionError.invalidated? = last else {
            Issue.record("\(String(describing: last))")
            return
        }
    }

    @Test func `the core session has the base URL, also of a copy, an archive and after a reset`() throws {
        let base = URL(string: "http://a.example/v1/")
        let manager = AFHTTPSessionManager(baseURL: base)
        #expect(manager.coreSession.configuration.baseURL == base)
        #expect((manager.copy() as? AFHTTPSessionManager)?.coreSession.configuration.baseURL == base)
        let archive = try NSKeyedArchiver.archivedData(withRootObject: manager, requiringSecureCoding: true)
        let restored = try NSKeyedUnarchiver.unarchivedObject(ofClass: AFHTTPSessionManager.self, from: archive)
        #expect(restored?.coreSession.configuration.baseURL == base)
        let old = manager.coreSession
        manager.invalidateSessionCancelingTasks(true, resetSession: true)
        let task = manager.dataTask(with: URLRequest(url: try #require(base)), completionHandler: nil)
        #expect(task.coreTask != nil)
        #expect(manager.coreSession !== old)
        #expect(manager.coreSession.configuration.baseURL == base)
    }

    @Test func `a copy of a manager with a shared core session shares the session`() {
        let session = SessionManager()
        let copy = AFHTTPSessionManager(session: session).copy() as? AFHTTPSessionManager
        #expect(copy?.coreSession === session)
    }

    @Test func `an override may be called back within a verb of another manager`() async throws {
        final class Forwarding: AFHTTPSessionManager, @unchecked Sendable {
            let other = AFHTTPSessionManager(baseURL: nil)
            override func dataTask(
                with request: URLRequest, uploadProgress: (@Sendable (Progress) -> Void)?,
                downloadProgress: (@Sendable (Progress) -> Void)?,
                completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)?
            ) -> URLSessionDataTask {
                let isOver = DispatchSemaphore(value: 0)
                other.completionQueue = DispatchQueue(label: "other")
                let task = other.get(
                    request.url?.absoluteString ?? "", parameters: nil, headers: nil, progress: nil,
                    success: { task, object in
                        if let response = task.response { completionHandler?(response, object, nil) }
                        isOver.signal()
                    }, failure: { _, _ in isOver.signal() })
                isOver.wait()
                return task ?? super.dataTask(with: request, uploadProgress: nil, downloadProgress: nil) { _, _, _ in }
            }
        }
        try await StubServer.with { server in
            server.fallback { _ in .json("{\"a\":1}") }
            let manager = Forwarding(for: server)
            let result = await manager.fetchFromOwnThread("")
            #expect(result.dictionary?["a"] as? Int == 1)
        }
    }

    @Test func `a subclass can override the methods that verbs call`() async throws {
        final class Recording: AFHTTPSessionManager, @unchecked Sendable {
            let log = Log<String>()
            override func dataTask(
                with request: URLRequest, uploadProgress: (@Sendable (Progress) -> Void)?,
                downloadProgress: (@Sendable (Progress) -> Void)?,
                completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)?
            ) -> URLSessionDataTask {
                log.add("dataTask")
                return super.dataTask(
                    with: request, uploadProgress: uploadProgress, downloadProgress: downloadProgress
                ) { [log] response, object, error in
                    log.add("\((response as? HTTPURLResponse)?.statusCode ?? 0)")
                    completionHandler?(response, object, error)
                }
            }
            override func uploadTask(
                withStreamedRequest request: URLRequest, progress: (@Sendable (Progress) -> Void)?,
                completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)?
            ) -> URLSessionUploadTask {
                log.add("uploadTask")
                return super.uploadTask(withStreamedRequest: request, progress: progress) {
                    [log] response, object, error in
                    log.add("\((response as? HTTPURLResponse)?.statusCode ?? 0)")
                    completionHandler?(response, object, error)
                }
            }
            override func urlSession(
                _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
            ) {
                log.add("complete")
                super.urlSession(session, task: task, didCompleteWithError: error)
            }
        }
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            server.route("/form", method: "POST", .json("{}", status: 201))
            let manager = Recording(for: server)
            #expect(await manager.fetch("").error == nil)
            let form = await manager.call {
                manager.post(
                    "form", parameters: ["a": 1], headers: nil, constructingBodyWith: nil, progress: nil, success: $0,
                    failure: $1)
            }
            #expect(form.error == nil)
            #expect(form.task is URLSessionUploadTask)
            #expect(manager.log.entries == ["dataTask", "complete", "200", "uploadTask", "complete", "201"])
            server.fallback { _ in .status(500) }
            let failed = await manager.fetch("broken")
            #expect(failed.error?.code == NSURLErrorBadServerResponse)
            #expect((failed.task?.response as? HTTPURLResponse)?.statusCode == 500)
        }
    }

    @Test(
        arguments: [
            (.useProtocolCachePolicy, nil), (.reloadIgnoringLocalCacheData, "no-cache"),
            (.returnCacheDataElseLoad, "max-stale"), (.returnCacheDataDontLoad, "-1008"),
            (.reloadIgnoringLocalAndRemoteCacheData, "no-cache"), (.reloadRevalidatingCacheData, "max-age=0"),
        ] as [(NSURLRequest.CachePolicy, String?)], ["session", "serializer", "request"])
    func `a cache policy becomes Cache-Control, or fails with -1008`(
        policy: (wanted: NSURLRequest.CachePolicy, outcome: String?), place: String
    ) async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server) {
                if place == "session" { $0.requestCachePolicy = policy.wanted }
            }
            if place == "serializer" { manager.requestSerializer.cachePolicy = policy.wanted }
            let request = URLRequest(
                url: server.url("/"), cachePolicy: place == "request" ? policy.wanted : .useProtocolCachePolicy)
            let result = await callback { done in
                if place == "serializer" {
                    manager.get(
                        "", parameters: nil, headers: nil, progress: nil,
                        success: { done(Callback(task: $0, object: $1)) },
                        failure: { done(Callback(task: $0, error: $1 as NSError)) })
                } else {
                    manager.dataTask(with: request) {
                        done(Callback(response: $0, object: $1, error: $2 as NSError?))
                    }.resume()
                }
            }
            let sent = server.activity.requests.first?.headers["Cache-Control"]
            #expect(result.error.map { "\($0.code)" } ?? sent == policy.outcome)
            #expect(server.activity.requests.count == (result.error == nil ? 1 : 0))
        }
    }
}

extension URLSessionDataTask {
    /// Resumes the task and returns it.
    var nowResumed: URLSessionDataTask {
        resume()
        return self
    }
}
