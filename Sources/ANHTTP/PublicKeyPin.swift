// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The SHA-256 digest of a public key (SubjectPublicKeyInfo in DER), the fingerprint of RFC 7469 §2.4. Its text form is
/// `sha256/` followed by Base64; the option `--pinnedpubkey` of curl(1) requires `sha256//` instead.
///
/// It takes effect in ``SecurityPolicy/pins`` and ``SecurityPolicy/backupPins``. The pin of a key remains valid when
/// its certificate is renewed with the same key.
public struct PublicKeyPin: Hashable, Sendable, CustomStringConvertible {
    /// The SHA-256 digest of the public key (SubjectPublicKeyInfo in DER), always 32 bytes.
    public let sha256: Data

    /// Parses a pin such as `sha256/AAAA…=`; curl's prefix `sha256//` is accepted, too.
    ///
    /// - Throws: ``SecurityPolicy/ConfigurationError`` for any other text.
    public init(_ text: String) throws(SecurityPolicy.ConfigurationError) {
        guard text.hasPrefix("sha256/") else { throw .pin(text) }
        var digits = text.dropFirst("sha256/".count)
        // A digest may itself begin with a slash: 32 bytes are 44 characters.
        if digits.hasPrefix("/"), digits.utf8.count == 45 { digits = digits.dropFirst() }
        guard let digest = Data(base64Encoded: String(digits)), digest.count == 32 else { throw .pin(text) }
        sha256 = digest
    }

    /// Creates a pin from a digest.
    ///
    /// - Parameter sha256: The SHA-256 of the public key (SubjectPublicKeyInfo in DER).
    /// - Throws: ``SecurityPolicy/ConfigurationError`` unless the digest has 32 bytes.
    public init(sha256: Data) throws(SecurityPolicy.ConfigurationError) {
        guard sha256.count == 32 else { throw .pin("\(sha256.count) bytes") }
        self.sha256 = sha256
    }

    /// The text form, `sha256/` followed by Base64, which ``init(_:)`` parses.
    public var description: String { "sha256/\(sha256.base64EncodedString())" }
}
