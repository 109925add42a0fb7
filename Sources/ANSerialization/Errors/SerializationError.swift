// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

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
///
/// The functions and serializers of this module throw it directly. A session throws it as the value of
/// `SessionError.serialization`.
@nonexhaustive
public indirect enum SerializationError: Error, Sendable {
    /// A string, or the target of a request, is not a valid http or https URL with a host in ASCII, or is relative
    /// without a base URL.
    case url(Failure)
    /// Parameters or a value for a JSON body cannot be encoded, or the request would have more than one body, such as a
    /// form and encoded parameters.
    case parameters(Failure)
    /// A multipart body cannot be created, written to a file or sent; or another body that is throttled, compressed, or
    /// written by `RequestBody.write(to:)` has a file that cannot be read, or another length than declared.
    ///
    /// If it occurs while a request is sent, the request fails with `TransportError.RequestBodyFailure.source`, which
    /// contains this error.
    case multipart(Failure)
    /// The response has a status or media type that the serializer's ``ResponseValidation`` does not accept; the
    /// rejection contains its head and body.
    case rejected(Rejection)
    /// The response has no body, or one that counts as empty by ``EmptyResponseRules``, although a value was requested.
    ///
    /// `status` is the status code of the response, and `wanted` the name of the requested type, such as `User`, or a
    /// description, such as `image`; for `url`, see ``Failure/url``.
    case emptyBody(status: Int, wanted: String, url: String? = nil)
    /// The body is not valid text in its charset, or the charset is unknown.
    ///
    /// It is also thrown for XML, except that invalid UTF-8 in XML is ``xml(_:)``.
    case text(Failure)
    /// The body is not valid JSON by RFC 8259 or what ``JSONResponseSerializer`` permits, is nested more than 512 levels deep (64
    /// in JSON5 that becomes a ``JSONValue``), or contains a number that is too large for a `Double`, or so small that it would become zero.
    case json(Failure)
    /// The body is not a valid property list, or is rejected as unsafe: it is nested more than 64 levels deep, contains
    /// itself, or expands excessively.
    case propertyList(Failure)
    /// The body is not well-formed XML, or is rejected as unsafe; or a delegate aborted parsing.
    ///
    /// A document is rejected if it declares entities, attributes, or a notation that lacks a public or a system
    /// identifier, is nested more than 256 levels deep, or has an element with more than 1,000 attributes.
    case xml(Failure)
    /// The body is well-formed, but does not match the requested type; or a decoder for another format than JSON and
    /// property lists threw an error.
    case decoding(Failure)
    /// A text of a stream of JSON texts, such as JSON lines, cannot be read: it is not valid JSON, does not match the
    /// requested type, is too long, was cut off, or does not follow a record separator.
    case jsonStream(JSONStreamFailure)
    /// A multipart response cannot be read: it has no valid boundary, is malformed or incomplete, or exceeds a limit;
    /// or its parts are read out of order.
    case parts(Failure)
    /// None of the serializers of a ``CompoundResponseSerializer`` could read the response; contains the error of each
    /// in order, and is empty if there were no serializers.
    case compound([any Error])
}

extension SerializationError {
    /// The rejection of the response by its status or media type, also one in ``compound(_:)``; `nil` for other errors.
    ///
    /// If a ``compound(_:)`` contains several rejections, it is the first one because of the status, or else the first
    /// one.
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

extension SerializationError: CustomStringConvertible, LocalizedError {
    /// The ``description``, never `nil`; Foundation returns it as `localizedDescription`.
    public var errorDescription: String? { description }

    /// A sentence in English that describes the failure and what to check.
    ///
    /// It may contain an excerpt of the response's body or of the parameters. The errors of
    /// ``SerializationError/compound(_:)`` are separated by slashes, and each is shortened to 500 bytes.
    public var description: String { sentence.printable }

