// SPDX-License-Identifier: MIT

/// What is read as JSON beyond arrays and objects by RFC 8259.
public struct JSONReadingOptions: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt8

    /// Creates options from their bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The outermost value may be other than an array or object.
    public static let allowsFragments = JSONReadingOptions(rawValue: 1)
    /// The text may be JSON5: comments, commas at the end, names without quotes, single quotes, hexadecimal numbers, …
    public static let allowsJSON5 = JSONReadingOptions(rawValue: 2)
}

/// Where nulls are removed from JSON.
public struct JSONNullPlaces: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt8

    /// Creates places from their bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Members of objects, with their names.
    public static let objects = JSONNullPlaces(rawValue: 1)
    /// Elements of arrays; the elements after them move up.
    public static let arrays = JSONNullPlaces(rawValue: 2)
    /// Objects and arrays.
    public static let everywhere: JSONNullPlaces = [.objects, .arrays]
}

extension JSONValue {
    /// The value without the nulls in these places, at any depth; an outermost null stays.
    public func removingNulls(from places: JSONNullPlaces = .everywhere) -> JSONValue {
        guard !places.isEmpty else { return self }
        switch self {
        case .array(let elements):
            return .array(
                elements.lazy.filter { !(places.contains(.arrays) && $0.isNull) }
                    .map { $0.removingNulls(from: places) })
        case .object(let members):
            return .object(
                members.filter { !(places.contains(.objects) && $0.value.isNull) }
                    .mapValues { $0.removingNulls(from: places) })
        case .null, .bool, .integer, .unsigned, .double, .string:
            return self
        }
    }
}

extension JSONValue: EmptyRepresentable {
    /// An empty body is null.
    public static var emptyValue: JSONValue { .null }
}
