// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@Suite struct CallMetricsTests {
    /// Keeps the figures of each call that has ended.
    private final class Figures: EventMonitor {
        private let ended = Lock([CallMetrics]())

        var all: [CallMetrics] { ended.withLock(\.self) }

        func receive(_ event: TaskEvent, of task: AnySessionTask) {
            if case .ended(_, let metrics) = event { ended.withLock { $0.append(metrics) } }
        }
    }

    private let figures = Figures()

    private func figures(
        exchanges: Int, retries: Int = 0, redirects: Int = 0, status: Int?, source: ResponseSource? = .network,
        sent: Int64 = 0, received: Int64 = 0, duration: Duration = .zero
    ) -> CallMetrics {
        var metrics = CallMetrics()
        (metrics.exchangeCount, metrics.retryCount, metrics.redirectCount) = (exchanges, retries, redirects)
        (metrics.statusCode, metrics.source, metrics.duration) = (status, source, duration)
        metrics.httpVersion = status.map { _ in .http1_1 }
        (metrics.requestBodyBytes, metrics.responseBodyBytes) = (sent, received)
        return metrics
    }

    @Test func `the end of a call has the figures of all its exchanges, and a response the time of both`() async throws
    {
        let clock = ManualClock()
        let transport = MockTransport(
            .status(.serviceUnavailable), .redirect(.temporaryRedirect, to: "/b"), .text("end"))
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.randomUnit = { 1 }
            $0.retryPolicy = RetryPolicy(limit: 1)
            $0.eventMonitors = [figures]
        }
        async let response = manager.data(for: manager.request(.put, "a", body: .string("body")))
        _ = try await clock.sleepers(count: 1)
        clock.advance(by: .seconds(2))
        let received = try await response
        #expect(received.callDuration == .seconds(2))
        #expect(
            figures.all == [
                figures(
                    exchanges: 3, retries: 1, redirects: 1, status: 200, sent: 12, received: 3, duration: .seconds(2))
            ])
    }

    @Test func `a stored response that is shared is one of the cache`() async throws {
        let manager = SessionManager(on: MockTransport(.data(Data("x".utf8), headers: [.cacheControl: "max-age=60"]))) {
            $0.cache = .memory()
            $0.eventMonitors = [figures]
            $0.interceptors = [RequestCoalescing()]
        }
        for _ in 0..<2 { _ = try await manager.get("a") }
        #expect(figures.all.map(\.source) == [.network, .cache])
    }

    @Test(arguments: [false, true])
    func `a response that an interceptor made has no source`(isRead: Bool) async throws {
        struct Answer: Interceptor {
            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                OpenResponse(head: ResponseHead(status: .ok, url: request.url), body: ResponseBody(Data()))
            }
        }
        let manager = SessionManager(on: MockTransport(.text("server"))) {
            $0.eventMonitors = [figures]
            $0.interceptors = [Answer()]
        }
        let request = try manager.request(.get, "a")
        try await manager.withResponse(for: request) { _, body in
            if isRead { _ = try await body.collect(upTo: 1) }
        }
        #expect(figures.all.map(\.source) == [nil])
    }

    @Test func `a failed exchange has no status`() async throws {
        let manager = SessionManager(on: MockTransport(.failure(TransportError(.cannotConnect(.refused))))) {
            $0.clock = ManualClock()
            $0.retryPolicy = .none
            $0.eventMonitors = [figures]
        }
        _ = try? await manager.get("a")
        #expect(figures.all == [figures(exchanges: 1, status: nil, source: nil)])
    }

    @Test func `a failed exchange after a response has no status`() async throws {
        let transport = MockTransport { request in
            request.url.host() == "a.example"
                ? .text("none", status: .notFound) : .failure(TransportError(.cannotConnect(.refused)))
        }
        let manager = SessionManager(on: transport) { ($0.clock, $0.eventMonitors) = (ManualClock(), [figures]) }
        let directory = try TemporaryDirectory()
        var options = DownloadOptions()
        options.expectedDigest = try ContentDigest(of: Data("x".utf8))
        options.mirrors = [try url("http://b.example/x")]
        let download = manager.download("x", to: .file(directory.path + "/x"), options: options)
        #expect(try await sessionError { _ = try await download.value }.isConnectionFailure)
        try await eventually { figures.all == [figures(exchanges: 2, status: nil, source: nil, received: 4)] }
    }

    @Test(arguments: [ResponseSource.cache, .validated, .stale])
    func `a stored response that is not read has its source`(source: ResponseSource) async throws {
        let origin = Origin()
        origin.fields = [.cacheControl: "max-age=60, stale-if-error=60", .eTag: #""a""#]
        let manager = origin.manager { $0.eventMonitors = [figures] }
        _ = try await manager.get("x")
        if source != .cache { origin.advance(90) }
        origin.respond { _, _ in .status(source == .stale ? .badGateway : .notModified, headers: [.eTag: #""a""#]) }
        try await manager.withResponse(for: manager.request(.get, "x")) { head, _ in #expect(head.status == .ok) }
        #expect(figures.all.map(\.source) == [.network, source])
        #expect(figures.all.map(\.statusCode) == [200, 200])
    }

    @Test func `a stored response has its source and no exchange`() async throws {
        let stored = MockResponse(
            status: .ok, headers: [.cacheControl: "max-age=60", .contentLength: "3"], chunks: [Data("end".utf8)])
        let manager = SessionManager(on: MockTransport(stored)) {
            $0.clock = ManualClock()
            $0.cache = .memory()
            $0.eventMonitors = [figures]
        }
        _ = try await manager.get("a")
        _ = try await manager.get("a")
        #expect(
            figures.all == [
                figures(exchanges: 1, status: 200, received: 3), figures(exchanges: 0, status: 200, source: .cache),
            ])
    }

    @Test func `a task has the same figures, and its response the time of the call`() async throws {
        let manager = SessionManager(on: MockTransport(.redirect(.found, to: "/b"), .text("end"))) {
            $0.clock = ManualClock()
            $0.eventMonitors = [figures]
        }
        let task = try manager.makeDataTask(for: manager.request(.get, "a"))
        task.resume()
        #expect(try await task.value.callDuration == .zero)
        try await eventually { figures.all == [figures(exchanges: 2, redirects: 1, status: 200, received: 3)] }
        let last = await task.events.reduce(into: CallMetrics?.none) { last, event in
            if case .ended(_, let metrics) = event { last = metrics }
        }
        #expect(last == figures.all.first)
    }

    @Test func `the line of an ended call has its status, time and size`() {
        var metrics = figures(
            exchanges: 3, retries: 1, redirects: 1, status: 200, sent: 12, received: 4_096,
            duration: .milliseconds(1_256))
        #expect(
            "\(TaskEvent.ended(.succeeded, metrics))"
                == "ended with 200 after 1.26 s, 3 exchanges, 1 retry, 1 redirect, 12 bytes sent, 4096 bytes received")
        metrics = figures(exchanges: 1, status: 304, source: .validated)
        #expect("\(TaskEvent.ended(.succeeded, metrics))" == "ended with 304 after 0 ms, validated")
    }
}
