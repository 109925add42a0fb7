// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct MockTransportTests {
    let url: URL

    init() throws {
        url = try #require(URL(string: "http://h.example/path?q=1"))
    }

    private func text(_ transport: MockTransport, _ request: Request? = nil) async throws -> String {
        try await transport.withResponse(
            for: request ?? Request(url: url), delivery: .collected(upTo: 1000), reporting: nil
        ) { head, body in
            "\(head.status.code) " + String(decoding: try await body.collect(upTo: 1000), as: UTF8.self)
        }
    }

    @Test func `a function returns responses, and requests are recorded with their bodies`() async throws {
        let transport = MockTransport { request in .text(request.method.rawValue) }
        var request = Request(method: .put, url: url)
        request.body = .string("abc")
        #expect(try await text(transport, request) == "200 PUT")
        let received = try #require(try await transport.requests(count: 1).first)
        #expect(received.request.url == url)
        #expect(received.body == Data("abc".utf8))
    }

    @Test func `the metrics of a response have the HTTP version`() async throws {
        try await MockTransport(.text("x")).withResponse(for: Request(url: url), delivery: .streamed, reporting: nil) {
            _, body in
            for try await _ in body {}
            #expect(body.metrics?.httpVersion == .http1_1)
        }
    }

    @Test(arguments: [-1, .min] as [Int64])
    func `a request body of negative length fails, as on libcurl`(length: Int64) async throws {
        var request = Request(method: .put, url: url)
        request.body = .writer(length: length) { _ in }
        let error = await #expect(throws: TransportError.self) { try await text(MockTransport(.text("x")), request) }
        #expect(error?.reason == .invalidRequest("the length of the body, \(length), is negative."))
    }

    @Test(
        arguments: [
            (
                MockResponse.status(.notFound, headers: [.retryAfter: "5"]),
                Script.status(.notFound, headers: [.retryAfter: "5"])
            ),
            (.status(404, headers: ["Retry-After": "5"]), .status(404, headers: ["Retry-After": "5"])),
            (.status(.notFound), .status(.notFound)), (.status(404), .status(404)),
            (.json("{}", status: .created), .json("{}", status: .created)),
            (.json("{}", status: 201), .json("{}", status: 201)),
            (.text("x", status: .accepted), .text("x", status: .accepted)),
            (.redirect(.found, to: "/b"), .redirect(.found, to: "/b")),
            (.redirect(302, to: "/b"), .redirect(302, to: "/b")),
            (.data(Data([1]), headers: [.contentType: "a/b"]), .data(Data([1]), headers: [.contentType: "a/b"])),
            (.data(Data([1]), headers: ["Content-Type": "a/b"]), .data(Data([1]), headers: ["Content-Type": "a/b"])),
        ] as [(MockResponse, Script)])
    func `a mock and a server respond alike, in the same notation`(mock: MockResponse, script: Script) async throws {
        var responses: [[String]] = []
        for transport in [MockTransport(mock), MockTransport(script: script)] {
            let lines = try await transport.withResponse(
                for: Request(url: url), delivery: .collected(upTo: 100), reporting: nil
            ) { head, body in
                let fields = head.headers.filter { $0.name != .contentLength }.map(\.description)
                return ["\(head.status.code)", String(decoding: try await body.collect(upTo: 100), as: UTF8.self)]
                    + fields
            }
            responses.append(lines)
        }
        #expect(responses[0] == responses[1])
    }

    @Test func `responses are returned in turn, and the last one is repeated`() async throws {
        let transport = MockTransport(.status(.serviceUnavailable), .text("a"), .json("{}"))
        var answers: [String] = []
        for _ in 1...4 { answers.append(try await text(transport)) }
        #expect(answers == ["503 ", "200 a", "200 {}", "200 {}"])
    }

    @Test func `pauses between chunks use the clock`() async throws {
        let clock = ManualClock()
        let transport = MockTransport(clock: clock) { _ in
            MockResponse([
                .head(.ok), .chunk(Data("a".utf8)), .pause(.seconds(60)), .chunk(Data("b".utf8)),
            ])
        }
        let events = EventRecorder()
        let url = url
        async let body = transport.withResponse(for: Request(url: url), delivery: .streamed, reporting: events) {
            _, body in
            try await body.collect(upTo: 10)
        }
        try await clock.sleepers(count: 1)
        _ = try await events.first {
            if case .downloadProgress(let progress) = $0 { progress.completedBytes == 1 } else { false }
        }
        clock.advance(by: .seconds(60))
        #expect(try await body == Data("ab".utf8))
        #expect(events.metrics?.responseBodyBytes == 2)
    }

    @Test func `a response after a limit is none, also if the clock passes both in one step`() async throws {
        for _ in 0..<100 {
            let clock = ManualClock()
            var request = Request(url: url)
            request.options = TransferOptions()
            request.options?.timeouts.total = .seconds(5)
            let transport = MockTransport(clock: clock) { _ in
                MockResponse([.pause(.seconds(10)), .head(.ok)])
            }
            let task = Task { [request] in try await text(transport, request) }
            try await clock.sleepers(count: 1)
            clock.advance(by: .seconds(10))
            await #expect { _ = try await task.value } throws: { error in
                (error as? TransportError)?.reason == .timedOut(.responseHead)
            }
        }
    }

    @Test func `an error is rethrown unchanged`() async throws {
        struct Mishap: Error {}
        await #expect(throws: Mishap.self) { try await text(MockTransport(.failure(Mishap()))) }
        await #expect(throws: Mishap.self) { try await text(MockTransport { _ in throw Mishap() }) }
        await #expect(throws: Mishap.self) {
            try await text(MockTransport(MockResponse([.head(.ok), .chunk(Data([1])), .fail(Mishap())])))
        }
    }

    @Test func `a body that has failed fails again, whatever steps follow`() async throws {
        let clock = ManualClock()
        var request = Request(url: url)
        request.options = TransferOptions()
        request.options?.timeouts.idle = .seconds(10)
        let transport = MockTransport(clock: clock) { _ in
            MockResponse([.head(.ok), .chunk(Data([1])), .pause(.seconds(60)), .chunk(Data([2]))])
        }
        let response = try await transport.open(request, delivery: .streamed, reporting: nil)
        var chunks = response.body.makeAsyncIterator()
        #expect(try await chunks.next() == Data([1]))
        async let passing: Void = {
            try await clock.sleepers(count: 1)
            clock.advance(by: .seconds(10))
        }()
        for _ in 0..<2 {
            await #expect { _ = try await chunks.next() } throws: { error in
                (error as? TransportError)?.reason == .timedOut(.responseBody)
            }
        }
        #expect(response.body.ending == nil)
        try await passing
        await response.close()
    }

    @Test func `the time in which a body is sent is not one without activity`() async throws {
        let clock = ManualClock()
        var request = Request(method: .put, url: url)
        request.body = .writer { writer in
            try await clock.sleep(for: .seconds(8))
            try await writer.write(Data([1]))
        }
        request.options = TransferOptions()
        request.options?.timeouts.idle = .seconds(10)
        request.options?.timeouts.total = .seconds(60)
        let transport = MockTransport(clock: clock) { _ in .hang }
        let task = Task { [request] in try await text(transport, request) }
        for wait in [Duration.seconds(8), .seconds(10)] {
            #expect(try await clock.sleepers(count: 1) == [wait])
            clock.advance(by: wait)
        }
        await #expect { _ = try await task.value } throws: { error in
            (error as? TransportError)?.reason == .timedOut(.responseHead)
        }
    }

    @Test func `a response without a head hangs until the transport is shut down`() async throws {
        let transport = MockTransport(MockResponse([]))
        let url = url
        let task = Task {
            try await transport.withResponse(for: Request(url: url), delivery: .streamed, reporting: nil) { head, _ in
                head
            }
        }
        try await transport.requests(count: 1)
        await transport.shutdown()
        await #expect { _ = try await task.value } throws: { error in
            (error as? TransportError)?.reason == .shutDown
        }
    }

    @Test func `exchanges end before those that clean up`() async throws {
        let transport = MockTransport { _ in .hang }
        func isShutDown(_ task: Task<String, any Error>) async -> Bool {
            guard case .failure(let error) = await task.result else { return false }
            return (error as? TransportError)?.reason == .shutDown
        }
        func send(cleaningUp cleansUp: Bool) -> Task<String, any Error> {
            var request = Request(url: url)
            request.cleansUp = cleansUp
            return Task { [request] in try await text(transport, request) }
        }
        let exchange = send(cleaningUp: false)
        let cleanup = send(cleaningUp: true)
        try await transport.requests(count: 2)
        await transport.features.endExchanges?()
        #expect(await isShutDown(exchange))
        #expect(await isShutDown(send(cleaningUp: false)))
        let later = send(cleaningUp: true)
        #expect(try await transport.requests(count: 3).allSatisfy { $0.number < 3 || $0.request.cleansUp })
        await transport.shutdown()
        await transport.features.endExchanges?()
        #expect(await isShutDown(cleanup))
        #expect(await isShutDown(later))
        #expect(await isShutDown(send(cleaningUp: true)))
    }

    @Test func `the length beside a transfer coding is not that of the content`() async throws {
        let reply = Reply(headers: ["Content-Length": "9"], body: .string("abc"), framing: .chunked)
        for transport in [
            MockTransport(script: Script([.reply(reply)])),
            MockTransport(
                MockResponse([
                    .head(.ok, [.contentLength: "9", .transferEncoding: "chunked"]), .chunk(Data("abc".utf8)),
                ])),
        ] {
            let events = EventRecorder()
            let request = Request(url: url)
            let text = try await transport.withResponse(for: request, delivery: .streamed, reporting: events) {
                head, body in
                #expect(head.headers[.contentLength] == nil)
                return String(decoding: try await body.collect(upTo: 10), as: UTF8.self)
            }
            #expect(text == "abc")
            let totals = events.events.compactMap {
                if case .downloadProgress(let value) = $0 { value.totalBytes } else { nil }
            }
            #expect(totals == [])
        }
    }

    /// The bytes "ab" of a body, between which a gate is passed.
    private struct GatedBody: AsyncSequence, Sendable {
        let gate: ScriptGate

        func makeAsyncIterator() -> Iterator { Iterator(gate: gate) }

        struct Iterator: AsyncIteratorProtocol {
            let gate: ScriptGate
            var rest = ["a", "b"]

            mutating func next() async throws -> Data? {
                if rest == ["b"] { try await gate.wait() }
                return rest.isEmpty ? nil : Data(rest.removeFirst().utf8)
            }
        }
    }

    @Test(arguments: [(true, "ab"), (false, nil)] as [(Bool, String?)])
    func `a collected response waits for the rest of a body that can be sent again, and ends any other`(
        isReplayable: Bool, expected: String?
    ) async throws {
        let (gate, received) = (try ScriptGate(), Lock(String?.none))
        let transport = MockTransport(
            receiving: { _ in .text("x") },
            reception: { _ in
                .answeredMeanwhile(after: 1) { body in received.withLock { $0 = String(decoding: body, as: UTF8.self) }
                }
            }, clock: ManualClock())
        var request = Request(method: .put, url: url)
        request.body = .stream(GatedBody(gate: gate), length: 2, isReplayable: isReplayable)
        let task = Task { [request] in try await text(transport, request) }
        #expect(try await transport.requests(count: 1).first?.body == Data("a".utf8))
        if isReplayable { gate.open() }
        #expect(try await task.value == "200 x")
        let body = received.withLock { $0 }
        #expect(body == expected)
    }

    @Test func `a streamed response is read while the body is sent, whose source ends with the exchange`() async throws
    {
        let (gate, received) = (try ScriptGate(), Lock(false))
        let transport = MockTransport(
            receiving: { _ in .text("x") },
            reception: { _ in .answeredMeanwhile(after: 1) { _ in received.withLock { $0 = true } } },
            clock: ManualClock())
        var request = Request(method: .put, url: url)
        request.body = .stream(GatedBody(gate: gate), isReplayable: true)
        let text = try await transport.withResponse(for: request, delivery: .streamed) { _, body in
            String(decoding: try await body.collect(upTo: 10), as: UTF8.self)
        }
        #expect(text == "x")
        gate.open()
        let isReceived = received.withLock { $0 }
        #expect(!isReceived)
    }

    /// An error of a script.
    private struct ScriptError: Error {}

    @Test(
        arguments: [
            (404, TransportError(.connectionLost(.inBody(received: 1, expected: 2))), true), (404, ScriptError(), true),
            (404, CancellationError(), false), (200, ScriptError(), false),
        ] as [(Int, any Error, Bool)])
    func `a collected response that may be discarded has its head although its body fails`(
        status: Int, error: any Error, hasHead: Bool
    ) async throws {
        let transport = MockTransport(
            MockResponse([.head(.init(code: status), [.contentLength: "2"]), .chunk(Data("a".utf8)), .fail(error)]))
        let open = { [url] in
            try await transport.open(Request(url: url), delivery: .collected(upTo: 10), reporting: nil)
        }
        guard hasHead else {
            await #expect { _ = try await open() } throws: { type(of: $0) == type(of: error) }
            return
        }
        let response = try await open()
        #expect(response.head.status.code == status)
        await #expect { _ = try await response.body.collect(upTo: 10) } throws: { type(of: $0) == type(of: error) }
        await response.close()
    }

    @Test(arguments: [true, false])
    func `what a collected response had before its body failed is read once before the failure`(
        isOpen: Bool
    ) async throws {
        let transport = MockTransport(
            MockResponse([
                .head(.notFound), .chunk(Data("ab".utf8)), .chunk(Data("c".utf8)), .fail(ScriptError()),
            ]))
        let events = EventRecorder()
        let body = try await transport.open(Request(url: url), delivery: .collected(upTo: 10), reporting: events).body
        if isOpen {
            #expect(try await body.next() == Data("abc".utf8))
            for _ in 0..<2 { await #expect(throws: ScriptError.self) { try await body.next() } }
        }
        await body.close()
        await #expect(throws: (any Error).self) { try await body.next() }
        let received = events.events.compactMap { event -> Int64? in
            if case .downloadProgress(let progress) = event { progress.completedBytes } else { nil }
        }
        #expect(received == [2, 3])
    }

    /// An error that opens a gate when nothing holds it any more.
    private final class HeldError: Error {
        private let gate: ScriptGate

        init(opening gate: ScriptGate) { self.gate = gate }

        deinit { gate.open() }
    }

    @Test(.timeLimit(.minutes(1)))
    func `what a collected response had before its body failed is read also if the request fails later`() async throws {
        let (gate, released) = (try ScriptGate(), try ScriptGate())
        let transport = MockTransport(
            receiving: { _ in MockResponse([.head(.notFound), .chunk(Data("ab".utf8)), .fail(ScriptError())]) },
            reception: { _ in .answeredMeanwhile(after: 1) { _ in } }, clock: ManualClock())
        var request = Request(method: .put, url: url)
        request.body = .writer { writer in
            try await writer.write(Data([1]))
            try await gate.wait()
            throw HeldError(opening: released)
        }
        let body = try await transport.open(request, delivery: .collected(upTo: 10), reporting: nil).body
        gate.open()
        // The exchange has failed before, and does not keep the error.
        try await released.wait()
        #expect(try await body.next() == Data("ab".utf8))
        await #expect(throws: ScriptError.self) { try await body.next() }
        await body.close()
    }

    @Test(arguments: [[20], [5, 20], [5, 6, 4]])
    func `a body above the limit fails a response that may be discarded, as it fails any other`(
        sizes: [Int]
    ) async throws {
        for status in [200, 301, 404] {
            let transport = MockTransport(
                MockResponse(status: .init(code: status), chunks: sizes.map { Data(count: $0) }))
            var failures: [TransportError?] = []
            do {
                let body = try await transport.open(
                    Request(url: url), delivery: .collected(upTo: 10), reporting: nil
                ).body
                #expect(status != 200)
                for _ in 0..<2 {
                    failures.append(await #expect(throws: TransportError.self) { try await body.collect(upTo: 10) })
                }
            } catch let error as TransportError {
                #expect(status == 200)
                failures = [error]
            }
            for failure in failures { #expect(failure?.reason == .responseTooLarge(.body(limit: 10))) }
        }
    }

    @Test func `a pause as long as a limit reaches it`() async throws {
        let clock = ManualClock()
        let transport = MockTransport(clock: clock) { _ in MockResponse([.pause(.seconds(10)), .head(.ok)]) }
        var request = Request(url: url)
        request.options = TransferOptions()
        request.options?.timeouts.idle = .seconds(10)
        // In which order the two sleepers wake up is not determined.
        for _ in 0..<50 {
            let task = Task { [request] in try await text(transport, request) }
            try await clock.sleepers(count: 1)
            clock.advance(by: .seconds(10))
            let error = await #expect(throws: TransportError.self) { _ = try await task.value }
            #expect(error?.reason == .timedOut(.responseHead))
        }
    }

    @Test func `an exchange fails with the source of a body that is sent meanwhile`() async throws {
        struct Failure: Error {}
        let transport = MockTransport(
            receiving: { _ in .hang }, reception: { _ in .answeredMeanwhile(after: 1) { _ in } }, clock: ManualClock())
        var request = Request(method: .put, url: url)
        request.body = .writer { writer in
            try await writer.write(Data([1]))
            throw Failure()
        }
        let sent = request
        let error = await #expect(throws: TransportError.self) { try await text(transport, sent) }
        guard case .requestBody(.source(is Failure))? = error?.reason else {
            Issue.record("\(String(describing: error))")
            return
        }
    }
}
