// SPDX-License-Identifier: MIT

import AsyncNetworking

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
        } else if let string = value as? String {
            self = .string(string)
        } else if let dictionary = value as? [AnyHashable: Any] {
            self = .dictionary(
                dictionary.map { Entry(text(of: $0.key.base), Parameters(element: $0.value, depth: depth + 1)) })
        } else if let array = value as? [Any] {
            self = .array(array.map { Parameters(element: $0, depth: depth + 1) })
        } else if let set = value as? Set<AnyHashable> {
            self = .set(set.map { Parameters(element: $0.base, depth: depth + 1) })
        } else if let data = value as? Data {
            self = .data(data)
        } else {
            self = value is NSNull ? .null : .string(text(of: value))
        }
    }
}

/// Returns the text of a scalar as Objective-C describes it: Booleans as 1 and 0, whole numbers without a fraction,
/// integers in full, regardless of their size.
private func text(of value: Any) -> String {
    switch value {
    case let string as String: return string
    case let url as URL: return url.absoluteString
    case let date as Date: return text(of: .date(date)) ?? date.description
    case let number as any BinaryInteger: return "\(number)"
    case let number as CGFloat: return text(of: Double(number))
    case let decimal as Decimal: return "\(decimal)"
    case let number as NSNumber:
        let digits = number.stringValue
        let isWhole = digits.utf8.allSatisfy { 0x30...0x39 ~= $0 || $0 == UInt8(ascii: "-") }
        guard !isWhole, !(number is NSDecimalNumber), let double = Double(digits) else { return digits }
        return text(of: .double(double)) ?? digits
    default: return "\(value)"
    }
}

/// Returns the text that the core's encoder writes for a scalar; `nil` if it cannot be encoded.
private func text(of scalar: Parameters) -> String? {
    (try? URLEncodedFormEncoder().pairs(["": scalar]))?.first?.value
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
