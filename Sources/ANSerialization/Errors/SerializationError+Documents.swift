// SPDX-License-Identifier: MIT

import ANHTTP

// The problems with the document in a response's body.

extension SerializationError {
    /// A JSON document that is malformed (RFC 8259), nested more than 512 levels deep, contains a number that is too
    /// large or too small for a `Double`, or is not permitted by the ``JSONReadingOptions``.
    ///
    /// The ``description`` names the reason.
    public struct JSONFailure: Hashable, Sendable {
        /// The reason for the error.
        package var reason: Reason
        /// The offset in bytes of the error in the document, counted from 0.
        ///
        /// It is that of the offending byte, of the number that is out of range, of the string that is not UTF-8, or of
        /// the end of an incomplete document. 0 if it is unknown, as with JSON5, and for an outermost value that is
        /// neither an array nor an object. For a text of a JSON stream, it is counted from the start of that text.
        public var offset: Int
        /// The text around the ``offset``, at most 40 bytes on each side; with JSON5 the beginning of the document, at
        /// most 120 bytes.
        ///
        /// Control characters are replaced by spaces, and bytes that are not UTF-8 by U+FFFD. An ellipsis (`…`) marks
        /// each end that was cut.
        public var excerpt: String
        /// The URL of the response; see ``DecodingFailure/url``.
        package var url: String?

        /// The reason for a syntax error in JSON.
        package enum Reason: Hashable, Sendable {
            /// The text ends within a value.
            case unexpectedEnd
            /// The given byte is not permitted at this position.
            case unexpectedByte(UInt8)
            /// There is text after the value.
            case trailingBytes
            /// A string is not valid UTF-8.
            case invalidUTF8
            /// A string contains an invalid escape, or an unpaired surrogate.
            case invalidEscape
            /// A number is too large for a finite double, or rounded to zero although it is not zero.
            case numberOutOfRange
            /// Arrays and objects are nested more deeply than the limit.
            case tooDeep(limit: Int)
            /// The outermost value is neither an array nor an object, and fragments are not allowed.
            case fragment
            /// The text is neither JSON nor JSON5, which was allowed. The offset is 0.
            case malformedJSON5
        }
    }

    /// A mismatch between a document and the type that it was decoded as, or any error of a decoder for another format
    /// than JSON and property lists.
    public struct DecodingFailure: Sendable {
        /// The name of the requested type, such as `Array<User>`.
        public var type: String
        /// The coding path of the value, such as `users[3].name`; empty for the outermost value, or if the decoder gave
        /// none. If a member is missing, it is the path of the object that lacks it.
        public var path: String
        /// The reason as a sentence, shortened to 300 bytes: usually the description of the `DecodingError`, the name
        /// of the missing member, or the description of another error of the decoder.
        public var reason: String
        /// The text around the value at the ``path``, at most 40 bytes on each side, or around the last value on the
        /// path that exists.
        ///
        /// In an XML property list, it is the text around the last name of the path that was found. It is the beginning
        /// of the document, at most 40 bytes, if the value cannot be located, as in JSON5, binary property lists and
        /// other formats. Control characters are replaced by spaces, and bytes that are not UTF-8 by U+FFFD. An
        /// ellipsis (`…`) marks each end that was cut.
        public var excerpt: String
        /// The error of the decoder, usually a `DecodingError`, with its own coding path and description.
        public var underlying: any Error
        /// The URL of the response, without user information, query values and fragment.
        ///
        /// It is set when a session serializes a response, and for the errors ``SerializationError/jsonStream(_:)`` and
        /// ``SerializationError/parts(_:)`` that a closure with a session's response throws. `nil` for other documents:
        /// a ``Rejection`` or an event that the program decodes, a text of a JSON stream, the content of a part, and a
        /// response that the program passes to a serializer.
        public package(set) var url: String?
    }

    /// A property list that is malformed, nested more than 64 levels deep, contains itself, or expands excessively.
    ///
    /// The ``description`` names the reason.
    public struct PropertyListFailure: Hashable, Sendable {
        /// The reason for the failure.
        package var reason: Reason
        /// The beginning of the property list as text, at most 120 bytes; binary data is not readable.
        ///
        /// Control characters are replaced by spaces, and bytes that are not UTF-8 by U+FFFD. An ellipsis (`…`) follows
        /// if the end was cut.
        public var excerpt: String
        /// The URL of the response; see ``DecodingFailure/url``.
        package var url: String?

        /// The reason why a property list cannot be decoded.
        package enum Reason: Hashable, Sendable {
            /// The bytes are neither an XML nor a binary property list, or an incomplete one.
            case malformed
            /// Arrays and dictionaries are nested more deeply than the limit.
            case tooDeep(limit: Int)
            /// An object contains itself.
            case cycle
            /// The decoded size is excessive compared with the number of bytes.
            case expansion
        }
    }

