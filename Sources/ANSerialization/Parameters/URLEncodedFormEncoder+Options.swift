// SPDX-License-Identifier: MIT

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
