// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// An interceptor that calls a closure.
struct Intercepting: Interceptor {
    typealias Body = @Sendable (Request, Chain) async throws -> OpenResponse

    private let body: Body

    init(_ body: @escaping Body) {
        self.body = body
    }

    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        try await body(request, next)
    }

    /// Throws one error in place of each other one.
    static func replacingErrors(by replacement: any Error) -> Intercepting {
        Intercepting { request, next in
            do {
                return try await next(request)
            } catch {
                throw replacement
            }
        }
    }
}

@Suite struct InterceptorsTests {
    private let transport = MockTransport(.text("end"))

    /// Records when the request and the response pass through it.
    private static func noting(_ name: String, in list: EventList<String>) -> Intercepting {
        Intercepting { request, next in
            await list.append("\(name) \(request.url.path)")
            let response = try await next(request)
            await list.append("\(name) \(response.head.status.code)")
            return response
        }
    }

    @Test func `they run in order for the request, and in reverse order for the response`() async throws {
        let passed = EventList<String>()
        let transport = MockTransport(.redirect(.found, to: "/b"), .text("end"))
        let manager = SessionManager(on: transport) {
            $0.interceptors = [Self.noting("first", in: passed), Self.noting("second", in: passed)]
            $0.attemptInterceptors = [Self.noting("third", in: passed), Self.noting("fourth", in: passed)]
        }
        #expect(try await manager.get("x").text == "end")
        #expect(
            await passed.values == [
                "first /v1/x", "second /v1/x",
                "third /v1/x", "fourth /v1/x", "fourth 302", "third 302",
                "third /b", "fourth /b", "fourth 200", "third 200",
                "second 200", "first 200",
            ])
    }

    @Test func `an interceptor can modify the request`() async throws {
        let manager = SessionManager(on: transport) {
            $0.headers = [.accept: "session"]
            $0.interceptors = [
                Intercepting { request, next in
                    var request = request
                    #expect(request.headers.isEmpty)
                    request.url = try url("http://b.example/changed")
                    request.headers[.from] = "interceptor"
                    return try await next(request)
                }
            ]
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    #expect(request.headers.lines == ["From: interceptor", "Accept: session"])
                    return try await next(request)
                }
            ]
        }
        #expect(try await manager.get("x").text == "end")
        let sent = try transport.onlyRequest.request
        #expect(sent.url.absoluteString == "http://b.example/changed")
        #expect(sent.headers[.from] == "interceptor")
    }

    /// How an interceptor makes the request that it sends.
    enum Making: CaseIterable {
        case copy, new, newWithChange
    }

    @Test(arguments: Making.allCases, [false, true])
    func `a request of an interceptor has the caller's changes of the options, once, and then its own`(
        making: Making, isAttempt: Bool
    ) async throws {
        let manager = SessionManager(on: transport) {
            $0.timeouts.idle = .seconds(20)
            $0.streamBufferSize = 1_000
            let interceptor = Intercepting { request, next in
                var sent = making == .copy ? request : Request(url: request.url)
                if making == .newWithChange { sent.changeOptions { $0.streamBufferSize *= 2 } }
                return try await next(sent)
            }
            if isAttempt {
                $0.attemptInterceptors = [interceptor]
            } else {
                $0.interceptors = [interceptor, interceptor]
            }
        }
        var request = try manager.request(.get, "x")
        request.changeOptions {
            $0.timeouts.idle = .seconds(7)
            $0.streamBufferSize += 1
        }
        _ = try await manager.data(for: request)
        let options = try #require(try transport.onlyRequest.request.options)
        #expect(options.timeouts.idle == .seconds(7))
        let factor = making != .newWithChange ? 1 : isAttempt ? 2 : 4
        #expect(options.streamBufferSize == 1_001 * factor)
    }

    @Test(arguments: ["http://b.example/", "https://a.example/", "http://a.example/other"], [true, false])
    func `a sensitive field of the session is not sent where an interceptor leads the request`(
        target: String, isSet: Bool
    ) async throws {
        let manager = SessionManager(on: transport) {
            $0.headers = [.authorization: "secret", .accept: "session"]
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    var request = request
                    request.url = try url(target)
                    if isSet { request.headers[.authorization] = "own" }
                    return try await next(request)
                },
                Intercepting { try await $1($0) },
            ]
        }
        _ = try await manager.get("x", headers: [.cookie: "a=b"])
        let sent = try transport.onlyRequest.request.headers
        #expect(sent[.authorization] == (isSet ? "own" : target == "http://a.example/other" ? "secret" : nil))
        #expect(sent[.cookie] == "a=b")
        #expect(sent[.accept] == "session")
    }

    @Test(arguments: ["http://b.example/", "https://a.example/", "http://a.example/other"], [true, false])
    func `a sensitive field of the session is not added where an interceptor around the call leads the request`(
        target: String, isNew: Bool
    ) async throws {
        let manager = SessionManager(on: transport) {
            $0.headers = [.authorization: "secret", .accept: "session"]
            $0.interceptors = [
                Intercepting { request, next in
                    let target = try url(target)
                    guard !isNew else { return try await next(Request(url: target)) }
                    var request = request
                    request.url = target
                    return try await next(request)
                },
                // A request without the attributes of the first interceptor's.
                Intercepting { try await $1(isNew ? Request(url: $0.url) : $0) },
            ]
        }
        _ = try await manager.get("x")
        let sent = try transport.onlyRequest.request.headers
        #expect(sent[.authorization] == (target == "http://a.example/other" ? "secret" : nil))
        #expect(sent[.accept] == "session")
    }

    @Test(arguments: [true, false], ["http://a.example/other", "http://b.example/", "https://b.example/"])
    func `the session's field for a proxy is sent with any request to this proxy, and to no other`(
        isAttempt: Bool, target: String
    ) async throws {
        for (proxy, other) in [
            (Self.proxy("p"), nil), (.environment, nil), (Self.proxy("p"), Self.proxy("q")),
            (Self.proxy("p"), Self.proxy("p", bypass: ["c.example"])),
            (Self.proxy("p"), Self.proxy("p", Credential(user: "u", password: "p"))),
        ] as [(ProxyPolicy, ProxyPolicy?)] {
            let transport = MockTransport(.text("end"))
            let manager = SessionManager(on: transport) {
                $0.headers = [.proxyAuthorization: "Bearer p"]
                $0.proxy = proxy
                let interceptor = Intercepting { request, next in
                    var request = request
                    request.url = try url(target)
                    if let other { request.changeOptions { $0.proxy = other } }
                    return try await next(request)
                }
                if isAttempt { $0.attemptInterceptors = [interceptor] } else { $0.interceptors = [interceptor] }
            }
            _ = try await manager.get("x")
            let isKept = other != Self.proxy("q") && (proxy != .environment || target.hasPrefix("http:"))
            #expect(try transport.onlyRequest.request.headers[.proxyAuthorization] == (isKept ? "Bearer p" : nil))
        }
    }

    private static func proxy(
        _ host: String, _ credential: Credential? = nil, bypass: [String] = []
    ) -> ProxyPolicy { .proxy(Proxy(.http, host: host, port: 1, credential: credential, bypass: bypass)) }

    @Test func `a sensitive field of the session is added where interceptors lead the request back`() async throws {
        let manager = SessionManager(on: transport) {
            $0.headers = [.authorization: "secret"]
            $0.interceptors = ["http://b.example/", "http://a.example/back"].map { target in
                Intercepting { request, next in
                    var request = request
                    request.url = try url(target)
                    return try await next(request)
                }
            }
        }
        _ = try await manager.get("x")
        #expect(try transport.onlyRequest.request.headers[.authorization] == "secret")
    }

    /// A body that an interceptor sets.
    enum SetBody: CaseIterable, Sendable { case json, form }

    @Test(arguments: SetBody.allCases, [true, false])
    func `a body that an interceptor sets is encoded for the next one, which wraps its bytes`(
        kind: SetBody, isAroundCall: Bool
    ) async throws {
        struct Name: Encodable { let firstName = "Ada" }
        let sets = Intercepting { request, next in
            var request = request
            switch kind {
            case .json: request.body = .json(Name())
            case .form:
                var form = try MultipartFormData(boundary: "b")
                try form.append(RequestBody.json(Name()), name: "n", fileName: nil)
                request.body = .form(form)
            }
            return try await next(request)
        }
        let wraps = Intercepting { request, next in
            var request = request
            let plain = request.body
            request.body = .writer { output in try await plain.write(to: output) }
            return try await next(request)
        }
        let manager = SessionManager(on: transport) {
            $0.json.encoder.keyEncodingStrategy = .convertToSnakeCase
            $0.interceptors = isAroundCall ? [sets, wraps] : [sets]
            if !isAroundCall { $0.attemptInterceptors = [wraps] }
        }
        _ = try await manager.data(for: Request(method: .post, url: url("http://a.example/x")))
        let received = try #require(transport.requests.first)
        let text = String(decoding: received.body, as: UTF8.self)
        #expect(text.contains(#"{"first_name":"Ada"}"#), "\(text)")
        let type = received.request.headers[.contentType]
        #expect(type == (kind == .json ? "application/json" : "multipart/form-data; boundary=b"))
    }

    @Test(arguments: SetBody.allCases)
    func `the body of the last interceptor has its own media type, unless one was set`(kind: SetBody) async throws {
        func setting(_ body: RequestBody, type: String? = nil) -> Intercepting {
            Intercepting { request, next in
                var request = request
                request.body = body
                if let type { request.headers[.contentType] = type }
                return try await next(request)
            }
        }
        var (form, other) = (try MultipartFormData(boundary: "b"), try MultipartFormData(boundary: "c"))
        form.append("Ada", name: "n")
        other.append("Ada", name: "n")
        // A form needs the media type with its boundary.
        for type in kind == .json ? [nil, "application/problem+json"] : [nil] {
            let first = RequestBody.form(kind == .json ? form : other)
            let last = kind == .json ? RequestBody.json(["a": 1]) : .form(form)
            let manager = SessionManager(on: transport) {
                $0.interceptors = [setting(type == nil ? first : .json(["b": 1]), type: type), setting(last)]
            }
            _ = try await manager.data(for: Request(method: .post, url: url("http://a.example/x")))
            let own = kind == .json ? "application/json" : "multipart/form-data; boundary=b"
            #expect(try #require(transport.requests.last).request.headers[.contentType] == type ?? own)
        }
    }

    @Test func `an interceptor can modify the response, and a streamed body chunk by chunk`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { _ in
            MockResponse([.head(.ok), .chunk(Data("one ".utf8)), .wait(gate), .chunk(Data("two".utf8))])
        }
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { request, next in
                    #expect(next.delivery == .streamed)
                    var response = try await next(request)
                    response.head.status = .accepted
                    response.body = response.body.transforming {
                        Data(String(decoding: $0, as: UTF8.self).uppercased().utf8)
                    }
                    return response
                }
            ]
        }
        var chunks: [String] = []
        let metrics = try await manager.withResponse(for: manager.request(.get, "x")) { head, body in
            #expect(head.status == .accepted)
            for try await chunk in body {
                chunks.append(String(decoding: chunk, as: UTF8.self))
                // The second chunk is sent only after the first one was received.
                gate.open()
            }
            return body.metrics
        }
        #expect(chunks == ["ONE ", "TWO"])
        #expect(metrics?.responseBodyBytes == 7)
    }

    @Test func `an interceptor can answer without the network`() async throws {
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { request, _ in
                    OpenResponse(
                        head: ResponseHead(status: .ok, url: request.url), body: ResponseBody(Data("kept".utf8)))
                }
            ]
        }
        #expect(try await manager.get("x").text == "kept")
        #expect(transport.requests.isEmpty)
    }

    @Test func `an interceptor can send a request again`() async throws {
        let transport = MockTransport(.status(.badGateway), .failure(Planned()), .text("end"))
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { request, next in
                    for _ in 0..<2 {
                        do {
                            let response = try await next(request)
                            if response.head.status.kind == .successful { return response }
                        } catch is Planned {}
                    }
                    return try await next(request)
                }
            ]
        }
        #expect(try await manager.get("x").text == "end")
        #expect(transport.requests.count == 3)
    }

    @Test func `an error thrown by an interceptor is the error of the call`() async throws {
        let manager = SessionManager(on: transport) {
            $0.interceptors = [Intercepting { _, _ in throw Planned(number: 3) }]
        }
        await #expect(throws: Planned(number: 3)) { _ = try await manager.get("x") }
    }

    @Test func `an error of the transport reaches the interceptor unchanged, and the caller as a SessionError`()
        async throws
    {
        let manager = SessionManager(on: MockTransport(.failure(TransportError(.shutDown)))) {
            $0.interceptors = [
                Intercepting { request, next in
                    do {
                        return try await next(request)
                    } catch let error as TransportError {
                        guard case .shutDown = error.reason else { throw Planned() }
                        throw error
                    }
                }
            ]
        }
        let error = try await sessionError { _ = try await manager.get("x") }
        guard case .shutDown = error.reason else { throw error }
    }

    /// What becomes of the first of two responses before it is returned.
    enum Change: CaseIterable {
        case none, transformed, transformedWithin
    }

    @Test(arguments: [true, false], Change.allCases)
    func `the response before the last one is closed, and cannot be returned`(
        isStreamed: Bool, change: Change
    ) async throws {
        let transport = MockTransport(.text("one"), .text("two"))
        let transforming: @Sendable (OpenResponse) -> OpenResponse = {
            OpenResponse(head: $0.head, body: $0.body.transforming { $0 })
        }
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { request, next in
                    let first = try await next(request)
                    _ = try await next(request)
                    return change == .transformed ? transforming(first) : first
                },
                Intercepting { request, next in
                    let response = try await next(request)
                    return change == .transformedWithin ? transforming(response) : response
                },
            ]
        }
        let error = try await sessionError {
            if isStreamed {
                try await manager.withResponse(for: manager.request(.get, "x")) { _, body in
                    _ = try await body.collect(upTo: 10)
                }
            } else {
                _ = try await manager.get("x")
            }
        }
        guard case .closedResponse("Intercepting") = error else { throw error }
    }

    @Test func `a response that an interceptor has made can be returned after others`() async throws {
        let transport = MockTransport(.text("one"), .text("two"))
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { request, next in
                    let first = try await next(request)
                    _ = try await next(request)
                    return first
                },
                Intercepting { request, next in
                    let response = try await next(request)
                    let text = try await response.body.collect(upTo: 10)
                    return OpenResponse(head: response.head, body: ResponseBody(text))
                },
            ]
        }
        #expect(try await manager.get("x").text == "one")
    }

    @Test func `the exchanges of a call are open one at a time, and closed in order`() async throws {
        let events = EventList<String>()
        let transport = NotingTransport(events)
        let manager = SessionManager { configuration in
            configuration.transport = transport
            configuration.interceptors = [
                Intercepting { request, next in
                    for _ in 0..<2 { _ = try await next(request) }
                    return try await next(request)
                }
            ]
        }
        try await manager.withResponse(for: Request(url: url("http://a.example/"))) { _, body in
            await events.append("read \(String(decoding: try await body.collect(upTo: 10), as: UTF8.self))")
        }
        #expect(
            await events.values == ["open 1", "close 1", "open 2", "close 2", "open 3", "read 3", "close 3"])
    }

    @Test(arguments: [true, false])
    func `an exchange is closed if the step that received its response throws`(isInterceptor: Bool) async throws {
        let events = EventList<String>()
        let manager = SessionManager { configuration in
            configuration.transport = NotingTransport(events)
            if isInterceptor {
                configuration.interceptors = [
                    Intercepting { request, next in
                        _ = try await next(request)
                        throw Planned()
                    }
                ]
            } else {
                configuration.retryPolicy = RetryPolicy(limit: 1).with { $0.decision = { _ in throw Planned() } }
            }
        }
        await #expect(throws: Planned.self) {
            try await manager.withResponse(for: Request(url: url("http://a.example/500"))) { _, _ in }
        }
        #expect(await events.values == ["open 1", "close 1"])
    }

    @Test func `an interceptor can send requests concurrently and return either response`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { request in
            MockResponse([.wait(gate), .head(.ok), .chunk(Data(request.url.path.utf8))])
        }
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { request, next in
                    try await withThrowingTaskGroup(of: OpenResponse.self) { group in
                        for path in ["/a", "/b"] {
                            group.addTask {
                                var request = request
                                request.url = try url("http://a.example\(path)")
                                return try await next(request)
                            }
                        }
                        // None is answered before both have begun.
                        try await transport.requests(count: 2)
                        gate.open()
                        var responses: [OpenResponse] = []
                        for try await response in group { responses.append(response) }
                        return try #require(responses.first { $0.head.url.path == "/a" })
                    }
                }
            ]
        }
        try await manager.withResponse(for: manager.request(.get, "x")) { _, body in
            let data = try await body.collect(upTo: 10)
            #expect(data == Data("/a".utf8))
        }
    }

    @Test func `all exchanges of concurrent requests are closed, also if a response is stored`() async throws {
        let events = EventList<String>()
        let transport = NotingTransport(events, pairs: true)
        let manager = SessionManager { configuration in
            configuration.transport = transport
            configuration.cache = .memory()
            configuration.attemptInterceptors = [
                Intercepting { request, next in
                    async let first = next(request)
                    async let second = next(request)
                    return try await [first, second][0]
                }
            ]
        }
        try await manager.withResponse(for: Request(url: url("http://a.example/"))) { _, body in
            _ = try await body.collect(upTo: 10)
        }
        #expect(await Set(events.values) == ["open 1", "open 2", "close 1", "close 2"])
    }

    @Test func `a response that an interceptor opens itself is closed by the call`() async throws {
        let events = EventList<String>()
        let other = NotingTransport(events)
        let manager = SessionManager(on: transport) {
            $0.retryPolicy = RetryPolicy(limit: 1).with { $0.backoff = Backoff(base: .zero) }
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    try await other.open(request, delivery: next.delivery, reporting: nil)
                }
            ]
        }
        try await manager.withResponse(for: Request(url: url("http://a.example/500"))) { _, _ in }
        #expect(await events.values == ["open 1", "close 1", "open 2", "close 2"])
    }

    /// A body that ends only when it is cancelled.
    private final class Endless: ResponseBodySource {
        private let gate: ScriptGate
        let ending: ResponseEnding? = nil

        init() throws { gate = try ScriptGate() }

        func next() async throws -> Data? {
            // Of a task that no one cancels.
            try await Task { [gate] in try await gate.wait() }.value
            throw CancellationError()
        }

        func cancel() { gate.open() }
        func close() async {}
    }

    @Test func `cancelling a task ends the body that an interceptor has made`() async throws {
        let body = try Endless()
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { request, _ in
                    OpenResponse(head: ResponseHead(status: .ok, url: request.url), body: ResponseBody(source: body))
                }
            ]
        }
        let (heads, continuation) = AsyncStream.makeStream(of: Int.self)
        let task = Task {
            try await manager.withResponse(for: Request(url: url("http://a.example/"))) { head, body in
                continuation.yield(head.status.code)
                for try await _ in body {}
            }
        }
        for await _ in heads { break }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `a request that an interceptor does not wait for is not continued after the call`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { _ in MockResponse([.wait(gate), .head(.serviceUnavailable)]) }
        let left = Lock<Task<Void, Never>?>(nil)
        let events = Lock<[String]>([])
        let manager = SessionManager(on: transport) {
            $0.retryPolicy = RetryPolicy(limit: 3).with { $0.backoff = Backoff(base: .zero) }
            $0.eventMonitors = [Noting { event in events.withLock { $0.append("\(event)") } }]
            $0.interceptors = [
                Intercepting { request, next in
                    left.withLock { $0 = Task { _ = try? await next(request) } }
                    try await transport.requests(count: 1)
                    return OpenResponse(head: ResponseHead(status: .ok, url: request.url), body: ResponseBody(Data()))
                }
            ]
        }
        #expect(try await manager.get("x").statusCode == 200)
        gate.open()
        await left.withLock(\.self)?.value
        #expect(transport.requests.count == 1)
        #expect(events.withLock { $0.last?.hasPrefix("ended") } == true)
    }

    private struct Noting: EventMonitor {
        let note: @Sendable (TaskEvent) -> Void

        func receive(_ event: TaskEvent, of task: AnySessionTask) { note(event) }
    }

    /// The response that is returned decides, whichever request ends last.
    @Test func `after concurrent requests, a download has the retries of the one whose response it reads`() async throws
    {
        let (isHeld, isRacing) = (try ScriptGate(), Lock(true))
        let bytes = Data("0123456789".utf8)
        let transport = MockTransport { request in
            let fields: HTTPFields = [.eTag: "\"1\"", .contentLength: "10", .acceptRanges: "bytes"]
            guard request.headers[.range] == nil else {
                let rest: HTTPFields = [.eTag: "\"1\"", .contentLength: "6", .contentRange: "bytes 4-9/10"]
                return MockResponse([.head(.partialContent, rest), .chunk(bytes[4...])])
            }
            let loss = TransportError(.connectionLost(.inBody(received: 4, expected: 10)))
            return MockResponse([.wait(isHeld), .head(.ok, fields), .chunk(bytes[..<4]), .fail(loss)])
        }
        let directory = try TemporaryDirectory()
        let manager = SessionManager(on: transport) {
            $0.retryPolicy = RetryPolicy(limit: 1).with { $0.backoff = Backoff(base: .zero) }
            $0.interceptors = [
                Intercepting { request, next in
                    guard
                        isRacing.withLock({ isRacing in
                            defer { isRacing = false }; return isRacing
                        })
                    else {
                        return try await next(request)
                    }
                    return try await withThrowingTaskGroup(of: OpenResponse.self) { group in
                        group.addTask { try await next(request) }
                        try await transport.requests(count: 1)
                        group.addTask {
                            var held = request
                            held.headers[.from] = "held"
                            return try await next(held)
                        }
                        let first = try await group.next()
                        group.cancelAll()
                        while await group.nextResult() != nil {}
                        return try #require(first)
                    }
                },
                Intercepting { request, next in
                    guard request.headers[.from] != nil else { return try await next(request) }
                    isHeld.open()
                    try await Task.sleep(for: .seconds(3600))
                    throw Planned()
                },
            ]
        }
        let path = "\(directory.path)/file"
        _ = try await manager.download("x", to: .file(path)).value
        #expect(try Data(contentsOf: URL(filePath: path)) == bytes)
        #expect(transport.requests.map { $0.request.headers[.range] } == [nil, "bytes=4-"])
    }

    @Test(arguments: [true, false])
    func `the retries of a winner count for the next request, whatever the error of the loser`(isReplaced: Bool)
        async throws
    {
        let (isHeld, attempts) = (try ScriptGate(), Lock<[Int]>([]))
        let transport = MockTransport(.status(.serviceUnavailable), .text("a"), .text("b"))
        let manager = SessionManager(on: transport) {
            $0.retryPolicy = RetryPolicy(limit: 1).with { $0.backoff = Backoff(base: .zero) }
            $0.interceptors = [
                Intercepting { request, next in
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        group.addTask {
                            var held = request
                            held.headers[.from] = "held"
                            _ = try await next(held)
                        }
                        try await isHeld.wait()
                        _ = try await next(request)
                        group.cancelAll()
                        _ = await group.nextResult()
                    }
                    return try await next(request)
                },
                Intercepting { request, next in
                    guard request.headers[.from] != nil else {
                        attempts.withLock { $0.append(next.attempt) }
                        return try await next(request)
                    }
                    isHeld.open()
                    do {
                        try await Task.sleep(for: .seconds(3600))
                    } catch  where isReplaced {
                        throw Planned()
                    }
                    return try await next(request)
                },
            ]
        }
        #expect(try await manager.get("x").text == "b")
        #expect(attempts.withLock(\.self) == [1, 2])
    }

    @Test func `a chain that is kept sends nothing after its interceptor has returned`() async throws {
        let slot = Lock<Chain?>(nil)
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { request, next in
                    slot.withLock { $0 = next }
                    return try await next(request)
                }
            ]
        }
        _ = try await manager.get("x")
        let kept = slot.withLock { $0 }
        let chain = try #require(kept)
        await #expect(throws: CancellationError.self) { _ = try await chain(Request(url: url("http://a.example/"))) }
        #expect(transport.requests.count == 1)
    }

    @Test func `cancelling ends a call that waits in an interceptor`() async throws {
        let clock = ManualClock()
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { request, next in
                    try await clock.sleep(for: .seconds(1))
                    return try await next(request)
                }
            ]
        }
        let task = Task { try await manager.get("x") }
        try await clock.sleepers(count: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(manager.tasks.isEmpty)
        #expect(transport.requests.isEmpty)
    }

    @Test func `downloads and uploads pass through interceptors`() async throws {
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { request, next in
                    var response = try await next(request)
                    response.body = response.body.transforming { $0 + Data("!".utf8) }
                    return response
                }
            ]
        }
        let directory = try TemporaryDirectory()
        #expect(try await manager.download("x", to: "\(directory.path)/file").value.size == 4)
        #expect(try directory.read("file") == Data("end!".utf8))
        #expect(try await manager.upload("x", body: .string("body")).value.text == "end!")
    }
}

