// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// An interceptor that calls a closure.
struct Intercepting: Interceptor {
    typealias Body = @Sendable (Interception, (ResponseHead, ResponseBody) async throws -> Void) async throws -> Void

    private let body: Body

    init(_ body: @escaping Body) {
        self.body = body
    }

    func intercept(
        _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        try await body(interception, respond)
    }
}

@Suite struct InterceptorsTests {
    private let transport = MockTransport(.text("end"))

    /// Records when the request and the response pass through it.
    private static func noting(_ name: String, in list: EventList<String>) -> Intercepting {
        Intercepting { interception, respond in
            await list.append("\(name) \(interception.request.url.path)")
            try await interception.proceed { head, body in
                await list.append("\(name) \(head.status.code)")
                try await respond(head, body)
            }
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
                Intercepting { interception, respond in
                    var request = interception.request
                    #expect(request.headers.isEmpty)
                    request.url = try url("http://b.example/changed")
                    request.headers[.from] = "interceptor"
                    try await interception.proceed(with: request, respond)
                }
            ]
            $0.attemptInterceptors = [
                Intercepting { interception, respond in
                    #expect(interception.request.headers.lines == ["From: interceptor", "Accept: session"])
                    try await interception.proceed(respond)
                }
            ]
        }
        #expect(try await manager.get("x").text == "end")
        let sent = try transport.onlyRequest.request
        #expect(sent.url.absoluteString == "http://b.example/changed")
        #expect(sent.headers[.from] == "interceptor")
    }

    @Test func `an interceptor can modify the response, and a streamed body chunk by chunk`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { _ in
            MockResponse([.head(.ok), .chunk(Data("one ".utf8)), .wait(gate), .chunk(Data("two".utf8))])
        }
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { interception, respond in
                    #expect(interception.delivery == .streamed)
                    try await interception.proceed { head, body in
                        var head = head
                        head.status = .accepted
                        let body = body.transforming { Data(String(decoding: $0, as: UTF8.self).uppercased().utf8) }
                        try await respond(head, body)
                    }
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
                Intercepting { interception, respond in
                    try await respond(
                        ResponseHead(status: .ok, url: interception.request.url), ResponseBody(Data("kept".utf8)))
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
                Intercepting { interception, respond in
                    for _ in 0..<2 {
                        do {
                            var isDone = false
                            try await interception.proceed { head, body in
                                guard head.status.kind == .successful else { return }
                                isDone = true
                                try await respond(head, body)
                            }
                            if isDone { return }
                        } catch is Planned {}
                    }
                    try await interception.proceed(respond)
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
                Intercepting { interception, respond in
                    do {
                        try await interception.proceed(respond)
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

    @Test func `an interceptor that does not respond causes an error that names it`() async throws {
        let manager = SessionManager(on: transport) {
            $0.interceptors = [Intercepting { interception, _ in try await interception.proceed { _, _ in } }]
        }
        let error = try await sessionError { _ = try await manager.get("x") }
        guard case .noResponse("Intercepting") = error else { throw error }
    }

    @Test func `an interceptor that responds twice causes an error, and the caller reads one response`() async throws {
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { interception, respond in
                    try await interception.proceed(respond)
                    try? await interception.proceed(respond)
                }
            ]
        }
        var responses = 0
        let error = try await sessionError {
            try await manager.withResponse(for: manager.request(.get, "x")) { _, _ in responses += 1 }
        }
        guard case .secondResponse("Intercepting") = error else { throw error }
        #expect(responses == 1)
    }

    @Test func `an error of the caller's closure is not lost in an interceptor that catches all errors`() async throws {
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { interception, respond in
                    do { try await interception.proceed(respond) } catch {}
                }
            ]
        }
        await #expect(throws: Planned(number: 5)) {
            try await manager.withResponse(for: manager.request(.get, "x")) { _, _ in throw Planned(number: 5) }
        }
    }

    @Test func `cancelling ends a call that waits in an interceptor`() async throws {
        let clock = ManualClock()
        let manager = SessionManager(on: transport) {
            $0.interceptors = [
                Intercepting { interception, respond in
                    try await clock.sleep(for: .seconds(1))
                    try await interception.proceed(respond)
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
                Intercepting { interception, respond in
                    try await interception.proceed { head, body in
                        try await respond(head, body.transforming { $0 + Data("!".utf8) })
                    }
                }
            ]
        }
        let directory = try TemporaryDirectory()
        #expect(try await manager.download("x", to: "\(directory.path)/file").value.size == 4)
        #expect(try directory.read("file") == Data("end!".utf8))
        #expect(try await manager.upload("x", body: .string("body")).value.text == "end!")
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
                Intercepting { interception, respond in
                    await seen.append(interception.request[Purpose.self])
                    try await interception.proceed(respond)
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
