// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct RetryPlanTests {

    /// Returns the step after an attempt; by default the first attempt of a GET request.
    private func step(
        after result: RetryPlan.AttemptResult, method: HTTPRequest.Method = .get, headers: HTTPFields = [:],
        body: RequestBody = .none, decision: RetryPolicy.Decision = .followPolicy,
        at timing: RetryPlan.Timing = .init(), policy: (inout RetryPolicy) -> Void = { _ in }
    ) throws -> RetryPlan.Step {
        let request = try Request(method: method, url: url("http://a.example/"), headers: headers, body: body)
        return RetryPlan(RetryPolicy().with(policy)).step(
            after: result, of: request, seen: SeenRequests(), decision: decision, at: timing)
    }

    private func response(_ status: Int, _ headers: HTTPFields = [:]) throws -> RetryPlan.AttemptResult {
        .success(ResponseHead(status: .init(code: status), headers: headers, url: try url("http://a.example/")))
    }

    private static let lost = TransportError(.connectionLost(.beforeResponse))
    private static let refused = TransportError(.cannotConnect(.refused))

    // MARK: Retriable results

    @Test func `of many attempts only the first and the latest ones are kept, and all count`() {
        var plan = RetryPlan(RetryPolicy(limit: .max))
        for attempt in 0..<1_000 {
            #expect(plan.attempt == attempt + 1)
            _ = plan.note(.failure(TransportError(.cannotResolve)), nil, wait: .seconds(attempt))
        }
        let kept = Array(0..<16) + Array(760..<1_000)
        #expect(plan.history.earlierAttempts.map(\.wait) == kept.map { .seconds($0) })
        #expect("\(plan.history)" == "attempt 1001")
        var history = CallHistory()
        for attempt in plan.history.earlierAttempts + plan.history.earlierAttempts {
            history.steps.append(.init(at: .zero, .retrying(after: attempt)))
        }
        let lines = history.timeline("", end: "ends", metrics: nil, facts: []).split(separator: "\n")
        #expect(lines.count { $0.contains("256 events are left out") } == 1)
        #expect(lines.contains { $0.contains("attempt 513, after a wait") })
    }

    @Test(arguments: [408, 425, 429, 500, 502, 503, 504])
    func `these statuses are retriable`(status: Int) throws {
        #expect(try step(after: response(status)) == .retry(after: .milliseconds(500)))
    }

    @Test(arguments: [100, 200, 204, 206, 301, 304, 400, 401, 403, 404, 409, 410, 412, 413, 418, 422, 501, 505, 511])
    func `other statuses are not retriable`(status: Int) throws {
        #expect(try step(after: response(status)) == .finish)
    }

    private static let worthIt: [(TransportError.Reason, RetryPolicy.Failure)] = [
        (.cannotResolve, .nameLookup),
        (.timedOut(.nameLookup), .nameLookup),
        (.cannotConnect(.refused), .connect), (.cannotConnect(.unreachable), .connect),
        (.cannotConnect(.systemTimeout), .connect), (.cannotConnect(.other), .connect),
        (.timedOut(.connect), .connect),
        (.timedOut(.tlsHandshake), .connect),
        (.tls(.handshake), .tlsHandshake),
        (.proxy(.handshake), .proxy), (.proxy(.tunnelRefused(status: 503)), .proxy),
        (.connectionLost(.beforeResponse), .connectionLost),
        (.connectionLost(.inHead), .connectionLost),
        (.connectionLost(.inBody(received: 1, expected: 2)), .connectionLost),
        (.connectionLost(.whileSending), .connectionLost),
        (.timedOut(.request), .noResponse),
        (.timedOut(.responseHead), .noResponse),
        (.timedOut(.responseBody), .noResponse),
    ]

    @Test(arguments: worthIt.indices)
    func `these failures are retriable`(index: Int) throws {
        let (reason, failure) = Self.worthIt[index]
        let error = TransportError(reason)
        #expect(RetryPolicy.Failure(error) == failure)
        #expect(try step(after: .failure(error)) == .retry(after: .milliseconds(500)))
        let without = try step(after: .failure(error)) { _ = $0.failures.remove(failure) }
        #expect(without == .finish)
    }

    private static let onRequest: [(TransportError.Reason, RetryPolicy.Failure)] = [
        (.timedOut(.queue), .queue), (.invalidResponse(.notHTTP), .invalidResponse),
    ]

    @Test(arguments: onRequest.indices)
    func `these failures are retriable if the policy contains them`(index: Int) throws {
        let (reason, failure) = Self.onRequest[index]
        let error = TransportError(reason)
        #expect(try step(after: .failure(error)) == .finish)
        let with = try step(after: .failure(error)) { _ = $0.failures.insert(failure) }
        #expect(with == .retry(after: .milliseconds(500)))
    }

    private static let never: [TransportError.Reason] = [
        .cannotConnect(.localAddress), .cannotConnect(.addressForbidden),
        .timedOut(.connectivity), .tls(.certificateExpired),
        .tls(.unknownAuthority), .tls(.wrongHost),
        .tls(.untrusted(verifyResult: 1)),
        .proxy(.authenticationRequired),
        .proxy(.tunnelRefused(status: 403)), .proxy(.tls(.handshake)),
        .invalidURL("x"), .unsupported(.http3),
        .responseTooLarge(.body(limit: 1)), .requestBody(.notReplayable),
        .shutDown, .internalInconsistency("x"),
    ]

    private static let neverErrors: [any Error & Sendable] =
        never.map { TransportError($0) } + [SessionError.redirect(.tooMany(limit: 1, to: "")), Planned()]

    @Test(arguments: neverErrors.indices)
    func `all other failures are never retriable`(index: Int) throws {
        let error = Self.neverErrors[index]
        #expect(try step(after: .failure(error)) { $0.failures = Set(RetryPolicy.Failure.allCases) } == .finish)
    }

    // MARK: Conditions

    @Test(arguments: ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"])
    func `idempotent methods are retried`(method: String) throws {
        let method = try #require(HTTPRequest.Method(method))
        #expect(try step(after: response(503), method: method) == .retry(after: .milliseconds(500)))
        #expect(try step(after: .failure(Self.lost), method: method) == .retry(after: .milliseconds(500)))
    }

    @Test(arguments: ["POST", "PATCH", "CONNECT", "LOCK"])
    func `other methods are retried if the server has not seen the request, or recognizes the repetition`(
        method: String
    ) throws {
        let method = try #require(HTTPRequest.Method(method))
        #expect(try step(after: response(503), method: method) == .stop(.method))
        #expect(try step(after: .failure(Self.lost), method: method) == .stop(.method))
        #expect(try step(after: .failure(Self.refused), method: method) == .retry(after: .milliseconds(500)))
        let key = HTTPFields([HTTPField(name: try #require(.init("idempotency-key")), value: "1")])
        #expect(try step(after: response(503), method: method, headers: key) == .retry(after: .milliseconds(500)))
        let allowed = try step(after: response(503), method: method) { _ = $0.methods.insert(method) }
        #expect(allowed == .retry(after: .milliseconds(500)))
    }

    // MARK: What servers have seen

    /// A method, and whether a server may have acted on it more than once without harm.
    private static let methods: [(HTTPRequest.Method, isRepeatable: Bool)] = [
        (.get, true), (.put, true), (.delete, true), (.post, false), (.patch, false),
    ]

    /// The failures of an exchange, and whether a server may have seen the request.
    private static let failures: [(TransportError.Reason, isSeen: Bool)] = [
        (.invalidURL("x"), false), (.unsupportedScheme("x"), false), (.cannotResolve, false),
        (.cannotConnect(.refused), false), (.tls(.handshake), false), (.tls(.selfSigned), false),
        (.tls(.clientCertificateRefused), true), (.proxy(.handshake), false),
        (.proxy(.tunnelRefused(status: 503)), false), (.timedOut(.connectivity), false), (.timedOut(.queue), false),
        (.timedOut(.nameLookup), false), (.timedOut(.connect), false), (.timedOut(.tlsHandshake), false),
        (.timedOut(.request), true), (.timedOut(.responseHead), true), (.timedOut(.responseBody), true),
        (.connectionLost(.whileSending), true), (.connectionLost(.beforeResponse), true),
        (.invalidResponse(.notHTTP), true), (.responseTooLarge(.body(limit: 1)), true), (.shutDown, true),
    ]

    @Test(arguments: methods.indices, failures.indices)
    func `an attempt is repeated only if no server has seen a request that must not be repeated`(
        method: Int, failure: Int
    ) throws {
        let (method, isRepeatable) = Self.methods[method]
        let (reason, isSeen) = Self.failures[failure]
        let first = try Request(method: method, url: url("http://a.example/"))
        let next = try Request(url: url("http://b.example/"))
        let redirected = RetryPlan.AttemptResult.success(
            ResponseHead(status: .seeOther, url: try url("http://a.example/")))
        let refused = RetryPlan.AttemptResult.failure(Self.refused)
        // The results of the exchanges of one attempt; the last one is that of the attempt.
        let attempts: [(exchanges: [(Request, RetryPlan.AttemptResult)], isRepeated: Bool)] = [
            ([(first, refused)], true),
            ([(first, redirected), (next, refused)], isRepeatable),
            ([(first, redirected), (first, refused)], isRepeatable),
            ([(first, .failure(TransportError(reason))), (first, refused)], isRepeatable || !isSeen),
            ([(first, .failure(TransportError(reason))), (next, refused)], isRepeatable || !isSeen),
            // An interceptor or a redirect policy sends the method although the call's request is a GET.
            ([(next, redirected), (first, refused)], true),
            (
                [(next, redirected), (first, .failure(TransportError(reason))), (next, refused)],
                isRepeatable || !isSeen
            ),
        ]
        for attempt in attempts {
            var seen = SeenRequests()
            for exchange in attempt.exchanges { seen.note(exchange.0, exchange.1) }
            let (request, result) = (attempt.exchanges[0].0, try #require(attempt.exchanges.last).1)
            let step = RetryPlan(RetryPolicy()).step(
                after: result, of: request, seen: seen, decision: .followPolicy, at: .init())
            #expect(step == (attempt.isRepeated ? .retry(after: .milliseconds(500)) : .stop(.method)))
        }
    }

    @Test func `requests of the same kind are recorded once, however often they are sent`() throws {
        var seen = SeenRequests()
        for method in [.post, .get, .head] as [HTTPRequest.Method] {
            let request = try Request(method: method, url: url("http://a.example/"))
            seen.note(request, .failure(TransportError(.connectionLost(.beforeResponse))))
        }
        for _ in 0..<16 { seen.formUnion(seen) }
        var count = 0
        _ = seen.allSatisfy { _ in
            count += 1
            return true
        }
        #expect(count == 3)
    }

    /// Failures for which nothing was sent, and the wait that something long-lived makes after them.
    private static let unsent: [(any Error, Duration)] = [
        (SessionError.circuitOpen(host: "a.example", retryAfter: .seconds(300)), .seconds(300)),
        (SessionError.circuitOpen(host: "a.example", retryAfter: .zero), .milliseconds(500)),
        (TransportError(.timedOut(.connectivity)), .milliseconds(500)),
    ]

    @Test func `only what is long-lived outlasts times in which nothing is sent`() throws {
        let post = try Request(method: .post, url: url("http://a.example/"))
        for (error, wait) in Self.unsent {
            func step(_ plan: RetryPlan, _ seen: SeenRequests, _ decision: RetryPolicy.Decision) -> RetryPlan.Step {
                plan.step(after: .failure(error), of: post, seen: seen, decision: decision, at: .init())
            }
            let (plain, patient) = (RetryPlan(RetryPolicy()), RetryPlan(RetryPolicy(), isLongLived: true))
            #expect(step(plain, SeenRequests(), .followPolicy) == .finish)
            #expect(step(plain, SeenRequests(), .retry()) == .retry(after: wait))
            #expect(step(patient, SeenRequests(), .followPolicy) == .retry(after: wait))
            var seen = SeenRequests()
            seen.note(post, try response(307))
            #expect(step(patient, seen, .followPolicy) == .stop(.method))
        }
    }

    @Test func `a request that the transport has sent before may have been seen`() throws {
        var context = FailureContext()
        context.sendCount = 2
        let refused = TransportError(.cannotConnect(.refused), context: context)
        for (method, isSeen) in [(HTTPRequest.Method.put, true), (.post, false)] {
            var seen = SeenRequests()
            seen.note(try Request(method: method, url: url("http://a.example/")), .failure(refused))
            #expect(seen.isEmpty == !isSeen)
        }
    }

    @Test func `a request whose body is not replayable is not retried`() throws {
        let once = RequestBody.stream(AsyncStreamOf([Data("x".utf8)]))
        let again = RequestBody.stream(AsyncStreamOf([Data("x".utf8)]), isReplayable: true)
        #expect(try step(after: response(503), method: .put, body: once) == .stop(.body))
        #expect(try step(after: .failure(Self.refused), method: .put, body: once) == .stop(.body))
        #expect(try step(after: response(503), method: .put, body: again) == .retry(after: .milliseconds(500)))
    }

    @Test(arguments: [0, 1, 5, -3])
    func `the number of retries is limited`(limit: Int) throws {
        var plan = RetryPlan(RetryPolicy(limit: limit))
        let request = try Request(url: url("http://a.example/"))
        var retries = 0
        while case .retry(let wait) = plan.step(
            after: try response(503), of: request, seen: SeenRequests(), decision: .followPolicy, at: .init())
        {
            _ = plan.note(try response(503), nil, wait: wait)
            retries += 1
        }
        #expect(retries == max(0, limit))
        #expect(
            plan.step(after: try response(503), of: request, seen: SeenRequests(), decision: .followPolicy, at: .init())
                == .stop(.limit(max(0, limit))))
    }

    @Test func `the wait must end before the deadline`() throws {
        let wait = Duration.milliseconds(500)
        #expect(
            try step(after: response(503), at: .init(elapsed: .milliseconds(499))) { $0.deadline = .seconds(1) }
                == .retry(after: wait))
        #expect(
            try step(after: response(503), at: .init(elapsed: .milliseconds(500))) { $0.deadline = .seconds(1) }
                == .stop(.deadline(.seconds(1))))
    }

    // MARK: Waits

    @Test func `waits grow with the attempts`() throws {
        var plan = RetryPlan(RetryPolicy(limit: 9))
        let request = try Request(url: url("http://a.example/"))
        var waits: [Duration] = []
        for _ in 0..<4 {
            guard
                case .retry(let wait) = plan.step(
                    after: .failure(Self.lost), of: request, seen: SeenRequests(), decision: .followPolicy,
                    at: .init(unit: 0.5))
            else { break }
            waits.append(wait)
            _ = plan.note(.failure(Self.lost), nil, wait: wait)
        }
        #expect(waits == [250, 500, 1_000, 2_000].map { .milliseconds($0) })
    }

    @Test func `Retry-After applies if it is longer than the backoff`() throws {
        #expect(try step(after: response(503, [.retryAfter: "7"])) == .retry(after: .seconds(7)))
        #expect(try step(after: response(429, [.retryAfter: "0"])) == .retry(after: .milliseconds(500)))
        #expect(try step(after: response(503, [.retryAfter: "never"])) == .retry(after: .milliseconds(500)))
        let date: HTTPFields = [.retryAfter: "Thu, 01 Jan 1970 00:00:09 GMT"]
        #expect(try step(after: response(503, date), at: .init(now: 5)) == .retry(after: .seconds(4)))
    }

    @Test func `a Retry-After above the maximum prevents a retry`() throws {
        #expect(try step(after: response(503, [.retryAfter: "60"])) == .retry(after: .seconds(60)))
        #expect(try step(after: response(503, [.retryAfter: "61"])) == .stop(.retryAfter(.seconds(61))))
        #expect(
            try step(after: response(503, [.retryAfter: "61"])) { $0.maximumRetryAfter = nil }
                == .retry(after: .seconds(61)))
    }

    @Test func `a wait that would overflow a clock is limited to a hundred years`() throws {
        #expect(
            try step(after: response(503, [.retryAfter: "99999999999999999999"])) { $0.maximumRetryAfter = nil }
                == .retry(after: .seconds(100 * 365 * 86_400)))
        let longest = Duration(secondsComponent: .max, attosecondsComponent: 0)
        #expect(
            try step(after: response(404), decision: .retry(after: longest))
                == .retry(after: .seconds(100 * 365 * 86_400)))
    }

    // MARK: Decisions of the program

    @Test func `it can request another attempt after any result, within the limits`() throws {
        #expect(try step(after: response(404), decision: .retry()) == .retry(after: .milliseconds(500)))
        #expect(try step(after: response(404), decision: .retry(after: .seconds(2))) == .retry(after: .seconds(2)))
        #expect(try step(after: response(404), decision: .retry(after: .seconds(-2))) == .retry(after: .zero))
        #expect(
            try step(after: .failure(Planned()), method: .post, decision: .retry()) == .retry(after: .milliseconds(500))
        )
        #expect(
            try step(after: response(503, [.retryAfter: "900"]), decision: .retry(after: .seconds(1)))
                == .retry(after: .seconds(1)))
        let once = RequestBody.stream(AsyncStreamOf([Data("x".utf8)]))
        #expect(try step(after: response(404), body: once, decision: .retry()) == .stop(.body))
        #expect(try step(after: response(404), decision: .retry()) { $0.limit = 0 } == .stop(.limit(0)))
    }

    @Test func `it can prevent another attempt`() throws {
        #expect(try step(after: response(503), decision: .stop) == .stop(.decision))
        #expect(try step(after: response(404), decision: .stop) == .finish)
    }
}
