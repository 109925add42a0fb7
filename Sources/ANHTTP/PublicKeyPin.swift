// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The SHA-256 of a public key (its SubjectPublicKeyInfo in DER), written `sha256/` and Base64, as in RFC 7469 §2.4 and in
/// `--pinnedpubkey` of curl(1).
///
/// A key outlives the certificates made for it: a renewal with the same key needs no new pin.
public struct PublicKeyPin: Hashable, Sendable, CustomStringConvertible {
    /// The digest, 32 bytes.
    public let sha256: Data

    /// Reads a pin such as `sha256/AAAA…=`; curl's `sha256//` is taken too.
    ///
    /// - Throws: ``SecurityPolicy/Problem/pin(_:)`` for anything else.
    public init(_ text: String) throws(SecurityPolicy.Problem) {
        guard text.hasPrefix("sha256/") else { throw .pin(text) }
        var digits = text.dropFirst("sha256/".count)
        // A digest may itself begin with a slash: 32 bytes are 44 characters.
        if digits.hasPrefix("/"), digits.utf8.count == 45 { digits = digits.dropFirst() }
        guard let digest = Data(base64Encoded: String(digits)), digest.count == 32 else { throw .pin(text) }
        sha256 = digest
    }

    /// Creates a pin of a digest.
    ///
    /// - Throws: ``SecurityPolicy/Problem/pin(_:)`` unless it has 32 bytes.
    public init(sha256: Data) throws(SecurityPolicy.Problem) {
        guard sha256.count == 32 else { throw .pin("\(sha256.count) bytes") }
        self.sha256 = sha256
    }

    /// The pin as it is read.
    public var description: String { "sha256/\(sha256.base64EncodedString())" }
}
