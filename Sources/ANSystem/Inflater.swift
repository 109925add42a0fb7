// SPDX-License-Identifier: MIT

import CZlib
import Glibc

/// A decoder for one stream of gzip, zlib or raw deflate, which checks its checksums. See https://www.zlib.net/manual.html.
///
/// After the end of the stream nothing is consumed until ``reset()``.
@safe package struct Inflater: ~Copyable, StreamDecoder {
    /// On the heap, because zlib keeps its address.
    private nonisolated(unsafe) let stream: UnsafeMutablePointer<czlib_stream>
    private var isComplete = false

    /// The format around the deflated bytes.
    package enum Format: Hashable, Sendable {
        /// RFC 1952, one member.
        case gzip
        /// RFC 1950.
        case zlib
        /// RFC 1951, without header and sum.
        case deflate
    }

    /// Creates a decoder.
    ///
    /// - Throws: `ENOMEM`.
    package init(format: Format) throws(SystemError) {
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: unsafe czlib_stream())
        // 2^15 bytes of history; 16 more ask for the header of gzip, a negative number for none.
        let windowBits: Int32 =
            switch format {
            case .gzip: 15 + 16
            case .zlib: 15
            case .deflate: -15
            }
        // An error thrown here runs `deinit`, where zlib refuses to end a stream that did not begin.
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
                // zlib counts in 32 bits.
                let (taken, room) = (min(input.count, 1 << 30), min(output.count, 1 << 30))
                unsafe stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
                unsafe stream.pointee.avail_in = UInt32(taken)
                unsafe stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
                unsafe stream.pointee.avail_out = UInt32(room)
                // An output without room may have no address, which zlib takes for a misuse.
                guard room > 0 else { return Self.bufferError }
                let status = unsafe czlib_inflate(stream, Self.noFlush)
                step.consumed = unsafe taken - Int(stream.pointee.avail_in)
                step.produced = unsafe room - Int(stream.pointee.avail_out)
                return status
            }
        }
        isComplete = status == Self.streamEnd
        step.isComplete = isComplete
        // Without room or input there is no progress, which is no error.
        guard status == Self.ok || status == Self.streamEnd || status == Self.bufferError else {
            throw Self.error("inflate", status)
        }
        return step
    }

    /// Begins another stream of the same format.
    ///
    /// - Throws: `EINVAL` after an error of zlib's own.
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

    /// Z_NEED_DICT counts as malformed: HTTP has no dictionaries for zlib.
    private static func error(_ call: String, _ status: Int32) -> SystemError {
        SystemError(call: call, code: status == memoryError ? ENOMEM : EBADMSG)
    }
}
