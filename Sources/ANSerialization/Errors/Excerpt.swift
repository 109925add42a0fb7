// SPDX-License-Identifier: MIT

import ANHTTP

/// Shortens untrusted text and bytes for log messages.
package enum Excerpt {
    /// Returns the bytes around `offset` as printable text, with `…` at each end that was cut.
    package static func around(_ offset: Int, in bytes: some RandomAccessCollection<UInt8>, radius: Int = 40) -> String
    {
        let offset = min(max(offset, 0), bytes.count)
        let start = max(offset - radius, 0)
        let end = offset + min(radius, bytes.count - offset)
        let lower = bytes.index(bytes.startIndex, offsetBy: start)
        let upper = bytes.index(bytes.startIndex, offsetBy: end)
        return (start > 0 ? "…" : "") + printable(bytes[lower..<upper]) + (end < bytes.count ? "…" : "")
    }

    /// Returns the first bytes as printable text.
    static func of(_ bytes: some RandomAccessCollection<UInt8>, limit: Int = 120) -> String {
        around(0, in: bytes, radius: limit)
    }

    /// Returns the beginning of a string as printable text.
    static func of(_ string: String, limit: Int = 120) -> String {
        let bytes = Array(string.utf8.prefix(limit + 1))
        return around(0, in: bytes, radius: limit)
    }

    /// Returns the beginning of a malformed URL without user information, query and fragment, which may be secret.
    static func ofURL(_ string: String) -> String {
        let head = string.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        let rest = string.utf8[head.endIndex...]
        if let at = head.lastIndex(of: UInt8(ascii: "@")) {
            return of("…" + String(string[at..<head.endIndex]))
        }
        // The separator may be part of a password.
        guard !rest.contains(UInt8(ascii: "@")) else {
            return of(String(string[..<(head.firstIndex(of: UInt8(ascii: ":")) ?? head.startIndex)]) + ":…")
        }
        return of(String(string[..<head.endIndex]))
    }

    /// Returns the bytes as printable text, with invalid UTF-8 replaced by U+FFFD.
    private static func printable(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: bytes, as: UTF8.self).printable
    }
}
