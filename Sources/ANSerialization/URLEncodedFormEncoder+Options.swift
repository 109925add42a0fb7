// SPDX-License-Identifier: MIT

extension URLEncodedFormEncoder {
    /// The names of an array's elements, for an array with the name `a`.
    @nonexhaustive
    public enum ArrayEncoding: Sendable {
        /// `a[]=1&a[]=2`.
        case brackets
        /// `a=1&a=2`.
        case bare
        /// `a[0]=1&a[1]=2`.
        case indexed
        /// As a closure says, from the array's name and the element's index.
        case custom(@Sendable (_ name: String, _ index: Int) -> String)
    }

    /// The words for true and false.
    @nonexhaustive
    public enum BooleanEncoding: Hashable, Sendable {
        /// `1` and `0`.
        case numeric
        /// `true` and `false`.
        case literal
    }

    /// How floating-point numbers are written.
    @nonexhaustive
    public enum FloatEncoding: Hashable, Sendable {
        /// `1` for 1.0, as AFNetworking writes it.
        case shortest
        /// `1.0` for 1.0, as Swift describes it and Alamofire writes it.
        case description
    }

    /// What becomes of the names in dictionaries, such as `createdAt`.
    @nonexhaustive
    public enum KeyEncoding: Sendable {
        /// `createdAt`.
        case asIs
        /// `created_at`.
        case snakeCase
        /// `created-at`.
        case kebabCase
        /// `CreatedAt`.
        case capitalized
        /// `CREATEDAT`.
        case uppercased
        /// `createdat`.
        case lowercased
        /// As a closure says.
        case custom(@Sendable (String) -> String)
    }

    /// How a name within a dictionary is joined to the dictionary's own.
    @nonexhaustive
    public enum KeyPathEncoding: Sendable {
        /// `a[b]`.
        case brackets
        /// `a.b`.
        case dots
        /// As a closure says: it gets `b` and returns what follows `a`.
        case custom(@Sendable (String) -> String)
    }

    /// What becomes of null, and of optional properties that are nil.
    @nonexhaustive
    public enum NullEncoding: Hashable, Sendable {
        /// Nothing: the name is left out.
        case dropKey
        /// `a=`.
        case emptyValue
        /// `a`.
        case bareKey
        /// `a=null`.
        case null
        /// `a=` and a text.
        case text(String)
    }

    /// How a space is written.
    @nonexhaustive
    public enum SpaceEncoding: Hashable, Sendable {
        /// `%20`.
        case percent
        /// `+`; a plus is then `%2B`, whatever characters are allowed.
        case plus
    }

    /// The order of the names in a dictionary.
    @nonexhaustive
    public enum Order: Hashable, Sendable {
        /// By the order of `String`, after ``KeyEncoding``; equal names stay in their order.
        case sorted
        /// As given.
        case asGiven
    }

    /// The characters that are not percent-encoded.
    ///
    /// Controls, spaces, `"`, `#`, `%`, `&`, `<`, `>` and what is not ASCII are always encoded, and in names `=` too: they
    /// would change what the text means, or could not stand in a URL.
    public struct AllowedCharacters: Hashable, Sendable {
        /// One bit for each character of ASCII.
        private var low: UInt64 = 0
        private var high: UInt64 = 0

        /// Creates a set of the characters of a text.
        public init(_ characters: String) {
            for byte in characters.utf8 where 0x21...0x7E ~= byte && !"\"#%&<>".utf8.contains(byte) { insert(byte) }
        }

        /// Letters, digits and `-._~/?`: what AFNetworking leaves.
        public static let standard = AllowedCharacters(unreservedCharacters + "/?")
        /// Letters, digits and `-._~`: what RFC 3986 §2.3 calls unreserved.
        public static let unreserved = AllowedCharacters(unreservedCharacters)
        /// All that RFC 3986 §3.4 lets a query have, except `&` and, in names, `=`.
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

extension URLEncodedFormEncoder.FloatEncoding {
    func text(of number: Double, path: () -> String) throws(SerializationError) -> String {
        try Parameters.text(of: number, keepsFraction: self == .description, path: path)
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
        case .capitalized: name.prefix(1).uppercased() + name.dropFirst()
        case .uppercased: name.uppercased()
        case .lowercased: name.lowercased()
        case .custom(let encode): encode(name)
        }
    }

    /// The words in lower case: a capital letter begins one after a small letter or a digit, and the last capital of a row
    /// does when a small letter follows: `parseHTTPBody` is `parse`, `http`, `body`.
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
