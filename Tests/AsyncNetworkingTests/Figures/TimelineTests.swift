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

    // MARK: Secrets

    private static let secret = "hunter2"

    /// An error of a source or an interceptor.
    private struct Quoting: Error, CustomStringConvertible {
        var description: String { "The key \(secret) is wrong." }
    }

    /// Errors with texts of the server or the program.
    private static func quoting() async throws -> [any Error] {
        let reasons: [TransportError.Reason] = [
            .invalidURL(secret), .unsupportedScheme(secret), .invalidRequest(secret), .invalidContentEncoding,
            .invalidResponse(.statusLine("HTTP/1.1 \(secret)")), .invalidResponse(.headerLine("Set-Cookie: \(secret)")),
            .invalidResponse(.headerLine(secret)), .invalidResponse(.webSocket(secret)),
            .requestBody(.source(Quoting())), .requestBody(.file(path: "/\(secret)", reason: secret)),
            .webSocketClosed(WebSocketClosure(code: 4000, reason: secret)), .internalInconsistency(secret),
            .tls(.rejected(secret)), .tls(.badStaple(secret)), .tls(.keyLog(path: "/\(secret)")),
            .proxy(.tls(.rejected(secret))),
        ]
        var errors: [any Error] = reasons.map { reason in
            var context = FailureContext()
            (context.url, context.message) = ("http://a.example/x?key=…", secret)
            return TransportError(reason, context: context)
        }
        let responses: [MockResponse] = [
            .text(secret, status: .unauthorized), .text(secret), .json("{\"token\":\"\(secret)\""),
            .json("{\"token\":\"\(secret)\"}"), .json(#"{"token":{"\#(secret)":1}}"#),
        ]
        for response in responses {
            errors.append(
                try await sessionError {
                    _ = try await SessionManager(on: MockTransport(response)).get(
                        "x?key=\(secret)", as: .decodable([String: Int].self))
                })
        }
        let binary = MockResponse.data(
            Data([0xFF]) + Data(secret.utf8), headers: [.contentType: "text/plain; charset=utf-8"])
        errors.append(
            try await sessionError {
                _ = try await SessionManager(on: MockTransport(binary)).get("x", as: .string)
            })
        let failures: [any Error] = [
            SessionError.invalidCookie(name: secret), SessionError.notResumable(.wrongRange(secret)),
            SessionError.upload(.server(secret)),
            SessionError.redirect(.location("ftp://\(secret)@a.example/?q=\(secret)")),
        ]
        errors += failures
        errors.append(Quoting())
        return errors
    }

    @Test func `neither a timeline nor an event contains a text of the server or the program`() async throws {
        let errors = try await Self.quoting()
        #expect(errors.count >= 26)
        var texts: [String] = []
        for error in errors {
            let lifted = (error as? TransportError).map { SessionError.transport($0) } ?? error
            texts.append("\(TaskEvent.ended(.failed(lifted), CallMetrics()))")
            #expect(texts.last?.hasPrefix("failed: ") == true)
            let attempt = RetryHistory.Attempt(outcome: .failure("\(error)"), label: ErrorLabel(error))
            texts.append("\(TaskEvent.retrying(after: attempt))")
            #expect(texts.last?.hasSuffix(" \(ErrorLabel(error).rawValue)") == true)
            if let error = error as? TransportError { texts.append("\(TaskEvent.waitingForConnectivity(error))") }
            guard let error = lifted as? SessionError else { continue }
            texts.append(error.timeline)
            #expect(error.timeline.hasPrefix(error.label))
        }
        var request = Request(method: .post, url: try url("http://\(Self.secret)@a.example/?q=\(Self.secret)"))
        request.headers[.authorization] = Self.secret
        request.body = .string(Self.secret)
        let space = ProtectionSpace(
            host: "a.example", port: 80, isSecure: false, scheme: .basic, realm: Self.secret)
        let head = ResponseHead(
            status: .found, headers: [.location: Self.secret], url: try url("http://a.example/?q=\(Self.secret)"))
        let events: [TaskEvent] = [
            .omittingLastEventID(Self.secret), .answeringChallenge(of: space), .exchange(1, .started(request)),
            .exchange(1, .head(head)), .exchange(1, .informational(head)), .response(head),
            .redirected(by: head, to: request),
        ]
        for text in texts + events.map({ "\($0)" }) { #expect(!text.contains(Self.secret), "\(text)") }
    }

    @Test(arguments: [
        ("Set-Cookie: sid=hunter2", "a header line is malformed: “Set-Cookie: …”"),
        ("Set-Cookie sid=hunter2:", "a header line is malformed"), ("hunter2", "a header line is malformed"),
        (" hunter2: x", "a header line is malformed"), (": hunter2", "a header line is malformed"),
    ])
    func `a malformed header line is shown by its name`(line: String, text: String) {
        let error = TransportError(.invalidResponse(.headerLine(line)))
        #expect("\(error)" == "The response is invalid: \(text).")
        #expect(error.reason == .invalidResponse(.headerLine(line)))
    }

    @Test func `an event shows an error by its description, unless that has texts of others`() throws {
        let refused = TransportError(.cannotConnect(.refused))
        let rows: [(any Error, String)] = [
            (SessionError.transport(refused), "\(refused)"), (SessionError.notCached, "\(SessionError.notCached)"),
            (SessionError.transport(TransportError(.invalidResponse(.notHTTP))), "invalid_response."),
            (SessionError.serialization(.compound([])), "response_decoding."), (Quoting(), "Quoting"),
        ]
        for (error, text) in rows {
            #expect("\(TaskEvent.ended(.failed(error), CallMetrics()))" == "failed: \(text)")
        }
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