    /// An XML document that is malformed, incomplete or rejected as unsafe, or whose parsing a delegate aborted.
    ///
    /// The ``description`` names the reason, with libxml2's error code (`xmlParserErrors`) for a malformed document.
    public struct XMLFailure: Hashable, Sendable {
        /// The reason for the failure.
        package var reason: Reason
        /// The line where the parser stopped, counted from 1: that of the error, or one soon after; `nil` if it is
        /// unknown.
        public var line: Int?
        /// The text around the place where the parser stopped, at most 40 bytes on each side; the beginning of the
        /// document, at most 40 bytes, if ``line`` is `nil`.
        ///
        /// It is an excerpt of the document in UTF-8. Control characters are replaced by spaces, and bytes that are not
        /// UTF-8 by U+FFFD. An ellipsis (`…`) marks each end that was cut.
        public var excerpt: String
        /// The URL of the response; see ``DecodingFailure/url``.
        package var url: String?

        /// Creates a failure with its reason and location.
        package init(reason: Reason, line: Int?, excerpt: String) {
            self.reason = reason
            self.line = line
            self.excerpt = excerpt
        }

        /// The reason why an XML document cannot be parsed.
        package enum Reason: Hashable, Sendable {
            /// The document ends before or within its outermost element.
            case unexpectedEnd
            /// The document is not well-formed; the code is that of libxml2 (`xmlParserErrors`).
            case malformed(code: Int)
            /// The document has a declaration of the given kind: `ENTITY` or `ATTLIST`, which could insert files or
            /// very long texts, or a `NOTATION`, which crashes Foundation's parser.
            case declaration(String)
            /// The document has more bytes than the limit.
            case tooLarge(limit: Int)
            /// Elements are nested more deeply than the limit.
            case tooDeep(limit: Int)
            /// An element has more attributes than the limit.
            case tooManyAttributes(limit: Int)
            /// A delegate aborted parsing.
            case aborted
            /// An XPath expression uses a prefix that the outermost element does not declare, or the axis `namespace`;
            /// Foundation crashes on both.
            case xPath(String)
        }
    }

    /// A problem with reading a multipart response: its boundary, a limit, its syntax, or the order of reading.
    public struct PartsFailure: Hashable, Sendable, CustomStringConvertible {
        private let subject: String
        private let problem: String
        /// The URL of the response; see ``DecodingFailure/url``.
        package var url: String?

        /// Creates a failure whose description is the two texts, with the URL of the response between them.
        fileprivate init(_ subject: String, _ problem: String) {
            (self.subject, self.problem) = (subject, problem)
        }

        /// A sentence that describes the problem and what to check, with the URL of the response if it is known.
        public var description: String { subject + url.ofClause + problem }
    }

    /// Whether the error concerns a body that is read as it arrives.
    package var isOfStream: Bool {
        switch self {
        case .jsonStream, .parts: true
        case .url, .parameters, .multipart, .rejected, .emptyBody, .text, .json, .propertyList, .xml, .decoding,
            .compound:
            false
        }
    }

    /// Returns the error with the URL of the response whose document could not be read.
    package func naming(_ url: String) -> SerializationError {
        switch self {
        case .json(var failure):
            failure.url = url
            return .json(failure)
        case .decoding(var failure):
            failure.url = url
            return .decoding(failure)
        case .propertyList(var failure):
            failure.url = url
            return .propertyList(failure)
        case .xml(var failure):
            failure.url = url
            return .xml(failure)
        case .compound(let errors):
            return .compound(errors.map { ($0 as? SerializationError)?.naming(url) ?? $0 })
        case .emptyBody(let status, let wanted, _):
            return .emptyBody(status: status, wanted: wanted, url: url)
        case .text(var failure):
            failure.url = url
            return .text(failure)
        case .jsonStream(var failure):
            failure.url = url
            return .jsonStream(failure)
        case .parts(var failure):
            failure.url = url
            return .parts(failure)
        case .url, .parameters, .multipart, .rejected:
            // The first three concern a request, and a rejection has the response's head.
            return self
        }
    }
}

extension Optional<String> {
    /// The URL of a body as part of a sentence, after a space; empty for `nil`.
    var ofClause: String { map { " of \($0)" } ?? "" }
}

extension SerializationError.JSONFailure: CustomStringConvertible {
    /// A sentence with the reason, the ``offset``, the ``excerpt``, and the URL of the response if it is known.
    ///
    /// The URL has no user information, query values and fragment.
    public var description: String {
        "The body\(url.ofClause) is not JSON: \(reason.description) at byte \(offset), near “\(excerpt)”."
    }
}

extension SerializationError.JSONFailure.Reason: CustomStringConvertible {
    /// The reason as part of a sentence.
    public var description: String {
        switch self {
        case .unexpectedEnd: "the document is incomplete"
        case .unexpectedByte(let byte): "unexpected “\(Excerpt.of(CollectionOfOne(byte)))”"
        case .trailingBytes: "there is text after the value"
        case .invalidUTF8: "a string is not UTF-8"
        case .invalidEscape: "a string has an invalid escape"
        case .numberOutOfRange: "a number is too large or too small for a double"
        case .tooDeep(let limit): "values are nested more than \(limit) levels deep"
        case .fragment:
            "the outermost value is neither an array nor an object, which requires the option allowsFragments,"
        case .malformedJSON5: "the document is not JSON5 either; the decoder does not say where,"
        }
    }
}

