// SPDX-License-Identifier: MIT

/// A serializer whose validation can be adjusted for a single call.
///
/// ```swift
/// let page = try await api.get("status", as: .json.anyMediaType)
/// ```
///
/// For a ``CompoundResponseSerializer`` these members adjust the validation common to all children, not that of a
/// child. A ``MappedResponseSerializer`` and an ``OptionalResponseSerializer`` do not conform; adjust their base.
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
    public func accepting(mediaTypes: [MediaTypePattern]) -> Self {
        adjusted { $0.acceptableMediaTypes = mediaTypes }
    }

    /// Returns a copy that accepts the given media types in addition to the current ones; unchanged if the serializer
    /// already accepts every media type.
    public func alsoAccepting(_ mediaTypes: MediaTypePattern...) -> Self {
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
