// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// Gives the body as a ``PropertyListValue``, from XML or the binary format; written `.propertyList`.
///
/// An empty body is an empty dictionary, and nil for `.optional(.propertyList)`; see ``emptyResponses``. To decode a type of
/// yours, write `.propertyList(User.self)`.
public struct PropertyListResponseSerializer: AdjustableResponseSerializer {
    /// The responses that it takes.
    public var validation: ResponseValidation
    /// When the body may be missing.
    public var emptyResponses: EmptyResponseRules

    /// Creates a serializer that takes `application/x-plist` unless said otherwise.
    public init(validation: ResponseValidation = .propertyList, emptyResponses: EmptyResponseRules = .anyStatus) {
        self.validation = validation
        self.emptyResponses = emptyResponses
    }

    /// Returns the value.
    ///
    /// - Throws: ``SerializationError/propertyList(_:)`` or ``SerializationError/emptyBody(status:wanted:)``.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> PropertyListValue {
        try DecodableResponseSerializer(
            PropertyListValue.self, decoder: PropertyListDecoder(), validation: validation,
            emptyResponses: emptyResponses
        ).decode(head, body)
    }

    /// Whether the body is missing and may be.
    public func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        emptyResponses.isBlank(body) && emptyResponses.allows(head.status.code)
    }
}
