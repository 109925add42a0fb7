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
