// SPDX-License-Identifier: MIT

public import FoundationEssentials

// The serializers that are available as static members, for arguments with the label `as:`.

extension ResponseSerializer where Self == DataResponseSerializer {
    /// A serializer that returns the body unchanged.
    public static var data: DataResponseSerializer { DataResponseSerializer() }
}

extension ResponseSerializer where Self == StringResponseSerializer {
    /// A serializer that decodes the body as text in the charset of its `Content-Type`.
    public static var string: StringResponseSerializer { StringResponseSerializer() }

    /// Returns a serializer that decodes the body as text in the given encoding, regardless of its `Content-Type`.
    public static func string(_ encoding: TextEncoding) -> StringResponseSerializer {
        StringResponseSerializer(encoding: encoding)
    }
}

extension ResponseSerializer where Self == JSONResponseSerializer {
    /// A serializer that parses the body as a ``JSONValue``: an array or object, or null for an empty body.
    public static var json: JSONResponseSerializer { JSONResponseSerializer() }

    /// Returns a serializer that parses the body as a ``JSONValue``.
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
    /// A serializer that decodes the body as a ``PropertyListValue``, from XML or the binary format; an empty body
    /// results in an empty dictionary.
    public static var propertyList: PropertyListResponseSerializer { PropertyListResponseSerializer() }
}

extension ResponseSerializer where Self == EmptyResponseSerializer {
    /// A serializer that ignores the body, for requests whose result is the status.
    public static var empty: EmptyResponseSerializer { EmptyResponseSerializer() }
}

extension ResponseSerializer {
    /// Returns a serializer that decodes the body from JSON. For an optional type an empty body results in `nil`.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder; `nil`, the default, for the session's. See ``JSONCoding``.
    public static func decodable<Value>(
        _ type: Value.Type, decoder: JSONDecoder? = nil
    ) -> Self where Self == DecodableResponseSerializer<Value> {
        DecodableResponseSerializer(type, decoder: decoder)
    }

    /// Returns a serializer that decodes the body with a decoder for any format.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder. See ``ResponseDecoder``.
    ///   - mediaTypes: The accepted media types; `nil` for all.
    public static func decodable<Value>(
        _ type: Value.Type, decoder: some ResponseDecoder, mediaTypes: [MediaTypePattern]?
    ) -> Self where Self == DecodableResponseSerializer<Value> {
        DecodableResponseSerializer(
            type, decoder: decoder, validation: ResponseValidation(mediaTypes: mediaTypes), emptyResponses: .anyStatus)
    }

    /// Returns a serializer that decodes the body from a property list, in XML or the binary format.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder; one with the default settings by default.
    public static func propertyList<Value>(
        _ type: Value.Type, decoder: PropertyListDecoder = PropertyListDecoder()
    ) -> Self where Self == DecodableResponseSerializer<Value> {
        DecodableResponseSerializer(
            type, decoder: decoder, validation: .propertyList, emptyResponses: .anyStatus)
    }

    /// Returns a serializer with the value of another one, or `nil` for an empty body that the other one permits.
    public static func optional<Base>(_ base: Base) -> Self where Self == OptionalResponseSerializer<Base> {
        OptionalResponseSerializer(base)
    }

    /// Returns a serializer that uses the first of several others that can read the body. See
    /// ``CompoundResponseSerializer``.
    public static func compound<Value>(
        _ children: any ResponseSerializer<Value>...
    ) -> Self where Self == CompoundResponseSerializer<Value> {
        CompoundResponseSerializer(children)
    }
}
