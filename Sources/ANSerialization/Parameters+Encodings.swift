// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension Parameters {
    /// How points in time are written, in queries, forms and JSON.
    @nonexhaustive
    public enum DateEncoding: Sendable {
        /// `1970-01-01 00:00:00 +0000`, in UTC and without fractions, as AFNetworking does it.
        case description
        /// As `Date` encodes itself: seconds since 2001-01-01 00:00:00 UTC.
        case deferred
        /// Seconds since 1970-01-01 00:00:00 UTC.
        case seconds
        /// Milliseconds since 1970-01-01 00:00:00 UTC.
        case milliseconds
        /// `1970-01-01T00:00:00Z`, in UTC and without fractions (RFC 3339).
        case iso8601
        /// As a closure says; what it throws ends the encoding.
        case custom(@Sendable (Date) throws -> Parameters)

        /// As a style of Foundation writes it, such as `Date.ISO8601FormatStyle` or `Date.VerbatimFormatStyle`.
        public static func formatted(_ style: some FormatStyle<Date, String> & Sendable) -> DateEncoding {
            .custom { .string(style.format($0)) }
        }

        /// The date as a value of another kind.
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

    /// How bytes are written, in queries, forms and JSON.
    @nonexhaustive
    public enum DataEncoding: Sendable {
        /// Base64 (RFC 4648 §4).
        case base64
        /// As `Data` encodes itself: an array of numbers.
        case deferred
        /// As a closure says; what it throws ends the encoding.
        case custom(@Sendable (Data) throws -> Parameters)

        /// The bytes as a value of another kind.
        func encode(_ data: Data, path: () -> String) throws(SerializationError) -> Parameters {
            switch self {
            case .base64: .string(data.base64EncodedString())
            case .deferred: .array(data.map { .integer(Int64($0)) })
            case .custom(let encode): try Parameters.custom(path) { try encode(data) }
            }
        }
    }

    /// What a closure of the program returns, and what it throws as an error that names the place.
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
