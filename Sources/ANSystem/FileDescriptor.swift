// SPDX-License-Identifier: MIT

import Glibc

/// An open file descriptor with one owner, closed when its owner is destroyed; an error of close(2) is then ignored.
public struct FileDescriptor: ~Copyable, Sendable {
    /// The descriptor's number, valid as long as this value exists.
    public let number: Int32

    /// Creates an owner for an open descriptor, which nothing else may close. The number is not checked, and is passed
    /// to close(2) when the owner is destroyed.
    public init(takingOwnershipOf number: Int32) {
        self.number = number
    }

    /// Opens a file with the flags of open(2); `O_CLOEXEC` is added.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - flags: The flags, such as `O_RDONLY`.
    ///   - mode: The permission bits of a new file, before the process's umask is applied; 0o644 by default.
    /// - Throws: `EINVAL` for a path with a NUL, where the system would cut it; otherwise the error of open(2), but not
    ///   `EINTR`, after which the call is repeated.
    public init(opening path: String, flags: Int32, mode: UInt32 = 0o644) throws(SystemError) {
        try path.checkPath("open")
        try SystemSimulation.willUseFile(flags & O_CREAT != 0 ? "open" : "reopen", path)
        let number = retryingInterrupts { unsafe open(path, flags | O_CLOEXEC, mode) }
        guard number >= 0 else { throw SystemError.last("open") }
        self.number = number
        if flags & O_CREAT != 0 { SystemSimulation.didChange(self) }
    }

    /// Opens a file for reading, without waiting for the writer of a pipe.
    ///
    /// - Throws: `ELOOP` for a symbolic link; otherwise the error of open(2).
    package init(openingUnlinked path: String) throws(SystemError) {
        try self.init(opening: path, flags: O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
    }

    /// Opens an existing file for writing.
    ///
    /// - Throws: The error of open(2).
    package init(writing path: String) throws(SystemError) {
        try self.init(opening: path, flags: O_WRONLY)
    }

    deinit {
        Glibc.close(number)
    }

    /// Closes the descriptor and throws the error of close(2), such as a delayed write error; it is closed even then.
    public consuming func close() throws(SystemError) {
        let number = number
        discard self
        guard Glibc.close(number) == 0 else { throw SystemError.last("close") }
    }

    /// Releases ownership of the descriptor and returns its number; the caller must close it.
    public consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }

