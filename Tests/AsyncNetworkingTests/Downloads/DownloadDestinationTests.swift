// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(1))) struct DownloadDestinationTests {
    private let folder: TemporaryFolder
    private let file: String
    private let manager = SessionManager(on: MockTransport(.text("new")))

    init() throws {
        folder = try TemporaryFolder()
        file = "\(folder.path)/file"
    }

    @Test func `a file that must not be replaced is an error before anything is sent`() async throws {
        _ = try folder.write(Data("old".utf8), to: "file")
        let transport = MockTransport(.text("new"))
        let error = try await sessionError {
            _ = try await SessionManager(on: transport).download("x", to: .file(file, isReplacing: false)).value
        }
        #expect(error.fileProblem?.reason == .exists)
        #expect(error.fileProblem?.path == file)
        #expect(transport.requests.isEmpty)
        #expect(try folder.read("file") == Data("old".utf8))
        #expect(try folder.contents == ["file"])
    }

    @Test func `nor is one replaced that has appeared meanwhile`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport(
            MockResponse([.head(.ok, [.eTag: "\"1\""]), .chunk(Data("new".utf8)), .wait(gate)]))
        let task = await SessionManager(on: transport).download("x", to: .file(file, isReplacing: false))
        _ = await task.progress.first { _ in true }
        _ = try folder.write(Data("old".utf8), to: "file")
        gate.open()
        let error = try await sessionError { _ = try await task.value }
        guard case .file(let problem) = error.cause else { throw error }
        #expect(problem.reason == .exists)
        #expect(try folder.read("file") == Data("old".utf8))
        // What has come is not lost.
        #expect(error.resumeData?.offset == 3)
    }

    @Test func `folders are made where that is asked for`() async throws {
        let path = "\(folder.path)/a/b/file"
        let error = try await sessionError { _ = try await manager.download("x", to: .file(path)).value }
        #expect(error.fileProblem?.reason == .missingFolder)
        _ = try await manager.download("x", to: .file(path, makesFolders: true)).value
        #expect(try folder.read("a/b/file") == Data("new".utf8))
    }

    @Test func `a function chooses by the file and the head`() async throws {
        let folder = folder
        let destination = DownloadDestination.chosen(temporaryFolder: folder.path) { file, head in
            #expect(file.size == 3)
            let written = try Data(contentsOf: URL(filePath: file.path))
            #expect(written == Data("new".utf8))
            return "\(folder.path)/\(head.status.code)"
        }
        let response = try await manager.download("x", to: destination).value
        #expect(response.value == DownloadedFile(path: "\(folder.path)/200", size: 3))
        #expect(try folder.contents == ["200"])
        // Without a folder for temporary files, the system's.
        let other = DownloadDestination.chosen { _, _ in "\(folder.path)/other" }
        _ = try await manager.download("x", to: other).value
        #expect(try folder.contents == ["200", "other"])
    }

    @Test func `a function that throws ends the download, and nothing is left`() async throws {
        // Though it could be continued.
        let manager = SessionManager(on: MockTransport(.data(Data("new".utf8), headers: [.eTag: "\"1\""])))
        let task = await manager.download(
            "x", to: .chosen(temporaryFolder: folder.path) { _, _ in throw Planned(number: 7) })
        await #expect(throws: Planned(number: 7)) { try await task.value }
        #expect(try folder.contents == [])
    }

    @Test func `a function is not asked where to put an error page`() async throws {
        let manager = SessionManager(on: MockTransport(.text("no", status: .notFound)))
        let task = await manager.download(
            "x",
            to: .chosen(temporaryFolder: folder.path) { _, _ in
                Issue.record("It was asked.")
                return "/dev/null"
            })
        #expect(try await sessionError { _ = try await task.value }.statusCode == 404)
        #expect(try folder.contents == [])
    }

    @Test func `a file is copied to another file system, and appears in one step`() async throws {
        var (here, there) = (stat(), stat())
        try unsafe #require(stat(folder.path, &here) == 0)
        guard unsafe stat("/dev/shm", &there) == 0, here.st_dev != there.st_dev else { return }
        let target = "/dev/shm/an-download-\(UInt64.random(in: .min ... .max))"
        defer { try? FileManager.default.removeItem(atPath: target) }
        _ = try await manager.download("x", to: .chosen(temporaryFolder: folder.path) { _, _ in target }).value
        #expect(try Data(contentsOf: URL(filePath: target)) == Data("new".utf8))
        #expect(try folder.contents == [])
    }

    @Test func `a place that a function chooses and that is none is an error`() async throws {
        let path = "\(folder.path)/none/file"
        let error = try await sessionError {
            _ = try await manager.download("x", to: .chosen(temporaryFolder: folder.path) { _, _ in path }).value
        }
        #expect(error.fileProblem?.path == path)
        #expect(error.fileProblem?.reason == .missingFolder)
        #expect(try folder.contents == [])
    }

    @Test func `a device is written to as it is`() async throws {
        let response = try await manager.download("x", to: "/dev/null", options: .durable).value
        #expect(response.value == DownloadedFile(path: "/dev/null", size: 3))
    }

    @Test func `what has been written before the disk was full is there to go on with`() async throws {
        // In a process that may write 1 MB to a file: to the writer it is a disk that is full. See setrlimit(2).
        await #expect(processExitsWith: .success) { [path = file as String] in
            _ = signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 1 << 20, rlim_max: 1 << 20)
            try unsafe #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            let chunk = Data(count: 700_000)
            let manager = SessionManager(
                on: MockTransport(MockResponse(headers: [.eTag: "\"1\""], chunks: [chunk, chunk])))
            let error = try await sessionError { _ = try await manager.download("x", to: path).value }
            guard case .file(let problem) = error.cause else { throw error }
            try #require(problem.reason == .noSpace)
            try #require(error.resumeData?.offset == 700_000)
        }
    }

    @Test func `reasons are those of the system`() {
        let reasons: [(Int32, SessionError.FileProblem.Reason)] = [
            (ENOSPC, .noSpace), (EDQUOT, .noSpace), (EFBIG, .noSpace), (EACCES, .notPermitted), (EPERM, .notPermitted),
            (EROFS, .notPermitted), (EEXIST, .exists), (ENOENT, .missingFolder), (ENOTDIR, .missingFolder),
            (EISDIR, .isFolder), (EXDEV, .otherFileSystem), (EWOULDBLOCK, .inUse), (EIO, .other),
        ]
        for (errno, reason) in reasons {
            #expect(SessionError.FileProblem(path: "x", call: "write", errno: errno, message: "").reason == reason)
        }
    }
}
