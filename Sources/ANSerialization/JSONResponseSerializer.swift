// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// Gives the body as a ``JSONValue``; written `.json`.
///
/// A body that is empty or exactly one space is ``JSONValue/null``, and nil for `.optional(.json)`; see
/// ``emptyResponses``.
public struct JSONResponseSerializer: AdjustableResponseSerializer {
    /// The responses that it takes.
    public var validation: ResponseValidation
    /// What is JSON; by default an array or an object by RFC 8259.
    public var options: JSONReadingOptions
    /// Where nulls are removed; nowhere by default.
    public var removesNulls: JSONNullPlaces
    /// When the body may be missing.
    public var emptyResponses: EmptyResponseRules

    /// Creates a serializer that takes JSON's media types unless said otherwise.
    public init(
        options: JSONReadingOptions = [], removingNulls places: JSONNullPlaces = [],
        validation: ResponseValidation = .json, emptyResponses: EmptyResponseRules = .json
    ) {
        self.options = options
        self.removesNulls = places
        self.validation = validation
        self.emptyResponses = emptyResponses
    }

    /// Returns the value.
    ///
    /// - Throws: ``SerializationError/json(_:)`` with the offset and the text there, or
    ///   ``SerializationError/emptyBody(status:wanted:)``.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> JSONValue {
        guard !emptyResponses.isBlank(body) else {
            return try emptyResponses.emptyValue(JSONValue.self, status: head.status.code)
        }
        return try JSONParser.parse(body, options: options).removingNulls(from: removesNulls)
    }

    /// Whether the body is missing and may be.
    public func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        emptyResponses.isBlank(body) && emptyResponses.allows(head.status.code)
    }
}
