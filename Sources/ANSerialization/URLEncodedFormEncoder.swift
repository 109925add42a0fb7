// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// Writes parameters as the text of a query or of an `application/x-www-form-urlencoded` body, as AFNetworking does.
///
/// | parameters | text |
/// |---|---|
/// | `["b": 1, "a": "x y"]` | `a=x%20y&b=1`: names sorted, by the order of `String` |
/// | `["a": ["x": 1]]` | `a%5Bx%5D=1` |
/// | `["a": [1, 2]]` | `a%5B%5D=1&a%5B%5D=2` |
/// | `["a": .set([2, 1])]` | `a=1&a=2` |
/// | `["a": nil]`, `["a": ""]` | `a`, `a=` |
/// | `["a": true]`, `["a": 1.0]` | `a=1` |
/// | `["a": []]`, `["a": [:]]` | nothing |
///
/// Letters, digits and `-._~/?` stay as they are; every other byte of the UTF-8 becomes `%XX`, also a space and a `%`.
public struct URLEncodedFormEncoder: Hashable, Sendable {
    /// Creates the encoder.
    public init() {}

    /// The text for a dictionary; empty for an empty one.
    ///
    /// - Throws: ``SerializationError/parameters(_:)``.
    public func encode(_ parameters: Parameters) throws(SerializationError) -> String {
        var text = ""
        for pair in try pairs(parameters) {
            if !text.isEmpty { text += "&" }
            text += Self.escape(pair.name)
            if let value = pair.value { text += "=" + Self.escape(value) }
        }
        return text
    }

    /// Adds the parameters to the query of a URL: after what is there, before the fragment.
    ///
    /// What the URL holds already is not encoded again. Empty parameters leave the URL as it is.
    ///
    /// - Throws: ``SerializationError/parameters(_:)``.
    public func append(_ parameters: Parameters, to url: URL) throws(SerializationError) -> URL {
        let addition = try encode(parameters)
        guard !addition.isEmpty else { return url }
        let text = url.absoluteString
        let head = text.prefix { $0 != "#" }
        let separator =
            if !head.contains("?") { "?" } else if head.hasSuffix("?") || head.hasSuffix("&") { "" } else { "&" }
        let joined = head + separator + addition + text[head.endIndex...]
        guard let result = URL(string: String(joined), encodingInvalidCharacters: false) else {
            throw .url(.malformed(text, reason: "it has characters that a URL cannot have"))
        }
        return result
    }

    /// The names and values before they are escaped; a nil value is a name without `=`.
    public func pairs(_ parameters: Parameters) throws(SerializationError) -> [(name: String, value: String?)] {
        guard case .dictionary = parameters else { throw .parameters(.notADictionary) }
        var pairs: [(name: String, value: String?)] = []
        try flatten(parameters, name: nil, depth: 0, into: &pairs)
        return pairs
    }

    /// Percent-encodes all bytes but letters, digits and `-._~/?`.
    public static func escape(_ string: String) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(string.utf8.count)
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"), UInt8(ascii: "/"), UInt8(ascii: "?"):
                bytes.append(byte)
            default:
                bytes += [UInt8(ascii: "%"), hexDigit(byte >> 4), hexDigit(byte & 15)]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }

    private func flatten(
        _ value: Parameters, name: String?, depth: Int, into pairs: inout [(name: String, value: String?)]
    ) throws(SerializationError) {
        guard depth <= Parameters.maximumDepth else { throw .parameters(.tooDeep(limit: Parameters.maximumDepth)) }
        switch value {
        case .dictionary(let entries):
            for entry in entries.sorted(by: { $0.name < $1.name }) {
                let child = name.map { "\($0)[\(entry.name)]" } ?? entry.name
                try flatten(entry.value, name: child, depth: depth + 1, into: &pairs)
            }
        case .array(let elements):
            for element in elements {
                try flatten(element, name: (name ?? "") + "[]", depth: depth + 1, into: &pairs)
            }
        case .set(let elements):
            // Sorted by what each element becomes, so that the same set is always the same text.
            var groups: [[(name: String, value: String?)]] = []
            for element in elements {
                var group: [(name: String, value: String?)] = []
                try flatten(element, name: name, depth: depth + 1, into: &group)
                groups.append(group)
            }
            groups.sort { left, right in
                left.lexicographicallyPrecedes(right) { ($0.value ?? "", $0.name) < ($1.value ?? "", $1.name) }
            }
            pairs += groups.joined()
        case .string, .integer, .unsigned, .double, .bool, .date, .null:
            pairs.append((name ?? "", try text(of: value, name: name)))
        }
    }

    private func text(of value: Parameters, name: String?) throws(SerializationError) -> String? {
        switch value {
        case .string(let string): return string
        case .integer(let integer): return String(integer)
        case .unsigned(let integer): return String(integer)
        case .double(let double): return try Parameters.text(of: double) { name ?? "" }
        case .bool(let bool): return bool ? "1" : "0"
        case .date(let date):
            let text = try Parameters.text(of: date) { name ?? "" }
            return "\(text.date) \(text.time) +0000"
        case .null, .dictionary, .array, .set: return nil
        }
    }
}
