// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// What a request sends as its query, form or JSON: a tree of values that keeps its order.
///
/// ```swift
/// let parameters: Parameters = ["name": "Ada", "tags": ["math", "code"], "active": true, "manager": nil]
/// ```
///
/// It is written as a literal, or made of a dictionary, of a ``JSONValue`` or of anything `Encodable`. A tree made by hand may be of any depth; encoding one of more than ``maximumDepth`` levels fails.
@nonexhaustive
public enum Parameters: Hashable, Sendable {
    /// Names with values, in their order; a name may occur more than once.
    case dictionary([Entry])
    /// Values whose order matters.
    case array([Parameters])
    /// Values whose order does not matter; a query repeats the bare name for each.
    case set([Parameters])
    /// Text.
    case string(String)
    /// An integer.
    case integer(Int64)
    /// An integer above the largest `Int64`.
    case unsigned(UInt64)
    /// A number; NaN and the infinities fail when encoded.
    case double(Double)
    /// A truth value; `1` or `0` in a query.
    case bool(Bool)
    /// A point in time; `1970-01-01 00:00:00 +0000` in a query, `1970-01-01T00:00:00Z` in JSON, unless the encoder is told
    /// otherwise.
    case date(Date)
    /// Bytes; Base64, unless the encoder is told otherwise.
    case data(Data)
    /// Text of a query or form that is encoded already, or the whole of it: it is sent as it is. It has no place in JSON and
    /// property lists.
    case raw(String)
    /// No value; a query has the name without `=`.
    case null
    /// The value of an optional property that is nil: like ``null`` in queries and forms, where
    /// ``URLEncodedFormEncoder/nulls`` decides, and left out of JSON objects and property lists with its name.
    case absent

    /// How deeply parameters may be nested: 512 levels.
    public static let maximumDepth = 512

    /// A name with its value.
    public struct Entry: Hashable, Sendable {
        /// The name.
        public var name: String
        /// The value.
        public var value: Parameters

        /// Creates an entry.
        public init(_ name: String, _ value: Parameters) {
            self.name = name
            self.value = value
        }
    }

    /// A dictionary, sorted by name, for a dictionary of Swift has no order.
    public init(_ values: [String: Parameters]) {
        self = .dictionary(values.sorted { $0.key < $1.key }.map { Entry($0.key, $0.value) })
    }

    /// The value of the first entry with this name; nil when there is none, or when this is not a dictionary.
    ///
    /// Setting replaces the first such entry or adds one; setting nil removes all of them. On `.null`
    /// and `.absent` it makes a dictionary, on other values it does nothing.
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
            case .array, .set, .string, .integer, .unsigned, .double, .bool, .date, .data, .raw: return
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
    /// The entries of a dictionary where names without a value can be left out.
    var present: [Parameters.Entry] {
        filter { if case .absent = $0.value { false } else { true } }
    }
}

extension Parameters: ExpressibleByDictionaryLiteral {
    /// A dictionary in the order written.
    public init(dictionaryLiteral elements: (String, Parameters)...) {
        self = .dictionary(elements.map { Entry($0.0, $0.1) })
    }
}

extension Parameters: ExpressibleByArrayLiteral {
    /// An array.
    public init(arrayLiteral elements: Parameters...) {
        self = .array(elements)
    }
}

extension Parameters: ExpressibleByStringInterpolation {
    /// A string.
    public init(stringLiteral value: String) {
        self = .string(value)
    }
}

extension Parameters: ExpressibleByIntegerLiteral {
    /// An integer.
    public init(integerLiteral value: Int64) {
        self = .integer(value)
    }
}

extension Parameters: ExpressibleByFloatLiteral {
    /// A number.
    public init(floatLiteral value: Double) {
        self = .double(value)
    }
}

extension Parameters: ExpressibleByBooleanLiteral {
    /// A truth value.
    public init(booleanLiteral value: Bool) {
        self = .bool(value)
    }
}

extension Parameters: ExpressibleByNilLiteral {
    /// No value.
    public init(nilLiteral: ()) {
        self = .null
    }
}
