// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// Makes a value from a response.
///
/// It is a value itself, and says which responses it understands.
///
/// One written by hand needs an output and ``serialize(_:_:)``:
///
/// ```swift
/// struct ChecksumSerializer: ResponseSerializer {
///     func serialize(_ head: ResponseHead, _ body: Data) throws -> Int {
///         body.reduce(0) { $0 &+ Int($1) }
///     }
/// }
/// ```
///
/// Where it keeps its ``validation`` in a property that can be set, it can be an ``AdjustableResponseSerializer`` too.
public protocol ResponseSerializer<Output>: Sendable {
    /// What it makes.
    associatedtype Output: Sendable

    /// The responses that it takes, unless the caller says otherwise; by default those with a status of 200 to 299.
    var validation: ResponseValidation { get }

    /// Makes the value, without validating.
    ///
    /// It is called in the task that asked for the value, away from the network's thread, and may take its time.
    func serialize(_ head: ResponseHead, _ body: Data) throws -> Output

    /// Whether the body is missing, and may be; by default an empty body is a body like others.
    func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool

    /// All that can be said about a response, without throwing; see ``SerializationOutcome``.
    func outcome(of head: ResponseHead, _ body: Data) -> SerializationOutcome<Output>
}

extension ResponseSerializer {
    /// Takes the statuses 200 to 299 with any media type.
    public var validation: ResponseValidation { .statusOnly }

    /// No body is missing.
    public func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool { false }

    /// Validates the response, then makes the value.
    ///
    /// - Parameters:
    ///   - head: The response's head.
    ///   - body: Its whole body.
    ///   - validation: Used instead of the serializer's own.
    /// - Throws: ``SerializationError``, or what a serializer written by hand throws.
    public func value(
        of head: ResponseHead, _ body: Data, validation: ResponseValidation? = nil
    ) throws -> Output {
        try (validation ?? self.validation).validate(head, body)
        return try serialize(head, body)
    }

    /// Validates the response, and makes the value unless the response was rejected for its media type.
    public func outcome(of head: ResponseHead, _ body: Data) -> SerializationOutcome<Output> {
        let rejection = validation.rejection(of: head, body)
        if let rejection, rejection.rejectsMediaType { return SerializationOutcome(rejection: rejection) }
        guard !isEmpty(head, body) else { return SerializationOutcome(rejection: rejection) }
        do {
            return SerializationOutcome(value: try serialize(head, body), rejection: rejection)
        } catch {
            return SerializationOutcome(rejection: rejection, failure: error)
        }
    }
}
