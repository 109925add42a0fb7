// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A certificate and its private key for tests.
///
/// Keys are on the curve P-256. Certificates are created by ``TestCertificateAuthority``, and self-signed ones by
/// ``selfSigned(_:)``.
public struct TestCertificate: Sendable {
    /// The certificate without its chain, as PEM.
    public let pemData: Data
    /// The certificate followed by its intermediate certificates without the root, as PEM; sent by a server.
    public let chainPEM: Data
    /// The private key as unencrypted PEM.
    public let privateKeyPEM: Data
    /// The certificate in DER.
    public let derData: Data
    /// The public key in DER (SubjectPublicKeyInfo), whose digest is used for pinning.
    public let publicKeyDER: Data

    /// Returns a new self-signed certificate that is not an authority.
    public static func selfSigned(_ profile: Profile = .localhost) throws -> TestCertificate {
        try CertificateBuilder(profile: profile, role: .leaf).build(signedBy: nil)
    }

    /// The SHA-256 of the public key in Base64, as in `--pinnedpubkey sha256//…` of curl(1).
    public var publicKeySHA256: String {
        var digest = SHA256Digest()
        digest.update(Array(publicKeyDER))
        return digest.finish().map { Data($0).base64EncodedString() } ?? ""
    }

    /// Returns a copy for which a server sends additional certificates after the chain, given as PEM, whether or not
    /// they belong to it.
    public func sending(_ others: Data) -> TestCertificate {
        TestCertificate(
            pemData: pemData, chainPEM: chainPEM + others, privateKeyPEM: privateKeyPEM, derData: derData,
            publicKeyDER: publicKeyDER)
    }

    /// Writes the chain and the key to a PEM file that is readable only by its owner.
    public func write(to path: String) throws {
        try PEMFile.write(chainPEM + privateKeyPEM, to: path)
    }

    /// The content of a certificate.
    public struct Profile: Hashable, Sendable {
        /// The common name of the subject.
        public var commonName: String
        /// The DNS names that the certificate is valid for.
        public var dnsNames: [String]
        /// The IP addresses that the certificate is valid for.
        public var ipAddresses: [String]
        /// The validity period of the certificate.
        public var validity: Validity

        /// Creates a profile, by default a valid one for the local machine.
        public init(
            commonName: String = "localhost", dnsNames: [String] = ["localhost"],
            ipAddresses: [String] = ["127.0.0.1", "::1"], validity: Validity = .valid
        ) {
            self.commonName = commonName
            self.dnsNames = dnsNames
            self.ipAddresses = ipAddresses
            self.validity = validity
        }

        /// A profile for the local machine: `localhost`, 127.0.0.1 and ::1.
        public static let localhost = Profile()
        /// A profile for the local machine that expired an hour ago.
        public static let expired = Profile(validity: .expired)
        /// A profile for the local machine that becomes valid in an hour.
        public static let notYetValid = Profile(validity: .notYetValid)
        /// A profile for the host `wrong.example` only.
        public static let wrongHost = Profile(
            commonName: "wrong.example", dnsNames: ["wrong.example"], ipAddresses: [])
        /// Returns a profile for a client with a common name.
        public static func client(_ name: String) -> Profile {
            Profile(commonName: name, dnsNames: [], ipAddresses: [])
        }
    }

    /// A validity period relative to the current time.
    public struct Validity: Hashable, Sendable {
        /// The start of the period relative to the current time.
        public var start: Duration
        /// The end of the period relative to the current time.
        public var end: Duration

        /// Creates a period from its start and end.
        public init(from start: Duration, to end: Duration) {
            self.start = start
            self.end = end
        }

        /// A period from one hour ago until one day from now.
        public static let valid = Validity(from: .seconds(-3600), to: .seconds(86_400))
        /// A period from two hours ago until one hour ago.
        public static let expired = Validity(from: .seconds(-7200), to: .seconds(-3600))
        /// A period from one hour from now until one day from now.
        public static let notYetValid = Validity(from: .seconds(3600), to: .seconds(86_400))
    }
}
