// SPDX-License-Identifier: MIT

import ANSystem
import COpenSSL
public import FoundationEssentials
import Glibc

/// A certificate and its private key for tests, as data in memory.
///
/// Keys are on the curve P-256, and certificates permit server and client authentication, except those of authorities.
/// Certificates are issued by ``TestCertificateAuthority``; ``selfSigned(_:)`` creates one without an authority.
public struct TestCertificate: Sendable {
    /// The certificate without its chain, as PEM; a self-signed one is what a client must trust.
    public let pemData: Data
    /// The chain that a server sends, as PEM: the certificate, then its intermediate certificates, without the root.
    ///
    /// Equal to ``pemData`` if a root authority issued the certificate, or if it is self-signed. ``sending(_:)``
    /// appends further certificates.
    public let chainPEM: Data
    /// The private key as unencrypted PEM (PKCS #8).
    public let privateKeyPEM: Data
    /// The certificate without its chain, in DER.
    public let derData: Data
    /// The public key (`SubjectPublicKeyInfo`, RFC 5280 §4.1.2.7), in DER. Its SHA-256 is used for pinning; see
    /// ``publicKeySHA256``.
    public let publicKeyDER: Data

    /// Returns a new certificate that is signed with its own key and is not an authority.
    ///
    /// - Parameter profile: The names and the validity period; by default `localhost`, 127.0.0.1 and ::1, valid from
    ///   one hour ago until one day from now.
    /// - Throws: ``OpenSSLError`` if the profile is invalid, for example because an element of ``Profile/ipAddresses``
    ///   is not an IP address or ``Profile/commonName`` does not have 1 to 64 characters.
    public static func selfSigned(_ profile: Profile = .localhost) throws -> TestCertificate {
        try CertificateBuilder(profile: profile, role: .leaf).build(signedBy: nil)
    }

    /// The SHA-256 of ``publicKeyDER`` in Base64, the digest of a public-key pin: `sha256//` and this value are an
    /// argument of CURLOPT_PINNEDPUBLICKEY(3).
    public var publicKeySHA256: String {
        var digest = SHA256Digest()
        digest.update(Array(publicKeyDER))
        return digest.finish().map { Data($0).base64EncodedString() } ?? ""
    }

    /// Returns a copy whose ``chainPEM`` ends with further certificates, which a server sends in addition to the chain.
    ///
    /// - Parameter others: The certificates as PEM. They need not belong to the chain, and are not checked: a server
    ///   sends those that it can read, up to the first malformed one.
    public func sending(_ others: Data) -> TestCertificate {
        TestCertificate(
            pemData: pemData, chainPEM: chainPEM + others, privateKeyPEM: privateKeyPEM, derData: derData,
            publicKeyDER: publicKeyDER)
    }

    /// Writes ``chainPEM`` and the unencrypted private key to a PEM file, from which a server or client can load both.
    ///
    /// A new file is readable and writable only by its owner (mode 0600). An existing file is overwritten and keeps its
    /// permissions.
    ///
    /// - Parameter path: The path of the file.
    /// - Throws: `SystemError` if the file cannot be opened or written.
    public func write(to path: String) throws {
        try PEMFile.write(chainPEM + privateKeyPEM, to: path)
    }

    /// The names and the validity period of a certificate.
    public struct Profile: Hashable, Sendable {
        /// The common name of the subject, 1 to 64 characters; `localhost` by default. With another length, the
        /// creation of the certificate throws ``OpenSSLError``.
        public var commonName: String
        /// The DNS names that the certificate is valid for (`subjectAltName`, RFC 5280 §4.2.1.6); `localhost` by
        /// default, empty for none. The names are not checked, except that the creation of the certificate throws
        /// ``OpenSSLError`` if one is empty. They must not contain commas, which OpenSSL takes for separators; see
        /// x509v3_config(5).
        public var dnsNames: [String]
        /// The IP addresses in text form, without brackets, that the certificate is valid for (`subjectAltName`);
        /// 127.0.0.1 and ::1 by default, empty for none. With a text that is not an IP address, the creation of the
        /// certificate throws ``OpenSSLError``.
        public var ipAddresses: [String]
        /// The validity period; ``Validity/valid`` by default.
        public var validity: Validity

