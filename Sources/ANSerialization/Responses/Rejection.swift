// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// A response that a ``ResponseValidation`` rejected, including the body, in which APIs usually explain the error.
///
/// ```swift
/// } catch SessionError.serialization(.rejected(let rejection)) {
///     let problem = try rejection.decoded(as: Problem.self)
/// ```
///
/// A session throws it as shown, or within `SessionError.interrupted` for a download that can be resumed;
/// `SessionError.rejection` returns it in both cases. ``ResponseSerializer/value(of:_:validation:)`` throws
/// ``SerializationError/rejected(_:)`` without a `SessionError` around it.
public struct Rejection: Sendable {
    /// The validation that rejected the response, with the statuses and media types that it accepts.
    public let validation: ResponseValidation
    /// Whether the status is not one of those accepted. The media type may be rejected as well.
    public let rejectsStatus: Bool
    /// Whether the body has a media type that is not accepted, or none; `false` for an empty body, except where
    /// an event stream was expected.
    public let rejectsMediaType: Bool
    /// The head of the response, with its status and header fields.
    public let head: ResponseHead
    /// The body of the response: complete if it was collected in memory; otherwise its first bytes, at most 64 KiB of a
    /// stream, and 1 MiB of a download to a file. Content codings were decoded, unless the request disabled that.
    public let body: Data

    /// The status code of the response.
    package var status: Int { head.status.code }
    /// The media type of the response, in lower case and without parameters; `nil` without one.
    package var mediaType: String? { head.mediaType }

    /// Returns the body decoded as a type, such as an API's error document, regardless of the status and media type.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder; `nil`, the default, for the session's for JSON, or for a response of no session one
    ///     that reads dates from ISO 8601 text. See ``JSONCoding``.
    /// - Throws: ``SerializationError/json(_:)`` or another error of the decoder's format if the ``body`` is malformed
    ///   or cut off; ``SerializationError/decoding(_:)`` if it does not match the type;
    ///   ``SerializationError/emptyBody(status:wanted:)`` if it is empty or a single space, and the type has no empty
    ///   value such as `nil`.
    public func decoded<Value: Decodable & Sendable>(
        as type: Value.Type, decoder: (any ResponseDecoder)? = nil
    ) throws(SerializationError) -> Value {
        try DecodableResponseSerializer(type, decoder: decoder).decode(head, body)
    }

    /// Returns the value of a serializer for the response, regardless of its status and media type, such as
    /// `try rejection.value(as: .string)`.
    ///
    /// - Parameter serializer: The serializer, whose own validation is not applied; the children of a
    ///   ``CompoundResponseSerializer`` apply theirs.
    /// - Throws: The error of the serializer, usually a ``SerializationError``.
    public func value<Serializer: ResponseSerializer>(as serializer: Serializer) throws -> Serializer.Output {
        try serializer.serialize(head, body)
    }
}

extension Rejection: CustomStringConvertible {
    /// A sentence with the URL without user information, query values and fragment, the received and the accepted
    /// statuses or media types, the ``ANHTTP/ResponseHead/retryHistory`` if it is not empty, and the beginning of the
    /// body, at most 120 bytes with control characters replaced by spaces.
    public var description: String {
        var text = "The response of \(head.url.redactedDescription) was rejected: "
        if rejectsStatus {
            let phrase = head.status.reasonPhrase
            text +=
                "status \(status)\(phrase.isEmpty ? "" : " " + Excerpt.of(phrase)), expected \(wantedStatuses)"
        }
        if rejectsStatus, rejectsMediaType { text += "; and " }
        if rejectsMediaType {
            text += mediaType.map { "media type \(Excerpt.of($0))" } ?? "no media type"
            text += ", expected \(wantedMediaTypes)"
        }
        if head.retryHistory != RetryHistory() { text += " (\(head.retryHistory))" }
        return text + (body.isEmpty ? ". The body is empty." : ". The body begins with “\(Excerpt.of(body))”.")
    }

    /// The accepted statuses as ranges, such as `200–299, 304`.
    private var wantedStatuses: String {
        var ranges: [ClosedRange<Int>] = []
        for status in (validation.acceptableStatuses ?? []).sorted() {
            if let last = ranges.last, last.upperBound == status - 1 {
                ranges[ranges.count - 1] = last.lowerBound...status
            } else {
                ranges.append(status...status)
            }
        }
        guard !ranges.isEmpty else { return "no status" }
        return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)–\($0.upperBound)" }
            .joined(separator: ", ")
    }

    private var wantedMediaTypes: String {
        let types = validation.acceptableMediaTypes ?? []
        return types.isEmpty ? "no body" : types.map(\.description).joined(separator: ", ")
    }
}
