// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A serializer that returns `nil` for an empty body that its base serializer permits, as with 204 and HEAD; available
/// as `.optional(.json)`.
///
/// Serializers with ``EmptyResponseRules`` permit empty bodies, as does a ``CompoundResponseSerializer`` if all of its
/// children do and at least one accepts the response, and a ``MappedResponseSerializer`` if its base does. With any
/// other base, such as `.data`, `.string` or a serializer of the program's own, the value is never `nil`.
public struct OptionalResponseSerializer<Base: ResponseSerializer>: ResponseSerializer {
    /// The serializer for responses with a body.
    package var base: Base

    /// Creates a serializer that wraps another one.
    package init(_ base: Base) {
        self.base = base
    }

    /// The validation of the base serializer, which cannot be changed here: adjust the base, as in
    /// `.optional(.json.anyStatus)`.
    public var validation: ResponseValidation { base.validation }

    /// Returns the value of the base serializer, or `nil` if the base serializer permits the missing body; the status
    /// and media type are not validated here.
    ///
    /// - Throws: The error of the base serializer.
    public func serialize(_ head: ResponseHead, _ body: Data) throws -> Base.Output? {
        base.acceptsEmpty(head, body) ? nil : try base.serialize(head, body)
    }
}
