// SPDX-License-Identifier: MIT

public import FoundationEssentials

// What can be written behind `as:`.

extension ResponseSerializer where Self == DataResponseSerializer {
    /// The body as it is; empty for an empty one.
    public static var data: DataResponseSerializer { DataResponseSerializer() }
}

extension ResponseSerializer where Self == StringResponseSerializer {
    /// The body as text, in the charset of its `Content-Type`; empty for an empty one.
    public static var string: StringResponseSerializer { StringResponseSerializer() }

    /// The body as text in this encoding, whatever its `Content-Type` says.
    public static func string(_ encoding: TextEncoding) -> StringResponseSerializer {
        StringResponseSerializer(encoding: encoding)
    }
}

extension ResponseSerializer where Self == JSONResponseSerializer {
    /// The body as a ``JSONValue``: an array or object; null for an empty body.
    public static var json: JSONResponseSerializer { JSONResponseSerializer() }

    /// The body as a ``JSONValue``, read with these options.
    ///
    /// - Parameters:
    ///   - options: What is JSON beyond arrays and objects by RFC 8259.
    ///   - places: Where nulls are removed.
    public static func json(
        _ options: JSONReadingOptions, removingNulls places: JSONNullPlaces = []
    ) -> JSONResponseSerializer {
        JSONResponseSerializer(options: options, removingNulls: places)
    }

    /// The body as a ``JSONValue`` without the nulls in these places.
    public static func json(removingNulls places: JSONNullPlaces) -> JSONResponseSerializer {
        JSONResponseSerializer(removingNulls: places)
    }
}

extension ResponseSerializer where Self == PropertyListResponseSerializer {
    /// The body as a ``PropertyListValue``, from XML or the binary format; an empty dictionary for an empty body.
    public static var propertyList: PropertyListResponseSerializer { PropertyListResponseSerializer() }
}

extension ResponseSerializer where Self == EmptyResponseSerializer {
    /// Nothing of the body: for requests that matter by their status only.
    public static var empty: EmptyResponseSerializer { EmptyResponseSerializer() }
}

extension ResponseSerializer {
    /// The body as JSON of this type; nil for an empty body where the type is an optional.
    public static func decodable<Value>(
        _ type: Value.Type, decoder: JSONDecoder = JSONDecoder()
    ) -> Self where Self == DecodableResponseSerializer<Value> {
        DecodableResponseSerializer(type, decoder: decoder)
    }

    /// The body as a document of this type, read by a decoder of any format.
    ///
    /// - Parameters:
    ///   - type: What is decoded.
    ///   - decoder: Reads the format; see ``ResponseDecoder``.
    ///   - mediaTypes: Those of the format; nil for all.
    public static func decodable<Value>(
        _ type: Value.Type, decoder: some ResponseDecoder, mediaTypes: [MediaTypePattern]?
    ) -> Self where Self == DecodableResponseSerializer<Value> {
        DecodableResponseSerializer(
            type, decoder: decoder, validation: ResponseValidation(mediaTypes: mediaTypes), emptyResponses: .anyStatus)
    }

    /// The body as a property list of this type, from XML or the binary format.
    public static func propertyList<Value>(
        _ type: Value.Type, decoder: PropertyListDecoder = PropertyListDecoder()
    ) -> Self where Self == DecodableResponseSerializer<Value> {
        DecodableResponseSerializer(
            type, decoder: decoder, validation: .propertyList, emptyResponses: .anyStatus)
    }

    /// What another serializer makes; nil where that one misses a body.
    public static func optional<Base>(_ base: Base) -> Self where Self == OptionalResponseSerializer<Base> {
        OptionalResponseSerializer(base)
    }

    /// What the first of several serializers makes that can; see ``CompoundResponseSerializer``.
    public static func compound<Value>(
        _ children: any ResponseSerializer<Value>...
    ) -> Self where Self == CompoundResponseSerializer<Value> {
        CompoundResponseSerializer(children)
    }
}