    private var sentence: String {
        switch self {
        case .rejected(let rejection): rejection.description
        case .emptyBody(let status, let wanted, let url):
            "The response\(url.ofClause) with status \(status) has no body, but a value of type \(wanted) was requested. If that may happen, request "
                + "an optional: `.optional(…)` or `.decodable(Value?.self)`."
        case .url(let failure), .parameters(let failure), .multipart(let failure), .text(let failure),
            .json(let failure), .propertyList(let failure), .xml(let failure), .decoding(let failure),
            .parts(let failure):
            failure.description
        case .jsonStream(let failure): failure.description
        case .compound(let errors):
            "None of the serializers could read the response: "
                + errors.map { Excerpt.of(String(describing: $0), limit: 500) }.joined(separator: " / ")
        }
    }
}

extension SerializationError {
    /// A text of JSON lines or of a JSON text sequence (RFC 7464) that cannot be read: it is not valid JSON, does not
    /// match the requested type, is too long, was cut off, or does not follow a record separator.
    ///
    /// The ``description`` names the reason. The sequences that `ResponseBody.jsonLines(of:)` and `jsonSequence(of:)`
    /// return pass it to `onFailure`, or throw ``SerializationError/jsonStream(_:)`` if that is `nil`.
    public struct JSONStreamFailure: Sendable {
        /// The number of the line, or of the text of a sequence, counted from 1 including blank ones.
        ///
        /// For bytes that do not follow a record separator, it is that of the text before them, or 0.
        public var number: Int
        /// The bytes of the text; at most the first 120 if it is too long.
        ///
        /// The line ending after a line or a complete text of a sequence is removed, as is a byte order mark before the
        /// first line. A text of a sequence that was cut off, and bytes that do not follow a record separator, keep
        /// their line feeds.
        public var bytes: Data
        /// The reason for the failure.
        package var reason: Reason
        /// The URL of the response; see ``Failure/url``.
        package var url: String?

        /// The error of the decoder for a text that is not valid, usually ``SerializationError/json(_:)``, or does not
        /// match the requested type, ``SerializationError/decoding(_:)``; `nil` for a text that is too long, was cut
        /// off, or does not follow a record separator.
        public var underlying: SerializationError? {
            if case .invalid(let error) = reason { error } else { nil }
        }

        /// The reason why a text of a stream cannot be read.
        package enum Reason: Sendable {
            /// The text is not valid JSON, or does not match the requested type.
            case invalid(SerializationError)
            /// The text is longer than the limit in bytes.
            case tooLong(limit: Int)
            /// The text of a sequence was cut off (RFC 7464 §2.4).
            case truncated
            /// The bytes of a sequence do not follow a record separator (RFC 7464 §2.1).
            case unseparated
        }
    }
}

extension SerializationError.JSONStreamFailure: CustomStringConvertible {
    /// A sentence with the ``number`` of the text, the reason, an excerpt of the text, and the URL of the response if it
    /// is known.
    public var description: String {
        switch reason {
        case .invalid(let error): "Line or text \(number) of the stream\(url.ofClause): \(error)"
        case .tooLong(let limit):
            "Line or text \(number) of the stream\(url.ofClause) is longer than \(limit) bytes: “\(Excerpt.of(bytes))”; raise the limit."
        case .truncated: "Text \(number) of the sequence\(url.ofClause) was cut off: “\(Excerpt.of(bytes))”."
        case .unseparated:
            "Bytes after text \(number) of the sequence\(url.ofClause) do not follow a record separator: “\(Excerpt.of(bytes))”."
        }
    }
}

/// Shortens untrusted text and bytes for log messages.
package enum Excerpt {
    /// Returns the bytes around `offset` as printable text, with `…` at each end that was cut.
    package static func around(_ offset: Int, in bytes: some RandomAccessCollection<UInt8>, radius: Int = 40) -> String
    {
        let offset = min(max(offset, 0), bytes.count)
        let start = max(offset - radius, 0)
        let end = offset + min(radius, bytes.count - offset)
        let lower = bytes.index(bytes.startIndex, offsetBy: start)
        let upper = bytes.index(bytes.startIndex, offsetBy: end)
        return (start > 0 ? "…" : "") + printable(bytes[lower..<upper]) + (end < bytes.count ? "…" : "")
    }

    /// Returns the first bytes as printable text.
    static func of(_ bytes: some RandomAccessCollection<UInt8>, limit: Int = 120) -> String {
        around(0, in: bytes, radius: limit)
    }

    /// Returns the beginning of a string as printable text.
    static func of(_ string: String, limit: Int = 120) -> String {
        let bytes = Array(string.utf8.prefix(limit + 1))
        return around(0, in: bytes, radius: limit)
    }

    /// Returns the beginning of a malformed URL without user information, query and fragment, which may be secret.
    static func ofURL(_ string: String) -> String {
        let head = string.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        let rest = string.utf8[head.endIndex...]
        if let at = head.lastIndex(of: UInt8(ascii: "@")) {
            return of("…" + String(string[at..<head.endIndex]))
        }
        // The separator may be part of a password.
        guard !rest.contains(UInt8(ascii: "@")) else {
            return of(String(string[..<(head.firstIndex(of: UInt8(ascii: ":")) ?? head.startIndex)]) + ":…")
        }
        return of(String(string[..<head.endIndex]))
    }

    /// Returns the bytes as printable text, with invalid UTF-8 replaced by U+FFFD.
    private static func printable(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: bytes, as: UTF8.self).printable
    }
}
