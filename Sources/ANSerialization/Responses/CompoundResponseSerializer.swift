// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A serializer that tries several others in order and uses the first that can read the body.
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
/// | outcome of a child | consequence |
/// |---|---|
/// | accepts the response and returns a value | the value is the result |
/// | returns a value, but rejects the status | its ``SerializationError/rejected(_:)`` is thrown |
/// | rejects the media type, or cannot read the body | the next child is tried |
/// | rejects the status, and permits the missing body | the next child is tried |
/// | accepts the missing body | the next child is tried; without a value, the result is this child's empty value |
///
/// A child accepts a missing body if it accepts the response and its ``EmptyResponseRules`` permit the missing body; if
/// its type has no empty value, ``SerializationError/emptyBody(status:wanted:url:)`` is thrown. If no child has a value or
/// accepts a missing body, ``SerializationError/compound(_:)`` contains the error of each child in order. For responses
/// of any other media type, put a child that accepts all of them last, such as a mapped ``DataResponseSerializer``.
///
/// Each child validates the response itself, so `.anyMediaType`, `.anyStatus` and `.unvalidated` lift only restrictions
/// of the compound serializer, which has none by default; apply them to the children. Restrictions such as
/// `.accepting(statuses:)` apply in addition to those of the children.
public struct CompoundResponseSerializer<Output: Sendable>: AdjustableResponseSerializer, EmptyAcceptingSerializer,
    OutcomeSerializer
{
    /// The serializers in the order in which they are tried.
    package var children: [any ResponseSerializer<Output>]
    /// The validation common to all children, in addition to their own; by default it accepts every response.
    public var validation: ResponseValidation

    /// Creates a serializer from several others.
    ///
    /// - Parameters:
    ///   - children: The serializers, in the order in which they are tried; with none, every response fails.
    ///   - validation: A validation in addition to those of the children; accepts every response by default.
    public init(_ children: [any ResponseSerializer<Output>], validation: ResponseValidation = .anything) {
        self.children = children
        self.validation = validation
    }

    /// Returns the value of the first child that accepts the response and has one.
    ///
    /// The common ``validation`` is not checked here, but those of the children are.
    ///
    /// - Throws: ``SerializationError/rejected(_:)`` if the first child that accepts the media type and can read the
    ///   body rejects the status; ``SerializationError/compound(_:)`` if no child has a value, and none accepts the
    ///   response and permits its missing body; the error of the first child that does, such as
    ///   ``SerializationError/emptyBody(status:wanted:url:)``, if it has no empty value.
    public func serialize(_ head: ResponseHead, _ body: Data) throws -> Output {
        let outcome = firstOutcome(of: head, body)
        if let error = outcome.error { throw error }
        if let value = outcome.value { return value }
        // A child without a value or an error, such as another compound serializer, throws one when it serializes.
        let child = firstMissing(head, body) ?? children.first { $0.outcome(of: head, body).error == nil }
        guard let child else { throw SerializationError.compound([]) }
        return try child.serialize(head, body)
    }

    /// Returns whether every child permits the missing body, and at least one accepts the response.
    package func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        firstMissing(head, body) != nil && children.allSatisfy { $0.acceptsEmpty(head, body) }
    }

    /// Returns the outcome of the first child that has a value.
    package func ownOutcome(of head: ResponseHead, _ body: Data) -> SerializationOutcome<Output> {
        if let rejection = validation.rejection(of: head, body) { return SerializationOutcome(rejection: rejection) }
        return firstOutcome(of: head, body)
    }

    /// Returns the first child that accepts the response and permits its missing body.
    private func firstMissing(_ head: ResponseHead, _ body: Data) -> (any ResponseSerializer<Output>)? {
        children.first { $0.acceptsEmpty(head, body) && $0.validation.rejection(of: head, body) == nil }
    }

    /// Returns the first outcome with a value of an accepted media type; otherwise the errors of the children if all of
    /// them failed.
    private func firstOutcome(of head: ResponseHead, _ body: Data) -> SerializationOutcome<Output> {
        var errors: [any Error] = []
        for child in children {
            let outcome = child.outcome(of: head, body)
            // A rejected outcome may have a value nevertheless, as that of the data serializer always does.
            let isRejected = outcome.rejection?.rejectsMediaType ?? false
            guard isRejected || outcome.value == nil else { return outcome }
            if let error = outcome.error { errors.append(error) }
        }
        let hasMissing = errors.count < children.count
        return SerializationOutcome(failure: hasMissing ? nil : SerializationError.compound(errors))
    }
}

/// The value, rejection and failure of serializing a response. A response rejected because of its status can have a
/// value, such as an API's error document.
///
/// ``ResponseSerializer/outcome(of:_:)`` returns it.
///
/// | response | ``value`` | ``rejection`` | ``failure`` |
/// |---|---|---|---|
/// | accepted, and the body can be read | yes | | |
/// | accepted, and the body cannot be read | | | yes |
/// | accepted, and the body is missing, which the serializer permits | | | |
/// | rejected because of the status, and the body can be read | yes | yes | |
/// | rejected because of the status, and the body cannot be read | | yes | yes |
/// | rejected because of the status, and the body is missing, which the serializer permits | | yes | |
/// | rejected because of the media type | | yes | |
///
/// The outcome of a ``DataResponseSerializer`` has a value in all cases: the body. That of an
/// ``EmptyResponseSerializer`` has its only value for any body, unless the media type is rejected, and that of an
/// ``OptionalResponseSerializer`` the value `nil` for a missing body that its base permits.
///
/// The outcome of a ``CompoundResponseSerializer`` is a rejection alone if its own validation rejects the response;
/// otherwise it is the outcome of the first child that has a value and accepts the media type. Without such a child, it is
/// empty if a child accepts the response and permits its missing body; if not, ``failure`` is
/// ``SerializationError/compound(_:)`` and ``rejection`` is `nil`, even if the children rejected the status.
package struct SerializationOutcome<Value: Sendable>: Sendable {
    /// The value read from the body; `nil` if the body was not read because of its media type, could not be read, or is
    /// missing and the serializer permits that.
    package var value: Value?
    /// The rejection of the response; `nil` if it was accepted.
    package var rejection: Rejection?
    /// The error of reading the body; `nil` if the body was read, was not read because of its media type, or is missing
    /// and the serializer permits that.
    package var failure: (any Error)?

    /// Creates an outcome, by default an empty one.
    package init(value: Value? = nil, rejection: Rejection? = nil, failure: (any Error)? = nil) {
        self.value = value
        self.rejection = rejection
        self.failure = failure
    }

    /// The error to report: ``SerializationError/rejected(_:)`` for a rejection, or else the ``failure``; `nil` if
    /// there was neither.
    package var error: (any Error)? {
        rejection.map(SerializationError.rejected) ?? failure
    }
}
