// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// A serializer that decodes the body as a ``PropertyListValue``, from XML or the binary format; available as
/// `.propertyList`.
///
/// By default an empty body results in an empty dictionary, and in `nil` for `.optional(.propertyList)`; see
/// ``emptyResponses``. To decode a type of your own, use `.propertyList(User.self)`.
public struct PropertyListResponseSerializer: AdjustableResponseSerializer, EmptyAcceptingSerializer {
    /// The statuses and media types that are accepted.
    public var validation: ResponseValidation
    /// The statuses with which the body may be empty.
    public var emptyResponses: EmptyResponseRules

    /// Creates a serializer, by default for the media type `application/x-plist`.
    public init(validation: ResponseValidation = .propertyList, emptyResponses: EmptyResponseRules = .anyStatus) {
        self.validation = validation
        self.emptyResponses = emptyResponses
    }

    /// Returns the decoded value.
    ///
    /// - Throws: ``SerializationError/propertyList(_:)`` for a malformed or unsafe body,
    ///   ``SerializationError/emptyBody(status:wanted:)`` for an empty body that the rules do not permit.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> PropertyListValue {
        try DecodableResponseSerializer(
            PropertyListValue.self, decoder: PropertyListDecoder(), validation: validation,
            emptyResponses: emptyResponses
        ).decode(head, body)
    }

    /// Returns whether the body is empty and the status permits that.
    package func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        emptyResponses.isBlank(body) && emptyResponses.allows(head.status.code)
    }
}
