// SPDX-License-Identifier: MIT

import ANHTTP
import COpenSSL

/// An error in preparing a connection's TLS.
package struct SecurityFailure: Error {
    /// The reason; `nil` if libcurl does not use OpenSSL.
    let failure: TransportError.TLSFailure?
}

/// The calling thread's OpenSSL error queue. See ERR_get_error(3).
enum OpenSSLErrors {
    /// Returns the reason of the oldest error, and clears the queue.
    static func takeReason() -> String {
        let code = ERR_get_error()
        ERR_clear_error()
        return unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) } ?? "no reason was given"
    }

    /// Runs `body` and discards its errors, keeping those that were in the queue before, which belong to other code.
    static func contained<Result>(_ body: () -> Result) -> Result {
        ERR_set_mark()
        defer { ERR_pop_to_mark() }
        return body()
    }
}

/// An owned certificate, parsed from bytes.
@safe struct X509Handle: ~Copyable {
    let raw: OpaquePointer

    /// Parses a certificate in DER; `nil` if the bytes are not exactly one certificate.
    init?(der: UnsafeRawBufferPointer) {
        var start = unsafe der.baseAddress?.assumingMemoryBound(to: UInt8.self)
        guard unsafe start != nil, let raw = unsafe d2i_X509(nil, &start, der.count) else { return nil }
        guard unsafe der.isEnd(start) else {
            unsafe X509_free(raw)
            return nil
        }
        unsafe self.raw = unsafe raw
    }

    init(takingOwnershipOf raw: OpaquePointer) {
        unsafe self.raw = unsafe raw
    }

    deinit {
        unsafe X509_free(raw)
    }

    /// Releases ownership of the certificate: the caller must free it.
    consuming func release() -> OpaquePointer {
        let raw = unsafe raw
        discard self
        return unsafe raw
    }
}

extension UnsafeRawBufferPointer {
    /// Returns whether a position to which OpenSSL has read is the end of the bytes.
    func isEnd(_ position: UnsafePointer<UInt8>?) -> Bool {
        unsafe position.map { unsafe UnsafeRawPointer($0) } == baseAddress.map { unsafe $0 + count }
    }
}

/// A memory buffer that OpenSSL reads or writes like a file. See BIO_s_mem(3).
@safe struct MemoryBIO: ~Copyable {
    let raw: OpaquePointer

    /// Creates an empty buffer, or one over bytes that must outlive it; `nil` if memory is exhausted.
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

    /// The written bytes, as text.
    var text: String {
        var start: UnsafeMutablePointer<CChar>?
        let count = unsafe copenssl_bio_bytes(raw, &start)
        guard let start = unsafe start, count > 0 else { return "" }
        return unsafe String(
            decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
    }
}
