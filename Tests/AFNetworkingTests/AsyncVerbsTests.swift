// SPDX-License-Identifier: MIT

import AFNetworking
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import Testing

/// The async verbs, and the core task of each task.
@Suite(.timeLimit(.minutes(5))) struct AsyncVerbsTests {
    @Test func `each verb can be awaited`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .echo }
            let manager = AFHTTPSessionManager(for: server)
            let responses = [
                try await manager.get("x", parameters: ["a": 1]), try await manager.post("x", parameters: ["a": 1]),
                try await manager.put("x"), try await manager.patch("x"), try await manager.delete("x"),
                try await manager.post("x", constructingBodyWith: { $0.appendPart(withForm: Data(), name: "f") }),
            ]
            let methods = responses.map { ($0.object as? [String: Any])?["method"] as? String }
            #expect(methods == ["GET", "POST", "PUT", "PATCH", "DELETE", "POST"])
            let head = try await manager.head("x").task.response as? HTTPURLResponse
            #expect(head?.statusCode == 200)
        }
    }

    @Test func `errors are thrown, and cancelling the calling task cancels the request`() async throws {
        try await StubServer.with { server in
            server.route("/hang", .hang)
            let manager = AFHTTPSessionManager(for: server)
            let error = await #expect(throws: NSError.self) { _ = try await manager.get("missing") }
            #expect(error?.code == -1011 || error?.code == -1016)
            let task = Task { _ = try await manager.get("hang") }
            try await server.activity { $0.requests.contains { $0.path == "/hang" } }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    /// A manager whose override calls the callbacks of a verb as a test wants.
    private final class Overriding: AFHTTPSessionManager, @unchecked Sendable {
        let mode = Lock("")

        override func dataTask(
            withHTTPMethod method: String, urlString: String, parameters: Any?, headers: [String: String]?,
            uploadProgress: (@Sendable (Progress) -> Void)?, downloadProgress: (@Sendable (Progress) -> Void)?,
            success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
            failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
        ) -> URLSessionDataTask? {
            @discardableResult
            func make(
                _ path: String, _ success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
                _ failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
            ) -> URLSessionDataTask? {
                super.dataTask(
                    withHTTPMethod: method, urlString: path, parameters: parameters, headers: headers,
                    uploadProgress: uploadProgress, downloadProgress: downloadProgress, success: success,
                    failure: failure)
            }
            switch mode.withLock({ $0 }) {
            case "twice":
                return make(
                    urlString,
                    { task, object in
                        success?(task, object)
                        success?(task, nil)
                        failure?(task, CancellationError())
                    }, failure)
            case "never": return make(urlString, nil, nil)
            case "nothing": return nil
            default:
                return make(urlString, success) { [self] task, _ in
                    mode.set(\.self, to: "never")
                    // As after a login, which repeats the request with its first callbacks.
                    dataTask(
                        withHTTPMethod: method, urlString: "hang", parameters: nil, headers: nil, uploadProgress: nil,
                        downloadProgress: nil, success: nil, failure: nil)?.resume()
                    kept.withLock { $0 = failure }
                }
            }
        }

        let kept = Lock<(@Sendable (URLSessionDataTask?, any Error) -> Void)?>(nil)
    }

    /// A manager whose overridden verbs add a parameter.
    private final class Signing: AFHTTPSessionManager, @unchecked Sendable {
        private func signed(_ parameters: Any?, _ verb: String) -> Any? {
            ((parameters as? [String: Any]) ?? [:]).merging(["sign": verb]) { own, _ in own }
        }

        override func get(
            _ urlString: String, parameters: Any?, headers: [String: String]?,
            progress: (@Sendable (Progress) -> Void)?,
            success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
            failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
        ) -> URLSessionDataTask? {
            super.get(
                urlString, parameters: signed(parameters, "get"), headers: headers, progress: progress,
                success: success, failure: failure)
        }

        override func head(
            _ urlString: String, parameters: Any?, headers: [String: String]?,
            success: (@Sendable (URLSessionDataTask) -> Void)?,
            failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
        ) -> URLSessionDataTask? {
            super.head(
                urlString, parameters: signed(parameters, "head"), headers: headers, success: success, failure: failure)
        }

        override func post(
            _ urlString: String, parameters: Any?, headers: [String: String]?,
            progress: (@Sendable (Progress) -> Void)?,
            success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
            failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
        ) -> URLSessionDataTask? {
            super.post(
                urlString, parameters: signed(parameters, "post"), headers: headers, progress: progress,
                success: success, failure: failure)
        }

        override func post(
            _ urlString: String, parameters: Any?, headers: [String: String]?,
            constructingBodyWith block: ((any AFMultipartFormData) -> Void)?,
            progress: (@Sendable (Progress) -> Void)?, success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
            failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
        ) -> URLSessionDataTask? {
            super.post(
                urlString, parameters: signed(parameters, "form"), headers: headers, constructingBodyWith: block,
                progress: progress, success: success, failure: failure)
        }

        override func put(
            _ urlString: String, parameters: Any?, headers: [String: String]?,
            success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
            failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
        ) -> URLSessionDataTask? {
            super.put(
                urlString, parameters: signed(parameters, "put"), headers: headers, success: success, failure: failure)
        }

        override func patch(
            _ urlString: String, parameters: Any?, headers: [String: String]?,
            success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
            failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
        ) -> URLSessionDataTask? {
            super.patch(
                urlString, parameters: signed(parameters, "patch"), headers: headers, success: success,
                failure: failure)
        }

        override func delete(
            _ urlString: String, parameters: Any?, headers: [String: String]?,
            success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
            failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
        ) -> URLSessionDataTask? {
            super.delete(
                urlString, parameters: signed(parameters, "delete"), headers: headers, success: success,
                failure: failure)
        }
    }

    @Test func `the async verbs call overrides of the others`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let manager = Signing(for: server)
            _ = try await manager.get("")
            _ = try await manager.head("")
            try await manager.post("")
            try await manager.post("", constructingBodyWith: nil)
            try await manager.put("")
            try await manager.patch("")
            try await manager.delete("")
            let signs = server.activity.requests.map { request in
                let text = request.target + String(decoding: request.body, as: UTF8.self)
                return ["get", "head", "post", "form", "put", "patch", "delete"].filter {
                    text.contains("sign=\($0)") || text.contains("name=\"sign\"\r\n\r\n\($0)\r\n")
                }
            }
            #expect(signs == [["get"], ["head"], ["post"], ["form"], ["put"], ["patch"], ["delete"]])
        }
    }

    @Test func `the first callback of an override counts`() async throws {
        try await StubServer.with { server in
            server.route("/", .json(#"{"a": 1}"#))
            let manager = Overriding(for: server)
            manager.mode.set(\.self, to: "twice")
            let object = try await manager.get("").object
            #expect(object as? [String: Int] == ["a": 1])
        }
    }

    @Test(arguments: ["never", "nothing"])
    func `an override that releases its callbacks ends the call`(mode: String) async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = Overriding(for: server)
            manager.mode.set(\.self, to: mode)
            let error = await #expect(throws: NSError.self) { _ = try await manager.get("") }
            #expect(error?.domain == NSURLErrorDomain && error?.code == NSURLErrorCancelled)
        }
    }

    @Test func `cancelling the calling task ends a call that an override repeats`() async throws {
        try await StubServer.with { server in
            server.route("/hang", .hang)
            let manager = Overriding(for: server)
            let task = Task { _ = try await manager.get("missing") }
            try await server.activity { $0.requests.contains { $0.path == "/hang" } }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            manager.invalidateSessionCancelingTasks(true)
        }
    }

    @Test func `the core task of a task has streams of progress and events`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let task = manager.dataTask(with: URLRequest(url: server.url("/"))) { _, _, _ in }
            let transfer = try #require(task.coreTask)
            #expect(transfer.status.state == .suspended)
            task.resume()
            var words: [String] = []
            for await event in transfer.events {
                switch event {
                case .created: words.append("created")
                case .resumed: words.append("resumed")
                case .response: words.append("response")
                case .ended: words.append("finished")
                default: break
                }
            }
            #expect(words == ["created", "resumed", "response", "finished"])
            #expect(transfer.status.downloadProgress?.completedBytes == 2)
        }
    }
}
