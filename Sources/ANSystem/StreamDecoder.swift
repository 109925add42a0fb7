// SPDX-License-Identifier: MIT

import CDecoders
import Glibc

/// An incremental decoder of a compressed stream that is not bound to a thread.
package protocol StreamDecoder: ~Copyable, Sendable {
    /// Decodes as much of the input as the output has room for.
    ///
    /// A step may consume only part of the input. Given input and room, it makes progress unless the stream has ended.
    /// After a step that filled the output, there may be more to write even without further input.
    ///
    /// - Throws: `EBADMSG` for malformed input, `ENOMEM` if memory is exhausted. After an error the decoder must not be
    ///   used any more.
    mutating func step(
        _ input: borrowing RawSpan, into output: inout MutableRawSpan
    ) throws(SystemError) -> DecodingStep
}

/// The result of one step of a ``StreamDecoder``.
package struct DecodingStep: Hashable, Sendable {
    /// The number of bytes taken from the input.
    package var consumed = 0
    /// The number of bytes written to the output.
    package var produced = 0
    /// Whether the input so far is a complete stream.
    package var isComplete = false

    /// Creates a result, by default for a step without effect.
    package init(consumed: Int = 0, produced: Int = 0, isComplete: Bool = false) {
        self.consumed = consumed
        self.produced = produced
        self.isComplete = isComplete
    }
}

/// A shared library, loaded on demand and not unloaded before the process exits. See dlopen(3).
@safe struct SharedLibrary {
    private let handle: UnsafeMutableRawPointer

    /// Loads a library by its soname, such as `libzstd.so.1`; `nil` if it is not installed.
    init?(_ name: String) {
        guard let handle = unsafe dlopen(name, RTLD_NOW | RTLD_LOCAL) else { return nil }
        unsafe self.handle = handle
    }

    /// Returns the function with a name; `nil` if the library does not export it.
    ///
    /// `Function` must be the C function pointer type declared by the library; it is not checked.
    @unsafe func function<Function>(_ name: String, as type: Function.Type = Function.self) -> Function? {
        guard let symbol = unsafe dlsym(handle, name) else { return nil }
        return unsafe unsafeBitCast(symbol, to: type)
    }
}

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

/// A decoder for the header blocks of one HTTP/2 connection (HPACK, RFC 7541), by the system's libnghttp2. See
/// https://nghttp2.org/documentation/apiref.html.
///
/// Blocks share a table: each block that comes on the connection must be decoded, in order.
@safe package struct HeaderBlockDecoder: ~Copyable {
    private nonisolated(unsafe) let inflater: OpaquePointer
    private let library: Library

    /// Whether the system has libnghttp2.so.14.
    package static var isAvailable: Bool { Library.current != nil }

    /// Creates the decoder of a connection, with the initial table size of 4,096 bytes.
    ///
    /// - Throws: `ENOSYS` if there is no libnghttp2, `ENOMEM`.
    package init() throws(SystemError) {
        guard let library = Library.current else { throw SystemError(call: "HeaderBlockDecoder", code: ENOSYS) }
        var made: OpaquePointer?
        guard unsafe library.create(&made) == 0, let inflater = unsafe made else {
            throw SystemError(call: "nghttp2_hd_inflate_new", code: ENOMEM)
        }
        self.library = library
        unsafe self.inflater = inflater
    }

    deinit {
        unsafe library.destroy(inflater)
    }

    /// Decodes a part of a header block.
    ///
    /// - Parameters:
    ///   - fragment: Bytes of the block, which may be divided anywhere.
    ///   - isFinal: Whether the block ends with them.
    ///   - handle: Receives the name and the value of each field, which are valid during the call.
    /// - Throws: `EBADMSG` if they are not valid; no further block can be decoded then.
    package mutating func decode(
        _ fragment: Span<UInt8>, isFinal: Bool,
        _ handle: (_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) -> Void
    ) throws(SystemError) {
        let isValid = unsafe fragment.withUnsafeBufferPointer { fragment in
            var rest = unsafe fragment[...]
            while true {
                var field = unsafe cdecoders_nghttp2_field()
                var flags: Int32 = 0
                let bytes = unsafe UnsafeBufferPointer(rebasing: rest)
                let count = unsafe library.inflate(
                    inflater, &field, &flags, bytes.baseAddress, bytes.count, isFinal ? 1 : 0)
                guard count >= 0 else { return false }
                unsafe rest = unsafe rest.dropFirst(count)
                if flags & Self.emitsField != 0 {
                    unsafe handle(
                        UnsafeBufferPointer(start: field.name, count: field.name_length),
                        UnsafeBufferPointer(start: field.value, count: field.value_length))
                }
                if flags & Self.isComplete != 0 {
                    unsafe _ = library.end(inflater)
                    return true
                }
                if flags & Self.emitsField == 0, unsafe rest.isEmpty { return true }
            }
        }
        guard isValid else { throw SystemError(call: "nghttp2_hd_inflate_hd2", code: EBADMSG) }
    }

    // NGHTTP2_HD_INFLATE_FINAL, NGHTTP2_HD_INFLATE_EMIT.
    private static let isComplete: Int32 = 1
    private static let emitsField: Int32 = 2

    /// The functions of libnghttp2.
    @safe private struct Library: Sendable {
        nonisolated(unsafe) let create: cdecoders_nghttp2_create
        nonisolated(unsafe) let destroy: cdecoders_nghttp2_destroy
        nonisolated(unsafe) let inflate: cdecoders_nghttp2_inflate
        nonisolated(unsafe) let end: cdecoders_nghttp2_end

        /// The system's library, looked for once; `nil` if it is not installed.
        static let current = Library()

        private init?() {
            guard let library = SharedLibrary("libnghttp2.so.14"),
                let create: cdecoders_nghttp2_create = unsafe library.function("nghttp2_hd_inflate_new"),
                let destroy: cdecoders_nghttp2_destroy = unsafe library.function("nghttp2_hd_inflate_del"),
                let inflate: cdecoders_nghttp2_inflate = unsafe library.function("nghttp2_hd_inflate_hd2"),
                let end: cdecoders_nghttp2_end = unsafe library.function("nghttp2_hd_inflate_end_headers")
            else { return nil }
            unsafe self.create = create
            unsafe self.destroy = destroy
            unsafe self.inflate = inflate
            unsafe self.end = end
        }
    }
}
