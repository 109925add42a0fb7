// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// Decodes the body from JSON; written `.decodable(User.self)`.
///
/// A body that is empty or exactly one space is ``EmptyRepresentable/emptyValue`` where the type has one, so nil for
/// `.decodable(User?.self)`; otherwise it fails with ``SerializationError/emptyBody(status:wanted:)``.
public struct DecodableResponseSerializer<Value: Decodable & Sendable>: ResponseSerializer {
    /// The responses that it takes.
    public var validation: ResponseValidation
    /// Decodes the body.
    ///
    /// It is shared, so set its strategies before and leave it alone.
    public let decoder: JSONDecoder

    /// Creates a serializer that takes JSON's media types unless said otherwise.
    public init(
        _ type: Value.Type, decoder: JSONDecoder = JSONDecoder(), validation: ResponseValidation = .json
    ) {
        self.decoder = decoder
        self.validation = validation
    }

    /// Returns the value.
    ///
    /// - Throws: ``SerializationError/json(_:)`` for a body that is not JSON, ``SerializationError/decoding(_:)`` for one
    ///   that does not fit the type: it names the coding path and shows the text there.
    public func serialize(_ head: ResponseHead, _ body: Data) throws -> Value {
        try decode(head, body)
    }

    func decode(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> Value {
        guard !body.isBlankJSON else {
            if let type = Value.self as? any EmptyRepresentable.Type, let value = type.emptyValue as? Value {
                return value
            }
            throw .emptyBody(status: head.status.code, wanted: String(describing: Value.self))
        }
        do {
            return try decoder.decode(Value.self, from: body)
        } catch {
            throw explain(error, body)
        }
    }

    private func explain(_ error: any Error, _ body: Data) -> SerializationError {
        let path: [any CodingKey]
        let reason: String
        switch error as? DecodingError {
        case .dataCorrupted(let context)? where context.codingPath.isEmpty:
            if let problem = JSONParser.problem(in: body) { return .json(problem) }
            path = []
            // The decoder of FoundationEssentials says no more than that the data is corrupted.
            reason = "the decoder refused a value without naming it; a number may not fit its type."
        case .dataCorrupted(let context)?:
            path = context.codingPath
            reason = context.debugDescription
        case .keyNotFound(let key, let context)?:
            path = context.codingPath
            reason = "there is no value for “\(key.stringValue)”."
        case .typeMismatch(_, let context)?, .valueNotFound(_, let context)?:
            path = context.codingPath
            reason = context.debugDescription
        case nil:
            path = []
            reason = String(describing: error)
        @unknown default:
            path = []
            reason = String(describing: error)
        }
        let steps = path.map { PathStep($0) }
        let offset = JSONParser.offset(of: steps, in: body)
        return .decoding(
            .init(
                type: String(describing: Value.self), path: steps.pathDescription,
                reason: Excerpt.of(reason, limit: 300), excerpt: Excerpt.around(offset, in: body), underlying: error))
    }
}
