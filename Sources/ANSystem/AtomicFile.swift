// SPDX-License-Identifier: MIT

import Glibc

/// A file that is written beside its final place and moved there when it is complete: under the final name there is the
/// whole file, or what was there before. One that is not committed is removed.
///
/// A symbolic link stays, and what it leads to is replaced. A device or a pipe, such as `/dev/null`, is written to as it
/// is.
public struct AtomicFile: ~Copyable {
    private let destination: String
    /// Where the bytes are until the file is complete; nil when they go to the destination itself.
    private let temporaryPath: String?
    private let file: FileDescriptor
    private var isCommitted = false
    /// The bytes written so far.
    public private(set) var size: Int64 = 0

    /// Creates a temporary file in the destination's folder.
    public init(destination: String) throws(SystemError) {
        var status = stat()
        let exists = unsafe stat(destination, &status) == 0
        let isReplaced = !exists || status.st_mode & S_IFMT == S_IFREG
        let destination = exists && isReplaced ? Self.resolvingLinks(destination) : destination
        let temporaryPath = "\(destination).\(String(UInt64.random(in: .min ... .max), radix: 36)).part"
        file = try FileDescriptor(
            opening: isReplaced ? temporaryPath : destination,
            flags: isReplaced ? O_WRONLY | O_CREAT | O_EXCL : O_WRONLY, mode: 0o666)
        self.temporaryPath = isReplaced ? temporaryPath : nil
        self.destination = destination
    }

    deinit {
        if let temporaryPath, !isCommitted { unsafe unlink(temporaryPath) }
    }

    /// Appends all bytes.
    public mutating func write(_ bytes: borrowing RawSpan) throws(SystemError) {
        try file.writeAll(bytes)
        size += Int64(bytes.byteCount)
    }

    /// Moves the file to its final name, in place of what is there. See rename(2).
    public consuming func commit() throws(SystemError) {
        if let temporaryPath {
            guard unsafe rename(temporaryPath, destination) == 0 else { throw SystemError.last("rename") }
        }
        isCommitted = true
    }

    /// The path without symbolic links, see realpath(3); the path itself where that fails.
    private static func resolvingLinks(_ path: String) -> String {
        guard let resolved = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }
}
