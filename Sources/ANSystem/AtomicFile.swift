// SPDX-License-Identifier: MIT

import Glibc

/// A file that is written beside its final place and moved there when it is complete: under the final name there is the
/// whole file, or what was there before. One that is not committed is removed.
public struct AtomicFile: ~Copyable {
    private let destination: String
    private let temporaryPath: String
    private let file: FileDescriptor
    private var isCommitted = false
    /// The bytes written so far.
    public private(set) var size: Int64 = 0

    /// Creates a temporary file in the destination's folder.
    public init(destination: String) throws(SystemError) {
        let suffix = String(UInt64.random(in: .min ... .max), radix: 36)
        temporaryPath = "\(destination).\(suffix).part"
        file = try FileDescriptor(opening: temporaryPath, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o666)
        self.destination = destination
    }

    deinit {
        if !isCommitted { unsafe unlink(temporaryPath) }
    }

    /// Appends all bytes.
    public mutating func write(_ bytes: borrowing RawSpan) throws(SystemError) {
        try file.writeAll(bytes)
        size += Int64(bytes.byteCount)
    }

    /// Moves the file to its final name, in place of what is there. See rename(2).
    public consuming func commit() throws(SystemError) {
        guard unsafe rename(temporaryPath, destination) == 0 else { throw SystemError.last("rename") }
        isCommitted = true
    }
}
