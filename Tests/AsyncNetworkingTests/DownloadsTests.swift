// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct DownloadsTests {
    private let directory: TemporaryDirectory
    private let file: String

    init() throws {
        directory = try TemporaryDirectory()
        file = "\(directory.path)/file"
    }

    /// A response of 2 bytes in 2 chunks, with a closure called between them.
    private static func halves(_ step: MockResponse.Step) -> MockResponse {
        MockResponse([.head(.ok, [.contentLength: "2"]), .chunk(Data("a".utf8)), step, .chunk(Data("b".utf8))])
    }

    @Test func `the file is written, and no other file is left`() async throws {
        try await StubServer.with { server in
            server.route("/disk", .generated(3_000_000))
            let manager = SessionManager(for: server)
            let result = try await manager.download("disk", to: .file(file)).value
            #expect(result.words == "\(file): 3000000 bytes")
            #expect(result.response.statusCode == 200)
            #expect(result.response.metrics.responseBodyBytes == 3_000_000)
            #expect(try directory.contents == ["file"])
            #expect(try directory.read("file") == StubServer.generatedBytes(3_000_000))
        }
    }

    @Test func `an empty body creates an empty file`() async throws {
        let manager = SessionManager(on: MockTransport(.status(.noContent)))
        #expect(try await manager.download("x", to: .file(file)).value.size == 0)
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        #expect(attributes[.size] as? UInt64 == 0)
    }

    @Test func `the file appears under its name only when it is complete`() async throws {
        let gate = try ScriptGate()
        let manager = SessionManager(on: MockTransport(Self.halves(.wait(gate))))
        let task = manager.download("x", to: .file(file))
        _ = await task.progress.first { _ in true }
        try await eventually { try directory.contents.count == 1 }
        let name = try #require(try directory.contents.first)
        #expect(name.hasPrefix("file.") && name.hasSuffix(".part"))
        gate.open()
        _ = try await task.value
        #expect(try directory.contents == ["file"])
        #expect(try directory.read("file") == Data("ab".utf8))
    }

    @Test func `an existing file is replaced`() async throws {
        _ = try directory.write(Data("much longer than the new one".utf8), to: "file")
        _ = try await SessionManager(on: MockTransport(.text("new"))).download("x", to: .file(file)).value
        #expect(try directory.read("file") == Data("new".utf8))
    }

    @Test func `a download that fails leaves no partial file, and an existing file unchanged`() async throws {
        let lost = TransportError(.connectionLost(.inBody(received: 1, expected: 2)))
        let manager = SessionManager(on: MockTransport(Self.halves(.fail(lost))))
        let error = try await sessionError { _ = try await manager.download("x", to: .file(file)).value }
        guard case .connectionLost = error.reason else { throw error }
        #expect(try directory.contents == [])
        _ = try directory.write(Data("old".utf8), to: "file")
        _ = try await sessionError { _ = try await manager.download("x", to: .file(file)).value }
        #expect(try directory.contents == ["file"])
        #expect(try directory.read("file") == Data("old".utf8))
    }

    @Test func `a truncated response on libcurl leaves no file`() async throws {
        try await StubServer.with { server in
            server.route("/", .truncated(declared: 1000, sent: 999))
            let manager = SessionManager(for: server)
            let error = try await sessionError { _ = try await manager.download("/", to: .file(file)).value }
            guard case .connectionLost(.inBody(received: 999, expected: 1000)) = error.reason else {
                throw error
            }
            #expect(try directory.contents == [])
        }
    }

    @Test func `a download that is cancelled leaves no file`() async throws {
        let manager = SessionManager(on: MockTransport(Self.halves(.hang)))
        let task = manager.download("x", to: .file(file))
        try await eventually { try directory.contents.count == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        #expect(try directory.contents == [])
    }

    @Test func `the body of a rejected status is not written, but is part of the error`() async throws {
        _ = try directory.write(Data("old".utf8), to: "file")
        let manager = SessionManager(on: MockTransport(.text("no such file", status: .notFound)))
        let error = try await sessionError { _ = try await manager.download("x", to: .file(file)).value }
        #expect(error.statusCode == 404)
        #expect(error.responseBody == Data("no such file".utf8))
        #expect(try directory.contents == ["file"])
        #expect(try directory.read("file") == Data("old".utf8))
    }

    @Test func `of an endless error page, 1 MiB is kept`() async throws {
        try await StubServer.with { server in
            server.route("/", .reply(status: 500, body: .generated(1 << 40)))
            let manager = SessionManager(for: server)
            let error = try await sessionError { _ = try await manager.download("/", to: .file(file)).value }
            #expect(error.statusCode == 500)
            #expect(error.responseBody == StubServer.generatedBytes(1 << 20))
        }
    }

    @Test func `a missing directory is an error that names the file and the reason`() async throws {
        let manager = SessionManager(on: MockTransport(.text("x")))
        let path = "\(directory.path)/none/file"
        let error = try await sessionError { _ = try await manager.download("x", to: .file(path)).value }
        #expect(error.fileFailure?.path == path)
        #expect(error.fileFailure?.errno == ENOENT)
        #expect(error.description.contains("No such file or directory"))
    }

    @Test func `a destination that is a directory is an error, and no file is left`() async throws {
        let manager = SessionManager(on: MockTransport(.text("x")))
        try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false)
        let error = try await sessionError { _ = try await manager.download("x", to: .file(file)).value }
        #expect(error.fileFailure?.errno == EISDIR)
        #expect(error.fileFailure?.call == "open")
        #expect(try directory.contents == ["file"])
    }

    @Test(.exitTest) func `a directory that is not writable is an error`() async throws {
        try unsafe #require(chmod(directory.path, 0o555) == 0)
        // In a process that is not run by root, who may write everywhere.
        await #expect(processExitsWith: .success) { [path = file as String] in
            if geteuid() == 0 { try #require(setuid(65534) == 0) }
            let manager = SessionManager(on: MockTransport(.text("x")))
            let error = try await sessionError { _ = try await manager.download("x", to: .file(path)).value }
            try #require(error.fileFailure?.errno == EACCES)
        }
        #expect(try directory.contents == [])
    }

    @Test(.exitTest) func `a full disk is an error, and no file is left`() async throws {
        // In a process whose files are limited to 1 MB, which has the effect of a full disk; see setrlimit(2).
        await #expect(processExitsWith: .success) { [path = file as String] in
            var limit = rlimit(rlim_cur: 1 << 20, rlim_max: 1 << 20)
            try unsafe #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            let megabyte = Data(count: 1 << 20)
            let manager = SessionManager(on: MockTransport(MockResponse(chunks: [megabyte, megabyte])))
            let error = try await sessionError { _ = try await manager.download("x", to: .file(path)).value }
            try #require(error.fileFailure?.errno == EFBIG)
            try #require(error.fileFailure?.call == "write")
        }
        #expect(try directory.contents == [])
    }

    @Test func `a streamed body can be written to a file`() async throws {
        let manager = SessionManager(on: MockTransport(.text("abc")))
        let size = try await manager.withResponse(for: manager.request(.get, "x")) { [file] _, body in
            try await body.write(to: file)
        }
        #expect(size == 3)
        #expect(try directory.read("file") == Data("abc".utf8))
    }
}

