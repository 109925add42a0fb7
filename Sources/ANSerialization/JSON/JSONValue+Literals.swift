// SPDX-License-Identifier: MIT

extension JSONValue: ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByStringLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral
{
    /// Creates an array from a literal, such as `[1, "a"]`.
    public init(arrayLiteral elements: JSONValue...) {
        self = .array(elements)
    }

    /// Creates an object from a literal, such as `["a": 1]`; the last member with a name wins.
    public init(dictionaryLiteral members: (String, JSONValue)...) {
        self = .object(Dictionary(members) { _, last in last })
    }

    /// Creates a string from a literal.
    public init(stringLiteral value: String) {
        self = .string(value)
    }

    /// Creates an integer from a literal.
    public init(integerLiteral value: Int64) {
        self = .integer(value)
    }

    /// Creates a floating-point number from a literal.
    public init(floatLiteral value: Double) {
        self = .double(value)
    }

    /// Creates a Boolean value from a literal.
    public init(booleanLiteral value: Bool) {
        self = .bool(value)
    }
}
