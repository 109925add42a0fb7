// SPDX-License-Identifier: MIT

import ANCache
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

@Suite struct CachedRequestsTests {
    private let origin = Origin()

    /// Fetches a path, and returns `BODY STATUS SOURCE`.
    private func get(_ path: String = "x", from manager: SessionManager, _ headers: HTTPFields = [:]) async throws
        -> String
    {
        try await origin.get(path, from: manager, headers)
    }

    private func request(_ manager: SessionManager, _ method: HTTPRequest.Method = .get, _ policy: CachePolicy) throws
        -> Request
    {
        var request = try manager.request(method, "x")
        request.cachePolicy = policy
        return request
    }

    // MARK: Servers

    @Test func `a response of another server for the same URL is not used`() async throws {
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60"]
        let override = ConnectionOptions.HostOverride(host: "", port: 80, address: "10.0.0.1")
        let changes: [(inout TransferOptions) -> Void] = [
            { _ in }, { $0.connection.unixSocketPath = "/run/a.sock" },
            { $0.connection.unixSocketPath = "/run/b.sock" },
            { $0.connection.hostOverrides = [override] },
        ]
        for round in 1...2 {
            for (index, change) in changes.enumerated() {
                let request = try manager.request(.get, "x", options: change)
                let response = try await manager.data(for: request)
                #expect(response.text == "\(index + 1)")
                #expect(response.metrics.source == (round == 1 ? .network : .cache))
            }
        }
    }

    @Test(arguments: [ResponseSource.validated, .stale])
    func `the progress of a task is that of the stored response, not of the exchange before it`(
        source: ResponseSource
    ) async throws {
        let manager = origin.manager()
        origin.respond { _, number in
            guard number > 1 else {
                return .data(
                    Data("stored".utf8), headers: [.cacheControl: "max-age=1, stale-if-error=60", .eTag: "\"1\""])
            }
            return source == .stale
                ? MockResponse(
                    status: .serviceUnavailable, headers: [.contentLength: "300"], chunks: [Data(count: 300)])
                : .status(.notModified, headers: [.eTag: "\"1\""])
        }
        _ = try await manager.get("x")
        origin.advance(30)
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        let counts = progressCounts(of: task.erased)
        task.resume()
        #expect(try await task.value.metrics.source == source)
        #expect(counts() == [TransferProgress(completedBytes: 6, totalBytes: 6)])
    }

