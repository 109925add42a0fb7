// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingImages
import AsyncNetworkingTesting
import Foundation
import Testing

@testable import Samples

/// The examples with a server of their own succeed.
@Suite(.serialized) struct ExamplesTests {
    /// Slow, because some examples pause as programs do: between retries, reconnections and reports of progress.
    @Test(arguments: [
        "CachedFeed", "ChangeFeed", "ChatStream", "DecodeErrors", "DownloadWithProgress", "EchoSocket", "ImageGallery",
        "MirrorDownload", "MutualTLS", "PostForm", "RefreshAToken", "ResumableUpload", "ResumeDownload",
        "RetryWithBackoff", "UploadMultipart", "UploadWithProgress",
    ])
    func `an example runs to its end`(name: String) async throws {
        let (_, directory) = try await Self.run(name)
        try FileManager.default.removeItem(at: directory)
    }

    @Test func `a synchronization refreshes its token, follows pages, and continues after the last value`() async throws
    {
        let (lines, directory) = try await Self.run("WeatherSync")
        defer { try? FileManager.default.removeItem(at: directory) }
        #expect(
            lines == [
                "Token 1 by login", "Token 2 by refresh", "10 new observations", "Token 3 by login",
                "0 new observations",
            ])
        let file = try String(contentsOf: directory.appending(path: "observations.jsonl"), encoding: .utf8)
        #expect(file.split(separator: "\n").count == 10)
        #expect(file.contains(#""taken_at":"2026-01-19T12:00:00Z""#))
    }

    @Test func `the steps of a migration have the same results`() async throws {
        let (lines, directory) = try await Self.run("FromAFNetworking")
        defer { try? FileManager.default.removeItem(at: directory) }
        #expect(lines == ["callbacks", "mixed", "async"].map { "\($0): Ada, status 201, copy" })
    }

    @Test func `a killed daemon continues its download`() async throws {
        let (lines, directory) = try await Self.run("DownloadDaemon")
        defer { try? FileManager.default.removeItem(at: directory) }
        #expect(lines.first?.hasPrefix("Continued after ") == true, "\(lines)")
        #expect(lines.dropFirst() == ["Complete: 20000000 bytes", "The file is intact."])
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path()) == ["disk.iso"])
    }

    @Test func `SIGTERM ends a daemon, and leaves what has arrived`() async throws {
        try await StubServer.with { server in
            let bytes = StubServer.generatedBytes(20_000_000)
            server.route("/disk.iso") { ServedFile(bytes, interruption: .hang(after: 10_000_000)).script(for: $0) }
            let daemon = try Program("DownloadDaemon", ".", server.url("/disk.iso").absoluteString)
            defer { daemon.removeDirectory() }
            let part = daemon.directory.appending(path: "disk.iso").path()
            while ResumeData.left(at: part)?.offset ?? 0 == 0 { await Task.yield() }
            daemon.process.terminate()
            #expect(await daemon.lines() == ["Unfinished"])
            #expect(daemon.process.terminationStatus == 0)
            #expect(ResumeData.left(at: part) != nil)
        }
    }

    @Test func `a daemon completes its other downloads when one fails`() async throws {
        try await StubServer.with { server in
            server.route("/a", .text("no", status: 404))
            server.route("/b", .generated(1_000_000))
            let daemon = try Program(
                "DownloadDaemon", ".", server.url("/a").absoluteString, server.url("/b").absoluteString)
            defer { daemon.removeDirectory() }
            let lines = await daemon.lines()
            #expect(lines.count == 2 && lines.contains("Complete: 1000000 bytes"), "\(lines)")
            #expect(daemon.process.terminationStatus == 1)
            let saved = try Data(contentsOf: daemon.directory.appending(path: "b"))
            #expect(saved == StubServer.generatedBytes(1_000_000))
        }
    }

    @Test func `a service survives an error status, and ends after SIGTERM`() async throws {
        try await StubServer.with { server in
            server.route("/status", .status(503))
            let service = try Program("ServeUntilSIGTERM", server.url().absoluteString)
            defer { service.removeDirectory() }
            // The second request shows that the first error has not ended the program.
            _ = try await server.requests(count: 2)
            service.process.terminate()
            #expect(await service.lines().last == "ended by signal 15")
            #expect(service.process.terminationStatus == 0)
        }
    }

    @Test(arguments: ["LogIn", "WeatherSync"])
    func `a refresh token that has expired is followed by a login`(name: String) async throws {
        try await StubServer.with { server in
            server.route("/token") { request in
                guard request.text.contains("=password") else { return .status(400) }
                let count = server.activity.requests.count { $0.path == "/token" && $0.text.contains("=password") }
                return .json(#"{"access_token": "t\#(count)", "refresh_token": "r", "expires_in": 3600}"#)
            }
            server.fallback { request in
                request.headers["Authorization"] == "Bearer t2"
                    ? .json(#"{"observations": []}"#) : .status(401, headers: ["WWW-Authenticate": "Bearer"])
            }
            let file = name == "WeatherSync" ? ["observations.jsonl"] : []
            let program = try Program(name, [server.url().absoluteString, "ada", "secret"] + file)
            defer { program.removeDirectory() }
            let lines = await program.lines()
            #expect(program.process.terminationStatus == 0, "\(lines)")
            let grants = server.activity.requests.filter { $0.path == "/token" }.map(\.text)
            #expect(grants.map { $0.contains("=refresh_token") } == [false, true, false])
        }
    }

    @Test(arguments: [
        ["EchoSocket", "ws://127.0.0.1:1/"], ["LimitTheSpeed"], ["LogIn"], ["PageThrough"], ["ServeUntilSIGTERM"],
    ])
    func `missing arguments are answered by the usage`(words: [String]) async throws {
        let program = try Program(words[0], Array(words.dropFirst()))
        defer { program.removeDirectory() }
        #expect(await program.lines().first?.hasPrefix("usage: ") == true)
        #expect(program.process.terminationStatus == 2)
    }

    @Test func `a recorded client is replayed without its server`() async throws {
        let (lines, directory) = try await Self.run("RecordAndReplay")
        defer { try? FileManager.default.removeItem(at: directory) }
        #expect(lines.prefix(3) == ["recorded: Ada 1", "replayed: Ada 1", "left: []"])
        #expect(lines.dropFirst(3).first?.hasSuffix("query parameter page “2” instead of “1”.") == true, "\(lines)")
        #expect(lines.last == "secrets: []")
    }

    @Test func `the trace of two services is one tree, and the group ends gracefully`() async throws {
        let (all, directory) = try await Self.run("ObservedService")
        defer { try? FileManager.default.removeItem(at: directory) }
        let fields = all.compactMap { line in
            line.wholeMatch(of: /stocks received traceparent (00-[0-9a-f]{32}-)([0-9a-f]{16})-01/)?.output
        }
        #expect(fields.count == 2, "\(all)")
        #expect(Set(fields.map(\.1)).count == 1 && Set(fields.map(\.2)).count == 2)
        let lines = all.filter { !$0.contains("traceparent") }
        #expect(
            lines == [
                "3 in stock, 5 € each", "client GET 200", "  client GET 200", "    server /prices/{id} 200",
                "      client GET /stock/{id} 200", "        client GET /stock/{id} 503",
                "          server /stock/{id} 503", "        client GET /stock/{id} 200",
                "          server /stock/{id} 200", "1 calls measured, 1 kinds", "1 retry",
            ])
    }

    /// The package is built without the trait ImageDecoding.
    @Test func `without the trait there is no image decoder`() async throws {
        let gif = Data("GIF89a".utf8) + [1, 0, 1, 0, 0, 0, 0, 59]
        let image = try ImageContent(gif)
        await #expect(throws: ImageError.decoderUnavailable) { try await image.decoded() }
    }

    /// Runs an example in a new directory, and returns the lines that it prints, and the directory.
    private static func run(_ name: String) async throws -> (lines: [String], directory: URL) {
        let program = try Program(name)
        let lines = await program.lines()
        #expect(program.process.terminationStatus == 0)
        return (lines, program.directory)
    }
}

