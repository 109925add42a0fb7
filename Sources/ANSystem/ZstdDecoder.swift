// SPDX-License-Identifier: MIT

import CDecoders
import Glibc

/// A decoder for Zstandard frames, skippable ones included (RFC 8878), by the system's libzstd.
/// See https://facebook.github.io/zstd/zstd_manual.html.
///
/// Any number of frames may follow each other; the stream may end after each of them.
@safe package struct ZstdDecoder: ~Copyable, StreamDecoder {
    private nonisolated(unsafe) let context: OpaquePointer
    private let library: Library
    private var isComplete = false

    /// Whether the system has libzstd.so.1, 1.4 or later.
    package static var isAvailable: Bool { Library.current != nil }

    /// The base-2 logarithm of the largest accepted window: 8 MiB, as RFC 9659 §3 requires for HTTP. A larger window is
    /// malformed.
    package static let maximumWindowLog = 23

    /// Creates a decoder.
    ///
    /// - Throws: `ENOSYS` if there is no libzstd, `ENOMEM`.
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
        var step = DecodingStep()
        step.isComplete = isComplete
        // Between frames, a call without input would begin another.
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
        // 0 at the end of a frame that is written out.
        isComplete = status == 0
        step.isComplete = isComplete
        return step
    }

    /// ZSTD_d_windowLogMax.
    private static let windowLogMax: Int32 = 100

    /// The functions of libzstd.
    @safe private struct Library: Sendable {
        nonisolated(unsafe) let create: cdecoders_zstd_create
        nonisolated(unsafe) let free: cdecoders_zstd_free
        nonisolated(unsafe) let setParameter: cdecoders_zstd_set_parameter
        nonisolated(unsafe) let decompress: cdecoders_zstd_decompress
        nonisolated(unsafe) let isError: cdecoders_zstd_is_error
        nonisolated(unsafe) let errorCode: cdecoders_zstd_error_code

        /// The system's library, looked for once; `nil` if there is none.
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
