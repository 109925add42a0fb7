// SPDX-License-Identifier: MIT

import CDecoders
import Glibc

/// A decoder for Zstandard frames, including skippable ones (RFC 8878), that uses the system's libzstd.
/// See https://facebook.github.io/zstd/zstd_manual.html.
///
/// The stream may consist of any number of frames, and may end after each of them.
@safe package struct ZstdDecoder: ~Copyable, StreamDecoder {
    private nonisolated(unsafe) let context: OpaquePointer
    private let library: Library
    private var isComplete = false

    /// Whether libzstd.so.1 is installed in version 1.4 or later.
    package static var isAvailable: Bool { Library.current != nil }

    /// The base-2 logarithm of the largest accepted window: 8 MiB, the limit of RFC 9659 §3 for HTTP. A frame with a
    /// larger window is malformed.
    package static let maximumWindowLog = 23

    /// Creates a decoder.
    ///
    /// - Throws: `ENOSYS` if libzstd is not installed, `ENOMEM` if memory is exhausted.
    package init() throws(SystemError) {
        guard let library = Library.current else { throw SystemError(call: "ZstdDecoder", code: ENOSYS) }
        guard let context = unsafe library.create() else { throw SystemError(call: "ZSTD_createDCtx", code: ENOMEM) }
        let status = unsafe library.setParameter(context, Self.windowLogMax, Int32(Self.maximumWindowLog))
        guard unsafe library.isError(status) == 0 else {
            _ = unsafe library.free(context)
            throw library.error("ZSTD_DCtx_setParameter", status)
        }
        self.library = library
        unsafe self.context = context
    }

    deinit {
        _ = unsafe library.free(context)
    }

    package mutating func step(
        _ input: borrowing RawSpan, into output: inout MutableRawSpan
    ) throws(SystemError) -> DecodingStep {
        var step = DecodingStep(isComplete: isComplete)
        // Between frames, a call without input would begin another frame.
        guard !input.isEmpty || !isComplete else { return step }
        let status = unsafe input.withUnsafeBytes { input in
            unsafe output.withUnsafeMutableBytes { output in
                var source = unsafe cdecoders_zstd_input(src: input.baseAddress, size: input.count, pos: 0)
                var destination = unsafe cdecoders_zstd_output(dst: output.baseAddress, size: output.count, pos: 0)
                let status = unsafe library.decompress(context, &destination, &source)
                step.consumed = unsafe source.pos
                step.produced = unsafe destination.pos
                return status
            }
        }
        guard unsafe library.isError(status) == 0 else { throw library.error("ZSTD_decompressStream", status) }
        // The status is 0 at the end of a frame whose output is complete.
        isComplete = status == 0
        step.isComplete = isComplete
        return step
    }

    /// The parameter ZSTD_d_windowLogMax.
    private static let windowLogMax: Int32 = 100

    /// The functions of libzstd.
    @safe private struct Library: Sendable {
        nonisolated(unsafe) let create: cdecoders_zstd_create
        nonisolated(unsafe) let free: cdecoders_zstd_free
        nonisolated(unsafe) let setParameter: cdecoders_zstd_set_parameter
        nonisolated(unsafe) let decompress: cdecoders_zstd_decompress
        nonisolated(unsafe) let isError: cdecoders_zstd_is_error
        nonisolated(unsafe) let errorCode: cdecoders_zstd_error_code

        /// The system's library, loaded once; `nil` if it is not installed or lacks a function.
        static let current = Library()

        private init?() {
            guard let library = SharedLibrary("libzstd.so.1"),
                let create: cdecoders_zstd_create = unsafe library.function("ZSTD_createDCtx"),
                let free: cdecoders_zstd_free = unsafe library.function("ZSTD_freeDCtx"),
                let setParameter: cdecoders_zstd_set_parameter = unsafe library.function("ZSTD_DCtx_setParameter"),
                let decompress: cdecoders_zstd_decompress = unsafe library.function("ZSTD_decompressStream"),
                let isError: cdecoders_zstd_is_error = unsafe library.function("ZSTD_isError"),
                let errorCode: cdecoders_zstd_error_code = unsafe library.function("ZSTD_getErrorCode")
            else { return nil }
            unsafe self.create = create
            unsafe self.free = free
            unsafe self.setParameter = setParameter
            unsafe self.decompress = decompress
            unsafe self.isError = isError
            unsafe self.errorCode = errorCode
        }

        func error(_ call: String, _ status: Int) -> SystemError {
            // ZSTD_error_memory_allocation
            SystemError(call: call, code: unsafe errorCode(status) == 64 ? ENOMEM : EBADMSG)
        }
    }
}
