// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct SessionManagerRequestsTests {
    @Test(arguments: [
        (404, "text/plain", "gone", true), (200, "text/html", "<p>", true), (200, "text/html", "", false),
    ])
    func `a streamed response is validated before its body is passed on`(
        status: Int, type: String, text: String, isRejected: Bool
    ) async throws {
        let manager = SessionManager(
            on: MockTransport(
                MockResponse([.head(.init(code: status), [.contentType: type]), .chunk(Data(text.utf8))])))
        let validation = ResponseValidation(mediaTypes: ["text/plain"])
        let request = try manager.request(.get, "x")
        do {
            let received = try await manager.withResponse(for: request, validating: validation) { _, body in
                try await body.collect(upTo: 100)
            }
            #expect(!isRejected && received == Data(text.utf8))
        } catch let error as SessionError {
            #expect(isRejected && error.statusCode == status && error.responseBody == Data(text.utf8))
        }
        let unchecked = try await manager.withResponse(for: request) { head, _ in head.status.code }
        #expect(unchecked == status)
    }

    /// A session whose server responds with 404 and the beginning of a body, whose rest is lost or does not come.
    private static func rejecting(isLost: Bool, _ clock: ManualClock) -> SessionManager {
        let ending: MockResponse.Step =
            isLost ? .fail(TransportError(.connectionLost(.inBody(received: 3, expected: 9)))) : .hang
        return SessionManager(on: MockTransport(MockResponse([.head(.notFound), .chunk(Data("cut".utf8)), ending]))) {
            $0.clock = clock
        }
    }

    @Test(arguments: [false, true])
    func `a response that its head rejects does not need its body`(isLost: Bool) async throws {
        let clock = ManualClock()
        let manager = Self.rejecting(isLost: isLost, clock)
        let request = Request(url: try url("http://a.example/x"))
        let result = Task { try await manager.withResponse(for: request, validating: .statusOnly) { _, _ in } }
        if !isLost { #expect(try await clock.passWaits(1) == [.seconds(1)]) }
        let error = await #expect(throws: SessionError.self) { try await result.value }
        #expect(error?.statusCode == 404)
        #expect(error?.responseBody == Data("cut".utf8))
    }

    @Test(arguments: [3, 64 << 10, 70_000])
    func `of a rejected body, the error has the first bytes, whose indices begin at 0`(count: Int) async throws {
        let (bytes, clock) = (StubServer.generatedBytes(3 + count), ManualClock())
        let manager = SessionManager(
            on: MockTransport(MockResponse([.head(.ok, [.contentType: "text/html"]), .chunk(bytes), .hang]))
        ) {
            $0.clock = clock
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    var response = try await next(request)
                    response.body = response.body.transforming { $0.dropFirst(3) }
                    return response
                }
            ]
        }
        let request = try manager.request(.get, "x")
        let result = Task {
            try await manager.withResponse(for: request, validating: ResponseValidation(mediaTypes: ["a/b"])) { _, _ in
            }
        }
        // With all bytes of the error, no more are waited for.
        if count < 64 << 10 { _ = try await clock.passWaits(1) }
        let body = try #require(await #expect(throws: SessionError.self) { try await result.value }?.responseBody)
        #expect(body == bytes[3...].prefix(64 << 10))
        #expect(body.startIndex == 0)
    }

    @Test(arguments: [false, true])
    func `a download that its head rejects does not need its body`(isLost: Bool) async throws {
        let clock = ManualClock()
        let manager = Self.rejecting(isLost: isLost, clock)
        let directory = try TemporaryDirectory()
        let request = Request(url: try url("http://a.example/x"))
        let result = Task { try await manager.download(request, to: directory.path + "/file").value }
        if !isLost { #expect(try await clock.passWaits(1) == [.seconds(1)]) }
        let error = await #expect(throws: SessionError.self) { try await result.value }
        #expect(error?.statusCode == 404)
    }

    @Test func `data is returned with head, trailers and metrics, regardless of the status`() async throws {
        let manager = SessionManager(
            on: MockTransport(
                MockResponse(
                    status: .notFound, headers: [.accept: "x"], chunks: [Data("ab".utf8), Data("c".utf8)],
                    trailers: [.from: "trailer"])))
        let response = try await manager.data(for: Request(url: url("http://a.example/x")))
        #expect(response.text == "abc")
        #expect(response.statusCode == 404)
        #expect(response.headers.lines == ["Accept: x"])
        #expect(response.head.url.absoluteString == "http://a.example/x")
        #expect(response.trailers.lines == ["From: trailer"])
        #expect(response.metrics.responseBodyBytes == 3)
        #expect(response.redirectHistory.isEmpty)
    }

    @Test func `the size of a collected body is limited by the session or the request`() async throws {
        let manager = SessionManager(on: MockTransport(.text("12345678"))) { $0.maximumBodySize = 7 }
        var request = try Request(url: url("http://a.example/"))
        let error = try await sessionError { [request] in _ = try await manager.data(for: request) }
        guard case .responseTooLarge(.body(limit: 7)) = error.reason else { throw error }
        request.options = TransferOptions().with { $0.maximumBodySize = 8 }
        #expect(try await manager.data(for: request).text == "12345678")
    }

    @Test func `a serializer's value is returned with the response, or alone`() async throws {
        let manager = SessionManager(on: MockTransport(.json("[1]", status: .created)))
        let request = try Request(url: url("http://a.example/"))
        let response = try await manager.response(for: request, as: .decodable([Int].self))
        #expect(response.value == [1])
        #expect(response.statusCode == 201)
        #expect(try await manager.value(for: request, as: .decodable([Int].self)) == [1])
    }

    @Test func `a rejected status is an error with the response's body`() async throws {
        let manager = SessionManager(on: MockTransport(.json(#"{"reason": "no"}"#, status: .forbidden)))
        let request = try Request(url: url("http://a.example/"))
        let error = try await sessionError { _ = try await manager.value(for: request, as: .json) }
        #expect(error.statusCode == 403)
        #expect(error.responseBody == Data(#"{"reason": "no"}"#.utf8))
        let rejection = try #require(error.rejection)
        #expect(try rejection.decoded(as: [String: String].self) == ["reason": "no"])
    }

    @Test func `a rejected media type is an error with the response's body`() async throws {
        let manager = SessionManager(on: MockTransport(.text("<html>")))
        let request = try Request(url: url("http://a.example/"))
        let error = try await sessionError { _ = try await manager.value(for: request, as: .json) }
        #expect(error.rejection?.rejectsMediaType == true)
        #expect(error.responseBody == Data("<html>".utf8))
    }

    @Test func `a body that cannot be decoded is a serialization error`() async throws {
        let manager = SessionManager(on: MockTransport(.json("{")))
        let request = try Request(url: url("http://a.example/"))
        let error = try await sessionError {
            _ = try await manager.value(for: request, as: .decodable([Int].self))
        }
        guard case .serialization = error else { throw error }
        #expect(error.statusCode == nil)
    }

    @Test func `an error of a custom serializer is passed on unchanged`() async throws {
        let manager = SessionManager(on: MockTransport(.text("x")))
        let request = try Request(url: url("http://a.example/"))
        await #expect(throws: Planned(number: 3)) {
            _ = try await manager.value(for: request, as: HandWritten { throw Planned(number: 3) })
        }
    }

    @Test func `the value is deserialized in the calling task`() async throws {
        let manager = SessionManager(on: MockTransport(.text("x")))
        let request = try Request(url: url("http://a.example/"))
        let made = try await Mark.$value.withValue("mine") {
            try await manager.value(for: request, as: HandWritten { Mark.value })
        }
        #expect(made == "mine")
    }

    @Test func `an error of the transport is wrapped in a SessionError`() async throws {
        let failing = MockTransport(.failure(TransportError(.cannotConnect(.refused))))
        let request = try Request(url: url("http://a.example/"))
        let error = try await sessionError { _ = try await SessionManager(on: failing).data(for: request) }
        guard case .cannotConnect(.refused) = error.reason else { throw error }
    }

    @Test func `the value of a response can be transformed`() async throws {
        let response = try await SessionManager(on: MockTransport(.text("abc"))).get("x").map(\.count)
        #expect(response.value == 3)
        #expect(response.metrics.responseBodyBytes == 3)
        #expect(response.statusCode == 200)
    }
}

/// A task-local value that shows whether code runs in the calling task.
private enum Mark {
    @TaskLocal static var value = "none"
}

/// A serializer from a closure.
struct HandWritten<Output: Sendable>: ResponseSerializer {
    let make: @Sendable () throws -> Output

    init(_ make: @escaping @Sendable () throws -> Output) {
        self.make = make
    }

    func serialize(_ head: ResponseHead, _ body: Data) throws -> Output {
        try make()
    }
}

@Suite struct StreamedResponseTests {
    @Test func `the closure starts with the head, and reads chunks as they arrive`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { _ in
            MockResponse([.head(.ok), .chunk(Data("a".utf8)), .wait(gate), .chunk(Data("b".utf8))])
        }
        let manager = SessionManager(on: transport)
        let chunks = try await manager.withResponse(for: manager.request(.get, "x")) { head, body in
            #expect(head.status == .ok)
            var chunks: [Data] = []
            for try await chunk in body {
                chunks.append(chunk)
                gate.open()
            }
            return chunks
        }
        #expect(chunks == [Data("a".utf8), Data("b".utf8)])
    }

    @Test func `after a closure that reads nothing, the next request works`() async throws {
        try await StubServer.with { server in
            server.route("/endless", .generated(1 << 40))
            server.route("/small", .text("small"))
            let manager = SessionManager(for: server)
            let status = try await manager.withResponse(for: manager.request(.get, "endless")) { head, _ in
                head.status.code
            }
            #expect(status == 200)
            #expect(try await manager.get("small").text == "small")
        }
    }

    @Test func `a closure can stop in the middle of a body`() async throws {
        try await StubServer.with { server in
            server.route("/endless", .generated(1 << 40))
            server.route("/small", .text("small"))
            let manager = SessionManager(for: server)
            let received = try await manager.withResponse(for: manager.request(.get, "endless")) { _, body in
                var received = Data()
                for try await chunk in body {
                    received.append(chunk)
                    if received.count > 1_000_000 { break }
                }
                return received
            }
            #expect(received == StubServer.generatedBytes(received.count))
            #expect(try await manager.get("small").text == "small")
            #expect(manager.tasks.isEmpty)
        }
    }

    @Test func `an error thrown by the closure is passed on unchanged`() async throws {
        let manager = SessionManager(on: MockTransport(.text("x")))
        let request = try manager.request(.get, "x")
        await #expect(throws: Planned(number: 1)) {
            try await manager.withResponse(for: request) { _, _ in throw Planned(number: 1) }
        }
    }

    @Test func `an error of reading that leaves the closure is wrapped in a SessionError`() async throws {
        let lost = TransportError(.connectionLost(.inBody(received: 1, expected: 9)))
        let transport = MockTransport { _ in MockResponse([.head(.ok), .chunk(Data("a".utf8)), .fail(lost)]) }
        let manager = SessionManager(on: transport)
        let request = try manager.request(.get, "x")
        let error = try await sessionError {
            try await manager.withResponse(for: request) { _, body in
                let error = await #expect(throws: TransportError.self) { for try await _ in body {} }
                if let error { throw error }
            }
        }
        guard case .connectionLost(.inBody(received: 1, expected: 9)) = error.reason else { throw error }
    }

    @Test func `a body can be read as lines`() async throws {
        let manager = SessionManager(on: MockTransport(.text("one\r\ntwo\nthree")))
        let lines = try await manager.withResponse(for: manager.request(.get, "x")) { _, body in
            try await body.lines.reduce(into: []) { $0.append($1) }
        }
        #expect(lines == ["one", "two", "three"])
    }

    @Test func `events are reported, including those of redirected exchanges`() async throws {
        let transport = MockTransport { request in
            request.url.path == "/b"
                ? .text("end").informational(.earlyHints, [.from: "hint"]) : .redirect(.found, to: "/b")
        }
        let manager = SessionManager(on: transport)
        let events = EventRecorder()
        let request = try manager.request(.get, "x")
        let data = try await manager.withResponse(for: request, reporting: events) { _, body in
            try await body.collect(upTo: 9)
        }
        #expect(data == Data("end".utf8))
        #expect(events.informationalHeads.map(\.headers.lines) == [["From: hint"]])
        let finished = events.events.count { if case .finished = $0 { true } else { false } }
        #expect(finished == 2)
    }
}
