// SPDX-License-Identifier: MIT

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
