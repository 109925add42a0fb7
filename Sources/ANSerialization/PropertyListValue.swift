// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// Any property list as a value.
public enum PropertyListValue: Hashable, Sendable, Decodable, EmptyRepresentable {
    /// True or false.
    case bool(Bool)
    /// An integer that fits.
    case integer(Int64)
    /// An integer above the largest `Int64`.
    case unsigned(UInt64)
    /// A number with a fraction.
    case real(Double)
    /// A string.
    case string(String)
    /// A point in time.
    case date(Date)
    /// Bytes.
    case data(Data)
    /// An array.
    case array([PropertyListValue])
    /// A dictionary.
    case dictionary([String: PropertyListValue])

    /// Decodes whatever is there.
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
        if let string = try? value.decode(String.self) {
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

    /// An empty body is an empty dictionary.
    public static var emptyValue: PropertyListValue { .dictionary([:]) }

    /// The value with this name, if this is a dictionary that has one.
    public subscript(name: String) -> PropertyListValue? {
        if case .dictionary(let members) = self { members[name] } else { nil }
    }

    /// The element at this index, if this is an array that has one.
    public subscript(index: Int) -> PropertyListValue? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    /// The string, if this is one.
    public var string: String? {
        if case .string(let value) = self { value } else { nil }
    }

    /// The integer, if this is one that an `Int` holds.
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
