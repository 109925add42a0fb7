// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

extension SessionError {
    var resumeFailure: ResumeFailure? {
        if case .notResumable(let failure) = cause { failure } else { nil }
    }

    var digestFailure: DigestMismatch? {
        if case .digest(let expected, let found, _, _) = cause {
            DigestMismatch(expected: expected, found: found)
        } else {
            nil
        }
    }
}

/// The values of `SessionError.digest`.
struct DigestMismatch: Equatable {
    let expected: ContentDigest
    let found: ContentDigest
}

extension StubServer {
    /// Serves a file under `/file`.
    func serve(_ file: ServedFile, at path: String = "/file") {
        route(path) { file.script(for: $0) }
    }

    /// The ranges requested so far.
    var ranges: [String?] { activity.requests.map { $0.headers["Range"] } }
}

@Suite(.timeLimit(.minutes(5))) struct ResumedDownloadsTests {
    private static let bytes = StubServer.generatedBytes(1000)
    private let directory: TemporaryDirectory
    private let file: String

    init() throws {
        directory = try TemporaryDirectory()
        file = "\(directory.path)/file"
    }

    /// Returns the resume data of a download that was interrupted after 400 bytes.
    private func interrupted(
        _ server: StubServer, _ manager: SessionManager, served: ServedFile = ServedFile(bytes),
        options: DownloadOptions = DownloadOptions()
    ) async throws -> ResumeData {
        var broken = served
        broken.interruption = .close(after: 400)
        server.serve(broken)
        let error = try await sessionError {
            _ = try await manager.download("file", to: .file(file), headers: [.from: "me"], options: options).value
        }
        server.serve(served)
        return try #require(error.resumeData)
    }

    // MARK: Resume data

    @Test func `an error after a partial download contains resume data and the reason`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            server.serve(ServedFile(Self.bytes, interruption: .close(after: 400)))
            let task = manager.download("file", to: .file(file), headers: [.from: "me", .authorization: "secret"])
            let error = try await sessionError { _ = try await task.value }
            #expect(error.reason == .connectionLost(.inBody(received: 400, expected: 1000)))
            let data = try #require(error.resumeData)
            #expect(task.resumeData == data)
            #expect(data.url == server.url("/file"))
            #expect(data.headers == [.from: "me"])
            #expect(data.representation.validator == .entityTag("\"1\""))
            #expect(data.offset == 400)
            #expect(data.totalBytes == 1000)
            #expect(data.destination == file)
            #expect(try Data(contentsOf: URL(filePath: data.partialFile)) == Self.bytes.prefix(400))
            #expect(try directory.contents.count == 1)
            #expect(try JSONDecoder().decode(ResumeData.self, from: JSONEncoder().encode(data)) == data)
            // A record whose replacement was interrupted.
            #expect(FileManager.default.createFile(atPath: data.partialFile + ".json.new", contents: nil))
            data.discard()
            #expect(try directory.contents == [])
        }
    }

    @Test func `a cancelled task returns resume data, or leaves no file`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            server.serve(ServedFile(Self.bytes, interruption: .hang(after: 400)))
            for isWanted in [true, false] {
                let task = manager.download("file", to: .file(file))
                for await progress in task.progress where progress.completedBytes == 400 { break }
                try await eventually { try directory.contents.contains { try directory.read($0).count == 400 } }
                if isWanted {
                    let data = try #require(await task.cancelProducingResumeData())
                    #expect(data.offset == 400)
                    data.discard()
                } else {
                    task.cancel()
                }
                await #expect(throws: CancellationError.self) { try await task.value }
                #expect(try directory.contents == [])
            }
        }
    }

    @Test(arguments: [true, false])
    func `a cancelled task keeps its file or removes it, whatever the error of an interceptor`(isWanted: Bool)
        async throws
    {
        try await StubServer.with { server in
            let data = try await interrupted(server, SessionManager(for: server))
            server.route("/file") { _ in .hang }
            let error: any Error = isWanted ? Planned() : TransportError(.connectionLost(.beforeResponse))
            let manager = SessionManager(for: server) { $0.interceptors = [Intercepting.replacingErrors(by: error)] }
            let task = manager.download(resuming: data)
            try await server.requests(count: 2)
            if isWanted {
                let left = try #require(await task.cancelProducingResumeData())
                #expect(left.offset == 400)
                left.discard()
            } else {
                task.cancel()
            }
            await #expect(throws: (any Error).self) { try await task.value }
            #expect(try directory.contents == [])
        }
    }

    @Test func `a task that has received nothing, or everything, returns no resume data`() async throws {
        let early = SessionManager(on: MockTransport(.hang)).download("x", to: .file(file))
        #expect(await early.cancelProducingResumeData() == nil)
        let manager = SessionManager(on: MockTransport(.text("x")))
        let complete = manager.download("x", to: .file(file))
        _ = try await complete.value
        #expect(await complete.cancelProducingResumeData() == nil)
        let unstarted = try manager.makeDownloadTask(for: manager.request(.get, "x"), to: .file(file))
        #expect(await unstarted.cancelProducingResumeData() == nil)
        #expect(try directory.contents == ["file"])
    }

    @Test func `a task that is cancelled before it starts keeps the data that it was to be resumed with`() async throws
    {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let data = try await interrupted(server, manager)
            let task = manager.makeDownloadTask(resuming: data)
            #expect(task.resumeData == nil)
            #expect(await task.cancelProducingResumeData() == data)
            #expect(task.resumeData == data)
            #expect(try directory.contents.count == 1)
            data.discard()
        }
    }

    struct Unresumable: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var file = ServedFile(bytes)
        var method = HTTPRequest.Method.get
        var headers: HTTPFields = [:]
        var options = DownloadOptions()
    }

    @Test(arguments: [
        Unresumable(testDescription: "no validator", file: ServedFile(bytes, entityTag: nil)),
        Unresumable(testDescription: "a weak one", file: ServedFile(bytes, entityTag: "W/\"1\"")),
        Unresumable(testDescription: "another method", method: .post),
        Unresumable(testDescription: "a range of its own", headers: [.range: "bytes=0-"]),
        Unresumable(testDescription: "not wanted", options: DownloadOptions().with { $0.keepsPartialFile = false }),
    ])
    func `the file of a download that cannot be resumed is removed`(what: Unresumable) async throws {
        try await StubServer.with { server in
            var file = what.file
            file.interruption = .close(after: 400)
            file.hasRanges = false
            server.serve(file)
            let manager = SessionManager(for: server)
            var request = Request(method: what.method, url: server.url("/file"), headers: what.headers)
            request.retryPolicy = RetryPolicy.none
            let task = manager.download(request, to: .file(self.file), options: what.options)
            let error = try await sessionError { _ = try await task.value }
            #expect(error.resumeData == nil)
            #expect(error.transport != nil)
            #expect(try directory.contents == [])
        }
    }

    // MARK: Resuming

    @Test func `the rest is requested and appended`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let data = try await interrupted(server, manager)
            let task = manager.download(resuming: data)
            async let events = task.allEvents
            let result = try await task.value
            #expect(result.words == "\(file): 1000 bytes")
            #expect(result.response.statusCode == 206)
            #expect(result.response.metrics.responseBodyBytes == 600)
            #expect(try directory.contents == ["file"])
            #expect(try directory.read("file") == Self.bytes)
            let request = try #require(server.activity.requests.last)
            #expect(request.headers["Range"] == "bytes=400-")
            #expect(request.headers["If-Range"] == "\"1\"")
            #expect(request.headers["Accept-Encoding"] == "identity")
            #expect(request.headers["From"] == "me")
            #expect(await events.contains("continued 400 of 1000"))
            let progress = await task.progress.first { _ in true }
            #expect(progress?.counts == TransferProgress(completedBytes: 1000, totalBytes: 1000))
        }
    }

    @Test func `the bytes of an earlier download are hashed while the rest is received, not before`() async throws {
        let gate = try ScriptGate()
        let lost = TransportError(.connectionLost(.inBody(received: 400, expected: 1000)))
        let transport = MockTransport { request in
            guard request.headers[.range] != nil else {
                let fields: HTTPFields = [.contentLength: "1000", .eTag: "\"1\""]
                return MockResponse([.head(.ok, fields), .chunk(Self.bytes.prefix(400)), .fail(lost)])
            }
            let fields: HTTPFields = [.contentRange: "bytes 400-999/1000"]
            return MockResponse([.head(.partialContent, fields), .wait(gate), .chunk(Self.bytes.dropFirst(400))])
        }
        let manager = SessionManager(on: transport)
        let digest = try ContentDigest(of: Self.bytes)
        let options = DownloadOptions().with { $0.expectedDigest = digest }
        let error = try await sessionError {
            _ = try await manager.download("file", to: .file(file), options: options).value
        }
        let data = try #require(error.resumeData)
        try Data(count: 400).write(to: URL(filePath: data.partialFile))
        let task = manager.download(resuming: data, options: options)
        for await event in task.events {
            if case .continued = event { break }
        }
        try Self.bytes.prefix(400).write(to: URL(filePath: data.partialFile))
        gate.open()
        #expect(try await task.value.response.statusCode == 206)
        #expect(try directory.read("file") == Self.bytes)
    }

    @Test func `a download can be interrupted and resumed many times, also by other managers`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, interruption: .close(after: 90)))
            var data: ResumeData?
            var offsets: [Int64] = []
            for _ in 0..<11 {
                let manager = SessionManager(for: server)
                let task: DownloadTask =
                    if let data { manager.download(resuming: data) } else {
                        manager.download("file", to: .file(file))
                    }
                let error = try await sessionError { _ = try await task.value }
                let next = try #require(error.resumeData)
                // A program would store the data here.
                data = try JSONDecoder().decode(ResumeData.self, from: JSONEncoder().encode(next))
                offsets.append(next.offset)
            }
            #expect(offsets == (1...11).map { $0 * 90 })
            _ = try await SessionManager(for: server).download(resuming: #require(data)).value
            #expect(try directory.read("file") == Self.bytes)
            #expect(try directory.contents == ["file"])
        }
    }

    @Test func `if a server sends less than requested, the rest is requested again`() async throws {
        let manager = SessionManager(
            on: MockTransport { request in
                guard let range = request.headers[.range], let start = Int(range.dropFirst(6).dropLast()) else {
                    return MockResponse([
                        .head(.ok, [.eTag: "\"1\"", .contentLength: "1000"]), .chunk(Self.bytes.prefix(400)),
                        .fail(TransportError(.connectionLost(.inBody(received: 400, expected: 1000)))),
                    ])
                }
                let end = min(start + 250, 1000)
                return MockResponse(
                    status: .partialContent, headers: [.contentRange: "bytes \(start)-\(end - 1)/1000"],
                    chunks: [Data(Self.bytes[start..<end])])
            })
        let error = try await sessionError { _ = try await manager.download("x", to: .file(file)).value }
        let task = manager.download(resuming: try #require(error.resumeData))
        #expect(try await task.value.size == 1000)
        #expect(try directory.read("file") == Self.bytes)
        #expect(await task.allEvents.filter { $0.hasPrefix("continued") }.count == 3)
    }

    @Test func `ranges of unknown total are appended until the size of the first response`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let data = try await interrupted(server, manager)
            server.route("/file") { request in
                let start = request.headers["Range"].flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } ?? 0
                let end = min(start + 300, Self.bytes.count)
                return .reply(
                    Reply(
                        status: 206, headers: ["Content-Range": "bytes \(start)-\(end - 1)/*", "ETag": "\"1\""],
                        body: .bytes(Self.bytes[start..<end])))
            }
            let result = try await manager.download(resuming: data).value
            #expect(result.size == 1000)
            #expect(try directory.read("file") == Self.bytes)
            #expect(server.ranges.dropFirst() == ["bytes=400-", "bytes=700-"])
        }
    }

    @Test func `a 416 that names the size of the partial file completes it, with its progress`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            var data = try await interrupted(server, manager)
            try Self.bytes.write(to: URL(filePath: data.partialFile))
            (data.offset, data.totalBytes) = (1000, nil)
            server.route(
                "/file",
                .reply(Reply(status: 416, headers: ["Content-Range": "bytes */1000"], body: .string("too far"))))
            let task = manager.download(resuming: data)
            let progress = task.progress
            #expect(try await task.value.size == 1000)
            #expect(try directory.read("file") == Self.bytes)
            #expect(
                await progress.reduce(nil) { $1 }?.counts == TransferProgress(completedBytes: 1000, totalBytes: 1000))
        }
    }

    @Test(arguments: [DownloadOptions(), .durable])
    func `changes of the transfer options apply to downloads`(options: DownloadOptions) async throws {
        let transport = MockTransport(.text("x"))
        let manager = SessionManager(on: transport)
        var request = try manager.request(.get, "x")
        request.changeOptions { $0.timeouts.idle = .seconds(7) }
        _ = try await manager.download(request, to: .file(file), options: options).value
        let sent = try #require(transport.requests.first?.request.options)
        #expect(sent.timeouts.idle == .seconds(7))
        #expect(sent.decodesContent == !options.isDurable)
    }

    @Test func `a download can be resumed with a new URL for the same file`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let data = try await interrupted(server, manager)
            server.route("/file", .text("expired", status: 403))
            server.serve(ServedFile(Self.bytes), at: "/new")
            let error = try await sessionError { _ = try await manager.download(resuming: data).value }
            #expect(error.statusCode == 403)
            #expect(error.responseBody == Data("expired".utf8))
            // The partial file still exists.
            let left = try #require(error.resumeData)
            #expect(left == data)
            _ = try await manager.download(resuming: left, with: Request(url: server.url("/new"))).value
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test(arguments: [DownloadOptions(), .durable])
    func `resume data has the destination and the fields of the last download`(options: DownloadOptions) async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let data = try await interrupted(server, manager)
            server.serve(ServedFile(Self.bytes, interruption: .close(after: 300)))
            let other = "\(directory.path)/other"
            let request = Request(url: data.url, headers: [.from: "you", .authorization: "secret"])
            let error = try await sessionError {
                _ = try await manager.download(
                    resuming: data, with: request, to: .file(other, overwritesExisting: false), options: options
                ).value
            }
            let left = try #require(error.resumeData)
            #expect(left.offset == 700)
            #expect(left.destination == other)
            #expect(!left.overwritesExisting)
            #expect(left.headers == [.from: "you"])
            // The next durable download to the same path finds the bytes.
            #expect(ResumeData.left(at: other) == (options.isDurable ? left : nil))
            server.serve(ServedFile(Self.bytes))
            let result = try await manager.download(resuming: left, options: options).value
            #expect(result.response.statusCode == 206)
            #expect(try directory.contents == ["other"])
            #expect(try directory.read("other") == Self.bytes)
        }
    }

    @Test func `a changed resource is downloaded again, or is an error that keeps the partial file`() async throws {
        let other = Data(Self.bytes.reversed())
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let data = try await interrupted(server, manager)
            server.serve(ServedFile(other, entityTag: "\"2\""))
            let strict = DownloadOptions().with { $0.startsOverIfNotResumable = false }
            let error = try await sessionError {
                _ = try await manager.download(resuming: data, options: strict).value
            }
            #expect(error.resumeFailure == .changed)
            #expect(error.resumeData == data)
            let response = try await manager.download(resuming: data).value.response
            #expect(response.statusCode == 200)
            #expect(try directory.read("file") == other)
            #expect(try directory.contents == ["file"])
        }
    }

    @Test(arguments: [0, 300])
    func `a part with a wrong amount of content is an error that keeps the bytes before it`(count: Int) async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let data = try await interrupted(server, manager)
            server.route("/file") { _ in
                let fields: HeaderPairs = ["ETag": "\"1\"", "Content-Range": "bytes 400-599/1000"]
                return Script([.reply(Reply(status: 206, headers: fields, body: .bytes(Self.bytes.prefix(count))))])
            }
            let strict = DownloadOptions().with { $0.startsOverIfNotResumable = false }
            let error = try await sessionError {
                _ = try await manager.download(resuming: data, options: strict).value
            }
            #expect(error.resumeFailure != nil)
            #expect(error.resumeData == data)
            server.serve(ServedFile(Self.bytes))
            #expect(try await manager.download(resuming: data, options: strict).value.response.statusCode == 206)
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `a download with a body is not resumed, because its further requests would have none`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, interruption: .close(after: 400)))
            let request = Request(url: server.url("/file"), body: .string("query"))
            let options = DownloadOptions.durable.with { $0.segments = .count(2) }
            let error = try await sessionError {
                _ = try await SessionManager(for: server).download(request, to: .file(file), options: options).value
            }
            #expect(error.resumeData == nil)
            #expect(server.activity.requests.map(\.body) == [Data("query".utf8)])
            #expect(try directory.contents.isEmpty)
        }
    }

    @Test func `a server without support for ranges sends the whole file`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let data = try await interrupted(server, manager, served: ServedFile(Self.bytes, hasRanges: false))
            let strict = DownloadOptions().with { $0.startsOverIfNotResumable = false }
            let error = try await sessionError {
                _ = try await manager.download(resuming: data, options: strict).value
            }
            #expect(error.resumeFailure == .rangesNotSupported)
            _ = try await manager.download(resuming: data).value
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `if a range is not satisfiable, the whole file is requested`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let data = try await interrupted(server, manager)
            // A shorter file with the same tag: the server violates the protocol.
            server.serve(ServedFile(Self.bytes.prefix(300)))
            _ = try await manager.download(resuming: data).value
            #expect(try directory.read("file") == Self.bytes.prefix(300))
            #expect(server.ranges.suffix(2) == ["bytes=400-", nil])
        }
    }

    @Test func `a request with a range of its own downloads that range, and cannot be resumed`() async throws {
        try await StubServer.with { server in
            let part = Self.bytes[100..<300]
            server.route("/file") { request in
                request.headers["Range"] == "bytes=100-299"
                    ? .reply(
                        Reply(
                            status: 206, headers: ["Content-Range": "bytes 100-299/1000", "ETag": "\"1\""],
                            body: .bytes(part)))
                    : .status(400)
            }
            let manager = SessionManager(for: server)
            let headers: HTTPFields = [.range: "bytes=100-299"]
            let options = DownloadOptions().with { $0.isDurable = true }
            let result = try await manager.download("file", to: .file(file), headers: headers, options: options).value
            #expect(result.response.statusCode == 206)
            #expect(try directory.read("file") == part)
            #expect(try directory.contents == ["file"])
            // A part of encoded content is not a part of the file.
            #expect(server.activity.requests.map { $0.headers["Accept-Encoding"] } == ["identity"])

            server.serve(ServedFile(Self.bytes, interruption: .close(after: 50)))
            let error = try await sessionError {
                _ = try await manager.download("file", to: .file(file), headers: headers, options: options).value
            }
            #expect(error.resumeData == nil)
            #expect(try directory.contents == ["file"])
        }
    }

    @Test func `a missing partial file does not fail the download, unless it must not start over`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let data = try await interrupted(server, manager)
            try FileManager.default.removeItem(atPath: data.partialFile)
            let strict = DownloadOptions().with { $0.startsOverIfNotResumable = false }
            let error = try await sessionError {
                _ = try await manager.download(resuming: data, options: strict).value
            }
            #expect(error.resumeFailure == .partialFile(data.partialFile))
            _ = try await manager.download(resuming: data).value
            #expect(try directory.read("file") == Self.bytes)
            #expect(try directory.contents == ["file"])
        }
    }

    @Test func `a complete partial file requests its last byte`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            var data = try await interrupted(server, manager)
            try Self.bytes.write(to: URL(filePath: data.partialFile))
            data.offset = 1000
            let response = try await manager.download(resuming: data).value.response
            #expect(response.metrics.responseBodyBytes == 1)
            #expect(try directory.read("file") == Self.bytes)
            #expect(server.ranges.last == "bytes=999-")
        }
    }

    @Test func `without a validator, a digest permits resuming`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let options = DownloadOptions().with { $0.expectedDigest = Self.digest(of: Self.bytes) }
            let data = try await interrupted(
                server, manager, served: ServedFile(Self.bytes, entityTag: nil), options: options)
            #expect(data.representation.validator == nil)
            #expect(try await manager.download(resuming: data).value.response.statusCode == 206)
            #expect(try directory.read("file") == Self.bytes)
            // The digest detects that the halves do not match.
            let other = try await interrupted(
                server, manager, served: ServedFile(Self.bytes, entityTag: nil), options: options)
            server.serve(ServedFile(Data(Self.bytes.reversed()), entityTag: nil))
            let error = try await sessionError { _ = try await manager.download(resuming: other).value }
            #expect(error.digestFailure != nil)
            #expect(error.resumeData == nil)
            #expect(try directory.contents == ["file"])
        }
    }

    // MARK: Digests

    /// The digest as computed by the server's SHA-256.
    private static func digest(of bytes: Data) -> ContentDigest? {
        bytes == Self.bytes ? ContentDigest("sha-256:\(bytesSHA256)") : nil
    }

    /// `sha256sum` of the thousand bytes.
    private static let bytesSHA256 = "4e4c294b331f7a2099a379bec34b9f9fc03dc46ab465d998f4d683da53487e6d"

    @Test func `the expected digest is verified, and a file with another one is removed`() async throws {
        let expected = try #require(Self.digest(of: Self.bytes))
        let options = DownloadOptions().with { $0.expectedDigest = expected }
        let manager = SessionManager(on: MockTransport(.data(Self.bytes), .text("other")))
        _ = try await manager.download("x", to: .file(file), options: options).value
        let error = try await sessionError {
            _ = try await manager.download("x", to: "\(directory.path)/b", options: options).value
        }
        #expect(error.digestFailure?.expected == expected)
        // `printf other | sha256sum`
        #expect(
            error.digestFailure?.found.description
                == "sha-256:d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa")
        #expect(try directory.contents == ["file"])
    }

    @Test(arguments: [true, false])
    func `the expected digest of the options replaces that of the resume data`(isRight: Bool) async throws {
        try await StubServer.with { server in
            let right = try #require(Self.digest(of: Self.bytes))
            let wrong = ContentDigest(right.algorithm, Data(count: 32))
            let manager = SessionManager(for: server)
            let data = try await interrupted(
                server, manager, options: DownloadOptions().with { $0.expectedDigest = isRight ? wrong : right })
            #expect(data.expectedDigest == (isRight ? wrong : right))
            let options = DownloadOptions().with { $0.expectedDigest = isRight ? right : wrong }
            let task = manager.download(resuming: data, options: options)
            guard isRight else {
                let error = try await sessionError { _ = try await task.value }
                #expect(error.digestFailure == .init(expected: wrong, found: right))
                return
            }
            #expect(try await task.value.response.statusCode == 206)
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `without a validator, the digest of the options permits resuming`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let options = DownloadOptions().with { $0.expectedDigest = Self.digest(of: Self.bytes) }
            var data = try await interrupted(
                server, manager, served: ServedFile(Self.bytes, entityTag: nil), options: options)
            data.expectedDigest = nil
            #expect(try await manager.download(resuming: data, options: options).value.response.statusCode == 206)
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `without a validator, bytes of which another digest was expected are not continued`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let right = try #require(Self.digest(of: Self.bytes))
            let data = try await interrupted(
                server, manager, served: ServedFile(Data(Self.bytes.reversed()), entityTag: nil),
                options: DownloadOptions().with { $0.expectedDigest = ContentDigest(right.algorithm, Data(count: 32)) })
            server.serve(ServedFile(Self.bytes, entityTag: nil))
            var options = DownloadOptions().with { $0.expectedDigest = right }
            options.startsOverIfNotResumable = false
            let error = try await sessionError { [options] in
                _ = try await manager.download(resuming: data, options: options).value
            }
            #expect(error.resumeFailure == .noValidator)
            options.startsOverIfNotResumable = true
            #expect(try await manager.download(resuming: data, options: options).value.response.statusCode == 200)
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test(arguments: [nil, 100] as [Int?])
    func `the digest of resume data is expected of a download that starts over, too`(left: Int?) async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let options = DownloadOptions().with { $0.expectedDigest = Self.digest(of: Self.bytes) }
            let data = try await interrupted(server, manager, options: options)
            if let left {
                try Self.bytes.prefix(left).write(to: URL(filePath: data.partialFile))
            } else {
                data.discard()
            }
            server.serve(ServedFile(Data(Self.bytes.reversed())))
            let error = try await sessionError { _ = try await manager.download(resuming: data).value }
            #expect(error.digestFailure?.expected == options.expectedDigest)
            #expect(try directory.contents == [])
        }
    }

    @Test(arguments: [true, false])
    func `a download that starts over discards the old digests and size`(
        breaksOff: Bool
    ) async throws {
        let whole = try #require(Self.digest(of: Self.bytes)).value.base64EncodedString()
        // The bytes from 400 up to 650: `openssl dgst -sha256 -binary | base64`.
        let part = "ZGgvbtqsLH+HZhvwfzSZRVgfc6hCFaObsYVNPc3dbko="
        let digest = try #require(HTTPField.Name("Repr-Digest"))
        let contentDigest = try #require(HTTPField.Name("Content-Digest"))
        let broken = MockResponse.Step.fail(TransportError(.connectionLost(.inHead)))
        // Another resource replaces the first one while a task continues it.
        let other: [MockResponse.Step] = [.head(.ok, [.eTag: "\"2\"", .contentLength: "5"]), .chunk(Data("ot".utf8))]
        let transport = MockTransport(
            MockResponse([
                .head(.ok, [.eTag: "\"1\"", .contentLength: "1000", digest: "sha-256=:\(whole):"]),
                .chunk(Self.bytes.prefix(400)), broken,
            ]),
            MockResponse(
                status: .partialContent,
                headers: [.contentRange: "bytes 400-649/1000", contentDigest: "sha-256=:\(part):"],
                chunks: [Data(Self.bytes[400..<650])]),
            MockResponse(other + (breaksOff ? [broken] : [.chunk(Data("her".utf8))])),
            MockResponse(
                status: .partialContent, headers: [.contentRange: "bytes 2-4/5"], chunks: [Data("her".utf8)]))
        let manager = SessionManager(on: transport)
        let first = try await sessionError { _ = try await manager.download("x", to: .file(file)).value }
        let task = manager.download(resuming: try #require(first.resumeData))
        if breaksOff {
            let data = try #require(await sessionError { _ = try await task.value }.resumeData)
            #expect(data.representation.validator == .entityTag("\"2\""))
            #expect(data.offset == 2)
            #expect(data.totalBytes == 5)
            #expect(data.representation.digests == [])
            _ = try await manager.download(resuming: data).value
        } else {
            #expect(try await task.value.words == "\(file): 5 bytes")
        }
        #expect(try directory.read("file") == Data("other".utf8))
        #expect(
            transport.requests.map { $0.request.headers[.range] }
                == [nil, "bytes=400-", "bytes=650-"] + (breaksOff ? ["bytes=2-"] : []))
    }

    @Test(.timeLimit(.minutes(1)))
    func `the connection of a response that is not read is free before a token is refreshed`() async throws {
        let lost = TransportError(.connectionLost(.inBody(received: 400, expected: 1000)))
        let base = try url("http://a.example/")
        let (isOpen, wasOpen) = (Lock(false), Lock<Bool?>(nil))
        let authenticator = Authenticator(for: [base], token: Authenticator.Token("t")) { _ in
            wasOpen.set(\.self, to: isOpen.withLock(\.self))
            return Authenticator.Token("u")
        }
        let transport = MockTransport { request in
            switch (request.headers[.range], request.headers[.authorization]) {
            case (nil, "Bearer t"):
                return MockResponse([
                    .head(.ok, [.contentLength: "1000", .eTag: "\"1\""]), .chunk(Self.bytes.prefix(400)), .fail(lost),
                ])
            case (nil, _): return .data(Self.bytes)
            default:
                // The next request needs another token.
                await authenticator.setToken(nil)
                isOpen.set(\.self, to: true)
                return MockResponse([
                    .head(.partialContent, [.contentRange: "bytes 500-999/1000"]), .chunk(Data(count: 100)), .hang,
                ])
            }
        }
        let monitor = ExchangeEnds { isOpen.set(\.self, to: false) }
        let manager = SessionManager(on: transport) {
            $0.authentication.authenticators = [authenticator]
            $0.eventMonitors = [monitor]
        }
        let error = try await sessionError { _ = try await manager.download("x", to: .file(file)).value }
        _ = try await manager.download(resuming: try #require(error.resumeData)).value
        #expect(wasOpen.withLock(\.self) == false)
        #expect(try directory.read("file") == Self.bytes)
    }

    /// Runs a closure at the end of each exchange.
    private struct ExchangeEnds: EventMonitor {
        let end: @Sendable () -> Void

        func receive(_ event: TaskEvent, of task: AnySessionTask) {
            if case .exchange(_, .finished) = event { end() }
        }
    }

    @Test(arguments: ["Repr-Digest", "Content-Digest"])
    func `the server's digests are verified`(name: String) async throws {
        let good = try #require(Self.digest(of: Self.bytes)).value.base64EncodedString()
        let field = try #require(HTTPField.Name(name))
        let manager = SessionManager(
            on: MockTransport(
                .data(Self.bytes, headers: [field: "sha-256=:\(good):"]),
                .data(Self.bytes.dropLast(), headers: [field: "sha-256=:\(good):"]),
                .data(Self.bytes.dropLast(), headers: [field: "md5=:\(good):"])))
        _ = try await manager.download("x", to: .file(file)).value
        let error = try await sessionError { _ = try await manager.download("x", to: "\(directory.path)/b").value }
        #expect(error.digestFailure != nil)
        _ = try await manager.download("x", to: "\(directory.path)/c").value
        #expect(try directory.contents == ["c", "file"])
    }

    @Test func `a digest sent with the first response applies to the resumed download`() async throws {
        try await StubServer.with { server in
            let good = try #require(Self.digest(of: Self.bytes)).value.base64EncodedString()
            let manager = SessionManager(for: server)
            let served = ServedFile(Self.bytes, headers: ["Repr-Digest": "sha-256=:\(good):"])
            let data = try await interrupted(server, manager, served: served)
            #expect(data.representation.digests == [try #require(Self.digest(of: Self.bytes))])
            // A server that sends other bytes with the same tag, and without a digest.
            server.serve(ServedFile(Data(Self.bytes.reversed())))
            let error = try await sessionError { _ = try await manager.download(resuming: data).value }
            #expect(error.digestFailure != nil)
            #expect(try directory.contents == [])
        }
    }
}
