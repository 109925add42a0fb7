// SPDX-License-Identifier: MIT

import CZlib
import Glibc

/// Compresses bytes as they come, with zlib. See https://www.zlib.net/manual.html.
@safe public struct Deflater: ~Copyable {
    /// On the heap, for zlib keeps its address.
    private let stream: UnsafeMutablePointer<czlib_stream>

    /// What surrounds the compressed bytes.
    public enum Format: Hashable, Sendable {
        /// RFC 1952.
        case gzip
        /// RFC 1950.
        case zlib
    }

    /// What one step did.
    public struct Step: Hashable, Sendable {
        /// How many bytes of the input were taken.
        public var consumed: Int
        /// How many bytes were written.
        public var produced: Int
        /// Whether the end was written.
        public var isFinished: Bool
    }

    /// Creates a compressor; the level is from 1, fast, to 9, small.
    ///
    /// - Throws: `ENOMEM`, or `EINVAL` for another level.
    public init(format: Format, level: Int = 6) throws(SystemError) {
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: unsafe czlib_stream())
        // From here on what is thrown runs `deinit`, where zlib refuses to end what did not begin.
        guard 1...9 ~= level else { throw SystemError(call: "deflateInit2", code: EINVAL) }
        // 2^15 bytes of history; 16 more ask for the header of gzip.
        let windowBits: Int32 = format == .gzip ? 15 + 16 : 15
        let (deflated, memoryLevel, defaultStrategy): (Int32, Int32, Int32) = (8, 8, 0)
        let size = unsafe Int32(MemoryLayout<czlib_stream>.size)
        let status = unsafe czlib_deflate_init(
            stream, Int32(level), deflated, windowBits, memoryLevel, defaultStrategy, "1", size)
        guard status == Self.ok else { throw Self.error("deflateInit2", status) }
    }

    deinit {
        _ = unsafe czlib_deflate_end(stream)
        unsafe stream.deallocate()
    }

    /// Takes input as far as the output has room.
    ///
    /// It is done with the input once it leaves room in the output. `isEnd` says that nothing follows the input; the end is
    /// written once the step is finished.
    public mutating func step(
        _ input: borrowing RawSpan, isEnd: Bool, into output: inout MutableRawSpan
    ) throws(SystemError) -> Step {
        var step = Step(consumed: 0, produced: 0, isFinished: false)
        let status = unsafe input.withUnsafeBytes { input in
            unsafe output.withUnsafeMutableBytes { output in
                let (taken, room) = (min(input.count, 1 << 30), min(output.count, 1 << 30))
                unsafe stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
                unsafe stream.pointee.avail_in = UInt32(taken)
                unsafe stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
                unsafe stream.pointee.avail_out = UInt32(room)
                let status = unsafe czlib_deflate(stream, isEnd && taken == input.count ? Self.finish : Self.noFlush)
                step.consumed = unsafe taken - Int(stream.pointee.avail_in)
                step.produced = unsafe room - Int(stream.pointee.avail_out)
                return status
            }
        }
        step.isFinished = status == Self.streamEnd
        // Without room or input there is no progress, which is no error.
        guard status == Self.ok || status == Self.streamEnd || status == Self.bufferError else {
            throw Self.error("deflate", status)
        }
        return step
    }

    // Z_OK, Z_STREAM_END, Z_MEM_ERROR, Z_BUF_ERROR; Z_NO_FLUSH, Z_FINISH.
    private static let ok: Int32 = 0
    private static let streamEnd: Int32 = 1
    private static let memoryError: Int32 = -4
    private static let bufferError: Int32 = -5
    private static let noFlush: Int32 = 0
    private static let finish: Int32 = 4

    private static func error(_ call: String, _ status: Int32) -> SystemError {
        SystemError(call: call, code: status == memoryError ? ENOMEM : EINVAL)
    }
}
