// SPDX-License-Identifier: MIT

import ANSystem
import Foundation
import TestSupport
import Testing

@Suite final class AtomicFileTests {
    private let directory = NSTemporaryDirectory() + "an-atomic-\(UInt64.random(in: .min ... .max))"

    init() throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: directory)
    }

    private func write(_ text: String, to path: String) throws {
        var file = try AtomicFile(destination: path)
        try file.write(Data(text.utf8).bytes)
        try file.commit()
    }

    private func text(of name: String) throws -> String {
        try String(contentsOfFile: "\(directory)/\(name)", encoding: .utf8)
    }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: directory).sorted() }
    }

    @Test func `a file appears when it is committed, in place of the one before`() throws {
        try write("old", to: directory + "/a")
        try write("new", to: directory + "/a")
        #expect(try text(of: "a") == "new")
        #expect(try names == ["a"])
    }

    @Test func `a file that is not committed leaves nothing behind`() throws {
        try write("old", to: directory + "/a")
        do {
            var file = try AtomicFile(destination: directory + "/a")
            try file.write(Data("new".utf8).bytes)
        }
        #expect(try text(of: "a") == "old")
        #expect(try names == ["a"])
    }

    @Test func `a symbolic link is kept and its target is replaced`() throws {
        try write("old", to: directory + "/a")
        try FileManager.default.createSymbolicLink(atPath: directory + "/link", withDestinationPath: "a")
        try write("new", to: directory + "/link")
        #expect(try text(of: "a") == "new")
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: directory + "/link") == "a")
    }

    @Test func `a pipe is written to and stays a pipe`() throws {
        // Not /dev/null: a failure of this test must not replace it.
        let path = directory + "/pipe"
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let reader = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK)
        try write("hello", to: path)
        var buffer = Data(count: 16)
        var span = buffer.mutableBytes
        #expect(try reader.read(into: &span) == 5)
        #expect(try names == ["pipe"])
    }

    @Test func `writing to a full pipe waits for its reader`() async throws {
        let path = directory + "/pipe"
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let reader = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK)
        try reader.setBlocking()
        async let count = onThread {
            var (buffer, sum) = (Data(count: 1 << 16), 0)
            while sum < 1 << 20 {
                var span = buffer.mutableBytes
                sum += try reader.read(into: &span)
            }
            return sum
        }
        // More than a pipe holds by default, see pipe(7). If several tests did this on the concurrency pool, no thread
        // would be left to start the reader.
        try await onThread {
            var file = try AtomicFile(destination: path)
            try file.write(Data(repeating: UInt8(ascii: "x"), count: 1 << 20).bytes)
            try file.commit()
        }
        #expect(try await count == 1 << 20)
    }

    @Test(.exitTest) func `a pipe whose reader goes away fails with EPIPE`() async throws {
        let path = directory + "/pipe"
        #expect(unsafe mkfifo(path, 0o600) == 0)
        // In a process of its own, which SIGPIPE would end.
        await #expect(processExitsWith: .success) { [path = path as String] in
            let reader = unsafe open(path, O_RDONLY | O_NONBLOCK)
            try FileDescriptor(takingOwnershipOf: dup(reader)).setBlocking()
            var file = try AtomicFile(destination: path)
            let thread = try SystemThread(name: "reader") {
                var byte: UInt8 = 0
                unsafe read(reader, &byte, 1)
                close(reader)
            }
            // More than a pipe holds, so that the writer waits when the reader goes away.
            let bytes = Data(count: 1 << 20)
            var failure: SystemError?
            do throws(SystemError) { try file.write(bytes.bytes) } catch { failure = error }
            try #require(failure == SystemError(call: "write", code: EPIPE))
            thread.join()
            // Neither is the signal pending nor blocked.
            var (pending, blocked) = (sigset_t(), sigset_t())
            unsafe sigpending(&pending)
            unsafe pthread_sigmask(SIG_BLOCK, nil, &blocked)
            try #require(unsafe sigismember(&pending, SIGPIPE) == 0 && sigismember(&blocked, SIGPIPE) == 0)
        }
    }

    @Test(.exitTest) func `a file beyond the limit of the process fails with EFBIG`() async throws {
        // In a process of its own, which SIGXFSZ would end.
        await #expect(processExitsWith: .success) { [path = directory + "/file" as String] in
            var file = try PartialFile(path: path, opening: .new)
            var limit = rlimit(rlim_cur: 1_000, rlim_max: 1_000)
            try unsafe #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            // The threads of Dispatch block the signal.
            var (pending, blocked) = (sigset_t(), sigset_t())
            unsafe sigemptyset(&blocked)
            unsafe sigaddset(&blocked, SIGXFSZ)
            unsafe pthread_sigmask(SIG_UNBLOCK, &blocked, nil)
            let bytes = Data(count: 1_001)
            var failures: [SystemError] = []
            do throws(SystemError) { try file.write(bytes.bytes) } catch { failures.append(error) }
            do throws(SystemError) { try file.write(bytes.bytes, at: 1_000) } catch { failures.append(error) }
            do throws(SystemError) { try file.truncate(to: 1_001) } catch { failures.append(error) }
            let calls = ["write", "pwrite", "ftruncate"]
            try #require(failures == calls.map { SystemError(call: $0, code: EFBIG) })
            try #require(failures[0].fileReason == .noSpace)
            unsafe sigpending(&pending)
            unsafe pthread_sigmask(SIG_BLOCK, nil, &blocked)
            try #require(unsafe sigismember(&pending, SIGXFSZ) == 0 && sigismember(&blocked, SIGXFSZ) == 0)
        }
    }

    @Test func `a name may have as many bytes as the file system permits`() throws {
        for (character, count) in [("a", 255), ("ü", 127), ("漢", 85), ("👩‍👩‍👧", 14), ("e\u{301}", 80)] {
            let name = String(repeating: character, count: count)
            try write("x", to: "\(directory)/\(name)")
            #expect(try text(of: name) == "x")
        }
    }

    @Test(.timeLimit(.minutes(5))) func `a pipe without a reader fails with ENXIO, without waiting`() throws {
        let path = directory + "/pipe"
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let error = #expect(throws: SystemError.self) { try write("x", to: path) }
        #expect(error?.code == ENXIO)
        #expect(try names == ["pipe"])
    }

    @Test func `a directory as the destination fails with EISDIR before anything is written`() throws {
        let error = #expect(throws: SystemError.self) { try write("x", to: directory) }
        #expect(error?.code == EISDIR)
    }
}
