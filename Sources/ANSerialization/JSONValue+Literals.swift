// SPDX-License-Identifier: MIT

extension JSONValue: ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByStringLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral
{
    /// An array.
    public init(arrayLiteral elements: JSONValue...) {
        self = .array(elements)
    }

    /// An object; of a name that occurs twice the last counts.
    public init(dictionaryLiteral members: (String, JSONValue)...) {
        self = .object(Dictionary(members) { _, last in last })
    }

    /// A string.
    public init(stringLiteral value: String) {
        self = .string(value)
    }

    /// An integer.
    public init(integerLiteral value: Int64) {
        self = .integer(value)
    }

    /// A number.
    public init(floatLiteral value: Double) {
        self = .double(value)
    }

    /// A truth value.
    public init(booleanLiteral value: Bool) {
        self = .bool(value)
    }
}
