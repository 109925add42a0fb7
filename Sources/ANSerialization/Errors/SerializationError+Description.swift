// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

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
        case .url(let failure): failure.description
        case .parameters(let failure): failure.description
        case .multipart(let failure): failure.description
        case .rejected(let rejection): rejection.description
        case .emptyBody(let status, let wanted):
            "The response with status \(status) has no body, but a \(wanted) was requested. If that may happen, request "
                + "an optional: `.optional(…)` or `.decodable(Value?.self)`."
        case .text(let failure): failure.description
        case .json(let failure): failure.description
        case .propertyList(let failure): failure.description
        case .xml(let failure): failure.description
        case .decoding(let failure): failure.description
        case .jsonStream(let failure): failure.description
        case .parts(let failure): failure.description
        case .compound(let errors):
            "None of the serializers could read the response: "
                + errors.map { Excerpt.of(String(describing: $0), limit: 500) }.joined(separator: " / ")
        }
    }
}

extension SerializationError.TextFailure: CustomStringConvertible {
    /// A sentence with the charset that describes the problem and what to check.
    public var description: String {
        switch self {
        case .unknownCharset(let charset):
            "The charset “\(Excerpt.of(charset))” of the response is unknown; request data, or specify the encoding."
        case .invalidBytes(let charset):
            "The bytes of the response are not valid in the charset “\(Excerpt.of(charset))”; request data, or specify the "
                + "encoding."
        }
    }
}
