// SPDX-License-Identifier: MIT

import COpenSSL
import FoundationEssentials

/// A certificate of OpenSSL with one owner.
@safe struct X509Handle: ~Copyable {
    let raw: OpaquePointer

    init(takingOwnershipOf raw: OpaquePointer) {
        unsafe self.raw = unsafe raw
    }

    deinit {
        unsafe X509_free(raw)
    }

    /// The certificate as PEM text.
    func pem() throws(OpenSSLError) -> Data {
        let bio = try MemoryBIO()
        guard unsafe PEM_write_bio_X509(bio.raw, raw) == 1 else { throw .last("PEM_write_bio_X509") }
        return bio.bytes
    }

    /// The certificate in DER.
    func der() throws(OpenSSLError) -> Data {
        let bio = try MemoryBIO()
        guard unsafe i2d_X509_bio(bio.raw, raw) == 1 else { throw .last("i2d_X509_bio") }
        return bio.bytes
    }

    /// Runs `body` with each certificate of a PEM file's bytes, in their order.
    static func forEach(
        inPEM pem: Data, _ body: (borrowing X509Handle) throws(OpenSSLError) -> Void
    ) throws(OpenSSLError) {
        let bio = try MemoryBIO(pem)
        while let raw = unsafe PEM_read_bio_X509(bio.raw, nil, nil, nil) {
            let certificate = unsafe X509Handle(takingOwnershipOf: raw)
            try body(certificate)
        }
        // The end of the file is reported as an error (PEM_R_NO_START_LINE).
        ERR_clear_error()
    }
}

/// A private key of OpenSSL with one owner.
@safe struct PrivateKeyHandle: ~Copyable {
    let raw: OpaquePointer

    /// Makes a key on the curve P-256.
    init() throws(OpenSSLError) {
        guard let raw = unsafe copenssl_generate_p256_key() else { throw .last("EVP_EC_gen") }
        unsafe self.raw = unsafe raw
    }

    /// Reads a key from PEM text.
    init(pem: Data) throws(OpenSSLError) {
        let bio = try MemoryBIO(pem)
        guard let raw = unsafe PEM_read_bio_PrivateKey(bio.raw, nil, nil, nil) else {
            throw .last("PEM_read_bio_PrivateKey")
        }
        unsafe self.raw = unsafe raw
    }

    deinit {
        unsafe EVP_PKEY_free(raw)
    }

    /// The key as PEM text (PKCS #8), not encrypted.
    func pem() throws(OpenSSLError) -> Data {
        let bio = try MemoryBIO()
        guard unsafe PEM_write_bio_PrivateKey(bio.raw, raw, nil, nil, 0, nil, nil) == 1 else {
            throw .last("PEM_write_bio_PrivateKey")
        }
        return bio.bytes
    }

    /// The public half in DER (SubjectPublicKeyInfo).
    func publicDER() throws(OpenSSLError) -> Data {
        let bio = try MemoryBIO()
        guard unsafe i2d_PUBKEY_bio(bio.raw, raw) == 1 else { throw .last("i2d_PUBKEY_bio") }
        return bio.bytes
    }
}

/// Bytes in memory that OpenSSL reads or writes as if they were a file.
@safe struct MemoryBIO: ~Copyable {
    let raw: OpaquePointer

    init(_ bytes: Data = Data()) throws(OpenSSLError) {
        guard let raw = unsafe BIO_new(BIO_s_mem()) else { throw .last("BIO_new") }
        let written = unsafe bytes.withUnsafeBytes { unsafe BIO_write(raw, $0.baseAddress, Int32(clamping: $0.count)) }
        guard bytes.isEmpty || written == bytes.count else {
            unsafe BIO_free(raw)
            throw .last("BIO_write")
        }
        unsafe self.raw = unsafe raw
    }

    deinit {
        unsafe BIO_free(raw)
    }

    /// A copy of what was written.
    var bytes: Data {
        var start: UnsafeMutablePointer<CChar>?
        let count = unsafe copenssl_bio_bytes(raw, &start)
        guard let start = unsafe start, count > 0 else { return Data() }
        return unsafe Data(bytes: start, count: count)
    }
}
