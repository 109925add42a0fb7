// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct DurableDownloadsTests {
    private static let bytes = StubServer.generatedBytes(1000)
    private let directory: TemporaryDirectory
    private let file: String

    init() throws {
        directory = try TemporaryDirectory()
        file = "\(directory.path)/file"
    }

    /// Leaves a durable download that was interrupted after 400 bytes; subsequent responses of the server are complete.
    private func breakOff(_ server: StubServer, options: DownloadOptions = .durable) async throws {
        server.serve(ServedFile(Self.bytes, interruption: .close(after: 400)))
        let request = Request(url: server.url("/file"), headers: [.authorization: "secret", .from: "me"])
        let task = SessionManager(for: server).download(request, to: .file(file), options: options)
        #expect(try await sessionError { _ = try await task.value }.resumeData?.offset == 400)
        #expect(try directory.contents == ["file.part", "file.part.json"])
        server.serve(ServedFile(Self.bytes))
    }

    private func rewriteRecord(_ change: (inout ResumeData) -> Void) throws {
        var data = try JSONDecoder().decode(ResumeData.self, from: directory.read("file.part.json"))
        change(&data)
        _ = try directory.write(JSONEncoder().encode(data), to: "file.part.json")
    }

    @Test func `the next download resumes automatically, and leaves only the file`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            let manager = SessionManager(for: server)
            let response = try await manager.download("file", to: .file(file), options: .durable).value.response
            #expect(response.statusCode == 206)
            #expect(server.ranges.last == "bytes=400-")
            #expect(try directory.read("file") == Self.bytes)
            #expect(try directory.contents == ["file"])
        }
    }

    @Test func `bytes that an interceptor has replaced are not continued`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server) {
                $0.interceptors = [
                    Intercepting { request, next in
                        var response = try await next(request)
                        response.body = response.body.transforming { $0 }
                        return response
                    }
                ]
            }
            var options = DownloadOptions.durable.with { $0.startsOverIfNotResumable = false }
            options.expectedDigest = try ContentDigest(of: Self.bytes)
            for interruption in [ServedFile.Interruption.close(after: 400), nil] {
                server.serve(ServedFile(Self.bytes, interruption: interruption))
                let task = manager.download("file", to: .file(file), options: options)
                guard interruption != nil else {
                    _ = try await task.value
                    break
                }
                #expect(try await sessionError { _ = try await task.value }.resumeData == nil)
                #expect(ResumeData.left(at: file)?.offset == 0)
            }
            #expect(server.ranges == [nil, nil])
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    /// Without a record, a partial file is that of another program.
    @Test func `the record of a file that was copied to another file system is removed after the file`() async throws {
        let other = "/dev/shm/an-download-\(UInt64.random(in: .min ... .max))"
        let own = try FileManager.default.attributesOfItem(atPath: directory.path)[.systemNumber] as? Int
        let shared = try? FileManager.default.attributesOfItem(atPath: "/dev/shm")[.systemNumber] as? Int
        guard let shared, shared != own else { return }
        defer { try? FileManager.default.removeItem(atPath: other) }
        try await StubServer.with { server in
            try await breakOff(server)
            let data = try #require(ResumeData.left(at: file))
            let removals = try Removals(in: directory.path)
            _ = try await SessionManager(for: server).download(resuming: data, to: .file(other)).value
            #expect(try Data(contentsOf: URL(filePath: other)) == Self.bytes)
            #expect(removals.names() == ["file.part", "file.part.json"])
        }
    }

    @Test(arguments: ["", "/.", "/link"])
    func `a durable download that is continued may stay where it is`(way: String) async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            try FileManager.default.createSymbolicLink(
                atPath: "\(directory.path)/link", withDestinationPath: directory.path)
            let other = "\(directory.path)\(way)/file"
            let data = try #require(ResumeData.left(at: other))
            let download = SessionManager(for: server).download(
                resuming: data, to: .chosen(temporaryDirectory: directory.path) { $0.path })
            #expect(try await download.value.path == "\(other).part")
            #expect(try directory.read("file.part") == Self.bytes)
            #expect(try directory.contents == ["file.part", "link"])
        }
    }

    @Test func `compressed content is not requested, because it could not be resumed`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            #expect(server.activity.requests.map { $0.headers["Accept-Encoding"] } == ["identity"])
        }
    }

    @Test func `a body with an unrequested content coding is stored as received`() async throws {
        try await StubServer.with { server in
            var served = ServedFile(Self.bytes, headers: ["Content-Encoding": "gzip"], interruption: .close(after: 400))
            server.serve(served)
            let manager = SessionManager(for: server)
            let error = try await sessionError {
                _ = try await manager.download("file", to: .file(file), options: .durable).value
            }
            #expect(error.resumeData?.offset == 400)
            #expect(try directory.read("file.part") == Self.bytes.prefix(400))
            served.interruption = nil
            server.serve(served)
            _ = try await manager.download("file", to: .file(file), options: .durable).value
            #expect(try directory.read("file") == Self.bytes)
            #expect(try directory.contents == ["file"])
        }
    }

    @Test func `a download whose record cannot be written keeps its bytes`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            // Like a full disk, but for the record alone.
            try FileManager.default.createDirectory(
                atPath: "\(file).part.json.new", withIntermediateDirectories: false)
            let manager = SessionManager(for: server)
            let error = try await sessionError {
                _ = try await manager.download("file", to: .file(file), options: .durable).value
            }
            #expect(error.fileFailure?.path == "\(file).part.json")
            #expect(try directory.read("file.part") == Self.bytes.prefix(400))
            try FileManager.default.removeItem(atPath: "\(file).part.json.new")
            let response = try await manager.download("file", to: .file(file), options: .durable).value.response
            #expect(response.statusCode == 206)
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `a download whose directory cannot be flushed leaves nothing, and its next one begins`() async throws {
        try await Simulation { [file, directory] world in
            let fails = Lock(true)
            world.onFileChange { call, path in
                call == "fsync" && path == directory.path && fails.withLock(\.self) ? EIO : nil
            }
            let transport = world.transport { _ in
                MockResponse([.head(.ok, [.contentLength: "1000", .eTag: "\"1\""]), .chunk(Self.bytes)])
            }
            let manager = SessionManager(on: transport) { $0.clock = world.clock }
            let task = manager.download("http://a.example/file", to: .file(file), options: .durable)
            let error = try await sessionError { _ = try await task.value }
            #expect("\(error)".contains("(fsync)"))
            #expect(try directory.contents == [])
            fails.set(\.self, to: false)
            _ = try await manager.download("http://a.example/file", to: .file(file), options: .durable).value
            #expect(try directory.contents == ["file"])
            await manager.shutdown()
        }.explore(seeds: 1...1)
    }

    @Test func `a record that cannot be read at present leaves the download as it is`() async throws {
        let (file, directory) = (file, directory)
        try await StubServer.with { try await breakOff($0) }
        let left = try #require(ResumeData.left(at: file))
        try await Simulation { world in
            let fails = Lock(true)
            world.onFileChange { call, path in
                call == "reopen" && path == "\(file).part.json" && fails.withLock(\.self) ? EMFILE : nil
            }
            let transport = world.transport { _ in
                let fields: HTTPFields = [.contentRange: "bytes 400-999/1000", .eTag: "\"1\""]
                return MockResponse([.head(.partialContent, fields), .chunk(Self.bytes.dropFirst(400))])
            }
            let manager = SessionManager(on: transport) { $0.clock = world.clock }
            for task in [
                manager.download(left.request, to: .file(file), options: .durable), manager.download(resuming: left),
            ] {
                #expect(try await sessionError { _ = try await task.value }.fileFailure?.errno == EMFILE)
            }
            let error = #expect(throws: SessionError.self) {
                try manager.restoredDownloads(in: directory.path, preparing: { _ in })
            }
            #expect(error?.fileFailure?.errno == EMFILE)
            #expect(try directory.contents == ["file.part", "file.part.json"])
            #expect(try directory.read("file.part") == Self.bytes.prefix(400))
            fails.set(\.self, to: false)
            _ = try await manager.download(left.request, to: .file(file), options: .durable).value
            #expect(try directory.read("file") == Self.bytes)
            await manager.shutdown()
        }.explore(seeds: 1...1)
    }

    @Test func `bytes whose flush has failed do not count, also if a later flush succeeds`() async throws {
        try await Simulation { [file, directory] world in
            let flushes = Lock(0)
            world.onFileChange { call, path in
                guard call == "fdatasync", path == "\(file).part" else { return nil }
                let number = flushes.withLock { flushes in
                    flushes += 1
                    return flushes
                }
                return number == 2 ? EIO : nil
            }
            let transport = world.transport { _ in
                let head = MockResponse.Step.head(.ok, [.contentLength: "1000", .eTag: "\"1\""])
                return MockResponse([head, .chunk(Self.bytes.prefix(400)), .chunk(Self.bytes[400..<700]), .hang])
            }
            let options = DownloadOptions.durable.with { $0.flushInterval = 100 }
            let manager = SessionManager(on: transport) { $0.clock = world.clock }
            let task = manager.download("http://a.example/file", to: .file(file), options: options)
            let error = try await sessionError { _ = try await task.value }
            #expect("\(error)".contains("(fdatasync)"))
            #expect(error.resumeData?.offset == 400)
            let record = try JSONDecoder().decode(ResumeData.self, from: directory.read("file.part.json"))
            #expect(record.offset == 400)
            await manager.shutdown()
        }.explore(seeds: 1...1)
    }

    /// What happens to a partial file that an earlier process has left.
    enum LeftFile: CaseIterable, Sendable { case completed, wrong, renamed, takenOver, discarded }

    /// The changes of a directory that a power failure could otherwise do in another order, in which a partial file with
    /// bytes would have no record, and be in the way of all later downloads.
    @Test(arguments: LeftFile.allCases)
    func `a record is removed after what makes it superfluous is on the disk`(kind: LeftFile) async throws {
        let (file, directory) = (file, directory)
        try await StubServer.with { try await breakOff($0) }
        let left = try #require(ResumeData.left(at: file))
        try await Simulation { world in
            let calls = Lock([String]())
            world.onFileChange { call, path in
                let name = path.map { $0 == directory.path ? "." : FileLocation(unresolved: $0).name }
                calls.withLock { $0.append("\(call) \(name ?? "")") }
                return nil
            }
            let transport = world.transport { _ in
                let fields: HTTPFields = [.contentLength: "1000", .eTag: "\"2\""]
                return MockResponse([.head(.ok, fields), .chunk(Self.bytes)])
            }
            let manager = SessionManager(on: transport) { $0.clock = world.clock }
            var options = DownloadOptions.durable
            switch kind {
            case .completed:
                _ = try await manager.download("http://a.example/file", to: .file(file), options: options).value
            case .wrong:
                options.expectedDigest = try ContentDigest(of: Data("x".utf8))
                let task = manager.download("http://a.example/file", to: .file(file), options: options)
                #expect(try await sessionError { _ = try await task.value }.digestFailure != nil)
            case .renamed:
                let task = manager.download(resuming: left, to: .file("\(file).2"), options: options)
                _ = try await task.value
            case .takenOver: _ = try await manager.download(resuming: left, to: .file(file)).value
            case .discarded: left.discard()
            }
            await manager.shutdown()
            let end =
                switch kind {
                case .completed: ["rename file", "fsync .", "unlink file.part.json"]
                case .wrong, .discarded:
                    ["ftruncate file.part", "fdatasync file.part", "fsync .", "unlink file.part.json"]
                case .renamed:
                    [
                        "ftruncate file.2.part", "fdatasync file.2.part", "fdatasync file.part",
                        "unlink file.2.part.json.new", "open file.2.part.json.new", "write ",
                        "fdatasync file.2.part.json.new", "rename file.2.part.json", "fsync .", "rename file.2.part",
                        "fsync .", "unlink file.part.json",
                    ]
                case .takenOver: ["rename file.….part", "fsync .", "unlink file.part.json"]
                }
            let changes = calls.withLock(\.self).filter { call in
                !["reopen", "pread", "lseek", "close"].contains { call.hasPrefix($0) }
            }
            let last = changes.map { call in
                let words = call.split(separator: ".")
                return kind == .takenOver && words.count == 3 && words[2] == "part" ? "\(words[0]).….part" : call
            }
            let index = try #require(last.lastIndex(of: "unlink file.part.json"), "\(last)")
            #expect(Array(last[...index].suffix(end.count)) == end, "\(last)")
            #expect(try directory.contents.filter { $0.hasPrefix("file.part") } == [])
        }.explore(seeds: 1...1)
    }

    @Test func `the bytes of a complete file stay until its last one has arrived again`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            _ = try directory.write(Self.bytes, to: "file.part")
            try rewriteRecord { $0.offset = 1000 }
            server.serve(ServedFile(Self.bytes, interruption: .hang(after: 0)))
            let task = SessionManager(for: server).download("file", to: .file(file), options: .durable)
            var offset: Int64?
            for await event in task.events {
                guard case .continued(let start, _) = event else { continue }
                offset = start
                break
            }
            #expect(offset == 999)
            // If the process is killed now, the next one finds as many bytes as the record counts.
            #expect(try directory.read("file.part") == Self.bytes)
            task.cancel()
            _ = try? await task.value
        }
    }

    @Test func `bytes after the end of a file that was resumed are removed`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            _ = try directory.write(Self.bytes + Data("rest".utf8), to: "file.part")
            _ = try await SessionManager(for: server).download("file", to: .file(file), options: .durable).value
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `a download of another URL starts over`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            server.serve(ServedFile(Self.bytes), at: "/other")
            let manager = SessionManager(for: server)
            #expect(
                try await manager.download("other", to: .file(file), options: .durable).value.response.statusCode == 200
            )
            #expect(server.ranges.last == .some(nil))
            #expect(try directory.contents == ["file"])
        }
    }

    @Test func `cancelling a durable download keeps it`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, interruption: .hang(after: 400)))
            let manager = SessionManager(for: server)
            let task = manager.download("file", to: .file(file), options: .durable)
            try await eventually {
                try directory.contents.contains("file.part") && directory.read("file.part").count == 400
            }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(task.resumeData?.offset == 400)
            server.serve(ServedFile(Self.bytes))
            #expect(
                try await manager.download("file", to: .file(file), options: .durable).value.response.statusCode == 206)
        }
    }

    @Test func `the record can be read only by its owner, and contains no credentials`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            var status = stat()
            try unsafe #require(stat("\(file).part.json", &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            let data = try JSONDecoder().decode(ResumeData.self, from: directory.read("file.part.json"))
            #expect(data.headers == [.from: "me"])
        }
    }

    @Test(arguments: ["", "{}", "nonsense", #"{"offset": 400}"#])
    func `a malformed record is ignored`(record: String) async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            _ = try directory.write(Data(record.utf8), to: "file.part.json")
            let manager = SessionManager(for: server)
            #expect(try manager.restoredDownloads(in: directory.path).isEmpty)
            #expect(
                try await manager.download("file", to: .file(file), options: .durable).value.response.statusCode == 200)
            #expect(try directory.read("file") == Self.bytes)
            #expect(try directory.contents == ["file"])
        }
    }

    @Test func `bytes after those that the record counts are written again`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            try rewriteRecord { $0.offset = 250 }
            _ = try directory.write(Self.bytes.prefix(250) + Data("not on the disk".utf8), to: "file.part")
            _ = try await SessionManager(for: server).download("file", to: .file(file), options: .durable).value
            #expect(server.ranges.last == "bytes=250-")
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `a record that counts more bytes than the file has starts over`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            _ = try directory.write(Self.bytes.prefix(399), to: "file.part")
            _ = try await SessionManager(for: server).download("file", to: .file(file), options: .durable).value
            #expect(server.ranges.last == .some(nil))
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `a second download to the same file is refused while the first one runs`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, interruption: .hang(after: 400)))
            let manager = SessionManager(for: server)
            let first = manager.download("file", to: .file(file), options: .durable)
            _ = await first.progress.first { _ in true }
            let error = try await sessionError {
                _ = try await SessionManager(for: server).download("file", to: .file(file), options: .durable).value
            }
            #expect(error.fileFailure?.reason == .inUse)
            #expect(try manager.restoredDownloads(in: directory.path).isEmpty)
            first.cancel()
            _ = try? await first.value
        }
    }

    @Test func `a file with a wrong digest leaves nothing to resume`() async throws {
        let digest = try #require(ContentDigest("sha256:" + String(repeating: "0", count: 64)))
        try await StubServer.with { server in
            try await breakOff(server, options: .durable.with { $0.expectedDigest = digest })
            // The same digest is expected after a restart.
            let task = try #require(try SessionManager(for: server).restoredDownloads(in: directory.path).first)
            task.resume()
            #expect(try await sessionError { _ = try await task.value }.digestFailure?.expected == digest)
            #expect(try directory.contents == [])
        }
    }

    // MARK: Other users, and a lack of descriptors

    /// A download of the same path may begin between the move of the file and the removal of the record.
    @Test func `a record that another download has written stays, even with the same bytes`() async throws {
        let gate = try ScriptGate()
        try await StubServer.with { server in
            let head = Reply(body: .generated(500), framing: .contentLength(declared: 1_000))
            server.route("/file", Script([.reply(head), .wait(gate), .generate(500)]))
            // The record is not written again within a second, however long the test takes.
            let clock = ManualClock()
            let task = SessionManager(for: server) { $0.clock = clock }
                .download("file", to: .file(file), options: .durable)
            try await eventually {
                try directory.contents.contains("file.part") && directory.read("file.part").count == 500
            }
            let record = try directory.read("file.part.json")
            try FileManager.default.removeItem(atPath: "\(file).part.json")
            _ = try directory.write(record, to: "file.part.json")
            gate.open()
            _ = try await task.value
            #expect(try directory.contents == ["file", "file.part.json"])
        }
    }

    @Test func `a record that another download has written stays after one that is not durable`() async throws {
        try await StubServer.with { try await breakOff($0) }
        let left = try #require(ResumeData.left(at: file))
        let gate = try ScriptGate()
        let fields: HTTPFields = [.contentRange: "bytes 400-999/1000", .contentLength: "600"]
        let manager = SessionManager(
            on: MockTransport(
                MockResponse([.head(.partialContent, fields), .chunk(Self.bytes[400...]), .wait(gate)])))
        let task = manager.download(resuming: left)
        for await progress in task.progress where progress.completedBytes == 1000 { break }
        try rewriteRecord { $0.offset = 5 }
        gate.open()
        _ = try await task.value
        #expect(try directory.read("file") == Self.bytes)
        #expect(try directory.contents == ["file", "file.part.json"])
    }

    /// As root, files can be given to another user.
    @Test(.enabled(if: geteuid() == 0), arguments: ["file.part", "file.part.json"])
    func `files that another user has planted are neither used nor overwritten`(name: String) async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            let victim = try directory.write(Data("precious".utf8), to: "victim")
            if name == "file.part.json" { try rewriteRecord { $0.destination = victim } }
            let isGiven = unsafe chown("\(directory.path)/\(name)", 65_534, 65_534) == 0
            try #require(isGiven)
            let manager = SessionManager(for: server)
            if name == "file.part.json" {
                #expect(try manager.restoredDownloads(in: directory.path).isEmpty)
                let file = try await manager.download("file", to: .file(file), options: .durable).value
                #expect(file.response.statusCode == 200)
                #expect(try directory.read("file") == Self.bytes)
            } else {
                for task in try manager.restoredDownloads(in: directory.path) {
                    task.resume()
                    await #expect(throws: SessionError.self) { try await task.value }
                }
                let error = try await sessionError {
                    _ = try await manager.download("file", to: .file(file), options: .durable).value
                }
                #expect(error.fileFailure?.reason == .notPermitted)
                #expect(try directory.read("file.part") == Self.bytes.prefix(400))
            }
            #expect(try directory.read("victim") == Data("precious".utf8))
        }
    }

    @Test(.exitTest, arguments: [true, false])
    func `a lack of descriptors when a download begins or ends is named, and the download goes on later`(begins: Bool)
        async
    {
        await #expect(processExitsWith: .success) { [begins] in
            let directory = try TemporaryDirectory()
            let gate = try ScriptGate()
            try await StubServer.with { server in
                let head = Reply(
                    headers: ["ETag": "\"a\""], body: .generated(500), framing: .contentLength(declared: 1_000))
                server.route("/file", begins ? .generated(1_000) : Script([.reply(head), .wait(gate), .generate(500)]))
                server.route("/warm", .text("x"))
                let manager = SessionManager(for: server)
                // Opens the connection.
                _ = try await manager.data(for: manager.request(.get, "warm"))
                let path = "\(directory.path)/file"
                var limit = rlimit()
                unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                let old = limit.rlim_cur
                let download = manager.download("file", to: .file(path), options: .durable)
                download.suspend()
                if !begins {
                    download.resume()
                    try await eventually {
                        try directory.contents.contains("file.part") && directory.read("file.part").count == 500
                    }
                }
                limit.rlim_cur = 256
                unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                var taken: [Int32] = []
                while case let number = dup(0), number >= 0 { taken.append(number) }
                gate.open()
                if begins { download.resume() }
                let result: Result<Void, any Error>
                do {
                    _ = try await download.value
                    result = .success(())
                } catch {
                    result = .failure(error)
                }
                for number in taken { Glibc.close(number) }
                limit.rlim_cur = old
                unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                if case .failure(let error) = result {
                    try #require("\(error)".contains("Too many open files"))
                    server.serve(ServedFile(Self.bytes))
                    _ = try await manager.download("file", to: .file(path), options: .durable).value
                } else {
                    try #require(!begins)
                }
                try #require(try directory.read("file").count == 1_000)
                // A record that could not be removed safely is removed when downloads are restored.
                try #require(try manager.restoredDownloads(in: directory.path).isEmpty)
                try #require(try directory.contents == ["file"])
            }
        }
    }

    // MARK: After a restart

    @Test func `durable downloads are found after a restart, and can be given credentials`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            _ = try directory.write(Data(), to: "unrelated.part.json.txt")
            let manager = SessionManager(for: server)
            let tasks = try manager.restoredDownloads(in: directory.path) { $0.headers[.authorization] = "new secret" }
            let task = try #require(tasks.first)
            #expect(tasks.count == 1)
            #expect(task.status.state == .suspended)
            #expect(task.request?.url == server.url("/file"))
            #expect(manager.tasks == [task.erased])
            task.resume()
            #expect(try await task.value.words == "\(file): 1000 bytes")
            #expect(try directory.read("file") == Self.bytes)
            #expect(server.activity.requests.last?.headers["Authorization"] == "new secret")
            #expect(server.activity.requests.last?.headers["From"] == "me")
            #expect(try manager.restoredDownloads(in: directory.path).isEmpty)
        }
    }

    @Test func `durable downloads are found in a directory that was moved`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            let other = try TemporaryDirectory()
            for name in try directory.contents {
                try FileManager.default.moveItem(atPath: "\(directory.path)/\(name)", toPath: "\(other.path)/\(name)")
            }
            let task = try #require(try SessionManager(for: server).restoredDownloads(in: other.path).first)
            task.resume()
            #expect(try await task.value.path == "\(other.path)/file")
            #expect(try other.contents == ["file"])
            #expect(try directory.contents == [])
        }
    }

    @Test func `a relative directory is resolved when the tasks are created`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            let levels = FileManager.default.currentDirectoryPath.split(separator: "/").count
            let path = String(repeating: "../", count: levels) + directory.path.dropFirst()
            let tasks = try SessionManager(for: server).restoredDownloads(in: path)
            let task = try #require(tasks.first)
            task.resume()
            #expect(try await task.value.path.hasPrefix("/"))
            #expect(try directory.contents == ["file"])
        }
    }

    @Test func `a record of a completed file is removed`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            try FileManager.default.moveItem(atPath: "\(file).part", toPath: file)
            #expect(try SessionManager(for: server).restoredDownloads(in: directory.path).isEmpty)
            #expect(try directory.contents == ["file"])
        }
    }

    @Test func `a download that has not received a response is found as well`() async throws {
        try await StubServer.with { server in
            server.route("/file", .hang)
            let manager = SessionManager(for: server)
            let task = manager.download("file", to: .file(file), options: .durable)
            try await server.requests(count: 1)
            task.cancel()
            _ = try? await task.value
            #expect(task.resumeData == nil)
            server.serve(ServedFile(Self.bytes))
            let restored = try #require(try manager.restoredDownloads(in: directory.path).first)
            restored.resume()
            #expect(try await restored.value.size == 1000)
        }
    }

    // MARK: Files of others

    @Test(arguments: ["", "{}", "A wheel has parts.", #"{"offset": 400}"#])
    func `a file that is not a record is not touched`(text: String) async throws {
        _ = try directory.write(Data(text.utf8), to: "wheel.part.json")
        try FileManager.default.createDirectory(
            atPath: "\(directory.path)/models.part.json/a", withIntermediateDirectories: true)
        let manager = SessionManager(on: MockTransport(.hang))
        #expect(try manager.restoredDownloads(in: directory.path).isEmpty)
        #expect(try directory.contents == ["models.part.json", "wheel.part.json"])
        #expect(try directory.read("wheel.part.json") == Data(text.utf8))
    }

    enum Saving: CaseIterable, Sendable { case atPath, chosen, written }

    @Test(arguments: ["file.part", "file.part.json"], Saving.allCases)
    func `the files of an unfinished download are not replaced by another one`(name: String, saving: Saving)
        async throws
    {
        try await StubServer.with { server in
            try await breakOff(server)
            server.serve(ServedFile(Data(repeating: 7, count: 1000)), at: "/other")
            let manager = SessionManager(for: server)
            let path = "\(directory.path)/\(name)"
            let error = try await sessionError {
                switch saving {
                case .atPath: _ = try await manager.download("other", to: .file(path)).value
                case .chosen:
                    let destination = DownloadDestination.chosen(temporaryDirectory: directory.path) { _ in path }
                    _ = try await manager.download("other", to: destination).value
                case .written:
                    _ = try await manager.withResponse(for: try manager.request(.get, "other")) { _, body in
                        try await body.write(to: path)
                    }
                }
            }
            error.resumeData?.discard()
            let cause = error.cause
            #expect(cause.fileFailure?.reason == .exists)
            #expect(cause.fileFailure?.path == "\(file).part.json")
            #expect(try directory.contents == ["file.part", "file.part.json"])
            let rest = try await manager.download("file", to: .file(file), options: .durable).value
            #expect(rest.response.statusCode == 206)
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `a file may have the name of a partial file if there is no download to continue`() async throws {
        let manager = SessionManager(on: MockTransport(.text("x")))
        for name in ["a.part", "a.part.json"] {
            for _ in 0..<2 { _ = try await manager.download("x", to: .file("\(directory.path)/\(name)")).value }
        }
        #expect(try directory.contents == ["a.part", "a.part.json"])
    }

    @Test(arguments: [true, false])
    func `a file that is complete already leaves nothing of an unfinished download`(isFound: Bool) async throws {
        try await StubServer.with { server in
            let digest = try ContentDigest(of: Self.bytes)
            try await breakOff(server, options: .durable.with { $0.expectedDigest = digest })
            _ = try directory.write(Self.bytes, to: "file")
            let manager = SessionManager(for: server)
            var options = DownloadOptions().with { $0.skipsVerifiedFile = true }
            if isFound { (options.isDurable, options.expectedDigest) = (true, digest) }
            let left = try #require(ResumeData.left(at: file))
            let task =
                isFound
                ? manager.download("file", to: .file(file), options: options)
                : manager.download(resuming: left, options: options)
            #expect(try await task.value.response.statusCode == 304)
            #expect(try directory.contents == ["file"])
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `a record is not believed if others can write it, or if it names a file elsewhere`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            let manager = SessionManager(for: server)
            let record = "\(file).part.json"
            #expect(try manager.restoredDownloads(in: directory.path).count == 1)
            #expect(unsafe chmod(record, 0o622) == 0)
            #expect(try manager.restoredDownloads(in: directory.path).isEmpty)
            #expect(unsafe chmod(record, 0o600) == 0)
            try rewriteRecord { $0.destination = "/etc/other" }
            #expect(try manager.restoredDownloads(in: directory.path).isEmpty)
            try rewriteRecord { $0.destination = "/elsewhere/file" }
            let data = try #require(ResumeData.left(at: file))
            #expect(data.destination == file)
            try FileManager.default.moveItem(atPath: record, toPath: record + ".away")
            try FileManager.default.createSymbolicLink(atPath: record, withDestinationPath: record + ".away")
            #expect(ResumeData.left(at: file) == nil)
        }
    }

    @Test func `a record does not outlive the bytes that it counts`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            let left = try #require(ResumeData.left(at: file))
            server.route("/file") { _ in
                let head = "HTTP/1.1 200 OK\r\nETag: \"2\"\r\nContent-Length: 2000\r\n\r\n"
                return Script([.send(Data(head.utf8)), .generate(900), .end(.close)])
            }
            let options = DownloadOptions().with { $0.keepsPartialFile = true }
            let task = SessionManager(for: server).download(resuming: left, options: options)
            let error = try await sessionError { _ = try await task.value }
            #expect(ResumeData.left(at: file) == nil)
            #expect(error.resumeData?.completedBytes ?? 0 > 0)
            // Nor does a file without a record, which would be in the way of the next durable download.
            server.serve(ServedFile(Self.bytes))
            _ = try await SessionManager(for: server).download("file", to: .file(file), options: .durable).value
            #expect(try directory.read("file") == Self.bytes)
            error.resumeData?.discard()
            #expect(try directory.contents == ["file"])
        }
    }

    @Test func `a file that others may read is no record`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: "\(file).part.json")
            #expect(ResumeData.left(at: file) == nil)
            #expect(try SessionManager(for: server).restoredDownloads(in: directory.path).isEmpty)
        }
    }

    @Test func `the digest in a record is expected also if the bytes that it counts are missing`() async throws {
        try await StubServer.with { server in
            let expected = try ContentDigest(of: Self.bytes)
            try await breakOff(server, options: .durable.with { $0.expectedDigest = expected })
            _ = try directory.write(Self.bytes.prefix(100), to: "file.part")
            let manager = SessionManager(for: server)
            server.route("/file", .status(500))
            let failure = try await sessionError {
                _ = try await manager.download("file", to: .file(file), options: .durable).value
            }
            #expect(failure.statusCode == 500)
            #expect(ResumeData.left(at: file)?.expectedDigest == expected)
            server.serve(ServedFile(Data(Self.bytes.reversed())))
            let error = try await sessionError {
                _ = try await manager.download("file", to: .file(file), options: .durable).value
            }
            #expect(error.digestFailure?.expected == expected)
            #expect(try directory.contents == [])
        }
    }

    @Test func `a durable download of other resume data replaces what an earlier one has left there`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            let manager = SessionManager(for: server)
            let other = Data(Self.bytes.reversed())
            server.serve(ServedFile(other, interruption: .close(after: 400)), at: "/other")
            let error = try await sessionError {
                _ = try await manager.download("other", to: .file("\(directory.path)/other")).value
            }
            let data = try #require(error.resumeData)
            // Another download writes there.
            let writer = try PartialFile(path: "\(file).part", opening: .existing)
            let conflict = try await sessionError {
                _ = try await manager.download(resuming: data, to: .file(file), options: .durable).value
            }
            #expect(conflict.fileFailure?.reason == .inUse)
            writer.keep()
            server.route("/other", .status(500))
            let task = manager.download(resuming: data, to: .file(file), options: .durable)
            #expect(try await sessionError { _ = try await task.value }.statusCode == 500)
            #expect(try directory.contents == ["file.part", "file.part.json"])
            #expect(try directory.read("file.part") == other.prefix(400))
            server.serve(ServedFile(other), at: "/other")
            let restored = try #require(try manager.restoredDownloads(in: directory.path).first)
            restored.resume()
            #expect(try await restored.value.response.statusCode == 206)
            #expect(try directory.read("file") == other)
            #expect(try directory.contents == ["file"])
        }
    }

    @Test func `resume data is not continued over a file of another origin`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, interruption: .close(after: 400)))
            let manager = SessionManager(for: server)
            let error = try await sessionError { _ = try await manager.download("file", to: .file(file)).value }
            let data = try #require(error.resumeData)
            _ = try directory.write(Data("mine".utf8), to: "file.part")
            let task = manager.download(resuming: data, options: .durable)
            #expect(try await sessionError { _ = try await task.value }.fileFailure?.reason == .exists)
            #expect(try directory.read("file.part") == Data("mine".utf8))
            #expect(task.resumeData == data)
            #expect(try Data(contentsOf: URL(filePath: data.partialFile)) == Self.bytes.prefix(400))
        }
    }

    @Test func `the names of a partial file in a directory with a symbolic link are one file`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            _ = try directory.write(Data("old".utf8), to: "file")
            let link = "\(directory.path)/link"
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: directory.path)
            let manager = SessionManager(for: server)
            let task = try #require(try manager.restoredDownloads(in: link).first)
            task.resume()
            #expect(try await task.value.response.statusCode == 206)
            #expect(try directory.contents == ["file", "link"])
        }
    }

    @Test func `a record goes with a partial file that is removed`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            let left = try #require(ResumeData.left(at: file))
            _ = try directory.write(Self.bytes.prefix(100), to: "file.part")
            server.serve(ServedFile(Self.bytes, entityTag: nil, hasRanges: false))
            let other = "\(directory.path)/other"
            _ = try await SessionManager(for: server).download(resuming: left, to: .file(other)).value
            #expect(try directory.contents == ["other"])
        }
    }

    @Test func `files that a download writes are not discarded, and its data stays valid`() async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            let left = try #require(ResumeData.left(at: file))
            let writer = try PartialFile(path: left.partialFile, opening: .existing)
            left.discard()
            #expect(ResumeData.left(at: file) == left)
            let task = SessionManager(for: server).download(resuming: left, options: .durable)
            #expect(try await sessionError { _ = try await task.value }.fileFailure?.reason == .inUse)
            #expect(task.resumeData == left)
            writer.keep()
        }
    }

    @Test func `a symbolic link in place of the partial file is not followed`() async throws {
        let other = try directory.write(Data("mine".utf8), to: "other")
        try FileManager.default.createSymbolicLink(atPath: "\(file).part", withDestinationPath: other)
        let manager = SessionManager(on: MockTransport(.text("x")))
        let error = try await sessionError {
            _ = try await manager.download("x", to: .file(file), options: .durable).value
        }
        #expect(error.fileFailure?.errno == ELOOP)
        #expect(try directory.read("other") == Data("mine".utf8))
    }

    @Test func `a file of another origin in place of the partial file is refused`() async throws {
        _ = try directory.write(Data("mine".utf8), to: "file.part")
        let manager = SessionManager(on: MockTransport(.text("x")))
        let error = try await sessionError {
            _ = try await manager.download("x", to: .file(file), options: .durable).value
        }
        #expect(error.fileFailure?.reason == .exists)
        #expect(error.fileFailure?.path == "\(file).part" || error.fileFailure?.path == file)
        #expect(try directory.contents == ["file.part"])
    }

    @Test func `listing a directory does not disturb downloads that start`() async throws {
        let manager = SessionManager(on: MockTransport(.text("x")))
        let lister = Task.detached { [directory] in
            while !Task.isCancelled { _ = try manager.restoredDownloads(in: directory.path) }
        }
        for _ in 0..<200 {
            _ = try await manager.download("x", to: .file(file), options: .durable).value
        }
        lister.cancel()
        try await lister.value
        #expect(try directory.contents == ["file"])
    }

    @Test func `the option not to overwrite a file is kept`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, interruption: .close(after: 400)))
            let manager = SessionManager(for: server)
            _ = try await sessionError {
                _ = try await manager.download(
                    "file", to: .file(file, overwritesExisting: false), options: .durable
                ).value
            }
            server.serve(ServedFile(Self.bytes))
            _ = try directory.write(Data("other".utf8), to: "file")
            let task = try #require(try manager.restoredDownloads(in: directory.path).first)
            task.resume()
            let error = try await sessionError { _ = try await task.value }
            #expect(error.cause.fileFailure?.reason == .exists)
            #expect(try directory.read("file") == Data("other".utf8))
        }
    }

    @Test(arguments: [241, 242, 250, 255])
    func `a name may have as many bytes as the file system permits`(length: Int) async throws {
        try await StubServer.with { server in
            let file = directory.path + "/" + String(repeating: "n", count: length)
            server.serve(ServedFile(Self.bytes, interruption: .close(after: 400)))
            let manager = SessionManager(for: server)
            _ = try await sessionError {
                _ = try await manager.download("file", to: .file(file), options: .durable).value
            }
            server.serve(ServedFile(Self.bytes))
            #expect(ResumeData.left(at: file)?.offset == 400)
            let task = try #require(try manager.restoredDownloads(in: directory.path).first)
            task.resume()
            _ = try await task.value
            #expect(try directory.contents == [String(repeating: "n", count: length)])
        }
    }

    @Test(arguments: [true, false])
    func `a path with a NUL is refused, also if the file before it exists`(isChosen: Bool) async throws {
        _ = try directory.write(Data("old".utf8), to: "file")
        let manager = SessionManager(on: MockTransport(.text("x")))
        let path = file + "\0.txt"
        let error = try await sessionError {
            _ = try await manager.download("x", to: isChosen ? .chosen { _ in path } : .file(path)).value
        }
        #expect(error.cause.fileFailure?.errno == EINVAL)
        #expect(try directory.contents == ["file"])
        #expect(try directory.read("file") == Data("old".utf8))
    }

    @Test func `a directory that does not exist is no file`() async throws {
        let transport = MockTransport(.text("x"))
        let manager = SessionManager(on: transport)
        let error = try await sessionError {
            _ = try await manager.download("x", to: .file(file + "/", createsIntermediateDirectories: true)).value
        }
        #expect(error.fileFailure?.errno == EISDIR)
        #expect(transport.requests.isEmpty)
        #expect(try directory.contents == [])
    }

    @Test func `a file that another name of the record leads to keeps its bytes`() async throws {
        let precious = try directory.write(Data("precious".utf8), to: "precious")
        try FileManager.default.linkItem(atPath: precious, toPath: "\(file).part.json.new")
        let manager = SessionManager(on: MockTransport(.text("x")))
        _ = try await manager.download("x", to: .file(file), options: .durable).value
        #expect(try directory.read("precious") == Data("precious".utf8))
        #expect(try directory.contents == ["file", "precious"])
    }

    @Test func `the bytes that were verified are delivered, even if the partial file was replaced`() async throws {
        let manager = SessionManager(on: MockTransport(.text("right")))
        let file = file
        _ = try await manager.download(
            "x",
            to: .chosen(temporaryDirectory: directory.path) { downloaded in
                try FileManager.default.removeItem(atPath: downloaded.path)
                try Data("wrong".utf8).write(to: URL(filePath: downloaded.path))
                return file
            }
        ).value
        #expect(try directory.read("file") == Data("right".utf8))
    }

    @Test func `a file that is replaced keeps its permissions`() async throws {
        _ = try directory.write(Data("old".utf8), to: "file")
        #expect(unsafe chmod(file, 0o640) == 0)
        let manager = SessionManager(on: MockTransport(.text("new")))
        _ = try await manager.download("x", to: .file(file)).value
        var status = stat()
        #expect(unsafe stat(file, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o640)
    }

    @Test(arguments: [DownloadOptions(), .durable], [UInt16(0o600), 0o440])
    func `the partial file is no more readable than the file that it replaces`(
        options: DownloadOptions, mode: UInt16
    ) async throws {
        _ = try directory.write(Data("old".utf8), to: "file")
        #expect(unsafe chmod(file, mode_t(mode)) == 0)
        let transport = MockTransport(MockResponse([.head(.ok, [.eTag: "\"1\""]), .chunk(Data("new".utf8)), .hang]))
        let manager = SessionManager(on: transport)
        let task = manager.download("x", to: .file(file), options: options)
        for await progress in task.progress where progress.completedBytes > 0 { break }
        let partial = try #require(try directory.contents.first { $0.hasSuffix(".part") })
        var status = stat()
        #expect(unsafe stat("\(directory.path)/\(partial)", &status) == 0)
        #expect(status.st_mode & 0o777 & ~0o600 == mode_t(mode) & 0o040)
        task.cancel()
        _ = try? await task.value
    }

    @Test(arguments: [true, false])
    func `a partial file that is continued is no more readable than the file that it replaces`(
        isFound: Bool
    ) async throws {
        try await StubServer.with { server in
            try await breakOff(server)
            _ = try directory.write(Data("old".utf8), to: "file")
            #expect(unsafe chmod(file, 0o600) == 0 && chmod("\(file).part", 0o644) == 0)
            server.serve(ServedFile(Self.bytes, interruption: .hang(after: 0)))
            let manager = SessionManager(for: server)
            let data = try #require(ResumeData.left(at: file))
            let task =
                isFound
                ? manager.download("file", to: .file(file), options: .durable) : manager.download(resuming: data)
            for await event in task.events { if case .continued = event { break } }
            var status = stat()
            #expect(unsafe stat("\(file).part", &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            task.cancel()
            _ = try? await task.value
        }
    }

    @Test func `a partial file that must not replace another one stays private`() async throws {
        _ = try directory.write(Data("old".utf8), to: "file")
        let transport = MockTransport(MockResponse([.head(.ok, [.eTag: "\"1\""]), .chunk(Data("new".utf8))]))
        let file = file
        let task = SessionManager(on: transport).download(
            "x", to: .chosen(temporaryDirectory: directory.path, overwritesExisting: false) { _ in file })
        let data = try #require(try await sessionError { _ = try await task.value }.resumeData)
        var status = stat()
        #expect(unsafe stat(data.partialFile, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
    }

    @Test func `a body that replaces a private file is not readable meanwhile`() async throws {
        _ = try directory.write(Data("old".utf8), to: "file")
        #expect(unsafe chmod(file, 0o600) == 0)
        let manager = SessionManager(on: MockTransport(.text("new")))
        _ = try await manager.withResponse(for: try manager.request(.get, "x")) { _, body in
            try await body.write(to: file) { _ in
                let partial = try #require(try directory.contents.first { $0.hasSuffix(".part") })
                var status = stat()
                #expect(unsafe stat("\(directory.path)/\(partial)", &status) == 0)
                #expect(status.st_mode & 0o777 == 0o600)
            }
        }
    }

    @Test func `a missing directory has no downloads, and a file in its place is an error`() async throws {
        let manager = SessionManager(on: MockTransport(.text("x")))
        #expect(try manager.restoredDownloads(in: "\(directory.path)/none/none").isEmpty)
        let file = try directory.write(Data(), to: "file")
        let error = try await sessionError { _ = try manager.restoredDownloads(in: file) }
        #expect(error.fileFailure?.reason == .missingDirectory)
    }
}

