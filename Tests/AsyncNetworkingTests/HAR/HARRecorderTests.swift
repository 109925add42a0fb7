// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct HARRecorderTests {
    private let directory: TemporaryDirectory
    private var path: String { "\(directory.path)/a.har" }

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Runs a closure with a session that is recorded, checks the file against the specification, and returns the
    /// entries.
    private func record(
        on transport: any Transport, redacting: Redaction = .standard, maximumBodySize: Int = 64 << 10,
        configure: (inout SessionConfiguration) -> Void = { _ in },
        _ body: (SessionManager) async throws -> Void
    ) async throws -> [HAR.Entry] {
        let recorder = try HARRecorder(path: path, redacting: redacting, maximumBodySize: maximumBodySize)
        var configuration = SessionConfiguration.on(transport, configure: configure)
        recorder.install(in: &configuration)
        try await body(SessionManager(configuration))
        try await recorder.close()
        return try entries()
    }

    private func entries() throws -> [HAR.Entry] {
        let data = try directory.read("a.har")
        #expect(HARSchema.problems(in: data) == [])
        return try HAR(data).entries
    }

    @Test func `a file without entries is an archive`() async throws {
        let recorder = try HARRecorder(path: path)
        #expect(try entries() == [])
        try await recorder.close()
        try await recorder.close()
        #expect(try entries() == [])
    }

    @Test func `a request, its response and both bodies are an entry`() async throws {
        let answer = MockResponse(
            status: .created,
            headers: [.contentType: "application/json", .setCookie: "a=1; Path=/", .init(constant: "X-N"): "1"],
            chunks: [Data(#"{"token":"s","#.utf8), Data(#""n":1}"#.utf8)])
        let found = try await record(on: MockTransport(answer)) { manager in
            _ = try await manager.post(
                "x?q=1", body: .json(["password": "p", "name": "Ada"]), headers: [.cookie: "c=1"])
        }
        let entry = try #require(found.first)
        #expect(found.count == 1)
        #expect(entry.request.method == "POST")
        #expect(entry.request.url == "http://a.example/v1/x?q=…")
        #expect(entry.request.queryString == [HAR.Pair("q", "…")])
        #expect(entry.request.cookies == [HAR.Pair("c", "…")])
        #expect(entry.request.headers.contains(HAR.Pair("Content-Type", "application/json")))
        let text = try #require(entry.request.postData?.text)
        #expect(text.contains(#""password":"…""#) && text.contains(#""name":"Ada""#))
        #expect(entry.response.status == 201)
        #expect(entry.response.statusText == "Created")
        #expect(entry.response.cookies == [HAR.Pair("a", "…")])
        #expect(entry.response.headers.contains(HAR.Pair("Set-Cookie", "a=…; Path=/")))
        #expect(entry.response.content.text == #"{"token":"…","n":1}"#)
        #expect(entry.response.content.mimeType == "application/json")
        #expect(entry.error == nil && entry.source == nil)
    }

    @Test func `the response to a new request of an interceptor is recorded with its body`() async throws {
        let recorder = try HARRecorder(path: path)
        var configuration = SessionConfiguration.on(MockTransport(.text("body"))) { _ in }
        recorder.install(in: &configuration)
        configuration.attemptInterceptors.append(Intercepting { try await $1(Request(url: $0.url)) })
        _ = try await SessionManager(configuration).get("a")
        try await recorder.close()
        #expect(try entries().map(\.response.content.text) == ["body"])
    }

    @Test func `another request of an interceptor is recorded without the body of the response`() async throws {
        let recorder = try HARRecorder(path: path)
        var configuration = SessionConfiguration.on(MockTransport(.text("body"), .text("noted"))) { _ in }
        recorder.install(in: &configuration)
        configuration.attemptInterceptors.append(
            Intercepting { request, next in
                let response = try await next(request)
                let data = try await response.body.collect(upTo: 100)
                _ = try await next(Request(method: .put, url: url("http://a.example/audit")))
                return OpenResponse(head: response.head, body: ResponseBody(data))
            })
        _ = try await SessionManager(configuration).get("a")
        try await recorder.close()
        #expect(try entries().map(\.request.method) == ["GET", "PUT"])
        #expect(try entries().map(\.response.content.text) == ["body", nil])
        #expect(try entries().map(\.response.content.isTruncated) == [nil, true])
    }

    /// Sends a body in a content coding, and returns its record.
    private func postData(
        _ body: String, compressedBy coding: ContentCoding? = .gzip, headers: HTTPFields = [:],
        redacting: Redaction = .standard, maximumBodySize: Int = 64 << 10
    ) async throws -> HAR.PostData {
        let found = try await record(
            on: MockTransport(.text("x")), redacting: redacting, maximumBodySize: maximumBodySize
        ) { manager in
            var request = try manager.request(.post, "a", body: .string(body), headers: headers)
            request.headers[.contentType] = "application/json"
            if let coding { request.compressBody(coding, minimumSize: 0) }
            _ = try await manager.data(for: request)
        }
        return try #require(found.first?.request.postData)
    }

    @Test(arguments: [ContentCoding.gzip, .deflate])
    func `a compressed body is recorded decompressed, without its secrets`(coding: ContentCoding) async throws {
        let post = try await postData(#"{"password":"SECRET","name":"Ada"}"#, compressedBy: coding)
        #expect(post.text == #"{"password":"…","name":"Ada"}"#)
        #expect(post.encoding == nil && post.comment == nil)
    }

    @Test func `of a compressed body that is cut off, the first part is recorded`() async throws {
        let post = try await postData(#"{"password":"SECRET","name":"Ada"}"#, maximumBodySize: 24)
        #expect(post.text.hasPrefix(#"{"pass"#) && !post.text.contains("SEC"))
        #expect(post.comment?.hasSuffix("bytes, after decompression") == true)
        let zeros = try await postData(String(repeating: "0", count: 10_000), maximumBodySize: 100)
        #expect(zeros.text == String(repeating: "0", count: 100))
        #expect(zeros.comment == "the first 100 bytes, after decompression")
    }

    @Test func `of a body that cannot be decoded nothing is recorded`() async throws {
        for coding in ["br", "gzip", "gzip, gzip"] {
            let post = try await postData(
                #"{"name":"SECRET"}"#, compressedBy: nil, headers: [.contentEncoding: coding])
            #expect(post.text == "…")
            #expect(post.comment == "a body in the coding \(coding), which is not recorded")
        }
        let post = try await postData(
            "SECRET", compressedBy: nil, headers: [.contentEncoding: "br"], redacting: .none)
        #expect(post.text == "SECRET")
    }

    @Test func `a response that is not decompressed for the caller is recorded without its secrets`() async throws {
        let body = RequestBody.string(#"{"token":"SECRET"}"#).compressed(.gzip)
        let answer = MockResponse.data(
            try #require(body.bytes), headers: [.contentType: "application/json", .contentEncoding: "gzip"])
        let found = try await record(on: MockTransport(answer)) {
            $0.decodesContent = false
        } _: { manager in
            let received = try await manager.get("a").value
            #expect(received == body.bytes)
        }
        #expect(found.first?.response.content.text == #"{"token":"…"}"#)
    }

    @Test func `redirects and retries are entries of one call`() async throws {
        let transport = MockTransport(
            .redirect(.found, to: "/b"), .status(.serviceUnavailable), .redirect(.found, to: "/b"), .text("end"),
            .text("other"))
        let found = try await record(on: transport) {
            $0.retryPolicy = RetryPolicy(limit: 2)
            $0.retryPolicy.backoff = Backoff(base: .milliseconds(1))
        } _: { manager in
            _ = try await manager.get("a")
            _ = try await manager.get("c")
        }
        #expect(found.map(\.response.status) == [302, 503, 302, 200, 200])
        #expect(found.map { $0.request.url.suffix(2) } == ["/a", "/b", "/a", "/b", "/c"])
        #expect(found.map(\.response.redirectURL) == ["/b", "", "/b", "", ""])
        #expect(Set(found.prefix(4).map(\.call)).count == 1)
        #expect(found[3].call != found[4].call)
    }

    @Test func `an exchange without a response has its error`() async throws {
        let found = try await record(
            on: MockTransport(.failure(TransportError(.shutDown)), .failure(Planned(number: 1)), .hang)
        ) { manager in
            _ = try? await manager.get("a")
            _ = try? await manager.get("b")
            _ = try? await manager.get("c", timeout: .milliseconds(10))
        }
        #expect(found.map(\.response.status) == [0, 0, 0])
        #expect(found[0].error == "\(TransportError(.shutDown))")
        // The text of an error of the program may be secret.
        #expect(found[1].error == "Planned")
        #expect(found[2].error?.isEmpty == false)
    }

    @Test(arguments: [false, true])
    func `exchanges that overlap are entries with their own responses`(fails: Bool) async throws {
        let gate = try ScriptGate()
        let transport = MockTransport { request in
            guard request.url.path() == "/slow" else { return .text("fast") }
            let end = fails ? MockResponse.failure(TransportError(.shutDown)) : .text("slow", status: .accepted)
            return MockResponse([.wait(gate)] + end.steps)
        }
        let found = try await record(on: transport) {
            $0.attemptInterceptors = [Overlapping(transport: transport, gate: gate)]
        } _: { manager in
            let text = try await manager.get("x").text
            #expect(text == "fast")
        }
        #expect(found.map { $0.request.url.hasSuffix("slow") } == [true, false])
        #expect(found.map(\.response.status) == [fails ? 0 : 202, 200])
        #expect(found.map(\.error) == [fails ? "\(TransportError(.shutDown))" : nil, nil])
        #expect(found[1].response.content.text == "fast")
        #expect(Set(found.map(\.call)).count == 1)
    }

    @Test(arguments: [false, true])
    func `a response belongs to its own exchange if a later interceptor repeats the request`(fails: Bool) async throws {
        let first = fails ? MockResponse.failure(TransportError(.shutDown)) : .text("first", status: .badGateway)
        let transport = MockTransport(first, .text("second"))
        let recorder = try HARRecorder(path: path)
        let manager = SessionManager(on: transport) {
            recorder.install(in: &$0)
            $0.attemptInterceptors.append(
                Intercepting { request, next in
                    _ = try? await next(request)
                    return try await next(request)
                })
        }
        #expect(try await manager.get("x").text == "second")
        try await recorder.close()
        let found = try entries()
        #expect(found.map(\.response.status) == [fails ? 0 : 502, 200])
        #expect(found.map(\.response.content.text) == [nil, "second"])
        #expect(found.map(\.error) == [fails ? "no response" : nil, nil])
    }

    @Test func `the text of an error of the program is not recorded`() async throws {
        struct Secret: Error, CustomStringConvertible {
            let description = "hunter2"
        }
        let found = try await record(on: MockTransport(.status(.ok))) { manager in
            await #expect(throws: SessionError.self) {
                try await manager.post("a", body: .writer { _ in throw Secret() })
            }
        }
        #expect(found.map(\.error) == ["request_body."])
        #expect(try !String(decoding: directory.read("a.har"), as: UTF8.self).contains("hunter2"))
    }

    @Test func `responses of the cache have entries of their own`() async throws {
        let answer = MockResponse(
            headers: [.cacheControl: "max-age=60", .contentType: "text/plain"], chunks: [Data("stored".utf8)])
        let found = try await record(on: MockTransport(answer)) {
            $0.cache = .memory()
        } _: { manager in
            _ = try await manager.get("a")
            _ = try await manager.get("a")
        }
        #expect(found.map(\.source) == [nil, "cache"])
        #expect(found.map(\.response.content.text) == ["stored", "stored"])
        #expect(found.map(\.response.status) == [200, 200])
    }

    @Test func `with a cache, shared transfers and downloads have the same results and entries`() async throws {
        let answer = MockResponse(
            headers: [.cacheControl: "max-age=60", .eTag: "\"1\"", .contentType: "text/plain"],
            chunks: [Data("sto".utf8), Data("red".utf8)])
        let transport = MockTransport { request in request.headers[.ifNoneMatch] == nil ? answer : .status(.notModified)
        }
        let found = try await record(on: transport) {
            $0.cache = .memory()
            $0.coalescesRequests = true
        } _: { manager in
            async let first = manager.get("a").text
            async let second = manager.get("a").text
            #expect(try await [first, second] == ["stored", "stored"])
            for number in 1...2 {
                let file = try await manager.download("a", to: .file("\(directory.path)/\(number)")).value
                #expect(file.size == 6)
                #expect(try directory.read("\(number)") == Data("stored".utf8))
            }
            var request = try manager.request(.get, "a")
            request.cachePolicy = .revalidate
            let response = try await manager.data(for: request)
            #expect(response.metrics.source == .validated)
            #expect(response.text == "stored")
        }
        // Entries are in the order in which calls end.
        let sources = found.map { $0.source ?? "\($0.response.status)" }.sorted()
        #expect(sources == ["200", "304", "cache", "cache", "cache", "validated"])
    }

    @Test(arguments: [(0, nil, nil), (3, "abä".prefix(2).description, "the first 3 of 6 bytes"), (6, "abäcd", nil)])
    func `bodies are recorded up to a limit`(limit: Int, text: String?, comment: String?) async throws {
        let found = try await record(on: MockTransport(.text("abäcd")), maximumBodySize: limit) { manager in
            _ = try await manager.get("a")
        }
        let content = try #require(found.first?.response.content)
        #expect(content.size == 6)
        #expect(content.text == text)
        #expect(content.comment == comment)
        #expect(content.isTruncated == (limit < 6 ? true : nil))
    }

    @Test func `a response whose body was lost has the error`() async throws {
        let lost = TransportError(.connectionLost(.inBody(received: 2, expected: 4)))
        let answer = MockResponse([.head(.ok, [.contentLength: "4"]), .chunk(Data("01".utf8)), .fail(lost)])
        let found = try await record(on: MockTransport(answer)) { manager in
            await #expect(throws: SessionError.self) { try await manager.get("a") }
        }
        #expect(found.map(\.response.status) == [200])
        #expect(found.map(\.error) == ["\(lost)"])
    }

    @Test func `neither a pipe nor a folder is a file for entries`() async throws {
        let pipe = "\(directory.path)/pipe"
        try unsafe #require(mkfifo(pipe, 0o600) == 0)
        // A pipe with a reader is not waited for.
        let reader = unsafe open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        defer { close(reader) }
        for (path, reason) in [(pipe, "Invalid argument (open)"), (directory.path, "Is a directory (open)")] {
            let error = #expect(throws: SessionError.self) { try HARRecorder(path: path) }
            guard case .file(let failure)? = error else { throw error ?? SessionError.invalidated }
            #expect("\(failure)" == "\(path): \(reason)")
        }
    }

    @Test func `an archive is written to the file of a link, and followed when that is renamed`() async throws {
        _ = try directory.write(Data(), to: "target")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "target")
        let found = try await record(on: MockTransport(.text("x"))) { manager in
            try FileManager.default.moveItem(
                atPath: "\(directory.path)/target", toPath: "\(directory.path)/renamed")
            _ = try directory.write(HAR().data(), to: "target")
            _ = try await manager.get("a")
        }
        #expect(found == [])
        #expect(try HAR(directory.read("renamed")).count == 1)
    }

    @Test func `bytes that are not text are in Base64, and streams and files are named`() async throws {
        let bytes = Data([0xFF, 0x00])
        let found = try await record(on: MockTransport(.data(bytes), .data(bytes), .data(bytes))) { manager in
            _ = try await manager.put("a", body: .bytes(bytes))
            _ = try await manager.put("a", body: .stream(AsyncStreamOf([bytes])))
            _ = try await manager.put("a", body: .file("/etc/hostname"))
        }
        #expect(found[0].request.postData?.encoding == "base64")
        #expect(found[0].request.postData?.text == bytes.base64EncodedString())
        #expect(found[0].response.content.encoding == "base64")
        #expect(found[1].request.postData?.comment == "a stream, which is not recorded")
        #expect(found[2].request.postData?.comment == "a file, which is not recorded")
    }

    @Test func `the caller receives the same bytes, streamed and collected, and tasks, too`() async throws {
        let chunks = [Data("a".utf8), Data("bc".utf8), Data("d".utf8)]
        let found = try await record(on: MockTransport { _ in MockResponse(chunks: chunks) }, redacting: .none) {
            manager in
            #expect(try await manager.data(for: manager.request(.get, "x")).text == "abcd")
            var read: [Data] = []
            try await manager.withResponse(for: manager.request(.get, "x")) { _, body in
                for try await chunk in body { read.append(chunk) }
            }
            #expect(read == chunks)
            let file = try await manager.download("x", to: .file("\(directory.path)/b")).value
            #expect(file.size == 4)
            // Only what was read is recorded.
            try await manager.withResponse(for: manager.request(.get, "x")) { _, body in
                for try await _ in body { break }
            }
        }
        #expect(found.map(\.response.content.text) == ["abcd", "abcd", "abcd", "a"])
        #expect(try directory.read("b") == Data("abcd".utf8))
    }

    @Test func `a WebSocket connection is an entry with its messages`() async throws {
        let found = try await record(on: MockTransport(script: .webSocketEcho)) { manager in
            try await manager.withWebSocket(Request(url: url("wss://a.example/chat?q=1"))) { socket in
                for message in [.text(#"{"token":"s","n":1}"#), .binary(Data([0xFF]))] as [WebSocketMessage] {
                    try await socket.send(message)
                    var messages = socket.makeAsyncIterator()
                    #expect(try await messages.next() == message)
                }
            }
        }
        let entry = try #require(found.first)
        #expect(found.count == 1)
        #expect(entry.response.status == 101)
        #expect(entry.request.url == "https://a.example/chat?q=…")
        #expect(entry.resourceType == "websocket")
        let lines = entry.webSocketMessages?.map { "\($0.type) \($0.opcode) \($0.data)" }
        let text = #"1 {"token":"…","n":1}"#
        #expect(lines == ["send \(text)", "receive \(text)", "send 2 /w==", "receive 2 /w=="])
    }

    /// A message counts as 64 bytes more than it has.
    @Test(arguments: [(140, "four", 2), (140, "", 2), (191, "", 2), (192, "", 3), (0, "", 0)])
    func `messages are recorded up to a limit`(limit: Int, text: String, count: Int) async throws {
        let found = try await record(on: MockTransport(script: .webSocketEcho), maximumBodySize: limit) { manager in
            try await manager.withWebSocket(Request(url: url("ws://a.example/"))) { socket in
                for _ in 0..<4 { try await socket.send(.text(text)) }
            }
        }
        #expect((found.first?.webSocketMessages ?? []).count == count)
        #expect(found.first?.comment == "\(4 - count) messages are not recorded")
    }

    @Test func `over a real connection an entry has phases, addresses and sizes`() async throws {
        try await StubServer.with { server in
            server.route("/a", .text("end"))
            let recorder = try HARRecorder(path: path)
            let manager = SessionManager(for: server) { recorder.install(in: &$0) }
            _ = try await manager.get("a")
            _ = try await manager.get("a")
            await manager.shutdown()
            try await recorder.close()
            let found = try entries()
            #expect(found.count == 2)
            let (first, second) = (found[0], found[1])
            #expect(first.serverIPAddress == "127.0.0.1")
            #expect(first.connection == second.connection)
            #expect(first.timings.connect >= 0 && first.timings.ssl == -1)
            #expect(second.timings.connect == -1)
            #expect(first.response.bodySize == 3 && first.response.headersSize > 0 && first.request.headersSize > 0)
            #expect(first.request.httpVersion == "HTTP/1.1")
            #expect(abs(first.time - first.timings.sum) < 0.001)
        }
    }

    @Test func `many requests at a time are all recorded, and the file is an archive meanwhile`() async throws {
        let found = try await record(on: MockTransport { _ in .text("x") }) { manager in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<400 {
                    group.addTask { _ = try await manager.get("\(index)") }
                    if index % 100 == 99 {
                        try await group.next()
                        _ = try entries()
                    }
                }
                try await group.waitForAll()
            }
        }
        #expect(Set(found.map(\.request.url)).count == 400)
    }

    @Test func `a file that cannot be created or written is an error`() {
        for path in ["\(directory.path)/none/a.har", "/dev/full"] {
            #expect(throws: SessionError.self) { try HARRecorder(path: path) }
        }
    }

    @Test func `after the end nothing is recorded`() async throws {
        let recorder = try HARRecorder(path: path)
        let manager = SessionManager(on: MockTransport { _ in .text("x") }) { recorder.install(in: &$0) }
        _ = try await manager.get("a")
        try await recorder.close()
        _ = try await manager.get("b")
        try await recorder.close()
        #expect(try entries().count == 1)
    }
}
