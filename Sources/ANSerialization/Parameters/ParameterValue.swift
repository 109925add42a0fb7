// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A type whose values can be elements of the literals of ``Parameters``, and be converted by
/// ``Parameters/init(_:)-(ParameterValue)``.
///
/// ```swift
/// let page = 2
/// let cursor: String? = nil
/// let parameters: Parameters = ["page": page, "cursor": cursor, "since": Date.now]
/// ```
///
/// Integers of up to 64 bits, `Double`, `Float`, `String`, `Substring`, `Bool`, `Date`, `Data`, `URL`, `UUID`,
/// `Decimal`, ``JSONValue`` and ``Parameters`` conform, and so do optionals, arrays, sets and dictionaries of any
/// elements. The protocol has no requirements: any other `Encodable` type conforms by declaration, and is converted by
/// ``Parameters/init(encoding:)``:
///
/// ```swift
/// extension Color: ParameterValue {}
/// ```
///
/// A value of a type that is neither one of these nor `Encodable`, such as an element of an `[Any]`, becomes
/// ``Parameters/unsupported(_:)``, as does a value that throws while it is converted. It fails with
/// ``SerializationError/parameters(_:)`` when the parameters are encoded.
public protocol ParameterValue {}

extension Bool: ParameterValue {}
extension Double: ParameterValue {}
extension Float: ParameterValue {}
extension Int: ParameterValue {}
extension Int16: ParameterValue {}
extension Int32: ParameterValue {}
extension Int64: ParameterValue {}
extension Int8: ParameterValue {}
extension String: ParameterValue {}
extension Substring: ParameterValue {}
extension UInt: ParameterValue {}
extension UInt16: ParameterValue {}
extension UInt32: ParameterValue {}
extension UInt64: ParameterValue {}
extension UInt8: ParameterValue {}

extension Data: ParameterValue {}
extension Date: ParameterValue {}
extension Decimal: ParameterValue {}
extension URL: ParameterValue {}
extension UUID: ParameterValue {}

extension JSONValue: ParameterValue {}
extension Parameters: ParameterValue {}

extension Array: ParameterValue {}
extension Dictionary: ParameterValue {}
extension Optional: ParameterValue {}
extension Set: ParameterValue {}

extension Parameters {
    /// Creates parameters from a value, such as a dictionary or an array.
    ///
    /// The entries of a dictionary are sorted by name, because a Swift dictionary has no order; a key that is not a
    /// string becomes the one of its `CodingKeyRepresentable` conformance, or else its description. `nil` becomes
    /// ``absent``, and ``null`` as an element of an array or set. A Swift `Set` becomes a ``set(_:)``.
    ///
    /// - Parameter value: The value. One other than an array, set, dictionary, optional, ``JSONValue`` or
    ///   ``Parameters`` is converted as by ``init(encoding:)``. One that cannot be represented becomes
    ///   ``unsupported(_:)``, and fails with ``SerializationError/parameters(_:)`` when it is encoded.
    public init(_ value: some ParameterValue) {
        self.init(converting: value, depth: 0)
    }

    /// Creates parameters from a value of any type; `depth` is its depth in the value that is converted.
    init(converting value: Any, depth: Int) {
        // One level more than can be encoded, so that encoding reports the depth.
        guard depth <= Self.maximumDepth + 1 else {
            self = .absent
            return
        }
        switch value {
        case let value as Parameters: self = value
        case let value as any Convertible: self = value.parameters(depth: depth)
        case let value as String: self = .string(value)
        case let value as Substring: self = .string(String(value))
        case let value as any Encodable:
            do throws(SerializationError) {
                try self.init(encoding: value)
            } catch {
                self = .unsupported("\(error)")
            }
        default: self = .unsupported("The type \(type(of: value)) is not Encodable.")
        }
    }
}

extension Parameters {
    /// The value as an element of an array, which cannot be omitted.
    var asElement: Parameters {
        if case .absent = self { .null } else { self }
    }
}

/// A value that contains others, or is converted without being encoded.
private protocol Convertible {
    func parameters(depth: Int) -> Parameters
}

extension Optional: Convertible {
    fileprivate func parameters(depth: Int) -> Parameters {
        map { Parameters(converting: $0, depth: depth) } ?? .absent
    }
}

extension Array: Convertible {
    fileprivate func parameters(depth: Int) -> Parameters {
        .array(map { Parameters(converting: $0, depth: depth + 1).asElement })
    }
}

extension Set: Convertible {
    fileprivate func parameters(depth: Int) -> Parameters {
        .set(map { Parameters(converting: $0, depth: depth + 1).asElement })
    }
}

extension Dictionary: Convertible {
    fileprivate func parameters(depth: Int) -> Parameters {
        let entries = map { key, value in
            Parameters.Entry(
                (key as? any CodingKeyRepresentable)?.codingKey.stringValue ?? "\(key)",
                Parameters(converting: value, depth: depth + 1))
        }
        return .dictionary(entries.sorted { $0.name < $1.name })
    }
}

extension JSONValue: Convertible {
    fileprivate func parameters(depth: Int) -> Parameters {
        switch self {
        case .null: .null
        case .bool(let bool): .bool(bool)
        case .integer(let integer): .integer(integer)
        case .unsigned(let integer): .unsigned(integer)
        case .double(let double): .double(double)
        case .string(let string): .string(string)
        case .array(let elements): elements.parameters(depth: depth)
        case .object(let values): values.parameters(depth: depth)
        }
    }
}
