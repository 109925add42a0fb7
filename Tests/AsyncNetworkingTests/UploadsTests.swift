// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct UploadsTests {
    @Test func `a body is posted, and the response is the value`() async throws {
        let transport = MockTransport(.text("thanks", status: .accepted))
        let response = try await SessionManager(on: transport).upload("up", body: .string("abc")).value
        #expect(response.statusCode == 202)
        #expect(response.text == "thanks")
        let received = try transport.onlyRequest
        #expect(received.request.method == .post)
        #expect(received.body == Data("abc".utf8))
    }

    @Test func `method, fields and options of the request are kept`() async throws {
        let transport = MockTransport(.text("thanks"))
        let manager = SessionManager(on: transport)
        _ = try await manager.upload("up", body: .string("a"), method: .put, headers: [.contentType: "text/own"]).value
        let request = try Request(
            method: .patch, url: url("http://b.example/"), headers: [.from: "me"], body: .string("b"))
        _ = try await manager.upload(request).value
        #expect(transport.requests.map(\.request.method) == [.put, .patch])
        #expect(transport.requests.map(\.request.headers.lines) == [["Content-Type: text/own"], ["From: me"]])
        #expect(transport.requests.map(\.body) == [Data("a".utf8), Data("b".utf8)])
    }

    @Test func `an error status is an error with the response's body, unless validation is disabled`() async throws {
        let manager = SessionManager(on: MockTransport(.text("no", status: .forbidden)))
        let error = try await sessionError { _ = try await manager.upload("up", body: .string("a")).value }
        #expect(error.statusCode == 403)
        #expect(error.responseBody == Data("no".utf8))
        let response = try await manager.upload("up", body: .string("a"), as: .data.unvalidated).value
        #expect(response.statusCode == 403)
    }

    @Test func `a serializer creates the value`() async throws {
        let manager = SessionManager(on: MockTransport(.json(#"{"a": 1}"#)))
        let task = manager.upload("up", body: .string("x"), as: .decodable([String: Int].self))
        #expect(try await task.value.value == ["a": 1])
    }

    @Test func `a value that cannot be encoded fails the task, and nothing is sent`() async throws {
        let transport = MockTransport(.text("x"))
        let task = SessionManager(on: transport).upload("up", body: .json(Double.nan))
        let error = try await sessionError { _ = try await task.value }
        guard case .serialization(.parameters) = error else { throw error }
        #expect(transport.requests.isEmpty)
    }

    @Test func `a file is received completely, with progress up to its size`() async throws {
        let directory = try TemporaryDirectory()
        let bytes = StubServer.generatedBytes(3_000_000)
        let path = try directory.write(bytes, to: "body")
        try await StubServer.with { server in
            server.route("/up", .status(201))
            let task = SessionManager(for: server).upload("up", body: .file(path), method: .put)
            let progress = await task.progress.reduce(into: []) { $0.append($1) }
            #expect(progress.last?.counts == TransferProgress(completedBytes: 3_000_000, totalBytes: 3_000_000))
            #expect(zip(progress, progress.dropFirst()).allSatisfy { $0.completedBytes <= $1.completedBytes })
            #expect(try await task.value.statusCode == 201)
            let received = try await server.requests(count: 1)[0]
            #expect(received.method == "PUT")
            #expect(received.headers["Content-Length"] == "3000000")
            #expect(received.bodyLength == 3_000_000)
            #expect(received.body == bytes.prefix(1 << 20))
        }
    }

    @Test func `a stream of unknown length is sent chunked, with progress without a total`() async throws {
        try await StubServer.with { server in
            server.route("/up", .status(201))
            let chunks = AsyncStreamOf([Data("abc".utf8), Data("de".utf8)])
            let task = SessionManager(for: server).upload("up", body: .stream(chunks))
            _ = try await task.value
            let last = await task.progress.first { _ in true }
            #expect(last?.counts == TransferProgress(completedBytes: 5, totalBytes: nil))
            let received = try await server.requests(count: 1)[0]
            #expect(received.text == "abcde")
            #expect(received.headers["Transfer-Encoding"] == "chunked")
        }
    }

    @Test func `a missing file fails the request, and nothing is sent`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .status(201) }
            let directory = try TemporaryDirectory()
            let path = try directory.write(Data("abc".utf8), to: "body")
            let body = RequestBody.file(path)
            try FileManager.default.removeItem(atPath: path)
            let task = SessionManager(for: server).upload("up", body: body)
            let error = try await sessionError { _ = try await task.value }
            guard case .requestBody(.file(path, _)) = error.reason else { throw error }
            #expect(error.description.contains(path))
            #expect(server.activity.requests.isEmpty)
            #expect(await task.progress.first { _ in true } == nil)
        }
    }

    @Test func `a file that becomes shorter while it is sent fails the request`() async throws {
        var options = StubServer.Options()
        options.receiveBufferSize = 4096
        try await StubServer.with(options) { server in
            let gate = try ScriptGate()
            server.route("/up", Script([.wait(gate), .readBody(), .reply(Reply(status: 201))], readsBodyFirst: false))
            let directory = try TemporaryDirectory()
            let size = 64 << 20
            let path = try directory.write(Data(count: size), to: "body")
            let task = SessionManager(for: server).upload("up", body: .file(path))
            try await server.requests(count: 1)
            try unsafe #require(truncate(path, 1 << 20) == 0)
            gate.open()
            let error = try await sessionError { _ = try await task.value }
            guard case .requestBody(.tooShort(Int64(size), let produced)) = error.reason else { throw error }
            #expect(produced < Int64(size))
        }
    }

    @Test func `a failure of the body's source is part of the error`() async throws {
        struct Failing: AsyncSequence, AsyncIteratorProtocol, Sendable {
            func makeAsyncIterator() -> Failing { self }
            mutating func next() async throws -> Data? { throw Planned(number: 5) }
        }
        let manager = SessionManager(on: MockTransport(.text("x")))
        let error = try await sessionError { _ = try await manager.upload("up", body: .stream(Failing())).value }
        guard case .requestBody(.source(let source)) = error.reason else { throw error }
        #expect(source as? Planned == Planned(number: 5))
    }

    @Test func `after a redirect, the body is sent again from its start`() async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(StubServer.generatedBytes(500_000), to: "body")
        try await StubServer.with { server in
            server.route("/old", .redirect(308, to: "/new"))
            server.route("/new", .status(201))
            let task = SessionManager(for: server).upload("old", body: .file(path), method: .put)
            let progress = await task.progress.reduce(into: []) { $0.append($1) }
            let response = try await task.value
            #expect(response.statusCode == 201)
            let requests = server.activity.requests
            #expect(requests.map(\.method) == ["PUT", "PUT"])
            #expect(requests.map(\.bodyLength) == [500_000, 500_000])
            #expect(progress.last?.counts == TransferProgress(completedBytes: 500_000, totalBytes: 500_000))
        }
    }

    @Test(arguments: [308, 307])
    func `a body that a closure writes is not written again after a redirect`(status: Int) async throws {
        try await StubServer.with { server in
            server.route("/old", .redirect(status, to: "/new"))
            let calls = EventList<Int>()
            let manager = SessionManager(for: server)
            let error = try await sessionError {
                try await manager.post(
                    "old",
                    body: .writer { writer in
                        await calls.append(1)
                        try await writer.write("once")
                    })
            }
            #expect(error.redirectFailure == .bodyNotReplayable)
            #expect(await calls.values == [1])
            #expect(server.activity.requests.map(\.text) == ["once"])
        }
    }

    @MainActor @Test func `a closure from the main actor can write the actor's state`() async throws {
        let transport = MockTransport(.status(.created))
        let list = NoteList()
        let task = SessionManager(on: transport).upload(
            "up",
            body: .writer { [list] writer in
                for note in await list.notes { try await writer.write(note) }
            })
        #expect(try await task.value.statusCode == 201)
        #expect(try transport.onlyRequest.body == Data("ab".utf8))
    }

    @MainActor private final class NoteList {
        var notes = ["a", "b"]
    }

    @Test func `an interceptor can read a body and write another`() async throws {
        struct Shouting: Interceptor {
            func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
                var request = request
                let quiet = request.body
                request.body = .writer(length: quiet.length) { output in
                    try await quiet.write(
                        to: RequestBodyWriter { chunk in
                            try await output.write(String(decoding: chunk, as: UTF8.self).uppercased())
                        })
                }
                return try await next(request)
            }
        }
        let transport = MockTransport(.text("ok"))
        let manager = SessionManager(on: transport) { $0.interceptors = [Shouting()] }
        try await manager.post("p", body: .string("hello"))
        #expect(try transport.onlyRequest.body == Data("HELLO".utf8))
    }

    @Test func `a server can refuse a large body before it is sent`() async throws {
        try await StubServer.with { server in
            server.route("/up", .refusingBody(413))
            let manager = SessionManager(for: server) { $0.expectContinueTimeout = .seconds(60) }
            let body = RequestBody.bytes(Data(count: 50_000_000))
            let task = manager.upload("up", body: body, method: .put, as: .data.unvalidated)
            #expect(try await task.value.statusCode == 413)
            #expect(task.status.uploadProgress?.completedBytes ?? 0 == 0)
            let request = try #require(server.activity.requests.first)
            #expect(request.headers["Expect"] == "100-continue")
            #expect(request.bodyLength == 0)
        }
    }

    @Test(arguments: [400, 401, 403, 413, 417, 429, 500])
    func `the error of a refusal before the body names the status, and contains the reason`(status: Int) async throws {
        try await StubServer.with { server in
            let reply = Reply(status: status, headers: ["Connection": "close"], body: .string("The reason."))
            server.route("/up", Script([.reply(reply), .end(.close)], readsBodyFirst: false, expectation: .withhold))
            let manager = SessionManager(for: server) { $0.expectContinueTimeout = .seconds(60) }
            let body = RequestBody.bytes(Data(count: 5_000_000))
            let error = try await sessionError { _ = try await manager.upload("up", body: body, method: .put).value }
            #expect(error.statusCode == status)
            #expect(error.responseBody == Data("The reason.".utf8))
            #expect("\(error)".contains("was rejected: status \(status) "))
            #expect("\(error)".contains("“The reason.”"))
            // Once more without the expectation that 417 refuses.
            let expectations = server.activity.requests.map { $0.headers["Expect"] }
            #expect(expectations == (status == 417 ? ["100-continue", nil] : ["100-continue"]))
        }
    }

    @Test func `after 100 Continue the body is sent, and the interim response is an event`() async throws {
        try await StubServer.with { server in
            server.route("/up", .status(201))
            let manager = SessionManager(for: server) { $0.expectContinueTimeout = .seconds(60) }
            let task = manager.upload("up", body: .bytes(Data(count: 300_000)), method: .put)
            let response = try await task.value
            #expect(response.statusCode == 201)
            #expect(await task.allEvents.contains("informational 100"))
            #expect(server.activity.requests.first?.bodyLength == 300_000)
        }
    }

    @Test func `progress follows the server's pace, except for buffered bytes`() async throws {
        var options = StubServer.Options()
        options.receiveBufferSize = 4096
        try await StubServer.with(options) { server in
            let gate = try ScriptGate()
            server.route("/up", Script([.wait(gate), .readBody(), .reply(Reply(status: 201))], readsBodyFirst: false))
            // Four times the largest buffer of a socket; see tcp_wmem in tcp(7).
            let size: Int64 = 16 << 20
            let task = SessionManager(for: server).upload("up", body: .bytes(Data(count: Int(size))))
            try await server.requests(count: 1)
            for await progress in task.progress where progress.completedBytes > 0 { break }
            // The server reads nothing: the bytes counted as sent are in buffers.
            for _ in 0..<1000 { await Task.yield() }
            #expect(task.status.uploadProgress?.completedBytes ?? 0 < size / 2)
            gate.open()
            _ = try await task.value
            #expect(task.status.uploadProgress?.counts == TransferProgress(completedBytes: size, totalBytes: size))
        }
    }

    @Test func `a suspended upload stops reading its body`() async throws {
        /// Three chunks; the second one waits for a gate.
        struct Gated: AsyncSequence, AsyncIteratorProtocol, Sendable {
            let gate: AsyncStream<Void>
            let reads: EventList<Int>
            var count = 0

            func makeAsyncIterator() -> Gated { self }

            mutating func next() async throws -> Data? {
                count += 1
                await reads.append(count)
                if count == 2 { for await _ in gate {} }
                return count <= 3 ? Data("\(count)".utf8) : nil
            }
        }
        let reads = EventList<Int>()
        let (gate, opener) = AsyncStream.makeStream(of: Void.self)
        let transport = MockTransport(.text("x"))
        let body = RequestBody.stream(Gated(gate: gate, reads: reads))
        let task = SessionManager(on: transport).upload("up", body: body)
        try await eventually { await reads.values == [1, 2] }
        task.suspend()
        opener.finish()
        // Lets other tasks run.
        for _ in 0..<100 { await Task.yield() }
        #expect(await reads.values == [1, 2])
        task.resume()
        #expect(try await task.value.text == "x")
        #expect(try transport.onlyRequest.body == Data("123".utf8))
    }

    @Test func `a form is sent with its files, with progress that has a total`() async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(StubServer.generatedBytes(300_000), to: "portrait.png")
        try await StubServer.with { server in
            server.route("/up", .status(201))
            var form = MultipartFormData()
            form.append("Ada", name: "user")
            try form.append(file: path, name: "portrait")
            let task = SessionManager(for: server).upload("up", body: .form(form))
            #expect(try await task.value.statusCode == 201)
            let length = try #require(task.request?.body.length)
            #expect(length > 300_000)
            #expect(task.status.uploadProgress?.counts == TransferProgress(completedBytes: length, totalBytes: length))
            #expect(server.activity.requests.first?.bodyLength == length)
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct SessionTaskLifetimeTests {
    private let transport = MockTransport(.hang)

    @Test func `cancelling it ends the transfer`() async throws {
        let manager = SessionManager(on: transport)
        let task = manager.upload("up", body: .string("a"))
        try await transport.requests(count: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        #expect(manager.tasks.isEmpty)
        task.cancel()
    }

    @Test func `cancelling immediately after the start is effective`() async throws {
        let manager = SessionManager(on: transport)
        let task = manager.upload("up", body: .string("a"))
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        #expect(manager.tasks.isEmpty)
    }

    @Test func `cancelling a Swift task that awaits the value ends the transfer`() async throws {
        let manager = SessionManager(on: transport)
        let task = manager.upload("up", body: .string("a"))
        let waiter = Task { try await task.value }
        try await transport.requests(count: 1)
        waiter.cancel()
        await #expect(throws: CancellationError.self) { _ = try await waiter.value }
        await #expect(throws: CancellationError.self) { _ = try await task.value }
    }

    @Test func `cancelling a Swift task that reads the progress does not end the transfer`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport(MockResponse([.wait(gate), .head(.ok)]))
        let task = SessionManager(on: transport).upload("up", body: .string("a"))
        let reader = Task { await task.progress.reduce(into: []) { $0.append($1) } }
        try await transport.requests(count: 1)
        reader.cancel()
        _ = await reader.value
        gate.open()
        #expect(try await task.value.statusCode == 200)
    }

    @Test func `the value can be awaited more than once`() async throws {
        let task = SessionManager(on: MockTransport(.text("x"))).upload("up", body: .string("a"))
        async let first = task.value
        async let second = task.value
        #expect(try await [first.text, second.text, task.value.text] == ["x", "x", "x"])
    }

    @Test func `releasing the task or the manager does not stop the transfer`() async throws {
        let gate = try ScriptGate()
        let directory = try TemporaryDirectory()
        try await StubServer.with { server in
            server.route("/", Script([.wait(gate), .reply(Reply(body: .string("done")))]))
            do {
                let manager = SessionManager(for: server)
                _ = manager.download("/", to: "\(directory.path)/file")
            }
            try await server.requests(count: 1)
            gate.open()
            try await eventually { try directory.contents == ["file"] }
            #expect(try directory.read("file") == Data("done".utf8))
        }
    }
}
