// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension Parameters {
    /// The encoding of dates in queries and forms, ``description`` by default; see ``URLEncodedFormEncoder/dates``. The
    /// encoding in JSON is that of ``JSONRequestSerializer/encoder``.
    ///
    /// A date that is not finite fails with ``SerializationError/parameters(_:)``, unless a closure or a format style
    /// encodes it; so does one outside of the years 1 to 9999 with ``description`` and ``iso8601``.
    @nonexhaustive
    public enum DateEncoding: Sendable {
        /// Text such as `1970-01-01 00:00:00 +0000`, in UTC, rounded down to whole seconds, as with AFNetworking.
        case description
        /// The number of seconds since 2001-01-01 00:00:00 UTC, with their fraction, as `Date` encodes itself.
        case deferred
        /// The number of seconds since 1970-01-01 00:00:00 UTC, with their fraction.
        case seconds
        /// The number of milliseconds since 1970-01-01 00:00:00 UTC, rounded to a whole one.
        case milliseconds
        /// Text such as `1970-01-01T00:00:00Z`, in UTC, rounded down to whole seconds (RFC 3339).
        case iso8601
        /// The result of a closure that receives the date.
        ///
        /// The result may be of any kind, but must neither be nor contain a date: the closure would receive it again,
        /// until the encoding fails because of its depth. An error that the closure throws fails the encoding with
        /// ``SerializationError/parameters(_:)``; a ``SerializationError`` is thrown unchanged.
        case custom(@Sendable (Date) throws -> Parameters)

        /// Returns an encoding as text by a format style of Foundation, for dates of any year.
        ///
        /// - Parameter style: The style, such as `Date.ISO8601FormatStyle` or `Date.VerbatimFormatStyle`.
        public static func formatted(_ style: some FormatStyle<Date, String> & Sendable) -> DateEncoding {
            .custom { .string(style.format($0)) }
        }

        /// Returns the date as a value of another kind.
        func encode(_ date: Date, path: () -> String) throws(SerializationError) -> Parameters {
            switch self {
            case .description:
                let text = try Parameters.text(of: date, path: path)
                return .string("\(text.date) \(text.time) +0000")
            case .deferred: return .double(date.timeIntervalSinceReferenceDate)
            case .seconds: return .double(date.timeIntervalSince1970)
            case .milliseconds: return .double((date.timeIntervalSince1970 * 1000).rounded())
            case .iso8601:
                let text = try Parameters.text(of: date, path: path)
                return .string("\(text.date)T\(text.time)Z")
            case .custom(let encode): return try Parameters.custom(path) { try encode(date) }
            }
        }
    }

    /// The encoding of bytes in queries and forms, ``base64`` by default; see ``URLEncodedFormEncoder/data``. The
    /// encoding in JSON is that of ``JSONRequestSerializer/encoder``.
    ///
    /// In the fields of multipart forms bytes are sent unchanged, except for the elements of a set.
    @nonexhaustive
    public enum DataEncoding: Sendable {
        /// Base64 with padding (RFC 4648 §4), whose `+` and `=` are then percent-encoded by default.
        case base64
        /// An array of numbers, one for each byte, as `Data` encodes itself; by default `a[]=1&a[]=2` before
        /// percent-encoding.
        case deferred
        /// The result of a closure that receives the bytes.
        ///
        /// The result may be of any kind, but must neither be nor contain bytes: the closure would receive them again,
        /// until the encoding fails because of its depth. An error that the closure throws fails the encoding with
        /// ``SerializationError/parameters(_:)``; a ``SerializationError`` is thrown unchanged.
        case custom(@Sendable (Data) throws -> Parameters)

        /// Returns the bytes as a value of another kind.
        func encode(_ data: Data, path: () -> String) throws(SerializationError) -> Parameters {
            switch self {
            case .base64: .string(data.base64EncodedString())
            case .deferred: .array(data.map { .integer(Int64($0)) })
            case .custom(let encode): try Parameters.custom(path) { try encode(data) }
            }
        }
    }

    /// Returns the result of a user's closure, and wraps its error in one with the path.
    private static func custom(
        _ path: () -> String, _ encode: () throws -> Parameters
    ) throws(SerializationError) -> Parameters {
        do {
            return try encode()
        } catch let error as SerializationError {
            throw error
        } catch {
            throw .parameters(.encodable(path: path(), reason: String(describing: error), underlying: error))
        }
    }
}
