// SPDX-License-Identifier: MIT

import COpenSSL

/// A SHA-256 over bytes that come piece by piece; costs nothing until the first piece.
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

    /// The digest; nil when there were no bytes.
    mutating func finish() -> [UInt8]? {
        guard unsafe context != nil else { return nil }
        var digest = [UInt8](repeating: 0, count: 32)
        guard unsafe EVP_DigestFinal_ex(context, &digest, nil) == 1 else { return nil }
        return digest
    }

    /// The digest in lower-case hexadecimal; nil when there were no bytes.
    mutating func finishHexadecimal() -> String? {
        finish()?.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
