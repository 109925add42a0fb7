// SPDX-License-Identifier: MIT

import Glibc

/// Where a file is to be: a path with its symbolic links resolved, and whether a file can be put there.
public struct FilePlace: Hashable, Sendable {
    /// The path of the file itself. See realpath(3).
    public let path: String
    /// Whether there is anything.
    public let exists: Bool
    /// Whether there is nothing or a regular file; a device, a pipe or a folder is not replaced.
    public let isReplaceable: Bool

    /// Looks at what is at a path.
    public init(_ path: String) {
        var status = stat()
        exists = unsafe stat(path, &status) == 0
        isReplaceable = !exists || status.st_mode & S_IFMT == S_IFREG
        self.path = exists && isReplaceable ? Self.resolvingLinks(path) : path
    }

    /// Takes a path as it stands.
    public init(unresolved path: String) {
        self.path = path
        exists = false
        isReplaceable = true
    }

    /// The path without symbolic links; the path itself where that fails.
    private static func resolvingLinks(_ path: String) -> String {
        guard let resolved = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// Opens what is there to write to it as it is; nil where a file can be put there instead. A folder fails with `EISDIR`.
    public func openDevice() throws(SystemError) -> FileDescriptor? {
        guard !isReplaceable else { return nil }
        return try FileDescriptor(opening: path, flags: O_WRONLY)
    }

    /// The path of the folder that it is in.
    public var folder: String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The last part of the path.
    public var name: String {
        path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
    }

    /// Makes the folder, and those that it is in, where they are missing. See mkdir(2).
    public func makeFolders(mode: UInt32 = 0o777) throws(SystemError) {
        try Self.makeFolder(folder, mode)
    }

    private static func makeFolder(_ path: String, _ mode: UInt32) throws(SystemError) {
        if unsafe mkdir(path, mode) == 0 { return }
        switch errno {
        case EEXIST:
            return
        case ENOENT:
            let parent = FilePlace(path).folder
            guard parent != path, parent != "." else { throw SystemError(call: "mkdir", code: ENOENT) }
            try makeFolder(parent, mode)
            guard unsafe mkdir(path, mode) == 0 || errno == EEXIST else { throw SystemError.last("mkdir") }
        default:
            throw SystemError.last("mkdir")
        }
    }

    /// The names of what is in a folder, in order. See readdir(3).
    public static func names(in folder: String) throws(SystemError) -> [String] {
        guard let stream = unsafe opendir(folder) else { throw SystemError.last("opendir") }
        defer { unsafe _ = closedir(stream) }
        var names: [String] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}
