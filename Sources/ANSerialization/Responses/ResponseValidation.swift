// SPDX-License-Identifier: MIT

package import ANHTTP
package import FoundationEssentials
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
    /// The accepted media types of a body that is not empty; `nil`, the default, for all, also for a body without one.
    /// An empty array rejects every body that is not empty.
    public var acceptableMediaTypes: [MediaTypePattern]?

    /// Creates a validation.
    ///
    /// - Parameters:
    ///   - statuses: The accepted statuses; 200 to 299 by default, `nil` for all.
    ///   - mediaTypes: The accepted media types of a body that is not empty; `nil`, the default, for all.
    public init(statuses: Set<Int>? = Self.successfulStatuses, mediaTypes: [MediaTypePattern]? = nil) {
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
    public static let successfulStatuses = Set(200...299)

    /// A copy that accepts any media type, and bodies without one; its statuses are unchanged.
    public var anyMediaType: ResponseValidation { ResponseValidation(statuses: acceptableStatuses) }
    /// A copy that accepts any status; its media types are unchanged, so that a body of another media type is rejected.
    public var anyStatus: ResponseValidation { ResponseValidation(statuses: nil, mediaTypes: acceptableMediaTypes) }

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
        return acceptableMediaTypes.contains { $0.matches(mediaType) }
    }
}
