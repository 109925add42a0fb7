// SPDX-License-Identifier: MIT

// SerializationError
// ├── url          a string is not a valid http or https URL
// ├── parameters   parameters cannot be encoded
// ├── multipart    a multipart body cannot be created or sent
// ├── rejected     the response has an unexpected status or media type
// ├── emptyBody    the response has no body although a value was requested
// ├── text         the body is not valid text in its charset
// ├── json         the body is not valid JSON
// ├── propertyList the body is not a valid property list, or is rejected
// ├── xml          the body is not well-formed XML, or is rejected
// ├── decoding     the body is well-formed but does not match the requested type
// ├── jsonStream   a text of a stream of JSON texts cannot be read
// ├── parts        a multipart response cannot be read
// └── compound     none of several serializers could read the response

/// The reason why a request could not be created from values, or a value from a response.
@nonexhaustive
public indirect enum SerializationError: Error, Sendable {
    /// A string is not a valid http or https URL.
    case url(URLFailure)
    /// Parameters cannot be encoded.
    case parameters(ParametersFailure)
    /// A multipart body cannot be created or sent.
    case multipart(MultipartFailure)
    /// The response has an unexpected status or media type.
    case rejected(Rejection)
    /// The response has no body, although a value of the type `wanted` was requested.
    case emptyBody(status: Int, wanted: String)
    /// The body is not valid text in its charset, or the charset is unknown.
    case text(TextFailure)
    /// The body is not valid JSON.
    case json(JSONFailure)
    /// The body is not a valid property list, or is rejected as unsafe.
    case propertyList(PropertyListFailure)
    /// The body is not well-formed XML, or is rejected as unsafe.
    case xml(XMLFailure)
    /// The body is well-formed, but does not match the requested type.
    case decoding(DecodingFailure)
    /// A text of a stream of JSON texts, such as JSON lines, cannot be read.
    case jsonStream(JSONStreamFailure)
    /// A multipart response cannot be read.
    case parts(PartsFailure)
    /// None of several serializers could read the response; contains the error of each in order.
    case compound([any Error])

    /// A problem with a string for a URL.
    public enum URLFailure: Hashable, Sendable {
        /// The string is not a valid URL (RFC 3986), for the given reason.
        case malformed(String, reason: String)
        /// The scheme is neither http nor https.
        case scheme(String, url: String)
        /// The URL has no host.
        case noHost(String)
        /// The string is relative, and there is no base URL.
        case noBase(String)
    }

    /// The reason why parameters cannot be encoded.
    ///
    /// Paths have the form `user.tags[2]`.
    public enum ParametersFailure: Sendable {
        /// A number is NaN or infinite, which queries and JSON cannot represent.
        case notFinite(path: String)
        /// A date is outside of the years 1 to 9999, or not finite.
        case dateOutOfRange(path: String)
        /// Values are nested more deeply than the limit.
        case tooDeep(limit: Int)
        /// The outermost value is not a dictionary, which queries and forms require.
        case notADictionary
        /// A value is already encoded text, which JSON and property lists do not support.
        case rawText(path: String)
        /// The text of a query contains `#`, which would end it, or characters that are invalid in a URL.
        case rawQuery(String)
        /// A property list does not support the value, for the given reason.
        case notInPropertyList(path: String, reason: String)
        /// The text cannot be represented in the selected encoding.
        case textEncoding(path: String)
        /// The custom closure for queries threw the given error.
        case custom(any Error)
        /// The request would have two bodies, for example one from parameters and a form.
        case bodyPresent
        /// An `Encodable` value failed to encode itself.
        case encodable(path: String, reason: String, underlying: any Error)
    }

    /// A problem with a multipart body.
    public enum MultipartFailure: Hashable, Sendable {
        /// The form has no parts, so that it has no valid body (RFC 2046 §5.1).
        case noParts
        /// The boundary does not consist of 1 to 70 of the characters permitted by RFC 2046 §5.1.1.
        case boundary(String)
        /// The name of a part's header field is not a token (RFC 9110 §5.1).
        case headerName(String)
        /// The value of a part's header field contains CR, LF, NUL or another control character.
        case headerValue(name: String)
        /// The file cannot be opened or read, for the given reason.
        case file(path: String, reason: String)
        /// The file became shorter after it was appended.
        case fileShrank(path: String, declared: Int64, read: Int64)
        /// A sequence yielded fewer or more bytes than declared; `produced` is the number of bytes until this was
        /// detected.
        case partLength(part: String, declared: Int64, produced: Int64)
        /// A part that can be read only once would have to be read again, for a redirect or a retry.
        case partReadTwice(part: String)
        /// A part that a closure writes would have to be read.
        case partWritten(part: String)
        /// The body cannot be written to the file, for the given reason.
        case notWritten(path: String, reason: String)
        /// The length of the written file differs from the sum of the parts.
        case writtenLength(path: String, declared: Int64, written: Int64)
        /// The header fields of a call replace the `Content-Type`, which contains the boundary.
        case contentTypeReplaced
        /// The sum of the lengths of the parts exceeds 64 bits.
        case tooLong
    }

    /// A problem with decoding text.
    public enum TextFailure: Hashable, Sendable {
        /// The charset of the `Content-Type` is unknown.
        case unknownCharset(String)
        /// The body is invalid in the given charset.
        case invalidBytes(charset: String)
    }
}

extension SerializationError {
    /// The rejection of the response; `nil` for other errors. Of several serializers' rejections, the first because of
    /// the status is preferred.
    public var rejection: Rejection? {
        switch self {
        case .rejected(let rejection):
            return rejection
        case .compound(let errors):
            let rejections = errors.compactMap { ($0 as? SerializationError)?.rejection }
            return rejections.first(where: \.rejectsStatus) ?? rejections.first
        case .url, .parameters, .multipart, .emptyBody, .text, .json, .propertyList, .xml, .decoding, .jsonStream,
            .parts:
            return nil
        }
    }
}
