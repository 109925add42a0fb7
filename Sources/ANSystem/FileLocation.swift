// SPDX-License-Identifier: MIT

import Glibc

/// A path for a file, with symbolic links resolved, and the kind of file that existed there when it was inspected.
public struct FileLocation: Hashable, Sendable {
    /// The path of the file: absolute and with symbolic links resolved by realpath(3) for an existing regular file,
    /// otherwise unchanged.
    public let path: String
    /// Whether something existed at the path; `false` for a symbolic link without a target, and if stat(2) failed for
    /// another reason, such as a missing permission.
    public let exists: Bool
    /// Whether a regular file or nothing was found at the path, so that a file may be created or replaced there.
    ///
    /// `false` for a device, a pipe, a socket or a directory. Permissions and missing parent directories are not
    /// checked. If stat(2) failed, nothing counts as found.
    public let isReplaceable: Bool
    /// The permission bits of a temporary file that will replace the file: no more than it has, also for the members of
    /// another group, but the owner can read and write; 0o666 if there is no file.
    package let temporaryMode: UInt32
    /// Whether a directory was found at the path.
    package let isDirectory: Bool
    /// Whether a file that replaces the one at the path, and keeps its permissions, can be modified by other users.
    package let isWritableByOthers: Bool

    /// Inspects a path once, following symbolic links; later changes are not noticed. See stat(2).
    public init(_ path: String) {
        let status = Self.status(of: path)
        let mode = status?.st_mode
        exists = mode != nil
        isReplaceable = mode.map { $0 & S_IFMT == S_IFREG } ?? true
        isDirectory = mode.map { $0 & S_IFMT == S_IFDIR } ?? false
        isWritableByOthers = mode.map { $0 & 0o022 != 0 } ?? false
        temporaryMode = status.map { $0.permissions(inGroup: getegid()) & 0o666 | 0o600 } ?? 0o666
        self.path = exists && isReplaceable ? Self.resolvingLinks(path) : path
    }

    /// Checks that there is nothing but a file that can be replaced.
    ///
    /// - Throws: `EISDIR` for a directory, and `EINVAL` for a pipe, a socket or a device.
    package func checkReplaceable() throws(SystemError) {
        guard isReplaceable else { throw SystemError(call: "open", code: isDirectory ? EISDIR : EINVAL) }
    }

    /// Creates a value for a path without accessing the file system: no links are resolved, and the file counts as
    /// missing.
    public init(unresolved path: String) {
        self.path = path
        exists = false
        isReplaceable = true
        isWritableByOthers = false
        temporaryMode = 0o666
        isDirectory = false
    }

    /// Inspects a path; `nil` if nothing was found, and for a path with a NUL, at which C functions would end it.
    fileprivate static func status(of path: String) -> stat? {
        var status = stat()
        return unsafe !path.utf8.contains(0) && stat(path, &status) == 0 ? status : nil
    }

