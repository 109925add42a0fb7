// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// A file that is written under a name of its own, and moved to its final one when it is complete.
///
/// It is locked as long as it is open, see flock(2), so that no two writers mix their bytes. It is removed unless it is kept or
/// moved.
public struct PartialFile: ~Copyable {
    /// Where it is.
    public let path: String
    /// The bytes in it that count; what is written goes after them.
    public private(set) var size: Int64
    private let file: FileDescriptor
    /// Whether the file stays where it is when it is closed.
    private var isKept = false

    /// What to do about a file that is there, or is not.
    public enum Opening: Hashable, Sendable {
        /// Makes a file; fails with `EEXIST` where there is one.
        case new
        /// Opens a file with the bytes that it has; fails with `ENOENT` where there is none.
        case existing
        /// Opens a file with the bytes that it has, or makes one.
        case either
    }

    /// Opens a file and locks it.
    ///
    /// - Parameters:
    ///   - path: Where it is.
    ///   - opening: What to do about a file that is there, or is not.
    ///   - mode: The rights of a new file, from which the process's umask is taken; see open(2).
    /// - Throws: `EWOULDBLOCK` by `flock` when another writer has it, `EISDIR` and `EINVAL` for what is no file.
    public init(path: String, opening: Opening, mode: UInt32 = 0o666) throws(SystemError) {
        let file = try Self.open(path, opening, mode)
        let size = try file.regularFileSize()
        try file.seek(to: size)
        self.path = path
        self.size = size
        self.file = file
    }

    deinit {
        if !isKept { unsafe unlink(path) }
        // A process that is being started at this moment has a copy of the descriptor, which would keep the lock.
        flock(file.number, LOCK_UN)
    }

    /// Opens and locks. A writer before us may have moved or removed the file between the two: then what the path leads to
    /// is another one.
    private static func open(_ path: String, _ opening: Opening, _ mode: UInt32) throws(SystemError) -> FileDescriptor {
        let flags =
            switch opening {
            case .new: O_CREAT | O_EXCL
            case .existing: Int32(0)
            case .either: O_CREAT
            }
        while true {
            let file = try FileDescriptor(opening: path, flags: O_RDWR | O_NONBLOCK | flags, mode: mode)
            // A file system without locks has none.
            guard retryingInterrupts({ flock(file.number, LOCK_EX | LOCK_NB) }) == 0 || errno != EWOULDBLOCK else {
                throw SystemError.last("flock")
            }
            var (opened, named) = (stat(), stat())
            guard unsafe fstat(file.number, &opened) == 0 else { throw SystemError.last("fstat") }
            if unsafe stat(path, &named) == 0, named.st_ino == opened.st_ino, named.st_dev == opened.st_dev {
                return file
            }
            if opening == .new { throw SystemError(call: "open", code: EEXIST) }
        }
    }

    /// Appends all bytes. After a failure the ones that were written do not count.
    public mutating func write(_ bytes: borrowing RawSpan) throws(SystemError) {
        try file.writeAll(bytes)
        size += Int64(bytes.byteCount)
    }

    /// Reads bytes that were written, as far as one pread(2) does; 0 at the end. Fails with `EIO` where the bytes are gone.
    public func read(into buffer: inout MutableRawSpan, at offset: Int64) throws(SystemError) -> Int {
        let limit = Int(max(0, min(size - offset, Int64(buffer.byteCount))))
        let count = try file.read(into: &buffer, upTo: limit, at: offset)
        guard count > 0 || limit == 0 else { throw SystemError(call: "pread", code: EIO) }
        return count
    }

    /// Takes off what is after the first so many bytes, also what a failed write has left.
    public mutating func cut(to size: Int64) throws(SystemError) {
        guard retryingInterrupts({ ftruncate(file.number, Int(size)) }) == 0 else {
            throw SystemError.last("ftruncate")
        }
        try file.seek(to: size)
        self.size = size
    }

    /// Waits until what was written is on the disk. See fdatasync(2).
    public func flush() throws(SystemError) {
        guard retryingInterrupts({ fdatasync(file.number) }) == 0 else { throw SystemError.last("fdatasync") }
    }

    /// Closes the file and leaves it where it is.
    public consuming func keep() {
        isKept = true
    }

    /// Moves the file to its final name in one step; to another file system it is copied first. See rename(2).
    ///
    /// - Parameters:
    ///   - destination: The final name.
    ///   - isReplacing: Whether a file that is there is replaced; otherwise it fails with `EEXIST`.
    /// - Throws: What went wrong; the file is then still there, and stays.
    public mutating func move(to destination: String, replacing isReplacing: Bool = true) throws(SystemError) {
        do throws(SystemError) {
            try Self.rename(path, to: destination, replacing: isReplacing)
            isKept = true
        } catch  where error.code == EXDEV {
            try copy(to: destination, replacing: isReplacing)
        }
    }

    private static func rename(_ path: String, to destination: String, replacing: Bool) throws(SystemError) {
        if replacing {
            guard unsafe Glibc.rename(path, destination) == 0 else { throw SystemError.last("rename") }
            return
        }
        if unsafe clinux_rename_exclusively(path, destination) == 0 { return }
        // Some file systems, and old kernels, cannot; link(2) is exclusive everywhere, in two steps.
        guard errno == EINVAL || errno == ENOSYS else { throw SystemError.last("rename") }
        guard unsafe link(path, destination) == 0 else { throw SystemError.last("link") }
        unsafe unlink(path)
    }

    private borrowing func copy(to destination: String, replacing: Bool) throws(SystemError) {
        var copy = try PartialFile(path: AtomicFile.temporaryPath(for: destination), opening: .new)
        try withBuffer(of: 1 << 20) { buffer throws(SystemError) in
            while copy.size < size {
                let count = try read(into: &buffer, at: copy.size)
                try copy.write(buffer.bytes.extracting(first: count))
            }
        }
        try copy.move(to: destination, replacing: replacing)
    }
}

/// Calls `body` with a buffer of so many bytes.
private func withBuffer(
    of size: Int, _ body: (inout MutableRawSpan) throws(SystemError) -> Void
) throws(SystemError) {
    var bytes = [UInt8](repeating: 0, count: size)
    var span = bytes.mutableSpan
    var raw = unsafe span.mutableBytes
    try body(&raw)
}
