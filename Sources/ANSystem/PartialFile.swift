// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// A file that is written under a temporary name and renamed when it is complete.
///
/// The file is locked with flock(2) while it is open, so that two writers cannot mix their bytes; on a file system
/// without support for locks it stays unlocked. When the value is destroyed, the file is removed, even one that existed
/// before, unless it was kept or moved, or another file has taken its place. If the process ends before, it stays.
public struct PartialFile: ~Copyable {
    /// The temporary path, which ``move(to:overwriting:)`` does not change.
    public private(set) var path: String
    /// The number of valid bytes in the file, at first those of an existing file; bytes of a failed ``write(_:)`` do
    /// not count.
    public private(set) var size: Int64
    private let file: FileDescriptor
    /// Whether the file stays when it is closed.
    private var isKept = false
    /// Whether bytes were flushed to the disk, so that those of a copy are, too.
    private var isFlushed = false

    /// The expectation about an existing file.
    public enum Opening: Hashable, Sendable {
        /// Creates a file; fails with `EEXIST` if one exists.
        case new
        /// Opens a file and keeps its bytes; fails with `ENOENT` if it does not exist.
        case existing
        /// Opens a file and keeps its bytes, or creates it.
        case either
    }

    /// Opens and locks a file.
    ///
    /// A symbolic link is not followed, and a file of another user is not opened: either may have been put there by
    /// someone else who can write to the directory.
    ///
    /// - Parameters:
    ///   - path: The temporary path.
    ///   - opening: Whether the file must be new, must exist, or may be either.
    ///   - mode: The permission bits of a new file, before the process's umask is applied, see open(2); 0o666 by
    ///     default. An existing file loses all others.
    /// - Throws: `EWOULDBLOCK` from `flock`, without waiting, if another writer has locked the file; `EEXIST` or
    ///   `ENOENT` if the file does not meet `opening`; `ELOOP` for a symbolic link, and `EPERM` for a file of another
    ///   user; otherwise `EISDIR` for a directory, `ENXIO` for a socket, `EINVAL` for another file that is not regular,
    ///   or the error of open(2) or fstat(2).
    public init(path: String, opening: Opening, mode: UInt32 = 0o666) throws(SystemError) {
        let file = try Self.open(path, opening, mode)
        let size = try file.regularFileSize()
        if size > 0 { try file.seek(to: size) }
        self.path = path
        self.size = size
        self.file = file
    }

    /// Creates a file in place of one that an earlier process may have left. Another name of that one keeps its bytes.
    ///
    /// - Throws: As ``init(path:opening:mode:)`` does.
    package init(replacing path: String, mode: UInt32) throws(SystemError) {
        FileLocation.remove(path)
        try self.init(path: path, opening: .new, mode: mode)
    }

    deinit {
        if !isKept, isFile(at: path) { FileLocation.remove(path) }
        // Unlocked before it is closed: a child process between fork and exec has a copy of the descriptor, which would
        // keep the lock.
        flock(file.number, LOCK_UN)
        clinux_set_write_lock(file.number, 0)
    }

    /// Whether a writer has locked a file, asked without a lock, which would be in a writer's way.
    ///
    /// - Throws: The error of open(2), such as `ENOENT`, or `ELOOP` for a symbolic link.
    package static func isLocked(_ path: String) throws(SystemError) -> Bool {
        let file = try FileDescriptor(openingUnlinked: path)
        return clinux_is_write_locked(file.number) != 0
    }

    /// Opens and locks a file.
    ///
    /// Between open and flock, the previous holder of the lock may move or remove the file, so that the path leads to
    /// another file or to none. The identity of the file is therefore compared after locking, and the open repeated if
    /// it differs.
    private static func open(_ path: String, _ opening: Opening, _ mode: UInt32) throws(SystemError) -> FileDescriptor {
        let flags =
            switch opening {
            case .new: O_CREAT | O_EXCL
            case .existing: Int32(0)
            case .either: O_CREAT
            }
        while true {
            let file = try FileDescriptor(opening: path, flags: O_RDWR | O_NONBLOCK | O_NOFOLLOW | flags, mode: mode)
            // A file system without support for locks fails with another error, and the file stays unlocked.
            guard retryingInterrupts({ flock(file.number, LOCK_EX | LOCK_NB) }) == 0 || errno != EWOULDBLOCK else {
                throw SystemError.last("flock")
            }
            guard let opened = identity(of: file) else { throw SystemError.last("fstat") }
            if opened.isFile(at: path) {
                guard opening == .new || opened.owner == geteuid() else { throw SystemError(call: "open", code: EPERM) }
                // flock(2) cannot be asked for; see isLocked(_:).
                clinux_set_write_lock(file.number, 1)
                if opened.mode & ~mode != 0 { fchmod(file.number, opened.mode & mode) }
                return file
            }
            if opening == .new { throw SystemError(call: "open", code: EEXIST) }
        }
    }

