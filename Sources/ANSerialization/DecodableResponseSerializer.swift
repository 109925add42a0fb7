// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// Decodes the body, from JSON unless said otherwise; written `.decodable(User.self)`.
///
/// A body that is missing is ``EmptyRepresentable/emptyValue`` where the type has one, so nil for
/// `.decodable(User?.self)`; otherwise it fails with ``SerializationError/emptyBody(status:wanted:)``.
public struct DecodableResponseSerializer<Value: Decodable & Sendable>: AdjustableResponseSerializer {
    /// The responses that it takes.
    public var validation: ResponseValidation
    /// When the body may be missing.
    public var emptyResponses: EmptyResponseRules
    /// Decodes the body.
    ///
    /// It is shared, so set its strategies before and leave it alone.
    public let decoder: any ResponseDecoder

    /// Creates a serializer that takes JSON's media types unless said otherwise.
    public init(
        _ type: Value.Type, decoder: any ResponseDecoder = JSONDecoder(), validation: ResponseValidation = .json,
        emptyResponses: EmptyResponseRules = .json
    ) {
        self.decoder = decoder
        self.validation = validation
        self.emptyResponses = emptyResponses
    }

    /// Returns the value.
    ///
    /// - Throws: ``SerializationError/decoding(_:)`` for a body that does not fit the type: it names the coding path and
    ///   shows the text there; ``SerializationError/json(_:)`` or ``SerializationError/propertyList(_:)`` for one that is
    ///   not of the format at all.
    public func serialize(_ head: ResponseHead, _ body: Data) throws -> Value {
        try decode(head, body)
    }

    /// Whether the body is missing and the type has no value for that.
    public func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        emptyResponses.isBlank(body) && emptyResponses.allows(head.status.code)
    }

    func decode(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> Value {
        guard !emptyResponses.isBlank(body) else {
            return try emptyResponses.emptyValue(Value.self, status: head.status.code)
        }
        let body = try decoder.prepared(body)
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
            if let problem = decoder.problem(in: body) { return problem }
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
        let offset = decoder.offset(of: path, in: body) ?? 0
        return .decoding(
            .init(
                type: String(describing: Value.self), path: path.map { PathStep($0) }.pathDescription,
                reason: Excerpt.of(reason, limit: 300), excerpt: Excerpt.around(offset, in: body), underlying: error))
    }
}
