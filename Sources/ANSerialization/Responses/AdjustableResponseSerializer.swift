// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A serializer whose validation can be adjusted for a single call.
///
/// ```swift
/// let page = try await api.get("status", as: .json.anyMediaType)
/// ```
///
/// For a ``CompoundResponseSerializer`` these members adjust the validation common to all children, not that of a
/// child. A serializer that ``ResponseSerializer/map(_:)`` returns and an ``OptionalResponseSerializer`` do not conform;
/// adjust their base.
public protocol AdjustableResponseSerializer: ResponseSerializer {
    /// The statuses and media types that are accepted; the default depends on the serializer.
    var validation: ResponseValidation { get set }
}

extension AdjustableResponseSerializer {
    /// A copy that accepts any media type, and bodies without one; its statuses are unchanged.
    ///
    /// The children of a ``CompoundResponseSerializer`` still apply their own validations.
    public var anyMediaType: Self {
        adjusted { $0.acceptableMediaTypes = nil }
    }

    /// A copy that accepts any status; its media types are unchanged.
    ///
    /// The children of a ``CompoundResponseSerializer`` still apply their own validations.
    public var anyStatus: Self {
        adjusted { $0.acceptableStatuses = nil }
    }

    /// A copy that accepts every response, regardless of its status and media type.
    ///
    /// The children of a ``CompoundResponseSerializer`` still apply their own validations.
    public var unvalidated: Self {
        adjusted { $0 = .anything }
    }

    /// Returns a copy that accepts only the given statuses, with the same media types as before. An empty set rejects
    /// every response.
    public func accepting(statuses: Set<Int>) -> Self {
        adjusted { $0.acceptableStatuses = statuses }
    }

    /// Returns a copy that accepts only the given media types, with the same statuses as before. A body without a media
    /// type is rejected; an empty body is accepted with any. An empty array rejects every body that is not empty.
    public func accepting(mediaTypes: [String]) -> Self {
        adjusted { $0.acceptableMediaTypes = mediaTypes }
    }

    /// Returns a copy that accepts the given media types in addition to the current ones; unchanged if the serializer
    /// already accepts every media type.
    public func alsoAccepting(_ mediaTypes: String...) -> Self {
        adjusted { $0.acceptableMediaTypes?.append(contentsOf: mediaTypes) }
    }

    /// Returns a copy with a validation in place of the current one, for both statuses and media types.
    public func validated(by validation: ResponseValidation) -> Self {
        adjusted { $0 = validation }
    }

    private func adjusted(_ change: (inout ResponseValidation) -> Void) -> Self {
        var serializer = self
        change(&serializer.validation)
        return serializer
    }
}

/// A serializer that transforms the value of another one, available as `StringResponseSerializer().map { … }`.
private struct MappedResponseSerializer<Base: ResponseSerializer, Output: Sendable>: ResponseSerializer,
    EmptyAcceptingSerializer
{
    /// The serializer that reads the response.
    let base: Base
    let transform: @Sendable (Base.Output) throws -> Output

    var validation: ResponseValidation { base.validation }

    /// Returns the transformed value of the base serializer, also of its empty value for an empty body; the status and
    /// media type are not validated here.
    ///
    /// - Throws: The error of the base serializer or of the function.
    func serialize(_ head: ResponseHead, _ body: Data) throws -> Output {
        try transform(base.serialize(head, body))
    }

    /// Returns whether the base serializer permits the missing body.
    func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        base.acceptsEmpty(head, body)
    }
}

extension ResponseSerializer {
    /// Returns a serializer that transforms the value of this one, with the validation of this one, which can
    /// only be adjusted before.
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
    ///   it for a rejected response; a ``CompoundResponseSerializer`` does if
    ///   only the status is rejected. An error that it throws is thrown by ``ResponseSerializer/serialize(_:_:)``.
    public func map<Value: Sendable>(
        _ transform: @escaping @Sendable (Output) throws -> Value
    ) -> some ResponseSerializer<Value> {
        MappedResponseSerializer(base: self, transform: transform)
    }
}

/// A serializer that returns `nil` for an empty body that its base serializer permits, as with 204 and HEAD; available
/// as `.optional(.json)`.
///
/// Serializers with ``EmptyResponseRules`` permit empty bodies, as does a ``CompoundResponseSerializer`` if all of its
/// children do and at least one accepts the response, and one that ``ResponseSerializer/map(_:)`` returns
/// if its base does. With any other base, such as `.data`, `.string` or a serializer of the program's own, the value is never `nil`.
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
