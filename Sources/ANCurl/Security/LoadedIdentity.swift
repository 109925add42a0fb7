// SPDX-License-Identifier: MIT

package import ANHTTP
import COpenSSL
package import FoundationEssentials

/// A client certificate with its private key, loaded and checked. See SSL_CTX_use_certificate(3).
@safe package final class LoadedIdentity: Sendable {
    /// Reference-counted by OpenSSL, under its own locks.
    private nonisolated(unsafe) let certificate: OpaquePointer
    private nonisolated(unsafe) let key: OpaquePointer
    private nonisolated(unsafe) let chain: [OpaquePointer]
    private let notBefore: Date
    private let notAfter: Date

    package init(_ identity: ClientIdentity) throws(SecurityFailure) {
        let parts: Parts
        do throws(ClientIdentity.LoadingError) {
            parts =
                switch identity.content {
                case .pem(let certificates, let key):
                    try Parts(certificates: Self.read(certificates), key: Self.read(key), identity.passphrase)
                case .pkcs12(let bundle):
                    try Parts(pkcs12: Self.read(bundle), identity.passphrase ?? "")
                }
        } catch {
            throw SecurityFailure(failure: .badClientIdentity(error))
        }
        unsafe certificate = unsafe parts.certificate
        unsafe key = unsafe parts.key
        unsafe chain = unsafe parts.chain
        notBefore = unsafe Date(X509_get0_notBefore(parts.certificate)) ?? .distantPast
        notAfter = unsafe Date(X509_get0_notAfter(parts.certificate)) ?? .distantPast
        guard unsafe X509_check_private_key(certificate, key) == 1 else {
            throw SecurityFailure(failure: .badClientIdentity(.keyMismatch))
        }
    }

    deinit {
        unsafe X509_free(certificate)
        unsafe EVP_PKEY_free(key)
        unsafe chain.forEach { unsafe X509_free($0) }
    }

    /// Throws if the certificate is not valid at the given time.
    package func check(at now: Date) throws(SecurityFailure) {
        guard now <= notAfter else { throw SecurityFailure(failure: .badClientIdentity(.expired(since: notAfter))) }
        guard now >= notBefore else {
            throw SecurityFailure(failure: .badClientIdentity(.notYetValid(until: notBefore)))
        }
    }

    /// Installs the identity in a TLS context, which retains it.
    func install(into context: OpaquePointer) -> Bool {
        guard unsafe SSL_CTX_use_certificate(context, certificate) == 1,
            unsafe SSL_CTX_use_PrivateKey(context, key) == 1
        else { return false }
        return unsafe chain.allSatisfy { unsafe copenssl_ctx_add1_chain_certificate(context, $0) == 1 }
    }

    /// Installs the identity in a single connection whose handshake has begun, which retains it. See
    /// SSL_use_cert_and_key(3).
    func install(intoSession session: OpaquePointer) -> Bool {
        guard let others = unsafe OPENSSL_sk_new_null() else { return false }
        defer { unsafe OPENSSL_sk_free(others) }
        unsafe chain.forEach { unsafe _ = OPENSSL_sk_push(others, UnsafeRawPointer($0)) }
        return unsafe SSL_use_cert_and_key(session, certificate, key, others, 1) == 1
    }

    private static func read(_ source: FileOrData) throws(ClientIdentity.LoadingError) -> Data {
        do throws(FileOrData.ReadError) {
            return try source.read()
        } catch {
            throw .unreadable(path: error.path, reason: error.reason)
        }
    }
}

/// The components of an identity, which the holder of this value must free.
@safe private struct Parts {
    let certificate: OpaquePointer
    let key: OpaquePointer
    let chain: [OpaquePointer]

    init(certificates: Data, key keyBytes: Data, _ passphrase: String?) throws(ClientIdentity.LoadingError) {
        let blocks: [Data]
        do throws(PEM.Malformed) {
            blocks = try PEM.certificates(in: certificates)
        } catch {
            throw .malformed("\(error)")
        }
        guard !blocks.isEmpty else { throw .noCertificate }
        let handles = unsafe blocks.compactMap { der in
            unsafe der.withUnsafeBytes { unsafe X509Handle(der: $0)?.release() }
        }
        guard let leaf = unsafe handles.first, unsafe handles.count == blocks.count else {
            unsafe handles.forEach { unsafe X509_free($0) }
            throw .malformed("a certificate of it cannot be read")
        }
        do throws(ClientIdentity.LoadingError) {
            unsafe key = try Self.readKey(keyBytes, passphrase)
        } catch {
            unsafe handles.forEach { unsafe X509_free($0) }
            throw error
        }
        unsafe certificate = unsafe leaf
        unsafe chain = unsafe Array(handles.dropFirst())
    }

