// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// Downloads that the retry policy continues after their response was cut.
@Suite(.timeLimit(.minutes(5))) struct ContinuedDownloadsTests {
    private static let bytes = StubServer.generatedBytes(1000)
    private let directory: TemporaryDirectory
    private let file: String
    private let clock = ManualClock()

    init() throws {
        directory = try TemporaryDirectory()
        file = "\(directory.path)/file"
    }

    /// A session that retries without waiting.
    private func session(
        for server: StubServer, limit: Int, _ monitor: RetryMonitor = RetryMonitor(),
        policy: (inout RetryPolicy) -> Void = { _ in }
    ) -> SessionManager {
        let policy = RetryPolicy(limit: limit).with { $0.backoff = Backoff(base: .zero) }.with(policy)
        return SessionManager(for: server) {
            $0.retryPolicy = policy
            $0.eventMonitors = [monitor]
        }
    }

    @Test(arguments: [DownloadOptions(), .durable])
    func `a download is continued from the byte where it was cut`(options: DownloadOptions) async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, interruption: .close(after: 400)))
            let monitor = RetryMonitor()
            let task = session(for: server, limit: 2, monitor).download("file", to: .file(file), options: options)
            async let events = task.allEvents
            let result = try await task.value
            #expect(try directory.read("file") == Self.bytes)
            #expect(try directory.contents == ["file"])
            #expect(server.ranges == [nil, "bytes=400-", "bytes=800-"])
            #expect(server.activity.requests.last?.headers["If-Range"] == "\"1\"")
            #expect(server.activity.requests.last?.headers["Accept-Encoding"] == "identity")
            let history = result.response.metrics.retryHistory
            #expect(history.earlierAttempts.count == 2)
            #expect("\(history.earlierAttempts[0].outcome)".contains("after 400 of 1000 bytes"))
            #expect(monitor.names == ["began", "retrying", "retrying", "ended"])
            let words = await events.filter { $0.hasPrefix("continued") }
            #expect(words == ["continued 400 of 1000", "continued 800 of 1000"])
        }
    }

    @Test func `a download is continued through interceptors`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, interruption: .close(after: 400)))
            let pass = Intercepting { request, next in
                try await next(request)
            }
            let api = SessionManager(for: server) {
                $0.retryPolicy = RetryPolicy(limit: 2).with { $0.backoff = Backoff(base: .zero) }
                $0.interceptors = [pass, pass]
                $0.attemptInterceptors = [pass]
            }
            _ = try await api.download("file", to: .file(file)).value
            #expect(try directory.read("file") == Self.bytes)
            #expect(server.ranges == [nil, "bytes=400-", "bytes=800-"])
        }
    }

    @Test func `the changes of the requests of a download do not add up`() async throws {
        let most = Lock(0)
        let transport = MockTransport { request in
            let range = request.headers[.range]?.dropFirst("bytes=".count).dropLast()
            let start = range.flatMap { Int($0) } ?? 0
            var fields: HTTPFields = [.contentLength: "\(15 - start)", .eTag: "\"1\""]
            if start > 0 { fields[.contentRange] = "bytes \(start)-14/15" }
            return MockResponse([
                .head(start > 0 ? .partialContent : .ok, fields), .chunk(Data([UInt8(start)])),
                .fail(TransportError(.connectionLost(.inBody(received: 1, expected: nil)))),
            ])
        }
        let api = SessionManager(on: transport) {
            $0.retryPolicy = RetryPolicy(limit: 13).with { $0.backoff = Backoff(base: .zero) }
            $0.interceptors = [
                Intercepting { request, next in
                    most.withLock { $0 = max($0, request[OptionsChanges.self].count) }
                    return try await next(request)
                }
            ]
        }
        let error = try await sessionError { _ = try await api.download("file", to: .file(file)).value }
        #expect(error.resumeData?.offset == 14)
        #expect(transport.requests.count == 14)
        #expect(most.withLock(\.self) == 1)
        error.resumeData?.discard()
    }

    @Test func `an interceptor that disables retries leaves the error of the transfer and its resume data`()
        async throws
    {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, interruption: .close(after: 400)))
            let api = SessionManager(for: server) {
                $0.retryPolicy = RetryPolicy(limit: 2)
                $0.interceptors = [
                    Intercepting { request, next in
                        var request = request
                        request.retryPolicy = RetryPolicy.none
                        return try await next(request)
                    }
                ]
            }
            let error = try await sessionError { _ = try await api.download("file", to: .file(file)).value }
            #expect(error.reason == .connectionLost(.inBody(received: 400, expected: 1000)))
            #expect(error.resumeData?.offset == 400)
            error.resumeData?.discard()
        }
    }

    @Test func `the limit counts all attempts, and the rest can be resumed later`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, interruption: .close(after: 200)))
            let api = session(for: server, limit: 2)
            let error = try await sessionError { _ = try await api.download("file", to: .file(file)).value }
            #expect(server.ranges == [nil, "bytes=200-", "bytes=400-"])
            #expect(error.retryHistory.stop == .limit(2))
            #expect(error.description.contains("attempt 3, not retried because there were 2 retries"))
            let data = try #require(error.resumeData)
            #expect(data.offset == 600)
            data.discard()
        }
    }

    @Test func `a response that fails between two parts counts as a retry as well`() async throws {
        try await StubServer.with { server in
            let served = ServedFile(Self.bytes, interruption: .close(after: 500))
            server.script([served.script, { _ in .status(503) }, served.script])
            let api = session(for: server, limit: 2)
            let result = try await api.download("file", to: .file(file)).value
            #expect(server.ranges == [nil, "bytes=500-", "bytes=500-"])
            #expect(result.response.metrics.retryHistory.earlierAttempts.map(\.outcome).last == .status(503))
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `a retry that the program declines is not made`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, interruption: .close(after: 300)))
            let api = session(for: server, limit: 5) { $0.decision = { _ in .stop } }
            let error = try await sessionError { _ = try await api.download("file", to: .file(file)).value }
            #expect(error.retryHistory.stop == .decision)
            #expect(error.resumeData?.offset == 300)
            error.resumeData?.discard()
            #expect(server.ranges == [nil])
        }
    }

    @Test func `a version that has changed meanwhile is downloaded from the start`() async throws {
        try await StubServer.with { server in
            let changed = Data(Self.bytes.reversed())
            server.script([
                ServedFile(Self.bytes, interruption: .close(after: 400)).script,
                ServedFile(changed, entityTag: "\"2\"").script,
            ])
            _ = try await session(for: server, limit: 1).download("file", to: .file(file)).value
            #expect(try directory.read("file") == changed)
            #expect(server.ranges == [nil, "bytes=400-"])
        }
    }

    @Test(arguments: [DownloadOptions(), .durable, DownloadOptions().with { $0.startsOverIfNotResumable = false }])
    func `a download whose file another program has truncated meanwhile starts over`(options: DownloadOptions)
        async throws
    {
        try await StubServer.with { server in
            let path = directory.path
            server.script([
                ServedFile(Self.bytes, interruption: .close(after: 400)).script,
                { request in
                    for name in (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] {
                        // In place: the name keeps its file.
                        try? Data(Self.bytes.prefix(100)).write(to: URL(filePath: "\(path)/\(name)"))
                    }
                    return ServedFile(Self.bytes).script(for: request)
                },
                ServedFile(Self.bytes).script,
            ])
            let task = session(for: server, limit: 1).download("file", to: .file(file), options: options)
            if options.startsOverIfNotResumable {
                _ = try await task.value
                #expect(try directory.read("file") == Self.bytes)
                #expect(server.ranges == [nil, "bytes=400-", nil])
            } else {
                let error = try await sessionError { _ = try await task.value }
                guard case .notResumable = error.cause else { throw error }
                error.resumeData?.discard()
            }
        }
    }

    @Test(arguments: [
        ServedFile(bytes, entityTag: nil, interruption: .close(after: 400)),
        ServedFile(bytes, entityTag: "W/\"1\"", interruption: .close(after: 400)),
    ])
    func `a download that cannot be continued is not repeated`(served: ServedFile) async throws {
        try await StubServer.with { server in
            server.serve(served)
            let api = session(for: server, limit: 3)
            let error = try await sessionError { _ = try await api.download("file", to: .file(file)).value }
            #expect(error.reason == .connectionLost(.inBody(received: 400, expected: 1000)))
            #expect(server.ranges == [nil])
            #expect(try directory.contents == [])
        }
    }

    @Test(arguments: [
        DownloadOptions(), .durable, DownloadOptions().with { ($0.segments, $0.segmentTuning.minimum) = (2, 10) },
    ])
    func `a download that was cut before its first byte is repeated`(options: DownloadOptions) async throws {
        let isFirst = Lock(true)
        let lost = TransportError(.connectionLost(.inBody(received: 0, expected: 1000)))
        let transport = MockTransport { request in
            guard request.headers[.range] == nil else { return .failure(lost) }
            let steps: [MockResponse.Step] = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst ? [.fail(lost)] : [.chunk(Self.bytes)]
            }
            return MockResponse([.head(.ok, [.contentLength: "1000", .eTag: "\"1\""])] + steps)
        }
        let api = SessionManager(on: transport) {
            $0.retryPolicy = RetryPolicy(limit: 1).with { $0.backoff = Backoff(base: .zero) }
        }
        let value = try await api.download("file", to: .file(file), options: options).value
        #expect(value.response.metrics.retryHistory.earlierAttempts.count == 1)
        #expect(try directory.read("file") == Self.bytes)
    }

    @Test func `the digest of a continued download is verified`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, interruption: .close(after: 400)))
            let digest = ContentDigest(.sha256, Data(repeating: 0, count: 32))
            let options = DownloadOptions().with { $0.expectedDigest = digest }
            let api = session(for: server, limit: 2)
            let error = try await sessionError {
                _ = try await api.download("file", to: .file(file), options: options).value
            }
            #expect(error.description.hasPrefix("The digest of \(file) from \(server.url("/file").absoluteString) is"))
            #expect(try directory.contents == [])
        }
    }
}

/// Records the names of the events between exchanges.
private final class RetryMonitor: EventMonitor {
    private let list = Lock<[String]>([])

    var names: [String] { list.withLock { $0 } }

    func receive(_ event: TaskEvent, of task: AnySessionTask) {
        let name: String? =
            switch event {
            case .began: "began"
            case .retrying: "retrying"
            case .ended: "ended"
            default: nil
            }
        if let name { list.withLock { $0.append(name) } }
    }
}

extension StubServer {
    /// Answers each request by the next function.
    fileprivate func script(_ scripts: [@Sendable (RecordedRequest) -> Script]) {
        let next = Lock(0)
        route("/file") { request in
            next.withLock { index in
                defer { index += 1 }
                return scripts[min(index, scripts.count - 1)](request)
            }
        }
    }
}
