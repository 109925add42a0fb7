// SPDX-License-Identifier: MIT

import AsyncNetworking

/// Returns a string with the bytes of its UTF-8 percent-encoded, except letters, digits and `-._~/?`.
public func AFPercentEscapedStringFromString(_ string: String) -> String {
    URLEncodedFormEncoder.escape(string)
}

/// Returns parameters encoded as a query: names are sorted; dictionaries use `name[key]`, arrays `name[]`; the name is
/// repeated for each element of a set; null has no `=`.
public func AFQueryStringFromParameters(_ parameters: [AnyHashable: Any]) -> String {
    AFQueryStringFromValue(parameters)
}

/// Returns any value encoded as a query. The name is empty if the outermost value is not a dictionary.
func AFQueryStringFromValue(_ value: Any) -> String {
    AFQueryStringPairsFromKeyAndValue(nil, value).map(\.escaped).joined(separator: "&")
}

/// Returns the name-value pairs of a dictionary in the order in which they are sent.
func AFQueryStringPairsFromDictionary(_ dictionary: [AnyHashable: Any]) -> [AFQueryStringPair] {
    AFQueryStringPairsFromKeyAndValue(nil, dictionary)
}

/// Returns the name-value pairs of a value whose name is `key`, including those of nested values.
func AFQueryStringPairsFromKeyAndValue(_ key: String?, _ value: Any) -> [AFQueryStringPair] {
    let value = unwrapped(value)
    if value is String { return [AFQueryStringPair(field: key, value: value)] }
    if let dictionary = value as? [AnyHashable: Any] {
        let entries = dictionary.map { (name: text(of: $0.key.base), value: $0.value) }.sorted { $0.name < $1.name }
        return entries.flatMap { entry in
            let name = if let key { "\(key)[\(entry.name)]" } else { entry.name }
            return AFQueryStringPairsFromKeyAndValue(name, entry.value)
        }
    }
    if let array = value as? [Any] {
        let name = "\(key ?? "(null)")[]"
        return array.flatMap { AFQueryStringPairsFromKeyAndValue(name, $0) }
    }
    if let set = value as? Set<AnyHashable> {
        return set.map { (text: text(of: $0.base), value: $0.base) }.sorted { $0.text < $1.text }
            .flatMap { AFQueryStringPairsFromKeyAndValue(key, $0.value) }
    }
    return [AFQueryStringPair(field: key, value: value)]
}

/// A name and its value.
struct AFQueryStringPair {
    /// The name; `nil` for a value without a name.
    let field: String?
    /// The value, which is not a dictionary, an array or a set.
    let value: Any

    /// Whether the value is null.
    var isNull: Bool { value is NSNull }

    /// The pair, percent-encoded for a query.
    var escaped: String {
        let name = URLEncodedFormEncoder.escape(field ?? "")
        return isNull ? name : "\(name)=\(URLEncodedFormEncoder.escape(text(of: value)))"
    }

    /// Returns the value as the content of a form part.
    ///
    /// - Throws: See ``Swift/String/content(in:)``.
    func data(using encoding: String.Encoding) throws -> Data {
        if let data = value as? Data { return data }
        return isNull ? Data() : try text(of: value).content(in: encoding)
    }
}

extension String {
    /// Returns the string in a text encoding.
    ///
    /// - Throws: An error of ``AFURLRequestSerializationErrorDomain`` with code -1016 if the encoding lacks a character
    ///   of the string.
    func content(in encoding: String.Encoding) throws -> Data {
        guard let data = data(using: encoding) else {
            throw NSError.requestSerialization(
                .cannotDecodeContentData,
                reason: "The parameters cannot be represented in the serializer's `stringEncoding`.")
        }
        return data
    }
}

/// Returns the text of a scalar as Objective-C describes it: Booleans as 1 and 0, whole numbers without a fraction.
private func text(of value: Any) -> String {
    switch value {
    case let string as String: string
    case let url as URL: url.absoluteString
    case let date as Date: queryText(of: .date(date)) ?? date.description
    case let number as any BinaryInteger: "\(number)"
    case let decimal as Decimal: "\(decimal)"
    case let number as NSNumber: text(of: number)
    default: "\(value)"
    }
}

/// Returns the text that the core's encoder writes for a scalar.
private func queryText(of scalar: Parameters) -> String? {
    guard let pairs = try? URLEncodedFormEncoder().pairs(["": scalar]) else { return nil }
    return pairs.first?.value
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

/// Returns the text of a number according to its type: integers in full, regardless of their size.
private func text(of number: NSNumber) -> String {
    let text = number.stringValue
    let isWhole = text.utf8.allSatisfy { 0x30...0x39 ~= $0 || $0 == UInt8(ascii: "-") }
    guard !isWhole, !(number is NSDecimalNumber), let double = Double(text) else { return text }
    return queryText(of: .double(double)) ?? text
}
