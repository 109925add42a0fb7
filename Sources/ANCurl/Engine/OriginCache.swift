// SPDX-License-Identifier: MIT

import Glibc

/// A cache of the latest origin, so that successive requests to one origin share a string, which costs no allocation
/// and is compared with itself at once.
package struct OriginCache {
    private var latest = ""

    /// Creates an empty cache.
    package init() {}

    /// Returns the scheme, host and port of an absolute URL: its text up to the path or the query.
    package mutating func origin(of url: String) -> String {
        var url = url
        return url.withUTF8 { bytes in
            if unsafe !isLatest(bytes) {
                var slashes = 0
                let end = unsafe bytes.firstIndex { byte in
                    if byte == UInt8(ascii: "/") { slashes += 1 }
                    return slashes == 3 || byte == UInt8(ascii: "?")
                }
                latest = unsafe String(decoding: bytes[..<(end ?? bytes.count)], as: UTF8.self)
            }
            return latest
        }
    }

    /// Whether a URL has the latest origin and a path or a query.
    private mutating func isLatest(_ url: UnsafeBufferPointer<UInt8>) -> Bool {
        latest.withUTF8 { origin in
            guard let start = origin.baseAddress, let other = url.baseAddress, url.count > origin.count,
                unsafe memcmp(other, start, origin.count) == 0
            else { return false }
            let next = unsafe url[origin.count]
            return next == UInt8(ascii: "/") || next == UInt8(ascii: "?")
        }
    }
}
