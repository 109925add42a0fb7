// SPDX-License-Identifier: MIT

extension SerializationError.JSONFailure: CustomStringConvertible {
    /// A sentence with the reason, the offset and an excerpt.
    public var description: String {
        "The body is not JSON: \(reason.description) at byte \(offset), near “\(excerpt)”."
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
    /// A sentence with the type, the path, the reason and an excerpt.
    public var description: String {
        "The body does not fit \(type)\(path.isEmpty ? "" : " at “\(Excerpt.of(path))”"): \(reason) Near “\(excerpt)”."
    }
}

extension SerializationError.PropertyListFailure: CustomStringConvertible {
    /// A sentence with the reason and an excerpt.
    public var description: String {
        let reason =
            switch reason {
            case .malformed: "is not a property list"
            case .tooDeep(let limit): "is a property list that is nested more than \(limit) levels deep"
            case .cycle: "is a property list with an object that contains itself"
            case .expansion: "is a property list that expands to an excessive size"
            }
        return "The body \(reason). It begins with “\(excerpt)”."
    }
}

extension SerializationError.XMLFailure: CustomStringConvertible {
    /// A sentence with the reason, the line and an excerpt.
    public var description: String {
        let reason =
            switch reason {
            case .unexpectedEnd: "ends within its outermost element"
            case .malformed(let code): "is not well-formed XML (libxml2's error \(code))"
            case .declaration(let kind):
                "has a declaration <!\(Excerpt.of(kind))>, which is rejected: it could insert files or long texts, or "
                    + "crash the parser"
            case .tooDeep(let limit): "is XML that is nested more than \(limit) levels deep"
            case .tooManyAttributes(let limit): "has an element with more than \(limit) attributes"
            case .aborted: "was not parsed completely, because the delegate aborted parsing"
            }
        return "The body \(reason)\(line.map { ", in line \($0)" } ?? ""). Near “\(excerpt)”."
    }
}

extension SerializationError.PartsFailure: CustomStringConvertible {
    /// A sentence that describes the problem and what to check.
    public var description: String {
        switch self {
        case .notMultipart(let type):
            "The response is not multipart: its media type is \(type.map { Excerpt.of($0) } ?? "missing")."
        case .boundary(let boundary):
            "The multipart response has \(boundary.map { "the invalid boundary “\(Excerpt.of($0))”" } ?? "no boundary")."
        case .unexpectedEnd: "The multipart response ended before its closing delimiter; it may be truncated."
        case .header(let line): "A part of the multipart response has a malformed header line: “\(Excerpt.of(line))”."
        case .tooLarge(.header, let limit):
            "A part's header in the multipart response has more than \(limit) bytes; raise the limit if that is expected."
        case .tooLarge(.parts, let limit):
            "The multipart response has more than \(limit) parts; raise the limit if that is expected."
        case .tooLarge(.part, let limit):
            "A part of the multipart response has more than \(limit) bytes; raise the limit if that is expected."
        case .tooLarge(.preamble, let limit):
            "The multipart response has no part within its first \(limit) bytes; check its boundary."
        case .outOfTurn:
            "The parts of a multipart response must be read in order, by one task: read a part before the next one."
        }
    }
}