    /// A file, whatever its name.
    private struct Identity {
        let device: dev_t
        let number: ino_t
        let owner: uid_t
        /// The permission bits.
        let mode: UInt32

        init(_ status: stat) {
            (device, number, owner) = (status.st_dev, status.st_ino, status.st_uid)
            mode = status.st_mode & 0o777
        }

        /// Whether a path, which is not a symbolic link, leads to the file.
        func isFile(at path: String) -> Bool {
            var status = stat()
            return unsafe lstat(path, &status) == 0 && status.st_ino == number && status.st_dev == device
        }
    }

    private static func identity(of file: borrowing FileDescriptor) -> Identity? {
        var status = stat()
        return unsafe fstat(file.number, &status) == 0 ? Identity(status) : nil
    }

    /// Appends all bytes.
    ///
    /// - Throws: The error of write(2). Bytes already written then do not count towards ``size``, but remain in the
    ///   file: call ``truncate(to:)`` with the size before writing again.
    public mutating func write(_ bytes: borrowing RawSpan) throws(SystemError) {
        try file.writeAll(bytes)
        size += Int64(bytes.byteCount)
    }

    /// Writes all bytes at an offset, possibly after a gap. They do not count towards ``size`` until ``rewind(to:)``
    /// makes them.
    ///
    /// - Throws: The error of pwrite(2), such as `EINVAL` for a negative offset.
    package func write(_ bytes: borrowing RawSpan, at offset: Int64) throws(SystemError) {
        try file.writeAll(bytes, at: offset)
    }

    /// Reads written bytes at an offset in bytes, with one call of pread(2).
    ///
    /// - Returns: The number of bytes read, possibly fewer than the buffer has room for; 0 at ``size`` and beyond, and
    ///   for an empty buffer.
    /// - Throws: `EIO` if the file was truncated by others; otherwise the error of pread(2), such as `EINVAL` for a
    ///   negative offset.
    public func read(into buffer: inout MutableRawSpan, at offset: Int64) throws(SystemError) -> Int {
        try read(into: &buffer, in: min(offset, size)..<size)
    }

    /// Reads bytes from the beginning of a range, which may be after a gap, as ``read(into:at:)`` does.
    package func read(into buffer: inout MutableRawSpan, in range: Range<Int64>) throws(SystemError) -> Int {
        let limit = min(range.upperBound - max(0, range.lowerBound), Int64(buffer.byteCount))
        let count = try file.read(into: &buffer, upTo: max(0, Int(limit)), at: range.lowerBound)
        guard count > 0 || limit <= 0 else { throw SystemError(call: "pread", code: EIO) }
        return count
    }

    /// Truncates the file to `size` bytes, including bytes left by a failed write; ``write(_:)`` continues there. A
    /// size beyond the end extends the file with zero bytes. See ftruncate(2).
    ///
    /// - Throws: The error of ftruncate(2), such as `EINVAL` for a negative size; ``size`` is then unchanged.
    public mutating func truncate(to size: Int64) throws(SystemError) {
        try SystemSimulation.willUseFile("ftruncate", path)
        try suppressingFileSignals { () throws(SystemError) in
            guard retryingInterrupts({ ftruncate(file.number, Int(size)) }) == 0 else {
                throw SystemError.last("ftruncate")
            }
        }
        SystemSimulation.didChange(file)
        try file.seek(to: size)
        self.size = size
    }

    /// Returns the number of bytes that the file has, also after gaps, and less than ``size`` if others have truncated it.
    ///
    /// - Throws: The error of fstat(2).
    package borrowing func storedSize() throws(SystemError) -> Int64 { try file.regularFileSize() }

    /// Makes ``write(_:)`` continue at `size`, which becomes the new ``size``. The bytes before it must have been written;
    /// those after it stay in the file until they are overwritten or removed by ``truncate(to:)``.
    ///
    /// - Throws: The error of lseek(2), such as `EINVAL` for a negative size; ``size`` is then unchanged.
    package mutating func rewind(to size: Int64) throws(SystemError) {
        try file.seek(to: size)
        self.size = size
    }

    /// Begins anew without bytes. A file with another name, whose bytes are used, is replaced by a new one.
    ///
    /// - Throws: The error of ftruncate(2), or of open(2) or rename(2) for a new file.
    package mutating func startOver() throws(SystemError) {
        guard hasOtherName(), isFile(at: path) else { return try truncate(to: 0) }
        var new = try copied(beside: path, upTo: 0)
        try new.rename(to: path)
        self = new
    }

