// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The parameters of a query, a form, or a JSON or property list body: a tree of values that keeps its order.
///
/// ```swift
/// let parameters: Parameters = ["name": name, "tags": ["math", "code"], "active": true, "manager": manager]
/// ```
///
/// The elements of a literal are literals, and values of any type that conforms to ``ParameterValue``; `nil` means
/// ``absent``, except in arrays, and `Parameters.null` a null. A literal within a literal becomes a Swift array or
/// dictionary first, whose names are sorted; `as Parameters` keeps their order.
///
/// Parameters can also be created from dictionaries, a ``JSONValue``, or any `Encodable` value, by
/// ``init(_:)-(ParameterValue)`` and ``init(encoding:)``. Encoding a tree with more than
/// 512 levels fails with ``SerializationError/parameters(_:)``.
@nonexhaustive
public enum Parameters: Hashable, Sendable {
    /// Names with values, in order; a name may occur more than once, except in a property list. Queries and forms
    /// require it, or ``raw(_:)``, as the outermost value, and sort the names by default; an empty one within another
    /// value is omitted.
    case dictionary([Entry])
    /// An ordered collection of values. In a query or form each element has the name with `[]`, by default, and an
    /// empty collection is omitted.
    case array([Parameters])
    /// An unordered collection of values. In a query or form the name is repeated without brackets for each element, by
    /// default sorted by their text, and an empty collection is omitted. In JSON and property lists it is an array in
    /// the given order. Two sets with the same elements in a different order are not equal.
    case set([Parameters])
    /// A string; percent-encoded in a query or form.
    case string(String)
    /// An integer that fits into `Int64`, written in decimal.
    case integer(Int64)
    /// An integer that exceeds `Int64` and fits into `UInt64`, written in decimal.
    case unsigned(UInt64)
    /// A floating-point number, written as the shortest text with that value: 1.0 is `1` in JSON and, by default, in a
    /// query or form. NaN and infinities fail to be encoded in queries and forms and, unless the encoder converts them
    /// to strings, in JSON.
    case double(Double)
    /// A Boolean value; `1` or `0` in a query or form by default, `true` or `false` in JSON.
    case bool(Bool)
    /// A date; by default `1970-01-01 00:00:00 +0000` in a query or form and `1970-01-01T00:00:00Z` in JSON, which both
    /// require a year from 1 to 9999.
    case date(Date)
    /// Bytes; by default Base64 in queries, forms and JSON. They are sent unchanged in a field of a multipart form,
    /// unless they are an element of a set.
    case data(Data)
    /// Already encoded text for a value of a query or form, or for all of it; sent unchanged.
    ///
    /// Encoding fails with ``SerializationError/parameters(_:)`` for text with `#`, or with characters that a URL
    /// cannot contain, in a query; for text as all of a multipart form; and for any text in JSON or a property list.
    case raw(String)
    /// A null; by default a query or form contains the name without `=`, and a multipart form an empty field. It cannot
    /// be in a property list.
    case null
    /// The value of an optional that is `nil`. An entry with it is omitted together with the name.
    ///
    /// An element of an array or set with it is omitted in queries and forms, null in JSON, and an error in property
    /// lists; as the outermost value, it is null in JSON, and an error elsewhere.
    case absent
    /// A value that cannot be represented, with the reason as a sentence; encoding it fails with
    /// ``SerializationError/parameters(_:)``. See ``ParameterValue``.
    case unsupported(String)

    /// The maximum nesting depth of parameters: 512 levels.
    package static let maximumDepth = 512

    /// A name with its value in a ``dictionary(_:)``.
    public struct Entry: Hashable, Sendable {
        /// The name of the entry, not percent-encoded.
        package var name: String
        /// The value of the entry; ``Parameters/absent`` omits it together with the name.
        package var value: Parameters
        /// Whether the name is a key of a dictionary that encoded itself, which strategies for coding keys do not change.
        var isData: Bool {
            get { mark.isSet }
            set { mark.isSet = newValue }
        }
        private var mark = Mark()

        /// A flag that is not compared.
        private struct Mark: Hashable {
            var isSet = false

            static func == (first: Self, second: Self) -> Bool { true }
            func hash(into hasher: inout Hasher) {}
        }

        /// Creates an entry from a name and a value. Names need not be unique within a dictionary.
        public init(_ name: String, _ value: Parameters) {
            self.name = name
            self.value = value
        }
    }

    /// The value of the first entry with a name; `nil` if there is no such entry or the value is not a dictionary.
    ///
    /// Setting a value replaces that of the first entry with the name, or adds an entry at the end; setting `nil`
    /// removes all entries with the name. Both turn ``null`` and ``absent`` into a dictionary, and have no effect on
    /// other values that are not a dictionary.
    public subscript(name: String) -> Parameters? {
        get {
            guard case .dictionary(let entries) = self else { return nil }
            return entries.first { $0.name == name }?.value
        }
        set {
            var entries: [Entry]
            switch self {
            case .dictionary(let existing): entries = existing
            case .null, .absent: entries = []
            case .array, .set, .string, .integer, .unsigned, .double, .bool, .date, .data, .raw, .unsupported: return
            }
            if let newValue {
                if let index = entries.firstIndex(where: { $0.name == name }) {
                    entries[index].value = newValue
                } else {
                    entries.append(Entry(name, newValue))
                }
            } else {
                entries.removeAll { $0.name == name }
            }
            self = .dictionary(entries)
        }
    }
}

