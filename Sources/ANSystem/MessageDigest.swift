// SPDX-License-Identifier: MIT

import COpenSSL

/// An incremental message digest, computed by OpenSSL. See EVP_DigestInit(3).
///
/// Its state cannot be stored, because OpenSSL has no portable representation of it. A computation that is resumed in
/// another process hashes the bytes again from the beginning.
@safe package final class MessageDigest {
    private let context: OpaquePointer?
    /// Whether every operation so far has succeeded.
    private var isSound: Bool

    /// A hash algorithm (RFC 1321, FIPS 180-4).
    package enum Algorithm {
        /// MD5, which is broken; for protocols that require it.
        case md5
        /// SHA-1, which no longer resists collisions; for protocols that require it.
        case sha1
        case sha256
        case sha512
        /// SHA-512/256, which is not SHA-512 cut to 256 bits.
        case sha512_256
    }

    /// Creates a digest that has received no bytes.
    package init(_ algorithm: Algorithm) {
        unsafe context = EVP_MD_CTX_new()
        let function =
            switch algorithm {
            case .md5: unsafe EVP_md5()
            case .sha1: unsafe EVP_sha1()
            case .sha256: unsafe EVP_sha256()
            case .sha512: unsafe EVP_sha512()
            case .sha512_256: unsafe EVP_sha512_256()
            }
        isSound = unsafe context != nil && EVP_DigestInit_ex(context, function, nil) == 1
    }

    deinit {
        unsafe EVP_MD_CTX_free(context)
    }

    /// Updates the digest with bytes.
    package func update(_ bytes: borrowing RawSpan) {
        guard isSound else { return }
        isSound = unsafe bytes.withUnsafeBytes { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) == 1 }
    }

    /// The digest of all bytes so far, after which more can be added; `nil` if OpenSSL failed, for example for lack of
    /// memory.
    package var value: [UInt8]? {
        guard isSound, let copy = unsafe EVP_MD_CTX_new() else { return nil }
        defer { unsafe EVP_MD_CTX_free(copy) }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard unsafe EVP_MD_CTX_copy_ex(copy, context) == 1, unsafe EVP_DigestFinal_ex(copy, &digest, &count) == 1
        else {
            return nil
        }
        return Array(digest.prefix(Int(count)))
    }
}

extension MessageDigest {
    /// Returns the bytes of the `Sec-WebSocket-Accept` that answers a `Sec-WebSocket-Key`, before Base64 (RFC 6455
    /// §4.2.2); `nil` if OpenSSL failed.
    package static func webSocketAccept(for key: String) -> [UInt8]? {
        let digest = MessageDigest(.sha1)
        let text = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
        digest.update(unsafe text.span.bytes)
        return digest.value
    }
}

/// Gives other tasks a turn while files are read and hashed, which blocks a thread of the pool: with one CPU there is no
/// other one.
package struct HashingTurns: Sendable {
    private static let length = 4 << 20
    /// The number of bytes before the next turn of others.
    private var left = length

    package init() {}

    /// Notes a number of hashed bytes; yields after each 4 MiB.
    package mutating func pass(_ count: Int) async {
        left -= count
        guard left <= 0 else { return }
        left = Self.length
        await Task.yield()
    }
}
