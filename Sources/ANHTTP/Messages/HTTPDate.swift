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
    /// The first two may end with `UTC` or `+0000`, which some servers send instead of `GMT`. The weekday is not compared
    /// with the date. A date with a two-digit year that would be more than 50 years after
    /// `now`, in seconds since 1970, belongs to the previous century.
    package init?(_ text: String, now: Int64) {
        let parts = text.split(whereSeparator: { $0 == " " || $0 == "-" || $0 == "," }).map(String.init)
        switch parts.count {
        case 6 where ["GMT", "UTC", "+0000"].contains(parts[5]):
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
        let clock = time.split(at: ":", omittingEmptySubsequences: false).map(String.init)
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
        var (time, day, month, year): ([Int64]?, Int64?, Int64?, Int64?)
        for token in text.utf8.split(whereSeparator: Self.separatesTokens) {
            if time == nil, let found = Self.clock(token) {
                time = found
            } else if day == nil, let found = Self.leadingNumber(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = Self.months.firstIndex(where: { Self.begins(token, with: $0) }) {
                month = Int64(found) + 1
            } else if year == nil, let found = Self.leadingNumber(token, digits: 2...4) {
                year = found < 70 ? found + 2000 : found < 100 ? found + 1900 : found
            }
        }
        guard let time, let day, let month, let year, year >= 1601, 1...Self.days(in: month, of: year) ~= day,
            time[0] < 24, time[1] < 60, time[2] < 60
        else { return nil }
        seconds = Self.daysSince1970(year, month, day) * 86_400 + time[0] * 3_600 + time[1] * 60 + time[2]
    }

    /// Returns the three numbers of one or two digits with colons between them with which a token begins, followed by
    /// any other byte than a digit; `nil` if there are fewer.
    private static func clock(_ token: Substring.UTF8View) -> [Int64]? {
        let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        let numbers = parts.compactMap { leadingNumber($0, digits: 1...2) }
        let areWhole = parts.dropLast().allSatisfy { $0.count <= 2 && $0.allSatisfy(isDigit) }
        return parts.count == 3 && numbers.count == 3 && areWhole ? numbers : nil
    }

    /// Returns the number with which a token begins, followed by any other byte than a digit; `nil` if it has fewer or
    /// more digits.
    private static func leadingNumber(_ token: Substring.UTF8View, digits: ClosedRange<Int>) -> Int64? {
        let number = token.prefix(while: isDigit)
        return digits.contains(number.count) ? Int64(Substring(number)) : nil
    }

    private static func begins(_ token: Substring.UTF8View, with month: String) -> Bool {
        // A letter is in lower case with the bit 0x20.
        token.prefix(3).map { $0 | 0x20 }.elementsEqual(month.utf8.map { $0 | 0x20 })
    }

    private static func isDigit(_ byte: UInt8) -> Bool { 0x30...0x39 ~= byte }

    /// The `delimiter` of RFC 6265 §5.1.1.
    private static func separatesTokens(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private static func number(_ text: String, digits: ClosedRange<Int>, in range: ClosedRange<Int64>) -> Int64? {
        guard digits.contains(text.utf8.count), text.utf8.allSatisfy(isDigit),
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
