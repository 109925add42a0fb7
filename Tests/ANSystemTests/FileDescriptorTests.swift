// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite struct FileDescriptorTests {
    @Test func `a descriptor is closed when its owner is destroyed`() throws {
        let (reader, writer) = try TestPipe().release()
        let source = FileDescriptor(takingOwnershipOf: reader)
        do {
            let sink = FileDescriptor(takingOwnershipOf: writer)
            try sink.write([1, 2, 3])
        }
        #expect(try source.bytes(upTo: 10) == [1, 2, 3])
        #expect(try source.bytes(upTo: 10) == [])
    }

    @Test func `close closes the descriptor at once`() throws {
        let (reader, writer) = try TestPipe().release()
        let source = FileDescriptor(takingOwnershipOf: reader)
        try FileDescriptor(takingOwnershipOf: writer).close()
        #expect(try source.bytes(upTo: 10) == [])
    }

    @Test func `close throws the error of the system call`() {
        #expect(throws: SystemError(call: "close", code: EBADF)) {
            try FileDescriptor(takingOwnershipOf: -1).close()
        }
    }

    @Test func `a released descriptor stays open`() throws {
        let (reader, writer) = try TestPipe().release()
        let source = FileDescriptor(takingOwnershipOf: reader)
        let number = FileDescriptor(takingOwnershipOf: writer).release()
        #expect(number == writer)
        try FileDescriptor(takingOwnershipOf: number).write([7])
        #expect(try source.bytes(upTo: 10) == [7])
    }

    @Test func `a write continues after short writes`() async throws {
        let (reader, writer) = try TestPipe().release()
        // 1 MiB is 16 times the capacity of a pipe; the reader takes it in pieces of an odd size.
        let sent = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        async let received = onThread {
            let source = FileDescriptor(takingOwnershipOf: reader)
            var all: [UInt8] = []
            while case let piece = try source.bytes(upTo: 7919), !piece.isEmpty { all += piece }
            return all
        }
        // If several tests did this on the concurrency pool, no thread would be left to start the reader.
        try await onThread {
            let sink = FileDescriptor(takingOwnershipOf: writer)
            try sink.write(sent)
        }
        #expect(try await received == sent)
    }

    @Test func `a pipe without a reader fails, and no signal stays pending for a thread that blocks it`() async throws {
        let (reader, writer) = try TestPipe().release()
        try FileDescriptor(takingOwnershipOf: reader).close()
        try await onThread {
            var (pending, blocked) = (sigset_t(), sigset_t())
            unsafe pthread_sigmask(SIG_BLOCK, nil, &blocked)
            #expect(unsafe sigismember(&blocked, SIGPIPE) == 1)
            let sink = FileDescriptor(takingOwnershipOf: writer)
            #expect(throws: SystemError(call: "write", code: EPIPE)) { try sink.write([1]) }
            unsafe sigpending(&pending)
            #expect(unsafe sigismember(&pending, SIGPIPE) == 0)
        }
    }

    @Test func `reading into an empty buffer and writing no bytes are not errors`() throws {
        let pipe = try TestPipe()
        try pipe.writer.write([])
        #expect(try pipe.reader.bytes(upTo: 0) == [])
    }

    @Test func `a negative limit reads no bytes`() throws {
        let pipe = try TestPipe()
        try pipe.writer.write([1, 2])
        var bytes = Data(count: 4)
        var buffer = bytes.mutableBytes
        let count = try pipe.reader.read(into: &buffer, upTo: -1)
        #expect(count == 0)
    }

    @Test func `reading and writing the wrong end of a pipe fail`() throws {
        let pipe = try TestPipe()
        let (readError, writeError) = (
            #expect(throws: SystemError.self) { try pipe.writer.bytes(upTo: 1) },
            #expect(throws: SystemError.self) { try pipe.reader.write([1]) }
        )
        #expect(readError == SystemError(call: "read", code: EBADF))
        #expect(writeError == SystemError(call: "write", code: EBADF))
    }

    @Test func `a file that does not exist cannot be opened`() {
        #expect(throws: SystemError(call: "open", code: ENOENT)) {
            _ = try FileDescriptor(opening: "/nonexistent/file", flags: O_RDONLY)
        }
    }

    @Test func `a created file is closed on exec and reports its size`() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "an-\(UUID())").path()
        defer { unsafe unlink(path) }
        do {
            let file = try FileDescriptor(opening: path, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
            #expect(try file.regularFileSize() == 0)
            try file.write([UInt8](repeating: 1, count: 12_345))
            #expect(try file.regularFileSize() == 12_345)
            #expect(fcntl(file.number, F_GETFD) == FD_CLOEXEC)
        }
        let file = try FileDescriptor(opening: path, flags: O_RDONLY)
        #expect(try file.regularFileSize() == 12_345)
    }

    @Test(arguments: [("/", EISDIR), ("/dev/null", EINVAL)])
    func `only regular files have a size`(path: String, code: Int32) throws {
        let file = try FileDescriptor(opening: path, flags: O_RDONLY)
        let error = #expect(throws: SystemError.self) { try file.regularFileSize() }
        #expect(error == SystemError(call: "open", code: code))
    }

    @Test func `a call is repeated after EINTR and after no other error`() {
        var results: [(Int, Int32)] = [(-1, EINTR), (-1, EINTR), (5, 0)]
        func call() -> Int {
            let (result, code) = results.removeFirst()
            errno = code
            return result
        }
        #expect(retryingInterrupts(call) == 5)
        #expect(results.isEmpty)
        results = [(-1, EIO), (1, 0)]
        #expect(retryingInterrupts(call) == -1)
        #expect(results.count == 1)
    }
}
