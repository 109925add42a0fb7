// SPDX-License-Identifier: MIT

package import FoundationEssentials

extension URL {
    /// Whether the scheme is `http`, compared case-insensitively (RFC 3986 §3.1).
    package var isPlainHTTP: Bool { begins(withScheme: "http") }

    /// Whether the scheme is `https`, compared case-insensitively (RFC 3986 §3.1).
    package var isHTTPS: Bool { begins(withScheme: "https") }

    /// Compares the text of the URL, because `scheme` makes a copy of the scheme.
    private func begins(withScheme scheme: String) -> Bool {
        var text = absoluteString.utf8.makeIterator()
        // The bit distinguishes lowercase letters from uppercase ones, and no other character from a letter.
        for letter in scheme.utf8 where text.next().map({ $0 | 0x20 }) != letter { return false }
        return text.next() == UInt8(ascii: ":")
    }
}
