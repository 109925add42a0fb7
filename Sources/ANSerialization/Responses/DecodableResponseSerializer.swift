// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// A serializer that decodes the body, by default from JSON; available as `.decodable(User.self)`.
///
/// For an empty body that ``emptyResponses`` permits, the result is the empty value of the type if it has one, such as
/// `nil` for `.decodable(User?.self)`. Any other empty body fails with
/// ``SerializationError/emptyBody(status:wanted:url:)``.
public struct DecodableResponseSerializer<Value: Decodable & Sendable>: AdjustableResponseSerializer,
    EmptyAcceptingSerializer
{
    /// The statuses and media types that are accepted; by default those of ``ResponseValidation/json``.
    public var validation: ResponseValidation
    /// The statuses with which the body may be empty, and whether a single space counts as empty; by default
    /// ``EmptyResponseRules/json``, any status and a space.
    public var emptyResponses: EmptyResponseRules
    /// The decoder for the body; `nil` for the session's.
    ///
    /// It is used concurrently, so configure it before creating the serializer and do not change it afterwards.
    package let decoder: (any ResponseDecoder)?

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder, which is used concurrently and must not be changed afterwards; `nil`, the default, for
    ///     the session's for JSON, or for a response of no session one that reads dates from ISO 8601 text.
    ///   - validation: The statuses and media types that are accepted; by default, also with a decoder for another
    ///     format, 200 to 299 with the media types of JSON.
    ///   - emptyResponses: The statuses with which the body may be empty; by default any status, and a single space
    ///     counts as empty. For a type without an empty value, ``serialize(_:_:)`` fails for an empty body whether or
    ///     not the status is permitted, whereas an ``OptionalResponseSerializer`` then returns `nil` if it is.
    public init(
        _ type: Value.Type, decoder: (any ResponseDecoder)? = nil, validation: ResponseValidation = .json,
        emptyResponses: EmptyResponseRules = .json
    ) {
        self.decoder = decoder
        self.validation = validation
        self.emptyResponses = emptyResponses
    }

    /// Returns the decoded value, or the empty value of the type for an empty body; the status and media type are not
    /// validated here.
    ///
    /// - Throws: ``SerializationError/decoding(_:)`` if the body does not match the type, with the coding path and the
    ///   text there, and for every error of a decoder other than `JSONDecoder` and `PropertyListDecoder`;
    ///   ``SerializationError/json(_:)`` or ``SerializationError/propertyList(_:)`` if the body is malformed;
    ///   ``SerializationError/emptyBody(status:wanted:url:)`` if it is empty, and the type has no empty value or
    ///   ``emptyResponses`` does not permit the status.
    public func serialize(_ head: ResponseHead, _ body: Data) throws -> Value {
        try decode(head, body)
    }

    /// Returns whether the body is empty and the status permits that.
    package func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        emptyResponses.isBlank(body) && emptyResponses.allows(head.status.code)
    }

    func decode(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> Value {
        guard !emptyResponses.isBlank(body) else {
            return try emptyResponses.emptyValue(Value.self, status: head.status.code)
        }
        return try (decoder ?? head.jsonDecoder ?? JSONCoding.standard.decoder).value(Value.self, from: body)
    }
}

extension ResponseDecoder {
    /// Returns a value decoded from a complete document, with an error that says what is wrong with it.
    package func value<Value: Decodable>(_ type: Value.Type, from body: Data) throws(SerializationError) -> Value {
        let checking = self as? any CheckingDecoder
        let body = try checking?.prepared(body) ?? body
        do {
            return try decode(Value.self, from: body)
        } catch {
            throw explain(error, Value.self, body, checking)
        }
    }

    private func explain<Value>(
        _ error: any Error, _ type: Value.Type, _ body: Data, _ checking: (any CheckingDecoder)?
    ) -> SerializationError {
        let path: [any CodingKey]
        let reason: String
        switch error as? DecodingError {
        case .dataCorrupted(let context)? where context.codingPath.isEmpty:
            if let error = checking?.formatError(in: body) { return error }
            path = []
            // Foundation's decoders may only report that the data is corrupted.
            reason =
                context.debugDescription.hasPrefix("The given data was not")
                ? "the decoder rejected a value without naming it; a number may be out of range for its type."
                : context.debugDescription
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
        let offset = checking?.offset(of: path, in: body) ?? 0
        return .decoding(
            .init(
                .mismatch(type: String(describing: Value.self), Excerpt.of(reason, limit: 300)),
                path: path.map { PathStep($0) }.pathDescription, excerpt: Excerpt.around(offset, in: body),
                underlying: error))
    }
}

extension ServerSentEvent {
    /// Returns the data decoded as a type.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder; `nil`, the default, uses the JSON decoder of the session that received the event. If
    ///     it came from no session, a decoder that reads dates from ISO 8601 text is used; see
    ///     ``ANSerialization/JSONCoding``.
    /// - Throws: ``ANSerialization/SerializationError/json(_:)``, or
    ///   ``ANSerialization/SerializationError/propertyList(_:)`` with a `PropertyListDecoder`, if the data is empty or
    ///   malformed; ``ANSerialization/SerializationError/decoding(_:)`` if it does not match the type, and for every
    ///   error of a decoder for another format.
    public func decoded<Value: Decodable>(
        as type: Value.Type, decoder: (any ResponseDecoder)? = nil
    ) throws(SerializationError) -> Value {
        try (decoder ?? session.jsonDecoder ?? JSONCoding.standard.decoder).value(type, from: Data(data.utf8))
    }
}

extension WebSocketMessage {
    /// Returns the text or the bytes decoded as a type.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder; `nil`, the default, uses a JSON decoder that reads dates from ISO 8601 text; see
    ///     ``ANSerialization/JSONCoding``. Pass `session.configuration.json.decoder` for that of a session.
    /// - Throws: ``ANSerialization/SerializationError/json(_:)``, or
    ///   ``ANSerialization/SerializationError/propertyList(_:)`` with a `PropertyListDecoder`, if the message is empty or
    ///   malformed; ``ANSerialization/SerializationError/decoding(_:)`` if it does not match the type, and for every
    ///   error of a decoder for another format.
    public func decoded<Value: Decodable>(
        as type: Value.Type, decoder: (any ResponseDecoder)? = nil
    ) throws(SerializationError) -> Value {
        let data =
            switch self {
            case .text(let text): Data(text.utf8)
            case .binary(let data): data
            }
        return try (decoder ?? JSONCoding.standard.decoder).value(type, from: data)
    }
}
