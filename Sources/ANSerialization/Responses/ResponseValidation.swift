// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// The statuses and media types with which responses are accepted.
///
/// Each serializer has one as its `validation`, and `SessionManager.withResponse(for:validating:)` receives one as an
/// argument. The media type is that of the first `Content-Type`, without its parameters and regardless of case.
///
/// | status | media type | body | result |
/// |---|---|---|---|
/// | acceptable | acceptable | any | accepted |
/// | acceptable | other or missing | empty | accepted |
/// | acceptable | other or missing | not empty | rejected because of the media type |
/// | other | acceptable, or the body is empty | any | rejected because of the status |
/// | other | other or missing | not empty | rejected because of both; the message names the status first |
public struct ResponseValidation: Hashable, Sendable {
    /// The accepted statuses; 200 to 299 by default, `nil` for all. An empty set rejects every response.
    public var acceptableStatuses: Set<Int>?
    /// The accepted media types of a body that is not empty: `application/json` for one type, `text/*` or `*/*` for many,
    /// or `+json` for all types with that structured syntax suffix; `nil`, the default, for all, also for a body without
    /// one. An empty array rejects every body that is not empty.
    ///
    /// Matching ignores case and the parameters of the media type, such as `charset`. For suffixes see RFC 6838 §4.2.8:
    /// `application/problem+json` matches `+json`, but `application/json` does not. A body without a media type matches no
    /// pattern, not even `*/*`. Any other text matches only a media type equal to it, and text with parameters none.
    public var acceptableMediaTypes: [String]?

    /// Creates a validation.
    ///
    /// - Parameters:
    ///   - statuses: The accepted statuses; 200 to 299 by default, `nil` for all.
    ///   - mediaTypes: The accepted media types of a body that is not empty; `nil`, the default, for all.
    public init(statuses: Set<Int>? = Set(200...299), mediaTypes: [String]? = nil) {
        acceptableStatuses = statuses
        acceptableMediaTypes = mediaTypes
    }

    /// A validation that accepts every response.
    ///
    /// It is not named `none`, which would mean `nil` where an optional validation is expected.
    public static let anything = ResponseValidation(statuses: nil)
    /// A validation that accepts the statuses 200 to 299 with any media type, and bodies without one.
    public static let statusOnly = ResponseValidation()
    /// A validation that accepts the statuses 200 to 299 with JSON: `application/json`, `text/json`, `text/javascript`,
    /// and types with the suffix `+json`. An empty body is accepted with any media type.
    public static let json = ResponseValidation(
        mediaTypes: ["application/json", "text/json", "text/javascript", "+json"])

    /// A validation that accepts the statuses 200 to 299 with the media type `application/x-plist`. An empty body is
    /// accepted with any media type.
    public static let propertyList = ResponseValidation(mediaTypes: ["application/x-plist"])
    /// A validation that accepts the statuses 200 to 299 with XML: `application/xml`, `text/xml`, and types with the
    /// suffix `+xml`. An empty body is accepted with any media type.
    public static let xml = ResponseValidation(mediaTypes: ["application/xml", "text/xml", "+xml"])

    /// The successful statuses, 200 to 299 (RFC 9110 §15.3).
    package static let successfulStatuses = Set(200...299)

    /// A copy that accepts any media type, and bodies without one; its statuses are unchanged.
    package var anyMediaType: ResponseValidation { ResponseValidation(statuses: acceptableStatuses) }
    /// A copy that accepts any status; its media types are unchanged, so that a body of another media type is rejected.
    package var anyStatus: ResponseValidation { ResponseValidation(statuses: nil, mediaTypes: acceptableMediaTypes) }

    /// Throws ``SerializationError/rejected(_:)`` unless the response is accepted.
    package func validate(_ head: ResponseHead, _ body: Data) throws(SerializationError) {
        if let rejection = rejection(of: head, body) { throw .rejected(rejection) }
    }

    /// Returns the rejection of a response; `nil` if it is accepted.
    package func rejection(of head: ResponseHead, _ body: Data) -> Rejection? {
        rejection(of: head, body, checksMediaType: !body.isEmpty)
    }

    /// Returns the rejection of a response; `nil` if it is accepted.
    ///
    /// - Parameters:
    ///   - head: The head of the response.
    ///   - body: The body for the rejection.
    ///   - checksMediaType: Whether the media type must be acceptable.
    package func rejection(of head: ResponseHead, _ body: Data, checksMediaType: Bool) -> Rejection? {
        let rejectsStatus = acceptableStatuses.map { !$0.contains(head.status.code) } ?? false
        let rejectsMediaType = checksMediaType && !acceptsMediaType(of: head)
        guard rejectsStatus || rejectsMediaType else { return nil }
        return Rejection(
            validation: self, rejectsStatus: rejectsStatus, rejectsMediaType: rejectsMediaType, head: head, body: body)
    }

    private func acceptsMediaType(of head: ResponseHead) -> Bool {
        guard let acceptableMediaTypes else { return true }
        guard let mediaType = head.mediaType else { return false }
        return acceptableMediaTypes.contains { Self.matches($0, mediaType) }
    }

    /// Returns whether a pattern of ``acceptableMediaTypes`` matches a media type, which must not have parameters.
    package static func matches(_ pattern: String, _ mediaType: String) -> Bool {
        let (pattern, mediaType) = (pattern.lowercased(), mediaType.lowercased())
        if pattern == "*/*" { return true }
        if pattern.hasPrefix("+") { return mediaType.hasSuffix(pattern) }
        if pattern.hasSuffix("/*") { return mediaType.hasPrefix(pattern.dropLast()) }
        return mediaType == pattern
    }
}

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
    /// stream, and 1 MiB of a download to a file, as far as they arrive within a second. Content codings were decoded, unless the request disabled that.
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
    ///   ``SerializationError/emptyBody(status:wanted:url:)`` if it is empty or a single space, and the type has no empty
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
