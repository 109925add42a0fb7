// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A serializer that transforms the value of another one, available as `StringResponseSerializer().map { … }`.
public struct MappedResponseSerializer<Base: ResponseSerializer, Output: Sendable>: ResponseSerializer,
    EmptyAcceptingSerializer
{
    /// The serializer that reads the response.
    package var base: Base
    private let transform: @Sendable (Base.Output) throws -> Output

    /// Creates a serializer that applies a function to the values of another one.
    package init(_ base: Base, _ transform: @escaping @Sendable (Base.Output) throws -> Output) {
        self.base = base
        self.transform = transform
    }

    /// The validation of the base serializer, which cannot be changed here: adjust the base before `map`.
    public var validation: ResponseValidation { base.validation }

    /// Returns the transformed value of the base serializer, also of its empty value for an empty body; the status and
    /// media type are not validated here.
    ///
    /// - Throws: The error of the base serializer or of the function.
    public func serialize(_ head: ResponseHead, _ body: Data) throws -> Output {
        try transform(base.serialize(head, body))
    }

    /// Returns whether the base serializer permits the missing body.
    package func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        base.acceptsEmpty(head, body)
    }
}

extension ResponseSerializer {
    /// Returns a serializer that transforms the value of this one, with the validation of this one.
    ///
    /// ```swift
    /// let serializer = StringResponseSerializer().map { Int($0) ?? 0 }
    /// ```
    ///
    /// Swift does not accept `as: .string.map { … }`, because the result of an implicit member must have the type that
    /// declares the member. For a single call, transform the response instead:
    /// `try await api.get("count", as: .string).map { Int($0) ?? 0 }`.
    ///
    /// - Parameter transform: Transforms the value, which may be the empty value for an empty body, such as
    ///   ``JSONValue/null``. It is called in the task that deserializes the response. A session does not call
    ///   it for a rejected response; ``ResponseSerializer/outcome(of:_:)`` and a ``CompoundResponseSerializer`` do if
    ///   only the status is rejected. An error that it throws is thrown by ``ResponseSerializer/serialize(_:_:)``.
    public func map<Value: Sendable>(
        _ transform: @escaping @Sendable (Output) throws -> Value
    ) -> MappedResponseSerializer<Self, Value> {
        MappedResponseSerializer(self, transform)
    }
}
