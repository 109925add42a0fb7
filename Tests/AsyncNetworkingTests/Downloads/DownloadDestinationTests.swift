// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct DownloadDestinationTests {
    private let directory: TemporaryDirectory
    private let file: String
    private let manager = SessionManager(on: MockTransport(.text("new")))

    init() throws {
        directory = try TemporaryDirectory()
        file = "\(directory.path)/file"
    }

    @Test func `an existing file that must not be replaced is an error before anything is sent`() async throws {
        _ = try directory.write(Data("old".utf8), to: "file")
        let transport = MockTransport(.text("new"))
        let error = try await sessionError {
            _ = try await SessionManager(on: transport).download("x", to: .file(file, overwritesExisting: false)).value
        }
        #expect(error.fileFailure?.reason == .exists)
        #expect(error.fileFailure?.path == file)
        #expect(transport.requests.isEmpty)
        #expect(try directory.read("file") == Data("old".utf8))
        #expect(try directory.contents == ["file"])
    }

    @Test func `a file that appears during the download is not replaced`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport(
            MockResponse([.head(.ok, [.eTag: "\"1\""]), .chunk(Data("new".utf8)), .wait(gate)]))
        let task = SessionManager(on: transport).download("x", to: .file(file, overwritesExisting: false))
        _ = await task.progress.first { _ in true }
        _ = try directory.write(Data("old".utf8), to: "file")
        gate.open()
        let error = try await sessionError { _ = try await task.value }
        guard case .file(let failure) = error.cause else { throw error }
        #expect(failure.reason == .exists)
        #expect(try directory.read("file") == Data("old".utf8))
        // The downloaded bytes are kept.
        #expect(error.resumeData?.offset == 3)
    }

    @Test func `directories are created on request`() async throws {
        let path = "\(directory.path)/a/b/file"
        let error = try await sessionError { _ = try await manager.download("x", to: .file(path)).value }
        #expect(error.fileFailure?.reason == .missingDirectory)
        #expect(error.description.contains("createsIntermediateDirectories"))
        _ = try await manager.download("x", to: .file(path, createsIntermediateDirectories: true)).value
        #expect(try directory.read("a/b/file") == Data("new".utf8))
    }

    @Test func `a file with the expected digest is not requested`() async throws {
        let path = "\(directory.path)/file"
        let transport = MockTransport(.text("new"))
        let api = SessionManager(on: transport)
        // The SHA-256 of "new".
        let digest = ContentDigest("sha256:11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437")
        let options = DownloadOptions().with {
            $0.expectedDigest = digest
            $0.skipsVerifiedFile = true
        }
        for (content, status, count) in [(nil, 200, 1), ("old", 200, 2), ("new", 304, 2)] {
            if let content { _ = try directory.write(Data(content.utf8), to: "file") }
            let task = api.download("x", to: .file(path), options: options)
            let file = try await task.value
            #expect(try await task.response.status.code == status)
            #expect(file.words == "\(path): 3 bytes")
            #expect(file.response.statusCode == status)
            #expect(transport.requests.count == count)
            #expect(try directory.read("file") == Data("new".utf8))
        }
        _ = try await api.download("x", to: .file(path), options: options.with { $0.skipsVerifiedFile = false }).value
        #expect(transport.requests.count == 3)
    }

    @Test func `a closure chooses the path by the file and its response`() async throws {
        let directory = directory
        let destination = DownloadDestination.chosen(temporaryDirectory: directory.path) { file in
            #expect(file.size == 3)
            let written = try Data(contentsOf: URL(filePath: file.path))
            #expect(written == Data("new".utf8))
            return "\(directory.path)/\(file.response.statusCode)"
        }
        let file = try await manager.download("x", to: destination).value
        #expect(file.words == "\(directory.path)/200: 3 bytes")
        #expect(try directory.contents == ["200"])
        // By default the system's directory for temporary files is used.
        let other = DownloadDestination.chosen { _ in "\(directory.path)/other" }
        _ = try await manager.download("x", to: other).value
        #expect(try directory.contents == ["200", "other"])
    }

    @Test(arguments: [true, false])
    func `a closure may leave the file where it is, or move it`(overwrites: Bool) async throws {
        let directory = directory
        for isMoved in [false, true] {
            let file = try await manager.download(
                "x",
                to: .chosen(temporaryDirectory: directory.path, overwritesExisting: overwrites) { file in
                    guard isMoved else { return file.path }
                    try FileManager.default.moveItem(atPath: file.path, toPath: "\(directory.path)/moved")
                    return "\(directory.path)/moved"
                }
            ).value
            #expect(try Data(contentsOf: URL(filePath: file.path)) == Data("new".utf8))
        }
        #expect(try directory.contents.count == 2)
    }

    /// In a process of its own, whose working directory changes.
    @Test(.exitTest) func `a relative path is used in a working directory that has no path, or none in UTF-8`() async {
        await #expect(processExitsWith: .success) { [path = directory.path as String] in
            let manager = SessionManager(on: MockTransport(.text("new")))
            let name = "an-relative-\(UInt64.random(in: .min ... .max))"
            let latin = Array("\(path)/m".utf8CString.dropLast()) + [CChar(bitPattern: 0xFC), 0]
            try unsafe #require(mkdir(latin, 0o700) == 0 && chdir(latin) == 0)
            for _ in 0..<2 {
                _ = try await manager.download("x", to: .file(name), options: .durable).value
                _ = try await manager.withResponse(for: manager.request(.get, "x")) { _, body in
                    try await body.write(to: name)
                }
            }
            try unsafe #require(unlink(name) == 0 && rmdir(latin) == 0)
            let error = try await sessionError { _ = try await manager.download("x", to: .file(name)).value }
            try #require(error.fileFailure?.reason == .missingDirectory)
        }
    }

    @Test(arguments: [DownloadOptions(), .durable])
    func `bytes that the file system refuses late fail the download, and the old file stays`(
        options: DownloadOptions
    ) async throws {
        _ = try directory.write(Data("old".utf8), to: "file")
        try await Simulation { [file, directory] world in
            let calls = Lock([String]())
            world.onFileChange { call, path in
                let isPartial = path?.hasSuffix(".part") == true
                if isPartial || call == "write" { calls.withLock { $0.append(call) } }
                return isPartial && call == "close" ? ENOSPC : nil
            }
            let manager = SessionManager(on: world.transport { _ in .text("new") }) { $0.clock = world.clock }
            let error = try await sessionError {
                _ = try await manager.download("http://a.example/x", to: .file(file), options: options).value
            }
            #expect(error.fileFailure?.reason == .noSpace)
            #expect(try directory.read("file") == Data("old".utf8))
            // Truncating would drop the error.
            #expect(calls.withLock { $0.prefix { $0 != "close" } }.last == "write")
            await manager.shutdown()
        }.explore(seeds: 1...1)
    }

    @Test func `a closure that throws ends the download, and no file is left`() async throws {
        // Although the download could be resumed.
        let manager = SessionManager(on: MockTransport(.data(Data("new".utf8), headers: [.eTag: "\"1\""])))
        let task = manager.download(
            "x", to: .chosen(temporaryDirectory: directory.path) { _ in throw Planned(number: 7) })
        await #expect(throws: Planned(number: 7)) { try await task.value }
        #expect(try directory.contents == [])
    }

    @Test func `the closure is not called for an error page`() async throws {
        let manager = SessionManager(on: MockTransport(.text("no", status: .notFound)))
        let task = manager.download(
            "x",
            to: .chosen(temporaryDirectory: directory.path) { _ in
                Issue.record("The closure was called.")
                return "/dev/null"
            })
        #expect(try await sessionError { _ = try await task.value }.statusCode == 404)
        #expect(try directory.contents == [])
    }

    @Test func `a chosen path that is a pipe or a directory is not replaced`() async throws {
        let (pipe, subdirectory) = ("\(directory.path)/pipe", "\(directory.path)/folder")
        try unsafe #require(mkfifo(pipe, 0o600) == 0)
        try FileManager.default.createDirectory(atPath: subdirectory, withIntermediateDirectories: false)
        for (path, reason) in [(pipe, SessionError.FileFailure.Reason.exists), (subdirectory, .other)] {
            let error = try await sessionError {
                _ = try await manager.download("x", to: .chosen(temporaryDirectory: directory.path) { _ in path }).value
            }
            #expect(error.fileFailure?.reason == reason)
        }
        #expect(try directory.contents == ["folder", "pipe"])
        var status = stat()
        try unsafe #require(stat(pipe, &status) == 0)
        #expect(status.st_mode & S_IFMT == S_IFIFO)
    }

    @Test func `a file is copied to another file system, and appears atomically`() async throws {
        var (here, there) = (stat(), stat())
        try unsafe #require(stat(directory.path, &here) == 0)
        guard unsafe stat("/dev/shm", &there) == 0, here.st_dev != there.st_dev else { return }
        let target = "/dev/shm/an-download-\(UInt64.random(in: .min ... .max))"
        defer { try? FileManager.default.removeItem(atPath: target) }
        _ = try await manager.download("x", to: .chosen(temporaryDirectory: directory.path) { _ in target }).value
        #expect(try Data(contentsOf: URL(filePath: target)) == Data("new".utf8))
        #expect(try directory.contents == [])
    }

    @Test func `a file may have the longest name that the file system permits`() async throws {
        let longest = "ü" + String(repeating: "a", count: 253)
        _ = try await manager.download("x", to: .file("\(directory.path)/\(longest)")).value
        #expect(try directory.contents == [longest])
        var (here, there) = (stat(), stat())
        try unsafe #require(stat(directory.path, &here) == 0)
        guard unsafe stat("/dev/shm", &there) == 0, here.st_dev != there.st_dev else { return }
        let target = "/dev/shm/" + String(UInt64.random(in: .min ... .max)) + longest.dropLast(21)
        defer { try? FileManager.default.removeItem(atPath: target) }
        _ = try await manager.download("x", to: .chosen(temporaryDirectory: directory.path) { _ in target }).value
        #expect(try Data(contentsOf: URL(filePath: target)) == Data("new".utf8))
    }

    @Test func `an invalid path returned by a closure is an error`() async throws {
        let path = "\(directory.path)/none/file"
        let error = try await sessionError {
            _ = try await manager.download("x", to: .chosen(temporaryDirectory: directory.path) { _ in path }).value
        }
        #expect(error.fileFailure?.path == path)
        #expect(error.fileFailure?.reason == .missingDirectory)
        #expect(try directory.contents == [])
    }

    @Test func `a device is written to directly`() async throws {
        let file = try await manager.download("x", to: "/dev/null", options: .durable).value
        #expect(file.words == "/dev/null: 3 bytes")
    }

    @Test(.exitTest) func `bytes written before the disk was full can be resumed`() async throws {
        // In a process whose files are limited to 1 MB, which has the effect of a full disk; see setrlimit(2).
        await #expect(processExitsWith: .success) { [path = file as String] in
            var limit = rlimit(rlim_cur: 1 << 20, rlim_max: 1 << 20)
            try unsafe #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            let chunk = Data(count: 700_000)
            let manager = SessionManager(
                on: MockTransport(MockResponse(headers: [.eTag: "\"1\""], chunks: [chunk, chunk])))
            let error = try await sessionError { _ = try await manager.download("x", to: .file(path)).value }
            guard case .file(let failure) = error.cause else { throw error }
            try #require(failure.reason == .noSpace)
            try #require(error.resumeData?.offset == 700_000)
        }
    }

    @Test func `reasons are derived from the system's errors`() {
        let reasons: [(Int32, SessionError.FileFailure.Reason)] = [
            (ENOSPC, .noSpace), (EDQUOT, .noSpace), (EFBIG, .noSpace), (EACCES, .notPermitted), (EPERM, .notPermitted),
            (EROFS, .notPermitted), (EEXIST, .exists), (ENOENT, .missingDirectory), (ENOTDIR, .missingDirectory),
            (EISDIR, .other), (EXDEV, .other), (EWOULDBLOCK, .inUse), (EIO, .other),
        ]
        for (errno, reason) in reasons {
            #expect(SessionError.FileFailure(path: "x", call: "write", errno: errno, message: "").reason == reason)
        }
    }
}
