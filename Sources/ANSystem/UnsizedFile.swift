// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// How the length of a file's content is known.
package enum FileLength: Hashable, Sendable {
    /// A regular file with this size in bytes.
    case known(Int64)
    /// A regular file that the system generates, as those of proc(5), whose size is 0 or wrong.
    case generated
    /// A pipe or a device, whose content can be read once.
    case stream

    /// Determines the length of the file at a path, following symbolic links. Pipes and devices are not opened.
    ///
    /// - Throws: `EISDIR` for a directory, `ENXIO` for a socket; otherwise the error of open(2) or read(2).
    package init(ofFileAt path: String) throws(SystemError) {
        try path.checkPath("stat")
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw SystemError.last("open") }
        switch status.st_mode & S_IFMT {
        case S_IFREG:
            let descriptor = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK)
            let isGenerated = try status.st_size == 0 ? descriptor.hasContent : descriptor.isAttribute
            self = isGenerated ? .generated : .known(Int64(status.st_size))
        case S_IFIFO, S_IFCHR, S_IFBLK: self = .stream
        case S_IFDIR: throw SystemError(call: "open", code: EISDIR)
        default: throw SystemError(call: "open", code: ENXIO)
        }
    }
}

extension FileDescriptor {
    /// Whether the file is one of sysfs(5) or configfs, whose size is that of a page. See statfs(2).
    fileprivate var isAttribute: Bool {
        var system = statfs()
        return unsafe fstatfs(number, &system) == 0 && [Int(SYSFS_MAGIC), Self.configfsMagic].contains(system.f_type)
    }

    /// The type of configfs, which no header of the system defines.
    private static let configfsMagic = 0x6265_6570

    /// Whether a byte can be read.
    fileprivate var hasContent: Bool {
        get throws(SystemError) {
            var byte: UInt8 = 0
            let count = retryingInterrupts { unsafe Glibc.read(number, &byte, 1) }
            guard count >= 0 else { throw SystemError.last("read") }
            return count > 0
        }
    }
}

/// A file that is read to its end, wherever that is: one that the system generates, a pipe or a device.
package final class UnsizedFile: Sendable {
    private let descriptor: FileDescriptor
    /// Becomes readable when a wait must end.
    private let wakeup: FileDescriptor

    /// Opens a file for reading. A pipe is read from when it has a writer.
    package init(path: String) throws(SystemError) {
        descriptor = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK | O_NOCTTY)
        let number = eventfd(0, CLINUX_EFD_FLAGS)
        guard number >= 0 else { throw SystemError.last("eventfd") }
        wakeup = FileDescriptor(takingOwnershipOf: number)
    }

    /// Opens a file, and passes its content on in chunks of at most `size` bytes.
    package static func forEachChunk(
        of path: String, _ size: Int, _ body: ([UInt8]) async throws -> Void
    ) async throws {
        let file = try UnsizedFile(path: path)
        while true {
            let chunk = try await file.next(upTo: size)
            guard !chunk.isEmpty else { return }
            try await body(chunk)
        }
    }

    /// Waits for bytes, and returns at most `limit`; none at the end. The wait blocks a thread of its own, which does
    /// not keep the file open: it is closed when its last reference is released, so that a writer that opens the pipe
    /// then waits for its next reader.
    ///
    /// - Throws: The error of read(2), or of pthread_create(3); `CancellationError` if the task is cancelled.
    package func next(upTo limit: Int) async throws -> [UInt8] {
        // The caller, which waits for the thread, keeps the descriptors open.
        defer { withExtendedLifetime(self) {} }
        let wait = Wait(descriptor: descriptor.number, wakeup: wakeup.number, limit: limit)
        return try await withTaskCancellationHandler {
            try Task.checkCancellation()
            let bytes = try await withCheckedThrowingContinuation { continuation in
                do throws(SystemError) {
                    try SystemThread(name: "ANFile") { continuation.resume(with: Result { try wait() }) }.detach()
                } catch {
                    continuation.resume(throwing: error)
                }
            }
            try Task.checkCancellation()
            return bytes
        } onCancel: {
            eventfd_write(wait.wakeup, 1)
        }
    }

    /// A wait for bytes of a descriptor that is open as long as it lasts.
    private struct Wait {
        var descriptor: Int32
        var wakeup: Int32
        var limit: Int

        /// Blocks until bytes can be read or the wait must end.
        func callAsFunction() throws(SystemError) -> [UInt8] {
            while true {
                var entries = [
                    pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                    pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0),
                ]
                let count = unsafe poll(&entries, 2, -1)
                guard count >= 0 else {
                    // Until it has a writer, reading a pipe gives its end.
                    if errno == EINTR { continue }
                    throw SystemError.last("poll")
                }
                if entries[1].revents != 0 { return [] }
                var bytes = [UInt8](repeating: 0, count: limit)
                let received = unsafe read(descriptor, &bytes, limit)
                if received >= 0 { return Array(bytes.prefix(received)) }
                guard errno == EAGAIN || errno == EINTR else { throw SystemError.last("read") }
            }
        }
    }
}