    /// Returns the path without symbolic links, or the path itself if realpath(3) fails. If the name of a directory is not
    /// valid UTF-8, a path that is no link stays as it is, and the target of a link is not found.
    private static func resolvingLinks(_ path: String) -> String {
        guard let resolved = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(resolved) }
        if let text = unsafe String(validatingCString: resolved) { return text }
        var status = stat()
        let isLink = unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
        return isLink ? unsafe String(cString: resolved) : path
    }

    /// Opens a device or a pipe for writing, without waiting: a named pipe must already have a reader, see fifo(7).
    /// Writing blocks while a pipe is full.
    ///
    /// - Returns: The descriptor; `nil` if ``isReplaceable``.
    /// - Throws: `EISDIR` for a directory, `ENXIO` for a socket or a pipe without a reader; otherwise the error of
    ///   open(2).
    public func openDevice() throws(SystemError) -> FileDescriptor? {
        guard !isReplaceable else { return nil }
        let file = try FileDescriptor(opening: path, flags: O_WRONLY | O_NONBLOCK)
        try file.setBlocking()
        return file
    }

    /// The part of the path before its last slash, the directory that contains the file; `.` if the path has no slash,
    /// `/` if its only slash is the first character.
    public var directory: String {
        guard let slash = lastSlash else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The part of the path after its last slash; empty if the path ends with one.
    public var name: String {
        lastSlash.map { String(path[path.utf8.index(after: $0)...]) } ?? path
    }

    /// Returns a path with a suffix. Of a long name, only the beginning is used, so that the result has at most 255
    /// bytes, the limit of most file systems (`NAME_MAX`, limits.h(0p)).
    package static func path(_ path: String, appending suffix: String) -> String {
        let excess = FileLocation(unresolved: path).name.utf8.count + suffix.utf8.count - 255
        let length = path.utf8.count - max(0, excess)
        var beginning = path[...]
        while beginning.utf8.count > length { beginning.unicodeScalars.removeLast() }
        return beginning + suffix
    }

    /// The position of the last slash, even one before a combining character, with which it forms one `Character`.
    private var lastSlash: String.Index? { path.utf8.lastIndex(of: UInt8(ascii: "/")) }

    /// Returns the path of another file in the directory.
    package func sibling(_ name: String) -> String {
        lastSlash.map { String(Substring(path.utf8[...$0])) + name } ?? name
    }

    /// Creates the directory that contains the file, and its missing parents, unless they exist. See mkdir(2).
    ///
    /// - Parameter mode: The permission bits of new directories, before the process's umask is applied; 0o777 by
    ///   default.
    /// - Throws: The error of mkdir(2). A file in the place of the last directory is not an error here; one in the
    ///   place of a parent is (`ENOTDIR`). Parents that were created before the failure remain.
    public func createDirectories(mode: UInt32 = 0o777) throws(SystemError) {
        try path.checkPath("mkdir")
        try Self.createDirectory(directory, mode)
    }

    private static func createDirectory(_ path: String, _ mode: UInt32) throws(SystemError) {
        if unsafe mkdir(path, mode) == 0 { return }
        switch errno {
        case EEXIST:
            return
        case ENOENT:
            let parent = FileLocation(path).directory
            guard parent != path, parent != "." else { throw SystemError(call: "mkdir", code: ENOENT) }
            try createDirectory(parent, mode)
            guard unsafe mkdir(path, mode) == 0 || errno == EEXIST else { throw SystemError.last("mkdir") }
        default:
            throw SystemError.last("mkdir")
        }
    }

    /// Throws an error unless this process, and only its user or root, can change the entries of a directory. See
    /// lstat(2) and access(2).
    ///
    /// - Throws: `EPERM` if another user can change them; `ENOTDIR` for a symbolic link or a file; otherwise the error
    ///   of lstat(2), or of faccessat(2), such as `EACCES` or `EROFS`.
    package static func checkProtectedDirectory(_ path: String) throws(SystemError) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { throw SystemError.last("lstat") }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw SystemError(call: "open", code: ENOTDIR) }
        guard status.isProtected(from: S_IWGRP | S_IWOTH) else { throw SystemError(call: "open", code: EPERM) }
        // Old filters of containers refuse the system call that AT_EACCESS needs.
        let flags = geteuid() == getuid() ? 0 : AT_EACCESS
        guard unsafe faccessat(AT_FDCWD, path, W_OK | X_OK, flags) == 0 else {
            throw SystemError.last("faccessat")
        }
    }

    /// Returns the names of a directory's entries, including hidden ones, in ascending order, without `.` and `..`. See
    /// readdir(3).
    ///
    /// Bytes that are not valid UTF-8 become U+FFFD.
    ///
    /// - Parameter directory: The path of the directory; symbolic links are followed.
    /// - Throws: The error of opendir(3), such as `ENOENT` or `ENOTDIR`, or of readdir(3).
    public static func names(in directory: String) throws(SystemError) -> [String] {
        var names: [String] = []
        try forEachName(in: directory) { names.append($0) }
        return names.sorted()
    }

    /// Calls `body` with the name of each entry of a directory, in any order, without `.` and `..`. See readdir(3).
    package static func forEachName(in directory: String, _ body: (String) -> Void) throws(SystemError) {
        try directory.checkPath("opendir")
        guard let stream = unsafe opendir(directory) else { throw SystemError.last("opendir") }
        defer { unsafe _ = closedir(stream) }
        while true {
            // readdir(3) returns NULL at the end and for an error, which only `errno` distinguishes.
            errno = 0
            guard let entry = unsafe readdir(stream) else { break }
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name != ".", name != ".." { body(name) }
        }
        guard errno == 0 else { throw SystemError.last("readdir") }
    }

    /// Waits until the names in the directory that contains the file are on the disk, unless it cannot be read, or its file
    /// system does not support that. See fsync(2).
    ///
    /// - Throws: Any other error of open(2) or fsync(2), such as `EMFILE` or `EIO`; names may then be lost.
    package func flushDirectory() throws(SystemError) {
        do throws(SystemError) {
            let file = try FileDescriptor(opening: directory, flags: O_RDONLY | O_DIRECTORY)
            try SystemSimulation.willUseFile("fsync", directory)
            guard retryingInterrupts({ fsync(file.number) }) == 0 else { throw SystemError.last("fsync") }
        } catch  where Self.flushingObstacles.contains(error.code) {}
    }

    private static let flushingObstacles = [EACCES, EINVAL, ENOSYS, ENOTSUP, EROFS]

    /// Removes a file, and returns whether it existed. See unlink(2).
    @discardableResult
    package static func remove(_ path: String) -> Bool {
        // A simulation may copy the directory before the removal, but not prevent it.
        try? SystemSimulation.willUseFile("unlink", path)
        return unsafe !path.utf8.contains(0) && unlink(path) == 0
    }

    /// Creates another name for a file of the same file system. See link(2).
    ///
    /// - Throws: `EXDEV` if the file systems differ, `EPERM` if links are not supported or not permitted; otherwise the
    ///   error of link(2).
    package static func link(_ path: String, to other: String) throws(SystemError) {
        for name in [path, other] { try name.checkPath("link") }
        try SystemSimulation.willUseFile("link", other)
        guard unsafe Glibc.link(path, other) == 0 else { throw SystemError.last("link") }
    }

    /// Sets the access and modification times of a file to the current time. See utimensat(2).
    package static func touch(_ path: String) {
        unsafe _ = utimensat(AT_FDCWD, path, nil, 0)
        SystemSimulation.didChange(path)
    }

    /// Returns the time of the last modification of a file or directory, in nanoseconds since 1970, clamped to the
    /// range of the type, the years 1677 to 2262; `nil` if it does not exist. See stat(2).
    package static func modificationTime(of path: String) -> Int64? {
        guard let status = status(of: path) else { return nil }
        let seconds = Int64(status.st_mtim.tv_sec)
        let (whole, isOutside) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (time, isAfter) = whole.addingReportingOverflow(Int64(status.st_mtim.tv_nsec))
        return isOutside || isAfter ? (seconds < 0 ? .min : .max) : time
    }
}