    @Test func `the progress of a task is that of the response of an interceptor, not of the exchange before it`()
        async throws
    {
        struct Replacing: Interceptor {
            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                let response = try await next(request)
                _ = try await response.body.collect(upTo: 100)
                return OpenResponse(head: response.head, body: ResponseBody(Data(count: 500)))
            }
        }
        let manager = SessionManager(on: MockTransport(.text("not found", status: .notFound))) {
            $0.interceptors = [Replacing()]
        }
        let task = try manager.makeDataTask(for: manager.request(.get, "x"))
        let counts = progressCounts(of: task.erased)
        task.resume()
        #expect(try await task.value.value.count == 500)
        #expect(counts() == [TransferProgress(completedBytes: 500, totalBytes: 500)])
    }

    @Test(arguments: [ResponseSource.validated, .stale])
    func `the progress of a stored response has no bytes that a server sends instead`(source: ResponseSource)
        async throws
    {
        try await StubServer.with { server in
            let headers: HTTPFields = [.cacheControl: "max-age=0, stale-if-error=60", .eTag: #""a""#]
            server.route("/", .data(Data("stored".utf8), headers: headers))
            let manager = SessionManager(for: server) { $0.cache = .memory() }
            _ = try await manager.get("/")
            server.route("/", source == .stale ? .text("unavailable", status: 503) : .status(304))
            let task = try manager.makeDataTask(for: manager.request(.get, "/"))
            let counts = progressCounts(of: task.erased)
            task.resume()
            #expect(try await task.value.metrics.source == source)
            #expect(counts() == [TransferProgress(completedBytes: 6, totalBytes: 6)])
        }
    }

    /// Returns a function that returns the progress of receiving that a task has reported so far.
    private func progressCounts(of task: AnySessionTask) -> @Sendable () -> [TransferProgress] {
        let seen = Lock([TransferProgress]())
        task.core?.observe { event in
            if case .downloadProgress(let progress) = event { seen.withLock { $0.append(progress.counts) } }
        }
        return { seen.withLock(\.self) }
    }

    // MARK: Times

    @Test(arguments: [true, false])
    func `the time of an exchange is part of the age of its response, the time before it is not`(
        isBefore: Bool
    ) async throws {
        /// Waits for 30 s, before the exchange or after it.
        struct Waiting: Interceptor {
            let origin: Origin
            let isBefore: Bool

            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                if isBefore { origin.advance(30) }
                let response = try await next(request)
                if !isBefore { origin.advance(30) }
                return response
            }
        }
        let manager = origin.manager { [origin] in
            $0.attemptInterceptors = [Waiting(origin: origin, isBefore: isBefore)]
        }
        origin.fields = [.cacheControl: "max-age=60"]
        #expect(try await get(from: manager) == "1 200 network")
        origin.advance(40)
        #expect(try await get(from: manager) == (isBefore ? "1 200 cache" : "2 200 network"))
    }

    @Test(arguments: ["a failure", "a response", "a response that is used"])
    func `the time of an earlier exchange is part of the age only of its own response`(first: String) async throws {
        /// Asks again 50 s after a failure or a response.
        struct Asking: Interceptor {
            let origin: Origin
            let usesFirst: Bool

            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                var first = try? await next(request)
                // Its exchange is over when the next one begins.
                if let body = try await first?.body.collect(upTo: 10) { first?.body = ResponseBody(body) }
                origin.advance(50)
                let second = try await next(request)
                return usesFirst ? first ?? second : second
            }
        }
        let fields: HTTPFields = [.cacheControl: "max-age=60"]
        origin.respond { _, number in
            number == 1 && first == "a failure"
                ? MockResponse([.fail(TransportError(.cannotConnect(.unreachable)))])
                : .data(Data("\(number)".utf8), headers: fields)
        }
        let isUsed = first == "a response that is used"
        let manager = origin.manager { [origin] in
            $0.attemptInterceptors = [Asking(origin: origin, usesFirst: isUsed)]
        }
        #expect(try await get(from: manager).hasPrefix(isUsed ? "1 200" : "2 200"))
        origin.advance(40)
        #expect(try await get(from: manager) == (isUsed ? "3 200 network" : "2 200 cache"))
    }

    @Test(arguments: [true, false])
    func `a stored response with the same tag stays when a new one is not read to its end`(isCancelled: Bool)
        async throws
    {
        let manager = origin.manager()
        let fields: HTTPFields = [.cacheControl: "no-cache", .eTag: #""a""#]
        origin.respond { _, number in
            number == 2
                ? MockResponse([.head(.ok, fields), .chunk(Data("b".utf8)), .hang]) : .data(Data(), headers: fields)
        }
        _ = try await get(from: manager)
        let isReading = Lock(false)
        let task = Task {
            try await manager.withResponse(for: manager.request(.get, "x")) { _, body in
                for try await _ in body {
                    isReading.set(\.self, to: true)
                    if !isCancelled { break }
                }
            }
        }
        try await eventually { isReading.withLock(\.self) }
        if isCancelled {
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        } else {
            try await task.value
        }
        _ = try await get(from: manager)
        #expect(origin.requests.map { $0.headers[.ifNoneMatch] } == [nil, #""a""#, #""a""#])
    }

    // MARK: Sources

    @Test func `without a cache, each request is sent`() async throws {
        let manager = origin.manager(cached: false)
        origin.fields = [.cacheControl: "max-age=60"]
        #expect(try await get(from: manager) == "1 200 network")
        #expect(try await get(from: manager) == "2 200 network")
    }

    @Test func `a fresh response comes from the cache, with its age`() async throws {
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60"]
        #expect(try await get(from: manager) == "1 200 network")
        origin.advance(30)
        let response = try await manager.data(for: try manager.request(.get, "x"))
        #expect(response.text == "1")
        #expect(response.metrics.source == .cache)
        #expect(response.headers[.age] == "30")
        #expect(response.head.url == URL(string: "http://a.example/v1/x"))
        origin.advance(30)
        #expect(try await get(from: manager) == "2 200 network")
    }

    @Test func `a stale response is validated by its tag and date`() async throws {
        let manager = origin.manager()
        origin.fields = [
            .cacheControl: "max-age=60", .eTag: "\"a\"", .lastModified: "Sun, 06 Nov 1994 08:49:37 GMT",
        ]
        #expect(try await get(from: manager) == "1 200 network")
        origin.advance(60)
        origin.notModified = true
        #expect(try await get(from: manager) == "1 200 validated")
        let sent = try #require(origin.requests.last)
        #expect(sent.headers[.ifNoneMatch] == "\"a\"")
        #expect(sent.headers[.ifModifiedSince] == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(try await get(from: manager) == "1 200 cache")
        origin.advance(60)
        origin.notModified = false
        #expect(try await get(from: manager) == "3 200 network")
        #expect(try await get(from: manager) == "3 200 cache")
    }

    @Test func `a 304 for no stored response is followed by an unconditional request`() async throws {
        let manager = origin.manager()
        origin.fields = [.eTag: "\"a\""]
        #expect(try await get(from: manager) == "1 200 network")
        origin.respond { request, number in
            request.headers.contains(.ifNoneMatch)
                ? .status(.notModified, headers: [.eTag: "\"b\""]) : .text("\(number)")
        }
        #expect(try await get(from: manager) == "3 200 network")
    }

    @Test func `the program's own condition is answered by 304`() async throws {
        let manager = origin.manager()
        origin.fields = [.eTag: "\"a\"", .cacheControl: "max-age=60"]
        #expect(try await get(from: manager) == "1 200 network")
        #expect(try await get(from: manager, [.ifNoneMatch: "\"a\""]) == " 304 cache")
        origin.advance(60)
        origin.notModified = true
        #expect(try await get(from: manager, [.ifNoneMatch: "\"a\""]) == " 304 network")
        #expect(try await get(from: manager, [.ifNoneMatch: "\"b\""]) == "1 200 cache")
    }

    @Test func `HEAD and ranges are answered from a stored response`() async throws {
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60"]
        origin.body = { _ in "0123456789" }
        #expect(try await get(from: manager) == "0123456789 200 network")
        #expect(try await get(from: manager, [.range: "bytes=2-4"]) == "234 206 cache")
        let head = try await manager.data(for: try manager.request(.head, "x"))
        #expect(head.value.isEmpty)
        #expect(head.metrics.source == .cache)
    }

    @Test func `a redirect is stored by itself`() async throws {
        let manager = origin.manager()
        origin.respond { request, number in
            request.url.path.hasSuffix("x")
                ? .status(.movedPermanently, headers: [.location: "y", .cacheControl: "max-age=60"])
                : .data(Data("\(number)".utf8), headers: [.cacheControl: "max-age=60"])
        }
        #expect(try await get(from: manager) == "2 200 network")
        #expect(try await get(from: manager) == "2 200 cache")
        #expect(origin.requests.count == 2)
    }

    // MARK: Policies

    @Test func `policies determine the use of stored responses`() async throws {
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60", .eTag: "\"a\""]
        func fetch(_ policy: CachePolicy) async throws -> String {
            let response = try await manager.data(for: try request(manager, .get, policy))
            return "\(response.text) \(response.metrics.source)"
        }
        await #expect(throws: SessionError.self) { _ = try await fetch(.returnCacheDontLoad) }
        #expect(origin.requests.isEmpty)
        #expect(try await fetch(.returnCacheElseLoad) == "1 network")
        #expect(try await fetch(.reload) == "2 network")
        #expect(origin.requests.last?.headers[.cacheControl] == "no-cache")
        #expect(try await fetch(.protocolPolicy) == "2 cache")
        origin.notModified = true
        #expect(try await fetch(.revalidate) == "2 validated")
        origin.advance(1_000)
        #expect(try await fetch(.returnCacheElseLoad) == "2 stale")
        #expect(try await fetch(.returnCacheDontLoad) == "2 stale")
    }

    @Test func `a request with only-if-cached is answered by 504`() async throws {
        let manager = origin.manager()
        #expect(try await get(from: manager, [.cacheControl: "only-if-cached"]) == " 504 cache")
        #expect(origin.requests.isEmpty)
    }

    @Test func `a response without a lifetime is stored for a request that accepts stale ones`() async throws {
        let manager = origin.manager()
        #expect(try await get(from: manager) == "1 200 network")
        #expect(try await get(from: manager) == "2 200 network")
        _ = try await manager.data(for: try request(manager, .get, .returnCacheElseLoad))
        let second = try await manager.data(for: try request(manager, .get, .returnCacheElseLoad))
        #expect(second.text == "3")
        #expect(second.metrics.source == .stale)
    }

    // MARK: Changes

    @Test func `an unsafe request removes the responses of its target and of Location`() async throws {
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60"]
        for path in ["x", "y", "z"] { _ = try await get(path, from: manager) }
        origin.fields = [.location: "/v1/y"]
        _ = try await manager.data(for: try manager.request(.post, "x", body: .string("a")))
        origin.fields = [.cacheControl: "max-age=60"]
        #expect(try await get("x", from: manager) == "5 200 network")
        #expect(try await get("y", from: manager) == "6 200 network")
        #expect(try await get("z", from: manager) == "3 200 cache")
    }

    @Test func `a response that must not be stored ends the storage of its predecessor`() async throws {
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60"]
        _ = try await get(from: manager)
        origin.fields = [.cacheControl: "no-store"]
        _ = try await manager.data(for: try request(manager, .get, .reload))
        #expect(origin.cache.usage.entries == 0)
    }

    @Test func `a response to HEAD makes a different stored response stale`() async throws {
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60", .eTag: "\"a\""]
        _ = try await get(from: manager)
        origin.fields = [.eTag: "\"b\""]
        _ = try await manager.data(for: try request(manager, .head, .reload))
        #expect(try await get(from: manager) == "3 200 network")
    }

    // MARK: Streams

    @Test func `a streamed body is stored when it was read to its end`() async throws {
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60"]
        origin.body = { number in String(repeating: "\(number)", count: 200_000) }
        try await manager.withResponse(for: try manager.request(.get, "x")) { _, body in
            for try await _ in body { break }
        }
        #expect(origin.cache.usage.entries == 0)
        for source in [ResponseSource.network, .cache] {
            try await manager.withResponse(for: try manager.request(.get, "x")) { _, body in
                var count = 0
                for try await chunk in body { count += chunk.count }
                #expect(count == 200_000)
                #expect(body.metrics?.source == source)
            }
        }
    }

    @Test func `a body of another length than announced is not stored`() async throws {
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60", .contentLength: "7"]
        #expect(try await get(from: manager) == "1 200 network")
        #expect(origin.cache.usage.entries == 0)
    }

    // MARK: Failures

    @Test(arguments: ["status", "network"])
    func `stale-if-error uses a stored response if the server fails`(failure: String) async throws {
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60, stale-if-error=60", .eTag: "\"a\""]
        _ = try await get(from: manager)
        origin.respond { _, _ in
            failure == "status"
                ? .status(.serviceUnavailable)
                : .failure(TransportError(.cannotConnect(.refused)))
        }
        // Fresh, but not validated as the policy asks.
        let unvalidated = try await manager.data(for: request(manager, .get, .revalidate))
        #expect("\(unvalidated.text) \(unvalidated.metrics.source)" == "1 stale")
        origin.advance(100)
        #expect(try await get(from: manager) == "1 200 stale")
        origin.advance(100)
        if failure == "status" {
            #expect(try await get(from: manager) == " 503 network")
        } else {
            await #expect(throws: SessionError.self) { _ = try await get(from: manager) }
        }
    }

    @Test(arguments: [true, false])
    func `a stored response stays if the transfer of a new one breaks off`(isCollected: Bool) async throws {
        let lost = TransportError(.connectionLost(.inBody(received: 1, expected: nil)))
        let manager = origin.manager {
            guard isCollected else { return }
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    let response = try await next(request)
                    guard response.head.headers[.eTag] == "\"b\"" else { return response }
                    return OpenResponse(head: response.head, body: response.body.transforming { _ in throw lost })
                }
            ]
        }
        let fields: HTTPFields = [.cacheControl: "max-age=60, stale-if-error=60", .eTag: "\"a\""]
        let other: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"b\""]
        origin.respond { _, number in
            if number == 1 { return .data(Data("1".utf8), headers: fields) }
            let chunk = MockResponse.Step.chunk(Data("2".utf8))
            let end: [MockResponse.Step] = isCollected ? [] : [.fail(lost)]
            return number == 2 ? MockResponse([.head(.ok, other), chunk] + end) : .status(.badGateway)
        }
        _ = try await get(from: manager)
        origin.advance(100)
        if isCollected {
            #expect(try await get(from: manager) == "1 200 stale")
        } else {
            await #expect(throws: (any Error).self) {
                try await manager.withResponse(for: manager.request(.get, "x")) { _, body in
                    for try await _ in body {}
                }
            }
        }
        #expect(try await get(from: manager) == "1 200 stale")
        #expect(origin.requests.count == 3)
    }

    @Test(arguments: ["status", "error"])
    func `stale-if-error also applies to the second request, after a 304 for no stored response`(failure: String)
        async throws
    {
        let manager = origin.manager()
        let fields: HTTPFields = [.cacheControl: "max-age=60, stale-if-error=60", .eTag: "\"a\""]
        origin.respond { request, number in
            switch number {
            case 1: .data(Data("1".utf8), headers: fields)
            case 2: .status(.notModified, headers: [.eTag: "\"other\""])
            default: failure == "status" ? .status(.badGateway) : .failure(TransportError(.cannotConnect(.refused)))
            }
        }
        _ = try await get(from: manager)
        origin.advance(100)
        #expect(try await get(from: manager) == "1 200 stale")
        #expect(origin.requests.map { $0.headers[.ifNoneMatch] } == [nil, "\"a\"", nil])
    }

    @Test func `a 304 without conditions is the response`() async throws {
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60", .eTag: "\"a\""]
        _ = try await get(from: manager)
        origin.advance(100)
        origin.notModified = true
        origin.fields = [.eTag: "\"other\""]
        #expect(try await get(from: manager) == " 304 network")
        #expect(origin.requests.count == 3)
    }

    @Test func `stale-while-revalidate uses a stored response and validates it once in the background`() async throws {
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60, stale-while-revalidate=60", .eTag: "\"a\""]
        _ = try await get(from: manager)
        origin.advance(100)
        let gate = try ScriptGate()
        origin.respond { _, _ in
            MockResponse([
                .wait(gate), .head(.notModified, [.eTag: "\"a\"", .cacheControl: "max-age=60"]),
            ])
        }
        #expect(try await get(from: manager) == "1 200 stale")
        try await origin.transport.requests(count: 2)
        for _ in 0..<3 { #expect(try await get(from: manager) == "1 200 stale") }
        #expect(origin.requests.count == 2)
        gate.open()
        try await eventually { try await get(from: manager) == "1 200 cache" }
        await manager.shutdown()
    }

    @Test(arguments: [nil, Duration.seconds(30)])
    func `a validation in the background ends after five minutes, or the total time of its request`(
        total: Duration?
    ) async throws {
        let clock = ManualClock()
        let fields: HTTPFields = [.cacheControl: "max-age=60, stale-while-revalidate=60"]
        origin.respond { _, number in
            number == 1 ? .data(Data("1".utf8), headers: fields) : MockResponse([.head(.ok, fields), .hang])
        }
        let manager = origin.manager {
            $0.clock = clock
            $0.timeouts.idle = nil
            $0.timeouts.total = total
        }
        _ = try await get(from: manager)
        origin.advance(100)
        #expect(try await get(from: manager) == "1 200 stale")
        #expect(try await clock.passWaits(1) == [total ?? .seconds(300)])
        await manager.shutdown()
    }

    /// The executor has a single thread, for which the system counts bytes; see proc_pid_io(5).
    @Test(
        .enabled(if: FileManager.default.isReadableFile(atPath: "/proc/thread-self/io")), arguments: [60_000, 1 << 20],
        [false, true])
    func `files are read and written outside of the caller's executors`(size: Int, isActor: Bool) async throws {
        let directory = try TemporaryDirectory()
        origin.fields = [.cacheControl: "max-age=60"]
        origin.body = { "\($0)" + String(repeating: "x", count: size) }
        let resident = try Resident()
        // The body is collected, then streamed, each by a session that stores it and by another one, which reads it.
        for (path, isStreamed) in [("collected", false), ("streamed", true)] {
            for source in [ResponseSource.network, .cache] {
                origin.cache = .disk(directory.path)
                let manager = origin.manager()
                let request = try manager.request(.get, path)
                let (read, written) = try await resident.bytes(isActor: isActor) {
                    try await manager.withResponse(for: request) { _, body in
                        var count = 0
                        if isStreamed {
                            for try await chunk in body { count += chunk.count }
                        } else {
                            count = try await body.collect(upTo: .max).count
                        }
                        #expect(count == size + 1)
                        #expect(body.metrics?.source == source)
                    }
                }
                #expect(read < size / 2)
                #expect(written < size / 2)
            }
        }
        #expect(origin.requests.count == 2)
    }

    @Test func `a damaged file is a miss`() async throws {
        let directory = try TemporaryDirectory()
        origin.cache = .disk(directory.path, memory: 0)
        let manager = origin.manager()
        origin.fields = [.cacheControl: "max-age=60"]
        origin.body = { number in String(repeating: "\(number)", count: 100_000) }
        _ = try await get(from: manager)
        let files = directory.path + "/v2"
        for file in try FileManager.default.contentsOfDirectory(atPath: files) where file.hasSuffix(".body") {
            try Data("x".utf8).write(to: URL(filePath: "\(files)/\(file)"))
        }
        #expect(try await get(from: manager).hasSuffix("200 network"))
        #expect(try await get(from: manager).hasSuffix("200 cache"))
    }
}