    /// Reads at the current position with one call of read(2).
    ///
    /// - Parameters:
    ///   - buffer: The buffer to read into.
    ///   - limit: The largest number of bytes to read, where a negative number counts as 0; the size of the buffer is a
    ///     limit, too, and the only one by default.
    /// - Returns: The number of bytes read, possibly fewer than the limit; 0 at the end of the file, and if the limit
    ///   is 0 or the buffer is empty.
    /// - Throws: The error of read(2), but not `EINTR`, after which the call is repeated.
    public func read(into buffer: inout MutableRawSpan, upTo limit: Int = .max) throws(SystemError) -> Int {
        let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            retryingInterrupts { unsafe Glibc.read(number, bytes.baseAddress, max(0, min(limit, bytes.count))) }
        }
        guard count >= 0 else { throw SystemError.last("read") }
        return count
    }

    /// Reads at an offset with one call of pread(2), which leaves the current position unchanged.
    ///
    /// - Parameters:
    ///   - buffer: The buffer to read into.
    ///   - limit: The largest number of bytes to read, where a negative number counts as 0; the size of the buffer is a
    ///     limit, too, and the only one by default.
    ///   - offset: The distance from the start of the file in bytes.
    /// - Returns: The number of bytes read, possibly fewer than the limit; 0 at the end of the file and beyond, and if
    ///   the limit is 0 or the buffer is empty.
    /// - Throws: The error of pread(2), such as `ESPIPE` for a pipe or `EINVAL` for a negative offset, but not `EINTR`,
    ///   after which the call is repeated.
    public func read(
        into buffer: inout MutableRawSpan, upTo limit: Int = .max, at offset: Int64
    ) throws(SystemError) -> Int {
        try SystemSimulation.willUseFile("pread")
        let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            retryingInterrupts {
                unsafe pread(number, bytes.baseAddress, max(0, min(limit, bytes.count)), Int(offset))
            }
        }
        guard count >= 0 else { throw SystemError.last("pread") }
        return count
    }

    /// Sets the current position to an offset from the start, in bytes, possibly beyond the end. Throws the error of
    /// lseek(2), such as `ESPIPE` for a pipe or `EINVAL` for a negative offset.
    public func seek(to offset: Int64) throws(SystemError) {
        try SystemSimulation.willUseFile("lseek")
        guard lseek(number, Int(offset), SEEK_SET) >= 0 else { throw SystemError.last("lseek") }
    }

    /// Makes reading and writing wait, after the descriptor was opened with `O_NONBLOCK`. See fcntl(2).
    package func setBlocking() throws(SystemError) {
        let flags = fcntl(number, F_GETFL)
        guard flags >= 0, fcntl(number, F_SETFL, flags & ~O_NONBLOCK) == 0 else { throw SystemError.last("fcntl") }
    }

    /// Returns the size of a regular file in bytes. See fstat(2).
    ///
    /// - Throws: `EISDIR` for a directory, `EINVAL` for any other file that is not regular; otherwise the error of
    ///   fstat(2).
    public func regularFileSize() throws(SystemError) -> Int64 {
        Int64(try regularFileStatus().st_size)
    }

    /// Returns the size of a regular file in bytes if only the user of this process, or root, can modify it. See
    /// fstat(2).
    ///
    /// - Parameter isPrivate: Whether others must not be able to read it either, unless the file system shows all files as
    ///   executable because it has no permissions.
    /// - Throws: `EPERM` if another user can modify the file; otherwise as ``regularFileSize()``.
    package func protectedFileSize(isPrivate: Bool = false) throws(SystemError) -> Int64 {
        let status = try regularFileStatus()
        let forbidden = isPrivate && status.st_mode & S_IXUSR == 0 ? S_IRWXG | S_IRWXO : S_IWGRP | S_IWOTH
        guard status.isProtected(from: forbidden) else { throw SystemError(call: "open", code: EPERM) }
        return Int64(status.st_size)
    }

    /// Reads a file that only the user of this process, or root, can read and change.
    ///
    /// - Parameters:
    ///   - path: The path of the file; a symbolic link is not followed.
    ///   - limit: The maximum number of bytes.
    /// - Returns: The bytes; `nil` if there is no such file, or it is larger.
    /// - Throws: An error that says nothing about the file, such as `EMFILE` or `EIO`.
    package static func privateBytes(at path: String, upTo limit: Int) throws(SystemError) -> [UInt8]? {
        do throws(SystemError) {
            let file = try FileDescriptor(openingUnlinked: path)
            let size = try file.protectedFileSize(isPrivate: true)
            guard size <= limit else { return nil }
            var bytes = [UInt8](repeating: 0, count: Int(size))
            var span = bytes.mutableSpan
            var raw = unsafe span.mutableBytes
            return try file.read(into: &raw, at: 0) == bytes.count ? bytes : nil
        } catch  where error.isAboutFile {
            return nil
        }
    }

    private func regularFileStatus() throws(SystemError) -> stat {
        var status = stat()
        guard unsafe fstat(number, &status) == 0 else { throw SystemError.last("fstat") }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return status
        case S_IFDIR: throw SystemError(call: "open", code: EISDIR)
        default: throw SystemError(call: "open", code: EINVAL)
        }
    }

    /// Writes all bytes at the current position, and continues after short writes and `EINTR`.
    ///
    /// SIGPIPE and SIGXFSZ, which would end the process, are not raised. See pipe(7) and setrlimit(2).
    ///
    /// - Throws: The error of write(2), such as `ENOSPC`, `EFBIG` beyond the limit of the process, `EPIPE` for a pipe without
    ///   a reader, or `EAGAIN` for a descriptor that does not block; an unknown number of the bytes has been written then.
    public func writeAll(_ bytes: borrowing RawSpan) throws(SystemError) {
        try writeAll(bytes, at: nil)
    }

    /// Writes all bytes as ``writeAll(_:)`` does or, at an offset, by pwrite(2), which leaves the current position
    /// unchanged.
    func writeAll(_ bytes: borrowing RawSpan, at offset: Int64?) throws(SystemError) {
        try unsafe bytes.withUnsafeBytes { bytes throws(SystemError) in
            try suppressingFileSignals { () throws(SystemError) in
                var written = 0
                while written < bytes.count {
                    try SystemSimulation.willUseFile("write")
                    let rest = bytes.count - written
                    let limit = SystemSimulation.current?.writableBytes(of: rest) ?? rest
                    let position = unsafe bytes.baseAddress.map { unsafe $0 + written }
                    let count = retryingInterrupts {
                        if let offset {
                            unsafe pwrite(number, position, limit, Int(offset) + written)
                        } else {
                            unsafe Glibc.write(number, position, limit)
                        }
                    }
                    guard count >= 0 else { throw SystemError.last(offset == nil ? "write" : "pwrite") }
                    written += count
                }
            }
        }
        SystemSimulation.didChange(self)
    }
}

