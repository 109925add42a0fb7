// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// Writes parameters as the text of a query or of an `application/x-www-form-urlencoded` body, by default as AFNetworking
/// does.
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
/// | `["a": .raw("x%20y")]`, `.raw("a=b")` | `a=x%20y`, `a=b`: as it is |
///
/// Letters, digits and `-._~/?` stay as they are; every other byte of the UTF-8 becomes `%XX`, also a space and a `%`. What
/// a server wants otherwise is an option:
///
/// ```swift
/// let encoder = URLEncodedFormEncoder().with {
///     $0.arrays = .indexed
///     $0.booleans = .literal
///     $0.keys = .snakeCase
/// }
/// ```
public struct URLEncodedFormEncoder: Sendable {
    /// The names of an array's elements; `a[]` by default.
    public var arrays = ArrayEncoding.brackets
    /// The words for true and false; `1` and `0` by default.
    public var booleans = BooleanEncoding.numeric
    /// How points in time are written; `1970-01-01 00:00:00 +0000` by default.
    public var dates = Parameters.DateEncoding.description
    /// How bytes are written; Base64 by default.
    public var data = Parameters.DataEncoding.base64
    /// How floating-point numbers are written; `1` for 1.0 by default.
    public var floats = FloatEncoding.shortest
    /// What becomes of the names in dictionaries; nothing by default.
    public var keys = KeyEncoding.asIs
    /// How names within names are written; `a[b]` by default.
    public var keyPaths = KeyPathEncoding.brackets
    /// What becomes of null, and of optional properties that are nil; the name alone by default.
    public var nulls = NullEncoding.bareKey
    /// How a space is written; `%20` by default.
    public var spaces = SpaceEncoding.percent
    /// The order of the names in a dictionary; sorted by default.
    public var order = Order.sorted
    /// The characters that are not percent-encoded; letters, digits and `-._~/?` by default.
    public var allowedCharacters = AllowedCharacters.standard

    /// Creates the encoder with the default options.
    public init() {}

    /// Returns a copy that `change` has changed.
    public func with(_ change: (inout URLEncodedFormEncoder) -> Void) -> URLEncodedFormEncoder {
        var copy = self
        change(&copy)
        return copy
    }

    /// The text for a dictionary; empty for an empty one.
    ///
    /// - Throws: ``SerializationError/parameters(_:)``.
    public func encode(_ parameters: Parameters) throws(SerializationError) -> String {
        if case .raw(let text) = parameters { return text }
        return try flattened(parameters, into: PairText(options: self)).text
    }

    /// Adds the parameters to the query of a URL: after what is there, before the fragment.
    ///
    /// What the URL holds already is not encoded again. Empty parameters leave the URL as it is.
    ///
    /// - Throws: ``SerializationError/parameters(_:)``.
    public func append(_ parameters: Parameters, to url: URL) throws(SerializationError) -> URL {
        try Self.append(try encode(parameters), to: url)
    }

    /// The names and values before they are escaped; a nil value is a name without `=`.
    ///
    /// - Throws: ``SerializationError/parameters(_:)``.
    public func pairs(_ parameters: Parameters) throws(SerializationError) -> [(name: String, value: String?)] {
        try flattened(parameters, into: PairList()).pairs.map { ($0.name, $0.value) }
    }

    /// Percent-encodes all bytes but letters, digits and `-._~/?`.
    public static func escape(_ string: String) -> String {
        var text = PairText(options: URLEncodedFormEncoder())
        text.append(string)
        return text.text
    }

    /// Adds a text to the query of a URL.
    static func append(_ addition: String, to url: URL) throws(SerializationError) -> URL {
        guard !addition.isEmpty else { return url }
        let text = url.absoluteString
        let head = text.prefix { $0 != "#" }
        let separator =
            if !head.contains("?") { "?" } else if head.hasSuffix("?") || head.hasSuffix("&") { "" } else { "&" }
        let joined = head + separator + addition + text[head.endIndex...]
        guard
            !addition.utf8.contains(UInt8(ascii: "#")),
            let result = URL(string: String(joined), encodingInvalidCharacters: false)
        else { throw .parameters(.rawQuery(addition)) }
        return result
    }

    /// The pairs as fields of a multipart form, whose bytes need no other form.
    func multipartPairs(_ parameters: Parameters) throws(SerializationError) -> [PairList.Pair] {
        try flattened(parameters, into: PairList(keepsData: true)).pairs
    }

    private func flattened<Sink: PairSink>(
        _ parameters: Parameters, into sink: Sink
    ) throws(SerializationError) -> Sink {
        guard case .dictionary = parameters else { throw .parameters(.notADictionary) }
        var flattener = ParametersFlattener(sink, options: self)
        try flattener.flatten(parameters)
        return flattener.sink
    }
}
