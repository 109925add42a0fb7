// SPDX-License-Identifier: MIT

import ANSystem
import Foundation
import Glibc
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct UnsizedFileTests {
    @Test(arguments: [
        ("/proc/cpuinfo", FileLength.generated), ("/proc/self/status", .generated), ("/dev/null", .stream),
        ("/dev/zero", .stream), ("/sys/kernel/mm/transparent_hugepage/enabled", .generated),
    ])
    func `the length of what the system generates is not known`(path: String, length: FileLength) throws {
        guard FileManager.default.fileExists(atPath: path) else { return }
        #expect(try FileLength(ofFileAt: path) == length)
    }

    @Test func `a link to a file of sysfs has no known length either`() throws {
        let attribute = "/sys/kernel/mm/transparent_hugepage/enabled"
        guard FileManager.default.fileExists(atPath: attribute) else { return }
        let path = "/tmp/an-link-\(UUID().uuidString)"
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: attribute)
        defer { unsafe unlink(path) }
        #expect(try FileLength(ofFileAt: path) == .generated)
    }

    @Test func `directories, sockets and missing files have no content`() throws {
        #expect(throws: SystemError.self) { try FileLength(ofFileAt: "/tmp") }
        #expect(throws: SystemError.self) { try FileLength(ofFileAt: "/nonexistent/file") }
        #expect(throws: SystemError.self) { try FileLength(ofFileAt: "/tmp/a\0b") }
    }

    @Test func `a pipe is read until its writer closes it`() async throws {
        try await withPipe { path in
            #expect(try FileLength(ofFileAt: path) == .stream)
            let file = try UnsizedFile(path: path)
            let writer = try FileDescriptor(opening: path, flags: O_WRONLY)
            try unsafe writer.writeAll(([1, 2, 3] as [UInt8]).span.bytes)
            #expect(try await file.next(upTo: 2) == [1, 2])
            #expect(try await file.next(upTo: 2) == [3])
            try writer.close()
            #expect(try await file.next(upTo: 2).isEmpty)
        }
    }

    /// In a process of its own: glibc sends a signal to each thread, which none can block, to change the user of all.
    @Test(.exitTest) func `a signal does not end a pipe that has no writer yet`() async {
        await #expect(processExitsWith: .success) {
            let path = "/tmp/an-pipe-\(UUID().uuidString)"
            try unsafe #require(mkfifo(path, 0o600) == 0)
            defer { unsafe unlink(path) }
            let task = Task { try await UnsizedFile(path: path).next(upTo: 10) }
            try await eventually { try isThreadAsleep("ANFile") }
            for _ in 0..<100 { try #require(setuid(getuid()) == 0) }
            let writer = try FileDescriptor(opening: path, flags: O_WRONLY | O_NONBLOCK)
            try unsafe writer.writeAll(([1, 2, 3] as [UInt8]).span.bytes)
            try #require(await task.value == [1, 2, 3])
        }
    }

    @Test func `waiting for a writer ends when the task is cancelled`() async throws {
        try await withPipe { path in
            let task = Task { try await UnsizedFile(path: path).next(upTo: 10) }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test func `a pipe is closed once its reader has ended`() async throws {
        try await withPipe { path in
            for isCancelled in (0..<rounds(500, few: 50)).map({ $0.isMultiple(of: 2) }) {
                let task = Task { try await UnsizedFile(path: path).next(upTo: 10) }
                // Succeeds once the task has opened the pipe.
                var writer: Int32 = -1
                while writer < 0 {
                    writer = unsafe open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
                    await Task.yield()
                }
                if isCancelled { task.cancel() }
                close(writer)
                _ = await task.result
                // Opening it for writing would also succeed while a child process is made, which has it for a moment.
                let files = try Self.openFiles()
                #expect(!files.contains(path))
            }
        }
    }

    /// The paths of the descriptors of this process, some of which may be closed meanwhile.
    private static func openFiles() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
        }
    }

    private func withPipe(_ body: (String) async throws -> Void) async throws {
        let path = "/tmp/an-pipe-\(UUID().uuidString)"
        try unsafe #require(mkfifo(path, 0o600) == 0)
        defer { unsafe unlink(path) }
        try await body(path)
    }
}

/// Whether a thread with this name waits. See proc_pid_stat(5).
private func isThreadAsleep(_ name: String) throws -> Bool {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").contains { task in
        let text = try? String(contentsOfFile: "/proc/self/task/\(task)/stat", encoding: .utf8)
        return text?.contains("(\(name)) S") == true
    }
}
