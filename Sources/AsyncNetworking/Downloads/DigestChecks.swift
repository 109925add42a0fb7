// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// The expected digests of a sequence of bytes, and their running computation.
struct DigestChecks {
    private let checks: [(expected: ContentDigest, digest: MessageDigest)]
    /// The number of bytes hashed so far.
    private(set) var size: Int64 = 0

    /// Creates checks of the announced digests and the expected one, before the first byte.
    init(_ announced: [ContentDigest], and expected: ContentDigest? = nil) {
        checks = Set(announced + (expected.map { [$0] } ?? [])).map { ($0, MessageDigest($0.algorithm.function)) }
    }

    /// The expected digests.
    var expected: Set<ContentDigest> { Set(checks.map(\.expected)) }

    /// Hashes further bytes.
    mutating func update(_ bytes: borrowing RawSpan) {
        size += Int64(bytes.byteCount)
        for check in checks { check.digest.update(bytes) }
    }

    /// Whether the digests of all bytes so far are the expected ones.
    var isVerified: Bool {
        checks.allSatisfy { check in check.digest.value.map { check.expected.value.elementsEqual($0) } ?? false }
    }

    /// Compares the digests of all bytes so far with the expected ones.
    ///
    /// - Throws: ``SessionError/digest(expected:found:path:url:)`` for the first one that differs, with the path and
    ///   the URL of the download.
    func verify(_ path: String, from url: URL) throws(SessionError) {
        for (expected, digest) in checks {
            guard let value = digest.value else { throw .digestNotComputed }
            guard expected.value.elementsEqual(value) else {
                throw .digest(
                    expected: expected, found: ContentDigest(expected.algorithm, Data(value)), path: path, url: url)
            }
        }
    }
}

extension ContentDigest.Algorithm {
    /// The function that computes digests by the algorithm.
    var function: MessageDigest.Algorithm {
        switch self {
        case .sha256: .sha256
        case .sha512: .sha512
        }
    }
}
