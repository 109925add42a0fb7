// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// A serializer that parses the body as a ``JSONValue``, available as `.json`.
///
/// By default an empty body, or one of exactly one space, results in ``JSONValue/null``, and in `nil` for
/// `.optional(.json)`; see ``emptyResponses``.
public struct JSONResponseSerializer: AdjustableResponseSerializer, EmptyAcceptingSerializer {
    /// The statuses and media types that are accepted; by default those of ``ResponseValidation/json``.
    public var validation: ResponseValidation
    /// The accepted extensions of JSON; by default only arrays and objects by RFC 8259 are accepted.
    package var options: Options
    /// The statuses with which the body may be empty, and whether a single space counts as empty; by default
    /// ``EmptyResponseRules/json``, any status and a space.
    public var emptyResponses: EmptyResponseRules

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - options: The accepted extensions of JSON; by default only arrays and objects by RFC 8259 are accepted.
    ///   - validation: The statuses and media types that are accepted; by default 200 to 299 with the media types of
    ///     JSON.
    ///   - emptyResponses: The statuses with which the body may be empty; by default any status, and a single space
    ///     counts as empty.
    public init(
        options: Options = [], validation: ResponseValidation = .json,
        emptyResponses: EmptyResponseRules = .json
    ) {
        self.options = options
        self.validation = validation
        self.emptyResponses = emptyResponses
    }

    /// Returns the parsed value, or ``JSONValue/null`` for an empty body; the status and
    /// media type are not validated here.
    ///
    /// - Throws: ``SerializationError/json(_:)`` for a body that is malformed, nested more than 512 levels deep,
    ///   contains a number that is too large or too small for a `Double`, or is, without ``JSONResponseSerializer/Options/allowsFragments``,
    ///   neither an array nor an object;
    ///   ``SerializationError/emptyBody(status:wanted:url:)`` for an empty body that ``emptyResponses`` does not permit.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> JSONValue {
        guard !emptyResponses.isBlank(body) else {
            return try emptyResponses.emptyValue(JSONValue.self, status: head.status.code)
        }
        return try JSONParser.parse(body, options: options)
    }

    /// Returns whether the body is empty and the status permits that.
    package func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        emptyResponses.isBlank(body) && emptyResponses.allows(head.status.code)
    }
}
