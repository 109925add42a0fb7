// SPDX-License-Identifier: MIT

import ANHTTP
import COpenSSL

/// Why a connection's TLS cannot be prepared.
struct SecurityFailure: Error {
    /// The reason; nil where libcurl is not built on OpenSSL.
    let failure: TransportError.TLSFailure?
}

/// The calling thread's stack of OpenSSL's errors. See ERR_get_error(3).
enum OpenSSLErrors {
    /// The reason of the oldest error. The stack is left empty.
    static func takeReason() -> String {
        let code = ERR_get_error()
        ERR_clear_error()
        return unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) } ?? "no reason was given"
    }

    /// Runs `body`, and leaves on the stack what was there before: other errors than its own are somebody else's.
    static func contained<Result>(_ body: () -> Result) -> Result {
        ERR_set_mark()
        defer { ERR_pop_to_mark() }
        return body()
    }
}

/// A certificate with one owner, who is the reader of some bytes.
@safe struct X509Handle: ~Copyable {
    let raw: OpaquePointer

    /// Reads a certificate in DER; nil if it is none.
    init?(der: UnsafeRawBufferPointer) {
        var start = unsafe der.baseAddress?.assumingMemoryBound(to: UInt8.self)
        guard unsafe start != nil, let raw = unsafe d2i_X509(nil, &start, der.count) else { return nil }
        unsafe self.raw = unsafe raw
    }

    init(takingOwnershipOf raw: OpaquePointer) {
        unsafe self.raw = unsafe raw
    }

    deinit {
        unsafe X509_free(raw)
    }

    /// Gives the certificate away: the caller frees it.
    consuming func release() -> OpaquePointer {
        let raw = unsafe raw
        discard self
        return unsafe raw
    }
}

/// Bytes in memory that OpenSSL reads or writes as if they were a file. See BIO_s_mem(3).
@safe struct MemoryBIO: ~Copyable {
    let raw: OpaquePointer

    /// Creates an empty one, or one over bytes that outlive it; nil without memory.
    init?(borrowing bytes: UnsafeRawBufferPointer? = nil) {
        let made =
            if let bytes = unsafe bytes {
                unsafe BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count))
            } else {
                unsafe BIO_new(BIO_s_mem())
            }
        guard let made = unsafe made else { return nil }
        unsafe raw = unsafe made
    }

    deinit {
        unsafe BIO_free(raw)
    }

    /// What was written, as text.
    var text: String {
        var start: UnsafeMutablePointer<CChar>?
        let count = unsafe copenssl_bio_bytes(raw, &start)
        guard let start = unsafe start, count > 0 else { return "" }
        return unsafe String(
            decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
    }
}