@Suite(.timeLimit(.minutes(5))) struct DownloadProgressTests {
    private let directory: TemporaryDirectory
    private let file: String

    init() throws {
        directory = try TemporaryDirectory()
        file = "\(directory.path)/file"
    }

    @Test func `progress ends with the last byte, for any number of readers`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(2_000_000))
            let task = SessionManager(for: server).download("/", to: .file(file))
            async let first = task.progress.reduce(into: []) { $0.append($1) }
            async let second = task.progress.reduce(into: []) { $0.append($1) }
            for progress in await [first, second] {
                #expect(progress.last?.counts == TransferProgress(completedBytes: 2_000_000, totalBytes: 2_000_000))
                #expect(zip(progress, progress.dropFirst()).allSatisfy { $0.completedBytes <= $1.completedBytes })
                #expect(progress.allSatisfy { $0.totalBytes == 2_000_000 })
            }
            _ = try await task.value
            let late = await task.progress.reduce(into: []) { $0.append($1) }
            #expect(late.map(\.counts) == [TransferProgress(completedBytes: 2_000_000, totalBytes: 2_000_000)])
        }
    }

    @Test func `a download of unknown length has no total`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(100_000, framing: .chunked))
            let task = SessionManager(for: server).download("/", to: .file(file))
            _ = try await task.value
            let last = await task.progress.first { _ in true }
            #expect(last?.counts == TransferProgress(completedBytes: 100_000, totalBytes: nil))
        }
    }

    @Test func `the body of a redirect does not count as progress`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/moved", .reply(status: 302, headers: ["Location": "/disk"], body: .generated(500)))
            server.route("/empty", .redirect(302, to: "/disk"))
            server.route(
                "/disk", Script([.reply(Reply(framing: .contentLength(declared: 9))), .wait(gate), .generate(9)]))
            let manager = SessionManager(for: server)
            for path in ["moved", "empty"] {
                let task = manager.download(path, to: "\(directory.path)/\(path)")
                // The file in the directory shows that the download itself has started.
                try await eventually { try directory.contents.contains { $0.hasPrefix(path) } }
                async let progress = task.progress.reduce(into: []) { $0.append($1) }
                gate.open()
                let values = await progress
                #expect(values.last?.counts == TransferProgress(completedBytes: 9, totalBytes: 9))
                #expect(values.allSatisfy { $0.totalBytes == 9 })
                _ = try await task.value
            }
        }
    }

    @Test func `a response of an interceptor counts as progress at its end`() async throws {
        let answering = Intercepting { request, next in
            OpenResponse(
                head: ResponseHead(status: .ok, url: request.url), body: ResponseBody(Data("kept".utf8)))
        }
        let manager = SessionManager(on: MockTransport(.text("x"))) { $0.interceptors = [answering] }
        let task = manager.download("x", to: .file(file))
        let progress = await task.progress.reduce(into: []) { $0.append($1) }
        #expect(progress.map(\.counts) == [TransferProgress(completedBytes: 4, totalBytes: 4)])
        #expect(try await task.value.size == 4)
    }

    @Test func `an error page does not count as progress`() async throws {
        let manager = SessionManager(on: MockTransport(.text("not found", status: .notFound)))
        let task = manager.download("x", to: .file(file))
        #expect(await task.progress.first { _ in true } == nil)
        await #expect(throws: SessionError.self) { _ = try await task.value }
    }

    @Test(arguments: [MockResponse.failure(TransportError(.shutDown)), .failure(CancellationError())])
    func `progress ends when the transfer fails`(response: MockResponse) async throws {
        let task = SessionManager(on: MockTransport(response)).download("x", to: .file(file))
        #expect(await task.progress.first { _ in true } == nil)
        await #expect(throws: (any Error).self) { _ = try await task.value }
    }

    @Test func `progress ends when the request could not be created`() async throws {
        let task = SessionManager(on: MockTransport(.text("x")), baseURL: nil).download("x", to: .file(file))
        #expect(await task.progress.first { _ in true } == nil)
    }
}
