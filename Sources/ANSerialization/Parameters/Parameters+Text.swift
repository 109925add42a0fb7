// SPDX-License-Identifier: MIT

import FoundationEssentials

/// The text form of scalars, common to all encoders.
extension Parameters {
    /// Returns the shortest text that gives the same finite double when parsed, without a final `.0` unless
    /// `keepsFraction` is set.
    static func text(
        of number: Double, keepsFraction: Bool = false, path: () -> String
    ) throws(SerializationError) -> String {
        guard number.isFinite else { throw .parameters(.notFinite(path: path())) }
        let text = number.description
        return text.hasSuffix(".0") && !keepsFraction ? String(text.dropLast(2)) : text
    }

    /// Returns the ISO 8601 texts of a date and a time in UTC, in whole seconds.
    ///
    /// The formatter of FoundationEssentials is not used because it switches to the Julian calendar before 1582, unlike
    /// ISO 8601.
    static func text(
        of date: Date, path: () -> String
    ) throws(SerializationError) -> (date: String, time: String) {
        // 0001-01-01 to 9999-12-31, in seconds since 1970. NaN is outside of every range.
        guard (-62_135_596_800..<253_402_300_800).contains(date.timeIntervalSince1970) else {
            throw .parameters(.dateOutOfRange(path: path()))
        }
        // Counted from 0000-03-01, so that a leap day is the last day of its year.
        let seconds = Int64(date.timeIntervalSince1970.rounded(.down)) + 719_468 * 86_400
        let (days, time) = seconds.quotientAndRemainder(dividingBy: 86_400)
        let (era, dayOfEra) = days.quotientAndRemainder(dividingBy: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
        return (
            "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))",
            "\(padded(time / 3_600, 2)):\(padded(time / 60 % 60, 2)):\(padded(time % 60, 2))"
        )
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(width - digits.count, 0)) + digits
    }
}
