// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct ResumableUploadsTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Retries without waits.
    private static let eager = RetryPolicy(limit: 3).with { ($0.backoff, $0.budget) = (Backoff(base: .zero), nil) }

    private static var options: StubServer.Options {
        var options = StubServer.Options()
        options.maximumRecordedBody = 8 << 20
        options.receiveBufferSize = 4096
        return options
    }

    private static func manager(_ server: StubServer) -> SessionManager {
        SessionManager(for: server) { $0.retryPolicy = eager }
    }

    @Test func `the events of an upload in many parts are those of the last parts`() async throws {
        let session = SessionManager(baseURL: URL(string: "https://a.example/")) {
            $0.transport = MockTransport { request in
                guard request.method == .patch else { return .status(.created, headers: [.location: "/u/1"]) }
                let start = request.headers[.uploadOffset].flatMap { Int($0) } ?? 0
                return .status(.noContent, headers: [.uploadOffset: "\(start + 1)"])
            }
        }
        let options = UploadOptions.resumable.with { ($0.uploadProtocol, $0.partSize) = (.tus, 1) }
        let task = session.upload("up", body: .bytes(Data(repeating: 7, count: 1_000)), options: options)
        _ = try await task.value
        let events = await task.events.reduce(into: []) { $0.append($1) }
        let parts = events.compactMap { event in
            if case .exchange(_, .started(let request)) = event { request.headers[.uploadOffset] } else { nil }
        }
        #expect(parts.count <= 200)
        #expect(parts.suffix(2) == ["998", "999"])
        #expect(task.status.uploadProgress?.completedBytes == 1_000)
        guard case .created? = events.first, case .ended? = events.last else { throw CancellationError() }
    }

    @Test func `an upload that may be complete is not created again, even if its requests are sent under another path`()
        async throws
    {
        let transport = MockTransport { request in
            switch request.method {
            case .post: .status(.created, headers: [.location: "/u/1"])
            case .patch: .failure(TransportError(.connectionLost(.beforeResponse)))
            default: .status(.notFound)
            }
        }
        let session = SessionManager(on: transport) {
            $0.retryPolicy = Self.eager
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    var components = try #require(URLComponents(url: request.url, resolvingAgainstBaseURL: true))
                    components.path = "/gate" + components.path
                    return try await next(
                        Request(
                            method: request.method, url: try #require(components.url), headers: request.headers,
                            body: request.body))
                }
            ]
        }
        let options = UploadOptions.resumable.with { ($0.uploadProtocol, $0.partSize) = (.tus, 2) }
        let upload = session.upload("up", body: .string("ab"), options: options)
        guard case .upload(.outcomeUnknown) = try await sessionError({ _ = try await upload.value }) else {
            throw Planned()
        }
        #expect(transport.requests.count { $0.request.method == .post } == 1)
    }

    @Test(arguments: [UploadProtocol.tus, .ietf])
    func `an upload goes on if a session that refreshes the token cannot reach its server`(
        uploadProtocol: UploadProtocol
    ) async throws {
        let failures = Lock(1)
        let base = try url("https://a.example/")
        let authenticator = Authenticator(for: [base]) { _ in
            let isBroken = failures.withLock {
                $0 -= 1; return $0 >= 0
            }
            if isBroken { throw SessionError.transport(TransportError(.connectionLost(.beforeResponse))) }
            return Authenticator.Token("t")
        }
        let session = SessionManager(baseURL: base) {
            $0.authentication.authenticators = [authenticator]
            $0.retryPolicy = Self.eager
            $0.transport = MockTransport { request in
                guard uploadProtocol == .tus else { return .status(.noContent) }
                return request.method == .patch
                    ? .status(.noContent, headers: [.uploadOffset: "3"])
                    : .status(.created, headers: [.location: "/u/1"])
            }
        }
        let options = UploadOptions.resumable.with { $0.uploadProtocol = uploadProtocol }
        #expect(try await session.upload("up", body: .string("abc"), options: options).value.statusCode == 204)
    }

    /// A server from which an upload can be removed, and that does not accept its content, by default not before 20 s.
    /// It redirects a GET when a gate is opened.
    private func busyServer(
        _ clock: ManualClock = ManualClock(), isSilent: Bool = false, redirecting gate: ScriptGate? = nil,
        rejection: MockResponse = .status(.tooManyRequests, headers: [.retryAfter: "20"])
    ) -> MockTransport {
        MockTransport(clock: clock) { request in
            switch request.method {
            case .options:
                .status(
                    .noContent,
                    headers: try HTTPFields(validating: [("Tus-Resumable", "1.0.0"), ("Tus-Extension", "termination")]))
            case .post: .status(.created, headers: [.location: "/u/1"])
            case .delete: isSilent ? .hang : .status(.noContent)
            case .get: MockResponse((gate.map { [.wait($0)] } ?? []) + MockResponse.redirect(.found, to: "/b").steps)
            default: rejection
            }
        }
    }

    @Test func `an upload is removed from the server although that has to wait while its session ends`() async throws {
        let clock = ManualClock()
        let transport = busyServer(clock)
        let session = SessionManager(on: transport) {
            $0.clock = clock
            $0.attemptInterceptors = [RequestRateLimit(1, per: .seconds(2), burst: 3)]
        }
        let task = session.upload("up", body: .string("abc"), options: .resumable)
        try await transport.requests(count: 3)
        try await eventually { clock.sleepers == [.seconds(20)] }
        async let end: Void = session.shutdown(draining: .zero)
        try await eventually { clock.sleepers == [.seconds(2), .seconds(5)] }
        clock.advance(by: .seconds(2))
        await end
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(transport.requests.map(\.request.method) == [.options, .post, .patch, .delete])
    }

    @Test(arguments: [false, true])
    func `an upload is removed from the server when its session ends, for at most 5 s`(isSilent: Bool) async throws {
        let clock = ManualClock()
        let transport = busyServer(clock, isSilent: isSilent)
        let session = SessionManager(on: transport) { $0.clock = clock }
        let task = session.upload("up", body: .string("abc"), options: .resumable)
        try await transport.requests(count: 3)
        try await eventually { clock.sleepers == [.seconds(20)] }
        async let end: Void = session.shutdown(draining: .zero)
        let requests = try await transport.requests(count: 4)
        #expect(requests.map(\.request.method) == [.options, .post, .patch, .delete])
        if isSilent {
            try await eventually { clock.sleepers == [.seconds(5), .seconds(5)] }
            clock.advance(by: .seconds(5))
        }
        await end
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(session.tasks.isEmpty)
    }

    @Test func `no other request begins while an upload is removed`() async throws {
        let (clock, gate) = (ManualClock(), try ScriptGate())
        let transport = busyServer(clock, isSilent: true, redirecting: gate)
        let session = SessionManager(on: transport) { $0.clock = clock }
        let task = session.upload("up", body: .string("abc"), options: .resumable)
        try await transport.requests(count: 3)
        try await eventually { clock.sleepers == [.seconds(20)] }
        let get = Task { try await session.get("a") }
        try await transport.requests(count: 4)
        async let end: Void = session.invalidate(cancellingTasks: true)
        try await transport.requests(count: 5)
        gate.open()
        await #expect(throws: CancellationError.self) { try await get.value }
        try await eventually { clock.sleepers == [.seconds(5), .seconds(5)] }
        clock.advance(by: .seconds(5))
        await end
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(transport.requests.map(\.request.method) == [.options, .post, .patch, .get, .delete])
    }

    @Test func `on libcurl, running requests end before an upload is removed`() async throws {
        let clock = ManualClock()
        try await StubServer.with { server in
            server.fallback { request in
                switch request.method {
                case "OPTIONS": .status(204, headers: ["Tus-Resumable": "1.0.0", "Tus-Extension": "termination"])
                case "POST": .status(201, headers: ["Location": "/u/1"])
                case "PATCH": .status(429, headers: ["Retry-After": "20"])
                default: .hang
                }
            }
            let session = SessionManager(for: server) { $0.clock = clock }
            let upload = session.upload("up", body: .string("abc"), options: .resumable)
            try await server.requests(count: 3)
            try await eventually { clock.sleepers == [.seconds(20)] }
            let get = Task { try await session.get("a") }
            try await server.requests(count: 4)
            async let end: Void = session.invalidate(cancellingTasks: true)
            await #expect(throws: CancellationError.self) { try await get.value }
            // The upload and its removal.
            try await eventually { session.tasks.count == 2 }
            #expect(try await server.requests(count: 5).last?.method == "DELETE")
            clock.advance(by: .seconds(5))
            await end
            await #expect(throws: CancellationError.self) { try await upload.value }
        }
    }

    @Test func `an upload that is cancelled during the program's decision is removed from the server`() async throws {
        let transport = busyServer()
        let session = SessionManager(on: transport) {
            $0.retryPolicy = RetryPolicy(limit: 1).with {
                $0.decision = { _ in
                    cancelCurrentTask()
                    return .stop
                }
            }
        }
        let task = session.upload("up", body: .string("abc"), options: .resumable)
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(transport.requests.map(\.request.method) == [.options, .post, .patch, .delete])
    }

    @Test(arguments: [true, false], [true, false])
    func `an upload is removed from the server if an interceptor replaces the error of its cancellation`(
        isOfSession: Bool, isDecided: Bool
    ) async throws {
        let (transport, decisions) = (busyServer(rejection: .hang), Lock(0))
        let error: any Error = isDecided ? TransportError(.connectionLost(.beforeResponse)) : Planned()
        let session = SessionManager(on: transport) {
            $0.interceptors = [Intercepting.replacingErrors(by: error)]
            guard isDecided else { return }
            $0.retryPolicy = RetryPolicy(limit: 1).with {
                $0.decision = { _ in
                    decisions.withLock { $0 += 1 }
                    return .stop
                }
            }
        }
        let options = UploadOptions.resumable.with { $0.partSize = 1 }
        let task = session.upload("up", body: .string("abc"), options: options)
        try await transport.requests(count: 3)
        if isOfSession { await session.invalidate(cancellingTasks: true) } else { task.cancel() }
        await #expect(throws: (any Error).self) { try await task.value }
        #expect(transport.requests.map(\.request.method) == [.options, .post, .patch, .delete])
        #expect(decisions.withLock(\.self) == 0)
    }

    @Test func `an upload whose token cannot be refreshed is not removed, as one that is cancelled`() async throws {
        let base = try url("https://a.example/")
        let authenticator = Authenticator(for: [base], token: Authenticator.Token("old")) { _ in
            throw CancellationError()
        }
        let transport = busyServer(rejection: .status(.unauthorized, headers: [.wwwAuthenticate: "Bearer"]))
        let session = SessionManager(baseURL: base) {
            $0.authentication.authenticators = [authenticator]
            $0.transport = transport
        }
        let task = session.upload("up", body: .string("abc"), options: .resumable)
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(transport.requests.map(\.request.method) == [.options, .post, .patch])
    }

    @Test func `what the removal of an upload has started ends with its session`() async throws {
        let clock = ManualClock()
        let transport = busyServer(clock)
        let other = SessionManager(on: MockTransport(.status(.serviceUnavailable, headers: [.retryAfter: "20"]))) {
            ($0.clock, $0.retryPolicy) = (ManualClock(), RetryPolicy(limit: 1))
        }
        let (gate, left) = (try ScriptGate(), Lock<Task<Int, any Error>?>(nil))
        let session = SessionManager(on: transport) {
            $0.clock = clock
            $0.interceptors = [
                Intercepting { request, next in
                    if request.method == .delete {
                        let task = Task {
                            try await gate.wait()
                            return try await other.get("x").statusCode
                        }
                        left.set(\.self, to: task)
                    }
                    return try await next(request)
                }
            ]
        }
        let task = session.upload("up", body: .string("abc"), options: .resumable)
        try await transport.requests(count: 3)
        // Until the server has answered, the upload may be complete, and would not be removed.
        try await eventually { clock.sleepers == [.seconds(20)] }
        await session.shutdown(draining: .zero)
        await #expect(throws: CancellationError.self) { try await task.value }
        gate.open()
        try await eventually { !other.tasks.isEmpty }
        await other.shutdown(draining: .zero)
        await #expect(throws: CancellationError.self) { try await left.withLock(\.self)?.value }
    }

    @Test func `a missing file fails with an error of the session`() async throws {
        let session = SessionManager { $0.transport = MockTransport(.text("x")) }
        let missing = RequestBody.file("\(try directory.write(Data(), to: "body")).missing")
        let error = try await sessionError {
            _ = try await session.upload("https://a.example/up", body: missing, options: .resumable).value
        }
        guard case .requestBody(.file)? = error.reason else { throw error }
    }

    // MARK: Over connections

    @Test(arguments: [UploadProtocol.tus, .ietf])
    func `an upload that is cut 200 times arrives whole, and no byte is sent twice`(by uploadProtocol: UploadProtocol)
        async throws
    {
        let bytes = StubServer.generatedBytes(4_000_000)
        let path = try directory.write(bytes, to: "body")
        try await StubServer.with(Self.options) { stub in
            let server = UploadServer(uploadProtocol, length: bytes.count, on: stub)
            var random = SeededGenerator(seed: 49)
            let cuts = (0..<200).map { _ in server.cut(after: Int.random(in: 1...15_000, using: &random)) }
            server.receive(cuts + [server.complete], on: stub)
            let task = Self.manager(stub).upload("up", body: .file(path), options: .resumable)
            let progress = await task.progress.reduce(into: []) { $0.append($1) }
            let response = try await task.value
            #expect(response.statusCode == (uploadProtocol == .tus ? 204 : 200))
            #expect(server.data == bytes)
            #expect(server.overlap == 0)
            #expect(progress.last?.counts == TransferProgress(completedBytes: 4_000_000, totalBytes: 4_000_000))
            #expect(progress.allSatisfy { $0.totalBytes == 4_000_000 && $0.completedBytes <= 4_000_000 })
            let requests = stub.activity.requests
            #expect(requests.count { $0.method == "HEAD" } == 200)
            #expect(requests.count { $0.method == "PATCH" } == (uploadProtocol == .tus ? 201 : 200))
            #expect(try directory.contents == ["body"])
        }
    }

    @Test(arguments: [UploadProtocol.tus, .ietf])
    func `a durable upload goes on in another session, with progress from the bytes that the server has`(
        by uploadProtocol: UploadProtocol
    ) async throws {
        let bytes = StubServer.generatedBytes(1_000_000)
        let path = try directory.write(bytes, to: "body")
        try await StubServer.with(Self.options) { stub in
            let server = UploadServer(uploadProtocol, length: bytes.count, on: stub)
            server.receive([server.cut(after: 600_000), .status(503)], on: stub)
            let first = SessionManager(for: stub) { $0.retryPolicy = Self.eager.with { $0.limit = 1 } }
            let error = try await sessionError {
                _ = try await first.upload("up", body: .file(path), options: .durable).value
            }
            #expect(error.statusCode == 503)
            #expect(try directory.contents.count == 2)
            let count = stub.activity.requests.count
            server.receive([.status(500), server.complete], on: stub)
            if uploadProtocol == .tus { server.receive([server.complete], on: stub) }
            let task = Self.manager(stub).upload("up", body: .file(path), options: .durable)
            let progress = await task.progress.reduce(into: []) { $0.append($1) }
            _ = try await task.value
            let begin = try #require(progress.first)
            #expect(begin.completedBytes >= 600_000 && begin.totalBytes == 1_000_000)
            #expect(stub.activity.requests[count...].map(\.method) == ["HEAD", "PATCH"])
            #expect(server.data == bytes && server.overlap == 0)
            #expect(try directory.contents == ["body"])
        }
    }

    @Test func `a durable upload of a file that was changed begins anew`() async throws {
        let path = try directory.write(Data("first version".utf8), to: "body")
        try await StubServer.with { stub in
            let server = UploadServer(.tus, length: 14, on: stub)
            server.receive([.status(403)], on: stub)
            let manager = Self.manager(stub)
            _ = try await sessionError {
                _ = try await manager.upload("up", body: .file(path), options: .durable).value
            }
            #expect(try directory.contents.count == 1, "after a 403 without an offset, the upload is gone")
            server.receive([.status(401)], on: stub)
            _ = try await sessionError {
                _ = try await manager.upload("up", body: .file(path), options: .durable).value
            }
            let names = try directory.contents
            #expect(names.count == 2)
            let record = "\(directory.path)/\(names.first { $0 != "body" } ?? "")"
            try FileManager.default.linkItem(atPath: record, toPath: "\(directory.path)/earlier")
            server.receive([.status(401)], on: stub)
            _ = try await sessionError {
                _ = try await manager.upload("up", body: .file(path), options: .durable).value
            }
            #expect(try directory.contents == names + ["earlier"], "nothing is left of a record that was replaced")
            let counts = try [record, "\(directory.path)/earlier"].map { path in
                try FileManager.default.attributesOfItem(atPath: path)[.referenceCount] as? Int
            }
            #expect(counts == [1, 1], "a record is replaced as a whole")
            _ = try directory.write(Data("second version".utf8), to: "body")
            server.receive([server.complete], on: stub)
            let count = stub.activity.requests.count
            _ = try await manager.upload("up", body: .file(path), options: .durable).value
            #expect(stub.activity.requests[count...].map(\.method) == ["OPTIONS", "POST", "PATCH"])
            #expect(server.data == Data("second version".utf8))
        }
    }

    @Test(
        arguments: [
            ([:], true), ([.authorization: "new"], true), ([.userAgent: "another version"], true),
            ([.date: "Fri, 27 Nov 2026 21:02:14 GMT", .idempotencyKey: "1"], true), ([.ifMatch: "\"1\""], false),
            ([.contentType: "text/html"], false), ([.uploadMetadata: "filename YQ=="], false), ([.from: "you"], false),
        ] as [(HTTPFields, Bool)])
    func `a durable upload continues one that was created with the same fields`(changes: HTTPFields, isSame: Bool)
        async throws
    {
        let path = try directory.write(Data("content".utf8), to: "body")
        try await StubServer.with { stub in
            let server = UploadServer(.tus, length: 7, on: stub)
            let manager = SessionManager(for: stub) {
                ($0.retryPolicy, $0.headers) = (Self.eager, [.acceptLanguage: "de"])
            }
            func upload(_ changes: HTTPFields) async throws {
                var fields: HTTPFields = [.contentType: "text/plain", .from: "me", .authorization: "old"]
                for field in changes { fields[field.name] = field.value }
                _ = try await manager.upload("up", body: .file(path), headers: fields, options: .durable).value
            }
            server.receive([.status(401)], on: stub)
            _ = try await sessionError { try await upload([:]) }
            server.receive([server.complete], on: stub)
            let count = stub.activity.requests.count
            try await upload(changes)
            let methods = stub.activity.requests[count...].map(\.method)
            #expect(methods == (isSame ? ["HEAD", "PATCH"] : ["OPTIONS", "POST", "PATCH"]))
            #expect(try directory.contents == ["body"])
        }
    }

    @Test func `an upload with other fields that is not created keeps the record of the one before`() async throws {
        let path = try directory.write(Data("content".utf8), to: "body")
        try await StubServer.with { stub in
            let server = UploadServer(.tus, length: 7, on: stub)
            let manager = Self.manager(stub)
            func upload(from user: String) async throws {
                _ = try await manager.upload("up", body: .file(path), headers: [.from: user], options: .durable).value
            }
            server.receive([.status(401)], on: stub)
            _ = try await sessionError { try await upload(from: "me") }
            let names = try directory.contents
            #expect(names.count == 2)
            stub.route("/up", method: "POST", scripts: [.status(401)])
            let error = try await sessionError { try await upload(from: "you") }
            #expect(error.statusCode == 401)
            #expect(try directory.contents == names)
            server.receive([server.complete], on: stub)
            let count = stub.activity.requests.count
            try await upload(from: "me")
            #expect(stub.activity.requests[count...].map(\.method) == ["HEAD", "PATCH"])
            #expect(try directory.contents == ["body"])
        }
    }

    @Test func `a record has no value of a field`() async throws {
        let path = try directory.write(Data("content".utf8), to: "body")
        let session = SessionManager(on: busyServer(rejection: .status(.unauthorized)))
        _ = try await sessionError {
            _ = try await session.upload("up", body: .file(path), headers: [.from: "secret"], options: .durable).value
        }
        let record = try #require(try directory.contents.first { $0.hasSuffix(".upload") })
        let text = try String(decoding: directory.read(record), as: UTF8.self)
        #expect(text.contains("u\\/1") && !text.contains("secret"))
    }

    @Test func `the record has the URL while the content is being sent, and is locked`() async throws {
        let bytes = StubServer.generatedBytes(3_000_000)
        let path = try directory.write(bytes, to: "body")
        try await StubServer.with(Self.options) { stub in
            let server = UploadServer(.ietf, length: bytes.count, on: stub)
            let gate = try ScriptGate()
            var script = server.complete
            script.actions.insert(.wait(gate), at: 1)
            server.receive([script], on: stub)
            let task = Self.manager(stub).upload("up", body: .file(path), options: .durable)
            var record = ""
            try await eventually {
                record = try directory.contents.first { $0.hasSuffix(".upload") } ?? ""
                return try !record.isEmpty
                    && String(decoding: directory.read(record), as: UTF8.self).contains("u\\/1")
            }
            let error = try await sessionError {
                _ = try await Self.manager(stub).upload("up", body: .file(path), options: .durable).value
            }
            #expect(error.fileFailure?.reason == .inUse)
            let mode = try FileManager.default.attributesOfItem(atPath: "\(directory.path)/\(record)")[
                .posixPermissions]
            #expect(mode as? Int == 0o600)
            gate.open()
            _ = try await task.value
            #expect(try directory.contents == ["body"])
        }
    }

    @Test(arguments: [UploadProtocol.tus, .ietf])
    func `a cancelled upload is removed from the server, unless it is durable`(by uploadProtocol: UploadProtocol)
        async throws
    {
        let path = try directory.write(StubServer.generatedBytes(3_000_000), to: "body")
        for options in [UploadOptions.resumable, .durable] {
            try await StubServer.with(Self.options) { stub in
                let server = UploadServer(uploadProtocol, length: 3_000_000, on: stub)
                server.receive(
                    [
                        Script(
                            server.cut(after: 1).actions.prefix(while: \.isInterim) + [.readBody(upTo: 100), .hang],
                            readsBodyFirst: false)
                    ], on: stub)
                let task = Self.manager(stub).upload("up", body: .file(path), options: options)
                try await stub.activity { $0.requests.contains { $0.bodyLength > 0 } }
                if uploadProtocol == .ietf {
                    _ = await task.events.first { if case .exchange(_, .informational) = $0 { true } else { false } }
                }
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
                let deletions = stub.activity.requests.count { $0.method == "DELETE" }
                #expect(deletions == (options.isDurable ? 0 : 1))
                #expect(try directory.contents.count == (options.isDurable ? 2 : 1))
            }
        }
    }

    @Test func `a file that is changed while it is sent fails the upload, which is removed from the server`()
        async throws
    {
        let path = try directory.write(StubServer.generatedBytes(3_000_000), to: "body")
        try await StubServer.with(Self.options) { stub in
            let server = UploadServer(.tus, length: 3_000_000, on: stub)
            let gate = try ScriptGate()
            var script = server.complete
            script.actions.insert(.wait(gate), at: 0)
            server.receive([script], on: stub)
            let task = Self.manager(stub).upload("up", body: .file(path), options: .durable)
            try await stub.activity { $0.requests.contains { $0.method == "PATCH" } }
            _ = try directory.write(StubServer.generatedBytes(3_000_000), to: "body")
            gate.open()
            let error = try await sessionError { _ = try await task.value }
            guard case .upload(.sourceChanged) = error else { throw error }
            #expect(stub.activity.requests.last?.method == "DELETE")
            #expect(try directory.contents == ["body"])
        }
    }

    @Test(arguments: [true, false], [true, false])
    func `a form with a file that is changed between two parts fails the upload, which is removed from the server`(
        isThrottled: Bool, isEncoded: Bool
    ) async throws {
        let path = try directory.write(Data(count: 300 << 10), to: "body")
        var form = MultipartFormData()
        form.append("Ada", name: "user")
        try form.append(file: path, name: "data")
        if isThrottled { form.throttle = .packets(of: 1 << 20, delay: .zero) }
        let transport = Self.tus(extensions: "creation,termination") { [directory] in
            _ = try directory.write(Data(repeating: 1, count: 301 << 10), to: "body")
        }
        let session = SessionManager(on: transport)
        let body = isEncoded ? try form.makeBody().body : .form(form)
        let error = try await sessionError {
            _ = try await session.upload("up", body: body, options: .resumable.with { $0.partSize = 100 << 10 }).value
        }
        guard case .upload(.sourceChanged) = error else { throw error }
        #expect(transport.requests.map(\.request.method) == [.options, .post, .patch, .delete])
    }

    @Test func `a server without support receives an ordinary request`() async throws {
        try await StubServer.with { stub in
            stub.route("/up", method: "POST", .text("thanks"))
            let response = try await SessionManager(for: stub).upload(
                "up", body: .string("abc"), headers: [.contentType: "text/plain"], options: .resumable
            ).value
            #expect(response.text == "thanks")
            let request = try #require(stub.activity.requests.last)
            #expect(request.text == "abc" && request.headers["Content-Type"] == "text/plain")
            #expect(request.headers["Upload-Complete"] == "?1" && request.headers["Upload-Length"] == "3")
        }
    }

    @Test func `a durable upload by tus that is denied, and so is another, keeps its record`() async throws {
        let path = try directory.write(Data("content".utf8), to: "body")
        try await StubServer.with { stub in
            let server = UploadServer(.tus, length: 7, on: stub)
            server.receive([.status(403)], on: stub)
            stub.route(
                "/up", method: "POST", scripts: [.status(201, headers: ["Location": "/u/1"]), .status(403)])
            let manager = Self.manager(stub)
            let error = try await sessionError {
                _ = try await manager.upload("up", body: .file(path), options: .durable).value
            }
            #expect(error.statusCode == 403)
            server.receive([server.complete], on: stub)
            let count = stub.activity.requests.count
            _ = try await manager.upload("up", body: .file(path), options: .durable).value
            #expect(stub.activity.requests[count...].map(\.method) == ["HEAD", "PATCH"])
            #expect(server.data == Data("content".utf8))
        }
    }

    @Test(arguments: [405, 501, 505])
    func `a server that refuses OPTIONS receives an ordinary request`(status: Int) async throws {
        try await StubServer.with { stub in
            stub.route("/up", method: "OPTIONS", .status(status))
            stub.route("/up", method: "POST", .text("thanks"))
            let manager = SessionManager(for: stub)
            let response = try await manager.upload("up", body: .string("abc"), options: .resumable).value
            #expect(response.text == "thanks")
            #expect(stub.activity.requests.map(\.method) == ["OPTIONS", "POST"])
        }
    }

    @Test func `a suspended upload sends nothing until it is resumed`() async throws {
        let bytes = StubServer.generatedBytes(3_000_000)
        try await StubServer.with(Self.options) { stub in
            let server = UploadServer(.tus, length: bytes.count, on: stub)
            let gate = try ScriptGate()
            stub.route(
                "/up", method: "POST", Script([.wait(gate), .reply(Reply(status: 201, headers: ["Location": "/u/1"]))]))
            stub.route("/u/1", method: "PATCH", server.complete)
            let task = Self.manager(stub).upload("up", body: .bytes(bytes), options: .resumable)
            try await stub.activity { $0.requests.contains { $0.method == "POST" } }
            task.suspend()
            gate.open()
            var ends = 0
            for await event in task.events {
                if case .exchange(_, .finished) = event { ends += 1 }
                // Those of the discovery and of the creation.
                if ends == 2 { break }
            }
            #expect(!stub.activity.requests.contains { $0.method == "PATCH" })
            task.resume()
            _ = try await task.value
            #expect(server.data == bytes)
        }
    }

    @Test func `the time limit ends an upload that is suspended between two requests`() async throws {
        try await StubServer.with(Self.options) { stub in
            let server = UploadServer(.tus, length: 1_000, on: stub)
            stub.route("/up", method: "POST", .reply(status: 201, headers: ["Location": "/u/1"]))
            stub.route("/u/1", method: "PATCH", server.complete)
            let manager = Self.manager(stub)
            var request = try manager.request(.post, "up", body: .bytes(Data(count: 1_000)))
            request.timeout = .milliseconds(500)
            let task = manager.makeUploadTask(for: request, options: .resumable)
            let suspending = Task {
                for await case .exchange(_, .started(let request)) in task.events where request.method == .post {
                    task.suspend()
                }
            }
            task.resume()
            let error = try await sessionError { _ = try await task.value }
            await suspending.value
            #expect(error.isTimeout)
            #expect(!stub.activity.requests.contains { $0.method == "PATCH" })
        }
    }

    // MARK: Without connections

    /// A tus server at a.example with an upload at another URL, which accepts each part.
    private static func tus(
        at location: String = "/u/1", extensions: String = "creation,checksum",
        onPart: @escaping @Sendable () throws -> Void = {}
    ) -> MockTransport {
        MockTransport { request in
            if request.method == .patch { try onPart() }
            switch request.method {
            case .options:
                return .status(
                    .noContent,
                    headers: try HTTPFields(validating: [
                        ("Tus-Resumable", "1.0.0"), ("Tus-Extension", extensions),
                        ("Tus-Checksum-Algorithm", "sha1,sha256"),
                    ]))
            case .post:
                return .status(.created, headers: [.location: location])
            default:
                let start = request.headers.first { $0.name.canonicalName == "upload-offset" }.flatMap {
                    Int64($0.value)
                }
                let offset = (start ?? 0) + (request.body.length ?? 3)
                return .status(.noContent, headers: try HTTPFields(validating: [("Upload-Offset", "\(offset)")]))
            }
        }
    }

    @Test func `sensitive fields are not sent to an upload at another origin`() async throws {
        for (location, isSent) in [("https://b.example/u", false), ("http://a.example/u", true)] {
            let transport = Self.tus(at: location)
            let manager = SessionManager(on: transport) {
                $0.headers = [.authorization: "Bearer session", .from: "me"]
                $0.proxy = .proxy(Proxy(.http, host: "proxy.example", port: 1))
            }
            let headers: HTTPFields = [.cookie: "a=b", .proxyAuthorization: "Bearer p"]
            _ = try await manager.upload("up", body: .string("abc"), headers: headers, options: .resumable).value
            let (creation, part) = (transport.requests[1].request, transport.requests[2].request)
            #expect(creation.headers[.authorization] == "Bearer session" && creation.headers[.cookie] == "a=b")
            #expect(part.method == .patch && part.url.absoluteString == location)
            #expect((part.headers[.authorization] != nil) == isSent && (part.headers[.cookie] != nil) == isSent)
            #expect(part.headers[.from] == "me")
            // The proxy is the same.
            #expect(part.headers[.proxyAuthorization] == "Bearer p")
        }
    }

    @Test func `sensitive fields are not sent with the removal of an upload at another origin`() async throws {
        let transport = MockTransport { request in
            switch request.method {
            case .options:
                .status(
                    .noContent,
                    headers: try HTTPFields(validating: [("Tus-Resumable", "1.0.0"), ("Tus-Extension", "termination")]))
            case .post: .status(.created, headers: [.location: "https://b.example/u"])
            case .delete: .status(.noContent)
            default: .status(.tooManyRequests, headers: [.retryAfter: "20"])
            }
        }
        let manager = SessionManager(on: transport) {
            $0.headers = [.authorization: "Bearer session", .from: "me"]
            $0.retryPolicy = RetryPolicy(limit: 1).with {
                $0.decision = { _ in
                    cancelCurrentTask()
                    return .stop
                }
            }
        }
        let task = manager.upload("up", body: .string("abc"), options: .resumable)
        await #expect(throws: CancellationError.self) { try await task.value }
        let removal = try #require(transport.requests.map(\.request).last)
        #expect(removal.method == .delete && removal.headers[.from] == "me")
        #expect(removal.headers[.authorization] == nil)
    }

    @Test func `conditions, and fields that describe the content, belong to the creation only`() async throws {
        let transport = Self.tus()
        let path = try directory.write(Data("abc".utf8), to: "ä.txt")
        _ = try await SessionManager(on: transport).upload(
            "up", body: .file(path),
            headers: [
                .contentType: "text/plain", .contentDisposition: "inline", .from: "me", .ifMatch: "\"1\"",
                .ifNoneMatch: "*", .ifModifiedSince: "x", .ifUnmodifiedSince: "x", .ifRange: "\"1\"",
                .range: "bytes=0-1",
            ], options: .resumable
        ).value
        #expect(
            transport.requests.map { $0.request.headers.lines.sorted() } == [
                ["From: me"],
                [
                    "From: me", "If-Match: \"1\"", "If-Modified-Since: x", "If-None-Match: *", "If-Range: \"1\"",
                    "If-Unmodified-Since: x", "Range: bytes=0-1", "Tus-Resumable: 1.0.0", "Upload-Length: 3",
                    "Upload-Metadata: filename w6QudHh0,filetype dGV4dC9wbGFpbg==",
                ],
                [
                    "Content-Type: application/offset+octet-stream", "From: me", "Tus-Resumable: 1.0.0",
                    "Upload-Offset: 0",
                ],
            ])
    }

    @Test(arguments: [nil, 3 as Int64])
    func `a creation by the draft with a part has the fields of the whole, but not those of a message`(
        partSize: Int64?
    ) async throws {
        let transport = MockTransport { request in
            let fields = [
                ("Location", "/u/1"),
                ("Upload-Complete", request.body.length == 3 && request.method == .post ? "?0" : "?1"),
            ]
            return .status(.ok, headers: try HTTPFields(validating: fields))
        }
        let fields = [
            ("Content-Type", "text/plain"), ("Content-Language", "de"), ("Content-Disposition", "inline"),
            ("Repr-Digest", "sha-256=:YQ==:"), ("From", "me"),
        ]
        let ofMessage = [("Content-Digest", "sha-256=:YQ==:"), ("Content-MD5", "YQ=="), ("Digest", "md5=YQ==")]
        let manager = SessionManager(on: transport)
        var request = try manager.request(
            .post, "up", body: .string("abcdef"), headers: try HTTPFields(validating: fields + ofMessage))
        request.trailers = { [:] }
        let options = UploadOptions.resumable.with { ($0.uploadProtocol, $0.partSize) = (.ietf, partSize) }
        _ = try await manager.upload(request, options: options).value
        let requests = transport.requests.map(\.request)
        let creation = requests[0].headers.lines.filter { !$0.hasPrefix("Upload-") }
        let expected = fields + (partSize == nil ? ofMessage : [])
        #expect(creation.sorted() == expected.map { "\($0): \($1)" }.sorted())
        #expect(requests.map { $0.trailers == nil } == (partSize == nil ? [false] : [true, true]))
    }

    /// Returns the response of a server of the draft that has the first byte of an upload, and denies to receive the others.
    private static func deny(_ request: Request) throws -> MockResponse {
        let fields = [("Upload-Complete", "?0"), ("Upload-Offset", "1")]
        return switch request.method {
        case .post: .status(.created, headers: try HTTPFields(validating: fields + [("Location", "/u/1")]))
        case .head: .status(.noContent, headers: try HTTPFields(validating: fields))
        default: .status(.forbidden)
        }
    }

    private static let byBytes = UploadOptions.durable.with { ($0.uploadProtocol, $0.partSize) = (.ietf, 1) }

    @Test(
        arguments: [
            ("If-Match", "1", "2", false), ("If-Match", "1", nil, false), ("If-None-Match", nil, "*", false),
            ("If-Unmodified-Since", "1", "2", false), ("Content-Type", "a/b", "c/d", false), ("From", "a", "b", false),
            ("Idempotency-Key", "1", "2", true), ("User-Agent", "1", "2", true), ("Date", "1", "2", true),
            ("Traceparent", "1", nil, true), ("Tracestate", nil, "2", true), ("X-Request-ID", "1", "2", true),
            ("Authorization", "1", "2", true),
        ] as [(String, String?, String?, Bool)])
    func `a later upload continues unless other fields create it, and conditions are sent`(
        name: String, first: String?, second: String?, continues: Bool
    ) async throws {
        let path = try directory.write(Data("abc".utf8), to: "body")
        let transport = MockTransport { try Self.deny($0) }
        let manager = SessionManager(on: transport)
        for value in [first, second] {
            let headers = try HTTPFields(validating: value.map { [(name, $0)] } ?? [])
            let error = try await sessionError {
                _ = try await manager.upload("up", body: .file(path), headers: headers, options: Self.byBytes).value
            }
            #expect(error.statusCode == 403)
        }
        let requests = transport.requests.dropFirst(2).map(\.request)
        #expect(requests.map(\.method) == (continues ? [.head, .patch] : [.post, .patch]))
        if !continues { #expect(requests.first?.headers.lines.contains("\(name): \(second ?? "")") == (second != nil)) }
    }

    @Test(arguments: [400, 503, 200])
    func `an upload with other fields takes the place of the earlier one's record only if it is created`(
        status: Int
    ) async throws {
        let path = try directory.write(Data("abc".utf8), to: "body")
        let transport = MockTransport { request in
            try request.headers[.from] == nil ? Self.deny(request) : .status(.init(code: status))
        }
        let manager = SessionManager(on: transport) {
            $0.retryPolicy = RetryPolicy(limit: 1).with { $0.decision = { _ in .stop } }
        }
        func upload(_ headers: HTTPFields, expecting status: Int) async throws {
            var options = Self.byBytes
            // A server without support takes what it is sent for the whole.
            if !headers.isEmpty { options.partSize = nil }
            let task = manager.upload("up", body: .file(path), headers: headers, options: options)
            do {
                #expect(try await task.value.statusCode == status)
            } catch let error as SessionError {
                #expect(error.statusCode == status)
            }
        }
        try await upload([:], expecting: 403)
        try await upload([.from: "me"], expecting: status)
        #expect(try directory.contents.count == (status == 200 ? 1 : 2))
        try await upload([:], expecting: 403)
        #expect(transport.requests.suffix(2).first?.request.method == (status == 200 ? .post : .head))
    }

    @Test func `a record that cannot be read stays`() async throws {
        let path = try directory.write(Data("abc".utf8), to: "body")
        try await Simulation { world in
            let fails = Lock(false)
            world.onFileChange { call, _ in call == "pread" && fails.withLock(\.self) ? EIO : nil }
            let methods = Lock([HTTPRequest.Method]())
            let transport = world.transport { request in
                methods.withLock { $0.append(request.method) }
                return try Self.deny(request)
            }
            let manager = SessionManager(on: transport) { $0.clock = world.clock }
            for (isFailing, status) in [(false, 403), (true, nil), (false, 403)] as [(Bool, Int?)] {
                fails.set(\.self, to: isFailing)
                let error = try await sessionError {
                    _ = try await manager.upload(
                        "http://a.example/up", body: .file(path), options: Self.byBytes
                    ).value
                }
                #expect(error.statusCode == status)
                #expect((error.fileFailure != nil) == isFailing)
            }
            #expect(methods.withLock(\.self) == [.post, .patch, .head, .patch])
            await manager.shutdown()
        }.explore(seeds: 1...1)
    }

    @Test func `while an upload that the server has forgotten is created again, the record is empty`() async throws {
        let path = try directory.write(Data("ab".utf8), to: "body")
        let records = Lock<[String]>([])
        let transport = MockTransport { [directory] request in
            let name = try directory.contents.first { $0.hasSuffix(".upload") } ?? ""
            let text = try String(decoding: directory.read(name), as: UTF8.self)
            let number = records.withLock { records in
                records.append(text.contains("u\\/1") ? "first" : text.contains("u\\/2") ? "second" : text)
                return records.count
            }
            if number == 2 { return .status(.notFound) }
            let fields = [("Location", number == 1 ? "/u/1" : "/u/2"), ("Upload-Complete", number == 4 ? "?1" : "?0")]
            return .status(.ok, headers: try HTTPFields(validating: fields))
        }
        let options = UploadOptions.durable.with { ($0.uploadProtocol, $0.partSize) = (.ietf, 1) }
        _ = try await SessionManager(on: transport).upload("up", body: .file(path), options: options).value
        #expect(records.withLock(\.self) == ["", "first", "", "second"])
        #expect(try directory.contents == ["body"])
    }

    @Test func `no part is sent before the record's name is on the disk, also if its first flush fails`() async throws {
        let path = try directory.write(Data("abc".utf8), to: "body")
        try await Simulation { [directory] world in
            let flushes = Lock([Int32?]())
            world.onFileChange { call, path in
                guard call == "fsync", path == directory.path else { return nil }
                return flushes.withLock { flushes in
                    flushes.append(flushes.isEmpty ? EIO : nil)
                    return flushes.last ?? nil
                }
            }
            let counts = Lock([Int]())
            let transport = world.transport { _ in
                let number = counts.withLock { counts in
                    counts.append(flushes.withLock(\.count))
                    return counts.count
                }
                let fields = [("Location", "/u/1"), ("Upload-Draft-Interop-Version", "8")]
                let interim = MockResponse.Step.informational(104, try HTTPFields(validating: fields))
                let complete = try HTTPFields(
                    validating: fields.suffix(1) + [("Upload-Complete", number == 3 ? "?1" : "?0")])
                return MockResponse([interim, .pause(.seconds(1)), .head(.created, complete)])
            }
            let options = UploadOptions.durable.with { ($0.uploadProtocol, $0.partSize) = (.ietf, 1) }
            let manager = SessionManager(on: transport) { $0.clock = world.clock }
            _ = try await manager.upload("http://a.example/up", body: .file(path), options: options).value
            // The last part may complete the upload, as the record says before.
            #expect(counts.withLock(\.self) == [0, 2, 3])
            #expect(flushes.withLock(\.self) == [EIO, nil, nil])
            await manager.shutdown()
        }.explore(seeds: 1...1)
    }

    @Test func `the creation of an upload by tus has the key by which the server recognizes it`() async throws {
        let transport = Self.tus()
        let key = HTTPField.Name.idempotencyKey
        _ = try await SessionManager(on: transport).upload(
            "up", body: .string("abc"), headers: [key: "k"], options: .resumable
        ).value
        #expect(transport.requests.map { $0.request.headers[key] } == [nil, "k", nil])
    }

    @Test func `each part has the digest of its content`() async throws {
        let transport = Self.tus()
        _ = try await SessionManager(on: transport).upload(
            "up", body: .string("abcdef"), options: .resumable.with { ($0.verifiesParts, $0.partSize) = (true, 3) }
        ).value
        let checksums = transport.requests.dropFirst(2).map { received in
            received.request.headers.first { $0.name.canonicalName == "upload-checksum" }?.value
        }
        let expected = try ["abc", "def"].map {
            "sha256 " + (try ContentDigest(of: Data($0.utf8))).value.base64EncodedString()
        }
        #expect(checksums == expected)
        let plain = MockTransport(.text("ok"))
        _ = try await SessionManager(on: plain).upload(
            "up", body: .string("abc"),
            options: .resumable.with { ($0.verifiesParts, $0.uploadProtocol) = (true, .ietf) }
        ).value
        let digest = try ContentDigest(of: Data("abc".utf8)).fieldValue
        #expect(try plain.onlyRequest.request.headers[.contentDigest] == digest)
    }

    @Test func `another request of an interceptor is no part of the upload`() async throws {
        let session = SessionManager(on: Self.tus()) {
            $0.attemptInterceptors = [
                Intercepting { request, next in
                    guard request.method == .patch else { return try await next(request) }
                    let audit = try url("http://a.example/audit")
                    _ = try await next(Request(method: .put, url: audit, body: .string("part")))
                    return try await next(request)
                }
            ]
        }
        let task = session.upload("up", body: .string("abcdef"), options: .resumable.with { $0.partSize = 3 })
        _ = try await task.value
        let bodies = await task.events.reduce(into: [Int64?]()) { bodies, event in
            guard case .exchange(_, .started(let request)) = event else { return }
            if [.put, .patch].contains(request.method) { bodies.append(request.body.length) }
        }
        #expect(bodies == [4, 0, 4, 0])
    }

    @Test func `any replayable body of known length is sent in parts`() async throws {
        var form = MultipartFormData()
        form.append("Ada", name: "user")
        form.append(Data(repeating: 7, count: 1000), name: "data")
        let whole = try form.makeBody().body
        let chunks = AsyncStreamOf([Data("abcd".utf8), Data("e".utf8), Data("fghijklm".utf8)])
        let bodies: [(RequestBody, Data?)] = [
            (.stream(chunks, length: 13, isReplayable: true), Data("abcdefghijklm".utf8)), (whole, nil),
            (.none, Data()),
        ]
        for (body, expected) in bodies {
            let transport = Self.tus()
            _ = try await SessionManager(on: transport).upload(
                "up", body: body, options: .resumable.with { $0.partSize = 5 }
            ).value
            let parts = transport.requests.dropFirst(2).map(\.body)
            #expect(parts.dropLast().allSatisfy { $0.count == 5 })
            let data = parts.reduce(Data(), +)
            if let expected { #expect(data == expected) } else { #expect(Int64(data.count) == whole.length) }
        }
    }

    @Test func `a body is generated for each part of it, and not to create an upload without content`() async throws {
        let count = Lock(0)
        let body = RequestBody.writer(length: 6, isReplayable: true) { writer in
            count.withLock { $0 += 1 }
            try await writer.write("abcdef")
        }
        let transport = Self.tus()
        _ = try await SessionManager(on: transport).upload(
            "up", body: body, options: .resumable.with { $0.partSize = 3 }
        ).value
        #expect(transport.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["", "", "abc", "def"])
        #expect(count.withLock(\.self) == 2)
    }

    @Test func `a body that cannot be sent again fails the upload, and nothing is sent`() async throws {
        let bodies: [RequestBody] = [
            .writer { try await $0.write("a") }, .stream(AsyncStreamOf([]), isReplayable: true),
            .stream(AsyncStreamOf([]), length: 0), .file("/proc/self/status"),
        ]
        for body in bodies {
            let transport = Self.tus()
            let manager = SessionManager(on: transport)
            let error = try await sessionError {
                _ = try await manager.upload("up", body: body, options: .resumable).value
            }
            guard case .upload(.bodyNotResumable) = error else { throw error }
            #expect(transport.requests.isEmpty)
        }
    }

    @Test func `waits follow the retry policy, and begin anew after progress`() async throws {
        let clock = ManualClock()
        let answers = Lock<[(Int, String?)]>([
            (204, nil), (201, nil), (503, nil), (204, "0"), (503, nil), (204, "2"), (503, nil), (204, "2"), (503, nil),
            (503, nil), (503, nil),
        ])
        let transport = MockTransport { _ in
            let (status, offset) = answers.withLock { $0.removeFirst() }
            var fields: HTTPFields = status == 201 ? [.location: "/u"] : [:]
            if let offset { fields = try HTTPFields(validating: [("Upload-Offset", offset)]) }
            return .status(.init(code: status), headers: fields)
        }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.retryPolicy = RetryPolicy(limit: 3).with { $0.backoff = Backoff(base: .seconds(1), isJittered: false) }
        }
        let options = UploadOptions.resumable.with { $0.uploadProtocol = .tus }
        async let result = sessionError {
            _ = try await manager.upload("up", body: .string("abc"), options: options).value
        }
        #expect(
            try await clock.passWaits(5) == [.seconds(1), .seconds(2), .seconds(1), .seconds(2), .seconds(4)])
        #expect(try await result.statusCode == 503)
    }

    /// A session whose transport receives one byte more before each failure, up to `count`, and then nothing.
    private func interruptedSession(_ policy: RetryPolicy?, receiving count: Int) -> (SessionManager, MockTransport) {
        let received = Lock(0)
        let transport = MockTransport { request in
            switch request.method {
            case .options: return .status(.noContent)
            case .post: return .status(.created, headers: [.location: "/u"])
            case .head:
                let offset = received.withLock { $0 }
                return .status(.noContent, headers: try HTTPFields(validating: [("Upload-Offset", "\(offset)")]))
            default:
                guard
                    received.withLock({
                        $0 += $0 < count ? 1 : 0; return $0 == 30
                    })
                else {
                    throw TransportError(.connectionLost(.beforeResponse))
                }
                return .status(.noContent, headers: [.uploadOffset: "30"])
            }
        }
        let manager = SessionManager(on: transport) {
            ($0.clock, $0.randomUnit) = (ManualClock(), { 0 })
            if let policy { $0.retryPolicy = policy }
        }
        return (manager, transport)
    }

    private static let thrifty = RetryPolicy(limit: 20).with {
        $0.budget = RetryPolicy.Budget(capacity: 2, perRequest: 0, perSecond: 0)
    }

    @Test(arguments: [false, true])
    func `retries after progress do not draw on the budget`(byProgram: Bool) async throws {
        let (manager, transport) = interruptedSession(byProgram ? Self.thrifty : nil, receiving: 30)
        let options = UploadOptions.resumable.with { $0.uploadProtocol = .tus }
        let body = RequestBody.bytes(Data(count: 30))
        #expect(try await manager.upload("up", body: body, options: options).value.statusCode == 204)
        #expect(transport.requests.count { $0.request.method == .patch } == 30)
    }

    @Test(arguments: [(false, 9), (true, 4)])
    func `retries without progress, but the first one, draw on the budget of the program`(
        byProgram: Bool, attempts: Int
    ) async throws {
        let (manager, transport) = interruptedSession(byProgram ? Self.thrifty : nil, receiving: 10)
        let options = UploadOptions.resumable.with { $0.uploadProtocol = .tus }
        let body = RequestBody.bytes(Data(count: 30))
        let error = try await sessionError { _ = try await manager.upload("up", body: body, options: options).value }
        #expect(error.reason == .connectionLost(.beforeResponse))
        #expect(transport.requests.count { $0.request.method == .patch } == 10 + attempts)
    }

    @Test(arguments: [nil, RetryPolicy.Decision.stop, .followPolicy, .retry(after: .seconds(7))])
    func `the program decides about the retries of an upload`(decision: RetryPolicy.Decision?) async throws {
        let clock = ManualClock()
        let answers = Lock([204, 201, 503, 204, 204])
        let transport = MockTransport { _ in
            let status = answers.withLock { $0.removeFirst() }
            var fields: HTTPFields = status == 201 ? [.location: "/u"] : [:]
            if status == 204 {
                fields = try HTTPFields(validating: [("Upload-Offset", answers.withLock { $0.count == 1 } ? "0" : "3")])
            }
            return .status(.init(code: status), headers: fields)
        }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.retryPolicy = RetryPolicy(limit: 3).with { policy in
                policy.backoff = Backoff(base: .seconds(1), isJittered: false)
                if let decision { policy.decision = { _ in decision } }
            }
        }
        let options = UploadOptions.resumable.with { $0.uploadProtocol = .tus }
        let task = Task { try await manager.upload("up", body: .string("abc"), options: options).value }
        switch decision {
        case .stop: #expect(try await sessionError { _ = try await task.value }.statusCode == 503)
        case .retry: #expect(try await clock.passWaits(1) == [.seconds(7)])
        case .followPolicy, nil: #expect(try await clock.passWaits(1) == [.seconds(1)])
        }
        if decision != .stop { #expect(try await task.value.statusCode == 204) }
    }

    @Test func `the deadline of the policy limits each exchange of an upload`() async throws {
        let clock = ManualClock()
        let transport = MockTransport(clock: clock) { request in
            clock.advance(by: .seconds(2))
            switch request.method {
            case .options: return .status(.noContent)
            case .post: return .status(.created, headers: [.location: "/u"])
            default: return .status(.noContent, headers: [.uploadOffset: "3"])
            }
        }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.retryPolicy = RetryPolicy(limit: 3).with { $0.deadline = .seconds(10) }
        }
        let options = UploadOptions.resumable.with { $0.uploadProtocol = .tus }
        _ = try await manager.upload("up", body: .string("abc"), options: options).value
        #expect(
            transport.requests.map(\.request.options?.timeouts.total) == [.seconds(10), .seconds(8), .seconds(6)])
    }

    @Test func `a session without retries resumes uploads nevertheless, and a lost connection is one of the reasons`()
        async throws
    {
        let clock = ManualClock()
        let count = Lock(0)
        let transport = MockTransport { _ in
            let number = count.withLock {
                $0 += 1; return $0
            }
            if number == 1 { throw TransportError(.connectionLost(.beforeResponse)) }
            if number == 2 {
                return .status(.noContent, headers: try HTTPFields(validating: [("Tus-Resumable", "1.0.0")]))
            }
            if number == 3 { return .status(.created, headers: [.location: "/u"]) }
            return .status(.noContent, headers: try HTTPFields(validating: [("Upload-Offset", "3")]))
        }
        let manager = SessionManager(on: transport) { ($0.clock, $0.randomUnit) = (clock, { 1 }) }
        async let response = manager.upload("up", body: .string("abc"), options: .resumable).value
        #expect(try await clock.passWaits(1) == [.milliseconds(500)])
        #expect(try await response.statusCode == 204)
    }

    @Test func `an untrusted server ends the upload at once`() async throws {
        let transport = MockTransport { _ in throw TransportError(.unsupportedScheme("x")) }
        let manager = SessionManager(on: transport) { $0.clock = ManualClock() }
        let error = try await sessionError {
            _ = try await manager.upload("up", body: .string("abc"), options: .resumable).value
        }
        #expect(error.reason == .unsupportedScheme("x"))
    }

    @Test func `the time limit of the call ends the upload`() async throws {
        let clock = ManualClock()
        let manager = SessionManager(on: MockTransport(.status(.serviceUnavailable))) {
            ($0.clock, $0.randomUnit) = (clock, { 1 })
        }
        async let result = sessionError {
            _ = try await manager.upload("up", body: .string("abc"), timeout: .seconds(2), options: .resumable).value
        }
        #expect(try await clock.passWaits(2) == [.milliseconds(500), .seconds(1)])
        #expect(try await result.statusCode == 503)
    }
}

extension Script.Action {
    fileprivate var isInterim: Bool { if case .informational = self { true } else { false } }
}

extension HTTPField.Name {
    static let uploadMetadata = HTTPField.Name("Upload-Metadata") ?? .range
    static let uploadOffset = HTTPField.Name("Upload-Offset") ?? .range
}
