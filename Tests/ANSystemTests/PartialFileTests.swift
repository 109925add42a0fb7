// SPDX-License-Identifier: MIT

import ANSystem
import Foundation
import TestSupport
import Testing

@Suite final class PartialFileTests {
    private let directory = NSTemporaryDirectory() + "an-partial-\(UInt64.random(in: .min ... .max))"
    private let path: String

    init() throws {
        path = directory + "/a.part"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: directory)
    }

    private var names: [String] {
        get throws { try FileLocation.names(in: directory) }
    }

    private func text(of path: String) throws -> String {
        try String(contentsOfFile: path, encoding: .utf8)
    }

    /// Creates a partial file with a text and keeps it.
    private func leave(_ text: String) throws {
        var file = try PartialFile(path: path, opening: .new)
        try file.write(Data(text.utf8).bytes)
        file.keep()
    }

    @Test func `a file that is neither kept nor moved is removed`() throws {
        do {
            var file = try PartialFile(path: path, opening: .new)
            try file.write(Data("abc".utf8).bytes)
            #expect(try names == ["a.part"])
        }
        #expect(try names == [])
    }

    @Test func `a kept file can be continued and truncated`() throws {
        try leave("abcdef")
        var file = try PartialFile(path: path, opening: .existing)
        #expect(file.size == 6)
        try file.truncate(to: 2)
        try file.write(Data("XY".utf8).bytes)
        try file.flush()
        var bytes = Data(count: 16)
        var span = bytes.mutableBytes
        #expect(try file.read(into: &span, at: 1) == 3)
        #expect(bytes.prefix(3) == Data("bXY".utf8))
        try file.move(to: directory + "/a")
        #expect(try names == ["a"])
        #expect(try text(of: directory + "/a") == "abXY")
    }

    @Test func `a file that is rewound keeps its bytes until they are overwritten`() throws {
        try leave("abcdef")
        do {
            var file = try PartialFile(path: path, opening: .existing)
            try file.rewind(to: 2)
            #expect(file.size == 2)
            #expect(try text(of: path) == "abcdef")
            try file.write(Data("CD".utf8).bytes)
            #expect(file.size == 4)
            #expect(try text(of: path) == "abCDef")
            let error = #expect(throws: SystemError.self) { try file.rewind(to: -1) }
            #expect(error == SystemError(call: "lseek", code: EINVAL))
            #expect(file.size == 4)
            try file.truncate(to: 4)
            file.keep()
        }
        #expect(try text(of: path) == "abCD")
    }

    @Test func `a new file must not exist, and an existing one must exist`() throws {
        #expect(throws: SystemError.missing) { _ = try PartialFile(path: self.path, opening: .existing) }
        try leave("abc")
        #expect(throws: SystemError.exists) { _ = try PartialFile(path: self.path, opening: .new) }
        let file = try PartialFile(path: path, opening: .either)
        #expect(file.size == 3)
    }

    @Test func `a second writer fails as long as the first one has the file open`() throws {
        do {
            let file = try PartialFile(path: path, opening: .new)
            let error = #expect(throws: SystemError.self) { _ = try PartialFile(path: self.path, opening: .either) }
            #expect(error?.fileReason == .inUse)
            #expect(error?.call == "flock")
            file.keep()
        }
        _ = try PartialFile(path: path, opening: .existing)
    }

    @Test func `a copy of the descriptor in a child process does not keep the lock`() throws {
        var copies: [Int32] = []
        defer { for copy in copies { close(copy) } }
        do {
            let file = try PartialFile(path: path, opening: .new)
            let manager = FileManager.default
            for name in try manager.contentsOfDirectory(atPath: "/proc/self/fd") {
                guard let number = Int32(name) else { continue }
                let target = try? manager.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")
                if copies.isEmpty, target == path { copies.append(dup(number)) }
            }
            file.keep()
        }
        #expect(copies.count == 1)
        _ = try PartialFile(path: path, opening: .existing)
    }

    @Test func `moving replaces an existing file, or fails and keeps both files`() throws {
        try leave("new")
        _ = FileManager.default.createFile(atPath: directory + "/a", contents: Data("old".utf8))
        do {
            var file = try PartialFile(path: path, opening: .existing)
            #expect(throws: (any Error).self) { try file.move(to: self.directory + "/a", overwriting: false) }
            #expect(try text(of: directory + "/a") == "old")
            file.keep()
        }
        var file = try PartialFile(path: path, opening: .existing)
        try file.move(to: directory + "/a")
        #expect(try text(of: directory + "/a") == "new")
        #expect(try names == ["a"])
    }

    @Test func `an exclusive move succeeds if the destination does not exist`() throws {
        var file = try PartialFile(path: path, opening: .new)
        try file.move(to: directory + "/a", overwriting: false)
        #expect(try names == ["a"])
    }

    @Test func `a complete file is copied to another file system`() throws {
        var (here, there) = (stat(), stat())
        try unsafe #require(stat(directory, &here) == 0)
        guard unsafe stat("/dev/shm", &there) == 0, here.st_dev != there.st_dev else { return }
        let target = "/dev/shm/an-partial-\(UInt64.random(in: .min ... .max))"
        defer { try? FileManager.default.removeItem(atPath: target) }
        let bytes = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        do {
            var file = try PartialFile(path: path, opening: .new)
            try file.write(bytes.bytes)
            try file.move(to: target, overwriting: false)
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == bytes)
        #expect(try names == [])
        #expect(
            try FileLocation.names(in: "/dev/shm").filter { target.hasSuffix($0) || $0.hasPrefix("an-partial-") }.count
                == 1)
    }

    @Test(arguments: [true, false])
    func `a file that has lost its temporary name is copied with its permissions`(keepsMode: Bool) throws {
        var file = try PartialFile(path: path, opening: .new, mode: 0o600)
        try file.write(Data("abc".utf8).bytes)
        try FileManager.default.removeItem(atPath: path)
        try Data("other".utf8).write(to: URL(fileURLWithPath: path))
        try file.move(to: directory + "/a", keepingMode: keepsMode)
        var status = stat()
        try unsafe #require(stat(directory + "/a", &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        #expect(try text(of: directory + "/a") == "abc")
        #expect(try text(of: path) == "other")
    }

    @Test(arguments: [true, false])
    func `a file with another temporary path stays locked, and is still removed`(isNear: Bool) throws {
        let other = isNear ? directory + "/other" : "/dev/shm/an-partial-\(UInt64.random(in: .min ... .max))"
        do {
            var file = try PartialFile(path: path, opening: .new)
            try file.write(Data("new".utf8).bytes)
            let isThere = [file.isFile(at: path), file.isFile(at: other)]
            #expect(isThere == [true, false])
            try Data("old".utf8).write(to: URL(fileURLWithPath: other))
            try file.rename(to: other)
            let isMoved = file.isFile(at: other)
            #expect(isMoved)
            #expect(try names == (isNear ? ["other"] : []))
            #expect(try PartialFile.isLocked(other))
            try file.write(Data("er".utf8).bytes)
            #expect(try text(of: other) == "newer")
        }
        #expect(!FileLocation(other).exists)
    }

    @Test(arguments: [true, false])
    func `a file with another temporary path keeps the bytes after its position`(isNear: Bool) throws {
        let other = isNear ? directory + "/other" : "/dev/shm/an-partial-\(UInt64.random(in: .min ... .max))"
        var file = try PartialFile(path: path, opening: .new)
        try file.write(Data("123456".utf8).bytes)
        try file.rewind(to: 2)
        try file.rename(to: other)
        let size = file.size
        #expect(size == 2)
        try file.write(Data("x".utf8).bytes)
        #expect(try text(of: other) == "12x456")
    }

    @Test func `a file gets its final permissions with its final name`() throws {
        var file = try PartialFile(path: path, opening: .new, mode: 0o600)
        for destination in [directory + "/missing/file", "/dev/shm/missing/file"] {
            #expect(throws: SystemError.self) { try file.move(to: destination, overwriting: true, .ofReplacedOrNew) }
            var status = stat()
            #expect(unsafe stat(path, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
        }
        try Data("old".utf8).write(to: URL(filePath: directory + "/old"))
        #expect(unsafe chmod(directory + "/old", 0o640) == 0)
        try file.move(to: directory + "/old", overwriting: true, .ofReplacedOrNew)
        var status = stat()
        #expect(unsafe stat(directory + "/old", &status) == 0)
        #expect(status.st_mode & 0o777 == 0o640)
    }

    @Test(arguments: [0o755, 0o640, 0o664] as [mode_t], [true, false])
    func `a file keeps the permissions that it was given meanwhile`(mode: mode_t, isNear: Bool) throws {
        var file = try PartialFile(path: path, opening: .new, mode: 0o600)
        #expect(unsafe chmod(path, mode) == 0)
        let new = isNear ? directory + "/new" : "/dev/shm/an-partial-\(UInt64.random(in: .min ... .max))"
        defer { FileLocation.remove(new) }
        try file.move(to: new, overwriting: true, .ofReplacedOrNew)
        var status = stat()
        #expect(unsafe stat(new, &status) == 0)
        #expect(status.st_mode & 0o777 == mode)
    }

    @Test func `a file with another name leaves its bytes to that, and begins anew`() throws {
        var file = try PartialFile(path: path, opening: .new)
        try file.write(Data("bytes".utf8).bytes)
        try FileLocation.link(path, to: directory + "/other")
        try file.startOver()
        #expect(file.size == 0)
        try file.write(Data("new".utf8).bytes)
        #expect(try text(of: path) == "new")
        #expect(try text(of: directory + "/other") == "bytes")
        #expect(try PartialFile.isLocked(path))
        try file.startOver()
        #expect(try text(of: path) == "")
    }

    @Test(.timeLimit(.minutes(1)))
    func `a file that was rewritten is another version, also with the size and times of the first one`() throws {
        func write(_ text: String) throws {
            let file = try FileDescriptor(opening: path, flags: O_WRONLY | O_CREAT)
            try file.writeAll(Data(text.utf8).bytes)
            let date = Date(timeIntervalSince1970: 1)
            try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
        }
        try write("one")
        let stamp = FileStamp(path: path)
        #expect(FileStamp(path: path).isSameVersion(as: stamp))
        // The system's clock for files may tick every few milliseconds.
        repeat { try write("two") } while FileStamp(path: path).isSameVersion(as: stamp)
        #expect(stamp.isCurrent)
    }

    /// Records the operations that change files or directories.
    private final class FileCalls: SimulatedSystem {
        var calls: [String] = []
        var failures: [SystemError] = []
        let millisecondsSince1970: Int64 = 0

        func randomBits() -> UInt64 { 1 }

        func willUseFile(_ call: String, _ path: String?) throws(SystemError) {
            calls.append(call)
            if let failure = failures.first(where: { $0.call == call }) { throw failure }
        }

        func writableBytes(of count: Int) -> Int { count }
    }

    @Test func `a file that cannot be positioned is not there if it is new, and stays if it is not`() throws {
        let system = FileCalls()
        system.failures = [SystemError(call: "lseek", code: EIO)]
        func open(_ opening: PartialFile.Opening) -> Bool {
            SystemSimulation.run(system) {
                guard let file = try? PartialFile(path: path, opening: opening) else { return false }
                file.keep()
                return true
            }
        }
        #expect(open(.new) == FileManager.default.fileExists(atPath: path))
        try Data("old".utf8).write(to: URL(filePath: path))
        #expect(!open(.existing))
        #expect(try text(of: path) == "old")
    }

    @Test func `a file that is copied to another temporary path is flushed before it takes that`() throws {
        let other = "/dev/shm/an-partial-\(UInt64.random(in: .min ... .max))"
        let system = FileCalls()
        let result = SystemSimulation.run(system) {
            Result {
                var file = try PartialFile(path: path, opening: .new)
                try file.write(Data("new".utf8).bytes)
                system.calls = []
                try file.rename(to: other)
            }
        }
        try result.get()
        // The first rename fails with EXDEV; at the end both files are removed.
        #expect(
            system.calls == [
                "rename", "open", "pread", "write", "fdatasync", "rename", "lseek", "unlink", "unlink",
            ])
    }

    @Test func `bytes that a file system refuses late are an error, and the file with the final name stays`() throws {
        let destination = directory + "/a"
        try Data("old".utf8).write(to: URL(filePath: destination))
        let system = FileCalls()
        system.failures = [SystemError(call: "close", code: EDQUOT)]
        let result = SystemSimulation.run(system) {
            Result {
                var file = try AtomicFile(destination: destination)
                try file.write(Data("new".utf8).bytes)
                try file.commit()
            }
        }
        #expect(throws: SystemError(call: "close", code: EDQUOT)) { try result.get() }
        #expect(try text(of: destination) == "old")
        #expect(try names == ["a"])
    }

    @Test(arguments: [EINVAL, ENOSYS], [EPERM, ENOTSUP, ENOSYS, nil])
    func `a file system may know no exclusive renaming and no links`(renaming: Int32, linking: Int32?) throws {
        let system = FileCalls()
        system.failures = [SystemError(call: "rename", code: renaming)]
        system.failures += linking.map { [SystemError(call: "link", code: $0)] } ?? []
        func move() throws {
            try SystemSimulation.run(system) {
                Result {
                    var file = try PartialFile(path: path, opening: .new)
                    try file.write(Data("new".utf8).bytes)
                    try file.move(to: directory + "/a", overwriting: false)
                }
            }.get()
        }
        try move()
        #expect(try text(of: directory + "/a") == "new")
        #expect(throws: SystemError(call: linking == nil ? "link" : "rename", code: EEXIST)) { try move() }
        #expect(try names == ["a"])
    }

    @Test func `a file that has its final name keeps it`() throws {
        var file = try PartialFile(path: path, opening: .new)
        try file.move(to: path, overwriting: false)
        _ = consume file
        #expect(try names == ["a.part"])
    }

    /// The group and the permission bits of a file.
    private func access(of path: String) throws -> [UInt32] {
        var status = stat()
        try unsafe #require(stat(path, &status) == 0)
        return [status.st_gid, status.st_mode & 0o777]
    }

    @Test(.enabled(if: geteuid() == 0), arguments: [(UInt32(0o640), UInt32(0o600)), (0o664, 0o644), (0o606, 0o666)])
    func `a file that is replaced passes its group on, whose members alone have its permissions`(
        mode: UInt32, temporary: UInt32
    ) throws {
        let destination = directory + "/a"
        try Data("old".utf8).write(to: URL(filePath: destination))
        try unsafe #require(chown(destination, 65534, 65534) == 0 && chmod(destination, mode) == 0)
        #expect(FileLocation(destination).temporaryMode == temporary)
        var file = try AtomicFile(destination: destination)
        let other = try #require(try names.first { $0 != "a" })
        #expect(try access(of: "\(directory)/\(other)") == [getegid(), temporary & 0o644])
        try file.write(Data("new".utf8).bytes)
        try file.commit()
        #expect(try text(of: destination) == "new")
        #expect(try access(of: destination) == [65534, mode])
    }

    /// In a process of its own, which becomes that of another user.
    @Test(.exitTest, .enabled(if: geteuid() == 0))
    func `a file whose group cannot be given to the new one gives its permissions to nobody else`() async throws {
        let destination = directory + "/a"
        try Data("old".utf8).write(to: URL(filePath: destination))
        try unsafe #require(chown(destination, 65534, 0) == 0 && chmod(destination, 0o664) == 0)
        try unsafe #require(chmod(directory, 0o777) == 0)
        // The directory for temporary files may be private.
        let parent = URL(filePath: directory).deletingLastPathComponent().path
        let mode = try access(of: parent)[1]
        if mode & 0o001 == 0 { try unsafe #require(chmod(parent, mode | 0o011) == 0) }
        await #expect(processExitsWith: .success) { [destination = destination as String] in
            try #require(setgroups(0, nil) == 0 && setegid(65534) == 0 && seteuid(65534) == 0)
            var file = try AtomicFile(destination: destination)
            try file.write(Data("new".utf8).bytes)
            try file.commit()
        }
        #expect(try text(of: destination) == "new")
        #expect(try access(of: destination) == [65534, 0o644])
    }

    /// In a process of its own, which becomes that of another user.
    @Test(.exitTest) func `a directory in which no file can be created is not used`() async {
        await #expect(processExitsWith: .success) {
            try #require(geteuid() != 0 || seteuid(65534) == 0)
            // It belongs to root.
            do throws(SystemError) {
                try FileLocation.checkProtectedDirectory("/usr")
                throw SystemError(call: "", code: 0)
            } catch {
                try #require([EACCES, EROFS].contains(error.code))
            }
        }
    }

    @Test(arguments: [
        ("reopen", EMFILE, true), ("reopen", EACCES, false), ("fsync", EIO, true), ("fsync", ENOSPC, true),
        ("fsync", EINVAL, false), ("fsync", ENOTSUP, false),
    ])
    func `a directory that cannot be flushed is an error, and one that is never flushed is not`(
        call: String, code: Int32, isError: Bool
    ) throws {
        let system = FileCalls()
        system.failures = [SystemError(call: call, code: code)]
        let result = SystemSimulation.run(system) {
            Result { () throws(SystemError) in try FileLocation(unresolved: path).flushDirectory() }
        }
        switch result {
        case .success: #expect(!isError)
        case .failure(let error): #expect(isError && error.code == code)
        }
        system.failures = []
        try SystemSimulation.run(system) { Result { try FileLocation(unresolved: path).flushDirectory() } }.get()
        #expect(system.calls.suffix(2) == ["reopen", "fsync"])
    }

    @Test(arguments: [(UInt32(0o600), UInt32(0o600)), (0o666, 0o644), (0o640, 0o640)])
    func `an existing file loses the permissions that a new one would not have`(mode: UInt32, expected: UInt32) throws {
        try leave("abc")
        #expect(unsafe chmod(path, 0o755) == 0)
        let file = try PartialFile(path: path, opening: .either, mode: mode)
        var status = stat()
        #expect(unsafe stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == expected)
        file.keep()
    }

    @Test(.exitTest, arguments: [(UInt32(0o666), UInt32(0o644)), (0o600, 0o600)])
    func `a file has the requested permissions less the umask`(mode: UInt32, expected: UInt32) async throws {
        // In a process of its own, because the umask belongs to the process.
        await #expect(processExitsWith: .success) {
            [path = path as String, mode = mode as UInt32, expected = expected as UInt32] in
            umask(0o022)
            var file = try AtomicFile(destination: path, mode: mode)
            try file.write(Data("x".utf8).bytes)
            try file.commit()
            var status = stat()
            try unsafe #require(stat(path, &status) == 0)
            try #require(status.st_mode & 0o777 == expected)
        }
    }

    @Test func `missing parent directories are created`() throws {
        let location = FileLocation(directory + "/x/y/z/file")
        #expect(location.directory == directory + "/x/y/z")
        #expect(location.name == "file")
        try location.createDirectories()
        try location.createDirectories()
        #expect(try FileLocation.names(in: directory + "/x/y") == ["z"])
        _ = FileManager.default.createFile(atPath: directory + "/file", contents: nil)
        let error = #expect(throws: SystemError.self) {
            try FileLocation(self.directory + "/file/x/y").createDirectories()
        }
        #expect(error?.code == ENOTDIR)
    }

    /// In a process of its own, because an overflow would end it. The file system in memory has times of 64 bits.
    @Test(
        .exitTest,
        arguments: [
            (1, 1_000_000_000), (9_223_372_036, 9_223_372_036_000_000_000), (9_223_372_037, .max),
            (-9_223_372_036, -9_223_372_036_000_000_000), (-9_223_372_037, .min),
        ] as [(Double, Int64)])
    func `a time of a file that a number of nanoseconds cannot represent is clamped`(
        seconds: Double, expected: Int64
    ) async {
        await #expect(processExitsWith: .success) { [seconds = seconds as Double, expected = expected as Int64] in
            let path = "/dev/shm/an-time-\(UInt64.random(in: .min ... .max))"
            try #require(FileManager.default.createFile(atPath: path, contents: nil))
            defer { try? FileManager.default.removeItem(atPath: path) }
            let time = Date(timeIntervalSince1970: seconds)
            try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path)
            try #require(FileLocation.modificationTime(of: path) == expected)
        }
    }

    @Test(arguments: [
        ("a/b", "a", "b"), ("/b", "/", "b"), ("b", ".", "b"), ("/a/b/", "/a/b", ""), ("/a/\u{301}b", "/a", "\u{301}b"),
    ])
    func `a path is divided into directory and name`(path: String, directory: String, name: String) {
        #expect(FileLocation(unresolved: path).directory == directory)
        #expect(FileLocation(unresolved: path).name == name)
        let other = directory == "/" ? "/x" : directory == "." ? "x" : directory + "/x"
        #expect(FileLocation(unresolved: path).sibling("x") == other)
    }
}
