// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// A point in time or a duration in milliseconds; a point in time counts from 1970-01-01 00:00:00 UTC.
///
/// Header fields carry whole seconds; the time since a response was received is measured more precisely.
package struct CacheTime: Hashable, Sendable, Comparable {
    /// The number of milliseconds.
    package var milliseconds: Int64

    /// Creates a time from milliseconds.
    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// Creates a time from whole seconds, clamped to the range of the type.
    package init(seconds: Int64) {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
        milliseconds = overflow ? (seconds < 0 ? .min : .max) : product
    }

    /// The longest duration, for no limit.
    package static let forever = CacheTime(milliseconds: .max)
    /// No time.
    package static let zero = CacheTime(milliseconds: 0)

    /// The system's time.
    package static var now: CacheTime {
        CacheTime(milliseconds: SystemDate.millisecondsSince1970)
    }

    /// The whole seconds, rounded down.
    package var seconds: Int64 {
        let quotient = milliseconds / 1_000
        return milliseconds % 1_000 < 0 ? quotient - 1 : quotient
    }

    package static func < (left: CacheTime, right: CacheTime) -> Bool { left.milliseconds < right.milliseconds }

    package static func + (left: CacheTime, right: CacheTime) -> CacheTime {
        let (sum, overflow) = left.milliseconds.addingReportingOverflow(right.milliseconds)
        return CacheTime(milliseconds: overflow ? (left.milliseconds < 0 ? .min : .max) : sum)
    }

    package static func - (left: CacheTime, right: CacheTime) -> CacheTime {
        let (difference, overflow) = left.milliseconds.subtractingReportingOverflow(right.milliseconds)
        return CacheTime(milliseconds: overflow ? (left.milliseconds < 0 ? .min : .max) : difference)
    }
}

extension CacheTime {
    /// Parses a date of a header field in the three forms of RFC 9110 §5.6.7, regardless of case; `nil` for any other
    /// text, including one with another zone than GMT.
    init?(httpDate text: String, now: CacheTime) {
        // Month names and `GMT` are matched regardless of case (RFC 9111 §4.2).
        let canonical = text.split(at: " ", omittingEmptySubsequences: false).map { word in
            word.lowercased() == "gmt" ? "GMT" : Self.capitalizingMonths(in: String(word))
        }.joined(separator: " ")
        guard let date = HTTPDate(canonical, now: now.seconds) else { return nil }
        self.init(seconds: date.seconds)
    }

    /// Whether a text has exactly one of the three forms, letters and digits aside. A reader of `Expires` must treat any
    /// other text as a time in the past (RFC 9111 §5.3).
    static func isExactDate(_ text: String) -> Bool {
        let shape = String(
            text.unicodeScalars.map { scalar in
                switch scalar {
                case "0"..."9": "9" as Character
                case "a"..."z", "A"..."Z": "a"
                default: Character(scalar)
                }
            })
        switch shape {
        case "aaa, 99 aaa 9999 99:99:99 aaa", "aaa aaa 99 99:99:99 9999", "aaa aaa  9 99:99:99 9999": return true
        default: return shape.drop { $0 == "a" } == ", 99-aaa-99 99:99:99 aaa"
        }
    }

    private static func capitalizingMonths(in word: String) -> String {
        word.split(at: "-", omittingEmptySubsequences: false).map { part in
            guard part.utf8.count == 3, part.utf8.allSatisfy({ ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7A }) else {
                return String(part)
            }
            return part.prefix(1).uppercased() + part.dropFirst().lowercased()
        }.joined(separator: "-")
    }

    /// The point in time as an IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
    var httpDate: String {
        let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
        let time = seconds - days * 86_400
        // Civil date from days, with years that begin in March, so that leap days come last.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * month + 2) / 5 + 1
        let year = yearOfEra + era * 400 + (month >= 10 ? 1 : 0)
        let weekday = ((days + 4) % 7 + 7) % 7
        let clock = [time / 3_600, time / 60 % 60, time % 60].map { Self.padded($0, to: 2) }.joined(separator: ":")
        return "\(Self.weekdays[Int(weekday)]), \(Self.padded(day, to: 2)) \(Self.months[Int(month)]) "
            + "\(Self.padded(year, to: 4)) \(clock) GMT"
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb",
    ]

    private static func padded(_ number: Int64, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}
