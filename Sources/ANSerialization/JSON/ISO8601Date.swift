// SPDX-License-Identifier: MIT

import FoundationEssentials

/// The text of dates by ISO 8601, in the Gregorian calendar also before 1582.
enum ISO8601Date {
    /// Returns text such as `1970-01-01T00:00:00Z`, in UTC and whole seconds.
    ///
    /// - Throws: ``SerializationError/parameters(_:)`` for a date outside of the years 1 to 9999.
    static func text(of date: Date, path: () -> String) throws(SerializationError) -> String {
        let text = try Parameters.text(of: date, path: path)
        return "\(text.date)T\(text.time)Z"
    }

    /// Returns the date of a text, with or without a fraction; `nil` for text in another form.
    static func date(_ text: String) -> Date? {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        let digits = text.utf8.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
        // Foundation reads dates before 1582 in the Julian calendar, so those are moved by cycles of 400 years, in which
        // the Gregorian calendar repeats.
        guard digits.count >= 4, let year = Int(Substring(digits)) else { return nil }
        guard year < 1_600 else { return try? style.parse(text) }
        let cycles = 4 - year / 400
        let moved = try? style.parse("\(year + 400 * cycles)" + text.dropFirst(digits.count))
        return moved?.addingTimeInterval(-Double(cycles) * 146_097 * 86_400)
    }
}
