// SPDX-License-Identifier: MIT

import Glibc

/// A regular file, open for reading from its start up to the size that it had when it was opened.
///
/// It is closed with its last reference. Files are read by read(2) and not mapped: a mapped file that shrinks kills the
/// process.
public final class RegularFile {
    /// The size when the file was opened.
    public let size: Int64
    /// How much of that was not read yet.
    public private(set) var remaining: Int64
    private let descriptor: FileDescriptor

    /// Opens a file.
    ///
    /// - Throws: `EISDIR` for a folder and `EINVAL` for anything else that is no file.
    public init(path: String) throws(SystemError) {
        // Opening a FIFO without O_NONBLOCK would wait for its writer; on regular files the flag means nothing.
        descriptor = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK)
        size = try descriptor.regularFileSize()
        remaining = size
    }

    /// Reads into the buffer as far as one read(2) does; 0 at the end, and where the file ended before its size, which
    /// ``remaining`` shows.
    public func read(into buffer: inout MutableRawSpan) throws(SystemError) -> Int {
        let wanted = Int(min(remaining, Int64(buffer.byteCount)))
        guard wanted > 0 else { return 0 }
        let count = try descriptor.read(into: &buffer, upTo: wanted)
        remaining -= Int64(count)
        return count
    }

    /// Reads what is left, all at once: for files that are known to be small.
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
