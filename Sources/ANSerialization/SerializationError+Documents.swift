// SPDX-License-Identifier: MIT

// What can be wrong with the document in a response's body.

extension SerializationError {
    /// Where and why bytes are not JSON (RFC 8259).
    public struct JSONProblem: Hashable, Sendable {
        /// The reason.
        public var reason: Reason
        /// The offset of the offending byte.
        public var offset: Int
        /// The text around it.
        public var excerpt: String

        /// Why bytes are not JSON.
        public enum Reason: Hashable, Sendable {
            /// The text ended within a value.
            case unexpectedEnd
            /// This byte cannot stand here.
            case unexpectedByte(UInt8)
            /// Something follows the value.
            case trailingBytes
            /// A string is not valid UTF-8.
            case invalidUTF8
            /// A string has a wrong escape, or half of a surrogate pair.
            case invalidEscape
            /// A number has no finite double.
            case numberOutOfRange
            /// Arrays and objects are nested more deeply than the limit.
            case tooDeep(limit: Int)
            /// The outermost value is neither an array nor an object, and fragments are refused.
            case fragment
        }
    }

    /// Where and why a document does not fit a type.
    public struct DecodingProblem: Sendable {
        /// The type asked for.
        public var type: String
        /// The coding path, such as `users[3].name`; empty for the outermost value.
        public var path: String
        /// The decoder's own words.
        public var reason: String
        /// The text around the value at the path.
        public var excerpt: String
        /// The decoder's error, usually a `DecodingError`.
        public var underlying: any Error
    }

    /// Why bytes are not a property list that is read.
    public struct PropertyListProblem: Hashable, Sendable {
        /// The reason.
        public var reason: Reason
        /// The beginning of the text.
        public var excerpt: String

        /// Why bytes are not a property list that is read.
        public enum Reason: Hashable, Sendable {
            /// The bytes are neither a property list of XML nor of the binary format, or not all of one.
            case malformed
            /// Arrays and dictionaries are nested more deeply than the limit.
            case tooDeep(limit: Int)
            /// An object contains itself.
            case cycle
            /// A few bytes stand for very many values, or for very much text.
            case expansion
        }
    }

    /// Where and why bytes are not XML that is read.
    public struct XMLProblem: Hashable, Sendable {
        /// The reason.
        public var reason: Reason
        /// The line where the parser stopped, counted from 1, where it is known: that of the fault, or one soon after.
        public var line: Int?
        /// The text there, or the beginning of the document.
        public var excerpt: String

        /// Creates a problem.
        package init(reason: Reason, line: Int?, excerpt: String) {
            self.reason = reason
            self.line = line
            self.excerpt = excerpt
        }

        /// Why bytes are not XML that is read.
        public enum Reason: Hashable, Sendable {
            /// The document ends before its outermost element does.
            case unexpectedEnd
            /// The document is not well-formed; the number is libxml2's (`xmlParserErrors`).
            case malformed(code: Int)
            /// The document has a declaration of this kind: `ENTITY` or `ATTLIST`, which could stand for files or for very
            /// long texts, or a `NOTATION` without both identifiers, on which Foundation's parser crashes.
            case declaration(String)
            /// Elements are nested more deeply than the limit.
            case tooDeep(limit: Int)
            /// An element has more attributes than the limit.
            case tooManyAttributes(limit: Int)
            /// A delegate ended the parsing.
            case aborted
        }
    }

    /// Why a multipart response cannot be read.
    public enum PartsProblem: Hashable, Sendable {
        /// The `Content-Type` is not multipart.
        case notMultipart(contentType: String?)
        /// The `Content-Type` has no boundary, or one that RFC 2046 §5.1.1 does not allow.
        case boundary(String?)
        /// The body ended before the line that closes it.
        case unexpectedEnd
        /// A line of a part's header is not a field; its beginning is given.
        case header(String)
        /// Something is larger than its limit.
        case tooLarge(Limit, limit: Int)
        /// Two tasks read the same body at once, or a part was read after the next one had begun.
        case outOfTurn

        /// What has a limit.
        public enum Limit: Hashable, Sendable {
            /// The header of a part, in bytes.
            case header
            /// The number of parts.
            case parts
            /// The content of a part, in bytes.
            case part
            /// What stands before the first part, in bytes.
            case preamble
        }
    }
}
