// SPDX-License-Identifier: MIT

import ANHTTP

extension SerializationError {
    /// The facts of a problem with the values of a request, or with the document in a response's body.
    ///
    /// A fact that does not apply to the problem is `nil`. Excerpts are printable: control characters are replaced by
    /// spaces, bytes that are not UTF-8 by U+FFFD, and an ellipsis (`…`) marks each end that was cut.
    public struct Failure: Equatable, Sendable, CustomStringConvertible {
        /// The reason for the failure.
        package let reason: Reason
        /// The path of the value, such as `users[3].name`, or its name in a query or form, such as `user[tags][]`, for
        /// ``SerializationError/decoding(_:)`` and ``SerializationError/parameters(_:)``.
        ///
        /// It is empty for the outermost value, and if a coder threw an error without a coding path. If a member of a
        /// document is missing, it is the path of the object that lacks it. `nil` also for parameters if the failure
        /// does not concern one value.
        public package(set) var path: String?
        /// The offset in bytes of the error in a JSON document, counted from 0.
        ///
        /// It is that of the offending byte, of the number that is out of range, of the string that is not UTF-8, or of
        /// the end of an incomplete document. 0 if it is unknown, as with JSON5, and for an outermost value that is
        /// neither an array nor an object. For a text of a JSON stream, it is counted from the start of that text.
        public package(set) var offset: Int?
        /// The line where the parser of an XML document stopped, counted from 1: that of the error, or one soon after;
        /// `nil` if it is unknown.
        public package(set) var line: Int?
        /// The text around the problem in a document, at most 40 bytes on each side.
        ///
        /// For a value that does not match its type, it is the text around the value at the ``path``, or around the
        /// last value on the path that exists; in an XML property list, around the last name of the path that was
        /// found. If the place is unknown, it is the beginning of the document: at most 120 bytes with JSON5 and of a
        /// malformed property list, otherwise 40.
        public package(set) var excerpt: String?
        /// The charset of a body that is not text: the one that the serializer, the response's `Content-Type` or the
        /// document specifies, or else the one that was assumed.
        public package(set) var charset: String?
        /// The scheme of a URL that is neither http nor https, in lower case.
        public package(set) var scheme: String?
        /// The error that an `Encodable` or `Decodable` value, a coder or a closure of the program threw, usually an
        /// `EncodingError` or `DecodingError`.
        public package(set) var underlying: (any Error)?
        /// The URL of the response, without user information, query values and fragment.
        ///
        /// It is set when a session serializes a response, and for ``SerializationError/jsonStream(_:)`` and
        /// ``SerializationError/parts(_:)`` that a closure with a session's response throws. `nil` for requests and
        /// other documents: a ``Rejection`` or an event that the program decodes, a text of a JSON stream, the content
        /// of a part, and a response that the program passes to a serializer.
        public package(set) var url: String?

        /// Creates a failure with its reason and facts.
        package init(
            _ reason: Reason, path: String? = nil, offset: Int? = nil, line: Int? = nil, excerpt: String? = nil,
            charset: String? = nil, scheme: String? = nil, underlying: (any Error)? = nil
        ) {
            self.reason = reason
            self.path = path
            self.offset = offset
            self.line = line
            self.excerpt = excerpt
            self.charset = charset
            self.scheme = scheme
            self.underlying = underlying
        }

        /// Creates a failure that is described by a sentence, with the URL of the response, if it is known, between its
        /// parts.
        init(_ subject: String, _ problem: String = "", path: String? = nil) {
            self.init(.sentence(subject, problem), path: path)
        }

        /// Returns whether two failures have the same path and description; ``underlying`` is not compared.
        public static func == (first: Self, second: Self) -> Bool {
            first.path == second.path && first.description == second.description
        }

        func naming(_ url: String) -> Self {
            var failure = self
            failure.url = url
            return failure
        }
    }
}

extension SerializationError.Failure {
    /// A sentence with the reason and the facts, and what to check. Strings of the program and the response are
    /// shortened, and URLs have no user information, query values and fragment.
    public var description: String {
        let place = line.map { ", in line \($0)" } ?? ""
        let text = excerpt ?? ""
        switch reason {
        case .sentence(let subject, let problem):
            return subject + url.ofClause + problem
        case .unknownCharset:
            return "The charset “\(Excerpt.of(charset ?? ""))” of the response\(url.ofClause) is unknown; "
                + "request data, or specify the encoding."
        case .invalidBytes:
            return "The bytes of the response\(url.ofClause) are not valid in the charset "
                + "“\(Excerpt.of(charset ?? ""))”; request data, or specify the encoding."
        case .json(let reason):
            return "The body\(url.ofClause) is not JSON: \(reason) at byte \(offset ?? 0), near “\(text)”."
        case .propertyList(let reason):
            return "The body\(url.ofClause) \(reason). It begins with “\(text)”."
        case .xml(let reason):
            return "The body\(url.ofClause) \(reason)\(place). Near “\(text)”."
        case .mismatch(let type, let reason):
            let path = path.flatMap { $0.isEmpty ? nil : " at “\(Excerpt.of($0))”" } ?? ""
            return "The body\(url.ofClause) does not fit \(type)\(path): \(reason.printable) Near “\(text)”."
        }
    }

