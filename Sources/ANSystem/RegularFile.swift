// SPDX-License-Identifier: MIT

import Glibc

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
