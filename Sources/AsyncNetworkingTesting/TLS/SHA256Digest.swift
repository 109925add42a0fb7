// SPDX-License-Identifier: MIT

import COpenSSL

/// An incremental SHA-256 digest; nothing is allocated before the first bytes.
///
/// See EVP_DigestInit(3).
@safe struct SHA256Digest: ~Copyable {
    private var context: OpaquePointer?

    init() {
        unsafe context = nil
    }

    deinit {
        unsafe EVP_MD_CTX_free(context)
    }

    mutating func update(_ bytes: [UInt8]) {
        if unsafe context == nil {
            unsafe context = EVP_MD_CTX_new()
            unsafe EVP_DigestInit_ex(context, EVP_sha256(), nil)
        }
        unsafe _ = bytes.withUnsafeBytes { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
    }

    /// Returns the digest; `nil` if there were no bytes.
    mutating func finish() -> [UInt8]? {
        guard unsafe context != nil else { return nil }
        var digest = [UInt8](repeating: 0, count: 32)
        guard unsafe EVP_DigestFinal_ex(context, &digest, nil) == 1 else { return nil }
        return digest
    }

    /// Returns the digest in lower-case hexadecimal; `nil` if there were no bytes.
    mutating func finishHexadecimal() -> String? {
        finish()?.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
