// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

/// The encoder and the decoder that a session uses for JSON by default.
///
/// | JSON | used |
/// |---|---|
/// | ``ANHTTP/RequestBody/json(_:encoder:)`` | the encoder |
/// | parameters of a ``JSONRequestSerializer`` | the encoder, see ``JSONRequestSerializer/encoder`` |
/// | ``ResponseSerializer/decodable(_:decoder:)``, ``Rejection/decoded(as:decoder:)``, decoded events | the decoder |
/// | `ResponseBody.jsonLines(of:)` and `jsonSequence(of:)` | the decoder |
///
/// An encoder or decoder that is passed to one of these replaces it. By default, dates are read and written as ISO 8601
/// text, written in UTC and whole seconds, such as `1970-01-01T00:00:00Z`, for the years 1 to 9999; the other strategies
/// are Foundation's defaults. As ISO 8601 requires, the calendar is Gregorian also before 1582, whereas Foundation's
/// strategy `iso8601` reads and writes such dates in the Julian calendar. Bodies that are created without a session, such as `RequestBody.jsonLines(_:encoder:)`, use these defaults
/// instead of a session's encoder.
///
/// ```swift
/// let api = SessionManager(baseURL: url) {
///     $0.json.encoder.keyEncodingStrategy = .convertToSnakeCase
///     $0.json.decoder.keyDecodingStrategy = .convertFromSnakeCase
/// }
/// ```
public struct JSONCoding: Sendable {
    /// The encoder; by default a `JSONEncoder` that writes dates as ISO 8601 text, in UTC and whole seconds. It must
    /// not be modified once a session uses it.
    ///
    /// It is an object, which copies of this value share: assign a new one to change the encoder of one copy.
    public var encoder = JSONEncoder()
    /// The decoder; by default a `JSONDecoder` that reads dates from ISO 8601 text. It must not be modified once a
    /// session uses it.
    ///
    /// It is an object, which copies of this value share: assign a new one to change the decoder of one copy.
    public var decoder = JSONDecoder()

    /// Creates an encoder and a decoder for dates by ISO 8601.
    package init() {
        encoder.dateEncodingStrategy = .custom { date, encoder in
            let text = try ISO8601Date.text(of: date) { encoder.codingPath.map { PathStep($0) }.pathDescription }
            var container = encoder.singleValueContainer()
            try container.encode(text)
        }
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            guard let date = ISO8601Date.date(try container.decode(String.self)) else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "Expected date string to be ISO8601-formatted.")
            }
            return date
        }
    }

    /// The values used outside of a session.
    package static let standard = JSONCoding()
}

/// The text of dates by ISO 8601, in the Gregorian calendar also before 1582.
enum ISO8601Date {
    /// Returns text such as `1970-01-01T00:00:00Z`, in UTC and whole seconds.
    ///
    /// - Throws: ``SerializationError/parameters(_:)`` for a date outside of the years 1 to 9999.
    static func text(of date: Date, path: () -> String) throws(SerializationError) -> String {
        let text = try Parameters.text(of: date, path: path)
        return "\(text.date)T\(text.time)Z"
    }

    /// Returns the date of a text, with or without a fraction; `nil` for text in another form, and for dates and times
    /// that do not exist.
    static func date(_ text: String) -> Date? {
        guard ISO8601Text.isDate(text) else { return nil }
        let text = Self.shortened(text)
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

    /// Returns the text of a date with no more digits of a fraction than Foundation reads, which are more than a date has.
    private static func shortened(_ text: String) -> String {
        guard let point = text.utf8.firstIndex(of: UInt8(ascii: ".")) else { return text }
        let digits = text.utf8[point...].dropFirst().prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
        var result = text
        result.removeSubrange(digits.prefix(9).endIndex..<digits.endIndex)
        return result
    }
}

/// The form of a date with a time and an offset. Foundation's parser ignores text after them, and continues to count in
/// the next month, day or hour where a number is too large.
private struct ISO8601Text {
    private var rest: Substring.UTF8View

    static func isDate(_ text: String) -> Bool {
        var text = ISO8601Text(rest: text[...].utf8)
        return text.takeDate() && text.take("T") && text.takeTime() && text.takeOffset() && text.rest.isEmpty
    }

    private mutating func takeDate() -> Bool {
        guard let year = number(digits: 4...6, in: 0...999_999), take("-"), let month = number(in: 1...12), take("-")
        else { return false }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let days =
            switch month {
            case 2: isLeap ? 29 : 28
            case 4, 6, 9, 11: 30
            default: 31
            }
        return number(in: 1...days) != nil
    }

    /// Takes a time of the day, which may end with a leap second or be the end of the day, 24:00:00.
    private mutating func takeTime() -> Bool {
        guard let hour = number(in: 0...24), take(":"), let minute = number(in: 0...59), take(":"),
            let second = number(in: 0...60)
        else { return false }
        var hasFraction = false
        if take(".") {
            let fraction = rest.prefix(while: Self.isDigit)
            guard !fraction.isEmpty else { return false }
            hasFraction = fraction.contains { $0 != UInt8(ascii: "0") }
            rest = rest[fraction.endIndex...]
        }
        return hour < 24 || minute == 0 && second == 0 && !hasFraction
    }

    /// Takes `Z`, `GMT`, `UTC`, or hours with optional minutes and seconds, possibly after `GMT` or `UTC`.
    private mutating func takeOffset() -> Bool {
        if take("Z") { return true }
        let isNamed = take("GMT") || take("UTC")
        guard take("+") || take("-") else { return isNamed }
        if rest.prefix(while: Self.isDigit).count == 4 {
            return number(digits: 2...2, in: 0...23) != nil && number(digits: 2...2, in: 0...59) != nil
        }
        guard number(in: 0...23) != nil else { return false }
        for _ in 0..<2 where take(":") {
            guard number(in: 0...59) != nil else { return false }
        }
        return true
    }

    private mutating func take(_ text: String) -> Bool {
        guard rest.starts(with: text.utf8) else { return false }
        rest = rest.dropFirst(text.utf8.count)
        return true
    }

    /// Takes a number; returns `nil` if it has more or fewer digits, or is out of range.
    private mutating func number(digits: ClosedRange<Int> = 1...2, in range: ClosedRange<Int>) -> Int? {
        let taken = rest.prefix(digits.upperBound).prefix(while: Self.isDigit)
        guard taken.count >= digits.lowerBound, let number = Int(Substring(taken)), range.contains(number) else {
            return nil
        }
        rest = rest[taken.endIndex...]
        return number
    }

    private static func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }
}
