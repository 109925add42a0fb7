// SPDX-License-Identifier: MIT

package import FoundationEssentials

extension URL {
    /// Whether the scheme is `http`.
    package var isPlainHTTP: Bool { scheme?.lowercased() == "http" }

    /// Whether the scheme is `https`.
    package var isHTTPS: Bool { scheme?.lowercased() == "https" }
}
