// SPDX-License-Identifier: MIT

import ANSystem
package import FoundationEssentials

/// The primary key of stored responses: a checksum of the target URI.
///
/// The target is compared with that of the stored response as well, so that a collision is a miss.
package struct CacheKey: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64

    /// Creates a key from its parts.
    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Creates the key of a normalized target URI.
    package init(target: String) {
        high = Checksum.of(target, seed: 1)
        low = Checksum.of(target, seed: 2)
    }

    /// Returns the target URI of a URL: without user information and fragment, with scheme and host in lower case, and
    /// without the default port (RFC 9110 §4.2.3).
    package static func target(_ url: URL) -> String {
        let text = url.absoluteString
        if isNormalized(text) { return text }
        guard var components = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return text }
        components.scheme = components.scheme?.lowercased()
        components.percentEncodedHost = components.percentEncodedHost?.lowercased()
        components.user = nil
        components.password = nil
        components.fragment = nil
        let standard = components.scheme == "https" ? 443 : components.scheme == "http" ? 80 : nil
        if components.port == standard { components.port = nil }
        if components.percentEncodedPath.isEmpty { components.percentEncodedPath = "/" }
        return components.string ?? text
    }

    /// Whether an absolute URL needs no change: it has a path, no port, user or fragment, and a lower-case authority.
    private static func isNormalized(_ text: String) -> Bool {
        var slashes = 0
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "#"): return false
            case UInt8(ascii: "/"): slashes += 1
            case _ where slashes >= 3: continue
            case UInt8(ascii: ":") where slashes == 0: continue
            case UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "?"), UInt8(ascii: "A")...UInt8(ascii: "Z"):
                return false
            default: continue
            }
        }
        return slashes >= 3
    }

    /// Returns the scheme and authority of a normalized target.
    package static func origin(of target: String) -> Substring {
        var slashes = 0
        let end = target.utf8.firstIndex { byte in
            if byte == UInt8(ascii: "/") { slashes += 1 }
            return slashes == 3
        }
        return target[..<(end ?? target.endIndex)]
    }
}
