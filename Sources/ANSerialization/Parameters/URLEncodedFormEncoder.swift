// SPDX-License-Identifier: MIT

import ANHTTP
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
    /// Whether the names in each dictionary are sorted, in the order of `String` (by the Unicode scalars of their
    /// normalized form, NFC), after ``keys`` was applied, and the elements of a set by their text; `true` by default.
    /// Entries with equal names keep their order; with `false`, all entries and elements do.
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
        let head = Substring(text.unicodeScalars.prefix { $0 != "#" })
        // Only the first question mark begins the query.
        let query = head.unicodeScalars.firstIndex(of: "?").map { head.unicodeScalars[$0...].dropFirst() }
        let separator = query.map { $0.isEmpty || $0.last == "&" ? "" : "&" } ?? "?"
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

extension URLEncodedFormEncoder {
    /// The names of the elements of an array, for an array with the name `a`, before they are percent-encoded;
    /// ``brackets`` by default. The elements of a set always have the name itself. See
    /// ``URLEncodedFormEncoder/arrays``.
    @nonexhaustive
    public enum ArrayEncoding: Sendable {
        /// Brackets after the name: `a[]=1&a[]=2`.
        case brackets
        /// The name itself: `a=1&a=2`.
        case bare
        /// Indices in brackets, counted from 0: `a[0]=1&a[1]=2`.
        case indexed
        /// The result of a closure that receives the array's complete name, such as `user[tags]`, and the element's
        /// index, counted from 0, and returns the element's complete name. The name it receives is not percent-encoded,
        /// and its result is percent-encoded afterwards, except in a multipart form.
        case custom(@Sendable (_ name: String, _ index: Int) -> String)
    }

    /// The transformation of the names in dictionaries of any depth, such as `createdAt`; ``asIs`` by default.
    ///
    /// It is the value of ``URLEncodedFormEncoder/keys``, and is applied before names are sorted, joined and
    /// percent-encoded.
    ///
    /// In ``snakeCase`` and ``kebabCase`` a word begins at a capital letter after a small letter or a digit, and at the
    /// last of several capitals if a small letter follows: `parseHTTPBody` becomes `parse_http_body`.
    @nonexhaustive
    public enum KeyEncoding: Sendable {
        /// No transformation: `createdAt`.
        case asIs
        /// Words in lower case, separated by underscores: `created_at`.
        case snakeCase
        /// Words in lower case, separated by hyphens: `created-at`.
        case kebabCase
        /// The result of a closure that receives each name without those of the dictionaries around it, not
        /// percent-encoded. The result is percent-encoded afterwards, except in a multipart form.
        case custom(@Sendable (String) -> String)
    }

    /// The syntax of names in nested dictionaries, for the name `b` in a dictionary with the name `a`, before they are
    /// percent-encoded; ``brackets`` by default. The names of the outermost dictionary are not affected. See
    /// ``URLEncodedFormEncoder/keyPaths``.
    @nonexhaustive
    public enum KeyPathEncoding: Sendable {
        /// Brackets around the inner name: `a[b]`.
        case brackets
        /// A dot before the inner name: `a.b`.
        case dots
        /// The result of a closure that receives `b`, after ``KeyEncoding`` was applied, and returns the text that
        /// follows `a`, such as `[b]`. The text is percent-encoded afterwards, except in a multipart form.
        case custom(@Sendable (String) -> String)
    }

    /// The encoding of ``Parameters/null``, for the name `a`; ``bareKey`` by default. See
    /// ``URLEncodedFormEncoder/nulls``.
    @nonexhaustive
    public enum NullEncoding: Hashable, Sendable {
        /// No pair: neither the name nor a value is sent; a multipart form has no field.
        case dropKey
        /// The name alone, without `=`: `a`. In a multipart form, it is a field with an empty value.
        case bareKey
        /// The given text as the value, such as `a=null` or, for empty text, `a=`; percent-encoded, except in a
        /// multipart form.
        case text(String)
    }

