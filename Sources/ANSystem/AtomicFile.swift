// SPDX-License-Identifier: MIT

import Glibc

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
    /// The path of the temporary file; `nil` if the bytes are written to the destination directly.
    package let temporaryPath: String?
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
            try PartialFile(path: path, opening: .new, mode: mode ?? 0o666)
        }
        self.destination = location.path
        self.temporaryPath = temporaryPath
        self.device = device
        self.partial = partial
        keepsMode = mode == nil
    }

    /// Appends all bytes.
    ///
    /// - Throws: The error of write(2), such as `EPIPE` for a pipe whose reader has gone away. A part of the bytes may
    ///   have been written then, so the file must not be committed.
    public mutating func write(_ bytes: borrowing RawSpan) throws(SystemError) {
        try device?.writeAllToDevice(bytes)
        try partial?.write(bytes)
        size += Int64(bytes.byteCount)
    }

    /// Renames the temporary file to its final name, and replaces a file of that name. See rename(2).
    ///
    /// The bytes are not flushed to the disk: after a power failure, the file may be incomplete.
    ///
    /// - Throws: The error of rename(2); the temporary file is then removed.
    public consuming func commit() throws(SystemError) {
        try partial?.move(to: destination, keepingMode: keepsMode)
    }

    /// Returns a unique temporary path next to a file: the path with a random part and `.part`. A long name is
    /// cut.
    package static func temporaryPath(for path: String) -> String {
        FileLocation.path(path, appending: ".\(String(UInt64.systemRandom(in: .min ... .max), radix: 36)).part")
    }
}