    init(pkcs12 bytes: Data, _ passphrase: String) throws(ClientIdentity.LoadingError) {
        let bundle = unsafe bytes.withUnsafeBytes { bytes in
            var start = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            return unsafe start == nil ? nil : d2i_PKCS12(nil, &start, bytes.count)
        }
        guard let bundle = unsafe bundle else { throw .malformed("it is no PKCS #12") }
        defer { unsafe PKCS12_free(bundle) }
        // Some tools distinguish an empty passphrase from none when they create such files; users do not.
        guard
            unsafe PKCS12_mac_present(bundle) == 0 || PKCS12_verify_mac(bundle, passphrase, -1) == 1
                || (passphrase.isEmpty && PKCS12_verify_mac(bundle, nil, 0) == 1)
        else { throw .wrongPassphrase }
        var key: OpaquePointer?
        var certificate: OpaquePointer?
        var others: OpaquePointer?
        guard unsafe PKCS12_parse(bundle, passphrase, &key, &certificate, &others) == 1 else {
            throw .malformed(OpenSSLErrors.takeReason())
        }
        defer { unsafe OPENSSL_sk_free(others) }
        let chain = unsafe certificates(in: others)
        guard let certificate = unsafe certificate, let key = unsafe key else {
            // Without a key there is no certificate that belongs to it: all certificates are in the chain.
            unsafe chain.forEach { unsafe X509_free($0) }
            let problem: ClientIdentity.LoadingError = unsafe key == nil ? .noKey : .noCertificate
            unsafe EVP_PKEY_free(key)
            throw problem
        }
        unsafe self.certificate = unsafe certificate
        unsafe self.key = unsafe key
        unsafe self.chain = unsafe chain
    }

    private static func readKey(_ bytes: Data, _ passphrase: String?) throws(ClientIdentity.LoadingError)
        -> OpaquePointer
    {
        var question = Question(passphrase: passphrase)
        let key = unsafe withUnsafeMutablePointer(to: &question) { question in
            unsafe bytes.withUnsafeBytes { bytes -> OpaquePointer? in
                guard let bio = unsafe MemoryBIO(borrowing: bytes) else { return nil }
                return unsafe PEM_read_bio_PrivateKey(bio.raw, nil, { unsafe Question.answer($0, $1, $3) }, question)
            }
        }
        if let key = unsafe key { return unsafe key }
        let reason = OpenSSLErrors.takeReason()
        guard !question.wasAsked else { throw passphrase == nil ? .passphraseMissing : .wrongPassphrase }
        let blocks = try? PEM.blocks(in: bytes)
        throw blocks?.contains { $0.label.hasSuffix("PRIVATE KEY") } != false ? .malformed(reason) : .noKey
    }

    /// The context of the passphrase callback, without which OpenSSL would prompt on the terminal. See
    /// PEM_read_bio_PrivateKey(3).
    private struct Question {
        let passphrase: String?
        var wasAsked = false

        static func answer(
            _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _ context: UnsafeMutableRawPointer?
        ) -> Int32 {
            guard let question = unsafe context?.assumingMemoryBound(to: Question.self), let buffer = unsafe buffer
            else { return -1 }
            unsafe question.pointee.wasAsked = true
            guard let passphrase = unsafe question.pointee.passphrase, passphrase.utf8.count <= Int(size) else {
                return -1
            }
            for (index, byte) in passphrase.utf8.enumerated() { unsafe buffer[index] = CChar(bitPattern: byte) }
            return Int32(passphrase.utf8.count)
        }
    }
}

extension FileOrData {
    /// Returns the bytes, read from the file if there is one.
    package func read() throws(ReadError) -> Data {
        switch self {
        case .data(let bytes): return bytes
        case .file(let path):
            do {
                return try Data(contentsOf: URL(filePath: path))
            } catch {
                throw ReadError(path: path, reason: (error as? CocoaError).map(Self.words) ?? "\(error)")
            }
        }
    }

    private static func words(_ error: CocoaError) -> String {
        switch error.code {
        case .fileNoSuchFile, .fileReadNoSuchFile: "the file does not exist"
        case .fileReadNoPermission: "permission denied"
        default: "it cannot be read"
        }
    }

    /// The failure to read a file.
    package struct ReadError: Error {
        package let path: String
        package let reason: String
    }
}
