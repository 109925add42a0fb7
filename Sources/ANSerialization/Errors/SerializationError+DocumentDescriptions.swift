// SPDX-License-Identifier: MIT

import ANHTTP

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
        case .numberOutOfRange: "a number is too large"
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
        Self("The response is not multipart: its media type is \(contentType.map { Excerpt.of($0) } ?? "missing").")
    }

    /// Creates the failure of a `Content-Type` without a boundary, or with an invalid one.
    package static func boundary(_ boundary: String?) -> Self {
        Self(
            "The multipart response has \(boundary.map { "the invalid boundary “\(Excerpt.of($0))”" } ?? "no boundary")."
        )
    }

    /// The failure of a body that ended before the closing delimiter.
    package static let unexpectedEnd = Self(
        "The multipart response ended before its closing delimiter; it may be truncated.")

    /// Creates the failure of a line of a part's header, whose beginning is given, that is not a header field.
    package static func header(_ line: String) -> Self {
        Self("A part of the multipart response has a malformed header line: “\(Excerpt.of(line))”.")
    }

    /// Creates the failure of exceeding a limit of ``MultipartLimits``.
    package static func tooLarge(_ exceeded: Limit, limit: Int) -> Self {
        switch exceeded {
        case .header:
            Self(
                "A part's header in the multipart response has more than \(limit) bytes; raise the limit if that is "
                    + "expected.")
        case .parts:
            Self("The multipart response has more than \(limit) parts; raise the limit if that is expected.")
        case .part:
            Self("A part of the multipart response has more than \(limit) bytes; raise the limit if that is expected.")
        case .preamble:
            Self("The multipart response has no part within its first \(limit) bytes; check its boundary.")
        }
    }

    /// The failure of two tasks that read the same body concurrently, or of reading a part after the next one was
    /// requested.
    package static let outOfTurn = Self(
        "The parts of a multipart response must be read in order, by one task: read a part before the next one.")

    private init(_ description: String) {
        self.init(description: description)
    }

    /// A limit of ``MultipartLimits``.
    package enum Limit: Hashable, Sendable {
        /// The size of a part's header in bytes.
        case header
        /// The number of parts.
        case parts
        /// The size of a part's content in bytes.
        case part
        /// The number of bytes before the first part.
        case preamble
    }
}
