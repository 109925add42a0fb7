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
