// SPDX-License-Identifier: MIT

public import FoundationEssentials
package import HTTPTypes

/// The digest of some content, by which the content is verified: an algorithm and a value. See
/// `DownloadOptions.expectedDigest`.
///
/// ```swift
/// let digest = ContentDigest("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
/// ```
public struct ContentDigest: Codable, Hashable, Sendable {
    /// The hash algorithm of the digest.
    public var algorithm: Algorithm
    /// The bytes of the digest. Their number is not checked against the algorithm; a wrong one matches no content.
    public var value: Data

    /// Creates a digest from an algorithm and the bytes of its value. Their number is not checked against the
    /// algorithm; a wrong one matches no content.
    public init(_ algorithm: Algorithm, _ value: Data) {
        self.algorithm = algorithm
        self.value = value
    }

    /// Creates a digest from text: an algorithm, `:` or `=`, and a value in hexadecimal or padded Base64, such as
    /// `sha256:9f86…` or `sha-512=z4PhNX7v…==`. The algorithm is SHA-256 or SHA-512, in any case, with or without a
    /// hyphen.
    ///
    /// - Returns: `nil` for any other text, such as one with spaces or with a value between colons as in `Repr-Digest`,
    ///   and for a value whose length does not match the algorithm.
    public init?(_ text: String) {
        guard let separator = text.unicodeScalars.firstIndex(where: { $0 == ":" || $0 == "=" }),
            let algorithm = Algorithm(rawValue: Self.normalized(text[..<separator]))
        else { return nil }
        let digits = String(text.unicodeScalars[separator...].dropFirst())
        guard let value = Self.bytes(ofHexadecimal: digits) ?? Data(base64Encoded: digits),
            value.count == algorithm.byteCount
        else { return nil }
        self.init(algorithm, value)
    }

    /// A hash algorithm, whose raw value is its name in HTTP fields. The other algorithms of RFC 9530 §5 are
    /// deprecated as insecure, and not supported.
    public enum Algorithm: String, Codable, Hashable, Sendable, CaseIterable {
        /// SHA-256, with digests of 32 bytes (FIPS 180-4).
        case sha256 = "sha-256"
        /// SHA-512, with digests of 64 bytes (FIPS 180-4).
        case sha512 = "sha-512"

        /// The size of a digest in bytes.
        package var byteCount: Int {
            switch self {
            case .sha256: 32
            case .sha512: 64
            }
        }
    }

    private static func normalized(_ name: Substring) -> String {
        let name = name.lowercased()
        return name.hasPrefix("sha-") ? name : name.replacing(each: "sha", with: "sha-")
    }

    private static func bytes(ofHexadecimal text: String) -> Data? {
        let digits = text.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes = Data(capacity: digits.count / 2)
        for start in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[start], let low = digits[start + 1] else { return nil }
            bytes.append(UInt8(high << 4 | low))
        }
        return bytes
    }
}

extension ContentDigest: CustomStringConvertible {
    /// The algorithm and the value in lower-case hexadecimal, such as `sha-256:9f86…`.
    public var description: String { "\(algorithm.rawValue):\(hexadecimal)" }

    /// The ``value`` in lower-case hexadecimal without separators, as tools such as sha256sum(1) print it.
    public var hexadecimal: String {
        value.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

extension ContentDigest {
    /// The digest as the value of a `Content-Digest` or `Repr-Digest` field, with the bytes in Base64 between colons,
    /// such as `sha-256=:n4bQ…Cgg=:`. See RFC 9530 §2, §3.
    public var fieldValue: String { "\(algorithm.rawValue)=:\(value.base64EncodedString()):" }
}

extension HTTPField.Name {
    fileprivate static let representationDigest = HTTPField.Name(constant: "Repr-Digest")
}

extension HTTPFields {
    /// The digests of the complete resource with its content coding: `Repr-Digest`, RFC 9530 §3. Unknown algorithms are
    /// ignored.
    package var representationDigests: [ContentDigest] { digests(in: .representationDigest) }

    /// The digests of this message's content, possibly a part of the resource: `Content-Digest`, RFC 9530 §2. Unknown
    /// algorithms are ignored.
    package var contentDigests: [ContentDigest] { digests(in: .contentDigest) }

    private func digests(in name: HTTPField.Name) -> [ContentDigest] {
        guard let members = structuredDictionary(name) else { return [] }
        return ContentDigest.Algorithm.allCases.compactMap { algorithm in
            guard case .bytes(let value) = members[algorithm.rawValue], value.count == algorithm.byteCount else {
                return nil
            }
            return ContentDigest(algorithm, value)
        }
    }
}
