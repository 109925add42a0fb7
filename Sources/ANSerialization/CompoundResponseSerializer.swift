// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// Tries several serializers in order: the first one that can read the body decides.
///
/// ```swift
/// enum Reply: Sendable {
///     case document(JSONValue)
///     case text(String)
/// }
/// let reply = CompoundResponseSerializer<Reply>([
///     JSONResponseSerializer().map { .document($0) },
///     StringResponseSerializer().map { .text($0) },
/// ])
/// ```
///
/// | a child | then |
/// |---|---|
/// | takes the response and makes a value | the value is the result |
/// | makes a value, but rejects the status | its ``SerializationError/rejected(_:)`` is thrown: the body was understood |
/// | rejects the media type, or cannot read the body | the next child is tried |
/// | misses a body, which may be missing | the next one is tried; when none has a value, the first such child's empty value |
///
/// When no child has a value, ``SerializationError/compound(_:)`` carries the error of each, in their order. To let no
/// response fail for its type, put ``DataResponseSerializer`` last.
///
/// Each child validates by itself, so `.anyMediaType`, `.anyStatus` and `.unvalidated` behind the whole change nothing: put
/// them behind the children. What `.accepting(statuses:)` and the like say behind the whole is needed in addition.
public struct CompoundResponseSerializer<Output: Sendable>: AdjustableResponseSerializer {
    /// The serializers, in the order in which they are tried.
    public var children: [any ResponseSerializer<Output>]
    /// What all children need; anything unless said otherwise.
    public var validation: ResponseValidation

    /// Creates a serializer of several.
    public init(_ children: [any ResponseSerializer<Output>], validation: ResponseValidation = .anything) {
        self.children = children
        self.validation = validation
    }

    /// Returns the value of the first child that makes one.
    ///
    /// - Throws: ``SerializationError/compound(_:)`` when none does.
    public func serialize(_ head: ResponseHead, _ body: Data) throws -> Output {
        let outcome = firstOutcome(of: head, body)
        if let error = outcome.error { throw error }
        if let value = outcome.value { return value }
        guard let child = firstMissing(head, body) else { throw SerializationError.compound([]) }
        return try child.serialize(head, body)
    }

    /// Whether each child misses a body, and one of them takes the response.
    public func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        firstMissing(head, body) != nil && children.allSatisfy { $0.isEmpty(head, body) }
    }

    /// The outcome of the first child that makes a value.
    public func outcome(of head: ResponseHead, _ body: Data) -> SerializationOutcome<Output> {
        if let rejection = validation.rejection(of: head, body) { return SerializationOutcome(rejection: rejection) }
        return firstOutcome(of: head, body)
    }

    /// The first child that takes the response and misses a body, which may be missing.
    private func firstMissing(_ head: ResponseHead, _ body: Data) -> (any ResponseSerializer<Output>)? {
        children.first { $0.isEmpty(head, body) && $0.validation.rejection(of: head, body) == nil }
    }

    /// The first outcome with a value of a media type that its child takes; without one, what the children failed for, if all
    /// of them did.
    private func firstOutcome(of head: ResponseHead, _ body: Data) -> SerializationOutcome<Output> {
        var errors: [any Error] = []
        for child in children {
            let outcome = child.outcome(of: head, body)
            // A value may be there all the same: data is, whatever its type.
            let isRejected = outcome.rejection?.rejectsMediaType ?? false
            guard isRejected || outcome.value == nil else { return outcome }
            if let error = outcome.error { errors.append(error) }
        }
        let hasMissing = errors.count < children.count
        return SerializationOutcome(failure: hasMissing ? nil : SerializationError.compound(errors))
    }
}