extension [Parameters.Entry] {
    /// The entries without absent values, for formats that omit those together with their names.
    var present: [Parameters.Entry] {
        filter { if case .absent = $0.value { false } else { true } }
    }
}

extension Parameters {
    /// Creates parameters from an element of a literal.
    fileprivate init(element: (any ParameterValue)?) {
        self = element.map { Parameters(converting: $0, depth: 1) } ?? .absent
    }
}

extension Parameters: ExpressibleByDictionaryLiteral {
    /// Creates a ``dictionary(_:)`` in the order of the literal; a `nil` value becomes ``absent``. A name that occurs
    /// several times has several entries.
    public init(dictionaryLiteral elements: (String, (any ParameterValue)?)...) {
        self = .dictionary(elements.map { Entry($0.0, Parameters(element: $0.1)) })
    }
}

extension Parameters: ExpressibleByArrayLiteral {
    /// Creates an ``array(_:)`` from a literal; a `nil` element becomes ``null``.
    public init(arrayLiteral elements: (any ParameterValue)?...) {
        self = .array(elements.map { Parameters(element: $0).asElement })
    }
}

extension Parameters: ExpressibleByStringInterpolation {
    /// Creates a ``string(_:)`` from a literal, which may contain interpolations. It must not be percent-encoded, which
    /// happens when it is sent; see ``raw(_:)`` for text that already is.
    public init(stringLiteral value: String) {
        self = .string(value)
    }
}

extension Parameters: ExpressibleByIntegerLiteral {
    /// Creates an ``integer(_:)`` from a literal that fits into `Int64`; use ``unsigned(_:)`` for a greater one.
    public init(integerLiteral value: Int64) {
        self = .integer(value)
    }
}

extension Parameters: ExpressibleByFloatLiteral {
    /// Creates a ``double(_:)`` from a literal with a fraction or exponent.
    public init(floatLiteral value: Double) {
        self = .double(value)
    }
}

extension Parameters: ExpressibleByBooleanLiteral {
    /// Creates a ``bool(_:)`` from `true` or `false`.
    public init(booleanLiteral value: Bool) {
        self = .bool(value)
    }
}

extension Parameters: ExpressibleByNilLiteral {
    /// Creates a ``null`` from `nil`. A `nil` value in a dictionary literal becomes ``absent`` instead.
    public init(nilLiteral: ()) {
        self = .null
    }
}

extension Parameters {
    /// Creates parameters from an encodable value, in the order in which it encodes its properties.
    ///
    /// `Date` and `Data` values are kept as such, a `URL` and a `UUID` become their text, and a `Decimal` the nearest
    /// double. A `Set` becomes an array. The elements of a `Set` and the entries of a Swift dictionary have an
    /// arbitrary order. A `nil` property becomes ``absent`` if it is encoded with `encodeIfPresent(_:forKey:)`, as
    /// synthesized code does; any other `nil` becomes ``null``, also a property that is encoded with
    /// `encode(_:forKey:)` or `encodeNil(forKey:)`. A value that encodes nothing becomes an empty dictionary. Of several
    /// values with one key the last one counts, and nested containers with one key are merged. The keys of a dictionary
    /// with strings as keys are not changed by the strategy for keys of a `JSONEncoder`.
    ///
    /// A value that contains itself fails because it is nested too deeply. There is one exception: a value that recurs
    /// only through `superEncoder()` or `superEncoder(forKey:)`, and encodes nothing before, overflows the stack,
    /// because these functions cannot throw.
    ///
    /// - Parameter value: The value, whose coding keys become the names.
    /// - Throws: ``SerializationError/parameters(_:)`` if the value is nested more than 512 levels deep, contains an
    ///   integer that exceeds 64 bits, or throws while it encodes itself; a ``SerializationError`` that it throws is
    ///   thrown unchanged.
    public init(encoding value: some Encodable) throws(SerializationError) {
        do {
            self = try ParametersEncoder(path: [], depth: 0).box(value)
        } catch {
            throw .encoding(value, error)
        }
    }
}

extension SerializationError {
    /// Returns the error for a value that failed to encode itself.
    static func encoding(_ value: any Encodable, _ error: any Error) -> SerializationError {
        switch error {
        case let error as SerializationError:
            error
        case EncodingError.invalidValue(_, let context):
            .parameters(
                .encodable(
                    path: context.codingPath.map { PathStep($0) }.pathDescription, reason: context.debugDescription,
                    underlying: context.underlyingError ?? EncodingError.invalidValue(value, context)))
        default:
            .parameters(.encodable(path: "", reason: String(describing: error), underlying: error))
        }
    }
}

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