    private borrowing func hasOtherName() -> Bool {
        var status = stat()
        return unsafe fstat(file.number, &status) == 0 && status.st_nlink > 1
    }

    /// Waits until the written bytes are on the disk, but not the name of the file in its directory. See fdatasync(2).
    ///
    /// - Throws: The error of fdatasync(2), such as `EIO` or `ENOSPC`; bytes may then be lost.
    public mutating func flush() throws(SystemError) {
        try SystemSimulation.willUseFile("fdatasync", path)
        guard retryingInterrupts({ fdatasync(file.number) }) == 0 else { throw SystemError.last("fdatasync") }
        isFlushed = true
    }

    /// Reports bytes that the file system could not store after write(2) had accepted them: NFS, CIFS and FUSE store them
    /// when a descriptor is closed. On other file systems, nothing is waited for. See close(2).
    ///
    /// - Throws: The error of close(2), such as `EDQUOT`, `ENOSPC` or `EIO`; bytes are then lost.
    package func checkStored() throws(SystemError) {
        try SystemSimulation.willUseFile("close", path)
        let copy = fcntl(file.number, F_DUPFD_CLOEXEC, 0)
        guard copy < 0 else { return try FileDescriptor(takingOwnershipOf: copy).close() }
        // There is no descriptor left.
        guard retryingInterrupts({ fdatasync(file.number) }) == 0 else { throw SystemError.last("fdatasync") }
    }

    /// Closes and unlocks the file without removing it; it stays at ``path``, unless it was moved.
    public consuming func keep() {
        isKept = true
    }

    /// Whether a path, which is not a symbolic link, leads to the file.
    package borrowing func isFile(at path: String) -> Bool { Self.identity(of: file)?.isFile(at: path) == true }

    /// Gives the file another temporary path atomically, replacing a file there; to another file system it is first
    /// copied, and the copy flushed. It stays locked. See rename(2).
    ///
    /// - Throws: The error of the failed system call; the file then keeps its temporary path.
    package mutating func rename(to path: String) throws(SystemError) {
        do throws(SystemError) {
            try Self.rename(self.path, to: path, overwriting: true)
        } catch  where error.code == EXDEV {
            // Also the bytes after those that were written last; see ``rewind(to:)``.
            var status = stat()
            let length = unsafe fstat(file.number, &status) == 0 ? max(size, Int64(status.st_size)) : size
            var copy = try copied(beside: path, upTo: length)
            // The bytes of this file, which is then removed, may be on the disk already.
            try copy.flush()
            try Self.rename(copy.path, to: path, overwriting: true)
            try copy.rewind(to: size)
            self = copy
        }
        self.path = path
    }

    /// Renames the file atomically; to another file system it is first copied, with its permissions less the umask, and
    /// also if another file has taken its temporary name. A file that has the final name already keeps it. See rename(2).
    ///
    /// Bytes that the file system could not store are an error, but nothing is flushed to the disk, see ``flush()``, but
    /// the copy of a file that was. It is called after the last write, and not again after it has succeeded. A file that
    /// was copied keeps its temporary name, too, until this value is destroyed.
    ///
    /// - Parameters:
    ///   - destination: The final path; a symbolic link there is replaced itself.
    ///   - overwritesExisting: Whether an existing file is replaced; if not, the call fails with `EEXIST`, for sure only on
    ///     a file system with RENAME_NOREPLACE or links. The default is `true`.
    ///   - keepsMode: Whether the file gets the group and the permission bits of a regular file that it replaces; `false` by
    ///     default. If the process may not set the group, members of the file's own group get no more than everyone.
    /// - Throws: The error of the failed system call; the file then keeps its temporary name, and can still be kept or
    ///   moved.
    public mutating func move(
        to destination: String, overwriting overwritesExisting: Bool = true, keepingMode keepsMode: Bool = false
    ) throws(SystemError) {
        try move(to: destination, overwriting: overwritesExisting, keepsMode ? .ofReplaced : .own)
    }

    /// The permission bits of a file at its final path. With those of another file, it gets the group of that one.
    package enum FinalMode: Hashable, Sendable {
        /// Those that it has.
        case own
        /// Those of a regular file that it replaces, or else its own.
        case ofReplaced
        /// Those of a regular file that it replaces. Otherwise those of a new file, as far as they are known, if only its
        /// owner can read it, or else its own.
        case ofReplacedOrNew
    }

