// SPDX-License-Identifier: MIT

import CZlib
import Glibc

/// A decoder for one gzip, zlib or raw deflate stream that verifies checksums, using zlib. See
/// https://www.zlib.net/manual.html.
///
/// After the end of the stream no input is consumed until ``reset()``.
@safe package struct Inflater: ~Copyable, StreamDecoder {
    /// Allocated on the heap because zlib keeps its address.
    private nonisolated(unsafe) let stream: UnsafeMutablePointer<czlib_stream>
    private var isComplete = false

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
        guard status == Self.ok else { throw Self.error("inflateInit2", status) }
    }

    deinit {
        _ = unsafe czlib_inflate_end(stream)
        unsafe stream.deallocate()
    }

    package mutating func step(
        _ input: borrowing RawSpan, into output: inout MutableRawSpan
    ) throws(SystemError) -> DecodingStep {
        var step = DecodingStep()
        step.isComplete = isComplete
        guard !isComplete else { return step }
        let status = unsafe input.withUnsafeBytes { input in
            unsafe output.withUnsafeMutableBytes { output in
                // zlib's counters have 32 bits.
                let (taken, room) = (min(input.count, 1 << 30), min(output.count, 1 << 30))
                unsafe stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
                unsafe stream.pointee.avail_in = UInt32(taken)
                unsafe stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
                unsafe stream.pointee.avail_out = UInt32(room)
                // An empty output may have a null address, which zlib reports as misuse.
                guard room > 0 else { return Self.bufferError }
                let status = unsafe czlib_inflate(stream, Self.noFlush)
                step.consumed = unsafe taken - Int(stream.pointee.avail_in)
                step.produced = unsafe room - Int(stream.pointee.avail_out)
                return status
            }
        }
        isComplete = status == Self.streamEnd
        step.isComplete = isComplete
        // No progress, for lack of room or input, is not an error.
        guard status == Self.ok || status == Self.streamEnd || status == Self.bufferError else {
            throw Self.error("inflate", status)
        }
        return step
    }

    /// Prepares the decoder for another stream of the same format.
    ///
    /// - Throws: `EINVAL` if zlib's state is inconsistent.
    package mutating func reset() throws(SystemError) {
        let status = unsafe czlib_inflate_reset(stream)
        guard status == Self.ok else { throw SystemError(call: "inflateReset", code: EINVAL) }
        isComplete = false
    }

    // Z_OK, Z_STREAM_END, Z_MEM_ERROR, Z_BUF_ERROR; Z_NO_FLUSH.
    private static let ok: Int32 = 0
    private static let streamEnd: Int32 = 1
    private static let memoryError: Int32 = -4
    private static let bufferError: Int32 = -5
    private static let noFlush: Int32 = 0

    /// Returns the error for a status of zlib. Z_NEED_DICT counts as malformed input: HTTP has no preset dictionaries
    /// for zlib.
    private static func error(_ call: String, _ status: Int32) -> SystemError {
        SystemError(call: call, code: status == memoryError ? ENOMEM : EBADMSG)
    }
}