/// An example that runs in a new directory.
private struct Program {
    let process = Process()
    let directory = FileManager.default.temporaryDirectory.appending(path: "an-example-\(UUID())")
    private let output = Pipe()

    init(_ name: String, _ arguments: String...) throws {
        try self.init(name, arguments)
    }

    init(_ name: String, _ arguments: [String]) throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            .appending(path: name)
        process.arguments = arguments
        process.currentDirectoryURL = directory
        process.standardOutput = output
        try process.run()
    }

    /// Waits for the end of the program, and returns the lines that it has printed.
    func lines() async -> [String] {
        // A thread of its own, because reading blocks.
        let data = await withCheckedContinuation { continuation in
            Thread { [output] in continuation.resume(returning: output.fileHandleForReading.readDataToEndOfFile()) }
                .start()
        }
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    func removeDirectory() {
        try? FileManager.default.removeItem(at: directory)
    }
}

/// Samples of the documentation whose behavior is not obvious.
@Suite struct SampleTests {
    @Test func `a connection that the server closes ends the conversation, also while there may be more lines`()
        async throws
    {
        let (lines, continuation) = AsyncStream.makeStream(of: String.self)
        continuation.yield("Hello")
        try await StubServer.with { server in
            server.route("/room", Script([.acceptWebSocket(), .echoMessages(1), .closeWebSocket(code: 1000)]))
            try await withSession { try await converse($0, room: server.url("/room"), lines: lines) }
        }
        continuation.finish()
    }

