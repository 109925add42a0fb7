// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A property list, from XML or the binary format, as a value.
///
/// A ``PropertyListResponseSerializer`` reads one from a response, and rejects a document that is unsafe to decode. A
/// `PropertyListDecoder` that the program calls itself does not limit the nesting or the size of a document.
///
/// Foundation's decoder does not distinguish whole reals from integers: a `<real>2</real>` becomes ``integer(_:)``.
public enum PropertyListValue: Hashable, Sendable, Decodable, EmptyRepresentable {
    /// A Boolean value, never a number.
    case bool(Bool)
    /// An integer or whole real that fits into `Int64`. When decoded, numbers that fit are never ``unsigned(_:)``.
    case integer(Int64)
    /// An integer or whole real that exceeds `Int64` and fits into `UInt64`.
    case unsigned(UInt64)
    /// A floating-point number; when decoded, one with a fraction, a whole one that exceeds 64 bits, NaN or an
    /// infinity.
    case real(Double)
    /// A string, with the escapes of XML decoded.
    case string(String)
    /// A date; in XML in UTC and whole seconds, and before October 15, 1582 read in the Julian calendar.
    case date(Date)
    /// Bytes, which the XML format contains as Base64.
    case data(Data)
    /// An array, in the order of the document.
    case array([PropertyListValue])
    /// A dictionary, whose entries have no order.
    case dictionary([String: PropertyListValue])

    /// Decodes a value of any type, usually with `PropertyListDecoder`.
    ///
    /// - Throws: `DecodingError` if the decoder provides a value of no type of property lists, such as null or a
    ///   reference of a keyed archive (`CF$UID`).
    public init(from decoder: any Decoder) throws {
        if var elements = try? decoder.unkeyedContainer() {
            var array: [PropertyListValue] = []
            while !elements.isAtEnd { array.append(try elements.decode(PropertyListValue.self)) }
            self = .array(array)
            return
        }
        if let members = try? decoder.container(keyedBy: Name.self) {
            var dictionary: [String: PropertyListValue] = [:]
            for name in members.allKeys {
                dictionary[name.stringValue] = try members.decode(PropertyListValue.self, forKey: name)
            }
            self = .dictionary(dictionary)
            return
        }
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            // Foundation takes this string for null, which property lists do not have.
            self = .string("$null")
        } else if let string = try? value.decode(String.self) {
            self = .string(string)
        } else if let integer = try? value.decode(Int64.self) {
            self = .integer(integer)
        } else if let integer = try? value.decode(UInt64.self) {
            self = .unsigned(integer)
        } else if let bool = try? value.decode(Bool.self) {
            self = .bool(bool)
        } else if let real = try? value.decode(Double.self) {
            self = .real(real)
        } else if let date = try? value.decode(Date.self) {
            self = .date(date)
        } else {
            self = .data(try value.decode(Data.self))
        }
    }

    /// The value for an empty body: an empty dictionary.
    package static var emptyValue: PropertyListValue { .dictionary([:]) }

    /// The value of a dictionary for a name; `nil` if the name is missing or the value is not a dictionary.
    public subscript(name: String) -> PropertyListValue? {
        if case .dictionary(let members) = self { members[name] } else { nil }
    }

    /// The element at an index, counted from 0; `nil` if the index is negative or out of bounds, or the value is not an
    /// array.
    public subscript(index: Int) -> PropertyListValue? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    /// The string; `nil` for a value of another type, which is not converted.
    public var string: String? {
        if case .string(let value) = self { value } else { nil }
    }

    /// The integer; `nil` if the value is neither ``integer(_:)`` nor ``unsigned(_:)``, or does not fit into `Int`. A
    /// ``real(_:)`` is not converted, even if it is whole.
    public var int: Int? {
        switch self {
        case .integer(let value): Int(exactly: value)
        case .unsigned(let value): Int(exactly: value)
        case .bool, .real, .string, .date, .data, .array, .dictionary: nil
        }
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) {
            self.stringValue = stringValue
        }

        init?(intValue: Int) {
            nil
        }
    }
}
