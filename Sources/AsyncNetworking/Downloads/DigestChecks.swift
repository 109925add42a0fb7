// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP

/// Digests that bytes must have, computed while the bytes go by.
struct DigestChecks {
    private let checks: [(expected: ContentDigest, digest: MessageDigest)]
    /// How many bytes have gone by.
    private(set) var size: Int64 = 0

    /// Creates checks that have seen no bytes yet.
    init(_ announced: [ContentDigest], and expected: ContentDigest? = nil) {
        checks = Set(announced + (expected.map { [$0] } ?? [])).map { ($0, MessageDigest($0.algorithm)) }
    }

    /// What the digests must be.
    var expected: Set<ContentDigest> { Set(checks.map(\.expected)) }

    /// Takes note of bytes.
    mutating func update(_ bytes: borrowing RawSpan) {
        size += Int64(bytes.byteCount)
        for check in checks { check.digest.update(bytes) }
    }

    /// Throws ``SessionError/digest(_:)`` unless the bytes so far have all digests.
    func verify() throws(SessionError) {
        for (expected, digest) in checks {
            guard let value = digest.value else {
                throw .transport(.internalInconsistency("OpenSSL could not compute a digest.", TransferFacts()))
            }
            guard value == expected.value else {
                throw .digest(.init(expected: expected, found: ContentDigest(expected.algorithm, value)))
            }
        }
    }
}
