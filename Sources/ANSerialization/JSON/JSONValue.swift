// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A JSON document (RFC 8259) as a value.
///
/// ```swift
/// let name = document["user"]?["names"]?[0]?.string
/// ```
///
/// A ``JSONResponseSerializer`` reads one from a response, and ``Parameters/init(_:)-(ParameterValue)`` converts one for
/// a request.
///
/// When parsed, integers of up to 64 bits are exact; all other numbers are rounded to the nearest double. One that
/// is too large for a double is an error, as is one that would become zero. If a name occurs more than once in an
/// object, the first member counts; names that differ only in Unicode normalization are the same, as all strings of
/// Swift. `JSONDecoder` does the same. Numbers of different cases are not equal, such as `1` and `1.0`; compare their
/// ``double``. See
/// ``JSONResponseSerializer/init(allowsFragments:allowsJSON5:validation:emptyResponses:)`` for the differences in JSON5.
public enum JSONValue: Hashable, Sendable {
    /// The literal `null`. It is a value: a missing member or element is `nil` instead.
    case null
    /// `true` or `false`, never a number.
    case bool(Bool)
    /// A number without fraction and exponent that fits into `Int64`; in JSON5 also one such as `5.0`.
    case integer(Int64)
    /// A number without fraction and exponent that exceeds `Int64` and fits into `UInt64`. Parsing never yields one
    /// that fits into `Int64`; it would not be equal to the ``integer(_:)``.
    case unsigned(UInt64)
    /// Any other number, rounded to the nearest double. A parsed one is finite, except for `Infinity` and `NaN` in
    /// JSON5. By default, encoding NaN or an infinity as JSON fails with ``SerializationError/parameters(_:)``.
    case double(Double)
    /// A string, with its escapes decoded.
    case string(String)
    /// An array, whose elements are in the order of the document.
    case array([JSONValue])
    /// An object, whose members have no order. When parsed, the first of several members with the same name counts.
    case object([String: JSONValue])

    /// The member with a name; `nil` if there is no such member or the value is not an object. A member that is null is
    /// ``null``, not `nil`.
    public subscript(name: String) -> JSONValue? {
        object?[name]
    }

    /// The element at an index, counted from 0; `nil` if the index is negative or out of bounds, or the value is not an
    /// array. An element that is null is ``null``, not `nil`.
    public subscript(index: Int) -> JSONValue? {
        guard let array, array.indices.contains(index) else { return nil }
        return array[index]
    }

    /// The Boolean value; `nil` for a value of another type, including the numbers 0 and 1.
    public var bool: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The integer, also of a number such as `5.0` or `1e3`; `nil` if the value is not a number, such as the string
    /// `"5"`, or not exactly representable as `Int`.
    public var int: Int? {
        switch self {
        case .integer(let value): Int(exactly: value)
        case .unsigned(let value): Int(exactly: value)
        case .double(let value): Int(exactly: value)
        case .null, .bool, .string, .array, .object: nil
        }
    }

    /// The number, rounded to the nearest double; `nil` if the value is not a number. An integer above 2⁵³ may be
    /// rounded.
    public var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .unsigned(let value): Double(value)
        case .double(let value): value
        case .null, .bool, .string, .array, .object: nil
        }
    }

    /// The string; `nil` for a value of another type, which is not converted.
    public var string: String? {
        if case .string(let value) = self { value } else { nil }
    }

    /// The elements of an array; `nil` for a value of another type.
    public var array: [JSONValue]? {
        if case .array(let value) = self { value } else { nil }
    }

    /// The members of an object; `nil` for a value of another type.
    public var object: [String: JSONValue]? {
        if case .object(let value) = self { value } else { nil }
    }

    /// Whether the value is `null`.
    package var isNull: Bool {
        self == .null
    }
}

extension JSONValue: CustomStringConvertible {
    /// The JSON text of the value on one line, without spaces and with the members of objects sorted by name.
    ///
    /// It is `null` for a value that contains infinity or NaN, which JSON cannot represent, or is nested more than 512
    /// levels deep.
    public var description: String {
        var writer = JSONWriter(formatting: .sortedKeys)
        do throws(SerializationError) {
            try writer.write(Parameters(self))
        } catch {
            return "null"
        }
        return String(decoding: writer.result, as: UTF8.self)
    }
}

extension JSONValue: ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByStringLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral
{
    /// Creates an ``array(_:)`` from a literal, such as `[1, "a", .null]`; `nil` cannot be an element, use ``null``.
    public init(arrayLiteral elements: JSONValue...) {
        self = .array(elements)
    }

    /// Creates an ``object(_:)`` from a literal, such as `["a": 1]`; of members with the same name, the last wins.
    public init(dictionaryLiteral members: (String, JSONValue)...) {
        self = .object(Dictionary(members) { _, last in last })
    }

    /// Creates a ``string(_:)`` from a literal without interpolations, whose text is not parsed as JSON.
    public init(stringLiteral value: String) {
        self = .string(value)
    }

    /// Creates an ``integer(_:)`` from a literal that fits into `Int64`; use ``unsigned(_:)`` for a greater one.
    public init(integerLiteral value: Int64) {
        self = .integer(value)
    }

    /// Creates a ``double(_:)`` from a literal with a fraction or exponent. `1.0` is not equal to the literal `1`, an
    /// ``integer(_:)``.
    public init(floatLiteral value: Double) {
        self = .double(value)
    }

    /// Creates a ``bool(_:)`` from `true` or `false`.
    public init(booleanLiteral value: Bool) {
        self = .bool(value)
    }
}
