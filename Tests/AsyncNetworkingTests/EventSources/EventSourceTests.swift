// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct EventSourceTests {
    let clock = ManualClock()

    /// A session whose waits between connections are the reconnection times exactly.
    func session(
        _ transport: any Transport, configure: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        SessionManager(
            .on(transport) {
                $0.clock = clock
                $0.randomUnit = { 0 }
                configure(&$0)
            })
    }

    static func request(_ method: HTTPRequest.Method = .get, policy: RetryPolicy? = nil) throws -> Request {
        var request = Request(method: method, url: try url("http://a.example/feed"))
        request.retryPolicy = policy
        return request
    }

    /// A policy without jitter, which waits 1, 2, 4… seconds longer than the reconnection time.
    private static let doubling = RetryPolicy(limit: .max).with {
        $0.backoff = Backoff(base: .seconds(1), isJittered: false)
    }

    @Test func `events do not come from the cache`() async throws {
        let fields: HTTPFields = [.contentType: "text/event-stream", .cacheControl: "max-age=60"]
        let transport = MockTransport(.data(Data("data: 1\n\n".utf8), headers: fields), .status(.noContent))
        let session = session(transport) { $0.cache = .memory() }
        #expect(try await session.data(for: Self.request()).text == "data: 1\n\n")
        #expect(try await collect(session.events(for: Self.request())).events.get() == [])
        #expect(transport.requests.count == 2)
    }

    /// Iterates a source, and advances the clock through its waits.
    private func collect(
        _ source: EventSource, passing count: Int = 0
    ) async throws -> (events: Result<[ServerSentEvent], any Error>, waits: [Duration]) {
        let task = Task {
            var events: [ServerSentEvent] = []
            do {
                for try await event in source { events.append(event) }
            } catch {
                throw Interrupted(events: events, error: error)
            }
            return events
        }
        let waits = try await clock.passWaits(count)
        return (await task.result, waits)
    }

    private struct Interrupted: Error {
        let events: [ServerSentEvent]
        let error: any Error
    }

    static func events(_ numbers: ClosedRange<Int>) -> [ServerSentEvent] {
        numbers.map { ServerSentEvent(data: "event \($0)", id: "\($0)") }
    }

    private static func lastIDs(_ transport: MockTransport) -> [String?] {
        transport.requests.map { $0.request.headers[.lastEventID] }
    }

    // MARK: Reconnecting

    @Test(arguments: [true, false])
    func `a POST that was redirected is not sent again if the next host cannot be reached`(
        isRetried: Bool
    ) async throws {
        let transport = MockTransport(
            .redirect(.temporaryRedirect, to: "http://b.example/"), .failure(TransportError(.cannotConnect(.refused))))
        let session = session(transport) {
            $0.interceptors = [
                Intercepting { request, next in
                    var request = request
                    if isRetried { request.retryPolicy = RetryPolicy(limit: 2) }
                    return try await next(request)
                }
            ]
        }
        let (events, _) = try await collect(session.events(for: Self.request(.post)))
        #expect(throws: Interrupted.self) { try events.get() }
        #expect(transport.requests.count == 2)
    }

    @Test func `a POST is repeated if the refresh of its token has failed, before it was sent`() async throws {
        let refreshes = Lock(0)
        let base = try url("http://a.example/")
        let transport = MockTransport(.events(Self.events(1...1)))
        let session = session(transport) {
            $0.authentication.authenticators = [
                Authenticator(for: [base]) { _ in
                    let number = refreshes.withLock {
                        $0 += 1; return $0
                    }
                    let lost = TransportError(.connectionLost(.beforeResponse))
                    if number == 1 { throw SessionError.transport(lost) }
                    return Authenticator.Token("t")
                }
            ]
        }
        let (events, waits) = try await collect(session.events(for: Self.request(.post)), passing: 1)
        #expect(try events.get() == Self.events(1...1))
        #expect(waits == [.seconds(3)])
    }

    @Test func `a source continues after the end of a response with the last ID, after 3 s`() async throws {
        let transport = MockTransport(
            .events(Self.events(1...2)), .events(Self.events(3...3)), .status(.noContent))
        let (events, waits) = try await collect(session(transport).events(for: Self.request()), passing: 2)
        #expect(try events.get() == Self.events(1...3))
        #expect(waits == [.seconds(3), .seconds(3)])
        #expect(Self.lastIDs(transport) == [nil, "2", "3"])
    }

    @Test(arguments: ["a\u{1}b", "a\u{7F}", "\u{1B}"])
    func `an ID that a field cannot contain is not sent in another form`(id: String) async throws {
        let transport = MockTransport(.events([ServerSentEvent(data: "x", id: id)]), .status(.noContent))
        let lines = EventLines()
        let session = session(transport) { $0.eventMonitors = [lines] }
        _ = try await collect(session.events(for: Self.request()), passing: 1)
        #expect(Self.lastIDs(transport) == [nil, nil])
        let omissions = await lines.close().filter { $0.contains("without the ID") }
        #expect(omissions.count == 1)
        #expect(omissions.first?.contains(id) == false, "Control characters are escaped.")
    }

    @Test(arguments: [4096, 4097])
    func `an ID that servers would refuse is not sent`(length: Int) async throws {
        let id = String(repeating: "a", count: length)
        let transport = MockTransport(.events([ServerSentEvent(data: "x", id: id)]), .status(.noContent))
        _ = try await collect(session(transport).events(for: Self.request()), passing: 1)
        #expect(Self.lastIDs(transport) == [nil, length == 4096 ? id : nil])
    }

    @Test func `a source continues after a lost connection`() async throws {
        let transport = MockTransport(
            .events(Self.events(1...2), then: .drop), .events(Self.events(3...3)), .status(.noContent))
        let (events, waits) = try await collect(session(transport).events(for: Self.request()), passing: 2)
        #expect(try events.get() == Self.events(1...3))
        #expect(waits == [.seconds(3), .seconds(3)])
        #expect(Self.lastIDs(transport) == [nil, "2", "3"])
    }

    @Test func `an event that was cut off is discarded with its ID`() async throws {
        let transport = MockTransport(
            .stream(["id: 1\ndata: a\n\n", "id: 2\ndata: b\n"], type: "text/event-stream", then: .drop),
            .events([ServerSentEvent(data: "b", id: "2")]), .status(.noContent))
        let (events, _) = try await collect(session(transport).events(for: Self.request()), passing: 2)
        #expect(try events.get().map(\.data) == ["a", "b"])
        #expect(Self.lastIDs(transport) == [nil, "1", "2"])
    }

    @Test func `the server sets the reconnection time`() async throws {
        let transport = MockTransport(
            .events(Self.events(1...1), retry: .milliseconds(250)), .events(Self.events(2...2)),
            .stream(["retry: 10\n"], type: "text/event-stream"), .status(.noContent))
        let source = session(transport).events(for: try Self.request(), reconnectionTime: .seconds(9))
        let (events, waits) = try await collect(source, passing: 3)
        #expect(try events.get() == Self.events(1...2))
        #expect(waits == [.milliseconds(250), .milliseconds(250), .milliseconds(10)])
    }

    @Test func `a reconnection time is a day at most`() async throws {
        let transport = MockTransport(
            .stream(["retry: 9999999999999999999\n"], type: "text/event-stream"), .status(.noContent))
        let (events, waits) = try await collect(session(transport).events(for: Self.request()), passing: 1)
        #expect(try events.get() == [])
        #expect(waits == [.seconds(86_400)])
    }

    @Test func `attempts that receive nothing are made at growing intervals until one does`() async throws {
        let refused = MockResponse.failure(TransportError(.cannotConnect(.refused)))
        let transport = MockTransport(
            refused, refused, .status(.serviceUnavailable), .events([]), .events(Self.events(1...1)), refused,
            .status(.noContent))
        let source = session(transport).events(for: try Self.request(policy: Self.doubling))
        let (events, waits) = try await collect(source, passing: 6)
        #expect(try events.get() == Self.events(1...1))
        #expect(waits.map { $0 - .seconds(3) } == [1, 2, 4, 8, 1, 2].map { .seconds($0) })
    }

    @Test(arguments: [("20", 20), ("120", 120), ("99999999", 86_400)])
    func `Retry-After is respected up to a day`(value: String, wait: Int) async throws {
        let transport = MockTransport(
            .status(.serviceUnavailable, headers: [.retryAfter: value]), .status(.noContent))
        let (_, waits) = try await collect(session(transport).events(for: Self.request()), passing: 1)
        #expect(waits == [.seconds(3 + wait)])
    }

    @Test func `a Retry-After above the limit of the request's policy ends the sequence`() async throws {
        let transport = MockTransport(.status(.serviceUnavailable, headers: [.retryAfter: "61"]))
        let request = try Self.request(policy: RetryPolicy(limit: .max))
        let (events, _) = try await collect(session(transport).events(for: request))
        let failure = try #require(throws: Interrupted.self) { try events.get() }
        #expect((failure.error as? SessionError)?.statusCode == 503)
    }

    @Test func `a source outlasts an open circuit`() async throws {
        let transport = MockTransport(
            .failure(TransportError(.cannotConnect(.refused))), .events(Self.events(1...1)), .status(.noContent))
        let session = session(transport) {
            $0.attemptInterceptors = [CircuitBreaker(failures: 1, cooldown: .seconds(300))]
        }
        let (events, waits) = try await collect(session.events(for: Self.request()), passing: 3)
        #expect(try events.get() == Self.events(1...1))
        #expect(waits == [.seconds(3), .seconds(300), .seconds(3)])
    }

    @Test func `the limit of the policy counts attempts since something was received`() async throws {
        let lost = MockResponse.failure(TransportError(.connectionLost(.beforeResponse)))
        let transport = MockTransport(lost, .events(Self.events(1...1)), lost, lost)
        let source = session(transport).events(for: try Self.request(policy: RetryPolicy(limit: 2)))
        let (events, _) = try await collect(source, passing: 3)
        let failure = try #require(throws: Interrupted.self) { try events.get() }
        #expect(failure.events == Self.events(1...1))
        guard case .connectionLost = (failure.error as? SessionError)?.reason else { throw failure.error }
        #expect(transport.requests.count == 4)
    }

    @Test func `without retries the sequence ends with the first response`() async throws {
        let transport = MockTransport(.events(Self.events(1...2)))
        let (events, _) = try await collect(session(transport).events(for: Self.request(policy: RetryPolicy.none)))
        #expect(try events.get() == Self.events(1...2))
        #expect(transport.requests.count == 1)
    }

    @Test func `a failure that is not retriable ends the sequence`() async throws {
        let transport = MockTransport(.failure(Planned()))
        let (events, _) = try await collect(session(transport).events(for: Self.request()))
        let failure = try #require(throws: Interrupted.self) { try events.get() }
        #expect(failure.error is Planned)
    }

    @Test func `an event above the limit ends the sequence`() async throws {
        let transport = MockTransport(.events([ServerSentEvent(data: "12345"), ServerSentEvent(data: "123456")]))
        let (events, _) = try await collect(session(transport).events(for: Self.request(), maximumEventSize: 5))
        let failure = try #require(throws: Interrupted.self) { try events.get() }
        #expect(failure.events.map(\.data) == ["12345"])
        guard case .responseTooLarge = (failure.error as? SessionError)?.reason else { throw failure.error }
        #expect(transport.requests.count == 1)
    }

    // MARK: Responses

    @Test(arguments: ["text/event-stream", "text/event-stream; charset=utf-8", "Text/Event-Stream ;x=y"])
    func `an event stream is recognized by its media type`(type: String) async throws {
        let transport = MockTransport(.stream(["data: a\n\n"], type: type), .status(.noContent))
        let (events, _) = try await collect(session(transport).events(for: Self.request()), passing: 1)
        #expect(try events.get().map(\.data) == ["a"])
    }

    @Test(
        arguments: [
            .json(#"{"data": 1}"#), .status(.ok, headers: [.contentType: "text/html"]), .status(.ok),
            .text("none", status: .notFound), .status(.partialContent, headers: [.contentType: "text/event-stream"]),
        ] as [MockResponse])
    func `any other response is an error with its body`(response: MockResponse) async throws {
        let transport = MockTransport(response)
        let (events, _) = try await collect(session(transport).events(for: Self.request()))
        let failure = try #require(throws: Interrupted.self) { try events.get() }
        let rejection = try #require((failure.error as? SessionError)?.rejection)
        #expect(rejection.rejectsStatus == (rejection.status != 200))
        #expect(rejection.rejectsMediaType == (rejection.mediaType != "text/event-stream"))
        let chunks = response.steps.compactMap { if case .chunk(let data) = $0 { data } else { nil } }
        #expect(rejection.body == chunks.reduce(Data(), +))
        #expect(transport.requests.count == 1)
    }

    @Test(arguments: [404, 200], [false, true])
    func `a rejection does not wait for the end of its body, which may be lost`(
        status: Int, isLost: Bool
    ) async throws {
        let ending: MockResponse.Step =
            isLost ? .fail(TransportError(.connectionLost(.inBody(received: 3, expected: 9)))) : .hang
        let transport = MockTransport(
            MockResponse([
                .head(.init(code: status), [.contentType: "text/plain"]), .chunk(Data("cut".utf8)), ending,
            ]))
        let (events, waits) = try await collect(
            session(transport).events(for: Self.request()), passing: isLost ? 0 : 1)
        #expect(waits == (isLost ? [] : [.seconds(1)]))
        let failure = try #require(throws: Interrupted.self) { try events.get() }
        let rejection = try #require((failure.error as? SessionError)?.rejection)
        #expect(rejection.status == status)
        #expect(rejection.body == Data("cut".utf8))
        #expect(transport.requests.count == 1)
    }

    @Test func `an error contains at most 64 KiB of the body`() async throws {
        let chunk = Data(count: 60_000)
        let transport = MockTransport(MockResponse(status: .notFound, chunks: [chunk, chunk]))
        let (events, _) = try await collect(session(transport).events(for: Self.request()))
        let failure = try #require(throws: Interrupted.self) { try events.get() }
        #expect((failure.error as? SessionError)?.responseBody?.count == 65_536)
    }

    @Test func `redirects are followed for each connection from the first URL`() async throws {
        let transport = MockTransport { request in
            request.url.path == "/feed"
                ? .redirect(.movedPermanently, to: "/moved")
                : request.headers[.lastEventID] == "2" ? .status(.noContent) : .events(Self.events(1...2))
        }
        let (events, _) = try await collect(session(transport).events(for: Self.request()), passing: 1)
        #expect(try events.get() == Self.events(1...2))
        #expect(transport.requests.map(\.request.url.path) == ["/feed", "/moved", "/feed", "/moved"])
    }

    // MARK: Requests

    @Test func `a request asks for an uncached event stream`() async throws {
        let transport = MockTransport(.status(.noContent))
        _ = try await collect(session(transport).events(for: Self.request()))
        #expect(
            try transport.onlyRequest.request.headers.lines == ["Accept: text/event-stream", "Cache-Control: no-store"])
    }

    @Test func `the fields of a request are kept`() async throws {
        let transport = MockTransport(.status(.noContent))
        var request = try Self.request()
        request.headers = [.accept: "*/*", .cacheControl: "no-cache", .from: "me"]
        _ = try await collect(session(transport).events(for: request))
        #expect(try transport.onlyRequest.request.headers == request.headers)
    }

    @Test func `a source continues after the ID of the request until the server sends another one`() async throws {
        let transport = MockTransport(
            .events([ServerSentEvent(data: "a")]), .stream(["id: 9\n\n"], type: "text/event-stream"),
            .stream(["id\n\n"], type: "text/event-stream"), .status(.noContent))
        var request = try Self.request()
        request.headers[.lastEventID] = "7"
        let (events, _) = try await collect(session(transport).events(for: request), passing: 3)
        #expect(try events.get() == [ServerSentEvent(data: "a", id: "7")])
        #expect(Self.lastIDs(transport) == ["7", "7", "9", nil])
    }

    @Test func `the complete response to a POST ends the sequence`() async throws {
        let transport = MockTransport(.events(Self.events(1...2)))
        var request = try Self.request(.post)
        request.body = .string("question")
        let (events, _) = try await collect(session(transport).events(for: request))
        #expect(try events.get() == Self.events(1...2))
        #expect(try transport.onlyRequest.body == Data("question".utf8))
    }

    @Test func `a POST is repeated only if the server cannot have received it`() async throws {
        let transport = MockTransport(
            .failure(TransportError(.cannotConnect(.refused))), .events(Self.events(1...2), then: .drop)
        )
        var request = try Self.request(.post)
        request.body = .string("question")
        let (events, waits) = try await collect(session(transport).events(for: request), passing: 1)
        let failure = try #require(throws: Interrupted.self) { try events.get() }
        #expect(failure.events == Self.events(1...2))
        #expect(waits.count == 1)
        #expect(transport.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["question", "question"])
    }

    @Test func `a POST is repeated with the last ID if the policy permits it`() async throws {
        let transport = MockTransport(.events(Self.events(1...2), then: .drop), .events(Self.events(3...3)))
        let policy = RetryPolicy().with { $0.methods.insert(.post) }
        let (events, _) = try await collect(
            session(transport).events(for: Self.request(.post, policy: policy)), passing: 1)
        #expect(try events.get() == Self.events(1...3))
        #expect(Self.lastIDs(transport) == [nil, "2"])
    }

    @Test func `the retry policy of the session does not apply to the attempts`() async throws {
        let transport = MockTransport(.status(.serviceUnavailable))
        let session = session(transport) { $0.retryPolicy = RetryPolicy(limit: 5) }
        let (events, _) = try await collect(session.events(for: Self.request(policy: RetryPolicy.none)))
        #expect(throws: Interrupted.self) { try events.get() }
        #expect(transport.requests.count == 1)
    }
}