extension String {
    /// Whether the path begins with a slash. The byte is compared: with some characters after it, a slash is part of another
    /// character.
    package var isAbsolutePath: Bool { utf8.first == UInt8(ascii: "/") }

    /// The absolute path, which stays valid if the working directory changes. A relative path stays as it is if that
    /// directory was removed, or its path is not valid UTF-8. See getcwd(3).
    package var absolutePath: String {
        guard !isAbsolutePath, let directory = unsafe getcwd(nil, 0) else { return self }
        defer { unsafe free(directory) }
        return unsafe String(validatingCString: directory).map { $0 + "/" + self } ?? self
    }

    /// Throws `EINVAL` for a path with a NUL, where the system would cut it.
    func checkPath(_ call: String) throws(SystemError) {
        if utf8.contains(0) { throw SystemError(call: call, code: EINVAL) }
    }
}

/// Repeats a system call as long as it fails with `EINTR`, and returns its result.
package func retryingInterrupts<Result: SignedInteger>(_ call: () -> Result) -> Result {
    while true {
        let result = call()
        if result >= 0 || errno != EINTR { return result }
    }
}

/// Calls a function that writes to a file or a pipe, without the signals that it may raise: SIGPIPE, and SIGXFSZ beyond
/// the limit of the process on the size of files, which would end the process. See pipe(7) and setrlimit(2).
func suppressingFileSignals<Result>(_ body: () throws(SystemError) -> Result) throws(SystemError) -> Result {
    var (signals, blocked) = (sigset_t(), sigset_t())
    unsafe sigemptyset(&signals)
    unsafe sigaddset(&signals, SIGPIPE)
    unsafe sigaddset(&signals, SIGXFSZ)
    unsafe pthread_sigmask(SIG_BLOCK, &signals, &blocked)
    // As on the threads of the pool.
    let wereBlocked = unsafe sigismember(&blocked, SIGPIPE) == 1 && sigismember(&blocked, SIGXFSZ) == 1
    defer { if !wereBlocked { unsafe pthread_sigmask(SIG_SETMASK, &blocked, nil) } }
    do throws(SystemError) {
        return try body()
    } catch {
        let signal: Int32? = error.code == EPIPE ? SIGPIPE : error.code == EFBIG ? SIGXFSZ : nil
        // The signal is sent to the thread that called the function. It is one with any that was pending for it before.
        if let signal {
            var none = timespec()
            unsafe sigemptyset(&signals)
            unsafe sigaddset(&signals, signal)
            unsafe _ = sigtimedwait(&signals, nil, &none)
        }
        throw error
    }
}

extension stat {
    /// The permission bits of a file that replaces this one. The members of another group have no more than everyone.
    func permissions(inGroup group: gid_t) -> mode_t {
        group == st_gid ? st_mode & 0o777 : st_mode & 0o707 | (st_mode & 0o007) << 3
    }

    /// Whether a file belongs to the user of this process, or to root, and has none of some permission bits.
    func isProtected(from permissions: mode_t) -> Bool {
        st_mode & permissions == 0 && (st_uid == geteuid() || st_uid == 0)
    }
}