/// The identity, size and times of a file, which distinguish a state of the file from a later one.
package struct FileStamp: Codable, Hashable, Sendable {
    private let path: String
    private var device: UInt64 = 0
    private var inode: UInt64 = 0
    private var size: Int64 = 0
    private var seconds = 0
    private var nanoseconds = 0
    /// The time of the last change, also of the name or the permissions, which programs cannot set.
    private var changed: [Int]?

    /// Reads the state of the file at this path, which need not exist.
    package init(path: String) {
        self.path = path
        guard let status = FileLocation.status(of: path) else { return }
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        seconds = Int(status.st_mtim.tv_sec)
        nanoseconds = Int(status.st_mtim.tv_nsec)
        changed = [Int(status.st_ctim.tv_sec), Int(status.st_ctim.tv_nsec)]
    }

    /// Whether the file has the content that it had when the stamp was created, unless a program has set its times.
    package var isCurrent: Bool {
        let now = FileStamp(path: path)
        return device == now.device && hasContent(of: now)
    }

    /// Whether the file is that of another stamp and was not changed at all, perhaps since an earlier start of the system,
    /// where the number of the device may differ.
    package func isSameVersion(as other: FileStamp) -> Bool {
        hasContent(of: other) && changed == other.changed
    }

    private func hasContent(of other: FileStamp) -> Bool {
        inode == other.inode && size == other.size && seconds == other.seconds && nanoseconds == other.nanoseconds
    }
}
