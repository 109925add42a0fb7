// SPDX-License-Identifier: MIT

// SerializationError
// ├── url          a string is not a URL that can be requested
// ├── parameters   parameters cannot be encoded
// ├── multipart    a multipart body cannot be made or read
// ├── rejected     the response has a status or media type that was not asked for
// ├── emptyBody    the response has no body where a value was asked for
// ├── text         the body is not text in the charset that it claims
// ├── json         the body is not JSON
// ├── propertyList the body is not a property list
// ├── xml          the body is not XML, or XML that is refused
// ├── decoding     the body is of the format, but not of the type asked for
// ├── parts        a multipart response cannot be read
// └── compound     none of several serializers could make a value

/// Why a value could not be turned into a request, or a response into a value.
@nonexhaustive
public indirect enum SerializationError: Error, Sendable {
    /// A string is not a URL that can be requested.
    case url(URLProblem)
    /// Parameters cannot be encoded.
    case parameters(ParametersProblem)
    /// A multipart body cannot be made or read.
    case multipart(MultipartProblem)
    /// The response has a status or media type that was not asked for.
    case rejected(Rejection)
    /// The response has no body where a value of this type was asked for.
    case emptyBody(status: Int, wanted: String)
    /// The body is not text in the charset that it claims.
    case text(TextProblem)
    /// The body is not JSON.
    case json(JSONProblem)
    /// The body is not a property list, or one that is refused.
    case propertyList(PropertyListProblem)
    /// The body is not XML, or XML that is refused.
    case xml(XMLProblem)
    /// The body is of the format, but not of the type asked for.
    case decoding(DecodingProblem)
    /// A multipart response cannot be read.
    case parts(PartsProblem)
    /// None of several serializers could make a value; the error of each, in their order.
    case compound([any Error])

    /// What is wrong with the string for a URL.
    public enum URLProblem: Hashable, Sendable {
        /// The string cannot be read as a URL (RFC 3986), for this reason.
        case malformed(String, reason: String)
        /// The scheme is neither http nor https.
        case scheme(String, url: String)
        /// There is no host.
        case noHost(String)
        /// The string is relative and there is no base URL.
        case noBase(String)
    }

    /// Why parameters cannot be encoded.
    ///
    /// Paths read like `user.tags[2]`.
    public enum ParametersProblem: Sendable {
        /// NaN or an infinity has no form in queries or JSON.
        case notFinite(path: String)
        /// A date lies outside the years 1 to 9999, or is not finite.
        case dateOutOfRange(path: String)
        /// The value is nested more deeply than the limit.
        case tooDeep(limit: Int)
        /// Queries and forms need names, so the outermost value must be a dictionary.
        case notADictionary
        /// Text that is encoded already has no place in JSON and property lists.
        case rawText(path: String)
        /// The text for a query has `#`, which would end it, or is no text for a URL at all.
        case rawQuery(String)
        /// A property list cannot hold the value, for this reason.
        case notInPropertyList(path: String, reason: String)
        /// The text cannot be written in the encoding that was asked for.
        case textEncoding(path: String)
        /// The program's own closure for queries failed.
        case custom(any Error)
        /// The request has a body of its own, which the parameters would replace.
        case bodyPresent
        /// An `Encodable` value failed to encode itself.
        case encodable(path: String, reason: String, underlying: any Error)
    }

    /// What is wrong with a multipart body.
    public enum MultipartProblem: Hashable, Sendable {
        /// A form without parts has no valid body (RFC 2046 §5.1).
        case noParts
        /// The boundary is not 1 to 70 of the characters that RFC 2046 §5.1.1 allows.
        case boundary(String)
        /// A part's header name is not a token (RFC 9110 §5.1).
        case headerName(String)
        /// A part's header value has CR, LF, NUL or another control character.
        case headerValue(name: String)
        /// The file cannot be opened or read, for this reason.
        case file(path: String, reason: String)
        /// The file became shorter after it was appended.
        case fileShrank(path: String, declared: Int64, read: Int64)
        /// A part from a sequence yielded another number of bytes than was declared; produced are those up to the mistake.
        case partLength(part: String, declared: Int64, produced: Int64)
        /// A part from a sequence that can be read only once was to be read again, for a redirect or a retry.
        case partReadTwice(part: String)
        /// The body cannot be written to the file, for this reason.
        case notWritten(path: String, reason: String)
        /// The file did not become as long as the parts said.
        case writtenLength(path: String, declared: Int64, written: Int64)
        /// A call's own headers replace the `Content-Type`, which has the boundary.
        case contentTypeReplaced
        /// The lengths of the parts add up to more than 64 bits hold.
        case tooLong
    }

    /// Why bytes are not text.
    public enum TextProblem: Hashable, Sendable {
        /// The `Content-Type` names a charset that is not known here.
        case unknownCharset(String)
        /// Bytes are invalid in the charset that the `Content-Type` names.
        case invalidBytes(charset: String)
    }
}

extension SerializationError {
    /// The rejection, when the response was rejected; of several serializers the first one for the status, else the first.
    public var rejection: Rejection? {
        switch self {
        case .rejected(let rejection):
            return rejection
        case .compound(let errors):
            let rejections = errors.compactMap { ($0 as? SerializationError)?.rejection }
            return rejections.first(where: \.rejectsStatus) ?? rejections.first
        case .url, .parameters, .multipart, .emptyBody, .text, .json, .propertyList, .xml, .decoding, .parts:
            return nil
        }
    }
}
