// SPDX-License-Identifier: MIT

import FoundationEssentials

/// How scalars are written, the same in every encoder.
extension Parameters {
    /// A finite double as the shortest text that reads back the same, without `.0`.
    static func text(of number: Double, path: () -> String) throws(SerializationError) -> String {
        guard number.isFinite else { throw .parameters(.notFinite(path: path())) }
        let text = number.description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// A date in UTC to the second: `1970-01-01T00:00:00Z`.
    static func text(of date: Date, path: () -> String) throws(SerializationError) -> String {
        // 0001-01-01 to 9999-12-31, in seconds since 1970. NaN is in no range.
        guard (-62_135_596_800..<253_402_300_800).contains(date.timeIntervalSince1970) else {
            throw .parameters(.dateOutOfRange(path: path()))
        }
        return date.formatted(.iso8601)
    }
}
