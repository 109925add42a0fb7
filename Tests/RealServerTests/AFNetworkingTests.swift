// SPDX-License-Identifier: MIT

import AFNetworking
import Dispatch
import Testing

/// AFNetworking's interface with httpbin, against which AFNetworking's own tests ran.
@Suite(.servers(.httpbin), .timeLimit(.minutes(5))) struct AFNetworkingTests {
    private let manager: AFHTTPSessionManager

    init() throws {
        // Default configurations share their cookies, also with the tests that run at the same time.
        manager = AFHTTPSessionManager(
            baseURL: try RealServer.httpbin.url(), sessionConfiguration: .ephemeral)
        manager.completionQueue = DispatchQueue(label: "completion")
    }

    /// The arguments of a callback. Its objects are not shared.
    private struct Outcome: @unchecked Sendable {
        var task: URLSessionDataTask?
        var object: Any?
        var error: NSError?

        var json: [String: Any] { object as? [String: Any] ?? [:] }
        var status: Int? { (task?.response as? HTTPURLResponse)?.statusCode }
    }

    private func call(
        _ verb: (
            _ success: @escaping @Sendable (URLSessionDataTask, Any?) -> Void,
            _ failure: @escaping @Sendable (URLSessionDataTask?, any Error) -> Void
        ) -> URLSessionDataTask?
    ) async -> Outcome {
        await withCheckedContinuation { continuation in
            _ = verb(
                { continuation.resume(returning: Outcome(task: $0, object: $1)) },
                { continuation.resume(returning: Outcome(task: $0, error: $1 as NSError)) })
        }
    }

    private func get(_ path: String, parameters: Any? = nil, headers: [String: String]? = nil) async -> Outcome {
        await call {
            manager.get(path, parameters: parameters, headers: headers, progress: nil, success: $0, failure: $1)
        }
    }

    @Test func `a GET sends parameters and header fields`() async {
        let result = await get("get", parameters: ["a": ["x y", "ü"], "b": 1], headers: ["X-Call": "yes"])
        #expect(result.error == nil)
        #expect((result.json["args"] as? [String: Any])?["a[]"] as? [String] == ["x y", "ü"])
        #expect((result.json["args"] as? [String: Any])?["b"] as? String == "1")
        #expect((result.json["headers"] as? [String: String])?["X-Call"] == "yes")
    }

    @Test func `POST, PUT and PATCH send forms and JSON`() async {
        for (serializer, key) in [(AFHTTPRequestSerializer(), "form"), (AFJSONRequestSerializer(), "json")] {
            manager.requestSerializer = serializer
            let results = [
                await call {
                    manager.post("post", parameters: ["a": "ü&"], headers: nil, progress: nil, success: $0, failure: $1)
                },
                await call { manager.put("put", parameters: ["a": "ü&"], headers: nil, success: $0, failure: $1) },
                await call { manager.patch("patch", parameters: ["a": "ü&"], headers: nil, success: $0, failure: $1) },
            ]
            for result in results { #expect(result.json[key] as? [String: String] == ["a": "ü&"]) }
        }
    }

    @Test func `HEAD and DELETE are performed`() async {
        let head: Outcome = await withCheckedContinuation { continuation in
            manager.head("get", parameters: nil, headers: nil) {
                continuation.resume(returning: Outcome(task: $0))
            } failure: {
                continuation.resume(returning: Outcome(task: $0, error: $1 as NSError))
            }
        }
        #expect(head.status == 200)
        let deleted = await call {
            manager.delete("delete", parameters: ["a": 1], headers: nil, success: $0, failure: $1)
        }
        #expect(deleted.json["args"] as? [String: String] == ["a": "1"])
    }

    @Test(arguments: [404, 500, 418])
    func `an unacceptable status code is an error with the response`(status: Int) async {
        let result = await get("status/\(status)")
        #expect(result.error?.domain == AFURLResponseSerializationErrorDomain)
        #expect(result.error?.code == -1011)
        let response = result.error?.userInfo[AFNetworkingOperationFailingURLResponseErrorKey] as? HTTPURLResponse
        #expect(response?.statusCode == status)
    }

    @Test func `HTML in place of JSON is an error, and is accepted by the basic serializer`() async {
        let refused = await get("html")
        #expect(refused.error?.code == -1016)
        manager.responseSerializer = AFHTTPResponseSerializer()
        #expect((await get("html").object as? Data)?.isEmpty == false)
        manager.responseSerializer = AFXMLParserResponseSerializer()
        #expect((await get("xml").object as? XMLParser)?.parse() == true)
    }

    @Test(arguments: ["gzip", "deflate"])
    func `compressed responses are decompressed`(coding: String) async {
        #expect(await get(coding).json["method"] as? String == "GET")
    }

    @Test func `redirects are followed unless the block returns nil`() async {
        #expect(await get("redirect/3").json["url"] != nil)
        manager.responseSerializer = AFHTTPResponseSerializer()
        manager.responseSerializer.acceptableStatusCodes = IndexSet(integer: 302)
        manager.setTaskWillPerformHTTPRedirectionBlock { _, _, _, _ in nil }
        #expect(await get("redirect/3").status == 302)
    }

    @Test func `challenges are answered by the handler or by an authorization field`() async {
        #expect(await get("basic-auth/user/passwd").status == 401)
        manager.setAuthenticationChallengeHandler { _, _, _, _ in
            URLCredential(user: "user", password: "passwd", persistence: .none)
        }
        #expect(await get("basic-auth/user/passwd").json["authenticated"] as? Bool == true)
        #expect(await get("digest-auth/auth/user/passwd").json["authenticated"] as? Bool == true)
        manager.setAuthenticationChallengeHandler(nil)
        manager.requestSerializer.setAuthorizationHeaderFieldWithUsername("user", password: "passwd")
        #expect(await get("basic-auth/user/passwd").json["user"] as? String == "user")
    }

    @Test func `cookies are stored in the session`() async {
        _ = await get("cookies/set/flavour/oat")
        #expect(await get("cookies").json["cookies"] as? [String: String] == ["flavour": "oat"])
    }

    @Test func `a form is sent with its files, and its progress is available until it ends`() async {
        let result = await call { success, failure in
            manager.post(
                "post", parameters: ["name": "Ada"], headers: nil,
                constructingBodyWith: { form in
                    form.appendPart(
                        withFileData: Data(repeating: 97, count: 100_000), name: "file", fileName: "a.txt",
                        mimeType: "text/plain")
                }, progress: nil, success: success, failure: failure)
        }
        #expect(result.json["form"] as? [String: String] == ["name": "Ada"])
        #expect((result.json["files"] as? [String: String])?["file"]?.count == 100_000)
        #expect(result.task.map { manager.uploadProgress(for: $0) } == .some(nil))
    }

    @Test func `a timeout or a cancellation is an error`() async {
        manager.requestSerializer.timeoutInterval = 0.2
        #expect(await get("delay/5").error?.code == -1001)
        manager.requestSerializer.timeoutInterval = 60
        let cancelled = await call { success, failure in
            let task = manager.get(
                "delay/5", parameters: nil, headers: nil, progress: nil, success: success, failure: failure)
            task?.cancel()
            return task
        }
        #expect(cancelled.error?.domain == NSURLErrorDomain)
        #expect(cancelled.error?.code == -999)
    }

    @Test func `a download is moved to its destination`() async throws {
        let place = FileManager.default.temporaryDirectory.appending(path: "AFNetworkingTests-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: place) }
        let request = URLRequest(url: try RealServer.httpbin.url("/bytes/50000?seed=1"))
        let (file, error): (URL?, NSError?) = await withCheckedContinuation { continuation in
            manager.downloadTask(with: request, progress: nil, destination: { _, _ in place }) { _, file, error in
                continuation.resume(returning: (file, error as NSError?))
            }.resume()
        }
        #expect(error == nil)
        #expect(file == place)
        #expect(try Data(contentsOf: place).count == 50_000)
    }
}