    /// A set of ASCII characters that are not percent-encoded; ``standard`` by default. See
    /// ``URLEncodedFormEncoder/allowedCharacters``.
    ///
    /// Control characters, spaces, `"`, `#`, `%`, `&`, `<`, `>` and non-ASCII characters are always encoded, in names
    /// also `=`, because they would change the meaning of the text or are not permitted in URLs. A space can be `+`
    /// instead; see ``URLEncodedFormEncoder/encodesSpacesAsPlus``.
    public struct AllowedCharacters: Hashable, Sendable {
        /// One bit for each ASCII character.
        private var low: UInt64 = 0
        private var high: UInt64 = 0

        /// Creates the set of the characters of a string; those that must be encoded are ignored.
        ///
        /// Characters that RFC 3986 §3.4 does not permit in a query, such as `^`, are accepted for forms, but a URL
        /// with one of them fails with ``SerializationError/parameters(_:)``.
        ///
        /// - Parameter characters: The ASCII characters, in any order; an empty string encodes all characters.
        public init(_ characters: String) {
            for byte in characters.utf8 where 0x21...0x7E ~= byte && !"\"#%&<>".utf8.contains(byte) { insert(byte) }
        }

        /// ASCII letters, digits and `-._~/?`, as with AFNetworking.
        public static let standard = AllowedCharacters(unreservedCharacters + "/?")
        /// ASCII letters, digits and `-._~`, the unreserved characters of RFC 3986 §2.3.
        public static let unreserved = AllowedCharacters(unreservedCharacters)
        /// All characters that RFC 3986 §3.4 permits in a query, except `&` and, in names, `=`. They include `+`, which
        /// servers that follow the WHATWG URL Standard (`application/x-www-form-urlencoded`) decode as a space.
        public static let query = AllowedCharacters(unreservedCharacters + "/?:@!$'()*+,;=")

        private static let unreservedCharacters =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

        func contains(_ byte: UInt8) -> Bool {
            byte < 0x80 && (byte < 64 ? low : high) & Self.bit(byte) != 0
        }

        func removing(_ byte: UInt8) -> AllowedCharacters {
            var copy = self
            if byte < 64 { copy.low &= ~Self.bit(byte) } else { copy.high &= ~Self.bit(byte) }
            return copy
        }

        private mutating func insert(_ byte: UInt8) {
            if byte < 64 { low |= Self.bit(byte) } else { high |= Self.bit(byte) }
        }

        private static func bit(_ byte: UInt8) -> UInt64 { 1 << UInt64(byte & 63) }
    }
}

extension URLEncodedFormEncoder.KeyEncoding {
    var isIdentity: Bool {
        if case .asIs = self { true } else { false }
    }

    func encode(_ name: String) -> String {
        switch self {
        case .asIs: name
        case .snakeCase: Self.words(of: name).joined(separator: "_")
        case .kebabCase: Self.words(of: name).joined(separator: "-")
        case .custom(let encode): encode(name)
        }
    }

    /// Returns the words of a name in lower case.
    ///
    /// A word begins at a capital letter after a small letter or a digit, and at the last of several capitals if a
    /// small letter follows: `parseHTTPBody` consists of `parse`, `http` and `body`.
    private static func words(of name: String) -> [String] {
        let letters = Array(name)
        var words: [String] = []
        var word = ""
        for index in letters.indices {
            if index > 0, letters[index].isUppercase {
                let follows =
                    !letters[index - 1].isUppercase && (letters[index - 1].isLetter || letters[index - 1].isNumber)
                let endsRow =
                    letters[index - 1].isUppercase && index + 1 < letters.count && letters[index + 1].isLowercase
                if follows || endsRow {
                    words.append(word)
                    word = ""
                }
            }
            word += letters[index].lowercased()
        }
        return words + [word]
    }
}
