// SPDX-License-Identifier: MIT

/// A serializer whose validation can be changed for a call, in a word:
///
/// ```swift
/// let page = try await api.get("status", as: .json.anyMediaType)
/// ```
///
/// Behind a ``CompoundResponseSerializer`` a word changes what all its children need, and no child's own validation.
public protocol AdjustableResponseSerializer: ResponseSerializer {
    /// The responses that it takes.
    var validation: ResponseValidation { get set }
}

extension AdjustableResponseSerializer {
    /// The same serializer for any media type, and for bodies that claim none.
    public var anyMediaType: Self {
        adjusted { $0.acceptableMediaTypes = nil }
    }

    /// The same serializer for any status.
    public var anyStatus: Self {
        adjusted { $0.acceptableStatuses = nil }
    }

    /// The same serializer for every response.
    public var unvalidated: Self {
        adjusted { $0 = .anything }
    }

    /// The same serializer for these statuses.
    public func accepting(statuses: Set<Int>) -> Self {
        adjusted { $0.acceptableStatuses = statuses }
    }

    /// The same serializer for these media types.
    public func accepting(mediaTypes: [MediaTypePattern]) -> Self {
        adjusted { $0.acceptableMediaTypes = mediaTypes }
    }

    /// The same serializer for these media types beside its own.
    public func alsoAccepting(_ mediaTypes: MediaTypePattern...) -> Self {
        adjusted { $0.acceptableMediaTypes?.append(contentsOf: mediaTypes) }
    }

    /// The same serializer with this validation.
    public func validated(by validation: ResponseValidation) -> Self {
        adjusted { $0 = validation }
    }

    private func adjusted(_ change: (inout ResponseValidation) -> Void) -> Self {
        var serializer = self
        change(&serializer.validation)
        return serializer
    }
}
