// SPDX-License-Identifier: MIT

public import FoundationEssentials

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
    /// The body must be an array or object; for other values, which RFC 8259 §2 permits, use `.json(.allowsFragments)`.
    /// An empty body, or a single space, results in ``JSONValue/null``.
    public static var json: JSONResponseSerializer { JSONResponseSerializer() }

    /// Returns a serializer that parses the body as a ``JSONValue``, and accepts the statuses 200 to 299 with the media
    /// types of JSON. An empty body, or a single space, results in ``JSONValue/null``.
    ///
    /// - Parameters:
    ///   - options: The accepted extensions of JSON; by default only arrays and objects by RFC 8259 are accepted.
    ///   - locations: The locations from which nulls are removed; none by default.
    public static func json(
        _ options: JSONReadingOptions = [], removingNulls locations: JSONNullLocations = []
    ) -> JSONResponseSerializer {
        JSONResponseSerializer(options: options, removingNulls: locations)
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
    /// ``SerializationError/emptyBody(status:wanted:)``.
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
    /// ``SerializationError/emptyBody(status:wanted:)``.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder, which must not be changed afterwards. See ``ResponseDecoder``.
    ///   - mediaTypes: The accepted media types of a body that is not empty; `nil` for all.
    public static func decodable<Value>(
        _ type: Value.Type, decoder: some ResponseDecoder, mediaTypes: [MediaTypePattern]?
    ) -> Self where Self == DecodableResponseSerializer<Value> {
        DecodableResponseSerializer(
            type, decoder: decoder, validation: ResponseValidation(mediaTypes: mediaTypes), emptyResponses: .anyStatus)
    }

    /// Returns a serializer that decodes the body from a property list, in XML or the binary format, and accepts the
    /// statuses 200 to 299 with `application/x-plist`. For an optional type an empty body results in `nil`, for most
    /// others in ``SerializationError/emptyBody(status:wanted:)``.
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
