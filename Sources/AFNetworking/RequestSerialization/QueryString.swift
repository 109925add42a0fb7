// SPDX-License-Identifier: MIT

public import AsyncNetworking

/// Returns a string with the bytes of its UTF-8 percent-encoded (RFC 3986 §2.1), except ASCII letters, digits and
/// `-._~/?`. A space becomes `%20`, and a percent sign `%25`.
public func AFPercentEscapedStringFromString(_ string: String) -> String {
    URLEncodedFormEncoder.escape(string)
}

/// Returns parameters encoded as a query, with sorted names.
///
/// | value | text |
/// |---|---|
/// | a dictionary | `name[key]=value` for each key; `key=value` at the top level |
/// | an array | `name[]=value` for each element, in order |
/// | a set | `name=value` for each element, sorted |
/// | `NSNull`, or `nil` in an optional | `name`, without `=` |
/// | a Boolean value | `name=1` or `name=0` |
/// | `Data` | `name=` and Base64 |
/// | another value | `name=` and its description |
/// | an empty collection | none |
///
/// Names, including their brackets, and values are percent-encoded by ``AFPercentEscapedStringFromString(_:)``. The
/// query is empty for parameters that are nested more than 512 levels deep.
public func AFQueryStringFromParameters(_ parameters: [AnyHashable: Any]) -> String {
    (try? URLEncodedFormEncoder().encode(Parameters(foundation: parameters))) ?? ""
}

extension Parameters {
    /// Creates a dictionary from Foundation objects. A value that is not a dictionary gets the name that AFNetworking
    /// gives it: `(null)` for an array, otherwise the empty name.
    init(foundation value: Any) {
        switch Parameters(element: value, depth: 0) {
        case .dictionary(let entries): self = .dictionary(entries)
        case .array(let elements): self = .dictionary([Entry("(null)", .array(elements))])
        case let other: self = .dictionary([Entry("", other)])
        }
    }

    private init(element value: Any, depth: Int) {
        let value = unwrapped(value)
        // The encoder rejects the tree.
        if depth > Self.maximumDepth {
            self = .null
        } else if let parameters = value as? Parameters {
            self = parameters
        } else if let dictionary = value as? [AnyHashable: Any] {
            self = .dictionary(
                dictionary.map { Entry(name($0.key), Parameters(element: $0.value, depth: depth + 1)) })
        } else if let array = value as? [Any] {
            self = .array(array.map { Parameters(element: $0, depth: depth + 1) })
        } else if let set = value as? Set<AnyHashable> {
            self = .set(set.map { Parameters(element: $0.base, depth: depth + 1) })
        } else {
            self.init(scalar: value)
        }
    }

    /// Creates a scalar. One without a case that has the text of Objective-C, such as a large decimal number, becomes
    /// this text.
    fileprivate init(scalar value: Any) {
        let scalar: Parameters? =
            switch value {
            case let string as String: .string(string)
            case let data as Data: .data(data)
            case let url as URL: .string(url.absoluteString)
            // The description of a `Date` that is not finite traps.
            case let date as Date: Self.encodable(.date(date)) ?? .string((date as NSDate).description)
            case let number as any BinaryInteger:
                Int64(exactly: number).map(Parameters.integer) ?? UInt64(exactly: number).map(Parameters.unsigned)
            case let number as CGFloat: Self.encodable(.double(Double(number)))
            case let number as NSNumber where type(of: value) == Self.booleanClass: .bool(number.boolValue)
            case let bool as Bool where type(of: value) == Bool.self: .bool(bool)
            case is NSNull: .null
            default: Self.number(value)
            }
        self = scalar ?? .string("\(value)")
    }

    /// Returns a date or number, or `nil` if the encoder refuses it.
    private static func encodable(_ scalar: Parameters) -> Parameters? { text(of: scalar).map { _ in scalar } }

    /// The class of `NSNumber` objects that are Boolean values, as in decoded JSON.
    private static let booleanClass: AnyClass = type(of: NSNumber(value: true))

    /// Returns a decimal or floating-point number, if it can be written with the same digits.
    private static func number(_ value: Any) -> Parameters? {
        guard let digits = (value as? Decimal)?.description ?? (value as? NSNumber)?.stringValue else { return nil }
        if let integer = Int64(digits) { return .integer(integer) }
        if let integer = UInt64(digits) { return .unsigned(integer) }
        guard let double = Double(digits).flatMap({ encodable(.double($0)) }) else { return .string(digits) }
        let isDecimal = value is Decimal || value is NSDecimalNumber
        return isDecimal && text(of: double) != digits ? .string(digits) : double
    }

    /// Creates parameters from a dictionary as programs pass it to AFNetworking's verbs, for a verb of AsyncNetworking.
    ///
    /// They are sent like those of AFNetworking: in a query or form with the text that
    /// ``AFNetworking/AFQueryStringFromParameters(_:)`` describes, and in JSON as numbers, Boolean values and strings. A
    /// `Decimal` with digits that a `Double` does not have is a string there, unlike in `AFJSONRequestSerializer`.
    /// `NSNull`, and `nil` in an optional, is ``ANSerialization/Parameters/null``: the name without `=`, or a null. It
    /// is not omitted like a `nil` in a literal of ``ANSerialization/Parameters``. In a file that imports this module,
    /// a dictionary literal as the argument is of this type, too.
    ///
    /// - Parameter values: The values: strings, numbers, Boolean values, dates, URLs, data, arrays, sets and
    ///   dictionaries of Swift or Foundation. Of any other value, the description is sent.
    public init(_ values: [String: Any]) {
        self.init(foundation: values)
    }
}

/// Returns the text that the core's encoder writes for a scalar; `nil` if it cannot be encoded.
private func text(of scalar: Parameters) -> String? {
    (try? URLEncodedFormEncoder().pairs(["": scalar]))?.first?.value
}

/// Returns the name of an entry: the text of its key, as Objective-C describes it.
private func name(_ key: AnyHashable) -> String {
    key.base as? String ?? text(of: Parameters(scalar: key.base)) ?? "\(key.base)"
}

/// Returns the value wrapped in an optional; null for `nil`.
private func unwrapped(_ value: Any) -> Any {
    guard let optional = value as? any OptionalValue else { return value }
    return optional.content.map(unwrapped) ?? NSNull()
}

/// An optional of any type.
private protocol OptionalValue {
    var content: Any? { get }
}

extension Optional: OptionalValue {
    fileprivate var content: Any? { self }
}

/// Returns parameters with a `Double` in place of each `CGFloat`, at most 512 levels deep.
///
/// On Apple platforms a `CGFloat` in an `Any` is bridged to `NSNumber`. Foundation on Linux does not bridge it, and
/// refuses it in JSON and in property lists.
func replacingCGFloats(in value: Any, depth: Int = 0) -> Any {
    if let number = value as? CGFloat { return Double(number) }
    guard depth < Parameters.maximumDepth else { return value }
    if let dictionary = value as? [AnyHashable: Any] {
        return dictionary.mapValues { replacingCGFloats(in: $0, depth: depth + 1) }
    }
    if let array = value as? [Any] { return array.map { replacingCGFloats(in: $0, depth: depth + 1) } }
    return value
}
