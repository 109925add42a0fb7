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
    package func outcome(of head: ResponseHead, _ body: Data) -> SerializationOutcome<Output> {
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

// The serializers that are available as static members, for arguments with the label `as:`.

extension ResponseSerializer where Self == DataResponseSerializer {
    /// A serializer that returns the body unchanged, and accepts the statuses 200 to 299 with any media type.
    public static var data: DataResponseSerializer { DataResponseSerializer() }
}

extension ResponseSerializer where Self == StringResponseSerializer {
    /// A serializer that decodes the body as text in the charset of its `Content-Type`, and accepts the statuses 200 to
    /// 299 with any media type.
    ///
    /// Without a charset, the encoding is that of a byte order mark, or else UTF-8 if the bytes are valid, otherwise
    /// Latin-1. An unknown charset, and bytes that are invalid in the declared one, fail with
    /// ``SerializationError/text(_:)``; see ``StringResponseSerializer``.
    public static var string: StringResponseSerializer { StringResponseSerializer() }

    /// Returns a serializer that decodes the body as text in the given encoding, regardless of its `Content-Type`, and
    /// accepts the statuses 200 to 299 with any media type.
    ///
    /// - Parameter encoding: The encoding; a body that is invalid in it fails with ``SerializationError/text(_:)``.
    public static func string(_ encoding: TextEncoding) -> StringResponseSerializer {
        StringResponseSerializer(encoding: encoding)
    }
}

extension ResponseSerializer where Self == JSONResponseSerializer {
    /// A serializer that parses the body as a ``JSONValue``, and accepts the statuses 200 to 299 with the media types
    /// of JSON.
    ///
    /// The body must be an array or object; for other values, which RFC 8259 §2 permits, use `.json(allowsFragments: true)`.
    /// An empty body, or a single space, results in ``JSONValue/null``.
    public static var json: JSONResponseSerializer { JSONResponseSerializer() }

    /// Returns a serializer that parses the body as a ``JSONValue``, and accepts the statuses 200 to 299 with the media
    /// types of JSON. An empty body, or a single space, results in ``JSONValue/null``.
    ///
    /// - Parameters:
    ///   - allowsFragments: Whether the outermost value may be a string, number, Boolean value or null; `false` by
    ///     default.
    ///   - allowsJSON5: Whether the text may be JSON5; `false` by default. See
    ///     ``JSONResponseSerializer/init(allowsFragments:allowsJSON5:validation:emptyResponses:)``.
    public static func json(allowsFragments: Bool = false, allowsJSON5: Bool = false) -> JSONResponseSerializer {
        JSONResponseSerializer(allowsFragments: allowsFragments, allowsJSON5: allowsJSON5)
    }
}

extension ResponseSerializer where Self == PropertyListResponseSerializer {
    /// A serializer that decodes the body as a ``PropertyListValue``, from XML or the binary format, and accepts the
    /// statuses 200 to 299 with `application/x-plist`. An empty body results in an empty dictionary.
    public static var propertyList: PropertyListResponseSerializer { PropertyListResponseSerializer() }
}

extension ResponseSerializer where Self == EmptyResponseSerializer {
    /// A serializer that ignores the body, for requests whose result is the status, and accepts the statuses 200 to 299
    /// with any media type.
    public static var empty: EmptyResponseSerializer { EmptyResponseSerializer() }
}

extension ResponseSerializer {
    /// Returns a serializer that decodes the body from JSON, and accepts the statuses 200 to 299 with the media types
    /// of JSON. For an optional type an empty body, or a single space, results in `nil`, for most others in
    /// ``SerializationError/emptyBody(status:wanted:url:)``.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder, which must not be changed afterwards; `nil`, the default, for the session's, or for a
    ///     response of no session one that reads dates from ISO 8601 text. See ``JSONCoding``.
    public static func decodable<Value>(
        _ type: Value.Type, decoder: JSONDecoder? = nil
    ) -> Self where Self == DecodableResponseSerializer<Value> {
        DecodableResponseSerializer(type, decoder: decoder)
    }

    /// Returns a serializer that decodes the body with a decoder for any format, and accepts the statuses 200 to 299.
    /// For an optional type an empty body results in `nil`, for most others in
    /// ``SerializationError/emptyBody(status:wanted:url:)``.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder, which must not be changed afterwards. See ``ResponseDecoder``.
    ///   - mediaTypes: The accepted media types of a body that is not empty; `nil` for all.
    public static func decodable<Value>(
        _ type: Value.Type, decoder: some ResponseDecoder, mediaTypes: [String]?
    ) -> Self where Self == DecodableResponseSerializer<Value> {
        DecodableResponseSerializer(
            type, decoder: decoder, validation: ResponseValidation(mediaTypes: mediaTypes), emptyResponses: .anyStatus)
    }

    /// Returns a serializer that decodes the body from a property list, in XML or the binary format, and accepts the
    /// statuses 200 to 299 with `application/x-plist`. For an optional type an empty body results in `nil`, for most
    /// others in ``SerializationError/emptyBody(status:wanted:url:)``.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder, which must not be changed afterwards; one with the default settings by default.
    public static func propertyList<Value>(
        _ type: Value.Type, decoder: PropertyListDecoder = PropertyListDecoder()
    ) -> Self where Self == DecodableResponseSerializer<Value> {
        DecodableResponseSerializer(
            type, decoder: decoder, validation: .propertyList, emptyResponses: .anyStatus)
    }

    /// Returns a serializer with the value of another one, or `nil` for an empty body that the other one permits; see
    /// ``OptionalResponseSerializer``.
    ///
    /// - Parameter base: The serializer for responses with a body, whose validation applies, such as `.json`. One that
    ///   has no rules for empty bodies, such as `.data` and `.string`, reads them as values, not as `nil`.
    public static func optional<Base>(_ base: Base) -> Self where Self == OptionalResponseSerializer<Base> {
        OptionalResponseSerializer(base)
    }

    /// Returns a serializer that tries several others in order and uses the first that accepts the media type and can
    /// read the body.
    ///
    /// - Parameter children: The serializers, each of which validates the response itself; with none, every response
    ///   fails. See ``CompoundResponseSerializer`` for the rules.
    public static func compound<Value>(
        _ children: any ResponseSerializer<Value>...
    ) -> Self where Self == CompoundResponseSerializer<Value> {
        CompoundResponseSerializer(children)
    }
}

/// A serializer that returns the body unchanged, available as `.data`.
public struct DataResponseSerializer: AdjustableResponseSerializer, OutcomeSerializer {
    /// The statuses and media types that are accepted; by default 200 to 299 with any media type.
    public var validation: ResponseValidation

    /// Creates a serializer.
    ///
    /// - Parameter validation: The statuses and media types that are accepted; by default 200 to 299 with any media
    ///   type.
    public init(validation: ResponseValidation = .statusOnly) {
        self.validation = validation
    }

    /// Returns the body unchanged, possibly empty; the status and media type are not checked here.
    public func serialize(_ head: ResponseHead, _ body: Data) -> Data {
        body
    }

    /// Returns the body, even if the response is rejected.
    package func ownOutcome(of head: ResponseHead, _ body: Data) -> SerializationOutcome<Data> {
        SerializationOutcome(value: body, rejection: validation.rejection(of: head, body))
    }
}

/// A serializer that decodes the body as text, available as `.string`.
///
/// The encoding is the first of the following that applies. The byte order mark of a Unicode encoding is not part of
/// the text, and does not override a declared charset.
///
/// | | encoding | invalid bytes |
/// |---|---|---|
/// | 1 | `encoding` | fail |
/// | 2 | the charset of the `Content-Type` | fail, as does an unknown charset |
/// | 3 | the one indicated by a byte order mark | fail |
/// | 4 | UTF-8 | cause `fallback` to be used |
/// | 5 | `fallback`: by default Latin-1, in which every byte is valid; with `nil`, reading fails | fail |
public struct StringResponseSerializer: AdjustableResponseSerializer {
    /// The statuses and media types that are accepted; by default 200 to 299 with any media type.
    public var validation: ResponseValidation
    /// The encoding to use regardless of the response; `nil`, the default, to determine it from the response.
    package var encoding: TextEncoding?
    /// The encoding of a body that declares no encoding and is not UTF-8; Latin-1 by default, `nil` to fail.
    package var fallback: TextEncoding?

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - encoding: The encoding to use regardless of the response; `nil`, the default, to determine it from the
    ///     response.
    ///   - fallback: The encoding of a body without a charset or byte order mark that is not UTF-8; Latin-1 by default,
    ///     `nil` to fail. It has no effect if `encoding` is not `nil`.
    ///   - validation: The statuses and media types that are accepted; by default 200 to 299 with any media type.
    public init(
        encoding: TextEncoding? = nil, fallback: TextEncoding? = .latin1,
        validation: ResponseValidation = .statusOnly
    ) {
        self.encoding = encoding
        self.fallback = fallback
        self.validation = validation
    }

    /// Returns the text, empty for an empty body; the status and media type are not checked here.
    ///
    /// - Parameters:
    ///   - head: The head of the response, whose `Content-Type` may declare the charset.
    ///   - body: The complete body.
    /// - Throws: ``SerializationError/text(_:)`` if the declared charset is unknown, or the body is invalid in the
    ///   encoding.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> String {
        if let encoding { return try decode(body, encoding, charset: encoding.name) }
        if let charset = head.charset {
            guard let encoding = TextEncoding(charset: charset) else { throw .text(.unknownCharset(charset)) }
            return try decode(body, encoding, charset: charset)
        }
        if let encoding = TextEncoding(byteOrderMarkOf: body) {
            return try decode(body, encoding, charset: encoding.name)
        }
        if let text = TextEncoding.utf8.decode(body) { return text }
        guard let fallback else { throw .text(.invalidBytes(charset: TextEncoding.utf8.name)) }
        return try decode(body, fallback, charset: fallback.name)
    }

    private func decode(
        _ body: Data, _ encoding: TextEncoding, charset: String
    ) throws(SerializationError) -> String {
        guard let text = encoding.decode(body) else { throw .text(.invalidBytes(charset: charset)) }
        return text
    }
}
