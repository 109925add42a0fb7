// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// An authority that signs certificates for tests.
///
/// ```swift
/// let authority = try TestCertificateAuthority()
/// let certificate = try authority.issue(.expired)
/// try await StubServer.with(.init(tls: .init(certificate))) { server in … }
/// ```
public struct TestCertificateAuthority: Sendable {
    /// The authority's own certificate and key.
    public let certificate: TestCertificate
    /// Whether the authority is signed by another one.
    private let isIntermediate: Bool

    /// Makes a root authority.
    public init(name: String = "AsyncNetworking Test Root", validity: TestCertificate.Validity = .valid) throws {
        certificate = try CertificateBuilder(profile: Self.profile(name, validity), role: .authority)
            .build(signedBy: nil)
        isIntermediate = false
    }

    private init(intermediate certificate: TestCertificate) {
        self.certificate = certificate
        isIntermediate = true
    }

    /// Makes an authority that this one stands behind.
    public func intermediate(
        name: String = "AsyncNetworking Test Intermediate", validity: TestCertificate.Validity = .valid
    ) throws -> TestCertificateAuthority {
        TestCertificateAuthority(
            intermediate: try CertificateBuilder(profile: Self.profile(name, validity), role: .authority)
                .build(signedBy: signer))
    }

    /// Makes a certificate for a server or a client.
    public func issue(_ profile: TestCertificate.Profile = .localhost) throws -> TestCertificate {
        try CertificateBuilder(profile: profile, role: .leaf).build(signedBy: signer)
    }

    /// The authority's certificate as PEM: what a client trusts.
    public var pemData: Data { certificate.pemData }

    /// Writes the authority's certificate into a PEM file.
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
