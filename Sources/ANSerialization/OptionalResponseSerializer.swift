// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// Gives nil where another serializer misses a body, as for 204 and HEAD; written `.optional(.json)`.
public struct OptionalResponseSerializer<Base: ResponseSerializer>: ResponseSerializer {
    /// The serializer for responses with a body.
    public var base: Base

    /// Creates a serializer around another one.
    public init(_ base: Base) {
        self.base = base
    }

    /// What the other serializer takes.
    public var validation: ResponseValidation { base.validation }

    /// Returns the other serializer's value; nil where that one says that the body is missing and may be.
    public func serialize(_ head: ResponseHead, _ body: Data) throws -> Base.Output? {
        base.isEmpty(head, body) ? nil : try base.serialize(head, body)
    }
}