/// A transport that notes when exchanges are opened and closed. The body of each response is the number of the exchange;
/// the status is the last component of the path, or 200.
private struct NotingTransport: Transport {
    let events: EventList<String>
    /// Opened by the second request; the first one waits for it. `nil` if requests do not come in pairs.
    private let gate: ScriptGate?
    private let count = Lock(0)

    init(_ events: EventList<String>, pairs: Bool = false) {
        self.events = events
        gate = pairs ? try? ScriptGate() : nil
    }

    func open(
        _ request: Request, delivery: BodyDelivery, reporting: (any ExchangeEventSink)?
    ) async throws -> OpenResponse {
        let number = count.withLock { count in
            count += 1
            return count
        }
        await events.append("open \(number)")
        if number == 2 { gate?.open() }
        if number == 1 { try await gate?.wait() }
        let status = HTTPResponse.Status(code: Int(request.url.lastPathComponent) ?? 200)
        return OpenResponse(
            head: ResponseHead(status: status, headers: [.cacheControl: "max-age=60"], url: request.url),
            body: ResponseBody(source: Source(number: number, events: events)))
    }

    func shutdown() async {}

    private final class Source: ResponseBodySource {
        let number: Int
        let events: EventList<String>
        private let isRead = Lock(false)
        private let isClosed = Lock(false)
        var ending: ResponseEnding? { isRead.withLock(\.self) ? ResponseEnding() : nil }

