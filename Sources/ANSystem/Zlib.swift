// SPDX-License-Identifier: MIT

import CZlib
import Glibc

/// The parts of zlib's interface that ``Inflater`` and ``Deflater`` share. See https://www.zlib.net/manual.html.
enum Zlib {
    // Z_OK, Z_STREAM_END, Z_MEM_ERROR, Z_BUF_ERROR.
    static let ok: Int32 = 0
    static let streamEnd: Int32 = 1
    private static let memoryError: Int32 = -4
    private static let bufferError: Int32 = -5

    // Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FINISH.
    static let noFlush: Int32 = 0
    static let syncFlush: Int32 = 2
    static let finish: Int32 = 4

    /// Calls a function of zlib with the addresses of the input and the output.
    ///
    /// - Parameter call: Calls the function; its parameter is whether all of the input is passed.
    /// - Returns: The status of zlib, and the numbers of bytes taken from the input and written to the output.
    static func run(
        _ stream: UnsafeMutablePointer<czlib_stream>, _ input: borrowing RawSpan, into output: inout MutableRawSpan,
        _ call: (_ isWhole: Bool) -> Int32
    ) -> (status: Int32, consumed: Int, produced: Int) {
        unsafe input.withUnsafeBytes { input in
            unsafe output.withUnsafeMutableBytes { output in
                // zlib's counters have 32 bits.
                let (taken, room) = (min(input.count, 1 << 30), min(output.count, 1 << 30))
                // An empty output may have a null address, which zlib reports as misuse.
                guard room > 0 else { return (bufferError, 0, 0) }
                unsafe stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
                unsafe stream.pointee.avail_in = UInt32(taken)
                unsafe stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
                unsafe stream.pointee.avail_out = UInt32(room)
                let status = call(taken == input.count)
                return unsafe (
                    status, taken - Int(stream.pointee.avail_in), room - Int(stream.pointee.avail_out)
                )
            }
        }
    }

    /// Throws the error for a status of zlib.
    ///
    /// No progress, for lack of room or input, is not an error.
    ///
    /// - Parameters:
    ///   - call: The name of the function.
    ///   - code: The `errno` for a status other than exhausted memory.
    static func check(_ status: Int32, _ call: String, otherwise code: Int32) throws(SystemError) {
        guard status == ok || status == streamEnd || status == bufferError else {
            throw SystemError(call: call, code: status == memoryError ? ENOMEM : code)
        }
    }
}

/// A decoder for one gzip, zlib or raw deflate stream that verifies checksums, using zlib. See
/// https://www.zlib.net/manual.html.
///
/// After the end of the stream no input is consumed until ``reset()``.
@safe package struct Inflater: ~Copyable, StreamDecoder {
    /// Allocated on the heap because zlib keeps its address.
    private nonisolated(unsafe) let stream: UnsafeMutablePointer<czlib_stream>
    private(set) var isComplete = false

    /// The format around the deflated bytes.
    package enum Format: Hashable, Sendable {
        /// One member of a gzip file (RFC 1952).
        case gzip
        /// The zlib format (RFC 1950).
        case zlib
        /// Raw deflate data (RFC 1951), without header and checksum.
        case deflate
    }

    /// Creates a decoder.
    ///
    /// - Throws: `ENOMEM` if memory is exhausted.
    package init(format: Format) throws(SystemError) {
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: unsafe czlib_stream())
        // A window of 2^15 bytes; adding 16 selects the gzip format, and a negative number raw deflate.
        let windowBits: Int32 =
            switch format {
            case .gzip: 15 + 16
            case .zlib: 15
            case .deflate: -15
            }
        // An error thrown here runs `deinit`, where zlib refuses to end a stream that was not initialized.
        let status = unsafe czlib_inflate_init(stream, windowBits, "1", Int32(MemoryLayout<czlib_stream>.size))
        try Self.check(status, "inflateInit2")
    }

    deinit {
        _ = unsafe czlib_inflate_end(stream)
        unsafe stream.deallocate()
    }

    package mutating func step(
        _ input: borrowing RawSpan, into output: inout MutableRawSpan
    ) throws(SystemError) -> DecodingStep {
        guard !isComplete else { return DecodingStep(isComplete: true) }
        let (status, consumed, produced) = unsafe Zlib.run(stream, input, into: &output) { _ in
            unsafe czlib_inflate(stream, Zlib.noFlush)
        }
        isComplete = status == Zlib.streamEnd
        try Self.check(status, "inflate")
        return DecodingStep(consumed: consumed, produced: produced, isComplete: isComplete)
    }

    /// Whether all of the input belongs to complete blocks, so that the next byte would begin another one. zlib reports
    /// this in `data_type`, as 128 and the number of unused bits.
    var isBetweenBlocks: Bool { unsafe stream.pointee.data_type == 128 }

    /// Prepares the decoder for another stream of the same format.
    ///
    /// - Throws: `EINVAL` if zlib's state is inconsistent.
    package mutating func reset() throws(SystemError) {
        let status = unsafe czlib_inflate_reset(stream)
        guard status == Zlib.ok else { throw SystemError(call: "inflateReset", code: EINVAL) }
        isComplete = false
    }

    /// Throws the error for a status of zlib. Z_NEED_DICT counts as malformed input: HTTP has no preset dictionaries for
    /// zlib.
    private static func check(_ status: Int32, _ call: String) throws(SystemError) {
        try Zlib.check(status, call, otherwise: EBADMSG)
    }
}

extension Inflater {
    /// Returns the content of a body in a content coding, up to a number of bytes, and whether that is all of it; `nil` if
    /// the coding is neither `gzip` nor `deflate`, or the body is not in it. A body may be cut off.
    package static func content(
        of body: [UInt8], coding: String, upTo limit: Int
    ) -> (bytes: [UInt8], isComplete: Bool)? {
        let format: Format
        switch coding {
        case "gzip": format = .gzip
        case "deflate": format = .zlib
        default: return nil
        }
        do throws(SystemError) {
            var inflater = try Inflater(format: format)
            var (content, consumed): ([UInt8], Int) = ([], 0)
            var buffer = [UInt8](repeating: 0, count: 16 << 10)
            while content.count <= limit {
                var output = buffer.mutableSpan
                var space = unsafe output.mutableBytes
                let step = try unsafe inflater.step(body.span.bytes.extracting(droppingFirst: consumed), into: &space)
                content += buffer[..<step.produced]
                consumed += step.consumed
                if step.isComplete, consumed < body.count { return nil }
                if step.isComplete, content.count <= limit { return (content, true) }
                if step.consumed + step.produced == 0 { break }
            }
            return (Array(content.prefix(limit)), false)
        } catch {
            return nil
        }
    }
}

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
