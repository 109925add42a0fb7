// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// An encoder that writes parameters as a query or an `application/x-www-form-urlencoded` body, by default in the same
/// way as AFNetworking.
///
/// | parameters | text |
/// |---|---|
/// | `["b": 1, "a": "x y"]` | `a=x%20y&b=1`: names are sorted in the order of `String` |
/// | `["a": ["x": 1]]` | `a%5Bx%5D=1` |
/// | `["a": [1, 2]]` | `a%5B%5D=1&a%5B%5D=2` |
/// | `["a": Set([2, 1])]` | `a=1&a=2` |
/// | `["a": Parameters.null]`, `["a": ""]`, `["a": nil]` | `a`, `a=`, empty |
/// | `["a": true]`, `["a": 1.0]` | `a=1` |
/// | `["a": []]`, `["a": [:]]` | empty |
/// | `["a": Parameters.raw("x%20y")]`, `.raw("a=b")` | `a=x%20y`, `a=b`: unchanged |
///
/// By default ASCII letters, digits and `-._~/?` are not encoded; every other byte of the UTF-8 text becomes `%XX`,
/// including spaces and `%`.
///
/// ``HTTPRequestSerializer/encoder`` is the one of a session's requests. Options change the format for servers that
/// expect another one:
///
/// ```swift
/// let encoder = URLEncodedFormEncoder().with {
///     $0.arrays = .indexed
///     $0.usesBooleanWords = true
///     $0.keys = .snakeCase
/// }
/// ```
public struct URLEncodedFormEncoder: Sendable {
    /// The names of an array's elements; ``ArrayEncoding/brackets`` by default, `a[]=1&a[]=2` before percent-encoding.
    /// It does not apply to sets.
    public var arrays = ArrayEncoding.brackets
    /// Whether Boolean values are `true` and `false`; `false` by default: they are `1` and `0`.
    public var usesBooleanWords = false
    /// The encoding of dates; ``Parameters/DateEncoding/description`` by default, text such as
    /// `1970-01-01 00:00:00 +0000`.
    public var dates = Parameters.DateEncoding.description
    /// The encoding of bytes; Base64 by default. It has no effect in multipart forms, except on the elements of sets.
    public var data = Parameters.DataEncoding.base64
    /// Whether floating-point numbers, including dates encoded as numbers, keep a zero fraction, such as `1.0`, as with
    /// Alamofire; `false` by default: 1.0 is `1`, as with AFNetworking. Integers are not affected.
    public var keepsZeroFractions = false
    /// The transformation of the names in dictionaries of any depth; ``KeyEncoding/asIs``, none, by default. It is
    /// applied before names are sorted and joined; see ``sortsNames`` and ``keyPaths``.
    public var keys = KeyEncoding.asIs
    /// The syntax of names in nested dictionaries; ``KeyPathEncoding/brackets`` by default, `a[b]` before
    /// percent-encoding.
    public var keyPaths = KeyPathEncoding.brackets
    /// The encoding of ``Parameters/null``; ``NullEncoding/bareKey`` by default, the name alone. It does not apply to
    /// ``Parameters/absent``, such as an optional that is `nil`, which is omitted.
    public var nulls = NullEncoding.bareKey
    /// Whether spaces are encoded as `+`; `false` by default: they are `%20`. If they are, a plus sign is written as
    /// `%2B`, even if it is one of the ``allowedCharacters``. It has no effect in multipart forms.
    public var encodesSpacesAsPlus = false
    /// Whether the names in each dictionary are sorted, in the order of `String`, after ``keys`` was applied, and the
    /// elements of a set by their text; `true` by default. Entries with equal names keep their order; with `false`,
    /// all entries and elements do.
    public var sortsNames = true
    /// The characters that are not percent-encoded; ``AllowedCharacters/standard`` by default, ASCII letters, digits
    /// and `-._~/?`. It has no effect in multipart forms.
    public var allowedCharacters = AllowedCharacters.standard

    /// Creates an encoder with the default options.
    public init() {}

    /// Returns a copy with changes; the encoder itself is not changed.
    ///
    /// - Parameter change: Changes the copy, as in `encoder.with { $0.arrays = .indexed }`; called once, before this
    ///   function returns.
    public func with(_ change: (inout URLEncodedFormEncoder) -> Void) -> URLEncodedFormEncoder {
        var copy = self
        change(&copy)
        return copy
    }

    /// Returns the encoded text of a dictionary or of already encoded text; empty for an empty dictionary.
    ///
    /// - Parameter parameters: A ``Parameters/dictionary(_:)``, or ``Parameters/raw(_:)``, whose text is returned
    ///   unchanged and not checked.
    /// - Throws: ``SerializationError/parameters(_:)`` if the parameters are of another kind, are nested more than 512
    ///   levels deep, contain a value that cannot be encoded, such as NaN, or a closure of ``dates`` or ``data``
    ///   throws; a ``SerializationError`` that a closure throws is thrown unchanged.
    public func encode(_ parameters: Parameters) throws(SerializationError) -> String {
        if case .raw(let text) = parameters { return text }
        return try flattened(parameters, into: PairText(options: self)).text
    }

    /// Returns a URL with parameters appended to its query, before the fragment.
    ///
    /// The existing query is not encoded again. Empty parameters leave the URL unchanged.
    ///
    /// - Throws: ``SerializationError/parameters(_:)`` if the parameters cannot be encoded.
    package func append(_ parameters: Parameters, to url: URL) throws(SerializationError) -> URL {
        try Self.append(try encode(parameters), to: url)
    }

    /// Returns the names and values before they are percent-encoded; a value of `nil` means a name without `=`.
    ///
    /// - Throws: ``SerializationError/parameters(_:)`` if the parameters cannot be encoded.
    package func pairs(_ parameters: Parameters) throws(SerializationError) -> [(name: String, value: String?)] {
        try flattened(parameters, into: PairList()).pairs.map { ($0.name, $0.value) }
    }

    /// Returns a string with all UTF-8 bytes percent-encoded except letters, digits and `-._~/?`.
    package static func escape(_ string: String) -> String {
        var text = PairText(options: URLEncodedFormEncoder())
        text.append(string)
        return text.text
    }

    /// Returns a URL with encoded text appended to its query.
    static func append(_ addition: String, to url: URL) throws(SerializationError) -> URL {
        guard !addition.isEmpty else { return url }
        guard
            !addition.utf8.contains(UInt8(ascii: "#")),
            let result = URL(string: text(of: url, appending: addition), encodingInvalidCharacters: false)
        else { throw .parameters(.rawQuery(addition)) }
        return result
    }

    /// Returns the text of a URL with encoded text appended to its query, before the fragment.
    package static func text(of url: URL, appending addition: String) -> String {
        let text = url.absoluteString
        let head = text.prefix { $0 != "#" }
        // Only the first question mark begins the query.
        let query = head.firstIndex(of: "?").map { head[$0...].dropFirst() }
        let separator = query.map { $0.isEmpty || $0.hasSuffix("&") ? "" : "&" } ?? "?"
        return String(head + separator + addition + text[head.endIndex...])
    }

    /// Returns the pairs for the fields of a multipart form, in which bytes are not converted to text.
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