/// A regular file that is read from its start up to the size it had when it was opened.
///
/// It is closed when its last reference is released. The file is read with read(2) instead of mapped: accessing a
/// mapped file that was truncated terminates the process with SIGBUS.
public final class RegularFile {
    /// The size in bytes when the file was opened.
    public let size: Int64
    /// The number of bytes up to ``size`` that are not read yet.
    public private(set) var remaining: Int64
    private let descriptor: FileDescriptor

    /// Opens a file for reading, following symbolic links.
    ///
    /// - Throws: `EISDIR` for a directory, `ENXIO` for a socket, `EINVAL` for another file that is not regular;
    ///   otherwise the error of open(2), such as `ENOENT` or `EACCES`.
    public init(path: String) throws(SystemError) {
        // Without O_NONBLOCK, opening a FIFO would wait for a writer; for regular files the flag has no effect.
        descriptor = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK)
        size = try descriptor.regularFileSize()
        remaining = size
    }

    /// Opens a file for reading, and converts an error to one of the caller's type.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - failure: Returns the caller's error for the path and the ``SystemError/description`` of the error.
    /// - Throws: The error that `failure` returns if ``init(path:)`` throws.
    public static func open<Failure: Error>(
        _ path: String, _ failure: (_ path: String, _ reason: String) -> Failure
    ) throws(Failure) -> RegularFile {
        do throws(SystemError) {
            return try RegularFile(path: path)
        } catch {
            throw failure(path, error.description)
        }
    }

    /// Reads into the buffer with one call of read(2), after the bytes of the last call.
    ///
    /// - Returns: The number of bytes read, possibly fewer than the buffer has room for; 0 at the end, for an empty
    ///   buffer, or if the file was truncated after it was opened. In the last two cases ``remaining`` may not be 0.
    /// - Throws: The error of read(2).
    public func read(into buffer: inout MutableRawSpan) throws(SystemError) -> Int {
        let wanted = Int(min(remaining, Int64(buffer.byteCount)))
        guard wanted > 0 else { return 0 }
        let count = try descriptor.read(into: &buffer, upTo: wanted)
        remaining -= Int64(count)
        return count
    }

    /// Reads and returns all remaining bytes, or those that are left if the file was truncated after it was opened;
    /// meant for files known to be small.
    ///
    /// - Throws: The error of read(2).
    public func readAll() throws(SystemError) -> [UInt8] {
        var bytes: [UInt8] = []
        while remaining > 0 {
            var piece = [UInt8](repeating: 0, count: Int(min(remaining, 1 << 20)))
            var elements = piece.mutableSpan
            var span = unsafe elements.mutableBytes
            let count = try read(into: &span)
            guard count > 0 else { break }
            bytes += piece.prefix(count)
        }
        return bytes
    }
}
