// SPDX-License-Identifier: MIT

extension JSONResponseSerializer {
    /// The documents that a ``JSONResponseSerializer`` accepts in addition to arrays and objects by RFC 8259; none by
    /// default. Other documents fail with ``SerializationError/json(_:)``.
    public struct Options: OptionSet, Hashable, Sendable {
        /// The options as a bit mask, for `OptionSet`.
        public let rawValue: UInt8

        /// Creates options from a bit mask; unknown bits have no effect.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The outermost value may be a string, number, Boolean value or null (RFC 8259 §2), not only an array or object;
        /// also in JSON5.
        public static let allowsFragments = Self(rawValue: 1)
        /// The text may be JSON5 (https://spec.json5.org): with comments, trailing commas, unquoted names, single quotes,
        /// hexadecimal numbers, and so on.
        ///
        /// A text that is not also JSON is parsed by Foundation's `JSONDecoder`, which differs from the specification: it
        /// rejects whitespace outside of ASCII, the character NUL in escapes, and escapes such as `\v`, `\0` and `\a`; of
        /// those that JSON lacks, it accepts only `\'`, `\x41`, and escaped line ends, which it keeps. The text may be nested
        /// 64 levels deep.
        ///
        /// Numbers whose value is an integer of up to 64 bits become ``JSONValue/integer(_:)`` or
        /// ``JSONValue/unsigned(_:)``, even if written as `5.0`; `Infinity` and `NaN` become ``JSONValue/double(_:)``. Of
        /// members with the same name the first wins. Errors have no position. The outermost value must be an array or
        /// object, unless ``allowsFragments`` is set.
        public static let allowsJSON5 = Self(rawValue: 2)
    }
}

extension JSONValue: EmptyRepresentable {
    /// The value for an empty body: null.
    package static var emptyValue: JSONValue { .null }
}
