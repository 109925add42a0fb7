// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A certificate authority for tests.
///
/// ```swift
/// let authority = try TestCertificateAuthority()
/// let certificate = try authority.issue(.expired)
/// try await StubServer.with(.init(tls: .init(certificate))) { server in … }
/// ```
public struct TestCertificateAuthority: Sendable {
    /// The certificate and key of the authority.
    public let certificate: TestCertificate
    /// Whether the authority is signed by another one.
    private let isIntermediate: Bool

    /// Creates a root authority, by default valid from one hour ago until one day from now.
    public init(name: String = "AsyncNetworking Test Root", validity: TestCertificate.Validity = .valid) throws {
        certificate = try CertificateBuilder(profile: Self.profile(name, validity), role: .authority)
            .build(signedBy: nil)
        isIntermediate = false
    }

    private init(intermediate certificate: TestCertificate) {
        self.certificate = certificate
        isIntermediate = true
    }

    /// Returns a new intermediate authority signed by this one.
    public func intermediate(
        name: String = "AsyncNetworking Test Intermediate", validity: TestCertificate.Validity = .valid
    ) throws -> TestCertificateAuthority {
        TestCertificateAuthority(
            intermediate: try CertificateBuilder(profile: Self.profile(name, validity), role: .authority)
                .build(signedBy: signer))
    }

    /// Returns a new server or client certificate, by default a valid one for the local machine.
    public func issue(_ profile: TestCertificate.Profile = .localhost) throws -> TestCertificate {
        try CertificateBuilder(profile: profile, role: .leaf).build(signedBy: signer)
    }

    /// The certificate of the authority as PEM, for clients to trust.
    public var pemData: Data { certificate.pemData }

    /// Writes the certificate of the authority to a PEM file.
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
