// SPDX-License-Identifier: MIT

import COpenSSL
public import FoundationEssentials

/// An OpenSSL certificate with one owner.
@safe struct X509Handle: ~Copyable {
    let raw: OpaquePointer

    init(takingOwnershipOf raw: OpaquePointer) {
        unsafe self.raw = unsafe raw
    }

    /// Reads a certificate made for a test.
    init(_ certificate: TestCertificate) throws(OpenSSLError) {
        let bio = try MemoryBIO(certificate.pemData)
        guard let raw = unsafe PEM_read_bio_X509(bio.raw, nil, nil, nil) else { throw .last("PEM_read_bio_X509") }
        unsafe self.raw = unsafe raw
    }

    deinit {
        unsafe X509_free(raw)
    }

    /// Returns the certificate as PEM text.
    func pem() throws(OpenSSLError) -> Data {
        let bio = try MemoryBIO()
        guard unsafe PEM_write_bio_X509(bio.raw, raw) == 1 else { throw .last("PEM_write_bio_X509") }
        return bio.bytes
    }

    /// Returns the certificate in DER.
    func der() throws(OpenSSLError) -> Data {
        let bio = try MemoryBIO()
        guard unsafe i2d_X509_bio(bio.raw, raw) == 1 else { throw .last("i2d_X509_bio") }
        return bio.bytes
    }

    /// Calls a closure with each certificate of PEM data, in order.
    static func forEach(
        inPEM pem: Data, _ body: (borrowing X509Handle) throws(OpenSSLError) -> Void
    ) throws(OpenSSLError) {
        let bio = try MemoryBIO(pem)
        while let raw = unsafe PEM_read_bio_X509(bio.raw, nil, nil, nil) {
            let certificate = unsafe X509Handle(takingOwnershipOf: raw)
            try body(certificate)
        }
        // The end of the data is reported as an error (PEM_R_NO_START_LINE).
        ERR_clear_error()
    }
}

/// An OpenSSL private key with one owner.
@safe struct PrivateKeyHandle: ~Copyable {
    let raw: OpaquePointer

    /// Generates a key on the curve P-256.
    init() throws(OpenSSLError) {
        guard let raw = unsafe copenssl_generate_p256_key() else { throw .last("EVP_EC_gen") }
        unsafe self.raw = unsafe raw
    }

    /// Parses a key from PEM text.
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

    /// Returns the key as unencrypted PEM text (PKCS #8).
    func pem() throws(OpenSSLError) -> Data {
        let bio = try MemoryBIO()
        guard unsafe PEM_write_bio_PrivateKey(bio.raw, raw, nil, nil, 0, nil, nil) == 1 else {
            throw .last("PEM_write_bio_PrivateKey")
        }
        return bio.bytes
    }

    /// Returns the public key in DER (SubjectPublicKeyInfo).
    func publicDER() throws(OpenSSLError) -> Data {
        let bio = try MemoryBIO()
        guard unsafe i2d_PUBKEY_bio(bio.raw, raw) == 1 else { throw .last("i2d_PUBKEY_bio") }
        return bio.bytes
    }
}

/// A memory buffer that OpenSSL reads and writes like a file.
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

    /// A copy of the contents.
    var bytes: Data {
        var start: UnsafeMutablePointer<CChar>?
        let count = unsafe copenssl_bio_bytes(raw, &start)
        guard let start = unsafe start, count > 0 else { return Data() }
        return unsafe Data(bytes: start, count: count)
    }
}

/// A failed call of OpenSSL, with the messages of its error stack; thrown if a certificate, or a server with TLS,
/// cannot be created.
public struct OpenSSLError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// The name of the called function, such as `SSL_CTX_new`.
    public let call: String
    /// The messages of OpenSSL's error queue, oldest first; empty if OpenSSL gave no reason. See ERR_error_string_n(3).
    public let messages: [String]

    /// Returns an error with the messages of the calling thread's error stack, and empties the stack.
    ///
    /// See ERR_get_error(3).
    static func last(_ call: String) -> OpenSSLError {
        var messages: [String] = []
        while true {
            let code = ERR_get_error()
            guard code != 0 else { return OpenSSLError(call: call, messages: messages) }
            var text = [CChar](repeating: 0, count: 256)
            unsafe ERR_error_string_n(code, &text, text.count)
            messages.append(String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
        }
    }

    /// The ``description``, which Foundation returns as `localizedDescription`.
    public var errorDescription: String? { description }

    /// A text such as `SSL_accept failed: …`: the name of the called function, and the messages, separated by
    /// semicolons, or `no reason given` without messages.
    public var description: String {
        "\(call) failed: \(messages.isEmpty ? "no reason given" : messages.joined(separator: "; "))"
    }
}
