// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// Which responses are taken as an answer, by status and media type.
///
/// | status | media type | body | result |
/// |---|---|---|---|
/// | acceptable | acceptable | any | passes |
/// | acceptable | another one, or none | empty | passes |
/// | acceptable | another one, or none | some | rejected for its type |
/// | another one | acceptable, or no body | any | rejected for its status |
/// | another one | another one, or none | some | rejected for both; the status is reported first |
public struct ResponseValidation: Hashable, Sendable {
    /// The statuses that are taken; nil for all.
    public var acceptableStatuses: Set<Int>?
    /// The media types that a body may have; nil for all, and for none at all.
    public var acceptableMediaTypes: [MediaTypePattern]?

    /// Creates a validation; statuses are 200 to 299 and media types are free unless said otherwise.
    public init(statuses: Set<Int>? = Self.successfulStatuses, mediaTypes: [MediaTypePattern]? = nil) {
        acceptableStatuses = statuses
        acceptableMediaTypes = mediaTypes
    }

    /// Takes every response.
    ///
    /// It is not called `none`, which would mean nil wherever a validation is optional.
    public static let anything = ResponseValidation(statuses: nil)
    /// Takes the statuses 200 to 299 with any media type.
    public static let statusOnly = ResponseValidation()
    /// Takes the statuses 200 to 299 with JSON: `application/json`, `text/json`, `text/javascript`, or a suffix `+json`.
    public static let json = ResponseValidation(
        mediaTypes: ["application/json", "text/json", "text/javascript", "+json"])

    /// Takes the statuses 200 to 299 with `application/x-plist`.
    public static let propertyList = ResponseValidation(mediaTypes: ["application/x-plist"])
    /// Takes the statuses 200 to 299 with XML: `application/xml`, `text/xml`, or a suffix `+xml`.
    public static let xml = ResponseValidation(mediaTypes: ["application/xml", "text/xml", "+xml"])

    /// The statuses 200 to 299.
    public static let successfulStatuses = Set(200...299)

    /// The same validation for any media type, and for bodies that claim none.
    public var anyMediaType: ResponseValidation { ResponseValidation(statuses: acceptableStatuses) }
    /// The same validation for any status.
    public var anyStatus: ResponseValidation { ResponseValidation(statuses: nil, mediaTypes: acceptableMediaTypes) }

    /// Throws a ``Rejection`` as ``SerializationError/rejected(_:)`` unless the response passes.
    public func validate(_ head: ResponseHead, _ body: Data) throws(SerializationError) {
        if let rejection = rejection(of: head, body) { throw .rejected(rejection) }
    }

    /// Why the response is rejected; nil when it passes.
    public func rejection(of head: ResponseHead, _ body: Data) -> Rejection? {
        let rejectsStatus = acceptableStatuses.map { !$0.contains(head.status.code) } ?? false
        let rejectsMediaType = !body.isEmpty && !acceptsMediaType(of: head)
        guard rejectsStatus || rejectsMediaType else { return nil }
        return Rejection(
            validation: self, rejectsStatus: rejectsStatus, rejectsMediaType: rejectsMediaType, head: head, body: body)
    }

    private func acceptsMediaType(of head: ResponseHead) -> Bool {
        guard let acceptableMediaTypes else { return true }
        guard let mediaType = head.mediaType else { return false }
        return acceptableMediaTypes.contains { $0.matches(mediaType) }
    }
}