        init(number: Int, events: EventList<String>) {
            self.number = number
            self.events = events
        }

        func next() async throws -> Data? {
            let wasRead = isRead.withLock { isRead in
                defer { isRead = true }
                return isRead
            }
            return wasRead ? nil : Data("\(number)".utf8)
        }

        func close() async {
            let wasClosed = isClosed.withLock { isClosed in
                defer { isClosed = true }
                return isClosed
            }
            if !wasClosed { await events.append("close \(number)") }
        }
    }
}

/// Requests that an attempt interceptor passes to another session.
@Suite struct PassedRequestsTests {
    /// Sends a request to `a.example`, which an interceptor changes and passes to a session without settings, and returns
    /// the request that this one sends.
    private func passed(
        timeout: Duration? = nil, _ configure: @Sendable (inout SessionConfiguration) -> Void,
        changing change: @escaping @Sendable (inout Request) async throws -> Void = { _ in }
    ) async throws -> Request {
        let transport = MockTransport(.text("end"))
        let other = SessionManager(on: transport)
        let manager = SessionManager(on: MockTransport(.text("not sent"))) {
            configure(&$0)
            $0.attemptInterceptors = [
                Intercepting { request, _ in
                    var request = request
                    request.url = try url("http://b.example/")
                    try await change(&request)
                    let response = try await other.data(for: request)
                    return OpenResponse(head: response.head, body: ResponseBody(response.value))
                }
            ]
        }
        #expect(try await manager.get("x", timeout: timeout).text == "end")
        return try transport.onlyRequest.request
    }

