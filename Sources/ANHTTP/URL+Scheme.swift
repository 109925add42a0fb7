// SPDX-License-Identifier: MIT

package import FoundationEssentials

extension URL {
    /// Whether the scheme is `http`, compared case-insensitively (RFC 3986 §3.1).
    package var isPlainHTTP: Bool { begins(with: "http") }

    /// Whether the scheme is `https`, compared case-insensitively (RFC 3986 §3.1).
    package var isHTTPS: Bool { begins(with: "https") }

    /// Compares the text of the URL, because `scheme` makes a copy of the scheme.
    private func begins(with scheme: String) -> Bool {
        let (text, letters) = (absoluteString, scheme)
        let (bytes, start) = (text.utf8Span.span, letters.utf8Span.span)
        guard bytes.count > start.count, bytes[start.count] == UInt8(ascii: ":") else { return false }
        // The bit distinguishes lowercase letters from uppercase ones, and no other character from a letter.
        for index in start.indices where bytes[index] | 0x20 != start[index] { return false }
        return true
    }
}
