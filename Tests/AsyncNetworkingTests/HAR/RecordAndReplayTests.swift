// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct RecordAndReplayTests {
    private let directory: TemporaryDirectory
    private var path: String { "\(directory.path)/a.har" }

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Returns a session that sends requests by a transport and records them.
    private func recording(_ transport: any Transport, mode: RecordingMode = .record) throws -> SessionManager {
        SessionManager(on: try RecordingTransport(wrapping: transport, to: path, mode: mode))
    }

    private func replaying(_ matching: ReplayMatching = .anyOrder) throws -> SessionManager {
        SessionManager(on: try ReplayTransport(from: path, matching: matching))
    }

    private static let numbered = MockTransport { request in .text("\(request.method) \(request.url.lastPathComponent)")
    }

    private func failure(_ body: () async throws -> Void) async throws -> String {
        try #require(await #expect(throws: ReplayFailure.self) { try await body() }).description
    }

    @Test func `a body that was lost when it was recorded is not replayed as a complete one`() async throws {
        let lost = TransportError(.connectionLost(.inBody(received: 2, expected: 4)))
        let transport = MockTransport(
            MockResponse([.head(.ok, [.contentLength: "4"]), .chunk(Data("01".utf8)), .fail(lost)]))
        func read(_ manager: SessionManager) async throws {
            try await manager.withResponse(for: manager.request(.get, "a")) { _, body in
                for try await _ in body {}
            }
        }
        await #expect(throws: SessionError.self) { try await read(recording(transport)) }
        #expect(try await failure { try await read(replaying()) }.contains("failed when it was recorded"))
    }

    /// Records with a `HARRecorder`, replays, and returns the transport that replays.
    private func replayingArchive(
        on transport: any Transport, maximumBodySize: Int = 64 << 10,
        configure: (inout SessionConfiguration) -> Void = { _ in },
        _ body: (SessionManager) async throws -> Void
    ) async throws -> ReplayTransport {
        let recorder = try HARRecorder(path: path, maximumBodySize: maximumBodySize)
        var configuration = SessionConfiguration.on(transport, configure: configure)
        recorder.install(in: &configuration)
        try await body(SessionManager(configuration))
        try await recorder.close()
        return try ReplayTransport(from: path)
    }

    @Test func `a body that was lost when it was recorded in an archive is not replayed as a complete one`()
        async throws
    {
        let lost = TransportError(.connectionLost(.inBody(received: 2, expected: 4)))
        let transport = MockTransport(
            MockResponse([.head(.ok, [.contentLength: "4"]), .chunk(Data("01".utf8)), .fail(lost)]))
        let replay = try await replayingArchive(on: transport) { _ = try? await $0.get("a") }
        let text = try await failure { _ = try await SessionManager(on: replay).get("a") }
        #expect(text == "GET http://a.example/v1/a failed when it was recorded: \(lost)")
    }

    @Test(
        arguments: [
            (0, "was recorded without its body"), (3, "was recorded in part: the first 3 of 6 bytes"), (6, nil),
        ] as [(Int, String?)])
    func `a body that was recorded in part is not replayed`(limit: Int, expected: String?) async throws {
        let replay = try await replayingArchive(on: MockTransport(.text("abcdef")), maximumBodySize: limit) {
            _ = try await $0.get("a")
        }
        guard let expected else {
            #expect(try await SessionManager(on: replay).get("a").text == "abcdef")
            return
        }
        let text = try await failure { _ = try await SessionManager(on: replay).get("a") }
        #expect(text == "The response to GET http://a.example/v1/a \(expected)")
        #expect(try await recording(Self.numbered, mode: .update).get("a").text == "GET a")
        #expect(try await replaying().get("a").text == "GET a")
    }

    @Test func `a body of which only the beginning was read ends there with an error`() async throws {
        let transport = MockTransport(
            MockResponse([.head(.ok, [.contentLength: "6"]), .chunk(Data("abc".utf8)), .chunk(Data("def".utf8))]))
        func beginning(_ manager: SessionManager) async throws -> String {
            try await manager.withResponse(for: manager.request(.get, "a")) { head, body in
                for try await chunk in body {
                    return "\(head.contentLength ?? 0) \(String(decoding: chunk, as: UTF8.self))"
                }
                return ""
            }
        }
        #expect(try await beginning(recording(transport)) == "6 abc")
        #expect(try await beginning(replaying()) == "6 abc")
        #expect(try await beginning(recording(Self.numbered, mode: .update)) == "6 abc")
        let text = try await failure { _ = try await replaying().get("a") }
        #expect(text == "The response to GET http://a.example/v1/a was recorded in part")
    }

    @Test func `a cassette is written when its first transport is created, and when an exchange is added`() async throws
    {
        func number() throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int
        }
        let manager = try recording(Self.numbered, mode: .update)
        #expect(try HAR(directory.read("a.har")).entries.isEmpty)
        _ = try await manager.get("a")
        let first = try number()
        let update = try recording(Self.numbered, mode: .update)
        _ = try await update.get("a")
        #expect(try number() == first)
        _ = try await update.get("b")
        #expect(try number() != first)
        #expect(try HAR(directory.read("a.har")).entries.count == 2)
    }

    /// The end of a body after its beginning has arrived, as the reader of a rejection sees it.
    enum RejectedEnd: CaseIterable, Sendable { case late, lost, cancelled }

    @Test(arguments: [true, false], RejectedEnd.allCases)
    func `a rejection is recorded whatever became of its body, and a cancellation is one`(
        byRecorder: Bool, end: RejectedEnd
    ) async throws {
        let lost = TransportError(.connectionLost(.inBody(received: 3, expected: 6)))
        let clock = ManualClock()
        let transport = MockTransport(
            MockResponse([
                .head(.internalServerError, [.contentLength: "6"]), .chunk(Data("abc".utf8)),
                end == .lost ? .fail(lost) : .hang,
            ]))
        func rejection(_ manager: SessionManager, waits: Bool) async throws -> Data? {
            let request = try manager.request(.get, "a")
            let result = Task { try await manager.withResponse(for: request, validating: .statusOnly) { _, _ in } }
            if waits {
                _ = try await clock.sleepers(count: 1)
                if end == .cancelled { result.cancel() } else { clock.advance(by: .seconds(1)) }
            }
            do {
                try await result.value
                return nil
            } catch let error as SessionError {
                return error.responseBody
            }
        }
        func record(_ manager: SessionManager) async throws {
            if end == .cancelled {
                await #expect(throws: CancellationError.self) { _ = try await rejection(manager, waits: true) }
            } else {
                #expect(try await rejection(manager, waits: end == .late) == Data("abc".utf8))
            }
        }
        if byRecorder {
            _ = try await replayingArchive(on: transport, configure: { $0.clock = clock }, record)
        } else {
            try await record(
                SessionManager(on: try RecordingTransport(wrapping: transport, to: path)) { $0.clock = clock })
        }
        let entry = try #require(try HAR(directory.read("a.har")).entries.first)
        #expect((entry.error != nil) == (end == .cancelled))
        #expect(entry.response.content.isTruncated == nil)
        guard end != .cancelled else { return }
        #expect(try await rejection(replaying(), waits: false) == Data("abc".utf8))
    }

    @Test(arguments: [MockResponse.status(.noContent), .status(.ok, headers: ["Content-Length": "0"])])
    func `a response without content is recorded whole although it is not read`(response: MockResponse) async throws {
        let manager = try recording(MockTransport(response))
        try await manager.withResponse(for: manager.request(.get, "a")) { _, _ in }
        #expect(try await replaying().get("a").text.isEmpty)
    }

    @Test func `exchanges that are added to an ordered cassette have the place in which they were sent`() async throws {
        let recorded = try recording(Self.numbered)
        for path in ["a", "b"] { _ = try await recorded.get(path) }
        for _ in 0..<2 {
            let transport = try RecordingTransport(
                wrapping: Self.numbered, to: path, mode: .update, matching: .ordered)
            let updated = SessionManager(on: transport)
            for path in ["a", "c", "b", "d"] { _ = try await updated.get(path) }
        }
        let ordered = try replaying(.ordered)
        for path in ["a", "c", "b", "d"] { #expect(try await ordered.get(path).text == "GET \(path)") }
        #expect(try HAR(Data(contentsOf: URL(filePath: path))).entries.count == 4)
    }

    @Test func `a body of which only the beginning was read is not replayed`() async throws {
        let transport = MockTransport(MockResponse(chunks: [Data("abc".utf8), Data("def".utf8)]))
        let replay = try await replayingArchive(on: transport) { manager in
            try await manager.withResponse(for: manager.request(.get, "a")) { _, body in
                for try await _ in body { break }
            }
        }
        let text = try await failure { _ = try await SessionManager(on: replay).get("a") }
        #expect(text == "The response to GET http://a.example/v1/a was recorded in part")
    }

    @Test(arguments: [true, false], ["received", "waiting", "lost"])
    func `a response that was received for a decision only is replayed, whatever became of its body`(
        byRecorder: Bool, body: String
    ) async throws {
        var steps: [MockResponse.Step] = [.head(.serviceUnavailable, [.contentLength: "6"]), .chunk(Data("abc".utf8))]
        switch body {
        case "received": steps.append(.chunk(Data("def".utf8)))
        case "waiting": steps.append(.hang)
        default: steps.append(.fail(TransportError(.connectionLost(.inBody(received: 3, expected: 6)))))
        }
        let transport = MockTransport(MockResponse(steps), .text("end"))
        let (chunks, continuation) = AsyncStream<Data>.makeStream()
        func configure(_ configuration: inout SessionConfiguration) {
            configuration.retryPolicy = RetryPolicy(limit: 1)
            configuration.retryPolicy.decision = { context in
                guard case .success = context.result else { return .stop }
                for await _ in chunks { break }
                return .retry(after: .zero)
            }
            configuration.attemptInterceptors = [
                Intercepting { request, next in
                    var response = try await next(request)
                    response.body = response.body.transforming {
                        continuation.yield($0); return $0
                    }
                    return response
                }
            ]
        }
        func get(_ manager: SessionManager) async throws {
            let request = try manager.request(.get, "a")
            let data = try await manager.withResponse(for: request) { _, body in try await body.collect(upTo: 100) }
            #expect(data == Data("end".utf8))
        }
        var replay: ReplayTransport
        if byRecorder {
            replay = try await replayingArchive(on: transport, maximumBodySize: 4, configure: configure, get)
        } else {
            try await get(
                SessionManager(on: try RecordingTransport(wrapping: transport, to: path), configure: configure))
            replay = try ReplayTransport(from: path)
        }
        try await get(SessionManager(on: replay, configure: configure))
        #expect(replay.unused == [])
    }

    @Test func `responses of the cache are not those of a server`() async throws {
        let answer = MockResponse(
            headers: [.cacheControl: "max-age=60", .eTag: "\"1\""], chunks: [Data("stored".utf8)])
        let transport = MockTransport { $0.headers[.ifNoneMatch] == nil ? answer : .status(.notModified) }
        func get(_ manager: SessionManager) async throws {
            for policy in [nil, nil, CachePolicy.revalidate] {
                var request = try manager.request(.get, "a")
                request.cachePolicy = policy
                #expect(try await manager.data(for: request).text == "stored")
            }
        }
        let replay = try await replayingArchive(on: transport) {
            $0.cache = .memory()
        } _: { manager in
            try await get(manager)
        }
        #expect(try HAR(directory.read("a.har")).entries.map(\.source) == [nil, "cache", "validated", nil])
        #expect(replay.unused.count == 2)
        try await get(SessionManager(on: replay) { $0.cache = .memory() })
        #expect(replay.unused == [])
        let text = try await failure { _ = try await SessionManager(on: replay).get("b") }
        #expect(text.contains("The nearest one is number 1, "))
        let ordered = SessionManager(on: try ReplayTransport(from: path, matching: .ordered))
        #expect(try await ordered.get("a").text == "stored")
        #expect(try await failure { _ = try await ordered.get("b") }.contains("The next one is number 4, "))
    }

    @Test(arguments: [true, false], [1, 2])
    func `a call that was hedged is replayed as it ended`(byRecorder: Bool, winner: Int) async throws {
        let clock = ManualClock()
        let gate = try ScriptGate()
        let count = Lock(0)
        let transport = MockTransport(clock: clock) { request in
            if request.url.lastPathComponent == "w" { return MockResponse([.pause(.milliseconds(10)), .head(.ok)]) }
            let number = count.withLock {
                $0 += 1; return $0
            }
            return number == winner ? MockResponse([.wait(gate), .head(.ok), .chunk(Data("\(number)".utf8))]) : .hang
        }
        func run(_ manager: SessionManager) async throws {
            for _ in 0..<20 {
                async let response = manager.get("w")
                _ = try await clock.passWaits(1)
                _ = try await response
            }
            async let response = manager.get("x")
            _ = try await clock.passWaits(1)
            try await transport.requests(count: 22)
            gate.open()
            #expect(try await response.text == "\(winner)")
        }
        func configure(_ configuration: inout SessionConfiguration) {
            (configuration.clock, configuration.interceptors) = (clock, [Hedging()])
        }
        var replay: ReplayTransport
        if byRecorder {
            replay = try await replayingArchive(on: transport, configure: configure, run)
            let errors = try HAR(directory.read("a.har")).entries.compactMap(\.error)
            #expect(errors == [HAR.Entry.superseded])
        } else {
            try await run(
                SessionManager(on: try RecordingTransport(wrapping: transport, to: path), configure: configure))
            replay = try ReplayTransport(from: path)
        }
        #expect(replay.unused.count == 21)
        #expect(try await SessionManager(on: replay).get("x").text == "\(winner)")
        // A cassette that is updated keeps what ended.
        let update = try recording(Self.numbered, mode: .update)
        #expect(try await update.get("x").text == "\(winner)")
        #expect(try await update.get("x").text == "GET x")
    }

    @Test(arguments: [RecordingMode.record, .update])
    func `a streamed body is recorded also if the request has fields about its length`(mode: RecordingMode) async throws
    {
        func send(_ manager: SessionManager) async throws -> String {
            let chunked = try manager.request(
                .post, "a", body: .stream(AsyncStreamOf([Data("abc".utf8)])),
                headers: [.transferEncoding: "chunked"])
            return try await manager.data(for: chunked).text
        }
        let transport = MockTransport { _ in .text("x") }
        #expect(try await send(recording(transport, mode: mode)) == "x")
        #expect(transport.requests.map(\.body) == [Data("abc".utf8)])
        #expect(try await send(recording(Self.numbered, mode: .update)) == "x")
        #expect(try await send(replaying()) == "x")
    }

    @Test(arguments: [ContentCoding.gzip, .deflate])
    func `a compressed body is recorded and compared decompressed, without its secrets`(
        coding: ContentCoding
    ) async throws {
        func send(_ manager: SessionManager, _ text: String) async throws {
            var request = try manager.request(
                .post, "a", body: .string(text), headers: [.contentType: "application/json"])
            request.compressBody(coding, minimumSize: 0)
            _ = try await manager.data(for: request)
        }
        try await send(recording(Self.numbered), #"{"password":"SECRET","a":1}"#)
        let archive = try HAR(directory.read("a.har"))
        #expect(archive.entries[0].request.postData?.text == #"{"password":"…","a":1}"#)
        #expect(try archive.places(of: ["SECRET"]) == [])
        try await send(replaying(), #"{"a":1,"password":"another"}"#)
        let text = try await failure { try await send(replaying(), #"{"a":2,"password":"another"}"#) }
        #expect(text.contains("It differs: body"))
    }

    @Test func `a body in an unknown coding is not recorded, and not compared`() async throws {
        func send(_ manager: SessionManager, _ text: String) async throws {
            _ = try await manager.data(
                for: manager.request(.post, "a", body: .string(text), headers: [.contentEncoding: "br"]))
        }
        try await send(recording(Self.numbered), "SECRET")
        #expect(try HAR(directory.read("a.har")).places(of: ["SECRET"]) == [])
        try await send(replaying(), "another")
    }

    @Test func `a response that is not decompressed for the client is replayed without its compression`() async throws {
        let body = RequestBody.string(#"{"token":"SECRET","a":1}"#).compressed(.gzip)
        let transport = MockTransport(
            .data(try #require(body.bytes), headers: [.contentType: "application/json", .contentEncoding: "gzip"]))
        let manager = SessionManager(on: try RecordingTransport(wrapping: transport, to: path)) {
            $0.decodesContent = false
        }
        #expect(try await manager.get("a").value == body.bytes)
        #expect(try HAR(directory.read("a.har")).places(of: ["SECRET"]) == [])
        let replayed = try await replaying().get("a")
        #expect(replayed.text == #"{"token":"…","a":1}"#)
        #expect(replayed.head.headers[.contentEncoding] == nil)
    }

    @Test(arguments: [("br", nil), ("gzip, gzip", nil), ("gzip", 40)] as [(String, Int?)])
    func `nothing is recorded of a response that cannot be decoded, and no secret of one that is cut off`(
        coding: String, length: Int?
    ) async throws {
        let text = #"{"token":"SECRET","a":"\#(String(repeating: "0123456789", count: 20))"}"#
        let body = try #require(RequestBody.string(text).compressed(.gzip).bytes)
        let headers: HTTPFields = [.contentType: "application/json", .contentEncoding: coding]
        let transport = MockTransport(.data(body.prefix(length ?? body.count), headers: headers))
        let manager = SessionManager(on: try RecordingTransport(wrapping: transport, to: path)) {
            $0.decodesContent = false
        }
        _ = try await manager.get("a")
        let archive = try HAR(directory.read("a.har"))
        let content = archive.entries[0].response.content
        #expect(content.encoding == nil)
        #expect(content.isTruncated == true)
        #expect(try archive.places(of: ["SECRET"]) == [])
        if length == nil {
            #expect(content.text == nil)
            #expect(content.comment == "a body in the coding \(coding), which is not recorded")
        } else {
            #expect(content.text?.hasPrefix(#"{"token":"…","a":"0123"#) == true, "\(content.text ?? "")")
        }
        let failure = try await failure { _ = try await replaying().get("a") }
        let part = length == nil ? "without its body" : "in part"
        #expect(failure.hasPrefix("The response to GET http://a.example/v1/a was recorded \(part): "), "\(failure)")
        #expect(try await recording(Self.numbered, mode: .update).get("a").text == "GET a")
    }

    @Test(arguments: [200, 404])
    func `a response that cannot be decoded and is not passed on is replayed without its body`(
        status: Int
    ) async throws {
        let transport = MockTransport(
            MockResponse(
                status: .init(code: status), headers: [.contentEncoding: "br"], chunks: [Data("abc".utf8)]))
        var request = Request(url: try url("http://a.example/v1/a"))
        request.options = TransferOptions()
        request.options?.decodesContent = false
        let response = try await RecordingTransport(wrapping: transport, to: path).open(
            request, delivery: .streamed, reporting: nil)
        #expect(try await response.body.next() == Data("abc".utf8))
        response.body.noteDisuse?()
        await response.close()
        let replayed = try await ReplayTransport(from: path).open(
            request, delivery: .collected(upTo: 100), reporting: nil)
        #expect(replayed.head.status.code == status)
        #expect(try await replayed.body.next() == nil)
        await replayed.close()
    }

    @Test func `the beginning that was read of a compressed body is replayed by an update`() async throws {
        let text = #"{"token":"SECRET","a":"\#(String(repeating: "0123456789", count: 20))"}"#
        let compressed = try #require(RequestBody.string(text).compressed(.gzip).bytes)
        let transport = MockTransport(
            MockResponse(
                headers: [.contentType: "application/json", .contentEncoding: "gzip"],
                chunks: [compressed.prefix(40), compressed.dropFirst(40)]))
        func beginning(_ transport: any Transport, _ mode: RecordingMode) async throws -> String {
            let manager = SessionManager(on: try RecordingTransport(wrapping: transport, to: path, mode: mode)) {
                $0.decodesContent = false
            }
            return try await manager.withResponse(for: manager.request(.get, "a")) { _, body in
                for try await chunk in body { return String(decoding: chunk, as: UTF8.self) }
                return ""
            }
        }
        _ = try await beginning(transport, .record)
        let replayed = try await beginning(Self.numbered, .update)
        #expect(replayed.hasPrefix(#"{"token":"…","a":"0123"#), "\(replayed)")
        let failure = try await failure { _ = try await replaying().get("a") }
        #expect(failure == "The response to GET http://a.example/v1/a was recorded in part")
    }

    @Test(
        arguments: [
            ("GET", 200, nil, 9, false), ("POST", 206, nil, 9, false), ("GET", 200, "", 9, true),
            ("GET", 200, nil, 0, true), ("GET", 200, nil, -1, true), ("HEAD", 200, nil, 9, true),
            ("GET", 204, nil, 9, true), ("GET", 404, nil, 9, true), ("GET", 304, nil, 9, true),
        ] as [(String, Int, String?, Int64, Bool)])
    func `a response whose body an archive does not have is not an empty one`(
        method: String, status: Int, text: String?, size: Int64, isReplayed: Bool
    ) async throws {
        let sent = Request(method: try #require(HTTPRequest.Method(method)), url: try url("http://a.example/v1/a"))
        var entry = HAR.Entry(startedDateTime: "", request: HAR.Request(sent), timings: HAR.Timings())
        (entry.response.status, entry.response.content.text, entry.response.content.size) = (status, text, size)
        _ = try directory.write(HAR(entries: [entry]).data(), to: "a.har")
        func send(_ manager: SessionManager) async throws -> String {
            try await manager.withResponse(for: manager.request(sent.method, "a")) { head, body in
                "\(head.status.code) \(String(decoding: try await body.collect(upTo: 100), as: UTF8.self))"
            }
        }
        if isReplayed {
            #expect(try await send(replaying()) == "\(status) ")
        } else {
            let text = try await failure { _ = try await send(replaying()) }
            #expect(text == "The response to \(method) http://a.example/v1/a was recorded without its body")
            #expect(try await send(recording(Self.numbered, mode: .update)) == "200 \(method) a")
        }
    }

    @Test func `an archive with secrets is replayed without them, and no message has one`() async throws {
        func send(_ manager: SessionManager, _ secret: String, to path: String = "login") async throws -> String {
            try await manager.post(
                "\(path)?token=\(secret)", body: .json(["password": secret]), headers: [.cookie: "a=\(secret)"]
            ).text
        }
        let manager = SessionManager(
            on: try RecordingTransport(wrapping: Self.numbered, to: path, redacting: .none))
        for _ in 0..<2 { _ = try await send(manager, "SECRET") }
        let (text, body) = (String(decoding: try directory.read("a.har"), as: UTF8.self), #"{\"password\":\"SECRET\"}"#)
        #expect(text.contains("token=SECRET") && text.contains(body))
        #expect(try await send(replaying(), "another") == "POST login")
        let replay = try ReplayTransport(from: path)
        let failure = try await failure { _ = try await send(SessionManager(on: replay), "another", to: "x") }
        let custom = ReplayMatching.custom { _, recorded in
            !"\(recorded.headers) \(recorded.url) \(recorded.body)".contains("SECRET")
        }
        #expect(try await send(replaying(custom), "another") == "POST login")
        for text in replay.unused + [failure] { #expect(!text.contains("SECRET"), "\(text)") }
    }

    @Test(arguments: ["", "gzip", "br"])
    func `a body that is not text is compared without its secrets, whether the archive has them or not`(
        coding: String
    ) async throws {
        func send(_ manager: SessionManager, _ secret: String) async throws -> String {
            var form = Data("--B\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\n\(secret)\r\n".utf8)
            form += Data("--B\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n".utf8)
            form += Data(repeating: 0x90, count: 500)
            form += Data("\r\n--B--\r\n".utf8)
            var body = RequestBody.bytes(form)
            var headers: HTTPFields = [.contentType: "multipart/form-data; boundary=B"]
            if !coding.isEmpty {
                body = body.compressed(.gzip)
                headers[.contentEncoding] = coding
            }
            return try await manager.data(for: manager.request(.post, "a", body: body, headers: headers)).text
        }
        for redaction in [Redaction.none, .byName] {
            let transport = try RecordingTransport(wrapping: Self.numbered, to: path, redacting: redaction)
            _ = try await send(SessionManager(on: transport), "SECRET")
            let post = try #require(try HAR(directory.read("a.har")).entries.first?.request.postData)
            let isHidden = redaction == .byName && coding == "br"
            #expect((post.encoding == nil) == isHidden)
            #expect(try await send(replaying(), "another") == "POST a")
            let custom = ReplayMatching.custom { _, recorded in
                let text = String(decoding: recorded.body.bytes ?? Data(), as: UTF8.self)
                return text.contains(coding == "br" ? "…" : "name=\"f\"") && !text.contains("SECRET")
            }
            #expect(try await send(replaying(custom), "another") == "POST a")
        }
    }

    @Test(arguments: [RequestBody.writer { try await $0.write(Data("abc".utf8)) }, .string("abc")])
    func `trailers are made once for a body that is read`(body: RequestBody) async throws {
        let (transport, count) = (MockTransport(.text("x")), Lock(0))
        var request = Request(method: .post, url: try url("http://a.example/x"))
        request.body = body
        request.trailers = {
            let number = count.withLock {
                $0 += 1; return $0
            }
            return [.contentDigest: "\(number)"]
        }
        let recording = try RecordingTransport(wrapping: transport, to: path)
        try await recording.open(request, delivery: .streamed, reporting: nil).close()
        #expect(transport.requests.map(\.trailers) == [[.contentDigest: "1"]])
        #expect(count.withLock(\.self) == 1)
    }

    @Test func `a canary finds a secret in a compressed body`() async throws {
        let body = RequestBody.string("SECRET").compressed(.gzip)
        let headers: HTTPFields = [.contentEncoding: "gzip"]
        let transport = MockTransport(.data(try #require(body.bytes), headers: headers))
        let manager = SessionManager(on: try RecordingTransport(wrapping: transport, to: path, redacting: .none))
        _ = try await manager.data(for: manager.request(.post, "a", body: body, headers: headers))
        let places = try HAR(directory.read("a.har")).places(of: ["SECRET"])
        #expect(places == ["0.request.postData.text", "0.response.content.text"])
    }

    @Test func `what was recorded is replayed, with redirects, bodies and fields`() async throws {
        let transport = MockTransport(
            .redirect(.found, to: "/b"), .json(#"{"n":1}"#, status: .created),
            .data(Data([0xFF, 0x00]), headers: [.contentType: "image/png"]), .status(.noContent))
        func run(_ manager: SessionManager) async throws -> [String] {
            let first = try await manager.post("a?page=1", body: .json(["a": "ä"]))
            var chunks = Data()
            try await manager.withResponse(for: manager.request(.get, "c")) { _, body in
                for try await chunk in body { chunks += chunk }
            }
            let last = try await manager.delete("d")
            return [
                "\(first.statusCode) \(first.text) \(first.head.redirectHistory.count)", "\(Array(chunks))",
                "\(last.statusCode)",
            ]
        }
        let recorded = try await run(recording(transport))
        #expect(recorded == [#"201 {"n":1} 1"#, "[255, 0]", "204"])
        #expect(HARSchema.problems(in: try directory.read("a.har")) == [])
        let replay = try ReplayTransport(from: path)
        #expect(replay.unused.count == 4)
        #expect(try await run(SessionManager(on: replay)) == recorded)
        #expect(replay.unused == [])
    }

    @Test func `an exchange is replayed once, in any order or in the recorded one`() async throws {
        let recorder = try recording(Self.numbered)
        for path in ["1", "2", "1"] { _ = try await recorder.get(path) }

        let replay = try replaying()
        for path in ["1", "1", "2"] { #expect(try await replay.get(path).text == "GET \(path)") }
        let text = try await failure { _ = try await replay.get("1") }
        #expect(text == "No recorded exchange is left for GET http://a.example/v1/1. It was replayed 2 times.")
        let other = try await failure { _ = try await replay.get("3") }
        #expect(
            other == "No recorded exchange is left for GET http://a.example/v1/3. The nearest one is number 1, "
                + "GET http://a.example/v1/1. It differs: path “/v1/3” instead of “/v1/1”.")

        let ordered = try replaying(.ordered)
        #expect(try await ordered.get("1").text == "GET 1")
        let next = try await failure { _ = try await ordered.get("1") }
        #expect(
            next == "No recorded exchange is left for GET http://a.example/v1/1. It was replayed once. "
                + "The next one is number 2, GET http://a.example/v1/2. It differs: path “/v1/1” instead of “/v1/2”.")
        #expect(try await ordered.get("2").text == "GET 2")
    }

    @Test(
        arguments: [
            (
                .get, "users/7?page=2&x=1", nil,
                "number 1, GET http://a.example/v1/users/7?page=1. It differs: "
                    + "query parameter page “2” instead of “1”; query parameter x “1” instead of “(none)”."
            ),
            (
                .put, "users/7?page=1", nil,
                "number 1, GET http://a.example/v1/users/7?page=1. It differs: "
                    + "method “PUT” instead of “GET”."
            ),
            (
                .post, "orders", "a=1&b=3",
                "number 2, POST http://a.example/v1/orders. It differs: "
                    + "body from byte 6 on, “3” instead of “2”."
            ),
            (
                .get, "http://b.example/v1/users/7?page=1", nil,
                "number 1, GET http://a.example/v1/users/7?page=1. "
                    + "It differs: origin “http://b.example” instead of “http://a.example”."
            ),
        ] as [(HTTPRequest.Method, String, String?, String)])
    func `a missing request fails with the nearest one and the difference`(
        method: HTTPRequest.Method, target: String, body: String?, expected: String
    ) async throws {
        let recorder = try recording(Self.numbered)
        _ = try await recorder.get("users/7?page=1")
        _ = try await recorder.data(for: recorder.request(.post, "orders", body: .string("a=1&b=2")))
        let replay = try replaying()
        let text = try await failure {
            _ = try await replay.data(for: replay.request(method, target, body: body.map { .string($0) } ?? .none))
        }
        #expect(text.hasSuffix("The nearest one is " + expected), "\(text)")
    }

    @Test func `secrets are not recorded, and requests match without them`() async throws {
        func send(_ manager: SessionManager, _ secret: String) async throws -> String {
            try await manager.post(
                "login?token=\(secret)&page=1", body: .json(["password": secret, "user": "ada"]),
                headers: [.authorization: "Bearer \(secret)"]
            ).text
        }
        let answer = MockResponse.json(#"{"access_token": "SECRET", "n": 1}"#)
        _ = try await send(recording(MockTransport(answer)), "SECRET")
        #expect(try await send(replaying(), "another") == #"{"access_token": "…", "n": 1}"#)
        let archive = try HAR(directory.read("a.har"))
        #expect(try archive.places(of: ["SECRET", ""]) == [])
        #expect(try archive.places(of: ["ada", "page"]).isEmpty == false)
    }

    @Test func `a canary finds secrets in all forms`() async throws {
        let transport = try RecordingTransport(wrapping: Self.numbered, to: path, redacting: .none)
        let manager = SessionManager(on: transport)
        let basic = "Basic " + Data("user:s e/cret".utf8).base64EncodedString()
        _ = try await manager.get("x?a=s%20e%2Fcret", headers: [.authorization: basic, .cookie: "a=s e/cret"])
        let places = try HAR(directory.read("a.har")).places(of: ["s e/cret"])
        #expect(
            places == [
                "0.request.cookies.0.value", "0.request.headers.0.value", "0.request.headers.1.value",
                "0.request.queryString.0.value", "0.request.url",
            ])
    }

    private static let forms: [(String, String)] = [
        ("a form", "user=ada&auth=c2UvY3LDpHQ="), ("text", "auth=c2UvY3LDpHQ= end"), ("JSON", #"{"a":"c2UvY3LDpHQ="}"#),
        ("credentials in a form", "user=ada&auth=dXNlcjpzZS9jcsOkdA=="),
        ("Base64 without padding", "Basic dTpzZS9jcsOkdA"), ("Base64 in the middle", "x/eHl6LXNlL2Nyw6R0LXh5eg"),
        ("Base64 for URLs", "eyJhIjoic2UvY3LDpHQifQ.eyJhIjoi_3NlL2Nyw6R0In0.x_-"), ("in lines", "eHl6LXNl\r\nL2Nyw6R0"),
        ("lower case", "a=se%2fcr%c3%a4t"), ("JSON escapes", #"{"a":"se\/cr\u00e4t"}"#),
        ("Base64 in JSON in a form", "a=%7b%22b%22%3a%22c2UvY3LDpHQ%3d%22%7d"), ("plain", "se/crät"),
    ]

    @Test(arguments: forms)
    func `a canary finds a secret in each encoding`(name: String, text: String) throws {
        var entry = HAR.Entry(
            startedDateTime: "", request: HAR.Request(try Request(url: url("http://a.example/"))),
            timings: HAR.Timings())
        entry.request.postData = HAR.PostData(mimeType: "text/plain", text: text)
        let archive = HAR(entries: [entry])
        #expect(try archive.places(of: ["se/crät"]) == ["0.request.postData.text"])
        #expect(try archive.places(of: ["se/crat"]) == [])
    }

    @Test(arguments: ["a=pass+word", #"{"a":"pa\"ss\nword"}"#, #"{"a":"\ud83d\ude00"}"#])
    func `a canary finds spaces of forms, escaped characters and pairs of surrogates`(text: String) throws {
        var entry = HAR.Entry(
            startedDateTime: "", request: HAR.Request(try Request(url: url("http://a.example/"))),
            timings: HAR.Timings())
        entry.response.content.text = text
        let places = try HAR(entries: [entry]).places(of: ["pass word", "pa\"ss\nword", "😀"])
        #expect(places == ["0.response.content.text"])
    }

    @Test(arguments: ["se/crät", "auth=c2UvY3LDpHQ=", "a=se%2Fcr%C3%A4t", #"{"a":"se\/cr\u00e4t"}"#])
    func `a canary finds secrets in bodies that are not text`(text: String) throws {
        let bytes = (Data([0xFF, 0x00]) + Data(text.utf8) + Data([0xFF])).base64EncodedString()
        var entry = HAR.Entry(
            startedDateTime: "", request: HAR.Request(try Request(url: url("http://a.example/"))),
            timings: HAR.Timings())
        entry.time = 1e200
        entry.request.postData = HAR.PostData(mimeType: "image/png", text: bytes, encoding: "base64")
        entry.response.content.text = bytes
        entry.response.content.encoding = "base64"
        let places = try HAR(entries: [entry]).places(of: ["se/crät"])
        #expect(places == ["0.request.postData.text", "0.response.content.text"])
    }

    @Test func `a response of any archive has the fields of the body that is replayed`() async throws {
        var entry = HAR.Entry(
            startedDateTime: "", request: HAR.Request(try Request(url: url("http://a.example/v1/a"))),
            timings: HAR.Timings())
        entry.response.status = 200
        entry.response.headers = [
            HAR.Pair("content-length", "900"), HAR.Pair("Repr-Digest", "sha-256=:AA==:"), HAR.Pair("Digest", "md5=AA"),
            HAR.Pair("ETag", "\"1\""),
        ]
        for (text, fields) in [
            ("{}", [.contentLength: "2", .eTag: "\"1\""]),
            (nil, entry.response.headers.reduce(into: [:]) { $0[HTTPField.Name($1.name) ?? .eTag] = $1.value }),
        ] as [(String?, HTTPFields)] {
            entry.response.content.text = text
            _ = try directory.write(HAR(entries: [entry]).data(), to: "a.har")
            #expect(try await replaying().get("a").head.headers == fields)
        }
    }

    @Test func `a response whose body an interceptor does not read is replayed`() async throws {
        func session(on transport: any Transport) -> SessionManager {
            SessionManager(on: transport) {
                $0.attemptInterceptors = [
                    Intercepting { request, next in
                        var response = try await next(request)
                        while response.head.status == .accepted { response = try await next(request) }
                        return response
                    }
                ]
            }
        }
        let server = MockTransport(.text("wait", status: .accepted), .text("end"))
        #expect(try await session(on: RecordingTransport(wrapping: server, to: path)).get("a").text == "end")
        #expect(try await session(on: ReplayTransport(from: path)).get("a").text == "end")
    }

    @Test func `a body in an archive that was not read fails a replay`() async throws {
        let transport = MockTransport(.data(Data("text".utf8), headers: [.contentLength: "4"]))
        let replay = try await replayingArchive(on: transport) { session in
            try await session.withResponse(for: session.request(.get, "a")) { _, _ in }
        }
        #expect(try await failure { _ = try await SessionManager(on: replay).get("a") }.contains("recorded"))
    }

    @Test(arguments: [("aGVs\nbG8=\n", "Base64", "hello"), ("aGVs!", "base64", nil)] as [(String, String, String?)])
    func `a body in Base64 may have line breaks, and is nothing else`(
        text: String, encoding: String, expected: String?
    ) async throws {
        var entry = HAR.Entry(
            startedDateTime: "", request: HAR.Request(try Request(url: url("http://a.example/v1/a"))),
            timings: HAR.Timings())
        entry.response.status = 200
        (entry.response.content.text, entry.response.content.encoding) = (text, encoding)
        _ = try directory.write(HAR(entries: [entry]).data(), to: "a.har")
        if let expected {
            #expect(try await replaying().get("a").text == expected)
        } else {
            #expect(try await failure { _ = try await replaying().get("a") }.contains("no Base64"))
        }
    }

    @Test(arguments: [false, true])
    func `a shutdown ends an exchange whose request's body has not ended`(isRecording: Bool) async throws {
        let transport = MockTransport(.text("end"))
        let session = try isRecording ? recording(transport) : SessionManager(on: transport)
        let hasBegun = Lock(false)
        let body = RequestBody.writer { writer in
            try await writer.write(Data("a".utf8))
            hasBegun.withLock { $0 = true }
            for await _ in AsyncStream<Never>.makeStream().stream {}
        }
        let request = try session.request(.post, "x", body: body)
        let task = Task { try await session.data(for: request) }
        try await eventually { hasBegun.withLock(\.self) }
        await session.shutdown(draining: .zero)
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `a replayed response without its secrets has the types and the fields of its body`() async throws {
        struct Answer: Decodable, Equatable {
            var usage: [String: Int]
            var session: [String: String]
            var auth: Bool
            var pin: Int
            var token_type: String
            var refresh_tokens: [Int]
        }
        let usage = #"{"usage":{"prompt_tokens":9},"session":{"id":"SECRET"},"auth":true,"pin":1234,"#
        let body = Data((usage + #""token_type":"Bearer","refresh_tokens":[7]}"#).utf8)
        let fields: HTTPFields = [
            .contentType: "application/json", .contentLength: "\(body.count)",
            .contentDigest: "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:",
        ]
        let transport = MockTransport(.data(body, headers: fields))
        _ = try await recording(transport).get("a")
        let response = try await replaying().get("a")
        let expected = Answer(
            usage: ["prompt_tokens": 9], session: ["id": "…"], auth: true, pin: 0, token_type: "Bearer",
            refresh_tokens: [0])
        #expect(try JSONDecoder().decode(Answer.self, from: response.value) == expected)
        #expect(response.head.headers[.contentLength] == "\(response.value.count)")
        #expect(response.head.headers[.contentDigest] == nil)
        #expect(try HAR(directory.read("a.har")).entries[0].response.content.size == Int64(body.count))
    }

    @Test func `what is replayed ends before the requests that clean up`() async throws {
        let manager = try recording(Self.numbered)
        for name in ["a", "b"] { _ = try await manager.get(name) }
        let transports: [any Transport] = [
            try ReplayTransport(from: path),
            try RecordingTransport(wrapping: MockTransport(.text("x")), to: path, mode: .replay),
        ]
        for transport in transports {
            await transport.features.endExchanges?()
            for cleansUp in [false, true] {
                var request = try manager.request(.get, cleansUp ? "a" : "b")
                request.cleansUp = cleansUp
                do {
                    let response = try await transport.open(request, delivery: .collected(upTo: 100), reporting: nil)
                    #expect(cleansUp && response.head.status == .ok)
                    await response.close()
                } catch {
                    #expect(!cleansUp && (error as? TransportError)?.reason == .shutDown)
                }
            }
        }
    }

    @Test func `an update answers nothing after a shutdown`() async throws {
        _ = try await recording(Self.numbered).get("1")
        let transport = try RecordingTransport(wrapping: MockTransport(.text("x")), to: path, mode: .update)
        await transport.shutdown()
        await #expect { _ = try await SessionManager(on: transport).get("1") } throws: { error in
            (error as? SessionError)?.reason == .shutDown
        }
    }

    @Test(arguments: [
        (#"{"a":18446744073709551614}"#, #"{"a":18446744073709551615}"#),
        (#"[0.1]"#, #"[0.1000000000000000055]"#), (#"[12345678901234567890123]"#, #"[12345678901234567890124]"#),
        ("[\(String(repeating: "1", count: 50))0]", "[\(String(repeating: "1", count: 50))1]"),
        ("[1e400]", "[1e401]"), (#"["1"]"#, "[1]"), (#"["n1"]"#, "[1]"), (#"{"a\"1":1}"#, #"{"a\"1":-1}"#),
    ])
    func `numbers of JSON that differ are different bodies`(recorded: String, sent: String) async throws {
        func send(_ manager: SessionManager, _ text: String) async throws {
            _ = try await manager.data(for: manager.request(.post, "a", body: .string(text)))
        }
        _ = try await send(recording(Self.numbered), recorded)
        #expect(try await failure { try await send(replaying(), sent) }.contains("It differs: body"))
        try await send(replaying(), recorded)
    }

    @Test(arguments: ["1e128", "1E+200", "5e-324", "-0.5", "1e400", #""s1""#, #""n\"1""#, #"{"n":[1,"2",true,null]}"#])
    func `members have no order beside any number`(number: String) async throws {
        func send(_ manager: SessionManager, _ text: String) async throws {
            _ = try await manager.data(for: manager.request(.post, "a", body: .string(text)))
        }
        _ = try await send(recording(Self.numbered), #"{"a":\#(number),"b":"x"}"#)
        try await send(replaying(), #"{"b": "x", "a": \#(number)}"#)
    }

    @Test func `a query parameter whose value is how a missing one is shown is not a missing one`() async throws {
        _ = try await recording(Self.numbered).get("1?a=(none)")
        #expect(try await failure { _ = try await replaying().get("1") }.contains("query parameter a"))
    }

    @Test func `a cassette is updated by what is missing in it`() async throws {
        _ = try await recording(Self.numbered).get("1")
        let other = MockTransport { _ in .text("other") }
        let manager = try recording(other, mode: .update)
        #expect(try await manager.get("1").text == "GET 1")
        #expect(try await manager.get("2").text == "other")
        #expect(other.requests.map(\.request.url.lastPathComponent) == ["2"])
        #expect(try HAR(directory.read("a.har")).entries.count == 2)
        let replay = try recording(Self.numbered, mode: .replay)
        #expect(try await replay.get("2").text == "other")
        #expect(try await failure { _ = try await replay.get("3") }.contains("number 1, GET"))
        // The first update begins a cassette.
        let empty = try RecordingTransport(wrapping: other, to: "\(directory.path)/b.har", mode: .update)
        #expect(try await SessionManager(on: empty).get("1").text == "other")
    }

    @Test func `a request that is cancelled while its body is read leaves its exchange to its repetition`() async throws
    {
        _ = try await recording(Self.numbered).post("1", body: .string("abc"))
        let other = MockTransport { _ in .text("other") }
        let transport = try RecordingTransport(wrapping: other, to: path, mode: .update)
        let (gate, cancelled) = (try ScriptGate(), Lock<Task<Void, any Error>?>(nil))
        var request = Request(method: .post, url: try url("http://a.example/v1/1"))
        request.body = .writer { writer in
            try await writer.write(Data("abc".utf8))
            cancelled.withLock(\.self)?.cancel()
        }
        let task = Task { [request] in
            try await gate.wait()
            try await transport.open(request, delivery: .streamed, reporting: nil).close()
        }
        cancelled.withLock { $0 = task }
        gate.open()
        await #expect(throws: CancellationError.self) { try await task.value }
        let repeated = try await SessionManager(on: transport).post("1", body: .string("abc"))
        #expect(repeated.text == "POST 1")
        #expect(other.requests.isEmpty)
    }

    @Test func `a failure in a cassette is replaced by an update`() async throws {
        _ = try? await recording(MockTransport(.failure(TransportError(.shutDown)))).get("1")
        #expect(try await recording(Self.numbered, mode: .update).get("1").text == "GET 1")
        #expect(try await recording(Self.numbered, mode: .replay).get("1").text == "GET 1")
    }

    @Test func `a program chooses how requests match`() async throws {
        _ = try await recording(Self.numbered).get("1?time=1")
        let manager = try replaying(.custom { $0.method == $1.method && $0.url.path == $1.url.path })
        #expect(try await manager.get("1?time=2").text == "GET 1")
    }

    @Test(arguments: ["q=a%20b&r=%C3%A4", "q=a+b", ""])
    func `an archive whose members of the query are decoded, or missing, is replayed`(query: String) async throws {
        let target = query.isEmpty ? "s" : "s?\(query)"
        _ = try await recording(Self.numbered).get(target)
        var archive = try HAR(Data(contentsOf: URL(filePath: path)))
        let members = query.isEmpty ? [HAR.Pair("q", "x")] : query == "q=a+b" ? [] : [HAR.Pair("q", "a b")]
        archive.entries[0].request.queryString = members
        try archive.data().write(to: URL(filePath: path))
        #expect(try await replaying().get(target).text == "GET s")
        #expect(try await failure { _ = try await replaying().get("s?x=1") }.contains("query parameter x"))
    }

    @Test func `a closure that chooses can ask what is left`() async throws {
        _ = try await recording(Self.numbered).get("1")
        let transport = Lock<ReplayTransport?>(nil)
        let replay = try ReplayTransport(
            from: path, matching: .custom { _, _ in transport.withLock(\.self)?.unused.count == 1 })
        transport.withLock { $0 = replay }
        defer { transport.withLock { $0 = nil } }
        #expect(try await SessionManager(on: replay).get("2").text == "GET 1")
        #expect(replay.unused == [])
    }

    @Test func `requests that are sent at once have exchanges of their own`() async throws {
        let recorder = try recording(Self.numbered)
        for _ in 0..<20 { _ = try await recorder.get("1") }
        let replay = try ReplayTransport(from: path, matching: .custom { _, _ in true })
        let manager = SessionManager(on: replay)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { _ = try await manager.get("1") } }
            try await group.waitForAll()
        }
        #expect(replay.unused == [])
    }

    @Test(arguments: [RecordingMode.record, .update])
    func `a pipe is read once, and its bytes are recorded and sent`(mode: RecordingMode) async throws {
        let transport = MockTransport(.text("x"))
        let pipe = try Pipe()
        try pipe.write("abc")
        _ = try await recording(transport, mode: mode).post("a", body: .file(pipe.path))
        #expect(transport.requests.map(\.body) == [Data("abc".utf8)])
        let entry = try #require(try HAR(directory.read("a.har")).entries.first)
        #expect(entry.request.postData?.text == "abc")
    }

    @Test func `waiting for a pipe ends with the task`() async throws {
        let pipe = try Pipe()
        let recorder = try recording(MockTransport(.text("x")))
        let task = Task.immediate { _ = try await recorder.post("a", body: .file(pipe.path)) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    /// A pipe, whose ends are closed with it.
    private final class Pipe {
        private var ends: [Int32] = [0, 0]

        /// The path of the end that is read.
        var path: String { "/proc/self/fd/\(ends[0])" }

        init() throws {
            try unsafe #require(pipe(&ends) == 0)
        }

        deinit { for end in ends { close(end) } }

        /// Writes all that there is to read.
        func write(_ text: String) throws {
            let output = FileDescriptor(takingOwnershipOf: ends.removeLast())
            try output.writeAll(Data(text.utf8).bytes)
        }
    }

    @Test func `a failure is recorded, and replayed as one`() async throws {
        let recorder = try recording(MockTransport(.failure(TransportError(.shutDown))))
        _ = try? await recorder.get("1")
        let text = try await failure { _ = try await replaying().get("1") }
        #expect(text == "GET http://a.example/v1/1 failed when it was recorded: \(TransportError(.shutDown))")
    }

    @Test(arguments: [-1, 0, 99, 1000, .max])
    func `a status that is not one of HTTP is a failure`(status: Int) async throws {
        _ = try await recording(Self.numbered).get("1")
        var archive = try HAR(directory.read("a.har"))
        archive.entries[0].response.status = status
        _ = try directory.write(archive.data(), to: "a.har")
        #expect(try await failure { _ = try await replaying().get("1") }.contains("failed when it was recorded"))
        #expect(try await recording(Self.numbered, mode: .update).get("1").text == "GET 1")
    }

    @Test func `a form with a random boundary is found again, also in the archive of a browser`() async throws {
        func send(_ manager: SessionManager, _ name: String, _ boundary: String, _ file: Data) async throws -> String {
            let body =
                Data("--\(boundary)\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n\(name)\r\n".utf8)
                + Data("--\(boundary)\r\n\r\n".utf8) + file + Data("\r\n--\(boundary)--\r\n".utf8)
            return try await manager.data(
                for: manager.request(
                    .post, "form", body: .bytes(body),
                    headers: [.contentType: "multipart/form-data; boundary=\"\(boundary)\""])
            ).text
        }
        for file in [Data("x".utf8), Data([0xFF, 0xFE])] {
            #expect(try await send(recording(Self.numbered), "ada", "B-one-B", file) == "POST form")
            let text = String(decoding: try directory.read("a.har"), as: UTF8.self)
            #expect(!text.contains("B-one-B"))
            #expect(try await send(replaying(), "ada", "B-two-B", file) == "POST form")
            let other = try await failure { _ = try await send(replaying(), "bob", "B-two-B", file) }
            #expect(other.contains("It differs: body"))
            // Another program has not replaced the boundary.
            _ = try directory.write(
                Data(text.replacing("recorded-boundary", with: "WebKit7").utf8), to: "a.har")
            if file.count == 1 { #expect(try await send(replaying(), "ada", "B-two-B", file) == "POST form") }
        }
    }

    @Test func `a response whose reader was cancelled is not replayed as a complete one`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport(MockResponse([.head(.ok, [:]), .chunk(Data("01".utf8)), .wait(gate)]))
        let reader = Task { [manager = try recording(transport)] in
            try await manager.withResponse(for: manager.request(.get, "a")) { _, body in
                for try await _ in body { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
            }
        }
        await #expect(throws: CancellationError.self) { try await reader.value }
        #expect(try await failure { _ = try await replaying().get("a") }.contains("cancelled"))
    }

    @Test func `the progress of a compressed response is not that of the bytes on the wire`() async throws {
        let headers: HTTPFields = [.contentEncoding: "gzip", .contentLength: "3"]
        let transport = MockTransport(.data(Data(repeating: 7, count: 100), headers: headers))
        let plain = MockTransport(.data(Data("abc".utf8), headers: [.contentLength: "3"]))
        _ = try await recording(transport).get("a")
        let request = Request(url: try url("http://a.example/v1/a"))
        for (transport, total) in [(try ReplayTransport(from: path), nil), (plain, 3)] as [(any Transport, Int64?)] {
            let events = EventRecorder()
            _ = try await transport.open(request, delivery: .collected(upTo: 1000), reporting: events)
            let totals = events.events.compactMap { event -> Int64?? in
                if case .downloadProgress(let progress) = event { .some(progress.totalBytes) } else { nil }
            }
            #expect(totals == [total])
        }
    }

    @Test func `requests over a real connection are recorded, with cookies`() async throws {
        try await StubServer.with { server in
            server.route("/a", .text("x"))
            let real = try SessionConfiguration { $0.proxy = .none }.makeTransport()
            let transport = try RecordingTransport(wrapping: real, to: path)
            let manager = SessionManager(baseURL: server.url("/")) { $0.transport = transport }
            let stream = RequestBody.stream(AsyncStreamOf([Data("ab".utf8), Data("c".utf8)]))
            let response = try await manager.data(for: manager.request(.put, "a", body: stream))
            #expect(response.text == "x")
            #expect(server.activity.requests.first?.text == "abc")
            try await manager.cookies.set(Cookie(name: "a", value: "b", domain: "127.0.0.1"))
            #expect(await manager.cookies.all().count == 1)
            await manager.shutdown()
            let entry = try #require(try HAR(directory.read("a.har")).entries.first)
            #expect(entry.request.postData?.text == "abc")
            #expect(entry.time > 0)
        }
    }

    @Test func `the first failure to write the cassette is reported`() async throws {
        let folder = "\(directory.path)/folder"
        #expect(throws: SystemError.self) { try RecordingTransport(wrapping: Self.numbered, to: "\(folder)/a.har") }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        let transport = try RecordingTransport(wrapping: Self.numbered, to: "\(folder)/a.har")
        let request = Request(url: try url("http://a.example/x"))
        let responses = [
            try await transport.open(request, delivery: .streamed, reporting: nil),
            try await transport.open(request, delivery: .streamed, reporting: nil),
        ]
        try FileManager.default.removeItem(atPath: folder)
        #expect(transport.failure == nil)
        await responses[0].close()
        #expect((transport.failure as? SystemError)?.code == ENOENT)
        // The folder, which is missing, then is no folder.
        _ = try directory.write(Data(), to: "folder")
        await responses[1].close()
        let error = await #expect(throws: SystemError.self) {
            try await transport.open(request, delivery: .streamed, reporting: nil)
        }
        #expect(error?.code == ENOENT)
    }

    @Test func `a streamed body that is recorded keeps the gate of its task`() async throws {
        let transport = MockTransport(.text("x"))
        let recording = try RecordingTransport(wrapping: transport, to: path)
        var request = Request(method: .post, url: try url("http://a.example/x"))
        request.body = .writer { try await $0.write(Data([1])) }
        request.body.gate = {}
        try await recording.open(request, delivery: .streamed, reporting: nil).close()
        #expect(transport.requests.first?.request.body.gate != nil)
    }

    @Test func `a cassette that is missing is an error`() {
        #expect(throws: CocoaError.self) { try ReplayTransport(from: path) }
        #expect(throws: CocoaError.self) { try RecordingTransport(wrapping: Self.numbered, to: path, mode: .replay) }
    }
}