        /// Creates a profile, by default for the local machine and valid from one hour ago until one day from now.
        ///
        /// - Parameters:
        ///   - commonName: The common name of the subject, 1 to 64 characters; `localhost` by default.
        ///   - dnsNames: The DNS names that the certificate is valid for; `localhost` by default, empty for none.
        ///   - ipAddresses: The IP addresses, in text form without brackets, that the certificate is valid for;
        ///     127.0.0.1 and ::1 by default, empty for none.
        ///   - validity: The validity period; ``Validity/valid`` by default.
        public init(
            commonName: String = "localhost", dnsNames: [String] = ["localhost"],
            ipAddresses: [String] = ["127.0.0.1", "::1"], validity: Validity = .valid
        ) {
            self.commonName = commonName
            self.dnsNames = dnsNames
            self.ipAddresses = ipAddresses
            self.validity = validity
        }

        /// A profile for the local machine: `localhost`, 127.0.0.1 and ::1, with the validity period
        /// ``Validity/valid``.
        public static let localhost = Profile()
        /// A profile for the local machine of a certificate that expired one hour before its creation.
        public static let expired = Profile(validity: .expired)
        /// A profile for the local machine of a certificate that becomes valid one hour after its creation.
        public static let notYetValid = Profile(validity: .notYetValid)
        /// A profile for the host `wrong.example` only, with the validity period ``Validity/valid``.
        public static let wrongHost = Profile(
            commonName: "wrong.example", dnsNames: ["wrong.example"], ipAddresses: [])
        /// Returns a profile for a client certificate: a common name, no DNS names or IP addresses, and the validity
        /// period ``Validity/valid``.
        ///
        /// - Parameter name: The common name, 1 to 64 characters, which a server records as
        ///   ``RecordedRequest/TLSSummary/clientName``.
        public static func client(_ name: String) -> Profile {
            Profile(commonName: name, dnsNames: [], ipAddresses: [])
        }
    }

    /// A validity period relative to the time at which the certificate is created.
    ///
    /// Fractions of a second are ignored. If the start or the end is a time before 1900 or after 9999, the creation of
    /// the certificate throws ``OpenSSLError``.
    public struct Validity: Hashable, Sendable {
        /// The start of the period, relative to the creation of the certificate; negative if it lies before that.
        public var start: Duration
        /// The end of the period, relative to the creation of the certificate; negative if it lies before that.
        public var end: Duration

        /// Creates a period from its start and end, both inclusive and relative to the time at which the certificate is
        /// created.
        ///
        /// An end before the start is not rejected: the certificate is never valid. Fractions of a second are ignored.
        public init(from start: Duration, to end: Duration) {
            self.start = start
            self.end = end
        }

        /// A period from one hour before the creation of the certificate until one day after it.
        public static let valid = Validity(from: .seconds(-3600), to: .seconds(86_400))
        /// A period from two hours until one hour before the creation of the certificate, so that it is never valid.
        public static let expired = Validity(from: .seconds(-7200), to: .seconds(-3600))
        /// A period from one hour until one day after the creation of the certificate.
        public static let notYetValid = Validity(from: .seconds(3600), to: .seconds(86_400))
    }
}

/// Writes files that may contain a private key, readable only by their owner.
enum PEMFile {
    static func write(_ data: Data, to path: String) throws(SystemError) {
        let file = try FileDescriptor(opening: path, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
        try file.writeAll(data.bytes)
        try file.close()
    }
}

/// A certificate authority for tests, with a new key on the curve P-256.
///
/// ```swift
/// let authority = try TestCertificateAuthority()
/// let certificate = try authority.issue(.expired)
/// try await StubServer.with(.init(tls: .init(certificate))) { server in … }
/// ```
public struct TestCertificateAuthority: Sendable {
    /// The certificate and private key of the authority; ``pemData`` is the part that clients need.
    public let certificate: TestCertificate
    /// Whether the authority is signed by another one.
    private let isIntermediate: Bool

