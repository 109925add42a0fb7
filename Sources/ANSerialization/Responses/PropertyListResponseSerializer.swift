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
    /// The statuses and media types that are accepted; by default 200 to 299 with `application/x-plist`.
    public var validation: ResponseValidation
    /// The statuses with which the body may be empty; by default ``EmptyResponseRules/anyStatus``, any status.
    public var emptyResponses: EmptyResponseRules

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - validation: The statuses and media types that are accepted; by default 200 to 299 with
    ///     `application/x-plist`.
    ///   - emptyResponses: The statuses with which the body may be empty; any status by default.
    public init(validation: ResponseValidation = .propertyList, emptyResponses: EmptyResponseRules = .anyStatus) {
        self.validation = validation
        self.emptyResponses = emptyResponses
    }

    /// Returns the decoded value, or an empty dictionary for an empty body; the status and media type are not validated
    /// here.
    ///
    /// - Throws: ``SerializationError/propertyList(_:)`` for a body that is malformed, nested more than 64 levels deep,
    ///   contains itself, or expands excessively; ``SerializationError/decoding(_:)`` for the references of keyed
    ///   archives (`CF$UID`); ``SerializationError/emptyBody(status:wanted:)`` for an empty body that
    ///   ``emptyResponses`` does not permit.
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
