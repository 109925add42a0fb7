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
/// ``init(_:)-(ParameterValue)`` and ``init(encoding:)``. A tree may have any depth, but encoding one with more than
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
        public var name: String
        /// The value of the entry; ``Parameters/absent`` omits it together with the name.
        public var value: Parameters
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