/// An actor on a thread of its own.
private actor Resident: EventLoopSource {
    private nonisolated let loop: EventLoop
    private nonisolated let executor: EventLoopExecutor

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    init() throws {
        loop = try EventLoop()
        executor = EventLoopExecutor(loop)
        try loop.start(name: "Resident", source: self)
    }

    nonisolated func turn(_ ready: [ReadyDescriptor]) -> Int32 { -1 }

    /// Returns the numbers of bytes that the thread reads and writes while it calls a function, on the actor or in a task
    /// that prefers the thread.
    nonisolated func bytes(
        isActor: Bool, _ body: @Sendable () async throws -> Void
    ) async throws -> (read: Int, written: Int) {
        guard isActor else { return try await withTaskExecutorPreference(executor) { try await Self.bytes(body) } }
        return try await bytesOfActor(body)
    }

    private func bytesOfActor(_ body: @Sendable () async throws -> Void) async throws -> (read: Int, written: Int) {
        try await Self.bytes(body)
    }

    private static func bytes(_ body: @Sendable () async throws -> Void) async throws -> (read: Int, written: Int) {
        let (thread, before) = (pthread_self(), try ThreadBytes())
        try await body()
        #expect(thread == pthread_self())
        let after = try ThreadBytes()
        return (after.read - before.read, after.written - before.written)
    }
}

/// The numbers of bytes that the current thread has read and written by system calls.
private struct ThreadBytes {
    let read: Int
    let written: Int

    init() throws {
        let text = try String(contentsOfFile: "/proc/thread-self/io", encoding: .utf8)
        func number(_ name: String) throws -> Int {
            let line = try #require(text.split(separator: "\n").first { $0.hasPrefix(name + ": ") })
            return try #require(Int(line.dropFirst(name.count + 2)))
        }
        read = try number("rchar")
        written = try number("wchar")
    }
}
