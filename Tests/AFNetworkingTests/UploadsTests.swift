// SPDX-License-Identifier: MIT

import AFNetworking
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import TestSupport
import Testing

/// Uploads, and multipart bodies byte by byte.
@Suite(.timeLimit(.minutes(5))) struct UploadsTests {
    private func post(
        _ manager: AFHTTPSessionManager, _ parameters: [String: Any]?,
        _ form: @escaping (any AFMultipartFormData) -> Void
    ) async -> Callback {
        await manager.call {
            manager.post(
                "", parameters: parameters, headers: nil, constructingBodyWith: form, progress: nil, success: $0,
                failure: $1)
        }
    }

    @Test func `a form has its fields first, its length, and a final line break`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let result = await post(manager, ["b": 1, "a": ["x", NSNull()], "d": Data([1, 2])]) { form in
                form.appendPart(withFileData: Data("Data".utf8), name: "Name", fileName: "File", mimeType: "data")
            }
            #expect(result.error == nil)
            let request = try await server.requests(count: 1)[0]
            let type = try #require(request.headers["Content-Type"])
            let boundary = try #require(type.split(separator: "=").last.map(String.init))
            #expect(boundary.wholeMatch(of: /Boundary\+[0-9A-F]{16}/) != nil)
            #expect(request.headers["Content-Length"] == "\(request.body.count)")
            let text = String(decoding: request.body, as: UTF8.self)
            let names = text.matches(of: /; name="([^"]*)"/).map { String($0.1) }
            #expect(names == ["a[]", "a[]", "b", "d", "Name"])
            #expect(text.hasSuffix("Content-Type: data\r\n\r\nData\r\n--\(boundary)--\r\n"))
            #expect(text.hasPrefix("--\(boundary)\r\nContent-Disposition: form-data; name=\"a[]\"\r\n\r\nx\r\n"))
        }
    }

    @Test(arguments: [(["foo": "bar"], 111)])
    func `the length of a form is that of its parts and boundaries`(parameters: [String: String], length: Int) throws {
        let request = try AFHTTPRequestSerializer().multipartFormRequest(
            withMethod: "POST", urlString: "http://h/", parameters: parameters, constructingBodyWith: nil)
        #expect(request.value(forHTTPHeaderField: "Content-Length") == "\(length)")
    }

    @Test func `a form of one field and one file has 244 bytes`() throws {
        let request = try AFHTTPRequestSerializer().multipartFormRequest(
            withMethod: "POST", urlString: "http://h/", parameters: ["key": "value"]
        ) {
            $0.appendPart(
                withFileData: Data("Data".utf8), name: "DataName", fileName: "DataFileName", mimeType: "data")
        }
        #expect(request.value(forHTTPHeaderField: "Content-Length") == "244")
    }

    @Test func `a form without parts is a request without parameters, and GET cannot have a form`() throws {
        let serializer = AFHTTPRequestSerializer()
        let request = try serializer.multipartFormRequest(
            withMethod: "POST", urlString: "http://h/", parameters: nil, constructingBodyWith: nil)
        #expect(request.httpBodyStream == nil)
        #expect(request.value(forHTTPHeaderField: "Content-Type") == "application/x-www-form-urlencoded")
        // Foundation writes the names of common methods in upper case.
        for method in ["GET", "get", "HEAD", "head"] {
            let error = #expect(throws: NSError.self) {
                try serializer.multipartFormRequest(
                    withMethod: method, urlString: "http://h/", parameters: nil, constructingBodyWith: nil)
            }
            #expect(error?.code == NSURLErrorUnsupportedURL)
        }
    }

    @Test(arguments: [
        ("http://example.com/x", "Expected URL to be a file URL"),
        ("file:///does/not/exist", "File URL not reachable."),
        ("file:///tmp", "File URL not reachable."),
    ])
    func `a URL that is not a readable file is rejected with a reason`(url: String, reason: String) throws {
        let log = Log<NSError>()
        _ = try AFHTTPRequestSerializer().multipartFormRequest(
            withMethod: "POST", urlString: "http://h/", parameters: nil
        ) { form in
            do {
                try form.appendPart(withFileURL: URL(string: url) ?? URL(filePath: "/"), name: "x")
            } catch {
                log.add(error as NSError)
            }
        }
        let error = try #require(log.entries.first)
        #expect(error.domain == AFURLRequestSerializationErrorDomain)
        #expect(error.code == -1000)
        #expect(error.localizedFailureReason == reason)
    }

    @Test func `parts have the given header fields and length`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            // The stream has eight bytes; more bytes than the given length are an error.
            for length in [6, 8] as [Int64] {
                let result = await post(manager, nil) { form in
                    form.appendPart(withHeaders: ["X-Part": "1"], body: Data("raw".utf8))
                    form.appendPart(
                        with: InputStream(data: Data("streamed".utf8)), name: "s", fileName: "f", length: length,
                        mimeType: "text/x")
                    form.throttleBandwidth(withPacketSize: 16, delay: 0)
                }
                #expect((result.error == nil) == (length == 8))
            }
            let request = try #require(server.activity.requests.last)
            let text = String(decoding: request.body, as: UTF8.self)
            #expect(text.contains("\r\nX-Part: 1\r\n\r\nraw\r\n--"))
            #expect(text.contains("name=\"s\"; filename=\"f\"\r\nContent-Type: text/x\r\n\r\nstreamed\r\n--"))
            #expect(request.headers["Content-Length"] == "\(request.body.count)")
        }
    }

    @Test func `a header field of the call replaces that of the form`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            _ = await manager.call {
                manager.post(
                    "", parameters: ["a": 1], headers: ["Content-Type": "text/mine"], constructingBodyWith: nil,
                    progress: nil, success: $0, failure: $1)
            }
            try await #expect(server.requests(count: 1)[0].headers["Content-Type"] == "text/mine")
        }
    }

    @Test func `a body that cannot be written to its file is an error`() async throws {
        let serializer = AFHTTPRequestSerializer()
        let request = try serializer.multipartFormRequest(
            withMethod: "POST", urlString: "http://h/", parameters: ["foo": "bar"], constructingBodyWith: nil)
        let result = await callback { done in
            serializer.request(
                withMultipartForm: request as URLRequest,
                writingStreamContentsToFile: URL(filePath: "/does/not/exist")
            ) { done(Callback(error: $0 as NSError?)) }
        }
        #expect(result.error != nil)
    }

    @Test func `a stream has the length in its request's Content-Length`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let log = Log<Int64>()
            manager.setTaskDidSendBodyDataBlock { _, _, _, _, expected in log.add(expected) }
            let request = NSMutableURLRequest(url: server.url("/"))
            request.httpMethod = "PUT"
            request.httpBodyStream = InputStream(data: Data("stream".utf8))
            request.setValue("6", forHTTPHeaderField: "Content-Length")
            let result = await callback { done in
                manager.uploadTask(withStreamedRequest: request as URLRequest, progress: nil) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }.resume()
            }
            #expect(result.error == nil)
            #expect(log.entries.last == 6)
            try await #expect(server.requests(count: 1)[0].headers["Content-Length"] == "6")
        }
    }

    @Test func `the body of a form is written to a file and removed from the request`() async throws {
        let serializer = AFHTTPRequestSerializer()
        let request = try serializer.multipartFormRequest(
            withMethod: "POST", urlString: "http://h/", parameters: ["foo": "bar"], constructingBodyWith: nil)
        let place = FileManager.default.temporaryDirectory.appending(path: "af-form-\(UUID())")
        defer { try? FileManager.default.removeItem(at: place) }
        let result = await callback { done in
            let rest = serializer.request(
                withMultipartForm: request as URLRequest, writingStreamContentsToFile: place
            ) { done(Callback(error: $0 as NSError?)) }
            #expect(rest.httpBodyStream == nil)
            #expect(rest.value(forHTTPHeaderField: "Content-Length") == "111")
        }
        #expect(result.error == nil)
        #expect(result.isOnMainQueue)
        try #expect(Data(contentsOf: place).count == 111)
    }

    private final class NotingStream: InputStream {
        private let isClosed: Lock<Bool>
        private var data = Data("stream".utf8)

        init(_ isClosed: Lock<Bool>) {
            self.isClosed = isClosed
            super.init(data: Data())
        }

        override func open() {}

        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength count: Int) -> Int {
            defer { data = Data() }
            return unsafe data.copyBytes(to: UnsafeMutableBufferPointer(start: buffer, count: count))
        }

        override func close() { isClosed.set(\.self, to: true) }
    }

    @Test func `a stream is closed at the end of its task`() async throws {
        try await StubServer.with { server in
            server.route("/", .echo)
            let manager = AFHTTPSessionManager(for: server)
            manager.responseSerializer = AFHTTPResponseSerializer()
            let isClosed = Lock(false)
            let request = NSMutableURLRequest(url: server.url("/"))
            request.httpMethod = "PUT"
            request.httpBodyStream = NotingStream(isClosed)
            let result = await callback { done in
                manager.uploadTask(withStreamedRequest: request as URLRequest, progress: nil) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }.resume()
            }
            #expect(result.error == nil)
            #expect(server.activity.requests.map(\.body) == [Data("stream".utf8)])
            try await eventually { isClosed.withLock(\.self) }
            withExtendedLifetime(request) {}
        }
    }

    @Test func `streams are sent, and sent again if a block returns a new one`() async throws {
        try await StubServer.with { server in
            server.route("/", .redirect(307, to: "/next"))
            server.route("/next", .echo)
            let manager = AFHTTPSessionManager(for: server)
            let request = NSMutableURLRequest(url: server.url("/"))
            request.httpMethod = "PUT"
            request.httpBodyStream = InputStream(data: Data("stream".utf8))
            func send() async -> Callback {
                await callback { done in
                    manager.uploadTask(withStreamedRequest: request as URLRequest, progress: nil) {
                        done(Callback(response: $0, object: $1, error: $2 as NSError?))
                    }.resume()
                }
            }
            #expect(await send().error != nil)
            request.httpBodyStream = InputStream(data: Data("stream".utf8))
            manager.setTaskNeedNewBodyStreamBlock { _, _ in InputStream(data: Data("stream".utf8)) }
            #expect(await send().dictionary?["body"] as? String == "stream")
            // Also if a block changes the redirected request, which still has the old stream.
            manager.setTaskWillPerformHTTPRedirectionBlock { _, _, _, request in
                var request = request
                request.setValue("1", forHTTPHeaderField: "X-Added")
                return request
            }
            request.httpBodyStream = InputStream(data: Data("stream".utf8))
            #expect(await send().dictionary?["body"] as? String == "stream")
            #expect(server.activity.requests.last?.headers["X-Added"] == "1")
        }
    }

    @Test(arguments: [false, true])
    func `a streamed body is retried by a shared session if a block returns it again`(hasBlock: Bool) async throws {
        try await StubServer.with { server in
            server.route("/", .json(#"{"is": "busy"}"#, status: 503))
            let session = SessionManager(baseURL: server.url("/")) {
                $0.retryPolicy = RetryPolicy(limit: 1)
                $0.retryPolicy.decision = { _ in .retry(after: .zero) }
            }
            let manager = AFHTTPSessionManager(session: session)
            manager.completionQueue = DispatchQueue(label: "completion")
            if hasBlock {
                manager.setTaskNeedNewBodyStreamBlock { _, _ in InputStream(data: Data("stream".utf8)) }
            }
            var request = URLRequest(url: server.url("/"))
            request.httpMethod = "PUT"
            request.httpBodyStream = InputStream(data: Data("stream".utf8))
            let result = await callback { [request] done in
                manager.uploadTask(withStreamedRequest: request, progress: nil) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }.resume()
            }
            #expect(result.error?.code == -1011)
            #expect((result.response as? HTTPURLResponse)?.statusCode == 503)
            #expect(server.activity.requests.count == (hasBlock ? 2 : 1))
        }
    }

    @Test func `a body that is sent again is reported again`() async throws {
        try await StubServer.with { server in
            server.route("/", .redirect(307, to: "/next"))
            server.route("/next", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let sent = Log<[Int64]>()
            manager.setTaskDidSendBodyDataBlock { _, _, count, total, expected in sent.add([count, total, expected]) }
            var request = URLRequest(url: server.url("/"))
            request.httpMethod = "POST"
            request.httpBody = Data(count: 10)
            var task: URLSessionDataTask?
            let result = await callback { [request] done in
                task = manager.dataTask(with: request) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }
                task?.resume()
            }
            #expect(result.error == nil)
            #expect(sent.entries == [[10, 10, 10], [10, 10, 10]])
            #expect(task?.countOfBytesSent == 10)
        }
    }

    @Test func `a body that a block has removed after a redirect is not sent`() async throws {
        try await StubServer.with { server in
            server.route("/", .redirect(307, to: "/next"))
            server.route("/other", .echo)
            let manager = AFHTTPSessionManager(for: server)
            let other = server.url("/other")
            manager.setTaskWillPerformHTTPRedirectionBlock { _, _, _, _ in URLRequest(url: other) }
            var request = URLRequest(url: server.url("/"))
            request.httpMethod = "POST"
            request.httpBody = Data("secret".utf8)
            let result = await callback { [request] done in
                manager.dataTask(with: request, uploadProgress: nil, downloadProgress: nil) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }.resume()
            }
            #expect(result.dictionary?["body"] as? String == "")
            #expect(server.activity.requests.last?.method == "GET")
        }
    }

    @Test func `a file is sent again after a redirect that a block has changed`() async throws {
        try await StubServer.with { server in
            server.route("/", .redirect(307, to: "/next"))
            server.route("/next", .echo)
            let manager = AFHTTPSessionManager(for: server)
            manager.setTaskWillPerformHTTPRedirectionBlock { _, _, _, request in
                var request = request
                request.setValue("1", forHTTPHeaderField: "X-Added")
                return request
            }
            let place = FileManager.default.temporaryDirectory.appending(path: "af-file-\(UUID())")
            defer { try? FileManager.default.removeItem(at: place) }
            try Data("file".utf8).write(to: place)
            var request = URLRequest(url: server.url("/"))
            request.httpMethod = "PUT"
            request.httpBody = Data()
            let result = await callback { [request] done in
                manager.uploadTask(with: request, fromFile: place, progress: nil) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }.resume()
            }
            #expect(result.dictionary?["body"] as? String == "file")
            #expect(server.activity.requests.last?.headers["X-Added"] == "1")
        }
    }

    /// A stream whose reads block until it is released.
    private final class Blocked: InputStream {
        let isRead = DispatchSemaphore(value: 0)
        let isReleased = DispatchSemaphore(value: 0)

        override var streamStatus: Stream.Status { .open }

        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
            isRead.signal()
            isReleased.wait()
            return 0
        }
    }

    @Test func `a task whose body stream blocks can be cancelled`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let stream = Blocked(data: Data())
            var request = URLRequest(url: server.url("/"))
            request.httpMethod = "PUT"
            request.httpBodyStream = stream
            let result = await callback { [request] done in
                let task = manager.uploadTask(withStreamedRequest: request, progress: nil) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }
                task.resume()
                DispatchQueue.global().async { [isRead = stream.isRead] in
                    isRead.wait()
                    task.cancel()
                }
            }
            #expect(result.error?.code == -999)
            stream.isReleased.signal()
        }
    }

    @Test(arguments: ["bytes", "JSON", "form"])
    func `an upload without data sends the body of the request`(kind: String) async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            var request = URLRequest(url: server.url("/"))
            request.httpMethod = "POST"
            let url = server.url("/").absoluteString
            let start: String
            switch kind {
            case "bytes":
                request.httpBody = Data("own body".utf8)
                start = "own body"
            case "JSON":
                request =
                    try AFJSONRequestSerializer().request(withMethod: "POST", urlString: url, parameters: ["a": 1])
                    as URLRequest
                start = #"{"a":1}"#
            default:
                request =
                    try AFHTTPRequestSerializer().multipartFormRequest(
                        withMethod: "POST", urlString: url, parameters: ["a": "1"], constructingBodyWith: nil)
                    as URLRequest
                start = "--Boundary+"
            }
            let result = await callback { [request] done in
                manager.uploadTask(with: request, from: nil, progress: nil) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }.resume()
            }
            #expect(result.error == nil)
            let sent = try await server.requests(count: 1)[0].body
            #expect(String(decoding: sent, as: UTF8.self).hasPrefix(start))
        }
    }

    @Test func `form parameters that are not a dictionary are an error`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let result = await manager.call {
                manager.post(
                    "", parameters: ["a", "b"], headers: nil, constructingBodyWith: nil, progress: nil, success: $0,
                    failure: $1)
            }
            #expect(result.error?.domain == AFURLRequestSerializationErrorDomain)
            #expect(server.activity.requests.isEmpty)
        }
    }

    @Test func `upload progress ends with the total`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let log = Log<String>()
            let result = await manager.call {
                manager.post(
                    "", parameters: nil, headers: nil,
                    constructingBodyWith: { $0.appendPart(withForm: Data(count: 300_000), name: "x") },
                    progress: { log.add($0.completedUnitCount == $0.totalUnitCount ? "whole" : "part") }, success: $0,
                    failure: $1)
            }
            #expect(result.error == nil)
            #expect(log.entries.last == "whole")
            #expect(result.task?.countOfBytesSent == result.task?.countOfBytesExpectedToSend)
        }
    }

    /// A serializer that signals when it is called.
    private final class Telling: AFHTTPResponseSerializer, @unchecked Sendable {
        let isAsked = DispatchSemaphore(value: 0)

        override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
            isAsked.signal()
            return super.responseObject(for: response, data: data, error: error)
        }
    }

    @Test func `upload progress is reported before the completion handler, even if the manager's queue is busy`()
        async throws
    {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let serializer = Telling()
            manager.responseSerializer = serializer
            let isOver = DispatchSemaphore(value: 0)
            let log = Log<String>()
            // The progress block of another task occupies the queue until the upload has its response.
            async let other = callback { done in
                manager.get("", parameters: nil, headers: nil) { _ in
                    done(Callback())
                    serializer.isAsked.wait()
                    log.add(isOver.wait(timeout: .now() + .milliseconds(100)) == .timedOut ? "busy" : "free")
                } success: { _, _ in
                } failure: { _, _ in
                }
            }
            _ = await other
            let upload = await manager.call {
                manager.post(
                    "", parameters: nil, headers: nil,
                    constructingBodyWith: { $0.appendPart(withForm: Data(count: 300_000), name: "x") },
                    progress: { _ in log.add("progress") },
                    success: { [success = $0] in
                        isOver.signal()
                        success($0, $1)
                    }, failure: $1)
            }
            log.add("end")
            #expect(upload.error == nil)
            #expect(log.entries.first == "busy")
            #expect(log.entries.dropFirst().first == "progress")
            #expect(log.entries.last == "end")
        }
    }
}
