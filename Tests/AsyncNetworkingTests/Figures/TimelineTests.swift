// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct TimelineTests {
    private static func metrics(_ total: Int) -> TransferMetrics {
        var metrics = TransferMetrics()
        metrics.queued = .microseconds(20)
        metrics.nameLookup = .milliseconds(12)
        metrics.connect = .microseconds(32_400)
        metrics.tlsHandshake = .milliseconds(63)
        metrics.requestStart = .milliseconds(63)
        metrics.firstByte = .milliseconds(110)
        metrics.total = .milliseconds(total)
        return metrics
    }

    @Test func `a failed exchange shows its attempts, redirects and waits, what each phase took, and the facts`() {
        var history = CallHistory()
        history.duration = .milliseconds(3_456)
        let attempt = RetryHistory.Attempt(
            outcome: .status(503), metrics: Self.metrics(112), wait: .milliseconds(500))
        history.steps = [
            .init(at: .milliseconds(9), .refreshingToken),
            .init(at: .milliseconds(112), .retrying(after: attempt)),
            .init(at: .milliseconds(640), .redirected(status: 302, to: "https://b.example/x?token=…")),
            .init(at: .milliseconds(700), .answeringChallenge),
            .init(at: .milliseconds(1_800), .waitingForConnectivity(.unreachable)),
        ]
        var context = FailureContext()
        context.url = "https://b.example/x?token=…"
        context.address = SocketAddress(host: "192.0.2.7", port: 443)
        (context.curlCode, context.errno, context.timeLimit) = (28, 110, .seconds(1))
        context.message = "Operation timed out"
        context.sendCount = 2
        context.callHistory = history
        context.metrics = Self.metrics(1_112)
        context.retryHistory.stop = .limit(1)
        let error = SessionError.transport(TransportError(.timedOut(.responseBody), context: context))
        #expect(
            error.timeline == """
                timeout_response_body: https://b.example/x?token=…
                    0 ms  begins
                  9.0 ms  waits for a new token
                  112 ms  attempt 1 failed: status 503 (name 12 ms, connect 20 ms, TLS 31 ms, wait 47 ms, receive 2.0 ms)
                  612 ms  attempt 2, after a wait of 500 ms
                  640 ms  redirected by 302 to https://b.example/x?token=…
                  700 ms  answers a challenge
                  1.80 s  waits for a route, because of host_unreachable
                  3.46 s  The request timed out (phase: response body, limit: 1.0 seconds) (name 12 ms, connect 20 ms, TLS 31 ms, wait 47 ms, receive 1.00 s)
                  address: 192.0.2.7:443
                  message: Operation timed out
                  errno: 110
                  curl: 28
                  limit: 1.00 s
                  sent: 2 times
                  not retried: because there was 1 retry
                """)
    }

    @Test func `a call records its course, on the session's clock, without monitors`() async throws {
        let clock = ManualClock()
        let transport = MockTransport(
            .status(.serviceUnavailable), .redirect(.found, to: "/b?token=secret"),
            .failure(TransportError(.cannotConnect(.refused))))
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.randomUnit = { 1 }
            $0.retryPolicy = RetryPolicy(limit: 1)
        }
        async let failure = sessionError { _ = try await manager.get("a?key=secret") }
        _ = try await clock.sleepers(count: 1)
        clock.advance(by: .seconds(2))
        let timeline = try await failure.timeline
        #expect(
            timeline == """
                connection_refused: no request was sent
                    0 ms  begins
                    0 ms  attempt 1 failed: status 503
                  500 ms  attempt 2, after a wait of 500 ms
                  2.00 s  redirected by 302 to http://a.example/b?token=…
                  2.00 s  No connection could be made: the port is closed; check that the server is running
                  not retried: because there was 1 retry
                """)
    }

    @Test func `a rejected response shows its course and its status`() async throws {
        let transport = MockTransport(.redirect(.found, to: "/b"), .status(.notFound))
        let manager = SessionManager(on: transport) { $0.clock = ManualClock() }
        let failure = try await sessionError { _ = try await manager.get("a", as: .json) }
        #expect(
            failure.timeline == """
                status_rejected: http://a.example/b
                  0 ms  begins
                  0 ms  redirected by 302 to http://a.example/b
                  0 ms  status 404 was rejected
                  type: none
                  body: 0 bytes
                """)
    }

    @Test func `another error is its label and its description`() {
        #expect(
            SessionError.invalidated.timeline
                == "shut_down: The session manager was invalidated; create a new one.")
    }

    @Test(arguments: [
        (Duration.zero, "0 ms"), (.nanoseconds(40_000), "0 ms"), (.nanoseconds(50_000), "0.1 ms"),
        (.microseconds(9_949), "9.9 ms"), (.microseconds(9_950), "10 ms"), (.microseconds(999_499), "999 ms"),
        (.microseconds(999_500), "1.00 s"), (.milliseconds(1_256), "1.26 s"), (.milliseconds(59_994), "59.99 s"),
        (.milliseconds(59_996), "1 min"), (.seconds(125), "2 min 5 s"), (.seconds(-1), "0 ms"),
        (.seconds(Int64.max), "9.223372036854776e+18 seconds"),
    ])
    func `durations are rounded as people read them`(duration: Duration, text: String) {
        #expect(duration.forPeople == text)
    }
}
