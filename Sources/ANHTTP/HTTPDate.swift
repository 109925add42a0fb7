// SPDX-License-Identifier: MIT

/// A date of a header field, to the second. See RFC 9110 §5.6.7.
package struct HTTPDate: Hashable, Sendable {
    /// The number of seconds since 1970-01-01 00:00:00 UTC.
    package var seconds: Int64

    /// Parses a date in one of the three forms of RFC 9110; `nil` for any other text.
    ///
    /// | form | example |
    /// |---|---|
    /// | IMF-fixdate | `Sun, 06 Nov 1994 08:49:37 GMT` |
    /// | RFC 850 | `Sunday, 06-Nov-94 08:49:37 GMT` |
    /// | asctime | `Sun Nov  6 08:49:37 1994` |
    ///
    /// The weekday is not compared with the date. A date with a two-digit year that would be more than 50 years after
    /// `now`, in seconds since 1970, belongs to the previous century.
    package init?(_ text: String, now: Int64) {
        let parts = text.split(whereSeparator: { $0 == " " || $0 == "-" || $0 == "," }).map(String.init)
        switch parts.count {
        case 6 where parts[5] == "GMT":
            guard parts[3].utf8.count == 2 else {
                self.init(year: Self.year(parts[3]), month: parts[2], day: parts[1], time: parts[4])
                return
            }
            guard let short = Self.number(parts[3], digits: 2...2, in: 0...99) else { return nil }
            // The year in the century of `now`, unless the date does not exist there or is too late.
            let current = 1970 + now / 31_556_952
            let year = current - current % 100 + short
            if let date = Self(year: year, month: parts[2], day: parts[1], time: parts[4]),
                date.seconds <= now + 50 * 31_556_952
            {
                self = date
            } else {
                self.init(year: year - 100, month: parts[2], day: parts[1], time: parts[4])
            }
        case 5:
            self.init(year: Self.year(parts[4]), month: parts[1], day: parts[2], time: parts[3])
        default:
            return nil
        }
    }

    private init?(year: Int64?, month: String, day: String, time: String) {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard let year, let month = Self.months.firstIndex(of: month).map({ Int64($0) + 1 }),
            let day = Self.number(day, digits: 1...2, in: 1...Self.days(in: month, of: year)), clock.count == 3,
            let hour = Self.number(clock[0], digits: 2...2, in: 0...23),
            let minute = Self.number(clock[1], digits: 2...2, in: 0...59),
            // 60 is a leap second.
            let second = Self.number(clock[2], digits: 2...2, in: 0...60)
        else { return nil }
        seconds = Self.daysSince1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
    }

    /// Parses the date of a cookie's `Expires` attribute by the lenient rules of RFC 6265 §5.1.1: the time, day, month
    /// and year in any order, and other words ignored; `nil` if one of the four is missing or invalid.
    package init?(ofCookie text: String) {
        var (time, day, month, year): (String?, String?, String?, Int64?)
        for token in text.split(whereSeparator: Self.separatesTokens) {
            let digits = token.prefix { $0.isASCII && $0.isNumber }
            let clock = token.prefix { $0.isASCII && $0.isNumber || $0 == ":" }.split(separator: ":").map(String.init)
            if time == nil, token.contains(":"), clock.count == 3, clock.allSatisfy({ $0.utf8.count <= 2 }) {
                time = clock.map { $0.utf8.count == 1 ? "0" + $0 : $0 }.joined(separator: ":")
            } else if day == nil, 1...2 ~= digits.utf8.count {
                day = String(digits)
            } else if month == nil,
                let name = Self.months.first(where: { token.lowercased().hasPrefix($0.lowercased()) })
            {
                month = name
            } else if year == nil, 2...4 ~= digits.utf8.count, let number = Int64(digits) {
                year = number < 70 ? number + 2000 : number < 100 ? number + 1900 : number
            }
        }
        guard let time, let day, let month, let year, year >= 1601 else { return nil }
        self.init(year: year, month: month, day: day, time: time)
    }

    /// The `delimiter` of RFC 6265 §5.1.1.
    private static func separatesTokens(_ character: Character) -> Bool {
        guard let byte = character.asciiValue else { return false }
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: return true
        default: return false
        }
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private static func number(_ text: String, digits: ClosedRange<Int>, in range: ClosedRange<Int64>) -> Int64? {
        guard digits.contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int64(text), range.contains(number)
        else { return nil }
        return number
    }

    private static func year(_ text: String) -> Int64? { number(text, digits: 4...4, in: 0...9999) }

    private static func isLeap(_ year: Int64) -> Bool {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    }

    private static func days(in month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: isLeap(year) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func daysSince1970(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let before = max(0, year - 1)
        let leapDays = year == 0 ? 0 : before / 4 - before / 100 + before / 400 + 1
        let daysOfMonths = (1..<month).reduce(0) { $0 + days(in: $1, of: year) }
        // Day 0 is January 1 of the year 0; 1970 begins 719,528 days later.
        return year * 365 + leapDays + daysOfMonths + day - 1 - 719_528
    }
}
