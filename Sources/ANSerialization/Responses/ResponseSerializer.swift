// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A type that creates values from responses.
///
/// A serializer is a value, and also determines which responses it accepts. A custom serializer needs an output type
/// and ``serialize(_:_:)``:
///
/// ```swift
/// struct ChecksumSerializer: ResponseSerializer {
///     func serialize(_ head: ResponseHead, _ body: Data) throws -> Int {
///         body.reduce(0) { $0 &+ Int($1) }
///     }
/// }
/// ```
///
/// If ``validation`` is a settable property, the serializer can conform to ``AdjustableResponseSerializer``, too.
public protocol ResponseSerializer<Output>: Sendable {
    /// The type of the value that ``serialize(_:_:)`` returns.
    associatedtype Output: Sendable

    /// The statuses and media types that are accepted, unless ``value(of:_:validation:)`` is passed others; without an
    /// implementation, the statuses 200 to 299 with any media type.
    var validation: ResponseValidation { get }

    /// Returns the value for a response, without validating it.
    ///
    /// A session calls it after ``validation`` has accepted the response: in the task that called the session or, for a
    /// data or upload task, in the one that performs the request. It may take time, unless that task runs on the
    /// session's event loop because it prefers `SessionManager.eventLoopExecutor`.
    ///
    /// - Parameters:
    ///   - head: The head of the response.
    ///   - body: The complete body, possibly empty; content codings were decoded, unless the request disabled that.
    /// - Throws: Any error. A ``SerializationError`` reaches the caller of a session as `SessionError.serialization`, a
    ///   ``ANHTTP/TransportError`` as `SessionError.transport`, and any other error unchanged.
    func serialize(_ head: ResponseHead, _ body: Data) throws -> Output
}

extension ResponseSerializer {
    /// A validation that accepts the statuses 200 to 299 with any media type, the default of the requirement.
    public var validation: ResponseValidation { .statusOnly }

    /// Returns whether the body is missing and may be, so that there is nothing to serialize.
    package func acceptsEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        (self as? any EmptyAcceptingSerializer)?.isEmpty(head, body) ?? false
    }

    /// Validates a response and returns its value, as a session does, for responses from elsewhere.
    ///
    /// - Parameters:
    ///   - head: The head of the response.
    ///   - body: The complete body.
    ///   - validation: A validation to use instead of the serializer's own; `nil`, the default, for the serializer's.
    ///     It does not replace those of the children of a ``CompoundResponseSerializer``.
    /// - Throws: ``SerializationError/rejected(_:)`` if the validation fails; the error of the serializer, unchanged.
    public func value(
        of head: ResponseHead, _ body: Data, validation: ResponseValidation? = nil
    ) throws -> Output {
        try (validation ?? self.validation).validate(head, body)
        return try serialize(head, body)
    }

    /// Returns the value, rejection and failure for a response without throwing: validates it, and serializes it unless
    /// its media type is rejected, or its body is empty and the serializer permits that.
    ///
    /// - Parameters:
    ///   - head: The head of the response.
    ///   - body: The complete body.
    /// - Returns: An outcome that may have a value even if the status is rejected, such as an API's error document; see
    ///   ``SerializationOutcome`` for all cases.
    public func outcome(of head: ResponseHead, _ body: Data) -> SerializationOutcome<Output> {
        if let own = self as? any OutcomeSerializer<Output> { return own.ownOutcome(of: head, body) }
        let rejection = validation.rejection(of: head, body)
        if let rejection, rejection.rejectsMediaType { return SerializationOutcome(rejection: rejection) }
        guard !acceptsEmpty(head, body) else { return SerializationOutcome(rejection: rejection) }
        do {
            return SerializationOutcome(value: try serialize(head, body), rejection: rejection)
        } catch {
            return SerializationOutcome(rejection: rejection, failure: error)
        }
    }
}

/// A serializer with rules of its own for what it reads from a rejected response.
package protocol OutcomeSerializer<Output>: ResponseSerializer {
    /// Returns the value, rejection and failure for a response.
    func ownOutcome(of head: ResponseHead, _ body: Data) -> SerializationOutcome<Output>
}

/// A serializer for responses whose body may be missing.
package protocol EmptyAcceptingSerializer {
    /// Returns whether the body is missing and may be.
    func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool
}
