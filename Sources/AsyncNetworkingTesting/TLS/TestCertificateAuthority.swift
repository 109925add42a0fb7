// SPDX-License-Identifier: MIT

public import FoundationEssentials

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
