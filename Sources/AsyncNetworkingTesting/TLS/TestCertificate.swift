// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A certificate and its private key, made for a test.
///
/// Keys are on the curve P-256. ``TestCertificateAuthority`` makes them; ``selfSigned(_:)`` makes one that no authority stands behind.
public struct TestCertificate: Sendable {
    /// The certificate alone, as PEM.
    public let pemData: Data
    /// The certificate and the intermediate ones above it, without the root, as PEM: what a server sends.
    public let chainPEM: Data
    /// The private key as PEM, not encrypted.
    public let privateKeyPEM: Data
    /// The certificate in DER.
    public let derData: Data
    /// The public key in DER (SubjectPublicKeyInfo): what is pinned.
    public let publicKeyDER: Data

    /// Makes a certificate that is signed with its own key and is no authority.
    public static func selfSigned(_ profile: Profile = .localhost) throws -> TestCertificate {
        try CertificateBuilder(profile: profile, role: .leaf).build(signedBy: nil)
    }

    /// The SHA-256 of the public key in Base64, as in `--pinnedpubkey sha256//…` of curl(1).
    public var publicKeySHA256: String {
        var digest = SHA256Digest()
        digest.update(Array(publicKeyDER))
        return digest.finish().map { Data($0).base64EncodedString() } ?? ""
    }

    /// The same certificate, of which a server sends further ones after its chain, as PEM, whether they belong there or not.
    public func sending(_ others: Data) -> TestCertificate {
        TestCertificate(
            pemData: pemData, chainPEM: chainPEM + others, privateKeyPEM: privateKeyPEM, derData: derData,
            publicKeyDER: publicKeyDER)
    }

    /// Writes the chain and the key into one PEM file, which only this user can read.
    public func write(to path: String) throws {
        try PEMFile.write(chainPEM + privateKeyPEM, to: path)
    }

    /// What a certificate says.
    public struct Profile: Hashable, Sendable {
        /// The common name of its subject.
        public var commonName: String
        /// The host names that it is for.
        public var dnsNames: [String]
        /// The addresses that it is for.
        public var ipAddresses: [String]
        /// When it is valid.
        public var validity: Validity

        /// Creates a profile; by default one for this machine.
        public init(
            commonName: String = "localhost", dnsNames: [String] = ["localhost"],
            ipAddresses: [String] = ["127.0.0.1", "::1"], validity: Validity = .valid
        ) {
            self.commonName = commonName
            self.dnsNames = dnsNames
            self.ipAddresses = ipAddresses
            self.validity = validity
        }

        /// For this machine: `localhost`, 127.0.0.1 and ::1.
        public static let localhost = Profile()
        /// For this machine, until an hour ago.
        public static let expired = Profile(validity: .expired)
        /// For this machine, from an hour from now on.
        public static let notYetValid = Profile(validity: .notYetValid)
        /// For `wrong.example` only.
        public static let wrongHost = Profile(
            commonName: "wrong.example", dnsNames: ["wrong.example"], ipAddresses: [])
        /// For a client with this name.
        public static func client(_ name: String) -> Profile {
            Profile(commonName: name, dnsNames: [], ipAddresses: [])
        }
    }

    /// When a certificate is valid, counted from now.
    public struct Validity: Hashable, Sendable {
        /// The start.
        public var start: Duration
        /// The end.
        public var end: Duration

        /// Creates an interval.
        public init(from start: Duration, to end: Duration) {
            self.start = start
            self.end = end
        }

        /// From an hour ago to a day from now.
        public static let valid = Validity(from: .seconds(-3600), to: .seconds(86_400))
        /// From two hours ago to an hour ago.
        public static let expired = Validity(from: .seconds(-7200), to: .seconds(-3600))
        /// From an hour from now to a day from now.
        public static let notYetValid = Validity(from: .seconds(3600), to: .seconds(86_400))
    }
}