    /// Moves the file as ``move(to:overwriting:keepingMode:)`` does. It gets its final permissions when it has its final
    /// name: its temporary directory may be no place for them.
    package mutating func move(
        to destination: String, overwriting overwritesExisting: Bool, _ mode: FinalMode
    ) throws(SystemError) {
        try destination.checkPath("rename")
        try checkStored()
        if isFile(at: destination) { return isKept = true }
        guard isFile(at: path) else { return try copy(to: destination, overwriting: overwritesExisting, mode) }
        var replaced = stat()
        let replaces = unsafe lstat(destination, &replaced) == 0 && replaced.st_mode & S_IFMT == S_IFREG
        do throws(SystemError) {
            try Self.rename(path, to: destination, overwriting: overwritesExisting)
            isKept = true
            if replaces, overwritesExisting, mode != .own {
                takePermissions(of: replaced)
            } else if !replaces, mode == .ofReplacedOrNew {
                Self.setDefaultMode(ofPrivate: file)
            }
        } catch  where error.code == EXDEV {
            try copy(to: destination, overwriting: overwritesExisting, mode)
        }
    }

    /// Gives the file the group and the permission bits of another one, as far as the process may. See chown(2).
    private borrowing func takePermissions(of other: stat) {
        fchown(file.number, uid_t.max, other.st_gid)
        var status = stat()
        guard unsafe fstat(file.number, &status) == 0 else { return }
        fchmod(file.number, other.permissions(inGroup: status.st_gid))
    }

    /// The permission bits that a new file has by default: 0o666 less the umask, which umask(2) would change in order to
    /// tell it; `nil` if proc(5) does not tell it either.
    private static var defaultMode: UInt32? {
        guard let status = try? FileDescriptor(opening: "/proc/self/status", flags: O_RDONLY) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 4096)
        var span = bytes.mutableSpan
        var raw = unsafe span.mutableBytes
        guard let count = try? status.read(into: &raw, upTo: 4096, at: 0) else { return nil }
        let lines = bytes[..<count].split(separator: UInt8(ascii: "\n")).lazy.map {
            String(decoding: $0, as: UTF8.self)
        }
        guard let line = lines.first(where: { $0.hasPrefix("Umask:") }),
            let umask = line.split(separator: "\t").last.flatMap({ mode_t($0, radix: 8) })
        else { return nil }
        return 0o666 & ~umask
    }

    /// Gives a file that only its owner can read the permission bits that a new one has by default, if they are known. A
    /// symbolic link is not followed.
    package static func setDefaultMode(ofPrivateFile path: String) {
        guard let file = try? FileDescriptor(opening: path, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK) else { return }
        setDefaultMode(ofPrivate: file)
    }

    private static func setDefaultMode(ofPrivate file: borrowing FileDescriptor) {
        guard let found = identity(of: file), found.mode == 0o600, found.owner == geteuid(), let mode = defaultMode
        else { return }
        fchmod(file.number, mode)
    }

    private static func rename(_ path: String, to destination: String, overwriting: Bool) throws(SystemError) {
        do throws(SystemError) {
            try SystemSimulation.willUseFile("rename", destination)
            let result =
                unsafe overwriting ? Glibc.rename(path, destination) : clinux_rename_exclusively(path, destination)
            guard result == 0 else { throw SystemError.last("rename") }
        } catch  where !overwriting && [EINVAL, ENOSYS].contains(error.code) {
            // Some file systems and old kernels do not support RENAME_NOREPLACE; link(2) takes two steps.
            do throws(SystemError) {
                try FileLocation.link(path, to: destination)
                FileLocation.remove(path)
            } catch  where [EPERM, ENOSYS, ENOTSUP].contains(error.code) {
                // Without links, a file that another process creates between two calls is replaced.
                var status = stat()
                guard unsafe lstat(destination, &status) != 0 else { throw SystemError(call: "rename", code: EEXIST) }
                guard unsafe Glibc.rename(path, destination) == 0 else { throw SystemError.last("rename") }
            }
        }
    }

    private borrowing func copy(
        to destination: String, overwriting: Bool, _ mode: FinalMode
    ) throws(SystemError) {
        var copy = try copied(beside: destination, upTo: size)
        if isFlushed { try copy.flush() }
        try copy.move(to: destination, overwriting: overwriting, mode)
    }

    /// Copies the first bytes of the file, with its permissions, to a new temporary path beside another file.
    private borrowing func copied(
        beside destination: String, upTo length: Int64
    ) throws(SystemError) -> PartialFile {
        let mode = Self.identity(of: file)?.mode ?? 0o600
        var copy = try PartialFile(path: AtomicFile.temporaryPath(for: destination), opening: .new, mode: mode)
        // The umask was applied.
        fchmod(copy.file.number, mode)
        try withBuffer(of: 1 << 20) { buffer throws(SystemError) in
            while copy.size < length {
                let count = try read(into: &buffer, in: copy.size..<length)
                try copy.write(buffer.bytes.extracting(first: count))
            }
        }
        return copy
    }
}