    /// Creates a root authority, whose certificate is self-signed.
    ///
    /// - Parameters:
    ///   - name: The common name of the authority; `AsyncNetworking Test Root` by default.
    ///   - validity: The validity period of its certificate; by default from one hour ago until one day from now.
    /// - Throws: ``OpenSSLError`` if OpenSSL cannot create the key or the certificate, for example because `name` is
    ///   empty or has more than 64 characters.
    public init(name: String = "AsyncNetworking Test Root", validity: TestCertificate.Validity = .valid) throws {
        certificate = try CertificateBuilder(profile: Self.profile(name, validity), role: .authority)
            .build(signedBy: nil)
        isIntermediate = false
    }

    private init(intermediate certificate: TestCertificate) {
        self.certificate = certificate
        isIntermediate = true
    }

    /// Returns a new intermediate authority, whose certificate this authority signs.
    ///
    /// The certificates that it issues have its certificate, and those of the intermediate authorities above it, in
    /// their ``TestCertificate/chainPEM``.
    ///
    /// - Parameters:
    ///   - name: The common name of the intermediate authority; `AsyncNetworking Test Intermediate` by default.
    ///   - validity: The validity period of its certificate; by default from one hour ago until one day from now.
    /// - Throws: ``OpenSSLError`` if OpenSSL cannot create the key or the certificate, for example because `name` is
    ///   empty or has more than 64 characters.
    public func intermediate(
        name: String = "AsyncNetworking Test Intermediate", validity: TestCertificate.Validity = .valid
    ) throws -> TestCertificateAuthority {
        TestCertificateAuthority(
            intermediate: try CertificateBuilder(profile: Self.profile(name, validity), role: .authority)
                .build(signedBy: signer))
    }

    /// Returns a new server or client certificate, signed by this authority, even if the authority has expired.
    ///
    /// - Parameter profile: The names and the validity period; by default `localhost`, 127.0.0.1 and ::1, valid from
    ///   one hour ago until one day from now.
    /// - Throws: ``OpenSSLError`` if the profile is invalid, for example because an element of
    ///   ``TestCertificate/Profile/ipAddresses`` is not an IP address or the common name does not have 1 to 64
    ///   characters.
    public func issue(_ profile: TestCertificate.Profile = .localhost) throws -> TestCertificate {
        try CertificateBuilder(profile: profile, role: .leaf).build(signedBy: signer)
    }

    /// The certificate of the authority as PEM, without its key: for a client to trust, or, if it is a root authority,
    /// for ``StubServer/TLS/clientAuthority``.
    public var pemData: Data { certificate.pemData }

    /// Writes the certificate of the authority, without its key, to a PEM file as CURLOPT_CAINFO(3) expects it.
    ///
    /// A new file is readable and writable only by its owner (mode 0600). An existing file is overwritten and keeps its
    /// permissions.
    ///
    /// - Parameter path: The path of the file.
    /// - Throws: `SystemError` if the file cannot be opened or written.
    public func write(to path: String) throws {
        try PEMFile.write(pemData, to: path)
    }

    private var signer: CertificateBuilder.Signer {
        CertificateBuilder.Signer(certificate: certificate, chain: isIntermediate ? certificate.chainPEM : Data())
    }

    private static func profile(_ name: String, _ validity: TestCertificate.Validity) -> TestCertificate.Profile {
        TestCertificate.Profile(commonName: name, dnsNames: [], ipAddresses: [], validity: validity)
    }
}

/// An incremental SHA-256 digest; nothing is allocated before the first bytes.
///
/// See EVP_DigestInit(3).
@safe struct SHA256Digest: ~Copyable {
    private var context: OpaquePointer?

    init() {
        unsafe context = nil
    }

    deinit {
        unsafe EVP_MD_CTX_free(context)
    }

    mutating func update(_ bytes: [UInt8]) {
        if unsafe context == nil {
            unsafe context = EVP_MD_CTX_new()
            unsafe EVP_DigestInit_ex(context, EVP_sha256(), nil)
        }
        unsafe _ = bytes.withUnsafeBytes { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
    }

    /// Returns the digest; `nil` if there were no bytes.
    mutating func finish() -> [UInt8]? {
        guard unsafe context != nil else { return nil }
        var digest = [UInt8](repeating: 0, count: 32)
        guard unsafe EVP_DigestFinal_ex(context, &digest, nil) == 1 else { return nil }
        return digest
    }

    /// Returns the digest in lower-case hexadecimal; `nil` if there were no bytes.
    mutating func finishHexadecimal() -> String? {
        finish()?.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
