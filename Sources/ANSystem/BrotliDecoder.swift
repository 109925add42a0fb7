// SPDX-License-Identifier: MIT

import CDecoders
import Glibc

/// A decoder for one Brotli stream (RFC 7932) that uses the system's libbrotlidec. See
/// https://www.brotli.org/decode.html.
///
/// The window is at most 16 MiB: the large-window extension is disabled. After the end of the stream no input is
/// consumed.
@safe package struct BrotliDecoder: ~Copyable, StreamDecoder {
    private nonisolated(unsafe) let state: OpaquePointer
    private let library: Library
    private var isComplete = false

    /// Whether libbrotlidec.so.1 is installed.
    package static var isAvailable: Bool { Library.current != nil }

    /// Creates a decoder.
    ///
    /// - Throws: `ENOSYS` if libbrotlidec is not installed, `ENOMEM` if memory is exhausted.
    package init() throws(SystemError) {
        guard let library = Library.current else { throw SystemError(call: "BrotliDecoder", code: ENOSYS) }
        guard let state = unsafe library.create(nil, nil, nil) else {
            throw SystemError(call: "BrotliDecoderCreateInstance", code: ENOMEM)
        }
        self.library = library
        unsafe self.state = state
    }

    deinit {
        unsafe library.destroy(state)
    }

    package mutating func step(
        _ input: borrowing RawSpan, into output: inout MutableRawSpan
    ) throws(SystemError) -> DecodingStep {
        var step = DecodingStep(isComplete: isComplete)
        guard !isComplete else { return step }
        let result = unsafe input.withUnsafeBytes { input in
            unsafe output.withUnsafeMutableBytes { output in
                var nextInput = unsafe input.baseAddress?.assumingMemoryBound(to: UInt8.self)
                var nextOutput = unsafe output.baseAddress?.assumingMemoryBound(to: UInt8.self)
                var (left, room) = (input.count, output.count)
                let result = unsafe library.decompress(state, &left, &nextInput, &room, &nextOutput, nil)
                step.consumed = input.count - left
                step.produced = output.count - room
                return result
            }
        }
        guard result != Self.failure else {
            // BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES … BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES
            let isMemory = unsafe -30 ... -21 ~= library.errorCode(state)
            throw SystemError(call: "BrotliDecoderDecompressStream", code: isMemory ? ENOMEM : EBADMSG)
        }
        isComplete = result == Self.success
        step.isComplete = isComplete
        return step
    }

    // BROTLI_DECODER_RESULT_ERROR, BROTLI_DECODER_RESULT_SUCCESS.
    private static let failure: Int32 = 0
    private static let success: Int32 = 1

    /// The functions of libbrotlidec.
    @safe private struct Library: Sendable {
        nonisolated(unsafe) let create: cdecoders_brotli_create
        nonisolated(unsafe) let destroy: cdecoders_brotli_destroy
        nonisolated(unsafe) let decompress: cdecoders_brotli_decompress
        nonisolated(unsafe) let errorCode: cdecoders_brotli_error_code

        /// The system's library, loaded once; `nil` if it is not installed or lacks a function.
        static let current = Library()

        private init?() {
            guard let library = SharedLibrary("libbrotlidec.so.1"),
                let create: cdecoders_brotli_create = unsafe library.function("BrotliDecoderCreateInstance"),
                let destroy: cdecoders_brotli_destroy = unsafe library.function("BrotliDecoderDestroyInstance"),
                let decompress: cdecoders_brotli_decompress = unsafe library.function("BrotliDecoderDecompressStream"),
                let errorCode: cdecoders_brotli_error_code = unsafe library.function("BrotliDecoderGetErrorCode")
            else { return nil }
            unsafe self.create = create
            unsafe self.destroy = destroy
            unsafe self.decompress = decompress
            unsafe self.errorCode = errorCode
        }
    }
}