    @Test func `neither a credential nor a signature for its transport goes with it`() async throws {
        let key = {
            var key = AWSSignature(accessKeyID: "id", secretAccessKey: "secret", region: "r", service: "s")
            key.hosts = ["a.example"]
            return key
        }()
        let base = try url("http://a.example/")
        let digest = Credential(user: "ada", password: "lovelace", schemes: [.digest])
        let settings: [@Sendable (inout SessionConfiguration) -> Void] = [
            { $0.authentication.signatures = [key] }, { $0.authentication.credentials[base] = digest },
        ]
        for configure in settings { #expect(try await passed(configure).transportAuthentication == nil) }
    }

    @Test func `the other session adds its own sensitive fields, also where an interceptor leads the request`()
        async throws
    {
        let transport = MockTransport(.text("end"))
        let other = SessionManager(on: transport) { $0.headers = [.authorization: "other"] }
        let manager = SessionManager(on: MockTransport(.text("not sent"))) {
            $0.headers = [.authorization: "secret"]
            $0.interceptors = [
                Intercepting { request, next in
                    var request = request
                    request.url = try url("http://b.example/")
                    return try await next(request)
                },
                Intercepting { request, _ in
                    let response = try await other.data(for: request)
                    return OpenResponse(head: response.head, body: ResponseBody(response.value))
                },
            ]
        }
        _ = try await manager.get("x")
        #expect(try transport.onlyRequest.request.headers[.authorization] == "other")
    }

    @Test func `its token is sent unchanged, and not refreshed`() async throws {
        let authenticator = Authenticator(for: [try url("http://a.example/")], token: .init("1")) { _ in
            throw Planned()
        }
        let sent = try await passed({ $0.authentication.authenticators = [authenticator] }) { _ in
            await authenticator.setToken(.init("2"))
        }
        #expect(sent.headers[.authorization] == "Bearer 1")
    }

    @Test func `its time is measured anew, by the other session's clock`() async throws {
        let sent = try await passed(timeout: .seconds(10), { $0.clock = ManualClock() }) {
            #expect($0.options?.timeouts.total == .seconds(10))
            #expect($0.sessionClock != nil)
            $0.timeout = .seconds(3_600)
        }
        #expect(try #require(sent.options?.timeouts.total) > .seconds(60))
        #expect(sent.sessionClock == nil)
    }
}

@Suite struct RequestAttributesTests {
    private enum Purpose: RequestAttribute {
        static let defaultValue = "none"
    }

    private enum Priority: RequestAttribute {
        static let defaultValue = 0
    }

    @Test func `each attribute has its own value, with a default`() throws {
        var request = try Request(url: url("http://a.example/"))
        #expect(request[Purpose.self] == "none")
        request[Purpose.self] = "test"
        #expect(request[Purpose.self] == "test")
        #expect(request[Priority.self] == 0)
        let copy = request
        request[Priority.self] = 7
        request[Purpose.self] = "other"
        #expect(copy[Purpose.self] == "test")
        #expect(copy[Priority.self] == 0)
    }

    @Test func `attributes are preserved by interceptors and redirects, and are not sent`() async throws {
        let transport = MockTransport(.redirect(.found, to: "//b.example/"), .text("end"))
        let seen = EventList<String>()
        let manager = SessionManager(on: transport) {
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    await seen.append(request[Purpose.self])
                    return try await next(request)
                }
            ]
        }
        var request = try manager.request(.get, "x")
        request[Purpose.self] = "test"
        _ = try await manager.data(for: request)
        #expect(await seen.values == ["test", "test"])
        #expect(transport.requests.allSatisfy { $0.request.headers.isEmpty })
    }
}