/// Calls `body` with a buffer of `size` bytes.
private func withBuffer(
    of size: Int, _ body: (inout MutableRawSpan) throws(SystemError) -> Void
) throws(SystemError) {
    var bytes = [UInt8](repeating: 0, count: size)
    var span = bytes.mutableSpan
    var raw = unsafe span.mutableBytes
    try body(&raw)
}

/// A file that appears under its final name only when it is complete.
///
/// The bytes are written to a temporary file in the same directory, which ``commit()`` renames. Until then the final
/// name keeps its previous content, if any. A file that is not committed is removed, unless the process ends before;
/// the temporary file, whose name is the final one with a random part and `.part`, then stays. A long name is cut.
///
/// A symbolic link to an existing file is followed: the link stays and its target is replaced. A link without a target
/// is replaced itself. A device or a pipe, such as `/dev/null`, is not replaced but written to directly, so that
/// ``commit()`` has no effect and bytes written before a failure remain.
public struct AtomicFile: ~Copyable {
    private let destination: String
    /// The temporary file; `nil` if the bytes are written to the destination directly.
    private var partial: PartialFile?
    /// The destination, opened for writing, if it is a device or a pipe; otherwise `nil`.
    private let device: FileDescriptor?
    /// Whether the permissions of a file that is replaced are kept.
    private let keepsMode: Bool
    /// The path of the temporary file; `nil` if the bytes are written to the destination directly, and if other users can
    /// modify the final file, whose permissions it gets at the end.
    package let linkablePath: String?
    /// The number of bytes written so far; those of a failed ``write(_:)`` do not count.
    public private(set) var size: Int64 = 0

    /// Creates a temporary file in the destination's directory, or opens the destination if it is a device or a pipe; a
    /// named pipe must have a reader, see fifo(7).
    ///
    /// - Parameters:
    ///   - destination: The path of the final file.
    ///   - mode: The permission bits of the file, before the process's umask is applied, see open(2); use 0o600 for
    ///     secrets. `nil`, the default, keeps those of a file that is replaced, or else uses 0o666.
    /// - Throws: `EISDIR` if the destination is a directory, `ENXIO` if it is a pipe without a reader, `ENOENT` if its
    ///   directory does not exist; otherwise the error of open(2).
    public init(destination: String, mode: UInt32? = nil) throws(SystemError) {
        let location = FileLocation(destination)
        let device = try location.openDevice()
        let temporaryPath = location.isReplaceable ? Self.temporaryPath(for: location.path) : nil
        let partial = try temporaryPath.map { path throws(SystemError) in
            try PartialFile(path: path, opening: .new, mode: mode ?? location.temporaryMode)
        }
        self.destination = location.path
        linkablePath = mode == nil && location.isWritableByOthers ? nil : temporaryPath
        self.device = device
        self.partial = partial
        keepsMode = mode == nil
    }

    /// Appends all bytes.
    ///
    /// - Throws: The error of write(2), such as `EPIPE` for a pipe whose reader has gone away. A part of the bytes may
    ///   have been written then, so the file must not be committed.
    public mutating func write(_ bytes: borrowing RawSpan) throws(SystemError) {
        try device?.writeAll(bytes)
        try partial?.write(bytes)
        size += Int64(bytes.byteCount)
    }

    /// Waits until the bytes of a temporary file are on the disk, as ``PartialFile/flush()`` does.
    ///
    /// - Throws: The error of fdatasync(2).
    package mutating func flush() throws(SystemError) { try partial?.flush() }

    /// Renames the temporary file to its final name, and replaces a file of that name. See rename(2).
    ///
    /// The bytes are not flushed to the disk: after a power failure, the file may be incomplete. Bytes that the file system
    /// could not store are an error.
    ///
    /// - Throws: The error of rename(2) or close(2); the temporary file is then removed.
    public consuming func commit() throws(SystemError) {
        try partial?.move(to: destination, keepingMode: keepsMode)
    }

    /// Returns a unique temporary path next to a file: the path with a random part and `.part`. A long name is
    /// cut.
    package static func temporaryPath(for path: String) -> String {
        FileLocation.path(path, appending: ".\(String(UInt64.systemRandom(in: .min ... .max), radix: 36)).part")
    }
}
