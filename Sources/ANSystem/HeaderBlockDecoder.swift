// SPDX-License-Identifier: MIT

import CDecoders
import Glibc

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
