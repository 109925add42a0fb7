// SPDX-License-Identifier: MIT

import CZlib
import Glibc

/// An incremental compressor of one stream that uses zlib. See https://www.zlib.net/manual.html.
///
/// ``step(_:isEnd:into:)`` is called until ``Step/isFinished``; another stream needs another compressor.
@safe public struct Deflater: ~Copyable {
    /// Allocated on the heap because zlib keeps its address.
    private let stream: UnsafeMutablePointer<czlib_stream>

    /// The format around the compressed bytes.
    public enum Format: Hashable, Sendable {
        /// The gzip format (RFC 1952).
        case gzip
        /// The zlib format (RFC 1950).
        case zlib
    }

    /// The result of one step of compression.
    public struct Step: Hashable, Sendable {
        /// The number of bytes taken from the input.
        public var consumed: Int
        /// The number of bytes written to the output.
        public var produced: Int
        /// Whether the end of the stream was written; no further step is then necessary.
        public var isFinished: Bool
    }

    /// Creates a compressor.
    ///
    /// - Parameters:
    ///   - format: The format around the compressed bytes.
    ///   - level: The compression level, from 1 (fastest) to 9 (smallest); 6 by default.
    /// - Throws: `EINVAL` if the level is out of range, `ENOMEM` if memory is exhausted.
    public init(format: Format, level: Int = 6) throws(SystemError) {
        // A window of 2^15 bytes; adding 16 selects the gzip format.
        try self.init(windowBits: format == .gzip ? 15 + 16 : 15, level: level)
    }

    /// Creates a compressor whose output has no header and no checksum (RFC 1951).
    ///
    /// - Throws: `EINVAL` if the level is out of range, `ENOMEM` if memory is exhausted.
    package init(rawAtLevel level: Int) throws(SystemError) {
        try self.init(windowBits: -15, level: level)
    }

    private init(windowBits: Int32, level: Int) throws(SystemError) {
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: unsafe czlib_stream())
        // An error thrown here runs `deinit`, where zlib refuses to end a stream that was not initialized.
        guard 1...9 ~= level else { throw SystemError(call: "deflateInit2", code: EINVAL) }
        let (deflated, memoryLevel, defaultStrategy): (Int32, Int32, Int32) = (8, 8, 0)
        let size = unsafe Int32(MemoryLayout<czlib_stream>.size)
        let status = unsafe czlib_deflate_init(
            stream, Int32(level), deflated, windowBits, memoryLevel, defaultStrategy, "1", size)
        try Zlib.check(status, "deflateInit2", otherwise: EINVAL)
    }

    deinit {
        _ = unsafe czlib_deflate_end(stream)
        unsafe stream.deallocate()
    }

    /// Compresses as much of the input as the output has room for.
    ///
    /// All of the input, or its first GiB, is consumed if the output is not full afterwards. zlib may keep compressed
    /// bytes for a later step.
    ///
    /// - Parameters:
    ///   - input: The bytes to compress, possibly none.
    ///   - isEnd: Whether no input follows. The end of the stream is then written, possibly over several steps, which
    ///     pass `true` again, until ``Step/isFinished``.
    ///   - output: The buffer to write to; with an empty one the step has no effect.
    /// - Throws: `EINVAL` if zlib reports misuse, `ENOMEM` if memory is exhausted.
    public mutating func step(
        _ input: borrowing RawSpan, isEnd: Bool, into output: inout MutableRawSpan
    ) throws(SystemError) -> Step {
        let (status, consumed, produced) = unsafe Zlib.run(stream, input, into: &output) { isWhole in
            unsafe czlib_deflate(stream, isEnd && isWhole ? Zlib.finish : Zlib.noFlush)
        }
        try Zlib.check(status, "deflate", otherwise: EINVAL)
        return Step(consumed: consumed, produced: produced, isFinished: status == Zlib.streamEnd)
    }

    /// Compresses as much of the input as the output has room for, followed by an empty block at a byte boundary
    /// (`Z_SYNC_FLUSH`), which is complete if the output is not full afterwards.
    ///
    /// - Throws: `EINVAL` if zlib reports misuse, `ENOMEM` if memory is exhausted.
    package mutating func flush(
        _ input: borrowing RawSpan, into output: inout MutableRawSpan
    ) throws(SystemError) -> Step {
        let (status, consumed, produced) = unsafe Zlib.run(stream, input, into: &output) { isWhole in
            unsafe czlib_deflate(stream, isWhole ? Zlib.syncFlush : Zlib.noFlush)
        }
        try Zlib.check(status, "deflate", otherwise: EINVAL)
        return Step(consumed: consumed, produced: produced, isFinished: false)
    }
}