    @Test func `a mirror gets no secrets, and only requests that read`() async throws {
        let transport = MockTransport { request in
            request.url.host == "mirror.example.org" ? .text("copy") : .status(.notFound)
        }
        let api = SessionManager(baseURL: URL(string: "https://user:word@api.example.com/")) {
            $0.transport = transport
            $0.interceptors = [Mirror()]
        }
        let headers: HTTPFields = [.authorization: "Bearer secret", .cookie: "a=secret", .accept: "text/plain"]
        #expect(try await api.get("a?b=%2F", headers: headers, as: .string).value == "copy")
        await #expect(throws: SessionError.self) { try await api.post("a", headers: headers) }
        let sent = transport.requests.map(\.request)
        #expect(sent.count == 3)
        #expect(sent[1].url.absoluteString == "https://mirror.example.org/a?b=%2F")
        #expect(sent[1].headers[.accept] == "text/plain")
        #expect(sent[1].headers[.authorization] == nil && sent[1].headers[.cookie] == nil)
    }

    @Test func `restored downloads of other servers get no token`() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "a-sample-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let bytes = StubServer.generatedBytes(1_000)
        let fields: HTTPFields = [.eTag: "\"1\"", .contentLength: "1000"]
        let loss = TransportError(.connectionLost(.inBody(received: 500, expected: 1_000)))
        let cut = MockTransport { _ in
            MockResponse([.head(.ok, fields), .chunk(bytes.prefix(500)), .fail(loss)])
        }
        let urls = ["https://api.example.com/a", "https://cdn.example.org/b"]
        let first = SessionManager { $0.transport = cut }
        for url in urls.compactMap({ URL(string: $0) }) {
            let path = directory.appending(path: url.lastPathComponent).path()
            await #expect(throws: SessionError.self) {
                try await first.download(Request(url: url), to: .file(path), options: .durable).value
            }
        }
        let whole = MockTransport { _ in .data(bytes, headers: fields) }
        let second = SessionManager { $0.transport = whole }
        for task in try restore(second, in: directory.path(), token: "secret") { _ = try await task.value }
        let sent = whole.requests.map(\.request)
        #expect(Set(sent.map(\.url.absoluteString)) == Set(urls))
        for request in sent {
            #expect(request.headers[.authorization] == (request.url.host == "api.example.com" ? "Bearer secret" : nil))
        }
    }
}
