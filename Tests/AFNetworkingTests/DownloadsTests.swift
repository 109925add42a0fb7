// SPDX-License-Identifier: MIT

import AFNetworking
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import TestSupport
import Testing

/// Downloads and their destinations.
@Suite(.timeLimit(.minutes(5))) struct DownloadsTests {
    private let temporary: TemporaryDirectory
    private var directory: URL { temporary.url }

    init() throws {
        temporary = try TemporaryDirectory()
    }

    private func download(
        _ manager: AFURLSessionManager, _ url: URL, to place: URL?, progress: (@Sendable (Progress) -> Void)? = nil,
        started: (URLSessionDownloadTask) -> Void = { _ in }
    ) async -> Callback {
        await callback { done in
            let task = manager.downloadTask(
                with: URLRequest(url: url), progress: progress,
                destination: place.map { place in { @Sendable _, _ in place } },
                completionHandler: { done(Callback(response: $0, object: $1, error: $2 as NSError?)) })
            task.resume()
            started(task)
        }
    }

    @Test func `a file is moved to the task's destination before the completion handler runs`() async throws {
        try await StubServer.with { server in
            server.route("/file", .generated(200_000))
            let manager = AFHTTPSessionManager(for: server)
            let place = directory.appending(path: "file")
            let log = Log<String>()
            let moved = Observer(.AFURLSessionDownloadTaskDidMoveFileSuccessfully, at: server) { log.add("moved") }
            let result = await download(
                manager, server.url("/file"), to: place,
                progress: { log.add($0.fractionCompleted == 1 ? "whole" : "part") })
            log.add("handler")
            #expect(result.object as? URL == place)
            #expect(result.error == nil)
            try #expect(Data(contentsOf: place) == StubServer.generatedBytes(200_000))
            #expect(log.entries.suffix(3) == ["whole", "moved", "handler"])
            withExtendedLifetime(moved) {}
        }
    }

    @Test func `the manager's destination block is asked first, then the task's`() async throws {
        try await StubServer.with { server in
            server.route("/file", .text("x"))
            let manager = AFHTTPSessionManager(for: server)
            let first = directory.appending(path: "first")
            let second = directory.appending(path: "second")
            manager.setDownloadTaskDidFinishDownloadingBlock { _, _, _ in first }
            #expect(await download(manager, server.url("/file"), to: second).object as? URL == first)
            #expect(!FileManager.default.fileExists(atPath: second.path))
            manager.setDownloadTaskDidFinishDownloadingBlock { _, _, _ in nil }
            #expect(await download(manager, server.url("/file"), to: second).object as? URL == second)
            manager.setDownloadTaskDidFinishDownloadingBlock(nil)
            let nowhere = await download(manager, server.url("/file"), to: nil)
            #expect(nowhere.object == nil && nowhere.error == nil)
        }
    }

    @Test func `a download that is cancelled while a redirect is decided is not moved`() async throws {
        try await StubServer.with { server in
            server.route("/", .redirect(302, to: "/next"))
            let manager = AFHTTPSessionManager(for: server)
            manager.setTaskWillPerformHTTPRedirectionBlock { _, task, _, request in
                task.cancel()
                return request
            }
            let log = Log<URL>()
            let result = await callback { done in
                manager.downloadTask(
                    with: URLRequest(url: server.url("/")), progress: nil,
                    destination: { file, _ in
                        log.add(file)
                        return file
                    },
                    completionHandler: { done(Callback(response: $0, object: $1, error: $2 as NSError?)) }
                ).resume()
            }
            #expect(result.error?.code == NSURLErrorCancelled)
            #expect(log.entries.isEmpty)
        }
    }

    @Test func `a failed move is reported by a notification only`() async throws {
        try await StubServer.with { server in
            server.route("/file", .text("new"))
            let place = directory.appending(path: "there")
            try Data("old".utf8).write(to: place)
            let log = Log<String>()
            let failed = Observer(.AFURLSessionDownloadTaskDidFailToMoveFile, at: server) { log.add("failed") }
            let result = await download(AFHTTPSessionManager(for: server), server.url("/file"), to: place)
            #expect(result.object as? URL == place)
            #expect(result.error == nil)
            #expect(log.entries == ["failed"])
            try #expect(Data(contentsOf: place) == Data("old".utf8))
            withExtendedLifetime(failed) {}
        }
    }

    @Test func `the body of an error response is moved, and the error reported`() async throws {
        try await StubServer.with { server in
            server.route("/file", .text("no", status: 404))
            let place = directory.appending(path: "page")
            let result = await download(AFHTTPSessionManager(for: server), server.url("/file"), to: place)
            #expect(result.error?.code == -1011)
            #expect(result.object as? URL == place)
            #expect((result.response as? HTTPURLResponse)?.statusCode == 404)
            try #expect(Data(contentsOf: place) == Data("no".utf8))
        }
    }

    @Test func `the whole body of an error response is moved`() async throws {
        try await StubServer.with { server in
            server.route("/file", .reply(status: 404, body: .generated(3_000_000)))
            let place = directory.appending(path: "page")
            let result = await download(AFHTTPSessionManager(for: server), server.url("/file"), to: place)
            #expect(result.error?.code == -1011 && result.object as? URL == place)
            try #expect(Data(contentsOf: place) == StubServer.generatedBytes(3_000_000))
        }
    }

    @Test(arguments: [false, true])
    func `an error response whose body breaks off fails with the error of the transfer`(isAccepted: Bool) async throws {
        try await StubServer.with { server in
            let part = Reply(status: 404, body: .generated(40_000), framing: .contentLength(declared: 100_000))
            server.route("/file", Script([.reply(part), .end(.close)]))
            let manager = AFHTTPSessionManager(for: server)
            if isAccepted { manager.responseSerializer.acceptableStatusCodes = nil }
            let place = directory.appending(path: "page")
            let result = await download(manager, server.url("/file"), to: place)
            #expect(result.error?.domain == NSURLErrorDomain && result.error?.code == NSURLErrorNetworkConnectionLost)
            #expect(result.object == nil && !FileManager.default.fileExists(atPath: place.path))
        }
    }

    @Test(.exitTest) func `an error response that cannot be written fails with an error of NSURLErrorDomain`() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            unsafe setenv("TMPDIR", directory.url.path, 1)
            try await StubServer.with { server in
                server.route("/file") { _ in
                    try? FileManager.default.removeItem(at: directory.url)
                    return .text("no", status: 404)
                }
                let manager = AFHTTPSessionManager(for: server)
                let isConverted = await withCheckedContinuation { done in
                    manager.downloadTask(
                        with: URLRequest(url: server.url("/file")), progress: nil, destination: nil,
                        completionHandler: { done.resume(returning: ($2 as? URLError)?.code == .cannotWriteToFile) }
                    ).resume()
                }
                #expect(isConverted)
            }
        }
    }

    /// A session whose tokens come from the server, which does not issue any.
    private func sessionWithoutTokens(_ server: StubServer) -> SessionManager {
        server.route("/token", .text(#"{"error": "invalid_grant"}"#, status: 400))
        let (logIn, token) = (SessionManager(), Request(url: server.url("/token")))
        let authenticator = Authenticator(for: [server.url("/")], token: Authenticator.Token("old")) { _ in
            Authenticator.Token(try await logIn.value(for: token, as: .string))
        }
        return SessionManager {
            $0.authentication.authenticators = [authenticator]
            $0.retryPolicy = RetryPolicy(limit: 1).with { $0.backoff = Backoff(base: .zero) }
        }
    }

    @Test func `a download whose token cannot be refreshed fails, and moves nothing`() async throws {
        try await StubServer.with { server in
            server.route("/file", .text("who?", status: 401))
            let manager = AFHTTPSessionManager(session: sessionWithoutTokens(server))
            manager.completionQueue = DispatchQueue(label: "completion")
            let (place, moved) = (directory.appending(path: "file"), Log<URL>())
            manager.setDownloadTaskDidFinishDownloadingBlock { _, _, file in
                moved.add(file)
                return place
            }
            let result = await download(manager, server.url("/file"), to: nil)
            #expect(result.error?.code == NSURLErrorCannotDecodeContentData && result.object == nil)
            let cause = result.error?.userInfo[NSUnderlyingErrorKey] as? SessionError
            #expect(cause?.rejection?.head.url == server.url("/token"))
            #expect(moved.entries.isEmpty)
        }
    }

    @Test func `a download whose token cannot be refreshed for its rest can be resumed`() async throws {
        try await StubServer.with { server in
            server.route("/file") { request in
                guard request.headers["Range"] == nil else { return .text("who?", status: 401) }
                return Script([
                    .reply(
                        Reply(
                            headers: ["ETag": "\"1\""], body: .generated(40_000),
                            framing: .contentLength(declared: 100_000))), .end(.close),
                ])
            }
            let manager = AFHTTPSessionManager(session: sessionWithoutTokens(server))
            manager.completionQueue = DispatchQueue(label: "completion")
            let place = directory.appending(path: "file")
            let result = await download(manager, server.url("/file"), to: place)
            #expect(result.error?.code == NSURLErrorCannotDecodeContentData && result.object == nil)
            #expect(!FileManager.default.fileExists(atPath: place.path))
            let left = try #require(result.error?.userInfo[NSURLSessionDownloadTaskResumeData] as? Data)
            let data = try JSONDecoder().decode(ResumeData.self, from: left)
            #expect(FileManager.default.fileExists(atPath: data.partialFile))
            data.discard()
        }
    }

    @Test(arguments: [200, 404])
    func `a file has the permissions of a new one at its destination`(status: Int) async throws {
        try await StubServer.with { server in
            server.route("/file", .text("x", status: status))
            let (place, new) = (directory.appending(path: "file"), directory.appending(path: "new"))
            try #require(FileManager.default.createFile(atPath: new.path, contents: nil))
            _ = await download(AFHTTPSessionManager(for: server), server.url("/file"), to: place)
            let modes = try [place, new].map {
                try FileManager.default.attributesOfItem(atPath: $0.path)[.posixPermissions] as? Int
            }
            #expect(modes[0] == modes[1])
        }
    }

    /// Serves a file whose first response stops within its body, and whose others follow `continuation`. Returns the
    /// resume data of a download that was cancelled there.
    private func interruptedDownload(
        from server: StubServer, _ continuation: @escaping @Sendable (_ start: Int) -> Script
    ) async throws -> Data {
        let gate = try ScriptGate()
        server.route("/file") { request in
            if let start = request.headers["Range"]?.dropFirst("bytes=".count).split(separator: "-").first {
                return continuation(Int(start) ?? 0)
            }
            let fields = "Content-Length: 100000\r\nETag: \"1\"\r\nAccept-Ranges: bytes"
            return Script([
                .send(Data("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n".utf8)),
                .send(StubServer.generatedBytes(100_000).prefix(40_000)), .wait(gate),
            ])
        }
        let manager = AFHTTPSessionManager(for: server)
        let written = AsyncStream<Void>.makeStream()
        manager.setDownloadTaskDidWriteDataBlock { _, _, _, _, _ in written.continuation.yield() }
        let task = manager.downloadTask(
            with: URLRequest(url: server.url("/file")), progress: nil, destination: nil, completionHandler: nil)
        task.resume()
        var iterator = written.stream.makeAsyncIterator()
        _ = await iterator.next()
        let data = await withCheckedContinuation { done in task.cancel { done.resume(returning: $0) } }
        gate.open()
        return try #require(data)
    }

    private func resume(_ data: Data, _ manager: AFURLSessionManager, to place: URL) async -> Callback {
        await callback { done in
            manager.downloadTask(
                withResumeData: data, progress: nil, destination: { _, _ in place },
                completionHandler: { done(Callback(response: $0, object: $1, error: $2 as NSError?)) }
            ).resume()
        }
    }

    @Test(arguments: [false, true])
    func `a download is resumed with what its error or handler has, and with its secret fields by the same manager`(
        byHandler: Bool
    ) async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/file") { request in
                guard request.headers["Range"] == nil else {
                    return .reply(
                        status: 206, headers: ["Content-Range": "bytes 3-5/6", "ETag": "\"1\""], body: .string("def"))
                }
                return Script([
                    .send(Data("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nETag: \"1\"\r\n\r\nabc".utf8)), .wait(gate),
                ])
            }
            let manager = AFHTTPSessionManager(for: server)
            let (written, handed) = (AsyncStream<Void>.makeStream(), AsyncStream<Data?>.makeStream())
            manager.setDownloadTaskDidWriteDataBlock { _, _, _, _, _ in written.continuation.yield() }
            var request = URLRequest(url: server.url("/file"))
            request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
            let result = await callback { [request] done in
                let task = manager.downloadTask(
                    with: request, progress: nil, destination: nil,
                    completionHandler: { done(Callback(response: $0, object: $1, error: $2 as NSError?)) })
                task.resume()
                Task {
                    for await _ in written.stream { break }
                    task.cancel { handed.continuation.yield($0) }
                }
            }
            gate.open()
            #expect(result.error?.code == NSURLErrorCancelled)
            var left = try #require(result.error?.userInfo[NSURLSessionDownloadTaskResumeData] as? Data)
            for await data in handed.stream {
                if byHandler { left = try #require(data) }
                break
            }
            #expect(!String(decoding: left, as: UTF8.self).contains("secret"))
            let place = directory.appending(path: "file")
            #expect(await resume(left, manager, to: place).error == nil)
            #expect(try Data(contentsOf: place) == Data("abcdef".utf8))
            #expect(server.activity.requests.last?.headers["Authorization"] == "Bearer secret")
            var other = try JSONDecoder().decode(ResumeData.self, from: left)
            other.url = server.url("/other")
            _ = await resume(try JSONEncoder().encode(other), manager, to: directory.appending(path: "other"))
            let last = try #require(server.activity.requests.last)
            #expect(last.path == "/other" && last.headers["Authorization"] == nil)
        }
    }

    @Test func `a resumed download that is cancelled before it starts leaves its resume data, also in its error`()
        async throws
    {
        try await StubServer.with { server in
            let data = try await interruptedDownload(from: server) { _ in .hang }
            let known = try JSONDecoder().decode(ResumeData.self, from: data)
            let (manager, handed) = (AFHTTPSessionManager(for: server), AsyncStream<Data?>.makeStream())
            let result = await callback { done in
                manager.downloadTask(
                    withResumeData: data, progress: nil, destination: nil,
                    completionHandler: { done(Callback(response: $0, object: $1, error: $2 as NSError?)) }
                ).cancel { handed.continuation.yield($0) }
            }
            #expect(result.error?.code == NSURLErrorCancelled)
            let left = try #require(result.error?.userInfo[NSURLSessionDownloadTaskResumeData] as? Data)
            #expect(try JSONDecoder().decode(ResumeData.self, from: left) == known)
            for await given in handed.stream {
                #expect(try JSONDecoder().decode(ResumeData.self, from: #require(given)) == known)
                break
            }
            known.discard()
        }
    }

    @Test func `an invalidation does not take the resume data of downloads that were just cancelled`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route(
                "/file",
                Script([
                    .send(Data("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nETag: \"1\"\r\n\r\n".utf8)),
                    .send(StubServer.generatedBytes(40_000)), .wait(gate),
                ]))
            let manager = AFHTTPSessionManager(for: server) { $0.httpMaximumConnectionsPerHost = 20 }
            let written = AsyncStream<Int>.makeStream()
            manager.setDownloadTaskDidWriteDataBlock { _, task, _, _, _ in
                written.continuation.yield(task.taskIdentifier)
            }
            let tasks = (0..<20).map { _ in
                manager.downloadTask(
                    with: URLRequest(url: server.url("/file")), progress: nil, destination: nil, completionHandler: nil)
            }
            for task in tasks { task.resume() }
            var (begun, iterator) = (Set<Int>(), written.stream.makeAsyncIterator())
            while begun.count < tasks.count { try begun.insert(#require(await iterator.next())) }
            let left = AsyncStream<Data?>.makeStream()
            for task in tasks {
                task.cancel { left.continuation.yield($0) }
                #expect(task.coreTask?.status.state != .running)
                // As by an invalidation that overtakes the end of the download.
                task.coreTask?.cancel()
            }
            manager.invalidateSessionCancelingTasks(true)
            var ends = left.stream.makeAsyncIterator()
            for _ in tasks { #expect(await ends.next()?.map(\.isEmpty) == false) }
            gate.open()
        }
    }

    @Test func `a download whose continuation the server rejects can be resumed once more`() async throws {
        try await StubServer.with { server in
            let isBusy = Lock(true)
            let data = try await interruptedDownload(from: server) { start in
                guard !isBusy.set(\.self, to: false) else { return .text("busy", status: 503) }
                return .reply(
                    status: 206, headers: ["ETag": "\"1\"", "Content-Range": "bytes \(start)-99999/100000"],
                    body: .bytes(StubServer.generatedBytes(100_000).dropFirst(start)))
            }
            let manager = AFHTTPSessionManager(for: server)
            let (page, place) = (directory.appending(path: "busy"), directory.appending(path: "resumed"))
            let rejected = await resume(data, manager, to: page)
            #expect(rejected.error?.code == -1011 && rejected.object as? URL == page)
            try #expect(Data(contentsOf: page) == Data("busy".utf8))
            let left = try #require(rejected.error?.userInfo[NSURLSessionDownloadTaskResumeData] as? Data)
            #expect(await resume(left, manager, to: place).error == nil)
            try #expect(Data(contentsOf: place) == StubServer.generatedBytes(100_000))
        }
    }

    @Test func `a serializer that accepts the rejection of a continuation ends the download`() async throws {
        try await StubServer.with { server in
            let data = try await interruptedDownload(from: server) { _ in .text("busy", status: 503) }
            let partial = try JSONDecoder().decode(ResumeData.self, from: data).partialFile
            #expect(FileManager.default.fileExists(atPath: partial))
            let manager = AFHTTPSessionManager(for: server)
            manager.responseSerializer.acceptableStatusCodes = nil
            let page = directory.appending(path: "accepted")
            let result = await resume(data, manager, to: page)
            #expect(result.error == nil && result.object as? URL == page)
            #expect(!FileManager.default.fileExists(atPath: partial))
        }
    }

    @Test func `a download that starts over is reported from its beginning`() async throws {
        try await StubServer.with { server in
            server.route("/file") { request in
                guard request.headers["Range"] == nil else {
                    return .reply(headers: ["ETag": "\"2\""], body: .generated(30_000))
                }
                return Script([
                    .reply(
                        Reply(
                            headers: ["ETag": "\"1\""], body: .generated(40_000),
                            framing: .contentLength(declared: 100_000))), .end(.close),
                ])
            }
            let session = SessionManager {
                $0.retryPolicy = RetryPolicy(limit: 1).with { $0.backoff = Backoff(base: .zero) }
            }
            let manager = AFHTTPSessionManager(session: session)
            manager.completionQueue = DispatchQueue(label: "completion")
            let parts = Log<(start: Int64, end: Int64)>()
            manager.setDownloadTaskDidWriteDataBlock { _, _, count, total, _ in parts.add((total - count, total)) }
            let place = directory.appending(path: "again")
            #expect(await download(manager, server.url("/file"), to: place).error == nil)
            try #expect(Data(contentsOf: place) == StubServer.generatedBytes(30_000))
            let ends = parts.entries.map(\.end)
            #expect(ends.last == 30_000)
            for (part, end) in zip(parts.entries, [0] + ends) { #expect(part.start == end || part.start == 0) }
        }
    }

    @Test func `a serializer validates the head of a download and receives no body`() async throws {
        try await StubServer.with { server in
            server.route("/file", .text("x"))
            let manager = AFURLSessionManager(sessionConfiguration: .default)
            manager.completionQueue = DispatchQueue(label: "completion")
            let place = directory.appending(path: "list")
            manager.responseSerializer = AFPropertyListResponseSerializer()
            let result = await callback { done in
                manager.downloadTask(
                    with: URLRequest(url: server.url("/file")), progress: nil, destination: { _, _ in place },
                    completionHandler: { done(Callback(response: $0, object: $1, error: $2 as NSError?)) }
                ).resume()
            }
            #expect(result.error?.domain == NSCocoaErrorDomain)
            #expect(result.error?.code == 3840)
            #expect(result.object as? URL == place)
            try #expect(Data(contentsOf: place) == Data("x".utf8))
        }
    }

    @Test func `a resumed download whose file is already complete succeeds`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/file") { request in
                guard request.headers["Range"] == nil else {
                    return .status(416, headers: ["Content-Range": "bytes */10", "ETag": "\"1\""])
                }
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: \"1\"\r\n\r\n"
                return Script([.send(Data((head + "a\r\n0123456789\r\n").utf8)), .wait(gate)])
            }
            let manager = AFHTTPSessionManager(for: server)
            let written = AsyncStream<Int64>.makeStream()
            manager.setDownloadTaskDidWriteDataBlock { _, _, _, total, _ in written.continuation.yield(total) }
            let task = manager.downloadTask(
                with: URLRequest(url: server.url("/file")), progress: nil, destination: nil, completionHandler: nil)
            task.resume()
            _ = await written.stream.first { $0 == 10 }
            let data = await withCheckedContinuation { done in task.cancel { done.resume(returning: $0) } }
            gate.open()
            let resumeData = try #require(data)
            let place = directory.appending(path: "complete")
            let result = await callback { done in
                manager.downloadTask(
                    withResumeData: resumeData, progress: nil, destination: { _, _ in place },
                    completionHandler: { done(Callback(response: $0, object: $1, error: $2 as NSError?)) }
                ).resume()
            }
            #expect(result.error == nil)
            #expect((result.response as? HTTPURLResponse)?.statusCode == 206)
            try #expect(Data(contentsOf: place) == Data("0123456789".utf8))
        }
    }

    @Test func `a download reports the progress of its request body`() async throws {
        try await StubServer.with { server in
            server.route("/file", .text("x"))
            let manager = AFHTTPSessionManager(for: server)
            let sent = Log<Int64>()
            manager.setTaskDidSendBodyDataBlock { _, _, count, _, total in sent.add(total == 300_000 ? count : 0) }
            var request = URLRequest(url: server.url("/file"))
            request.httpMethod = "POST"
            request.httpBody = Data(count: 300_000)
            var task: URLSessionDownloadTask?
            var progress: Progress?
            _ = await callback { [request] done in
                task = manager.downloadTask(with: request, progress: nil, destination: nil) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }
                progress = task.flatMap { manager.uploadProgress(for: $0) }
                task?.resume()
            }
            #expect(sent.entries.reduce(0, +) == 300_000)
            #expect(task?.countOfBytesSent == 300_000)
            #expect(progress?.completedUnitCount == 300_000)
        }
    }

    @Test func `an interrupted download is resumed`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            let bytes = StubServer.generatedBytes(100_000)
            server.route("/file") { request in
                if let range = request.headers["Range"],
                    let start = range.dropFirst("bytes=".count).split(separator: "-").first
                {
                    return .reply(
                        status: 206, headers: ["ETag": "\"1\"", "Content-Range": "bytes \(start)-99999/100000"],
                        body: .bytes(bytes.dropFirst(Int(start) ?? 0)))
                }
                return Script([
                    .send(
                        Data(
                            "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nETag: \"1\"\r\nAccept-Ranges: bytes\r\n\r\n"
                                .utf8)),
                    .send(bytes.prefix(40_000)), .wait(gate),
                ])
            }
            let manager = AFHTTPSessionManager(for: server)
            let log = Log<String>()
            let half = AsyncStream<Void>.makeStream()
            let parts = Log<(task: Int, start: Int64, count: Int64)>()
            manager.setDownloadTaskDidWriteDataBlock { _, task, count, total, _ in
                parts.add((task.taskIdentifier, total - count, count))
                half.continuation.yield()
            }
            manager.setDownloadTaskDidResumeBlock { _, task, offset, total in
                parts.add((task.taskIdentifier, 0, offset))
                log.add("\((1...40_000).contains(offset)) of \(total)")
            }
            let place = directory.appending(path: "whole")
            let task = manager.downloadTask(
                with: URLRequest(url: server.url("/file")), progress: nil, destination: { _, _ in place },
                completionHandler: { log.add("\(($2 as NSError?)?.code ?? 0)") })
            task.resume()
            var iterator = half.stream.makeAsyncIterator()
            _ = await iterator.next()
            let data = await withCheckedContinuation { done in
                task.cancel { done.resume(returning: $0) }
            }
            gate.open()
            let resumeData = try #require(data)
            let result = await callback { done in
                manager.downloadTask(
                    withResumeData: resumeData, progress: nil, destination: { _, _ in place },
                    completionHandler: { done(Callback(response: $0, object: $1, error: $2 as NSError?)) }
                ).resume()
            }
            #expect(result.error == nil)
            try #expect(Data(contentsOf: place) == bytes)
            // The order of callbacks of two tasks is not specified.
            #expect(log.entries.sorted() == ["-999", "true of 100000"])
            // The first call is that of the block for resuming, and each part starts where the one before it ends.
            var end: Int64 = 0
            for part in parts.entries where part.task != task.taskIdentifier {
                #expect(part.start == end)
                end = part.start + part.count
            }
            #expect(end == 100_000)
            let broken = await callback { done in
                manager.downloadTask(
                    withResumeData: Data("?".utf8), progress: nil, destination: nil,
                    completionHandler: { done(Callback(response: $0, object: $1, error: $2 as NSError?)) }
                ).resume()
            }
            #expect(broken.error?.code == NSURLErrorBadURL)
        }
    }
}

extension Observer {
    /// Observes a notification about any task for a server.
    convenience init(_ name: NSNotification.Name, at server: StubServer, _ receive: @escaping @Sendable () -> Void) {
        let port = server.endpoint.port
        self.init(name, of: nil) { note in
            if (note.object as? URLSessionTask)?.originalRequest?.url?.port == port { receive() }
        }
    }
}
