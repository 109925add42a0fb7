// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

/// A session whose clock is a `ManualClock` follows it in everything: timeouts of exchanges, and dates.
@Suite struct ManualTimeTests {
    private let clock = ManualClock()

    @Test func `a response that hangs ends by the timeout of the call`() async throws {
        let transport = MockTransport(.hang)
        let manager = SessionManager(on: transport) { $0.clock = clock }
        async let result = sessionError { _ = try await manager.get("x", timeout: .seconds(30)) }
        #expect(try await clock.sleepers(count: 1) == [.seconds(30)])
        clock.advance(by: .seconds(30))
        let error = try await result
        #expect(error.isTimeout)
        guard case .transport(let failure) = error else { throw error }
        #expect(failure.reason == .timedOut(.responseHead) && failure.context.timeLimit == .seconds(30))
    }

    @Test func `a function of the transport that waits is ended by the timeout`() async throws {
        let transport = MockTransport { _ in
            try await Task.sleep(for: .seconds(3_600))
            return .text("late")
        }
        let manager = SessionManager(on: transport) { $0.clock = clock }
        async let result = sessionError { _ = try await manager.get("x", timeout: .seconds(30)) }
        try await transport.requests(count: 1)
        clock.advance(by: .seconds(30))
        let error = try await result
        #expect(error.isTimeout)
    }

    @Test func `a server that sends nothing for the idle timeout ends the exchange, and each chunk begins it anew`()
        async throws
    {
        let chunks: [MockResponse.Step] = (0..<3).flatMap { _ in [.pause(.seconds(9)), .chunk(Data("a".utf8))] }
        let transport = MockTransport(clock: clock) { _ in MockResponse([.head(.ok)] + chunks + [.pause(.seconds(11))])
        }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.timeouts.idle = .seconds(10)
        }
        async let result = sessionError { _ = try await manager.get("x") }
        for _ in 0..<3 {
            #expect(try await clock.sleepers(count: 1) == [.seconds(9)])
            clock.advance(by: .seconds(9))
        }
        try await clock.sleepers(count: 1)
        clock.advance(by: .seconds(10))
        guard case .transport(let failure) = try await result else { throw CancellationError() }
        #expect(failure.reason == .timedOut(.responseBody) && failure.context.timeLimit == .seconds(10))
    }

    @Test func `a direct call of the transport follows the clock that it was created with`() async throws {
        let transport = MockTransport(clock: clock) { _ in .hang }
        var request = Request(url: try url("http://a.example/"))
        request.options = TransferOptions().with { $0.timeouts.total = .seconds(5) }
        let exchange = Task { [request] in
            try await transport.withResponse(for: request, delivery: .streamed) { _, _ in }
        }
        try await clock.sleepers(count: 1)
        clock.advance(by: .seconds(5))
        let failure = await #expect(throws: TransportError.self) { try await exchange.value }
        #expect(failure?.reason == .timedOut(.responseHead))
    }

    @Test func `a stored response becomes stale when the clock is advanced`() async throws {
        let transport = MockTransport { _ in
            MockResponse(headers: [.cacheControl: "max-age=60"], chunks: [Data("a".utf8)])
        }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.cache = .memory()
        }
        for (seconds, requests) in [(0, 1), (59, 1), (2, 2)] {
            clock.advance(by: .seconds(seconds))
            _ = try await manager.get("x")
            #expect(transport.requests.count == requests)
        }
    }

    @Test func `a token expires when the clock is advanced`() async throws {
        let transport = MockTransport(.text(""))
        let refreshes = Counter()
        let base = try url("http://a.example/")
        let authenticator = Authenticator(
            for: [base], token: Authenticator.Token("0", expires: clock.date + 3_600), leeway: .zero
        ) { [clock] _ in
            Authenticator.Token("\(await refreshes.next())", expires: clock.date + 3_600)
        }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.authentication.authenticators = [authenticator]
        }
        for seconds in [0, 3_599, 2, 3_599, 1] {
            clock.advance(by: .seconds(seconds))
            _ = try await manager.get("x")
        }
        #expect(
            transport.requests.map { $0.request.headers[.authorization] }
                == ["Bearer 0", "Bearer 0", "Bearer 1", "Bearer 1", "Bearer 2"])
    }

    @Test(arguments: [Date(timeIntervalSince1970: 784_111_777), Date(timeIntervalSince1970: 4_102_444_800)])
    func `the initial token expires by the date of the clock, in whichever year`(date: Date) async throws {
        let (transport, clock) = (MockTransport(.text("")), ManualClock(date: date))
        let base = try url("http://a.example/")
        let authenticator = Authenticator(for: [base], token: Authenticator.Token("0", expires: date + 60)) { _ in
            Authenticator.Token("1")
        }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.authentication.authenticators = [authenticator]
        }
        _ = try await manager.get("x")
        clock.advance(by: .seconds(120))
        _ = try await manager.get("x")
        #expect(transport.requests.map { $0.request.headers[.authorization] } == ["Bearer 0", "Bearer 1"])
    }

    @Test func `a token that another request has refreshed is not sent when it has expired`() async throws {
        // The first request is refused late: meanwhile, the second one has refreshed the token, which has expired again.
        let transport = MockTransport(clock: clock) { request in
            let isFirst = request.url.path == "/v1/slow" && request.headers[.authorization] == "Bearer 0"
            if isFirst { return MockResponse([.pause(.seconds(20)), .head(.unauthorized)]) }
            return request.headers[.authorization] == "Bearer 0" ? .status(.unauthorized) : .text("ok")
        }
        let refreshes = Counter()
        let authenticator = Authenticator(
            for: [try url("http://a.example/")], token: Authenticator.Token("0"), leeway: .zero
        ) { [clock] _ in Authenticator.Token("\(await refreshes.next())", expires: clock.date + 10) }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.authentication.authenticators = [authenticator]
        }
        async let slow = manager.get("slow", as: .string).value
        try await clock.sleepers(count: 1)
        _ = try await manager.get("quick")
        clock.advance(by: .seconds(20))
        #expect(try await slow == "ok")
        #expect(
            transport.requests.map { $0.request.headers[.authorization] }
                == ["Bearer 0", "Bearer 0", "Bearer 1", "Bearer 2"])
    }

    @Test func `a date in Retry-After is measured from the date of the clock`() async throws {
        let clock = ManualClock(date: Date(timeIntervalSince1970: 784_111_777))
        let transport = MockTransport(
            .status(.serviceUnavailable, headers: [.retryAfter: "Sun, 06 Nov 1994 08:50:37 GMT"]), .text("ok"))
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.retryPolicy = RetryPolicy()
        }
        async let text = manager.get("x", as: .string).value
        #expect(try await clock.sleepers(count: 1) == [.seconds(60)])
        clock.advance(by: .seconds(60))
        #expect(try await text == "ok")
    }

    private actor Counter {
        private var value = 0
        func next() -> Int {
            value += 1
            return value
        }
    }
}
