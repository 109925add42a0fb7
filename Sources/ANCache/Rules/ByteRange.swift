// SPDX-License-Identifier: MIT

import ANHTTP

/// A requested byte range: a `Range` field with one member (RFC 9110 §14.1.2).
package enum ByteRange: Hashable, Sendable {
    /// From a position, up to and including another one or to the end.
    case from(Int64, through: Int64?)
    /// The last bytes.
    case suffix(Int64)

    /// Parses `bytes=0-499`, `bytes=500-` or `bytes=-500`; `nil` for several ranges and for any other text.
    package init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].trimmingBlanks.lowercased() == "bytes" else { return nil }
        let ends = parts[1].trimmingBlanks.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        switch (Self.number(ends[0]), Self.number(ends[1])) {
        case (let first?, nil) where ends[1].isEmpty: self = .from(first, through: nil)
        case (let first?, let last?) where first <= last: self = .from(first, through: last)
        case (nil, let count?) where ends[0].isEmpty: self = .suffix(count)
        default: return nil
        }
    }

    /// Returns the positions of the bytes in a representation of `length` bytes; `nil` if the range is not satisfiable.
    package func positions(in length: Int64) -> Range<Int64>? {
        switch self {
        case .from(let first, let last):
            guard first < length else { return nil }
            return first..<min(last.map { $0 < .max ? $0 + 1 : .max } ?? length, length)
        case .suffix(let count):
            guard count > 0, length > 0 else { return nil }
            return max(0, length - count)..<length
        }
    }

    private static func number(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text)
    }
}
