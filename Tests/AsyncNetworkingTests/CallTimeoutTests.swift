// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct CallTimeoutTests {
    private let clock = ManualClock()

    private func manager(
        _ transport: MockTransport, configure: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        SessionManager(
            .on(transport) {
                $0.clock = clock
                configure(&$0)
            })
    }

    /// A transport on which each exchange takes 2 s.
    private func slowTransport(_ respond: @escaping @Sendable (Request) -> MockResponse) -> MockTransport {
        MockTransport(clock: clock) { [clock] request in
            clock.advance(by: .seconds(2))
            return respond(request)
        }
    }

    @Test func `the timeout of a call applies to all of its redirects together`() async throws {
        let transport = slowTransport { _ in .redirect(.found, to: "/next") }
        let manager = manager(transport)
        let error = try await sessionError { _ = try await manager.get("x", timeout: .seconds(5)) }
        #expect(error.isTimeout)
        #expect(error.context?.timeLimit == .seconds(5))
        let totals = transport.requests.map(\.request.options?.timeouts.total)
        #expect(totals == [.seconds(5), .seconds(3), .seconds(1)])
    }

    @Test func `the reader of a body learns the timeout of the call that has expired`() async throws {
        let transport = MockTransport(clock: clock) { [clock] request in
            guard request.url.lastPathComponent == "x" else {
                return MockResponse([.head(.ok), .chunk(Data("a".utf8)), .hang])
            }
            clock.advance(by: .seconds(2))
            return .redirect(.found, to: "/next")
        }
        let manager = manager(transport)
        let task = Task {
            try await manager.withResponse(for: manager.request(.get, "x", timeout: .seconds(5))) { _, body in
                await #expect(throws: TransportError.self) { try await body.collect(upTo: 9) }?.context.timeLimit
            }
        }
        #expect(try await clock.passWaits(1) == [.seconds(3)])
        #expect(try await task.value == .seconds(5))
    }

    @Test func `the deadline of the retries applies to the redirects of an attempt together`() async throws {
        let transport = slowTransport { _ in .redirect(.found, to: "/next") }
        let manager = manager(transport) {
            $0.retryPolicy = RetryPolicy(limit: 9).with { $0.deadline = .seconds(5) }
        }
        let error = try await sessionError { _ = try await manager.get("x") }
        #expect(error.isTimeout)
        #expect(error.context?.timeLimit == .seconds(5))
        #expect(error.retryHistory.stop == .deadline(.seconds(5)))
        let totals = transport.requests.map(\.request.options?.timeouts.total)
        #expect(totals == [.seconds(5), .seconds(3), .seconds(1)])
    }

    @Test(arguments: [nil, 9] as [Int?])
    func `a request that a closure has kept from an earlier call has none of its limits`(seconds: Int?) async throws {
        let kept = Lock<Request?>(nil)
        let transport = slowTransport {
            $0.url.lastPathComponent == "x" ? .redirect(.found, to: "/next") : .text("end")
        }
        let manager = manager(transport) {
            $0.redirectPolicy.decision = { redirection in
                kept.withLock { kept in
                    kept = kept ?? redirection.proposed
                    return kept
                }
            }
        }
        _ = try await manager.get("x", timeout: .seconds(5))
        clock.advance(by: .seconds(60))
        var request = try manager.request(.get, "x")
        request.timeout = seconds.map { Duration.seconds($0) }
        // The time limit that the kept request sets applies from then on.
        _ = try await manager.data(for: request)
        let totals = transport.requests.map(\.request.options?.timeouts.total)
        let (first, second) = seconds == nil ? (nil, Duration.seconds(5)) : (Duration.seconds(9), .seconds(3))
        #expect(totals == [.seconds(5), .seconds(3), first, second])
    }

    @Test func `a request that a closure creates anew keeps the timeout and the transfer options`() async throws {
        let transport = slowTransport { request in
            request.url.lastPathComponent == "x" ? .redirect(.found, to: "/next") : .text("end")
        }
        let next = try url("http://a.example/next")
        let manager = manager(transport) {
            $0.transfer.timeouts.idle = .seconds(7)
            $0.redirectPolicy.decision = { _ in Request(url: next) }
            $0.interceptors = [
                Intercepting { request, next in
                    try await next(Request(url: request.url))
                }
            ]
            $0.attemptInterceptors = $0.interceptors
        }
        _ = try await manager.get("x", timeout: .seconds(5))
        let options = transport.requests.map(\.request.options)
        #expect(options.map { $0?.timeouts.total } == [.seconds(5), .seconds(3)])
        #expect(options.map { $0?.timeouts.idle } == [.seconds(7), .seconds(7)])
    }

    @Test(arguments: ["around the call", "around the exchange", "by a redirect policy"])
    func `a body that is set anew is that of the task`(place: String) async throws {
        let transport = MockTransport { request in
            request.url.lastPathComponent == "x" ? .redirect(.temporaryRedirect, to: "/next") : .text("end")
        }
        let body = RequestBody.bytes(Data(count: 1_000_000))
        let creating = Intercepting { request, next in
            try await next(Request(method: request.method, url: request.url, body: body))
        }
        let manager = manager(transport) {
            switch place {
            case "around the call": $0.interceptors = [creating]
            case "around the exchange": $0.attemptInterceptors = [creating]
            default:
                $0.redirectPolicy.decision = { redirection in
                    Request(method: .post, url: redirection.proposed.url, body: body)
                }
            }
        }
        _ = try await manager.upload("x", body: .string("a")).value
        let sent = try #require(transport.requests.last?.request)
        #expect(sent.endsWithResponse)
        #expect(sent.body.gate != nil)
    }

    @Test(arguments: [nil, .seconds(60)] as [Duration?])
    func `an interceptor can set the timeout of the call`(timeout: Duration?) async throws {
        let transport = slowTransport { _ in .redirect(.found, to: "/next") }
        let manager = manager(transport) {
            $0.interceptors = [
                Intercepting { request, next in
                    var request = request
                    request.timeout = .seconds(3)
                    return try await next(request)
                }
            ]
        }
        let error = try await sessionError { _ = try await manager.get("x", timeout: timeout) }
        #expect(error.isTimeout)
        #expect(transport.requests.map(\.request.options?.timeouts.total) == [.seconds(3), .seconds(1)])
    }

    @Test(arguments: [true, false])
    func `the time limit that a redirect policy sets is that of all further exchanges together`(
        setsItOnce: Bool
    ) async throws {
        let transport = slowTransport { _ in .redirect(.found, to: "/next") }
        let manager = manager(transport) {
            $0.redirectPolicy.decision = { redirection in
                var request = redirection.proposed
                if redirection.original.timeout == nil || !setsItOnce { request.timeout = .seconds(3) }
                return request
            }
        }
        let error = try await sessionError { _ = try await manager.get("x") }
        #expect(error.isTimeout)
        #expect(error.context?.timeLimit == .seconds(3))
        #expect(transport.requests.map(\.request.options?.timeouts.total) == [nil, .seconds(3), .seconds(1)])
    }

    @Test(arguments: [true, false])
    func `the time limit that a redirect or an interceptor sets is not measured anew by retries`(
        byRedirect: Bool
    ) async throws {
        let transport = slowTransport { request in
            byRedirect && request.url.lastPathComponent == "x"
                ? .redirect(.found, to: "/next") : .status(.serviceUnavailable)
        }
        let manager = manager(transport) {
            $0.retryPolicy = RetryPolicy(limit: 3).with { ($0.backoff, $0.budget) = (Backoff(base: .zero), nil) }
            if byRedirect {
                $0.redirectPolicy.decision = { redirection in
                    var request = redirection.proposed
                    request.timeout = .seconds(3)
                    return request
                }
            } else {
                $0.attemptInterceptors = [
                    Intercepting { request, next in
                        var request = request
                        request.timeout = .seconds(3)
                        return try await next(request)
                    }
                ]
            }
        }
        let error = try await sessionError { _ = try await manager.get("x") }
        #expect(error.isTimeout)
        let totals = transport.requests.compactMap(\.request.options?.timeouts.total)
        #expect(totals == [.seconds(3), .seconds(1)])
    }

    @Test(arguments: [0, 3])
    func `each request of an interceptor has its own time limit`(retries: Int) async throws {
        let transport = slowTransport { request in
            request.url.lastPathComponent == "x" ? .failure(TransportError(.timedOut(.request))) : .text("end")
        }
        let manager = manager(transport) {
            $0.retryPolicy = RetryPolicy(limit: retries)
            $0.interceptors = [
                Intercepting { request, next in
                    var request = request
                    do {
                        request.timeout = .seconds(2)
                        return try await next(request)
                    } catch {
                        request.timeout = .seconds(30)
                        request.url = try url("http://a.example/mirror")
                        return try await next(request)
                    }
                }
            ]
        }
        #expect(try await manager.get("x").text == "end")
        #expect(transport.requests.map(\.request.options?.timeouts.total) == [.seconds(2), .seconds(28)])
    }

    @Test func `the time limit of a further request of an interceptor is not that of the call`() async throws {
        let answers = Lock([MockResponse.status(.serviceUnavailable), .text("end")])
        let transport = MockTransport { request in
            request.url.lastPathComponent == "ticket" ? .text("1") : answers.withLock { $0.removeFirst() }
        }
        let manager = manager(transport) {
            $0.retryPolicy = RetryPolicy(limit: 1).with { ($0.backoff, $0.budget) = (Backoff(base: .zero), nil) }
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    var ticket = Request(url: try url("http://a.example/ticket"))
                    ticket.timeout = .milliseconds(1)
                    _ = try? await next(ticket)
                    return try await next(request)
                }
            ]
        }
        #expect(try await manager.get("x").text == "end")
    }

    @Test func `the time limit that an interceptor sets is measured from there`() async throws {
        let transport = MockTransport(.text("x"))
        let manager = manager(transport) {
            $0.interceptors = [
                Intercepting { request, next in
                    var request = request
                    request.timeout = .seconds(2)
                    return try await next(request)
                }, RequestRateLimit(1, per: .seconds(10)),
            ]
        }
        _ = try await manager.get("x")
        let error = try await sessionError { _ = try await manager.get("x") }
        #expect(error.isTimeout)
        #expect(error.context?.timeLimit == .seconds(2))
        #expect(transport.requests.count == 1)
    }

    @Test func `the requests of an interceptor with one time limit share it`() async throws {
        let transport = slowTransport { _ in .text("x") }
        let manager = manager(transport) {
            $0.interceptors = [
                Intercepting { request, next in
                    var request = request
                    request.timeout = .seconds(5)
                    for _ in 0..<2 { _ = try await next(request) }
                    return try await next(request)
                }
            ]
        }
        let error = try await sessionError { _ = try await manager.get("x") }
        #expect(error.context?.timeLimit == .seconds(5))
        #expect(
            transport.requests.map(\.request.options?.timeouts.total) == [.seconds(5), .seconds(3), .seconds(1)])
    }

    /// Reading an attribute is a comparison as long as none is set.
    @Test func `a call without a timeout sets no attribute`() async throws {
        enum Unused: RequestAttribute {
            static var defaultValue: Int { 0 }
        }
        let transport = MockTransport { _ in .text("") }
        _ = try await SessionManager(on: transport).get("x")
        #expect(transport.requests.map { $0.request.attributes.hasAttributes(besides: Unused.self) } == [false])
    }

    @Test func `there is no retry after a wait that exceeds the timeout of the call`() async throws {
        let transport = slowTransport { _ in .status(.badGateway) }
        let manager = manager(transport) {
            $0.retryPolicy = RetryPolicy(limit: 9).with {
                $0.backoff = Backoff(base: .seconds(1), isJittered: false)
                $0.deadline = .seconds(60)
            }
        }
        let task = Task { try await manager.data(for: manager.request(.get, "x", timeout: .seconds(6))) }
        #expect(try await clock.sleepers(count: 1) == [.seconds(1)])
        clock.advance(by: .seconds(1))
        let response = try await task.value
        #expect(response.statusCode == 502)
        #expect(response.head.retryHistory.stop == .deadline(.seconds(6)))
        #expect(transport.requests.map(\.request.options?.timeouts.total) == [.seconds(6), .seconds(3)])
    }

    @Test func `the shorter of the call's timeout and that of an exchange applies`() async throws {
        let transport = MockTransport(.text("end"))
        let manager = manager(transport) { $0.timeouts.total = .seconds(4) }
        _ = try await manager.get("x", timeout: .seconds(9))
        _ = try await manager.get("x", timeout: .seconds(1))
        _ = try await manager.get("x")
        let totals = transport.requests.map(\.request.options?.timeouts.total)
        #expect(totals == [.seconds(4), .seconds(1), .seconds(4)])
    }

    @Test func `a request can be sent again with its timeout`() async throws {
        let transport = slowTransport { _ in .text("end") }
        let manager = manager(transport)
        let request = try manager.request(.get, "x", timeout: .seconds(3))
        #expect(request.timeout == .seconds(3))
        for _ in 0..<3 { _ = try await manager.data(for: request) }
        #expect(transport.requests.map(\.request.options?.timeouts.total) == [.seconds(3), .seconds(3), .seconds(3)])
    }

    @Test func `a timeout of zero sends nothing`() async throws {
        let transport = MockTransport(.text("end"))
        let manager = manager(transport)
        let error = try await sessionError { _ = try await manager.get("x", timeout: .zero) }
        #expect(error.isTimeout)
        #expect(transport.requests.isEmpty)
    }

    @Test func `a server that does not answer ends the call, and the error names its timeout`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .hang }
            let manager = SessionManager(for: server)
            let error = try await sessionError { _ = try await manager.get("x", timeout: .seconds(1)) }
            #expect(error.reason == .timedOut(.responseHead))
            #expect(error.context?.timeLimit == .seconds(1))
        }
    }

    /// Starts a download whose exchanges time out within the body, of a session that retries them, and suspends it there.
    private func suspendedDownload(
        from server: StubServer, in directory: TemporaryDirectory, timeout: Duration? = nil
    ) async throws -> (session: SessionManager, task: DownloadTask) {
        let pace = Script.Pace(bytes: 1, every: .milliseconds(5))
        server.serve(ServedFile(StubServer.generatedBytes(100_000), pace: pace), at: "/x")
        let session = SessionManager(for: server) {
            $0.retryPolicy = RetryPolicy(limit: 3)
            $0.retryPolicy.backoff = Backoff(base: .milliseconds(1))
        }
        var request = try session.request(.get, "x")
        request.changeOptions { $0.timeouts.total = .milliseconds(500) }
        request.timeout = timeout
        let task = session.download(request, to: .file("\(directory.path)/x"))
        for await progress in task.downloadProgress where progress.completedBytes > 0 { break }
        task.suspend()
        return (session, task)
    }

    @Test func `a suspended download whose exchange has timed out is retried when it goes on`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("other") }
            let directory = try TemporaryDirectory()
            let (session, task) = try await suspendedDownload(from: server, in: directory)
            for await case .retrying in task.events { break }
            // Other requests end meanwhile.
            for _ in 0..<50 { _ = try await session.get("y") }
            #expect(server.activity.requests.count { $0.path == "/x" } == 1)
            #expect(task.status.state == .suspended)
            task.resume()
            try await server.activity { $0.requests.count { $0.path == "/x" } == 2 }
            task.cancel()
        }
    }

    @Test func `the time limit of the call ends a suspended download that waits to be retried`() async throws {
        try await StubServer.with { server in
            let directory = try TemporaryDirectory()
            let (_, task) = try await suspendedDownload(from: server, in: directory, timeout: .seconds(1))
            let error = try await sessionError { _ = try await task.value }
            #expect(error.isTimeout)
            #expect(error.context?.timeLimit == .seconds(1))
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test(arguments: [false, true], [false, true])
    func `the time limit ends a suspended task that has received bytes`(isDownload: Bool, isTotal: Bool) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .drip(bytes: 1, every: .milliseconds(5), body: .generated(100_000)) }
            let directory = try TemporaryDirectory()
            let manager = SessionManager(for: server)
            var request = try manager.request(.get, "x")
            if isTotal {
                request.changeOptions { $0.timeouts.total = .milliseconds(500) }
            } else {
                request.timeout = .milliseconds(500)
            }
            let file = manager.makeDownloadTask(for: request, to: "\(directory.path)/x")
            let data = manager.makeDataTask(for: request)
            let task = isDownload ? file.erased : data.erased
            task.resume()
            for await progress in task.downloadProgress where progress.completedBytes > 0 { break }
            task.suspend()
            let error = try await sessionError {
                if isDownload { _ = try await file.value } else { _ = try await data.value }
            }
            #expect(error.reason == .timedOut(.responseBody))
            #expect(try directory.contents.isEmpty)
        }
    }
}