extension SerializationError.DecodingFailure: CustomStringConvertible {
    /// A sentence with the ``type``, the ``path``, the ``reason``, the ``excerpt``, and the ``url`` if it is known.
    public var description: String {
        "The body\(url.ofClause) does not fit \(type)\(path.isEmpty ? "" : " at “\(Excerpt.of(path))”"): \(reason.printable) Near “\(excerpt)”."
    }
}

extension SerializationError.PropertyListFailure: CustomStringConvertible {
    /// A sentence with the reason, the ``excerpt``, and the URL of the response if it is known.
    ///
    /// The URL has no user information, query values and fragment.
    public var description: String {
        let reason =
            switch reason {
            case .malformed: "is not a property list"
            case .tooDeep(let limit): "is a property list that is nested more than \(limit) levels deep"
            case .cycle: "is a property list with an object that contains itself"
            case .expansion: "is a property list that expands to an excessive size"
            }
        return "The body\(url.ofClause) \(reason). It begins with “\(excerpt)”."
    }
}

extension SerializationError.XMLFailure: CustomStringConvertible {
    /// A sentence with the reason, the ``excerpt``, and the ``line`` and the URL of the response if they are known.
    ///
    /// The URL has no user information, query values and fragment.
    public var description: String {
        let reason =
            switch reason {
            case .unexpectedEnd: "has no complete outermost element"
            case .malformed(let code): "is not well-formed XML (libxml2's error \(code))"
            case .declaration(let kind):
                "has a declaration <!\(Excerpt.of(kind))>, which is rejected: it could insert files or long texts, or "
                    + "crash the parser"
            case .tooLarge(let limit): "is XML of more than \(limit) bytes, the limit of libxml2"
            case .tooDeep(let limit): "is XML that is nested more than \(limit) levels deep"
            case .tooManyAttributes(let limit):
                "has more than \(limit) attributes in an element, or namespaces in scope"
            case .aborted: "was not parsed completely, because the delegate aborted parsing"
            case .xPath(let prefix): "has an outermost element that does not declare the prefix “\(prefix)” of an XPath"
            }
        return "The body\(url.ofClause) \(reason)\(line.map { ", in line \($0)" } ?? ""). Near “\(excerpt)”."
    }
}

extension SerializationError.PartsFailure {
    /// Creates the failure of a response whose media type is not multipart.
    package static func notMultipart(contentType: String?) -> Self {
        Self("The response", " is not multipart: its media type is \(contentType.map { Excerpt.of($0) } ?? "missing").")
    }

    /// Creates the failure of a `Content-Type` without a boundary, or with an invalid one.
    package static func boundary(_ boundary: String?) -> Self {
        Self(
            "The multipart response",
            " has \(boundary.map { "the invalid boundary “\(Excerpt.of($0))”" } ?? "no boundary")."
        )
    }

    /// The failure of a body that ended before the closing delimiter.
    package static let unexpectedEnd = Self(
        "The multipart response", " ended before its closing delimiter; it may be truncated.")

    /// Creates the failure of a line of a part's header, whose beginning is given, that is not a header field.
    package static func header(_ line: String) -> Self {
        Self("A part of the multipart response", " has a malformed header line: “\(Excerpt.of(line))”.")
    }

    /// Creates the failure of exceeding a limit of ``MultipartLimits``.
    package static func tooLarge(_ exceeded: Limit, limit: Int) -> Self {
        switch exceeded {
        case .header:
            Self(
                "A part's header in the multipart response",
                " has more than \(limit) bytes; raise the limit if that is "
                    + "expected.")
        case .fields:
            Self("A part's header in the multipart response", " has more than \(limit) fields.")
        case .parts:
            Self("The multipart response", " has more than \(limit) parts; raise the limit if that is expected.")
        case .part:
            Self(
                "A part of the multipart response",
                " has more than \(limit) bytes; raise the limit if that is expected.")
        case .preamble:
            Self("The multipart response", " has no part within its first \(limit) bytes; check its boundary.")
        }
    }

    /// The failure of two tasks that read the same body concurrently, or of reading a part after the next one was
    /// requested.
    package static let outOfTurn = Self(
        "The parts of a multipart response", " must be read in order, by one task: read a part before the next one.")

    /// A limit of ``MultipartLimits``.
    package enum Limit: Hashable, Sendable {
        /// The size of a part's header in bytes.
        case header
        /// The number of fields of a part's header, which cannot be raised.
        case fields
        /// The number of parts.
        case parts
        /// The size of a part's content in bytes.
        case part
        /// The number of bytes before the first part.
        case preamble
    }
}
