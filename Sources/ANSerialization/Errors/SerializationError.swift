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
    /// Parameters cannot be encoded, or the request has a body already.
    case parameters(ParametersFailure)
    /// A multipart body cannot be created or sent.
    case multipart(MultipartFailure)
    /// The response has an unexpected status or media type; the rejection contains its head and body.
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

    /// A problem with a string for a URL: it is malformed, has another scheme, has no host, or is relative without a
    /// base.
    public struct URLFailure: Hashable, Sendable, CustomStringConvertible {
        /// The scheme that is neither http nor https, in lower case; `nil` for other problems.
        public let scheme: String?
        /// A sentence that describes the problem and what to check.
        public let description: String
    }

    /// The reason why parameters cannot be encoded. Failures are equal if their paths and descriptions are.
    public struct ParametersFailure: Equatable, Sendable, CustomStringConvertible {
        /// The path of the value, such as `user.tags[2]`, empty for the outermost one; `nil` if the failure does not
        /// concern one value.
        public let path: String?
        /// The error thrown by an `Encodable` value or by a closure of the program; `nil` for other failures.
        public let underlying: (any Error)?
        /// A sentence that describes the problem and what to check.
        public let description: String

        /// Whether two failures have the same path and description.
        public static func == (first: Self, second: Self) -> Bool {
            first.path == second.path && first.description == second.description
        }
    }

    /// A problem with a multipart body: a boundary, a header field, a file, a length, or the lack of parts.
    public struct MultipartFailure: Hashable, Sendable, CustomStringConvertible {
        /// A sentence that describes the problem and what to check.
        public let description: String
    }

    /// A problem with decoding text.
    public enum TextFailure: Hashable, Sendable {
        /// The given charset, from the `Content-Type` or the document itself, is unknown.
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