    /// The reason for a failure.
    package enum Reason: Hashable, Sendable {
        /// A reason that no code distinguishes.
        case sentence(String, String)
        /// The charset is not one of the names that ``TextEncoding/init(charset:)`` accepts, or not installed with glibc.
        case unknownCharset
        /// The bytes are invalid in the charset.
        case invalidBytes
        /// The document is not JSON.
        case json(JSONReason)
        /// The document is not a property list.
        case propertyList(PropertyListReason)
        /// The document is not XML.
        case xml(XMLReason)
        /// The document does not match the named type, for the reason in a sentence.
        case mismatch(type: String, String)
    }

    /// The reason for a syntax error in JSON.
    package enum JSONReason: Hashable, Sendable, CustomStringConvertible {
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
        /// A number is too large for a finite double, rounded to zero although it is not zero, or, for a decoder, has
        /// an exponent and more than 128 characters.
        case numberOutOfRange
        /// A string has more than 256 combining characters in a row, and would take too long to compare.
        case combiningRun
        /// Arrays and objects are nested more deeply than the limit.
        case tooDeep(limit: Int)
        /// The outermost value is neither an array nor an object, and fragments are not allowed.
        case fragment
        /// The text is neither JSON nor JSON5, which was allowed. The offset is 0.
        case malformedJSON5

        /// Whether the text may be JSON, but exceeds a limit.
        var isLimit: Bool {
            switch self {
            case .numberOutOfRange, .combiningRun, .tooDeep: true
            default: false
            }
        }

        package var description: String {
            switch self {
            case .unexpectedEnd: "the document is incomplete"
            case .unexpectedByte(let byte): "unexpected “\(Excerpt.of(CollectionOfOne(byte)))”"
            case .trailingBytes: "there is text after the value"
            case .invalidUTF8: "a string is not UTF-8"
            case .invalidEscape: "a string has an invalid escape"
            case .numberOutOfRange: "a number is too large, too small or too long"
            case .combiningRun: "a string has more than 256 combining characters in a row"
            case .tooDeep(let limit): "values are nested more than \(limit) levels deep"
            case .fragment:
                "the outermost value is neither an array nor an object, which requires the option allowsFragments,"
            case .malformedJSON5: "the document is not JSON5 either; the decoder does not say where,"
            }
        }
    }

    /// The reason why a property list cannot be decoded.
    package enum PropertyListReason: Hashable, Sendable, CustomStringConvertible {
        /// The bytes are neither an XML nor a binary property list, or an incomplete one.
        case malformed
        /// Arrays and dictionaries are nested more deeply than the limit.
        case tooDeep(limit: Int)
        /// An object contains itself.
        case cycle
        /// The decoded size is excessive compared with the number of bytes.
        case expansion

        package var description: String {
            switch self {
            case .malformed: "is not a property list"
            case .tooDeep(let limit): "is a property list that is nested more than \(limit) levels deep"
            case .cycle: "is a property list with an object that contains itself"
            case .expansion: "is a property list that expands to an excessive size"
            }
        }
    }

    /// The reason why an XML document cannot be parsed.
    package enum XMLReason: Hashable, Sendable, CustomStringConvertible {
        /// The document ends before or within its outermost element.
        case unexpectedEnd
        /// The document is not well-formed; the code is that of libxml2 (`xmlParserErrors`).
        case malformed(code: Int)
        /// The document has a declaration of the given kind: `ENTITY` or `ATTLIST`, which could insert files or very
        /// long texts, or a `NOTATION`, which crashes Foundation's parser.
        case declaration(String)
        /// The document has more bytes than the limit.
        case tooLarge(limit: Int)
        /// Elements are nested more deeply than the limit.
        case tooDeep(limit: Int)
        /// An element has more attributes than the limit.
        case tooManyAttributes(limit: Int)
        /// The document has more different names than the limit.
        case tooManyNames(limit: Int)
        /// A delegate aborted parsing.
        case aborted
        /// The document is not a valid Metalink document: it has this problem.
        case metalink(String)
        /// An XPath expression uses a prefix that the outermost element does not declare, or the axis `namespace`;
        /// Foundation crashes on both.
        case xPath(String)

        package var description: String {
            switch self {
            case .unexpectedEnd: "has no complete outermost element"
            case .malformed(let code): "is not well-formed XML (libxml2's error \(code))"
            case .declaration(let kind):
                "has a declaration <!\(Excerpt.of(kind))>, which is rejected: it could insert files or long texts, or "
                    + "crash the parser"
            case .tooLarge(let limit): "is XML of more than \(limit) bytes, the limit of libxml2"
            case .tooDeep(let limit): "is XML that is nested more than \(limit) levels deep"
            case .tooManyAttributes(let limit):
                "has more than \(limit) attributes in an element, or namespaces in scope"
            case .tooManyNames(let limit): "is XML with more than \(limit) different names"
            case .aborted: "was not parsed completely, because the delegate aborted parsing"
            case .metalink(let problem): "is not a Metalink document: it has \(problem)"
            case .xPath(let prefix): "has an outermost element that does not declare the prefix “\(prefix)” of an XPath"
            }
        }
    }
}

extension SerializationError {
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
        case .text(let failure): return .text(failure.naming(url))
        case .json(let failure): return .json(failure.naming(url))
        case .propertyList(let failure): return .propertyList(failure.naming(url))
        case .xml(let failure): return .xml(failure.naming(url))
        case .decoding(let failure): return .decoding(failure.naming(url))
        case .parts(let failure): return .parts(failure.naming(url))
        case .jsonStream(var failure):
            failure.url = url
            return .jsonStream(failure)
        case .emptyBody(let status, let wanted, _): return .emptyBody(status: status, wanted: wanted, url: url)
        case .compound(let errors):
            return .compound(errors.map { ($0 as? SerializationError)?.naming(url) ?? $0 })
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
