// SPDX-License-Identifier: MIT

package import ANHTTP
import COpenSSL
package import FoundationEssentials

/// A digest of bytes that come piece by piece, by OpenSSL. See EVP_DigestInit(3).
///
/// What it has seen cannot be stored: OpenSSL has no portable form of a digest's state. Whoever goes on another day hashes
/// the bytes from the start again.
///
/// It is here because this is the one module below the session that speaks to OpenSSL.
@safe package final class MessageDigest {
    private let context: OpaquePointer?
    /// Whether each step so far has worked.
    private var isSound: Bool

    /// Creates the digest of no bytes yet.
    package init(_ algorithm: ContentDigest.Algorithm) {
        unsafe context = EVP_MD_CTX_new()
        let function =
            switch algorithm {
            case .sha256: unsafe EVP_sha256()
            case .sha512: unsafe EVP_sha512()
            }
        isSound = unsafe context != nil && EVP_DigestInit_ex(context, function, nil) == 1
    }

    deinit {
        unsafe EVP_MD_CTX_free(context)
    }

    /// Adds bytes.
    package func update(_ bytes: borrowing RawSpan) {
        guard isSound else { return }
        isSound = unsafe bytes.withUnsafeBytes { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) == 1 }
    }

    /// The digest of all bytes so far, which may be continued; nil when OpenSSL failed, as without memory.
    package var value: Data? {
        guard isSound, let copy = unsafe EVP_MD_CTX_new() else { return nil }
        defer { unsafe EVP_MD_CTX_free(copy) }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard unsafe EVP_MD_CTX_copy_ex(copy, context) == 1, unsafe EVP_DigestFinal_ex(copy, &digest, &count) == 1
        else {
            return nil
        }
        return Data(digest.prefix(Int(count)))
    }
}