/// Processes killed at random moments, as by `kill -9`, and processes that resume their downloads.
@Suite(.timeLimit(.minutes(5))) struct KilledDownloadsTests {
    private static let bytes = StubServer.generatedBytes(300_000)
    private static let killsOfEachFile = rounds(20, few: 5)

    /// Slow, because it kills processes, each up to 90 ms after its start.
    @Test(.exitTest) func `a file is never corrupt, no matter how often its process is killed`() async throws {
        let directory = try TemporaryDirectory()
        try await StubServer.with { server in
            // A file takes about 60 ms.
            server.serve(ServedFile(Self.bytes, pace: Script.Pace(bytes: 5_000, every: .milliseconds(1))))
            try await withThrowingTaskGroup { group in
                for (number, segments) in [1, 1, 4, 4].enumerated() {
                    let url = server.url("/file").absoluteString
                    group.addTask { try await kill("file\(number)", in: directory, url, segments: segments) }
                }
                try await group.waitForAll()
            }
            // Those of segments that begin have an end.
            let hasGoneOn = server.ranges.contains { $0?.hasSuffix("-") == true }
            #expect(hasGoneOn, "None has gone on where another one was.")
        }
        #expect(try directory.contents == (0..<4).map { "file\($0)" })
    }

    private func kill(
        _ name: String, in directory: TemporaryDirectory, _ url: String, segments: Int
    ) async throws {
        var offset: Int64 = 0
        for _ in 0..<Self.killsOfEachFile {
            let delay = Int.random(in: 0...90_000)
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [
                    url = url as String, path = "\(directory.path)/\(name)" as String, delay = delay as Int,
                    segments = segments as Int
                ] in
                try await Self.download(url, to: path, segments: segments, killedAfter: .microseconds(delay))
            }
            if try directory.contents.contains(name) {
                #expect(try directory.read(name) == Self.bytes, "killed after \(delay) µs")
                for left in try directory.contents where left.hasPrefix(name) {
                    try FileManager.default.removeItem(atPath: "\(directory.path)/\(left)")
                }
                offset = 0
            } else if let record = try? directory.read("\(name).part.json") {
                let data = try JSONDecoder().decode(ResumeData.self, from: record)
                let partial = try directory.read("\(name).part")
                for range in [0..<data.offset] + (data.parts?.ranges ?? []) {
                    let range = Int(range.lowerBound)..<Int(range.upperBound)
                    try #require(range.upperBound <= partial.count)
                    #expect(partial[range] == Self.bytes[range])
                }
                #expect(data.completedBytes >= offset, "killed after \(delay) µs")
                offset = data.completedBytes
            }
        }
        let manager = SessionManager { $0.proxy = .none }
        _ = try await manager.download(
            Request(url: try #require(URL(string: url))), to: "\(directory.path)/\(name)", options: .durable
        ).value
        #expect(try directory.read(name) == Self.bytes)
    }

    private static func download(
        _ url: String, to path: String, segments: Int, killedAfter delay: Duration
    ) async throws {
        DispatchQueue.global().asyncAfter(deadline: .now() + delay / .seconds(1)) { Glibc.kill(getpid(), SIGKILL) }
        let manager = SessionManager { $0.proxy = .none }
        let request = Request(url: try #require(URL(string: url)))
        let options = DownloadOptions.durable.with {
            $0.flushInterval = 20_000
            $0.segments = .count(segments)
            $0.segmentTuning.minimum = 10_000
        }
        _ = try await manager.download(request, to: .file(path), options: options).value
        try await Task.sleep(for: .seconds(60))
    }
}

/// The names that are removed from a directory, in this order. See inotify(7).
private struct Removals: ~Copyable {
    private let descriptor: FileDescriptor

    init(in directory: String) throws {
        descriptor = FileDescriptor(takingOwnershipOf: inotify_init1(Int32(O_NONBLOCK | O_CLOEXEC)))
        try unsafe #require(inotify_add_watch(descriptor.number, directory, UInt32(IN_DELETE)) >= 0)
    }

    /// The names so far.
    func names() -> [String] {
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count = unsafe read(descriptor.number, &bytes, bytes.count)
        var rest = bytes.prefix(max(0, count))
        var names: [String] = []
        // The last of the four integers before a name is its length, with the bytes that fill it up.
        while rest.count >= 16 {
            let length = Int(rest[rest.startIndex + 12]) | Int(rest[rest.startIndex + 13]) << 8
            names.append(String(decoding: rest.dropFirst(16).prefix { $0 != 0 }, as: UTF8.self))
            rest = rest.dropFirst(16 + length)
        }
        return names
    }
}
