// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// Changes what another serializer makes; written `.json.map { … }`.
public struct MappedResponseSerializer<Base: ResponseSerializer, Output: Sendable>: ResponseSerializer {
    /// The serializer that reads the response.
    public var base: Base
    private let transform: @Sendable (Base.Output) throws -> Output

    /// Creates a serializer that passes on the values of another one through a function.
    public init(_ base: Base, _ transform: @escaping @Sendable (Base.Output) throws -> Output) {
        self.base = base
        self.transform = transform
    }

    /// What the other serializer takes.
    public var validation: ResponseValidation { base.validation }

    /// Returns what the function makes of the other serializer's value.
    ///
    /// - Throws: What either of them throws.
    public func serialize(_ head: ResponseHead, _ body: Data) throws -> Output {
        try transform(base.serialize(head, body))
    }

    /// Whether the other serializer misses a body.
    public func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        base.isEmpty(head, body)
    }
}

extension ResponseSerializer {
    /// A serializer that changes the value of this one.
    public func map<Value: Sendable>(
        _ transform: @escaping @Sendable (Output) throws -> Value
    ) -> MappedResponseSerializer<Self, Value> {
        MappedResponseSerializer(self, transform)
    }
}
