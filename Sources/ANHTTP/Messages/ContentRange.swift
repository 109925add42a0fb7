// SPDX-License-Identifier: MIT

import HTTPTypes

/// The byte range of a response, from its `Content-Range` field (RFC 9110 §14.4).
package struct ContentRange: Hashable, Sendable {
    /// The positions of the first and the last byte, counted from 0; `nil` if the requested range is not satisfiable.
    package var bytes: ClosedRange<Int64>?
    /// The size of the complete resource in bytes; `nil` if the server does not know it.
    package var total: Int64?

    /// Parses `bytes 0-499/1234`, `bytes 0-499/*` or `bytes */1234`; `nil` for any other text.
    package init?(_ text: String) {
        let words = text.split(at: " ", omittingEmptySubsequences: true)
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(at: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        if parts[1] != "*" {
            guard let total = Int64(digits: parts[1]) else { return nil }
            self.total = total
        }
        if parts[0] == "*" {
            guard total != nil else { return nil }
            return
        }
        let ends = parts[0].split(at: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Int64(digits: ends[0]), let last = Int64(digits: ends[1]), first <= last,
            last < total ?? .max
        else { return nil }
        bytes = first...last
    }

    /// The range as the whole of a file that consists of it; `nil` if it has no bytes.
    package var ofWholeFile: ContentRange? {
        bytes.map { bytes in
            var whole = self
            (whole.bytes, whole.total) = (0...(bytes.upperBound - bytes.lowerBound), Int64(bytes.count))
            return whole
        }
    }
}

extension ResponseHead {
    /// The range in the first `Content-Range` field; `nil` if it is missing or malformed.
    package var contentRange: ContentRange? { headers.first(.contentRange).flatMap(ContentRange.init) }
}
